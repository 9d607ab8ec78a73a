//! Looking into single files, and the lists that the command prints: as golden texts.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::Place;
use serde_json::Value;
use spillway::internal::{Database, IngestOptions, IngestRequest, OpenOptions, WriteOptions};

/// One table and one log, of a few changes each.
fn database() -> Place {
    let place = Place::new();
    place.spillway(&["put", "apple", "red", "--create", "--db", "db"]).ok();
    place.spillway(&["put", "pear", "green", "--db", "db"]).ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway_reading(&["load", "-", "--format", "kv", "--db", "db"], b"plum\tblue\nfig\tb\xff\n").ok();
    place
}

#[test]
fn a_table_shows_its_parts() {
    let place = database();
    let table = place.only_file("db", ".sst");
    let dump = |part: &str| place.spillway(&["table", "dump", table.to_str().unwrap(), "--part", part]).ok();
    assert_eq!(dump("entries"), "apple @ 1 : Value => red\npear @ 2 : Value => green\n");
    assert_eq!(dump("tombstones"), "");
    assert!(dump("layout").starts_with("format version: 5\n"), "{}", dump("layout"));
    assert!(dump("properties").contains("\nentries: 2\n"), "{}", dump("properties"));
    assert_eq!(dump("index").lines().count(), 1);
    let all = place.spillway(&["table", "dump", table.to_str().unwrap()]).ok();
    assert_eq!(all.lines().filter(|line| line.starts_with("== ")).count(), 5);
}

#[test]
fn tables_are_verified() {
    let place = database();
    let table = place.only_file("db", ".sst");
    let name = table.to_str().unwrap();
    assert_eq!(place.spillway(&["table", "verify", name]).ok(), format!("{name}: whole, 2 entries\n"));
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[3] ^= 1;
    place.write("bad.sst", bytes);
    place.write("no.sst", "no table at all");
    let verified = place.spillway(&["table", "verify", name, "bad.sst", "no.sst", "missing.sst"]);
    assert_eq!(verified.out.lines().filter(|line| line.contains("whole")).count(), 1, "{verified:?}");
    assert!(verified.out.contains("bad.sst: ") && verified.out.contains("checksum"), "{verified:?}");
    assert!(verified.fails().contains("3 tables of 4 cannot be read in full"));
    let dump = place.spillway(&["table", "dump", "missing.sst"]).fails();
    assert!(dump.contains("missing.sst") && dump.contains("No such file"), "{dump}");
}

#[test]
fn a_log_shows_every_change() {
    let place = database();
    let logs = common::files(&place.path("db"));
    let log = logs.iter().map(|(path, _)| path).rfind(|path| path.extension().is_some_and(|e| e == "splog")).unwrap();
    let expected = "128: batch from number 3, 2 changes, 31 bytes
  3 put 'plum' => 'blue'
  4 put 'fig' => 'b\\xff'
# ends at byte 208 with its end record: the log is complete
";
    assert_eq!(place.spillway(&["log", "dump", log.to_str().unwrap()]).ok(), expected);
    place.write("log.txt", "?");
    let other = place.spillway(&["log", "dump", "log.txt"]).fails();
    assert!(
        other.contains(
            "not the name of a log; a log is NNNNNN.splog or NNNNNN.spbatch (Spillway), or NNNNNN.log (RocksDB)"
        ),
        "{other}"
    );
}

#[test]
fn rocksdbs_logs_show_theirs() {
    let place = Place::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/db-unflushed/000016.log");
    let dump = place.spillway(&["log", "dump", fixture]).ok();
    assert!(dump.starts_with("0: batch from number "), "{dump}");
    for change in ["merge 'counter'", "delete range [", " in family 1", "# ends with the file"] {
        assert!(dump.contains(change), "{change}: {dump}");
    }
}

#[test]
fn rocksdbs_logs_show_prepared_transactions() {
    let place = Place::new();
    let log = |name: &str| format!("{}/tests/fixtures/db-prepared/{name}", env!("CARGO_MANIFEST_DIR"));
    let dump = |name: &str| place.spillway(&["log", "dump", &log(name)]).ok();
    let old = dump("000004.log");
    let now = "batch from number 41, 2 changes, 61 bytes\n  prepare of 'committed now', 2 changes\n    put 'key07' => 'before' \
               in family 1\n    put 'key07' => 'committed' in family 1\n";
    for part in [now, "batch from number 41, 0 changes, 27 bytes\n  commit of 'committed now'\n", "  43 put 'key08'"] {
        assert!(old.contains(part), "{part}: {old}");
    }
    let new = dump("000012.log");
    for part in [
        "  commit of 'committed later'",
        "  rollback of 'rolled back later'",
        "  48 put 'key03'",
        "  prepare of 'left empty', 0",
    ] {
        assert!(new.contains(part), "{part}: {new}");
    }
}

#[test]
fn a_manifest_shows_its_edits() {
    let place = database();
    let by_dir = place.spillway(&["manifest", "dump", "db"]).ok();
    let file = place.only_file("db", "MANIFEST-");
    assert_eq!(place.spillway(&["manifest", "dump", file.to_str().unwrap()]).ok(), by_dir);
    assert!(by_dir.starts_with("0: family 0, fence 1\n"), "{by_dir}");
    assert!(by_dir.contains("comparator \"leveldb.BytewiseComparator\""), "{by_dir}");
    assert!(by_dir.contains("'apple'@"), "{by_dir}");
}

