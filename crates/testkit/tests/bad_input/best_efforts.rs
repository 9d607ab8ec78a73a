//! `best_efforts_recovery`: recovers the newest point with all its tables present.

use std::path::Path;

use testkit::engine::{
    CompactRangeOptions, Db, FamilyOptions, OpenOptions, OtherFamilies, ReadOptions, WriteBatch, WriteOptions,
};
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::common::{files, manifest};
use crate::doubts::{in_doubt, waiting};

fn options(vfs: &std::sync::Arc<MemoryVfs>) -> OpenOptions {
    let other_families = OtherFamilies::OpenWith(Box::default());
    OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::create_if_missing() }
}

fn put(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions::default()).unwrap();
}

fn put_and_flush(db: &Db, key: &str) {
    put(db, key);
    db.flush(&[&db.default_family()]).unwrap();
}

fn keys(db: &Db) -> Vec<String> {
    let mut entries = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
    let mut found = Vec::new();
    let mut valid = entries.seek_to_first();
    while valid {
        found.push(String::from_utf8(entries.key().to_vec()).unwrap());
        valid = entries.next();
    }
    entries.status().unwrap();
    found
}

/// Tables of three flushes, and a write in the WAL only. The last flush made the newest table.
fn database() -> (std::sync::Arc<MemoryVfs>, Vec<String>) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    ["a", "b", "c"].iter().for_each(|key| put_and_flush(&db, key));
    db.put(&db.default_family(), b"d", b"v", &WriteOptions::default()).unwrap();
    db.close().unwrap();
    let mut tables = vfs.read_dir(Path::new(DIR)).unwrap();
    tables.retain(|name| name.ends_with(".sst"));
    (vfs, tables)
}

fn open(vfs: &std::sync::Arc<MemoryVfs>, best_efforts: bool) -> testkit::engine::Result<Db> {
    let mut options = options(vfs);
    options.db.best_efforts_recovery = best_efforts;
    Db::open(DIR, &options)
}

#[test]
fn a_missing_table_takes_the_database_back_to_when_it_was_not_there() {
    let (vfs, tables) = database();
    vfs.remove_file(&Path::new(DIR).join(&tables[2])).unwrap();
    assert!(open(&vfs, false).is_err());
    let db = open(&vfs, true).unwrap();
    let found = keys(&db);
    assert_eq!(found, ["a", "b", "c", "d"], "the log brings what followed");
    assert_eq!(in_doubt(&db, &KEYS), [("default", "c")], "the table may have held unlogged writes");
    put_and_flush(&db, "e");
    drop(db);
    assert_eq!(keys(&open(&vfs, false).unwrap()).len(), found.len() + 1, "it goes on from there");
}

#[test]
fn without_a_whole_point_the_error_says_so() {
    let (vfs, tables) = database();
    open(&vfs, false).unwrap().close().unwrap();
    vfs.remove_file(&Path::new(DIR).join(&tables[0])).unwrap();
    let error = open(&vfs, true).err().expect("it is refused");
    assert!(error.message().starts_with("no point of a MANIFEST is whole: the MANIFEST names this table"), "{error}");
}

#[test]
fn a_database_with_all_its_tables_opens_as_ever() {
    let (vfs, _) = database();
    let db = open(&vfs, true).unwrap();
    assert_eq!(keys(&db), ["a", "b", "c", "d"]);
    assert!(db.recovery_doubts().is_empty());
}

#[test]
fn no_current_is_needed_and_what_does_not_count_is_kept() {
    let (vfs, tables) = database();
    vfs.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    vfs.truncate(&Path::new(DIR).join(&tables[1]), 10).unwrap();
    let db = open(&vfs, true).unwrap();
    assert_eq!(keys(&db)[0], "a");
    assert_eq!(in_doubt(&db, &KEYS), [("default", "b"), ("default", "c")]);
    let lost = vfs.read_dir(&Path::new(DIR).join("lost")).unwrap();
    assert!(lost.contains(&tables[1]) && lost.contains(&tables[2]), "{lost:?}");
}

const KEYS: [(&str, &str); 4] = [("default", "a"), ("default", "b"), ("default", "c"), ("default", "d")];

/// Removes the newest table.
fn lose_newest_table(vfs: &MemoryVfs) {
    vfs.remove_file(&files(vfs, ".sst").pop().unwrap()).unwrap();
}

#[test]
fn without_current_the_whole_manifest_is_believed() {
    let (vfs, _) = database();
    vfs.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    let db = open(&vfs, true).unwrap();
    assert_eq!(keys(&db), ["a", "b", "c", "d"]);
    assert!(db.recovery_doubts().is_empty(), "{:?}", db.recovery_doubts());
    // Nor does a log name it, where all is in tables.
    db.flush(&[&db.default_family()]).unwrap();
    db.compact_range(&db.default_family(), None, None, &Default::default()).unwrap();
    db.close().unwrap();
    files(&vfs, ".splog").iter().for_each(|log| vfs.remove_file(log).unwrap());
    open(&vfs, false).unwrap().close().unwrap();
    let with_log = vfs.crash_clone(1, CrashPolicy::AllKept);
    files(&with_log, ".splog").iter().for_each(|log| with_log.remove_file(log).unwrap());
    with_log.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    let alone = with_log.crash_clone(1, CrashPolicy::AllKept);
    let db = open(&with_log, true).unwrap();
    assert!(keys(&db) == ["a", "b", "c", "d"] && db.recovery_doubts().is_empty(), "{:?}", db.recovery_doubts());
    // Its copy is gone, too: a later one may be lost.
    files(&alone, ".spmanifest").iter().for_each(|file| alone.remove_file(file).unwrap());
    assert!(open(&alone, true).map_or(true, |db| !db.recovery_doubts().is_empty()));
}

