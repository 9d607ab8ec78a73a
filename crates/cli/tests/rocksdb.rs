//! RocksDB both ways: its directories opened here, ours exported and opened by its `ldb`.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};

use common::{Place, files};

/// Directories that RocksDB 11.8 and 11.9 wrote, with what it reads from them.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(format!("{name}.expected"))).unwrap()
}

/// What we read, in the fixtures' notation: `family hexkey hexvalue`.
fn read(place: &Place, db: &str) -> String {
    let mut text = String::new();
    for family in place.spillway(&["families", "list", "--db", db]).ok().lines() {
        for line in place.spillway(&["scan", "--hex", "--family", family, "--db", db]).ok().lines() {
            text += &format!("{family} {}\n", line.replace('\t', " "));
        }
    }
    text
}

fn fixture_reads_as_rocksdb_does(name: &str) {
    let place = Place::new();
    place.copy_of(&fixtures().join(name), "db");
    let before = files(&place.path("db"));
    assert_eq!(read(&place, "db"), expected(name), "read in place");
    let checked = place.spillway(&["check", "--db", "db"]).ok();
    assert!(checked.contains("nothing is seen to be lost") && !checked.contains("whole"), "{checked}");
    let stats = place.spillway(&["stats", "--db", "db"]);
    assert!(stats.code == Some(0) && stats.out.contains("RocksDB's"), "{stats:?}");
    let refused = place.spillway(&["put", "a", "b", "--db", "db"]).fails();
    assert!(refused.contains("Say --adopt if that is wanted"), "{refused}");
    assert_eq!(files(&place.path("db")), before, "nothing of it was changed without --adopt");

    let adopt = place.spillway(&["put", "zzz", "new", "--adopt", "--db", "db"]);
    assert!(adopt.code == Some(0) && adopt.err.contains("a RocksDB database was taken over"), "{adopt:?}");
    place.spillway(&["delete", "zzz", "--db", "db"]).ok();
    assert_eq!(read(&place, "db"), expected(name), "read after it was taken over");
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
    let fenced = place.ldb(&["--db=db", "scan"], b"");
    assert_ne!(fenced.code, Some(0), "RocksDB opens a directory whose log it would not see: {fenced:?}");
}

#[test]
fn an_unflushed_directory_of_11_9_is_read_and_adopted() {
    fixture_reads_as_rocksdb_does("db-unflushed");
}

/// Logs without end records prove no end, and one that is gone can leave no trace.
#[test]
fn no_report_on_a_directory_of_rocksdbs_says_that_all_is_there() {
    let place = Place::new();
    place.copy_of(&fixtures().join("db-unflushed"), "db");
    let json = |out: &str| serde_json::from_str::<serde_json::Value>(out).unwrap();
    let checked = json(&place.spillway(&["check", "--json", "--db", "db"]).ok());
    assert!(checked["may_lack_an_end"] == true && checked["whole"] == true, "{checked}");
    // RocksDB's repair leaves this MANIFEST, and no log until the next open.
    place.copy_of(&fixtures().join("db-universal"), "without");
    std::fs::write(place.path("without/MANIFEST-000001"), "").unwrap();
    std::fs::remove_file(place.path("without/000004.log")).unwrap();
    let checked = json(&place.spillway(&["check", "--json", "--db", "without"]).ok());
    assert!(checked["may_lack_an_end"] == true && checked["logs"] == 0, "{checked}");
    place.copy_of(&fixtures().join("db-unflushed"), "again");
    let repaired = place.spillway(&["repair", "db", "--adopt"]).ok();
    assert!(
        repaired.contains("nothing is seen to be lost") && !repaired.contains("nothing of it is lost"),
        "{repaired}"
    );
    let repaired = json(&place.spillway(&["repair", "again", "--adopt", "--json"]).ok());
    assert!(repaired["may_lack_an_end"] == true && repaired["lost_nothing"] == true, "{repaired}");
    assert!(place.spillway(&["repair", "db"]).ok().contains("nothing of it is lost"), "it is Spillway's now");
}

/// One read that fails would replace all options by defaults.
#[test]
fn takeover_over_options_that_cannot_be_read_is_refused() {
    let place = Place::new();
    place.copy_of(&fixtures().join("db-unflushed"), "db");
    let options = place.newest_file("db", "OPTIONS-");
    std::fs::remove_file(&options).unwrap();
    std::fs::create_dir(&options).unwrap(); // its bytes cannot be read
    let refused = place.spillway(&["put", "a", "b", "--adopt", "--db", "db"]).fails();
    assert!(refused.contains("give all options by --options FILE"), "{refused}");
    let stats = place.spillway(&["stats", "--db", "db"]);
    assert!(stats.code == Some(0) && stats.out.contains("RocksDB's"), "{stats:?}");
}

#[test]
fn an_ingested_directory_of_11_9_is_read_and_adopted() {
    fixture_reads_as_rocksdb_does("db-ingested");
}

/// Transactions that it prepared stand in logs before those of all unflushed writes.
#[test]
fn a_directory_of_11_8_with_prepared_transactions_is_read_and_adopted() {
    fixture_reads_as_rocksdb_does("db-prepared");
}

