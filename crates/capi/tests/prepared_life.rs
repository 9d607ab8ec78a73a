//! Directories with prepared transactions that RocksDB left, and checkpoints with some of ours: both libraries find the same.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{headers, library, source, succeed};

/// The program, our library and RocksDB's.
fn set_up(dir: &Path) -> Option<(PathBuf, PathBuf, PathBuf)> {
    let program = dir.join("prepared_life");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(headers()).arg(source("prepared_life"));
    succeed(compiler.arg("-o").arg(&program).arg("-ldl"));
    let ours = library();
    let theirs = ours.with_file_name("../rocksdb-11.8.1/librocksdbjni-linux64.so");
    if !theirs.exists() {
        eprintln!("SKIPPED: {theirs:?} is not there; scripts/setup.sh compare fetches it");
        return None;
    }
    Some((program, ours, theirs))
}

/// What a library finds in a directory, and after it ended what was prepared.
fn ended(program: &Path, library: &Path, dir: &Path) -> String {
    succeed(Command::new(program).arg(library).arg("end").arg(dir))
}

#[test]
fn what_rocksdb_left_prepared_is_found_as_rocksdb_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some((program, ours, theirs)) = set_up(dir.path()) else { return };
    let mut prepared = 0;
    for seed in 1..=10u64 {
        let made = dir.path().join(seed.to_string());
        // The second process finds what the first one prepared.
        for part in 0..1 + seed % 2 {
            let seed = (seed * 10 + part).to_string();
            succeed(Command::new(&program).arg(&theirs).arg("make").arg(&made).arg(seed));
        }
        let copy = dir.path().join(format!("{seed}.copy"));
        succeed(Command::new("cp").arg("-r").arg(&made).arg(&copy));
        let (by_rocksdb, by_us) = (ended(&program, &theirs, &copy), ended(&program, &ours, &made));
        assert_eq!(by_us, by_rocksdb, "seed {seed}");
        assert_eq!(ended(&program, &ours, &made), ended(&program, &theirs, &copy), "seed {seed}, opened again");
        prepared += by_us.lines().filter(|line| line.contains(" t")).count();
    }
    assert!(prepared > 25, "{prepared} prepared transactions");
}

#[test]
fn rocksdb_finds_what_is_prepared_in_a_checkpoint_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    let Some((program, ours, theirs)) = set_up(dir.path()) else { return };
    let mut prepared = 0;
    for seed in 1..=10u64 {
        let name = |kind: &str| dir.path().join(format!("{seed}.{kind}"));
        let (made, copy, second) = (name("made"), name("copy"), name("second"));
        let mut make = Command::new(&program);
        succeed(make.arg(&ours).arg("make").arg(&made).arg(seed.to_string()).arg(&copy));
        succeed(Command::new("cp").arg("-r").arg(&copy).arg(&second));
        let by_rocksdb = ended(&program, &theirs, &copy);
        assert_eq!(by_rocksdb, ended(&program, &ours, &second), "seed {seed}");
        assert_eq!(by_rocksdb, ended(&program, &ours, &made), "seed {seed}, where the checkpoint was made");
        prepared += by_rocksdb.lines().filter(|line| line.contains(" t")).count();
    }
    assert!(prepared > 25, "{prepared} prepared transactions");
}