#[test]
fn a_manifest_that_is_damaged_before_its_end_leaves_every_key_in_doubt() {
    let (vfs, _) = database();
    let path = manifest(&vfs);
    let len = vfs.read_file(&path).unwrap().len() as u64;
    vfs.flip_bit(&path, (len - 150) * 8).unwrap();
    assert!(open(&vfs, false).is_err());
    let with_copy = vfs.crash_clone(1, CrashPolicy::AllKept);
    assert!(in_doubt(&open(&with_copy, true).unwrap(), &KEYS).is_empty(), "its copy is whole");
    files(&vfs, ".spmanifest").iter().for_each(|copy| vfs.remove_file(copy).unwrap());
    assert_eq!(in_doubt(&open(&vfs, true).unwrap(), &KEYS), KEYS);
}

#[test]
fn unlogged_writes_of_a_lost_table_are_in_doubt_and_compacted_ones_too() {
    for compacts in [false, true] {
        let vfs = MemoryVfs::new(1);
        let by_hand = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
        let db = Db::open(DIR, &options(&vfs).family("default", by_hand)).unwrap();
        ["a", "b"].iter().for_each(|key| put_and_flush(&db, key));
        let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        db.delete(&db.default_family(), b"b", &unlogged).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
        let flushed = crate::common::copy(&vfs);
        if compacts {
            db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).unwrap();
        }
        put(&db, "d");
        let vfs = crate::common::copy(&vfs); // a close would flush
        lose_newest_table(&vfs);
        // The deletion is in no table any more, and the tables of before are not deleted yet.
        for table in &files(&flushed, ".sst")[..2] {
            vfs.write_file(table, &flushed.read_file(table).unwrap()).unwrap();
        }
        let db = open(&vfs, true).unwrap();
        assert_eq!(keys(&db), ["a", "b", "d"], "the deletion is lost: {compacts}, {:?}", db.recovery_doubts());
        let found = in_doubt(&db, &KEYS);
        assert!(found.contains(&("default", "b")), "{compacts}: {found:?}");
        assert!(compacts || found == [("default", "b")], "{found:?}");
    }
}

#[test]
fn families_that_came_and_went_since_are_in_doubt() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let old = db.create_family("old", FamilyOptions::default()).unwrap();
    db.create_family("kept", FamilyOptions::default()).unwrap();
    ["a", "b"].iter().for_each(|key| put_and_flush(&db, key));
    db.create_family("new", FamilyOptions::default()).unwrap();
    db.drop_family(&old).unwrap();
    drop(old);
    put(&db, "d"); // keeps the log
    db.close().unwrap();
    lose_newest_table(&vfs);
    let keys = [("default", "a"), ("default", "b"), ("old", "k"), ("kept", "k"), ("new", "k")];
    let db = open(&vfs, true).unwrap();
    let expected = [("default", "b"), ("old", "k"), ("new", "k")];
    assert_eq!(in_doubt(&db, &keys), expected, "{:?}", db.recovery_doubts());
}

#[test]
fn logs_with_a_hole_go_to_lost_with_their_large_batches_and_every_key_is_in_doubt() {
    let vfs = MemoryVfs::new(1);
    let mut options = options(&vfs);
    options.db.large_batch_bytes = 4096;
    let db = Db::open(DIR, &options).unwrap();
    let other = db.create_family("other", waiting()).unwrap();
    ["a", "b"].iter().for_each(|key| put_and_flush(&db, key));
    let mut batch = WriteBatch::new();
    (0..100u32).for_each(|n| batch.put(other.id(), &n.to_be_bytes(), &[7; 100]));
    db.write(&batch, &WriteOptions::default()).unwrap();
    let batch = files(&vfs, ".spbatch").pop().expect("it is in a file of its own");
    let killed = crate::common::copy(&vfs);
    lose_newest_table(&killed);
    for log in files(&killed, ".splog") {
        killed.remove_file(&log).unwrap();
    }
    let db = open(&killed, true).unwrap();
    assert_eq!(keys(&db), ["a"]);
    assert_eq!(in_doubt(&db, &KEYS), KEYS);
    assert!(killed.exists(&Path::new(DIR).join("lost").join(batch.file_name().unwrap())).unwrap());
}

#[test]
fn logs_that_came_and_went_since_the_point_are_missed() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    put_and_flush(&db, "a");
    db.close().unwrap();
    for round in ["b", "c"] {
        let db = open(&vfs, false).unwrap();
        put_and_flush(&db, round);
        db.close().unwrap();
    }
    assert!(files(&vfs, ".splog").is_empty(), "no log is needed");
    lose_newest_table(&vfs);
    let db = open(&vfs, true).unwrap();
    assert_eq!(keys(&db), ["a", "b"]);
    assert!(in_doubt(&db, &KEYS).contains(&("default", "c")), "{:?}", db.recovery_doubts());
}

/// An open that names a family of later is refused. Nothing has moved then.
#[test]
fn refused_way_back_moves_nothing() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    ["a", "b"].iter().for_each(|key| put_and_flush(&db, key));
    db.create_family("new", FamilyOptions::default()).unwrap();
    db.close().unwrap();
    lose_newest_table(&vfs);
    let mut options = options(&vfs).family("new", FamilyOptions::default());
    options.db.best_efforts_recovery = true;
    let before = vfs.all_files();
    let error = Db::open(DIR, &options).err().expect("it is refused");
    assert!(error.message().contains("create_missing_column_families"), "{error}");
    assert_eq!(vfs.all_files(), before);
    options.db.create_missing_column_families = true;
    assert_eq!(keys(&Db::open(DIR, &options).unwrap()), ["a"]);
}
