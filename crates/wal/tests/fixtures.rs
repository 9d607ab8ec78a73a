//! RocksDB's own files: read record by record, and written again byte for byte.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

use std::path::Path;

use base::coding::Reader;
use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};
use wal::framed::{FramedEnd, FramedReader, FramedRecord, FramedWriter};

const LOG: &[u8] = include_bytes!("fixtures/000016.log");
const MANIFESTS: [(&[u8], usize); 2] =
    [(include_bytes!("fixtures/MANIFEST-unflushed"), 19), (include_bytes!("fixtures/MANIFEST-ingested"), 12)];

fn records_of(bytes: &[u8], log_number: Option<u64>) -> Vec<FramedRecord> {
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/file");
    vfs.write_file(path, bytes).unwrap();
    let mut reader = FramedReader::open(&*vfs, path, log_number, IoClass::Log).unwrap();
    let records = std::iter::from_fn(|| reader.next().unwrap()).collect();
    assert_eq!(reader.end(), Some(FramedEnd::Clean));
    assert_eq!(reader.good_end(), bytes.len() as u64);
    records
}

fn written_again(records: &[FramedRecord]) -> Vec<u8> {
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/file");
    let mut writer = FramedWriter::new(vfs.create(path, IfExists::Fail).unwrap(), IoClass::Log);
    for record in records {
        writer.append(&record.payload).unwrap();
    }
    vfs.read_file(path).unwrap()
}

#[test]
fn a_log_of_rocksdb_holds_batches_whose_numbers_follow_each_other() {
    let records = records_of(LOG, Some(16));
    let mut next = 1264;
    for record in &records {
        let mut batch = Reader::new(&record.payload);
        assert_eq!(batch.u64("sequence number").unwrap(), next);
        next += u64::from(batch.u32("count").unwrap());
    }
    assert_eq!((records.len(), next), (4, 1347));
    assert_eq!(written_again(&records), LOG);
}

#[test]
fn manifests_of_rocksdb_are_read_empty_records_included() {
    for (bytes, count) in MANIFESTS {
        let records = records_of(bytes, None);
        assert_eq!(records.len(), count);
        assert!(records.iter().any(|record| record.payload.is_empty()));
        assert_eq!(written_again(&records), bytes);
    }
}
