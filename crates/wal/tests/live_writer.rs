//! Replay beside a writer: what it finishes between two reads, and the file that it cuts when it closes the log, are no
//! damage.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::path::Path;

use base::options::{LogBacking, WalRecoveryMode};
use common::{NUMBER, options, path, payload, put, seal};
use vfs::Vfs;
use vfs::memory::MemoryVfs;
use wal::{EndReason, LogConfig, LogFile, replay};

/// More than replay reads at a time.
const LARGE_BYTES: usize = 400 << 10;

fn create(vfs: &MemoryVfs) -> LogFile {
    vfs.create_dir_all(Path::new("/db")).unwrap();
    let config = LogConfig {
        capacity_bytes: 2 << 20,
        extent_bytes: 2 << 20,
        backing: LogBacking::Pwrite,
        ..LogConfig::default()
    };
    LogFile::create(vfs, &path(), NUMBER, config).unwrap()
}

#[test]
fn records_that_a_writer_finishes_meanwhile_are_no_hole() {
    let vfs = MemoryVfs::new(3);
    let log = create(&vfs);
    for index in 0..3 {
        put(&log, &payload(index));
    }
    let mut read = Vec::new();
    // By the time of the first visit, what lies behind the third record has been read as zeros.
    let end = replay(&*vfs, &path(), &options(WalRecoveryMode::PointInTime), &mut |record| {
        if read.is_empty() {
            put(&log, &payload(3));
            put(&log, &[7; LARGE_BYTES]);
            put(&log, &payload(5));
        }
        read.push(record.payload.to_vec());
        Ok(())
    });
    assert_eq!(end.unwrap().reason, EndReason::Clean);
    assert_eq!(read.len(), 6);
    assert!(read[3] == payload(3) && read[4] == [7; LARGE_BYTES] && read[5] == payload(5));
}

#[test]
fn a_log_that_its_writer_closes_meanwhile_is_whole() {
    let vfs = MemoryVfs::new(3);
    let mut log = Some(create(&vfs));
    for index in 0..3 {
        put(log.as_ref().unwrap(), &payload(index));
    }
    put(log.as_ref().unwrap(), &[7; LARGE_BYTES]);
    let mut read = 0;
    let end = replay(&*vfs, &path(), &options(WalRecoveryMode::PointInTime), &mut |_| {
        if let Some(log) = log.take() {
            seal(&log);
        }
        read += 1;
        Ok(())
    });
    assert!((vfs.metadata(&path()).unwrap().len as usize) < 2 * LARGE_BYTES, "the file was cut");
    assert_eq!((read, end.unwrap().reason), (4, EndReason::Sealed));
}
