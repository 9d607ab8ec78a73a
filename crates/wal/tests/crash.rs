//! Crashes at every operation of a log's life, with every outcome: what was synced is there, what was published is
//! there while the machine stays up, and what is there is a prefix.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::path::Path;
use std::sync::Arc;

use base::ErrorKind;
use base::options::{LogBacking, WalRecoveryMode};
use common::{BACKINGS, NUMBER, options, path, payload, replayed};
use vfs::Vfs;
use vfs::memory::{CrashPolicy, MemoryVfs};
use wal::{LogConfig, LogFile, RecordKind, Reservation};

/// What a writer was told before the crash.
#[derive(Clone, Copy, Debug, Default)]
struct Promised {
    published: usize,
    synced: usize,
}

/// A log's life: records of all sizes, every third synced, some filled out of order. `step` hears what is promised
/// before each operation that may crash.
fn live(vfs: &dyn Vfs, backing: LogBacking, step: &mut dyn FnMut(Promised)) {
    let mut promised = Promised::default();
    vfs.create_dir_all(Path::new("/db")).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    let config = LogConfig { capacity_bytes: 64 << 10, extent_bytes: 4 << 10, backing, ..LogConfig::default() };
    let log = LogFile::create(vfs, &path(), NUMBER, config).unwrap();
    vfs.sync_dir(Path::new("/db")).unwrap();
    let mut append = |reservation: &Reservation, index: usize, promised| {
        step(promised);
        let payload = payload_of(index);
        let (head, body) = payload.split_at(payload.len().min(12));
        log.append(reservation, RecordKind::Batch, &[head, body]).unwrap();
    };
    for index in (0..24).step_by(2) {
        let pair = [index, index + 1].map(|index| common::reserve(&log, payload_of(index).len()));
        // The higher one first: until the lower one is filled, there is a hole below it.
        append(&pair[1], index + 1, promised);
        append(&pair[0], index, promised);
        log.publish(pair[1].end());
        promised.published = index + 2;
        if index % 3 == 0 {
            log.sync().unwrap();
            promised.synced = promised.published;
        }
    }
    common::seal(&log);
    step(promised);
}

/// Some longer than a page, so that a crash can tear them.
fn payload_of(index: usize) -> Vec<u8> {
    payload(index).repeat(if index % 5 == 4 { 20 } else { 1 })
}

fn check(image: &Arc<MemoryVfs>, policy: CrashPolicy, promised: Promised, context: &str) {
    match replayed(&**image, &options(WalRecoveryMode::PointInTime)) {
        (records, Ok(end)) => {
            assert!(records.iter().enumerate().all(|(i, record)| *record == payload_of(i)), "{context}: not a prefix");
            let kept = if policy == CrashPolicy::ProcessKilled { promised.published } else { promised.synced };
            assert!(records.len() >= kept, "{context}: {} records of {kept}, {end:?}", records.len());
            let again = replayed(&**image, &options(WalRecoveryMode::PointInTime));
            assert_eq!((again.0.len(), again.1.unwrap()), (records.len(), end), "{context}: a second recovery differs");
        }
        (_, Err(error)) => {
            // Before the directory was synced, the file itself may be missing.
            assert!(error.is_not_found() && promised.published == 0, "{context}: {error}");
            assert_eq!(error.kind(), ErrorKind::Io);
        }
    }
}

/// Operations that `live` takes, and what was promised at each of its steps.
fn rehearse(backing: LogBacking) -> (u64, Vec<(u64, Promised)>) {
    let vfs = MemoryVfs::new(5);
    let mut steps = vec![(0, Promised::default())];
    live(&*vfs, backing, &mut |promised| steps.push((vfs.operations(), promised)));
    (vfs.operations(), steps)
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_promised() {
    for backing in BACKINGS {
        let (operations, steps) = rehearse(backing);
        assert!(operations > 40, "{operations} operations hardly make a life");
        for operation in 0..operations {
            let (_, promised) = steps.iter().rev().find(|(at, _)| *at <= operation).unwrap();
            for policy in CrashPolicy::ALL {
                for seed in 0..3 {
                    let vfs = MemoryVfs::new(5);
                    vfs.crash_at(operation, seed, policy);
                    live(&*vfs, backing, &mut |_| {});
                    let image = vfs.take_crash_image().unwrap();
                    check(&image, policy, *promised, &format!("{backing:?}, {policy:?}, {operation}, seed {seed}"));
                }
            }
        }
    }
}
