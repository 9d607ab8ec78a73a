//! Tables for and from ingest are RocksDB's, both ways: `ldb` takes ours in, and we read what it writes.

extern crate spillway_db_table as table;

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use base::options::{CompressionKind, FilterPolicy, IndexType};
use base::{SeqNo, ValueKind};
use table::{Table, TableBuilderConfig, TableContext};

/// What `ldb` printed, or `None` where it is not installed.
fn ldb(db: &Path, arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("ldb");
    command.arg(format!("--db={}", db.display())).args(arguments);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        println!("ldb is not installed: RocksDB's view of ingested tables is not checked");
        return None;
    };
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("ldb reads its input");
    let output = child.wait_with_output().expect("ldb ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ldb {arguments:?}: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn pairs() -> Vec<(String, String)> {
    (0..2_000).map(|i| (format!("key{i:06}"), format!("value {i}"))).collect()
}

/// `ldb scan`'s lines.
fn scanned(pairs: &[(String, String)]) -> String {
    pairs.iter().map(|(key, value)| format!("{key} : {value}\n")).collect()
}

#[test]
fn rocksdb_ingests_our_tables() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, compression, index) in [
        ("plain", CompressionKind::None, IndexType::BinarySearch),
        ("zstd", CompressionKind::Zstd, IndexType::TwoLevel),
        ("lz4", CompressionKind::Lz4, IndexType::BinarySearchWithFirstKey),
    ] {
        let path = dir.path().join(format!("{name}.sst"));
        let mut config = TableBuilderConfig::new(&path);
        config.ingestable = true;
        config.compression = compression;
        config.options.index_type = index;
        config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
        let entries: Vec<_> = pairs().iter().map(|(key, value)| common::put(key, 0, value)).collect();
        let table = common::write(config, &entries).expect("written");
        #[expect(clippy::disallowed_methods, reason = "a file for another program")]
        std::fs::write(&path, &table.bytes).expect("written");
        let db = dir.path().join(name);
        // Something below, so that the table takes a global sequence number.
        let Some(_) = ldb(&db, &["--create_if_missing", "put", "key000007", "older"], "") else { return };
        ldb(&db, &["ingest_extern_sst", path.to_str().expect("text")], "").expect("installed");
        let text = ldb(&db, &["scan"], "").expect("installed");
        assert!(text == scanned(&pairs()), "{name}: {}", text.lines().take(3).collect::<String>());
        ldb(&db, &["checkconsistency"], "").expect("installed");
    }
}

#[test]
fn we_read_the_tables_that_rocksdb_makes_for_ingest() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("made.sst");
    let input: String = pairs().iter().map(|(key, value)| format!("{key} ==> {value}\n")).collect();
    let arguments = ["--create_if_missing", "write_extern_sst", path.to_str().expect("text")];
    let Some(_) = ldb(&dir.path().join("db"), &arguments, &input) else { return };
    #[expect(clippy::disallowed_methods, reason = "a file of another program")]
    let bytes = std::fs::read(&path).expect("written");
    // In the database that takes it in, every key has the number that the MANIFEST gives the table.
    let context = TableContext { largest_seq: Some(SeqNo(77)), ..TableContext::default() };
    let table = common::open(&bytes, &context).expect("readable");
    table.verify().expect("whole");
    let expected: Vec<_> = pairs().iter().map(|(key, value)| common::put(key, 77, value)).collect();
    assert!(common::forward(&table).expect("readable") == expected);
    let found = common::get(&table, b"key001999", SeqNo(100)).expect("readable");
    assert_eq!(found, [(SeqNo(77), ValueKind::Value, b"value 1999".to_vec())]);
    assert_eq!(common::get(&table, b"key001999", SeqNo(76)).expect("readable"), []);
}