/// A dump says nothing of what a file does not show, and fails where something shows that more was there.
#[test]
fn dumps_claim_no_end_that_they_cannot_know() {
    let place = database();
    let (manifest, copy) = (place.only_file("db", "MANIFEST-"), place.only_file("db", ".spmanifest"));
    let whole = std::fs::read(&manifest).unwrap();
    let dump = || place.spillway(&["manifest", "dump", manifest.to_str().unwrap()]);
    for len in [0, whole.len() / 2, whole.len() - 3] {
        std::fs::write(&manifest, &whole[..len]).unwrap();
        let told = dump().fails();
        assert!(told.contains("the end of the MANIFEST is missing: its copy"), "{told}");
    }
    std::fs::remove_file(&copy).unwrap();
    assert!(dump().ok().ends_with("on: it was never written, or is lost\n"));
    std::fs::write(&manifest, b"").unwrap();
    assert_eq!(dump().ok(), "# it has no record: it was never written, or is lost\n");
    place.spillway(&["destroy", "--db", "db", "--yes"]).ok();
    for key in ["one", "two", "three"] {
        place.spillway_reading(&["load", "-", "--format", "kv", "--db", "db"], format!("{key}\t1\n").as_bytes()).ok();
    }
    place.spillway_reading(&["load", "-", "--batch", "1", "--format", "kv", "--db", "db"], b"a\t1\nb\t2\nc\t3\n").ok();
    let log = place.newest_file("db", ".splog");
    let whole = std::fs::read(&log).unwrap();
    let dump = || place.spillway(&["log", "dump", log.to_str().unwrap()]);
    let records: Vec<usize> =
        dump().ok().lines().filter_map(|line| line.split_once(": batch")?.0.parse().ok()).collect();
    assert_eq!(records.len(), 3);
    let no_more = |from: usize| format!("# no whole record from byte {from} on: none was written, or it is lost\n");
    std::fs::write(&log, &whole[..records[1]]).unwrap();
    assert!(dump().ok().ends_with(&no_more(records[1])));
    std::fs::write(&log, b"").unwrap();
    assert_eq!(dump().ok(), no_more(0));
    let mut damaged = whole.clone();
    damaged[records[1] + 30] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    let told = dump();
    assert!(told.out.contains("'a'") && !told.out.contains("'c'"), "{told:?}");
    let refused = told.fails();
    // On the machine and mount that wrote it, the log proves that the record was whole.
    assert!(
        ["no whole record up to byte ", "up to its next whole record"].iter().any(|part| refused.contains(part)),
        "{refused}"
    );
}

#[test]
fn stats_show_levels_and_properties() {
    let place = database();
    let stats = place.spillway(&["stats", "--db", "db"]).ok();
    for line in ["last write    number 4", "column family \"default\" (id 0)", "entries in memory        2 "] {
        assert!(stats.contains(line), "{line}: {stats}");
    }
    let property = |name: &str| place.spillway(&["stats", "--property", name, "--db", "db"]).ok();
    assert_eq!(property("rocksdb.estimate-num-keys"), "4\n");
    assert_eq!(property("rocksdb.num-files-at-level6"), "1\n");
    assert_eq!(property("rocksdb.num-files-at-level0"), "0\n");
    assert_eq!(property("rocksdb.num-entries-active-mem-table"), "2\n");
    assert!(property("rocksdb.levelstats").starts_with("Level Files Size(MB)\n"));
    assert!(property("rocksdb.sstables").contains("'apple' .. 'pear'"));
    assert!(property("rocksdb.cfstats").contains("memtable-limit: 0 waits, 0 us"));
}

/// A table that was ingested under a memtable has no level until the next flush.
#[test]
fn stats_count_ingested_tables_without_a_level() {
    let place = Place::new();
    place.spillway_reading(&["table", "build", "-", "--format", "kv", "--to", "tables"], b"b\t1\nc\t2\n").ok();
    let db = Database::open(place.path("db"), &OpenOptions::create_if_missing()).unwrap();
    let family = db.default_family();
    db.put(&family, b"d", b"3", &WriteOptions::default()).unwrap();
    let table = place.path("tables/table-000001.sst");
    let bytes = std::fs::metadata(&table).unwrap().len();
    db.ingest_all(&[IngestRequest::new(family.clone(), vec![table])], &IngestOptions::default()).unwrap();
    assert!(db.live_files()[0].is_queued);
    let stats = place.spillway(&["stats", "db"]).ok();
    assert!(
        stats.contains("  queue       1 ") && stats.contains("(ingested, without a level until a flush)"),
        "{stats}"
    );
    assert!(stats.contains("    all       1 "), "{stats}");
    let json: Value = serde_json::from_str(&place.spillway(&["stats", "db", "--json"]).ok()).unwrap();
    let family = &json["families"][0];
    let seen =
        ["tables", "table_bytes", "queued_tables", "queued_table_bytes"].map(|key| family[key].as_u64().unwrap());
    assert_eq!(seen, [1, bytes, 1, bytes]);
    db.close().unwrap();
}

#[test]
fn options_are_listed_with_their_meaning() {
    let place = Place::new();
    let options = place.spillway(&["options", "write_buffer_size"]).ok();
    let expected = "  write_buffer_size (integer; default 67108864; 65536 to 1099511627776; can change while open)
      Bytes of a memtable at which it is sealed and flushed.
";
    assert!(options.contains(expected), "{options}");
    assert!(place.spillway(&["options"]).ok().lines().count() > 100);
    assert!(
        place.spillway(&["options", "no_such"]).fails().contains("there is no option whose name contains \"no_such\"")
    );
}

#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    let help = place.spillway(&["--help"]).ok();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<_> = commands
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next())
        .collect();
    assert!(names.len() > 15, "{help}");
    for name in names.into_iter().filter(|name| *name != "help" && *name != "bench") {
        let help = place.spillway(&[name, "--help"]).ok();
        assert!(help.contains("Example"), "{name} --help has no example: {help}");
    }
}
