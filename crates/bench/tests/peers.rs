//! `bench-peers` on a few hundred entries: every workload on every engine. RocksDB takes part where its library is there: Debian's, or
//! the one that `ROCKSDB_LIB` names.
#![cfg(feature = "peers")]
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bench::sides::SideRecord;

/// Where Debian and its like put the library.
const INSTALLED: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8", "/usr/lib/aarch64-linux-gnu/librocksdb.so.7.8"];

fn rocksdb() -> Option<PathBuf> {
    let given = std::env::var_os("ROCKSDB_LIB").map(PathBuf::from);
    let found = given.or_else(|| INSTALLED.map(PathBuf::from).into_iter().find(|path| path.exists()));
    if found.is_none() {
        eprintln!("SKIPPED: no library of RocksDB; it takes no part in this test");
    }
    found
}

fn run(given: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench-peers")).args(given).output().unwrap()
}

/// The records of a set of workloads on all engines. Returns the number of engines too.
fn records(dir: &Path, set: &str) -> (Vec<SideRecord>, usize) {
    let json = dir.join("lines.jsonl");
    let small = ["--num=300", "--ops=400", "--writes=5", "--rounds=2", "--value_size=64"].map(str::to_owned);
    let mut given = vec![format!("--set={set}"), format!("--json={}", json.display())];
    given.push(format!("--db={}", dir.join("work").display()));
    given.extend(small);
    let library = rocksdb();
    given.extend(library.iter().map(|path| format!("--rocksdb={}", path.display())));
    let output = run(&given);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(!dir.join("work").exists(), "what was made is deleted");
    let lines = std::fs::read_to_string(&json).unwrap();
    let records: Vec<SideRecord> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for record in &records {
        assert!(
            record.figure > 0.0 && !record.version.is_empty() && record.options.contains("memory group"),
            "{record:?}"
        );
        assert!(out.contains(&format!("| {} | {} |", record.name(), record.unit)), "{}\n{out}", record.name());
    }
    (records, if library.is_some() { 7 } else { 5 })
}

/// The checksums of a workload; one in each record.
fn checksums(records: &[SideRecord], name: &str) -> Vec<u64> {
    records.iter().filter(|record| record.name() == name).map(|record| record.checksum.unwrap()).collect()
}

#[test]
fn every_step_of_the_suite_runs_on_every_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (records, engines) = records(dir.path(), "suite");
    assert_eq!(records.len(), 13 * engines * 2);
    let counts: Vec<_> =
        records.iter().filter(|record| record.workload == "count").map(|record| record.found).collect();
    assert_eq!(counts.len(), engines * 2);
    assert!(counts.iter().all(|count| *count == Some(300 + 5 + 100 * 100 + 15 + 100)), "{counts:?}");
    for name in ["random reads", "random reads, 2 threads", "range reads", "range reads, 2 threads"] {
        let sums = checksums(&records, name);
        assert!(sums.len() == engines * 2 && sums.iter().all(|sum| *sum == sums[0] && *sum > 0), "{name}: {sums:?}");
    }
}

#[test]
fn every_workload_of_ycsb_runs_on_every_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (records, engines) = records(dir.path(), "ycsb");
    assert_eq!(records.len(), 7 * engines * 2);
    for name in ["ycsb-a, 64 B", "ycsb-b, 64 B", "ycsb-c, 64 B", "ycsb-d, 64 B", "ycsb-f, 64 B"] {
        let sums = checksums(&records, name);
        assert!(sums.len() == engines * 2 && sums.iter().all(|sum| *sum == sums[0] && *sum > 0), "{name}: {sums:?}");
    }
    let read_only = records.iter().filter(|record| record.workload == "ycsb-c");
    assert!(read_only.clone().all(|record| record.found == Some(400) && !record.latency.contains_key("write")));
    assert_eq!(read_only.count(), engines * 2);
}

#[test]
fn what_is_no_library_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let no_library = dir.path().join("x.so");
    std::fs::write(&no_library, "no").unwrap();
    let (library, work) = (format!("--rocksdb={}", no_library.display()), dir.path().join("work"));
    let output = run(&["--peers=rocksdb".to_owned(), library, format!("--db={}", work.display())]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("x.so"), "{err}");
}
