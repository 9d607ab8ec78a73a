//! Reads limited to memory (`read_tier`): they answer from memtables and the block cache, and never read a file.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use base::options::apply_string;
use testkit::engine::vfs::{FaultVfs, MemoryVfs, Operation};
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, ReadTier, WriteOptions};

const DIR: &str = "/db";

fn memory_only() -> ReadOptions {
    ReadOptions { read_tier: ReadTier::BlockCache, ..ReadOptions::default() }
}

fn open(faults: &Arc<FaultVfs>, options: &str) -> Db {
    let mut family = FamilyOptions::default();
    apply_string(&mut family, options).unwrap();
    let options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
    Db::open(DIR, &options.family("default", family)).unwrap()
}

fn key(n: usize) -> Vec<u8> {
    format!("key{n:03}").into_bytes()
}

fn fill(db: &Db, numbers: std::ops::Range<usize>) {
    for n in numbers {
        db.put(&db.default_family(), &key(n), &[n as u8; 1000], &WriteOptions::default()).unwrap();
    }
}

/// Whether memory has the key, and what; checks that no file was touched.
fn look(faults: &FaultVfs, db: &Db, n: usize) -> Option<Option<Vec<u8>>> {
    let calls =
        |faults: &FaultVfs| [Operation::Read, Operation::Open, Operation::MapRead].map(|kind| faults.calls(kind));
    let before = calls(faults);
    let (family, key) = (db.default_family(), key(n));
    let found = db.get(&family, &key, &memory_only());
    let many = db.multi_get(&family, &[&key, &key], &memory_only()).unwrap();
    assert_eq!(before, calls(faults), "no file is touched");
    let plain = |found: base::Result<Option<base::Pinned>>| match found {
        Ok(found) => Some(found.map(|value| value.to_vec())),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
            None
        }
    };
    let found = plain(found);
    many.into_iter().for_each(|many| assert_eq!(plain(many), found));
    found
}

fn read(db: &Db, n: usize) -> Option<Vec<u8>> {
    db.get(&db.default_family(), &key(n), &ReadOptions::default()).unwrap().map(|value| value.to_vec())
}

#[test]
fn memtables_and_cached_blocks_answer_and_files_do_not() {
    let faults = FaultVfs::new(MemoryVfs::new(1));
    let db = open(&faults, "");
    fill(&db, 0..100);
    assert_eq!(look(&faults, &db, 7), Some(Some(vec![7; 1000])), "in the memtable");
    assert_eq!(look(&faults, &db, 200), Some(None));
    db.flush(&[&db.default_family()]).unwrap();
    assert_eq!(look(&faults, &db, 7), None, "in a file");
    assert!(read(&db, 7).is_some());
    assert_eq!(look(&faults, &db, 7), Some(Some(vec![7; 1000])), "its block is cached");
    assert_eq!(look(&faults, &db, 90), None, "another block");
    assert_eq!(look(&faults, &db, 200), Some(None), "no table spans the key");
    fill(&db, 90..91);
    assert_eq!(look(&faults, &db, 90), Some(Some(vec![90; 1000])), "newer than the file");
    drop(db);
    let db = open(&faults, "");
    assert_eq!(look(&faults, &db, 8), None);
    assert_eq!(read(&db, 8), Some(vec![8; 1000]));
}

#[test]
fn a_table_that_is_not_open_is_not_opened() {
    let faults = FaultVfs::new(MemoryVfs::new(1));
    let family = |db: &Db| db.default_family();
    let options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
    let mut few = options.clone();
    few.db.max_open_files = 1;
    let db = Db::open(DIR, &few).unwrap();
    for n in 0..3 {
        fill(&db, n..n + 1);
        db.flush(&[&family(&db)]).unwrap();
    }
    (0..3).for_each(|n| assert!(read(&db, n).is_some()));
    assert!((0..3).any(|n| look(&faults, &db, n).is_none()), "not all of them are open");
}

#[test]
fn iterators_end_where_a_file_would_be_read() {
    let faults = FaultVfs::new(MemoryVfs::new(1));
    let db = open(&faults, "");
    fill(&db, 0..100);
    db.flush(&[&db.default_family()]).unwrap();
    fill(&db, 0..1);
    assert!(read(&db, 1).is_some());
    let before = faults.calls(Operation::Read);
    let mut iterator = db.iter(&db.default_family(), &memory_only()).unwrap();
    let mut met = 0;
    let mut valid = iterator.seek_to_first();
    while valid {
        assert_eq!(iterator.key(), key(met));
        met += 1;
        valid = iterator.next();
    }
    assert_eq!(iterator.status().unwrap_err().kind(), ErrorKind::Incomplete);
    assert!((1..20).contains(&met), "the cached block's entries: {met}");
    assert!(!iterator.seek(&key(90)) && iterator.status().is_err());
    assert!(iterator.seek(&key(0)), "it goes on where memory has the entries");
    assert_eq!(faults.calls(Operation::Read), before);
}

#[test]
fn a_mapped_table_is_a_file() {
    let faults = FaultVfs::new(MemoryVfs::new(1));
    let db = open(&faults, "table_factory=SingleFastTable");
    fill(&db, 0..10);
    db.flush(&[&db.default_family()]).unwrap();
    assert!(read(&db, 5).is_some());
    assert_eq!(look(&faults, &db, 5), None, "a mapped table");
    let mut iterator = db.iter(&db.default_family(), &memory_only()).unwrap();
    assert!(!iterator.seek_to_first());
    assert_eq!(iterator.status().unwrap_err().kind(), ErrorKind::Incomplete);
}
