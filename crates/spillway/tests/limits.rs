//! What is too large for any table is refused before anything of it is written, and the database goes on. Large values are
//! zeros that nobody touches: they are never in memory.

use std::sync::Arc;

use testkit::engine::extend::MergeOperator;
use testkit::engine::limits::{ENTRY_BYTES_MAX, KEY_BYTES_MAX};
use testkit::engine::options::{TableFactory, TableKind};
use testkit::engine::{
    CompactRangeOptions, Db, ErrorKind, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, OpenOptions,
    ReadOptions, Result, TableWriter, WriteBatch, WriteOptions,
};
use vfs::{MemoryVfs, Vfs};

/// Operands and values become one value that no table can hold, whatever they are.
struct Swells;

impl MergeOperator for Swells {
    fn name(&self) -> &str {
        "swells"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        Some(vec![0; ENTRY_BYTES_MAX + 1])
    }

    fn partial_merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        Some(vec![0; ENTRY_BYTES_MAX + 1])
    }
}

fn merging() -> FamilyOptions {
    FamilyOptions { merge_operator: Some(Arc::new(Swells)), ..FamilyOptions::default() }
}

fn open(vfs: &Arc<MemoryVfs>, family: FamilyOptions) -> Db {
    let mut options = OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 64 << 10;
    Db::open("/db", &options.family("default", family)).expect("done")
}

fn value_bytes(db: &Db, key: &[u8]) -> Option<usize> {
    db.get(&db.default_family(), key, &ReadOptions::default()).expect("done").map(|value| value.len())
}

#[track_caller]
fn refused<T>(result: Result<T>, limit: usize) {
    let error = result.err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains(&limit.to_string()), "the limit is not named: {error}");
}

#[test]
fn an_entry_that_no_table_can_hold_is_refused_in_every_way_in() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, merging());
    let (family, write, large) = (db.default_family(), WriteOptions::default(), vec![0; ENTRY_BYTES_MAX + 1]);
    for options in [write, WriteOptions { disable_wal: true, ..write }] {
        refused(db.put(&family, b"k", &large, &options), ENTRY_BYTES_MAX);
        refused(db.merge(&family, b"k", &large, &options), ENTRY_BYTES_MAX);
    }
    let mut table = TableWriter::create(vfs.clone(), "/out.sst", &merging()).unwrap();
    refused(table.put(b"k", &large), ENTRY_BYTES_MAX);
    table.put(b"k", b"1").unwrap();
    let table = table.finish().unwrap().path;
    let (mut alone, mut beside) = (WriteBatch::new(), WriteBatch::new());
    alone.put(family.id(), b"k", &large);
    beside.put(family.id(), b"beside", b"1");
    beside.put(family.id(), b"k", &large);
    for batch in [alone, beside] {
        refused(db.write(&batch, &write), ENTRY_BYTES_MAX);
        let request = IngestRequest::new(family.clone(), vec![table.clone()]);
        let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
        refused(db.write_with_ingest(&batch, prepared), ENTRY_BYTES_MAX);
    }
    assert_eq!((value_bytes(&db, b"beside"), value_bytes(&db, b"k")), (None, None), "nothing of a refused batch");
    db.put(&family, b"goes on", b"1", &write).unwrap();
    db.flush(&[&family]).unwrap();
}

#[test]
fn the_longest_key_is_stored_and_a_longer_one_refused() {
    let (longest, too_long) = (vec![b'k'; KEY_BYTES_MAX], vec![b'k'; KEY_BYTES_MAX + 1]);
    let zip_below = vec![TableKind::BlockBased, TableKind::Zip(Default::default())];
    let zip_below = TableFactory::by_level(TableKind::BlockBased, zip_below).unwrap();
    for factory in [TableKind::SingleFast.into(), zip_below] {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs, FamilyOptions { table_factory: factory, ..merging() });
        let (family, write) = (db.default_family(), WriteOptions { disable_wal: true, ..WriteOptions::default() });
        refused(db.put(&family, &too_long, b"1", &write), KEY_BYTES_MAX);
        refused(db.delete(&family, &too_long, &write), KEY_BYTES_MAX);
        refused(db.merge(&family, &too_long, b"1", &write), KEY_BYTES_MAX);
        refused(db.delete_range(&family, b"", &too_long, &write), KEY_BYTES_MAX);
        let mut table = TableWriter::create(vfs.clone(), "/out.sst", &merging()).unwrap();
        refused(table.put(&too_long, b"1"), KEY_BYTES_MAX);
        refused(table.delete_range(b"", &too_long), KEY_BYTES_MAX);
        db.put(&family, &longest, b"1", &write).unwrap();
        db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
        assert_eq!(value_bytes(&db, &longest), Some(1));
    }
}

#[test]
fn operands_stay_apart_whose_result_no_table_can_hold() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, merging());
    let (family, write) = (db.default_family(), WriteOptions::default());
    db.put(&family, b"k", b"base", &write).unwrap();
    for operand in [b"1", b"2", b"3"] {
        db.merge(&family, b"k", operand, &write).unwrap();
        db.merge(&family, b"alone", operand, &write).unwrap();
    }
    db.flush(&[&family]).unwrap();
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
    db.close().unwrap();
    let db = open(&vfs, merging());
    let family = db.default_family();
    assert_eq!(value_bytes(&db, b"k"), Some(ENTRY_BYTES_MAX + 1), "a read merges them, however large that is");
    assert_eq!(value_bytes(&db, b"alone"), Some(ENTRY_BYTES_MAX + 1));
    // The way out.
    db.put(&family, b"k", b"small again", &write).unwrap();
    db.delete(&family, b"alone", &write).unwrap();
    db.flush(&[&family]).unwrap();
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
    assert_eq!((value_bytes(&db, b"k"), value_bytes(&db, b"alone")), (Some(11), None));
}
