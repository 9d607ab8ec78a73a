//! The C programs in `tests/c`, run against the library; together they call every function.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use spillway::internal::options::known::{self, Changes, Unhonoured};

use common::{PROGRAMS, compile, library, run, source, succeed};

const SIGABRT: i32 = 6;

fn passes(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let program = compile(name, dir.path());
    let printed = succeed(run(&program).arg(dir.path()));
    assert_eq!(printed.trim(), format!("ok {name}"));
}

#[test]
fn absent() {
    passes("absent");
}

#[test]
fn answers() {
    passes("answers");
}

#[test]
fn bytes() {
    passes("bytes");
}

#[test]
fn background() {
    passes("background");
}

#[test]
fn backups() {
    passes("backups");
}

#[test]
fn basics() {
    passes("basics");
}

#[test]
fn batches() {
    passes("batches");
}

#[test]
fn eager_flush() {
    passes("eager_flush");
}

#[test]
fn exports() {
    passes("exports");
}

#[test]
fn extend() {
    passes("extend");
}

#[test]
fn families() {
    passes("families");
}

#[test]
fn files() {
    passes("files");
}

#[test]
fn forked() {
    passes("forked");
}

#[test]
fn full_disk() {
    passes("full_disk");
}

#[test]
fn indexed() {
    passes("indexed");
}

#[test]
fn locking() {
    passes("locking");
}

#[test]
fn options() {
    passes("options");
}

#[test]
fn options_life() {
    passes("options_life");
}

#[test]
fn prepared() {
    passes("prepared");
}

#[test]
fn properties() {
    passes("properties");
}

#[test]
fn repair() {
    passes("repair");
}

#[test]
fn resources() {
    passes("resources");
}

/// A value that no version of RocksDB has by default.
fn off_default(row: &Unhonoured) -> &'static str {
    match row.defaults.first() {
        _ if row.name == "daily_offpeak_time_utc" => "04:30-07:30",
        Some(&"true") => "false",
        Some(&"false") => "true",
        Some(default) if default.parse::<f64>().is_ok() => "77",
        _ => "Other",
    }
}

/// Every option that has no effect, off its default: those that are refused one by one, the others together.
#[test]
fn secondary() {
    passes("secondary");
}

#[test]
fn silent() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("silent", dir.path());
    let rows = || known::DB.iter().chain(known::FAMILY);
    let text = |row: &Unhonoured| format!("{}={}", row.name, off_default(row));
    let what = rows().filter(|row| matches!(row.changes, Changes::What(_))).map(|row| format!("what:{}", text(row)));
    let how: Vec<String> = rows().filter(|row| !matches!(row.changes, Changes::What(_))).map(text).collect();
    let printed = succeed(run(&program).arg(dir.path().join("db")).args(what).arg(format!("how:{}", how.join(";"))));
    assert_eq!(printed.trim(), "ok silent");
    let log = std::fs::read_to_string(dir.path().join("db/LOG")).unwrap();
    for row in rows().filter(|row| !matches!(row.changes, Changes::What(_)) && !row.is_default(off_default(row))) {
        let told = log.lines().filter(|line| line.contains(" [WARN] ") && line.contains(&format!("`{}=", row.name)));
        assert_eq!(told.count(), 1, "{}", row.name);
    }
}

#[test]
fn tailing() {
    passes("tailing");
}

#[test]
fn texts() {
    passes("texts");
}

#[test]
fn transactions() {
    passes("transactions");
}

#[test]
fn ttl() {
    passes("ttl");
}

#[test]
fn updates() {
    passes("updates");
}

#[test]
fn vectors() {
    passes("vectors");
}

#[test]
fn walks() {
    passes("walks");
}

/// The functions of the API that `nm` lists with these flags.
fn functions(flags: &[&str], file: &std::path::Path) -> BTreeSet<String> {
    let listed = succeed(Command::new("nm").args(flags).arg(file));
    let names = listed.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| common::is_of_the_api(name)).map(str::to_owned).collect()
}

#[test]
fn the_programs_call_every_function() {
    let dir = tempfile::tempdir().unwrap();
    let mut called = BTreeSet::new();
    for name in PROGRAMS {
        let object = dir.path().join(format!("{name}.o"));
        let mut compiler = Command::new("cc");
        compiler.args(["-c", "-I"]).arg(common::headers()).arg(source(name)).arg("-o").arg(&object);
        succeed(&mut compiler);
        called.extend(functions(&["--undefined-only"], &object));
    }
    let exported = functions(&["--dynamic", "--defined-only"], &library());
    let untested: Vec<_> = exported.difference(&called).collect();
    assert!(exported.len() > 1000 && untested.is_empty(), "no program calls {untested:#?}");
}

#[test]
fn a_null_handle_ends_the_process_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("death", dir.path());
    for (how, expected) in [
        ("get", "rocksdb_get: the argument `database` is NULL"),
        ("iter_next", "rocksdb_iter_next: the argument `iterator` is NULL"),
        ("batch_key", "rocksdb_writebatch_put: the argument `key` is NULL"),
        ("setter", "rocksdb_options_set_num_levels: the argument `options` is NULL"),
        ("name", "rocksdb_open: the argument `name` is NULL"),
    ] {
        let output = run(&program).arg(how).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("librocksdb (Spillway): {expected}")), "{how}: {said}");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{how}");
    }
}
