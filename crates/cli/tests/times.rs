//! Families whose values end with the times of their writes: every command writes times and takes them off.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::Place;
use spillway::{Db, FamilyOptions, Options};

const HOUR: Duration = Duration::from_secs(3600);

/// A database `db` whose default family has a ttl, as a Rust program makes it.
fn timed() -> Place {
    let place = Place::new();
    let db = Db::open_with(place.path("db"), &Options::new().default_family(FamilyOptions::new().ttl(HOUR))).unwrap();
    db.put("rust", "1").unwrap();
    db.close().unwrap();
    place
}

/// What a Rust program reads.
fn read(place: &Place) -> Vec<(String, String)> {
    let db = Db::open(place.path("db")).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    db.iter().map(|entry| entry.map(|(key, value)| (text(&key), text(&value))).unwrap()).collect()
}

#[test]
fn commands_write_times_and_take_them_off() {
    let place = timed();
    place.spillway(&["put", "put", "2", "--db", "db"]).ok();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"puts\t3\n").ok();
    let load = ["load", "-", "--db", "db", "--format", "kv", "--via", "ingest"];
    assert!(place.spillway_reading(&load, b"tables\t4\n").ok().contains("(7 B)"), "times are no payload");
    let build = |to: &str, of: &[&str], input: &[u8]| {
        let args = ["table", "build", "-", "--format", "kv", "--to", to];
        place.spillway_reading(&[&args, of].concat(), input).ok();
    };
    build("for", &["--for", "db"], b"built\t5\n");
    build("plain", &[], b"plain\t6\nsameness\t7\n");
    for table in ["for/table-000001.sst", "plain/table-000001.sst"] {
        place.spillway(&["ingest", table, "--db", "db"]).ok();
    }
    place.spillway(&["compact", "--force", "--db", "db"]).ok();
    let expected = [
        ("built", "5"),
        ("plain", "6"),
        ("put", "2"),
        ("puts", "3"),
        ("rust", "1"),
        ("sameness", "7"),
        ("tables", "4"),
    ];
    let lines: String = expected.map(|(key, value)| format!("{key}\t{value}\n")).concat();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), lines);
    for (key, value) in expected {
        assert_eq!(place.spillway(&["get", key, "--db", "db"]).ok(), format!("{value}\n"));
    }
    assert_eq!(place.spillway(&["scan", "--count", "--db", "db"]).ok(), "7 keys, 35 B of keys, 7 B of values\n");
    assert_eq!(read(&place), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn scan_shows_times_if_asked() {
    let place = timed();
    let scan = |args: &[&str]| place.spillway(&[&["scan", "--times", "--db", "db"], args].concat());
    let line = scan(&[]).ok();
    let time = line.strip_prefix("rust\t1\t20").unwrap();
    assert!(time.ends_with(" UTC\n") && time.len() == "26-11-30 08:41:24 UTC\n".len(), "{line}");
    assert!(scan(&["--format", "csv"]).ok().starts_with("key,value,time\nrust,1,20"));
    let json = scan(&["--json"]).ok();
    assert!(json.starts_with(r#"{"key":"rust","value":"1","unix_time_s":1"#), "{json}");
    assert!(scan(&["--format", "values"]).fails().contains("no place for --times"));
    place.spillway(&["families", "create", "plain", "--db", "db"]).ok();
    assert!(scan(&["--family", "plain"]).fails().contains("carry no times"));
}

/// `rocksdb_open` and raw writes of a program do not write times into a family that is noted to have them.
#[test]
fn values_without_times_are_told() {
    let place = Place::new();
    for (key, value) in [("number", "12345678"), ("short", "xy")] {
        place.spillway(&["put", key, value, "--db", "db", "--create"]).ok();
    }
    place.spillway(&["put", "timed", "v", "--db", "db", "--ttl"]).ok();
    for args in [&["scan"][..], &["scan", "--times"], &["scan", "--count"], &["scan", "--reverse", "--json"]] {
        let scanned = place.spillway(&[args, &["--db", "db"]].concat());
        assert_eq!(scanned.code, Some(1), "{args:?}: {scanned:?}");
        assert!(scanned.err.contains("2 values were written without a time"), "{args:?}: {scanned:?}");
    }
    let scanned = place.spillway(&["scan", "--db", "db"]);
    assert_eq!(scanned.out, "number\t12345678\nshort\txy\ntimed\tv\n");
    for key in ["number", "short"] {
        let error = place.spillway(&["get", key, "--db", "db"]).fails();
        assert!(error.contains("written without a time") && !error.contains("repair"), "{error}");
        place.spillway(&["put", key, "w", "--db", "db"]).ok();
    }
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "number\tw\nshort\tw\ntimed\tv\n");
}

#[test]
fn expired_values_are_not_shown() {
    let place = Place::new();
    let second = FamilyOptions::new().ttl(Duration::from_secs(1));
    let db = Db::open_with(place.path("db"), &Options::new().default_family(second)).unwrap();
    db.put("old", "1").unwrap();
    db.close().unwrap();
    std::thread::sleep(Duration::from_millis(2100)); // a time's unit is the second
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "");
    assert!(place.spillway(&["get", "old", "--db", "db"]).fails().contains("no key old"));
}

/// `--ttl` is for families that nothing notes; a command that writes notes it.
#[test]
fn ttl_flag_is_noted_for_good() {
    let place = Place::new();
    place.spillway(&["put", "k", "v", "--db", "db", "--create", "--ttl"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "k\tv\n");
    assert_eq!(read(&place), [("k".to_owned(), "v".to_owned())]);
    assert!(place.spillway(&["manifest", "dump", "db"]).ok().contains("values with times"));
    // Options that are given for this open, or in place of the stored ones, do not take it back.
    let given = ["scan", "--db", "db", "--options", "defaults"];
    assert_eq!(place.spillway(&given).ok(), "k\tv\n");
    // A table says that it has times; a family without them is not given it.
    place.spillway(&["families", "create", "plain", "--db", "db"]).ok();
    let build = ["table", "build", "-", "--format", "kv", "--to", "t", "--ttl"];
    place.spillway_reading(&build, b"a\t1\n").ok();
    let refused = place.spillway(&["ingest", "t/table-000001.sst", "--db", "db", "--family", "plain"]).fails();
    assert!(refused.contains("values of the table end with times"), "{refused}");
    place.spillway(&["ingest", "t/table-000001.sst", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "a\t1\nk\tv\n");
}

/// A ttl that is given to a family whose values carry no times would have reads cut four bytes off.
#[test]
fn ttl_of_options_is_refused_for_plain_values() {
    let place = Place::new();
    place.spillway(&["put", "k", "plain value", "--db", "db", "--create"]).ok();
    let refused = place.spillway(&["put", "l", "v", "--db", "db", "--options", "value_ttl_s=3600"]).fails();
    assert!(
        refused.contains("values that are there carry no time") && refused.contains("value_times=true"),
        "{refused}"
    );
    let is_plain = |db: &str| assert_eq!(place.spillway(&["get", "k", "--db", db]).ok(), "plain value\n");
    is_plain("db");
    // A takeover of RocksDB's directory goes by its own options.
    place.spillway(&["export", "--to", "exported", "--db", "db"]).ok();
    let adopt = ["put", "l", "v", "--db", "exported", "--adopt", "--options", "value_ttl_s=3600"];
    assert!(place.spillway(&adopt).fails().contains("values that are there carry no time"));
    is_plain("exported");
    // A repair leaves it out.
    let repaired = place.spillway(&["repair", "db", "--options", "value_ttl_s=3600"]);
    assert!(repaired.code == Some(0) && repaired.err.contains("the repair leaves the ttl out"), "{repaired:?}");
    place.spillway(&["compact", "--force", "--db", "db"]).ok();
    is_plain("db");
    // A file of options takes the place of lost ones.
    place.spillway(&["put", "k", "v", "--db", "other", "--create", "--options", "value_ttl_s=3600"]).ok();
    std::fs::copy(place.newest_file("other", "OPTIONS-"), place.path("given")).unwrap();
    std::fs::remove_file(place.newest_file("db", "OPTIONS-")).unwrap();
    let refused = place.spillway(&["put", "l", "v", "--db", "db", "--options", "given"]).fails();
    assert!(refused.contains("values that are there carry no time"), "{refused}");
    is_plain("db");
}

#[test]
fn times_that_are_noted_are_not_denied() {
    let place = timed();
    let is_told = |args: &[&str]| {
        let told = place.spillway(args).fails();
        assert!(told.contains("value_times=false") && told.contains("leave value_times out"), "{args:?}: {told}");
    };
    std::fs::write(place.path("given.json"), r#"{"CFOptions": {"default": {"value_times": false}}}"#).unwrap();
    let file = "[Version]\nrocksdb_version=9.8.4\noptions_file_version=1.1\n[DBOptions]\n[CFOptions \"default\"]\nvalue_times=false\n";
    std::fs::write(place.path("given"), file).unwrap();
    for given in ["value_times=false", "given.json", "given"] {
        is_told(&["put", "k", "v", "--db", "db", "--options", given]);
        is_told(&["scan", "--db", "db", "--options", given]);
        is_told(&["table", "build", "given", "--format", "kv", "--to", "t", "--for", "db", "--options", given]);
    }
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "rust\t1\n");
    // It says nothing of a family without times.
    place.spillway(&["put", "k", "a value", "--db", "plain", "--create", "--options", "value_times=false"]).ok();
    assert_eq!(place.spillway(&["get", "k", "--db", "plain", "--options", "value_times=false"]).ok(), "a value\n");
}

/// An export is RocksDB's directory. A takeover of it finds the note again.
#[test]
fn export_keeps_the_note() {
    let place = timed();
    place.spillway(&["export", "--to", "exported", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "exported"]).ok(), "rust\t1\n");
    let options = place.only_file("exported", "OPTIONS-");
    std::fs::remove_file(options).unwrap();
    let put = place.spillway(&["put", "k", "v", "--db", "exported", "--adopt"]);
    assert_eq!(put.code, Some(0), "{put:?}");
    assert_eq!(place.spillway(&["scan", "--db", "exported"]).ok(), "k\tv\nrust\t1\n");
}
