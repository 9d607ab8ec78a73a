//! Which part of a log's file is in memory, as the kernel tells of this process: a window ahead of whoever appends.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::path::Path;

use base::ErrorKind;
use base::checksum::crc32c;
use base::options::LogBacking;
use base::value_source::{ValueRef, ValueSource};
use common::NUMBER;
use vfs::RealVfs;
use wal::{LogConfig, LogFile};

const MIB: u64 = 1 << 20;
const CAPACITY_BYTES: u64 = 16 * MIB;

/// A log on a disk; `None` where its file system maps none.
fn create(dir: &Path) -> Option<LogFile> {
    let config = LogConfig {
        capacity_bytes: CAPACITY_BYTES,
        extent_bytes: CAPACITY_BYTES,
        backing: LogBacking::Mapped,
        ..LogConfig::default()
    };
    match LogFile::create(&*RealVfs::new(), &dir.join("000007.splog"), NUMBER, config) {
        Err(error) if error.kind() == ErrorKind::Unsupported => None,
        log => Some(log.unwrap()),
    }
}

/// Bytes of the log's mapping that take no fault.
#[allow(clippy::disallowed_methods, reason = "what the kernel says of this process")]
fn mapped_bytes(log: &LogFile) -> u64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = log.path().to_str().unwrap();
    let ours = smaps.lines().skip_while(|line| !line.ends_with(name));
    let rss = ours.filter_map(|line| line.strip_prefix("Rss:")).next().expect("a mapped file");
    rss.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn append(log: &LogFile, bytes: u64) {
    let payload = vec![7; 4000];
    let end = log.tail() + bytes;
    while log.tail() < end {
        common::put(log, &payload);
    }
}

#[test]
fn a_log_is_present_a_window_ahead_and_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let Some(log) = create(dir.path()) else { return };
    assert!(mapped_bytes(&log) < MIB / 8, "the header");
    for _ in 0..4 {
        log.populate_ahead(MIB);
        let ahead = mapped_bytes(&log);
        assert!((log.tail() + MIB..log.tail() + MIB + MIB / 2).contains(&(ahead + MIB / 16)), "{ahead}");
        append(&log, MIB - MIB / 8);
        assert_eq!(mapped_bytes(&log), ahead, "no append met a page that was not there");
    }
    log.populate_ahead(u64::MAX);
    assert!(mapped_bytes(&log) >= CAPACITY_BYTES - MIB / 8);
}

#[test]
fn what_is_published_leaves_the_address_space_and_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let Some(log) = create(dir.path()) else { return };
    append(&log, MIB / 2);
    let before = mapped_bytes(&log);
    log.release_behind();
    assert_eq!(mapped_bytes(&log), before, "too little for an interrupt");
    append(&log, 5 * MIB);
    assert!(mapped_bytes(&log) > 5 * MIB);
    log.release_behind();
    assert!(mapped_bytes(&log) < MIB / 8);
    let offset = wal::FILE_HEADER_BYTES + wal::RECORD_HEADER_BYTES as u64;
    let first = ValueRef { log: NUMBER, offset, len: 8, crc: crc32c(&[7; 8]) };
    assert_eq!(*log.resolve(first).unwrap(), [7; 8]);
    append(&log, MIB / 4);
    common::seal(&log);
    log.release_behind();
    assert!(mapped_bytes(&log) < MIB / 8, "a sealed log keeps nothing");
}
