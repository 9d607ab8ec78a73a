//! Stamped values are RocksDB's: its `ldb --ttl` reads what is exported from a database of ours.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::process::Command;

use common::{compile, run, succeed};
use spillway::internal::export::ExportOptions;
use spillway::internal::{Database as Db, OpenOptions};

#[test]
fn rocksdbs_tools_read_stamped_values() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("ttl", dir.path());
    succeed(run(&program).arg(dir.path()));
    let exported = dir.path().join("exported");
    let db = Db::open(dir.path().join("stamped"), &OpenOptions::default()).unwrap();
    db.export(&exported, &ExportOptions::default()).unwrap();
    db.close().unwrap();
    // After a scan of such a database ldb 7.8 complains of families that there are not, and fails.
    let ldb = |args: &[&str]| {
        let output = Command::new("ldb").arg(format!("--db={}", exported.display())).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let scanned = ldb(&["--ttl", "scan"]);
    let mut lines: Vec<&str> = scanned.lines().map(str::trim).collect();
    lines.retain(|line| line.contains(" : "));
    assert_eq!(lines, ["b : 1.2.3.4", "k : value", "w : of the batch"], "{scanned}");
    let raw = ldb(&["scan", "--hex"]);
    let stamped = raw.lines().find(|line| line.starts_with("0x6B ")).unwrap_or_else(|| panic!("no key in {raw}"));
    let value = stamped.rsplit("0x").next().unwrap_or_default();
    assert_eq!(value.len(), 2 * (b"value".len() + 4), "{stamped}");
}
