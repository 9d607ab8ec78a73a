//! Reads that fail, and what is read where they failed once the disk is well again.

use std::sync::Arc;

use testkit::engine::options::CompressionKind;
use testkit::engine::vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};

fn key(i: usize) -> Vec<u8> {
    format!("key{i:02}").into_bytes()
}

fn value(i: usize) -> Vec<u8> {
    vec![i as u8; 8000]
}

/// A database with a table of twenty blocks of one key each, all of the same size.
fn flushed(faults: &Arc<FaultVfs>) -> Db {
    let family = FamilyOptions { compression: CompressionKind::None, ..FamilyOptions::default() };
    let options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() }.family("default", family);
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    for i in 0..20 {
        db.put(&family, &key(i), &value(i), &WriteOptions::default()).expect("put");
    }
    db.flush(&[&family]).expect("flush");
    db
}

/// The walk has read ahead when its read fails: what it has of the blocks before is not taken for the block that failed,
/// neither by itself nor, through the cache, by others.
#[test]
fn a_read_ahead_that_fails_leaves_nothing_behind() {
    let mut failed = 0;
    for failing in 1..8 {
        let faults = FaultVfs::new(MemoryVfs::new(1));
        let db = flushed(&faults);
        let family = db.default_family();
        let mut iterator = db.iter(&family, &ReadOptions::default()).expect("open");
        assert!(iterator.seek_to_first());
        for i in 1..failing {
            assert!(iterator.next(), "{i}");
        }
        faults.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).sticky());
        let mut met = failing;
        while iterator.next() {
            met += 1;
        }
        faults.clear();
        if met == 20 {
            assert!(iterator.status().is_ok(), "all that was left had been read");
            continue;
        }
        failed += 1;
        assert_eq!(iterator.status().expect_err("injected").kind(), ErrorKind::Io);
        assert!(iterator.seek(&key(met)), "key {met} after {failing}");
        assert_eq!((iterator.key(), iterator.value()), (&key(met)[..], &value(met)[..]));
        for i in 0..20 {
            let found = db.get(&family, &key(i), &ReadOptions::default()).expect("readable");
            assert_eq!(found.as_deref(), Some(&value(i)[..]), "key {i} after {met}");
        }
    }
    assert!(failed > 0, "no read came after a walk had begun");
}
