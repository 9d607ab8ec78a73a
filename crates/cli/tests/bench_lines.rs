//! Command lines of db_bench as other texts print them: they run as they stand, with fewer entries.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

/// ToplingDB's page on its memtable; Speedb's page on its sorted hash, twice; a reader's comparison of Speedb and RocksDB.
const LINES: [&str; 4] = [
    "db_bench -threads=10 -batch_size=100 -benchmarks=fillrandom",
    "./db_bench --memtablerep=speedb.HashSpdRepFactory",
    "./db_bench --memtablerep=speedb.HashSpdRepFactory:1000",
    "./db_bench  --memtablerep=speedb.HashSpdRepFactory --benchmarks=fillrandom,readrandom -max_background_jobs=12 \
     -num=400000000 -target_file_size_base=33554432",
];

/// Runs `spillway bench db` for `db_bench`, with its folder under `test_tmpdir`.
fn run(line: &str, test_tmpdir: &Path) -> Output {
    let flags = line.trim_start_matches("./").strip_prefix("db_bench").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillway"));
    // The last of two values counts.
    command.args(["bench", "db"]).args(flags.split_whitespace()).arg("-num=2000");
    command.env("TEST_TMPDIR", test_tmpdir).output().unwrap()
}

#[test]
fn lines_of_db_bench_run_as_they_are_printed() {
    for line in LINES {
        let dir = tempfile::tempdir().unwrap();
        let test_tmpdir = dir.path().join("tests");
        let ran = run(line, &test_tmpdir);
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{line}: {err}");
        let folder = test_tmpdir.join("dbbench");
        assert!(out.contains(&format!("DB path: [{}]", folder.display())), "the folder is said: {out}");
        assert!(folder.join("CURRENT").exists() && out.contains(" micros/op "), "{out}");
        assert_eq!(out.contains("Memtablerep: speedb.HashSpdRepFactory"), line.contains("speedb"), "{out}");
    }
}

#[test]
fn an_unknown_flag_is_told_with_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let error = |line: &str| String::from_utf8_lossy(&run(line, dir.path()).stderr).into_owned();
    let message = error("db_bench -thread=10");
    assert!(message.contains("thread") && message.contains("--help lists"), "{message}");
    assert!(!dir.path().join("dbbench").exists(), "nothing was made");
}
