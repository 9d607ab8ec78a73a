//! The whole program on a few thousand entries: Debian's RocksDB, and Spillway's own library where it has been built. A library that
//! is not there is skipped, and said.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bench::sides::SideRecord;

/// Where Debian and its like put the library.
const INSTALLED: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8", "/usr/lib/aarch64-linux-gnu/librocksdb.so.7.8"];

/// The libraries that are there, by name. `ROCKSDB_LIB` and `SPILLWAY_LIB` name others.
fn libraries() -> Vec<(&'static str, PathBuf)> {
    let given = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let built = || Path::new(env!("CARGO_BIN_EXE_bench-compare")).with_file_name("librocksdb.so");
    let installed = || INSTALLED.map(PathBuf::from).into_iter().find(|path| path.exists()).unwrap_or_default();
    let candidates = [
        ("rocksdb", given("ROCKSDB_LIB").unwrap_or_else(installed)),
        ("spillway", given("SPILLWAY_LIB").unwrap_or_else(built)),
    ];
    let (there, missing): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|(_, path)| path.exists());
    for (name, path) in missing {
        eprintln!("SKIPPED: no library of {name} at {path:?}; it takes no part in this test");
    }
    there
}

fn run(given: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-compare")).args(given).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_workload_runs_on_every_library_that_is_there() {
    let libraries = libraries();
    if libraries.is_empty() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("lines.jsonl");
    let mut given: Vec<String> =
        libraries.iter().map(|(name, path)| format!("--lib={name}={}", path.display())).collect();
    given.extend(
        [
            "--num=4000",
            "--reads=2000",
            "--rounds=2",
            "--write_buffer_size=262144",
            "--ingest_rate=1000",
            "--ingest_seconds=1",
            "--ingest_interval_ms=200",
        ]
        .map(str::to_owned),
    );
    given.extend([format!("--db={}", dir.path().join("work").display()), format!("--json={}", json.display())]);
    let output = run(&given);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let lines = std::fs::read_to_string(&json).unwrap();
    let records: Vec<SideRecord> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // As many workloads and modes; each on each library, twice. Two modes are of Spillway alone.
    let ours = libraries.iter().filter(|(name, _)| *name == "spillway").count();
    assert_eq!(records.len(), 2 * (71 * libraries.len() + 2 * ours), "{out}");
    for record in &records {
        assert!(record.figure > 0.0 && record.ops > 0, "{record:?}");
        assert!(out.contains(&format!("| {} | {} |", record.name(), record.unit)), "{}\n{out}", record.name());
    }
    for record in records.iter().filter(|record| ["ingest", "ingest-modes"].contains(&record.workload.as_str())) {
        assert_eq!(record.ingests == 0, record.mode == "none", "{record:?}");
        assert_eq!(record.ops, 1000, "every write of the schedule is there once: {record:?}");
    }
    let missed = records.iter().find(|record| record.workload == "readmissing").unwrap();
    assert_eq!(missed.found, Some(0));
    assert!(!dir.path().join("work").exists(), "what was made is deleted");
}

#[test]
fn what_is_no_library_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let no_library = dir.path().join("x.so");
    std::fs::write(&no_library, "no").unwrap();
    let work = format!("--db={}", dir.path().join("work").display());
    let output = run(&[format!("--lib=x={}", no_library.display()), work]);
    let err = text(&output.stderr);
    assert!(!output.status.success() && err.contains("--lib x") && err.contains("x.so"), "{err}");
}

#[test]
fn a_library_without_the_functions_says_which() {
    let libc = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"].map(PathBuf::from);
    let Some(other) = libc.into_iter().find(|path| path.exists()) else {
        eprintln!("SKIPPED: no libm.so.6 where Debian has it");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let work = format!("--db={}", dir.path().join("work").display());
    let output = run(&[format!("--lib=m={}", other.display()), work]);
    let err = text(&output.stderr);
    assert!(!output.status.success() && err.contains("rocksdb_options_create") && err.contains("rocksdb_put"), "{err}");
}
