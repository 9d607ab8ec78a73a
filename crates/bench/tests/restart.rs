//! `restart` as a program: it starts itself again, kills that, and opens what is left.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::process::Command;

#[test]
fn every_memtable_is_found_again_by_image_and_by_replay() {
    let dir = tempfile::tempdir().unwrap();
    let (databases, lines) = (dir.path().join("db"), dir.path().join("lines.jsonl"));
    let output = Command::new(env!("CARGO_BIN_EXE_spillway-bench"))
        .arg("restart")
        .arg(format!("--db={}", databases.display()))
        .arg(format!("--json={}", lines.display()))
        .args(["--bytes=3000000", "--rounds=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("| trie | log |") && text.contains("| skip_list | memtable |"), "{text}");

    let lines = std::fs::read_to_string(lines).unwrap();
    let records: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2 * 2 * 2, "{lines}");
    for record in &records {
        assert!(record["open_ms"].as_f64().unwrap() > 0.0, "{record}");
        assert!(record["memtable_bytes"].as_u64().unwrap() >= 3_000_000, "{record}");
        assert!(record["entries"].as_u64().unwrap() > 0, "{record}");
        assert_eq!(record["restored"].as_u64().unwrap() > 0, record["way"] == "image", "{record}");
        assert_eq!(record["kind"], "restart");
    }
    assert_eq!(databases.read_dir().unwrap().count(), 0, "the databases are destroyed");
}

#[test]
fn a_process_that_cannot_fill_its_database_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spillway-bench"))
        .args(["restart", "--bytes=1000", "--rounds=1"])
        .arg(format!("--db={}", file.join("db").display()))
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("file"), "the path is named");
}
