//! Many writers at once, each filling what it reserved, published in order: every record comes back, once, whole.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::options::{LogBacking, WalRecoveryMode};
use common::{BACKINGS, NUMBER, options, replayed_from};
use parking_lot::Mutex;
use vfs::memory::MemoryVfs;
use vfs::{RealVfs, Vfs};
use wal::{EndReason, LogConfig, LogFile, RecordKind};

const WRITERS: u32 = 4;
const RECORDS: u32 = 2_000;

/// The writer and index, then bytes that follow from them.
fn record(writer: u32, index: u32) -> Vec<u8> {
    let len = (writer * 131 + index * 17) % 700;
    let mut bytes = [writer.to_le_bytes(), index.to_le_bytes()].concat();
    bytes.extend((0..len).map(|i| (i + index) as u8));
    bytes
}

/// Reservations in order, with whether each is filled: a stand-in for the commit pipeline.
#[derive(Default)]
struct Pipeline {
    filled: BTreeMap<u64, Option<u64>>,
}

impl Pipeline {
    /// Publishes every filled record that has nothing unfinished below it.
    fn finish(&mut self, log: &LogFile, offset: u64, end: u64) {
        self.filled.insert(offset, Some(end));
        while let Some((&first, &Some(end))) = self.filled.first_key_value() {
            self.filled.remove(&first);
            log.publish(end);
        }
    }
}

fn write_all(log: &LogFile, pipeline: &Mutex<Pipeline>, writer: u32) {
    for index in 0..RECORDS {
        let bytes = record(writer, index);
        let reservation = loop {
            assert!(log.ensure(bytes.len()).unwrap());
            let mut pipeline = pipeline.lock();
            if let Some(reservation) = log.try_reserve(bytes.len()) {
                pipeline.filled.insert(reservation.offset(), None);
                break reservation;
            }
        };
        let (head, body) = bytes.split_at(bytes.len().min(12));
        log.append(&reservation, RecordKind::Batch, &[head, body]).unwrap();
        pipeline.lock().finish(log, reservation.offset(), reservation.end());
        if index % 64 == writer {
            assert!(log.sync().unwrap() >= FIRST_RECORD);
        }
    }
}

const FIRST_RECORD: u64 = wal::FILE_HEADER_BYTES;

fn stress(vfs: &dyn Vfs, path: PathBuf, backing: LogBacking) {
    let config = LogConfig { capacity_bytes: 8 << 20, extent_bytes: 256 << 10, backing, ..LogConfig::default() };
    let log = LogFile::create(vfs, &path, NUMBER, config).unwrap();
    let pipeline = Mutex::new(Pipeline::default());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (log, pipeline) = (&log, &pipeline);
            scope.spawn(move || write_all(log, pipeline, writer));
        }
        scope.spawn(|| {
            while log.published() < log.capacity() / 4 {
                log.populate_ahead(128 << 10);
            }
        });
    });
    assert_eq!(log.published(), log.tail());
    common::seal(&log);
    drop(log);
    let (records, end) = replayed_from(vfs, &path, &options(WalRecoveryMode::AbsoluteConsistency));
    assert_eq!(end.unwrap().reason, EndReason::Sealed);
    let mut next = [0; WRITERS as usize];
    for bytes in &records {
        let writer = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        assert!(*bytes == record(writer, next[writer as usize]));
        next[writer as usize] += 1;
    }
    assert_eq!(next, [RECORDS; WRITERS as usize]);
}

#[test]
fn records_of_many_writers_come_back_from_memory() {
    for backing in BACKINGS {
        stress(&*MemoryVfs::new(9), PathBuf::from("/000007.splog"), backing);
    }
}

#[test]
fn records_of_many_writers_come_back_from_a_disk() {
    let directory = tempfile::tempdir().unwrap();
    for (index, backing) in [LogBacking::Auto, LogBacking::Pwrite].into_iter().enumerate() {
        stress(&*RealVfs::new(), directory.path().join(format!("{index}.splog")), backing);
    }
}
