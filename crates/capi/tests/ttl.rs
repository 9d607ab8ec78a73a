//! Stamped values are RocksDB's: its `ldb --ttl` reads what is exported from a database of ours.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::process::Command;

use common::{compile, run, succeed};
use spillway::internal::export::ExportOptions;
use spillway::internal::{Database as Db, OpenOptions, OtherFamilies};

#[test]
fn rocksdbs_tools_read_stamped_values() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("ttl", dir.path());
    succeed(run(&program).arg(dir.path()));
    let exported = dir.path().join("exported");
    let db = Db::open(dir.path().join("stamped"), &OpenOptions::default()).unwrap();
    assert!(*db.default_family().options().value_times, "a write with a ttl notes it for every later open");
    db.export(&exported, &ExportOptions::default()).unwrap();
    db.close().unwrap();
    for (name, families) in [
        ("to", &["imported"][..]),
        ("old", &["default", "fresh", "short-lived"]),
        ("plain", &[]),
        ("noted", &["put", "batched", "merged", "ingested"]),
    ] {
        let all = OpenOptions { other_families: OtherFamilies::OpenWith(Box::default()), ..OpenOptions::default() };
        let db = Db::open(dir.path().join(name), &all).unwrap();
        let noted: Vec<_> = db.families().into_iter().filter(|family| *family.options().value_times).collect();
        let noted: Vec<_> = noted.iter().map(|family| family.name()).collect();
        assert_eq!(noted, families, "{name}");
        db.close().unwrap();
    }
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