/// Flushes of two families are groups of edits in its MANIFEST.
#[test]
fn a_universal_directory_of_11_8_flushed_atomically_is_read_and_adopted() {
    fixture_reads_as_rocksdb_does("db-universal");
}

/// The tables hold what followed the end that is lost. An open refuses, and so a check must not call it whole.
#[test]
fn a_log_cut_off_before_what_tables_hold_is_a_problem() {
    let place = Place::new();
    place.copy_of(&fixtures().join("db-prepared"), "db");
    let log = place.path("db/000004.log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    let check = place.spillway(&["check", "--db", "db"]);
    assert!(check.code == Some(1) && check.out.contains("000004.log: the log is cut off, but the tables"), "{check:?}");
    place.spillway(&["scan", "--db", "db"]).fails();
}

/// Pairs as `ldb scan --hex` prints them.
fn ldb_scan(place: &Place, db: &str) -> String {
    let ran = place.ldb(&[&format!("--db={db}"), "--hex", "scan"], b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out.lines().map(|line| line.replace("0x", "").replace(" : ", "\t").to_lowercase() + "\n").collect()
}

fn records(count: u32) -> String {
    (0..count).map(|i| format!("key{:05} ==> value {i} {}\n", i * 7919 % count, "x".repeat(i as usize % 50))).collect()
}

#[test]
fn a_directory_of_ldb_is_adopted_with_its_unflushed_log_and_exported_back() {
    let place = Place::new();
    let load = place.ldb(&["--db=theirs", "--create_if_missing", "load"], records(3000).as_bytes());
    assert_eq!(load.code, Some(0), "{load:?}");
    for args in [["put", "unflushed", "in the log"], ["put", "key00001", "overwritten in the log"]] {
        assert_eq!(place.ldb(&[&["--db=theirs"], &args[..]].concat(), b"").code, Some(0));
    }
    let theirs = ldb_scan(&place, "theirs");
    assert_eq!(theirs.lines().count(), 3001);
    assert_eq!(place.spillway(&["scan", "--hex", "--db", "theirs"]).ok(), theirs);

    place.spillway(&["delete", "key00002", "--adopt", "--log-level", "off", "--db", "theirs"]).ok();
    place.spillway(&["put", "ours", "new", "--db", "theirs"]).ok();
    let ours = place.spillway(&["scan", "--hex", "--db", "theirs"]).ok();
    assert_eq!(ours.lines().count(), 3001);
    let summary = place.spillway(&["export", "--to", "back", "--db", "theirs"]).ok();
    assert!(summary.starts_with("exported 1 family, "), "{summary}");
    assert_eq!(ldb_scan(&place, "back"), ours);
    let check = place.ldb(&["--db=back", "checkconsistency"], b"");
    assert!(check.out.contains("OK"), "{check:?}");
    assert_eq!(place.ldb(&["--db=back", "put", "and", "forth"], b"").code, Some(0), "RocksDB writes to it");
    assert_eq!(place.spillway(&["get", "and", "--db", "back"]).ok(), "forth\n");
    assert_eq!(place.spillway(&["scan", "--hex", "--db", "theirs"]).ok(), ours, "the original is what it was");
}

#[test]
fn exports_of_every_compression_and_index_open_in_rocksdb() {
    let place = Place::new();
    for (i, options) in [
        "compression=kNoCompression;block_based_table_factory={checksum=kCRC32c;block_size=512}",
        "compression=kSnappyCompression;block_based_table_factory={filter_policy=bloomfilter:10:false}",
        "compression=kZSTD;block_based_table_factory={index_type=kTwoLevelIndexSearch;block_size=512}",
        "compression=kLZ4Compression;block_based_table_factory={index_type=kBinarySearchWithFirstKey}",
        "compression=kZlibCompression;block_based_table_factory={data_block_index_type=kDataBlockBinaryAndHash}",
    ]
    .into_iter()
    .enumerate()
    {
        let (db, to) = (format!("db{i}"), format!("export{i}"));
        let input = records(2000).replace(" ==> ", "\t");
        let load = ["load", "-", "--format", "kv", "--db", &db, "--options", options];
        place.spillway_reading(&load, input.as_bytes()).ok();
        place.spillway(&["families", "create", "second", "--db", &db]).ok();
        place.spillway(&["put", "in", "second", "--family", "second", "--db", &db]).ok();
        place.spillway(&["delete", "key01000", "--until", "key01500", "--db", &db]).ok();
        place.spillway(&["export", "--to", &to, "--copy", "--db", &db]).ok();
        let ours = place.spillway(&["scan", "--hex", "--db", &db]).ok();
        assert_eq!(ours.lines().count(), 1500);
        assert_eq!(ldb_scan(&place, &to), ours, "{options}");
        let second = place.ldb(&[&format!("--db={to}"), "--column_family=second", "scan"], b"");
        assert_eq!(second.out, "in : second\n", "{second:?}");
        for (path, _) in files(&place.path(&to)).iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "sst"))
        {
            let file = format!("--file={}", path.display());
            let verified = place.command("sst_dump", &[&file, "--command=verify"]).output().unwrap();
            assert!(verified.status.success(), "{options}: {}", String::from_utf8_lossy(&verified.stderr));
        }
    }
}
