//! `best_efforts_recovery`: recovers the newest point with all its tables present.

use std::path::Path;

use testkit::engine::{Db, OpenOptions, ReadOptions, WriteOptions};
use testkit::run::DIR;
use vfs::{MemoryVfs, Vfs};

fn options(vfs: &std::sync::Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }
}

fn put_and_flush(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions::default()).unwrap();
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
    // The log brings what followed, where it is there still; nothing is brought with a hole.
    assert!(found == ["a", "b"] || found == ["a", "b", "c", "d"], "{found:?}");
    put_and_flush(&db, "e");
    drop(db);
    assert_eq!(keys(&open(&vfs, false).unwrap()).len(), found.len() + 1, "it goes on from there");
}

#[test]
fn a_database_with_all_its_tables_opens_as_ever() {
    let (vfs, _) = database();
    assert_eq!(keys(&open(&vfs, true).unwrap()), ["a", "b", "c", "d"]);
}

#[test]
fn no_current_is_needed_and_what_does_not_count_is_kept() {
    let (vfs, tables) = database();
    vfs.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    vfs.truncate(&Path::new(DIR).join(&tables[1]), 10).unwrap();
    let db = open(&vfs, true).unwrap();
    assert_eq!(keys(&db)[0], "a");
    let lost = vfs.read_dir(&Path::new(DIR).join("lost")).unwrap();
    assert!(lost.contains(&tables[1]) && lost.contains(&tables[2]), "{lost:?}");
}
