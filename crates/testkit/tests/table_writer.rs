//! Tables of `TableWriter`, ingested by RocksDB's tools and by Spillway: both show the same.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::engine::options::apply_string;
use testkit::engine::vfs::RealVfs;
use testkit::engine::{Db, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteOptions};

/// What there is before: keys that the table overwrites, deletes and leaves.
const BEFORE: [&str; 5] = ["a", "b", "d", "k5", "z"];

/// Output of `ldb`; `None` if it is not installed.
fn ldb(db: &Path, arguments: &[&str]) -> Option<String> {
    let Ok(output) = Command::new("ldb").arg(format!("--db={}", db.display())).args(arguments).output() else {
        println!("ldb is not installed: RocksDB's view is not checked");
        return None;
    };
    assert!(output.status.success(), "ldb {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A table with every kind of entry RocksDB's tools can ingest without a merge operator.
fn table(path: PathBuf, options: &FamilyOptions) -> PathBuf {
    let mut table = TableWriter::create(RealVfs::new(), &path, options).unwrap();
    table.put(b"a", b"overwritten").unwrap();
    table.delete(b"b").unwrap();
    for i in 0..500 {
        table.put(format!("e{i:04}").as_bytes(), format!("value {i}").as_bytes()).unwrap();
    }
    table.delete_range(b"k", b"l").unwrap();
    table.put(b"k7", b"not deleted by its own table").unwrap();
    table.finish().unwrap().path
}

fn expected() -> String {
    let numbered: String = (0..500).map(|i| format!("e{i:04} : value {i}\n")).collect();
    format!("a : overwritten\nd : before\n{numbered}k7 : not deleted by its own table\nz : before\n")
}

fn taken_in_by_us(dir: &Path, table: &Path) -> String {
    let db = Db::open(dir, &OpenOptions::create_if_missing()).unwrap();
    let family = db.default_family();
    for key in BEFORE {
        db.put(&family, key.as_bytes(), b"before", &WriteOptions::default()).unwrap();
    }
    let options = IngestOptions { verify_checksums_before_ingest: true, ..IngestOptions::default() };
    db.ingest(&family, &[table.to_owned()], &options).unwrap();
    let mut entries = db.iter(&family, &ReadOptions::default()).unwrap();
    let mut text = String::new();
    let mut valid = entries.seek_to_first();
    while valid {
        let (key, value) = (String::from_utf8_lossy(entries.key()), String::from_utf8_lossy(entries.value()));
        text += &format!("{key} : {value}\n");
        valid = entries.next();
    }
    entries.status().unwrap();
    text
}

#[test]
fn rocksdb_and_we_see_the_same_in_tables_of_every_layout() {
    let dir = tempfile::tempdir().unwrap();
    for (name, layout) in [
        ("default", ""),
        ("plain", "compression=kNoCompression;block_based_table_factory={checksum=kCRC32c;block_size=512}"),
        ("dictionary", "compression=kZSTD;compression_opts={max_dict_bytes=4096}"),
        ("filtered", "block_based_table_factory={filter_policy=bloomfilter:10:false;index_type=kTwoLevelIndexSearch}"),
        ("first-keys", "compression=kLZ4Compression;block_based_table_factory={index_type=kBinarySearchWithFirstKey}"),
    ] {
        let mut options = FamilyOptions::default();
        apply_string(&mut options, layout).unwrap();
        let table = table(dir.path().join(format!("{name}.sst")), &options);
        assert_eq!(taken_in_by_us(&dir.path().join(format!("{name}-ours")), &table), expected(), "{name}");

        let db = dir.path().join(name);
        for key in BEFORE {
            let Some(_) = ldb(&db, &["--create_if_missing", "put", key, "before"]) else { return };
        }
        ldb(&db, &["ingest_extern_sst", table.to_str().unwrap()]).unwrap();
        assert_eq!(ldb(&db, &["scan"]).unwrap(), expected(), "{name}");
        let file = format!("--file={}", table.display());
        let verified = Command::new("sst_dump").args([file.as_str(), "--command=verify"]).output().unwrap();
        assert!(verified.status.success(), "{name}: {}", String::from_utf8_lossy(&verified.stderr));
    }
}
