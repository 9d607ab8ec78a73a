//! What the tests of the log share.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};

use base::options::{LogBacking, WalRecoveryMode};
use base::{FileNumber, Result};
use vfs::Vfs;
use wal::{LogConfig, LogFile, RecordKind, ReplayEnd, ReplayOptions, Reservation, replay};

pub const NUMBER: FileNumber = FileNumber(7);
pub const BACKINGS: [LogBacking; 2] = [LogBacking::Mapped, LogBacking::Pwrite];

pub fn path() -> PathBuf {
    PathBuf::from("/db/000007.splog")
}

pub fn create(vfs: &dyn Vfs, backing: LogBacking) -> LogFile {
    vfs.create_dir_all(Path::new("/db")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    let config = LogConfig { capacity_bytes: 64 << 10, extent_bytes: 8 << 10, backing, ..LogConfig::default() };
    let log = LogFile::create(vfs, &path(), NUMBER, config).unwrap();
    vfs.sync_dir(Path::new("/db")).unwrap();
    log
}

pub fn reserve(log: &LogFile, len: usize) -> Reservation {
    assert!(log.ensure(len).unwrap());
    log.try_reserve(len).unwrap()
}

/// Appends and publishes one batch record.
pub fn put(log: &LogFile, payload: &[u8]) -> Reservation {
    let reservation = reserve(log, payload.len());
    log.append(&reservation, RecordKind::Batch, &[payload]).unwrap();
    log.publish(reservation.end());
    reservation
}

pub fn seal(log: &LogFile) {
    let end = log.seal().unwrap();
    log.append(&end, RecordKind::End, &[]).unwrap();
    log.publish(end.end());
}

/// Distinct for each `index`, and never zeros.
pub fn payload(index: usize) -> Vec<u8> {
    (0..5 + index * 37 % 400).map(|i| (i * 7 + index * 13) as u8 | 1).collect()
}

pub fn options(mode: WalRecoveryMode) -> ReplayOptions {
    ReplayOptions { number: NUMBER, mode, ..ReplayOptions::default() }
}

pub fn replayed(vfs: &dyn Vfs, options: &ReplayOptions) -> (Vec<Vec<u8>>, Result<ReplayEnd>) {
    replayed_from(vfs, &path(), options)
}

pub fn replayed_from(vfs: &dyn Vfs, path: &Path, options: &ReplayOptions) -> (Vec<Vec<u8>>, Result<ReplayEnd>) {
    let mut payloads = Vec::new();
    let end = replay(vfs, path, options, &mut |record| {
        payloads.push(record.payload.to_vec());
        Ok(())
    });
    (payloads, end)
}
