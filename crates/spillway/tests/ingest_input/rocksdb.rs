//! Tables of RocksDB: those that 11.9 wrote lie beside the table crate's tests; `ldb` (7.8) makes more, and takes ours.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::engine::vfs::RealVfs;
use testkit::engine::{FamilyOptions, IngestOptions, TableWriter};

use crate::common::{Contents, Place, any, default, numbered, set_property, verifying};

/// What `ldb` printed, or `None` where it is not installed.
fn ldb(db: &Path, arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("ldb");
    command.arg(format!("--db={}", db.display())).args(arguments);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        // Past the harness, which shows what a test prints only where it fails.
        let said = b"ldb is not installed: RocksDB's own tables, and its view of ours, are not checked\n";
        std::io::stderr().write_all(said).unwrap();
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "ldb {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The tables that RocksDB 11.9 wrote: 300 entries, of which some are deletions and some merge operands.
fn fixtures() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../table/tests/fixtures");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "sst")).collect();
    tables.sort();
    assert!(tables.len() > 30);
    tables
}

fn expected_of_fixture(below: &str) -> Contents {
    let entry = |i: usize| {
        let value = format!("value-{i:06}|").repeat(1 + i % 7);
        let value = match i % 50 {
            7 => return None,
            9 => format!("{below},{value}"),
            _ => value,
        };
        Some((format!("key{i:06}"), value))
    };
    (0..300).filter_map(entry).collect()
}

#[test]
fn tables_of_rocksdb_11_are_taken_in_every_format_version() {
    let appending =
        FamilyOptions { merge_operator: testkit::engine::merge::by_name("stringappend"), ..FamilyOptions::default() };
    let dir = tempfile::tempdir().unwrap();
    let place = Place::with(RealVfs::new(), dir.path(), appending);
    for fixture in fixtures() {
        let below = fixture.file_name().unwrap().to_string_lossy().into_owned();
        (0..300).for_each(|i| place.put(&format!("key{i:06}"), &below));
        place.put("key000450", "deleted by a range in one of them");
        place.ingest_one(&fixture, &verifying()).unwrap_or_else(|error| panic!("{error}"));
        let mut found = place.contents();
        let in_range = found.remove("key000450");
        found.retain(|key, _| key.starts_with("key"));
        assert!(found == expected_of_fixture(&below), "{below}");
        let deletes_a_range = below.ends_with("-none-bloom.sst") && !below.starts_with("fv2");
        assert_eq!(in_range.is_none(), deletes_a_range, "{below}");
    }
    place.db.flush(&[&place.family]).unwrap();
    place.db.compact_range(&place.family, None, None, &Default::default()).unwrap();
    assert_eq!(place.contents().len(), 3 + expected_of_fixture("").len(), "with the three that were put");
}

/// RocksDB 11 says in its tables which number the largest is.
#[test]
fn a_table_of_rocksdb_11_that_claims_numbers_is_refused() {
    let place = Place::in_memory();
    let fixture = fixtures().into_iter().find(|path| path.ends_with("fv5-none-checksum0.sst")).unwrap();
    let mut bytes = std::fs::read(fixture).unwrap();
    let path = place.path("claims.sst");
    set_property(&mut bytes, "key.largest.seqno", &[5]);
    place.write(&path, &bytes);
    assert!(place.refused_one(&path, &default()).message().contains("(5)"));
    set_property(&mut bytes, "key.largest.seqno", &[0]);
    place.write(&path, &bytes);
    assert_eq!(place.ingest_one(&path, &default()).unwrap().tables, 1);
}

#[test]
fn tables_that_ldb_makes_are_taken() {
    let place = Place::real();
    let made = place.path("made.sst");
    let lines: String = (0..2000).map(|key| format!("{} ==> new\n", numbered(key))).collect();
    let arguments = ["--create_if_missing", "write_extern_sst", made.to_str().unwrap()];
    let Some(_) = ldb(&place.path("theirs"), &arguments, &lines) else { return };
    let report = place.ingest_one(&made, &IngestOptions { move_files: true, ..verifying() }).unwrap();
    assert_eq!((report.tables, made.exists()), (1, false));
    assert_eq!(place.contents().values().filter(|value| *value == "new").count(), 2000);
}

/// A table of a database: what `ldb` put there keeps its numbers, which no ingest can use.
#[test]
fn a_table_of_rocksdbs_database_is_rewritten() {
    let place = Place::real();
    let theirs = place.path("theirs");
    let lines: String = (0..500).map(|key| format!("{} ==> theirs\n", numbered(key))).collect();
    let Some(_) = ldb(&theirs, &["--create_if_missing", "load"], &lines) else { return };
    ldb(&theirs, &["put", &numbered(3), "newer"], "").unwrap();
    ldb(&theirs, &["compact"], "").unwrap();
    let files = std::fs::read_dir(&theirs).unwrap().map(|entry| entry.unwrap().path());
    let tables: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "sst")).collect();
    let error = place.refused(&tables, &tables[0], &default());
    assert!(error.message().contains("allow_db_generated_files"), "{error}");
    place.ingest(&tables, &any()).unwrap();
    let all = place.contents();
    assert_eq!((all["k00003"].as_str(), all["k00005"].as_str()), ("newer", "theirs"));
    assert_eq!(all.len(), 501);
}

#[test]
fn ldb_ingests_our_tables() {
    let place = Place::real();
    let fill = |table: &mut TableWriter| {
        table.delete(b"gone").unwrap();
        (0..2000).for_each(|key| table.put(numbered(key).as_bytes(), b"ours").unwrap());
        table.delete_range(b"r", b"s").unwrap();
    };
    let ours = place.table_of("ours.sst", fill);
    let theirs = place.path("theirs");
    let Some(_) = ldb(&theirs, &["--create_if_missing", "put", "gone", "older"], "") else { return };
    for key in ["k00007", "rest", "zebra"] {
        ldb(&theirs, &["put", key, "older"], "").unwrap();
    }
    ldb(&theirs, &["ingest_extern_sst", ours.to_str().unwrap()], "").unwrap();
    let lines: String = (0..2000).map(|key| format!("{} : ours\n", numbered(key))).collect();
    assert!(ldb(&theirs, &["scan"], "").unwrap() == lines + "zebra : older\n");
    ldb(&theirs, &["checkconsistency"], "").unwrap();
}
