//! Recovery of one damaged log: what is a torn tail, what is corruption, and what each mode does about it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

extern crate spillway_db_wal as wal;

mod common;

use std::sync::Arc;

use base::options::{LogBacking, WalRecoveryMode};
use base::{ErrorKind, FileNumber};
use common::{BACKINGS, NUMBER, create, options, path, payload, put, replayed, replayed_from, reserve, seal};
use vfs::Vfs;
use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
use vfs::memory::{CrashPolicy, MemoryVfs};
use wal::{
    EndReason, FILE_HEADER_BYTES, Frontiers, KnownEnd, LogConfig, LogFile, LogHead, Position, RecordKind, ReplayEnd,
    ReplayOptions, read_head,
};

const MODES: [WalRecoveryMode; 4] = [
    WalRecoveryMode::TolerateCorruptedTailRecords,
    WalRecoveryMode::AbsoluteConsistency,
    WalRecoveryMode::PointInTime,
    WalRecoveryMode::SkipAnyCorruptedRecords,
];

fn point_in_time() -> ReplayOptions {
    options(WalRecoveryMode::PointInTime)
}

/// The log of `count` records, and where each ends. Synced behind record number `synced`.
fn log_of(count: usize, synced: usize) -> (Arc<MemoryVfs>, Vec<u64>) {
    let vfs = MemoryVfs::new(3);
    let log = create(&*vfs, LogBacking::Pwrite);
    let mut ends = Vec::new();
    for index in 0..count {
        ends.push(put(&log, &payload(index)).end());
        if index + 1 == synced {
            log.sync().unwrap();
        }
    }
    (vfs, ends)
}

/// After a power loss that happened to lose nothing: the boot differs, so that only the synced frontier counts.
fn rebooted(vfs: &MemoryVfs) -> Arc<MemoryVfs> {
    vfs.crash_clone(1, CrashPolicy::AllKept)
}

#[test]
fn what_was_appended_comes_back_in_every_mode() {
    for backing in BACKINGS {
        let vfs = MemoryVfs::new(3);
        let log = create(&*vfs, backing);
        let payloads: Vec<_> = (0..100).map(payload).collect();
        let tail = payloads.iter().map(|payload| put(&log, payload).end()).last().unwrap();
        for mode in MODES {
            let (read, end) = replayed(&*vfs, &options(mode));
            assert!(read == payloads);
            let expected = ReplayEnd { end_offset: tail, reason: EndReason::Clean, skipped_bytes: 0, lost_from: None };
            assert_eq!(end.unwrap(), expected);
        }
        seal(&log);
        let sealed = log.tail();
        drop(log);
        assert_eq!(vfs.read_file(&path()).unwrap().len() as u64, sealed, "what was allocated ahead is given back");
        let (read, end) = replayed(&*vfs, &point_in_time());
        assert!(read == payloads);
        let expected = ReplayEnd { end_offset: sealed, reason: EndReason::Sealed, skipped_bytes: 0, lost_from: None };
        assert_eq!(end.unwrap(), expected);
    }
}

#[test]
fn every_truncation_yields_a_prefix_or_corruption() {
    let (vfs, ends) = log_of(8, 4);
    let bytes = vfs.read_file(&path()).unwrap();
    for vfs in [rebooted(&vfs), vfs] {
        for len in 0..*ends.last().unwrap() as usize {
            vfs.write_file(&path(), &bytes[..len]).unwrap();
            let (read, end) = replayed(&*vfs, &point_in_time());
            let whole = ends.iter().filter(|&&end| end <= len as u64).count();
            assert_eq!(read.len(), whole, "cut to {len}");
            assert!(read.iter().enumerate().all(|(index, read)| *read == payload(index)));
            match end {
                Ok(end) => {
                    assert_eq!(end.end_offset, if len < 128 { 0 } else { ends[..whole].last().map_or(128, |&e| e) })
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "cut to {len}"),
            }
        }
    }
}

#[test]
fn every_flipped_bit_yields_a_prefix_or_corruption() {
    let (vfs, ends) = log_of(8, 4);
    let whole = *ends.last().unwrap();
    for same_boot in [true, false] {
        let vfs = if same_boot { Arc::clone(&vfs) } else { rebooted(&vfs) };
        for bit in 0..(whole + 64) * 8 {
            vfs.flip_bit(&path(), bit).unwrap();
            let (read, end) = replayed(&*vfs, &point_in_time());
            assert!(read.len() <= 8 && read.iter().enumerate().all(|(i, read)| *read == payload(i)), "bit {bit}");
            let at = bit / 8;
            let hit = ends.iter().filter(|&&end| end <= at).count();
            let noticed = end.as_ref().map_or(true, |end| end.end_offset < whole);
            assert_eq!(noticed, at < whole, "bit {bit}");
            // Each record tells that those before it were published, or the synced frontier covers it.
            let protected = if same_boot { hit < 7 } else { hit < 4 };
            if noticed && protected {
                let error = end.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "bit {bit}: {error}");
            }
            vfs.flip_bit(&path(), bit).unwrap();
        }
    }
}

/// On the same boot; what was published on the mount before may be lost, and where no mount can be told, too.
#[test]
fn only_the_synced_frontier_counts_on_another_mount() {
    let (vfs, ends) = log_of(6, 3);
    let damaged = |vfs: &MemoryVfs, record: usize| {
        let vfs = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        vfs.flip_bit(&path(), (ends[record] - 12) * 8).unwrap();
        vfs
    };
    let untold = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    untold.set_mount(None);
    assert_eq!(replayed(&*damaged(&vfs, 4), &point_in_time()).1.unwrap_err().kind(), ErrorKind::Corruption);
    for other in [vfs.remounted(1, CrashPolicy::AllKept), untold] {
        assert_eq!(replayed(&*damaged(&other, 1), &point_in_time()).1.unwrap_err().kind(), ErrorKind::Corruption);
        let (read, end) = replayed(&*damaged(&other, 4), &point_in_time());
        assert_eq!((read.len(), end.unwrap().end_offset), (4, ends[3]));
    }
}

#[test]
fn damage_below_the_synced_frontier_is_corruption_and_beyond_it_the_end() {
    let (vfs, ends) = log_of(6, 3);
    let vfs = rebooted(&vfs);
    let damage = |record: usize| {
        let vfs = rebooted(&vfs);
        vfs.flip_bit(&path(), (ends[record] - 12) * 8).unwrap();
        vfs
    };
    let error = replayed(&*damage(1), &point_in_time()).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(ends[0])));
    assert!(error.message().starts_with(&format!("{} bytes of the log", ends[1] - ends[0])), "{error}");

    let (read, end) = replayed(&*damage(4), &point_in_time());
    let expected = EndReason::Unfinished { next: Some(ends[4]) };
    assert_eq!(
        (read.len(), end.unwrap()),
        (4, ReplayEnd { end_offset: ends[3], reason: expected, skipped_bytes: 0, lost_from: None })
    );

    let error = replayed(&*damage(4), &options(WalRecoveryMode::AbsoluteConsistency)).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(ends[3])));

    for record in [1, 4] {
        let (read, end) = replayed(&*damage(record), &options(WalRecoveryMode::SkipAnyCorruptedRecords));
        assert_eq!(read.len(), 5);
        assert_eq!(end.unwrap().skipped_bytes, ends[record] - ends[record - 1]);
    }
}

#[test]
fn a_hole_left_by_a_writer_that_died_ends_the_log() {
    for backing in BACKINGS {
        let vfs = MemoryVfs::new(3);
        let log = create(&*vfs, backing);
        put(&log, b"first");
        let stalled = reserve(&log, 100);
        let later = reserve(&log, 10);
        log.append(&later, RecordKind::Batch, &[b"0123", b"456789"]).unwrap();
        for policy in [CrashPolicy::ProcessKilled, CrashPolicy::AllKept] {
            let (read, end) = replayed(&*vfs.crash_clone(1, policy), &point_in_time());
            assert_eq!(read, [b"first"]);
            let reason = EndReason::Unfinished { next: Some(later.offset()) };
            assert_eq!(
                end.unwrap(),
                ReplayEnd { end_offset: stalled.offset(), reason, skipped_bytes: 0, lost_from: None }
            );
        }
    }
}

#[test]
fn a_hole_below_a_frontier_that_later_records_carry_is_corruption() {
    let vfs = MemoryVfs::new(3);
    let log = create(&*vfs, LogBacking::Mapped);
    put(&log, b"first");
    let hole = reserve(&log, 100);
    // The writer of the hole claims to be done, though nothing of it is there.
    log.publish(hole.end());
    put(&log, b"after the hole was published");
    let same_boot = replayed(&*vfs, &point_in_time()).1.unwrap_err();
    assert_eq!((same_boot.kind(), same_boot.offset()), (ErrorKind::Corruption, Some(hole.offset())));
    assert!(replayed(&*rebooted(&vfs), &point_in_time()).1.is_ok(), "published says nothing about another boot");

    log.sync().unwrap();
    put(&log, b"after the hole was synced");
    let other_boot = replayed(&*rebooted(&vfs), &point_in_time()).1.unwrap_err();
    assert_eq!((other_boot.kind(), other_boot.offset()), (ErrorKind::Corruption, Some(hole.offset())));
}

#[test]
fn a_later_log_tells_that_this_one_was_whole() {
    let (vfs, ends) = log_of(5, 5);
    let next = std::path::PathBuf::from("/db/000008.splog");
    let earlier = Frontiers { synced: Position { log: NUMBER, offset: ends[1] }, ..Frontiers::default() };
    let config = wal::LogConfig { earlier, ..wal::LogConfig::default() };
    let log = wal::LogFile::create(&*vfs, &next, FileNumber(8), config).unwrap();
    assert_eq!(read_head(&*vfs, &next, FileNumber(8)).unwrap().frontiers, earlier);

    let knowing = |later| ReplayOptions { later, ..point_in_time() };
    let cut = rebooted(&vfs);
    cut.truncate(&path(), ends[0] as usize).unwrap();
    let error = replayed(&*cut, &knowing(earlier)).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(ends[0])));
    cut.write_file(&path(), &vfs.read_file(&path()).unwrap()[..ends[1] as usize]).unwrap();
    assert_eq!(replayed(&*cut, &knowing(earlier)).1.unwrap().end_offset, ends[1]);

    put(&log, b"one");
    log.sync().unwrap();
    put(&log, b"two");
    let later = read_head(&*vfs, &next, FileNumber(8)).unwrap().frontiers;
    assert_eq!(later.synced.log, FileNumber(8));
    let error = replayed(&*vfs, &knowing(later)).1.unwrap_err();
    assert!(error.message().contains("a later log shows"), "without its End record, the log is not whole: {error}");
}

#[test]
fn a_known_end_hides_what_lies_behind_and_vouches_for_what_lies_before() {
    let (vfs, ends) = log_of(5, 0);
    let vfs = rebooted(&vfs);
    let known = |end| ReplayOptions { known_end: Some(KnownEnd { offset: end, on_disk: true }), ..point_in_time() };
    let (read, end) = replayed(&*vfs, &known(ends[2]));
    let expected = ReplayEnd { end_offset: ends[2], reason: EndReason::KnownEnd, skipped_bytes: 0, lost_from: None };
    assert_eq!((read.len(), end.unwrap()), (3, expected));
    assert_eq!(replayed(&*vfs, &known(0)).1.unwrap().reason, EndReason::KnownEnd);

    vfs.flip_bit(&path(), (ends[1] + 30) * 8).unwrap();
    let error = replayed(&*vfs, &known(ends[2])).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(ends[1])));
    vfs.truncate(&path(), 0).unwrap();
    assert_eq!(replayed(&*vfs, &known(ends[2])).1.unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_known_end_that_was_not_synced_vouches_until_the_machine_stops() {
    let (vfs, ends) = log_of(5, 0);
    let known = KnownEnd { offset: ends[2], on_disk: false };
    let options = ReplayOptions { known_end: Some(known), ..point_in_time() };
    assert_eq!(replayed(&*rebooted(&vfs), &options).1.unwrap().reason, EndReason::KnownEnd);
    vfs.flip_bit(&path(), (ends[1] + 30) * 8).unwrap();
    let error = replayed(&*vfs, &options).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(ends[1])));

    // A power loss may have taken the record: the history ends before it, unless a later log was synced.
    let vfs = rebooted(&vfs);
    let (read, end) = replayed(&*vfs, &options);
    assert_eq!((read.len(), end.unwrap().reason), (2, EndReason::Unfinished { next: None }));
    let synced = Position { log: FileNumber(8), offset: FILE_HEADER_BYTES };
    let later = Frontiers { synced, published: synced };
    let error = replayed(&*vfs, &ReplayOptions { later, ..options }).1.unwrap_err();
    assert!(error.message().contains("a later log shows"), "{error}");
}

#[test]
fn records_behind_any_number_of_zeros_are_found() {
    let vfs = MemoryVfs::new(3);
    vfs.create_dir_all(std::path::Path::new("/db")).unwrap();
    let config = LogConfig { capacity_bytes: 4 << 20, extent_bytes: 4 << 20, ..LogConfig::default() };
    let log = LogFile::create(&*vfs, &path(), NUMBER, config).unwrap();
    put(&log, b"first");
    let whole = log.tail();
    let last = reserve(&log, 2 << 20).end(); // its writer is killed
    put(&log, b"behind it");
    vfs.sync_dir(std::path::Path::new("/db")).unwrap();
    for vfs in [vfs.clone(), rebooted(&vfs)] {
        let end = replayed(&*vfs, &point_in_time()).1.unwrap();
        let found = match end.reason {
            EndReason::Unfinished { next } => next,
            _ => None,
        };
        assert_eq!((end.end_offset, found), (whole, Some(last)));
    }
    let salvaged = replayed(&*vfs, &options(WalRecoveryMode::SkipAnyCorruptedRecords)).0;
    assert_eq!(salvaged, [b"first".to_vec(), b"behind it".to_vec()]);
}

#[test]
fn on_the_boot_that_wrote_a_log_its_head_is_known_from_the_first_record_that_tells() {
    let (vfs, ends) = log_of(200, 0);
    let head = read_head(&*vfs, &path(), NUMBER).unwrap();
    assert_eq!(head.frontiers.synced, Position { log: NUMBER, offset: ends[0] });
    assert_eq!(read_head(&*rebooted(&vfs), &path(), NUMBER).unwrap().frontiers.synced, Position::default());
}

#[test]
fn a_file_without_a_header_is_blank_unless_something_follows() {
    let vfs = MemoryVfs::new(3);
    for bytes in [vec![], vec![0; 5000], b"SPILWLOG torn".to_vec()] {
        vfs.write_file(&path(), &bytes).unwrap();
        let expected = ReplayEnd { end_offset: 0, reason: EndReason::Blank, skipped_bytes: 0, lost_from: None };
        assert_eq!(replayed(&*vfs, &point_in_time()).1.unwrap(), expected);
        assert_eq!(read_head(&*vfs, &path(), NUMBER).unwrap(), LogHead::default());
        let synced = Position { log: NUMBER, offset: FILE_HEADER_BYTES + 64 };
        let later = Frontiers { synced, published: synced };
        let error = replayed(&*vfs, &ReplayOptions { later, ..point_in_time() }).1.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let salvage = ReplayOptions { later, ..options(WalRecoveryMode::SkipAnyCorruptedRecords) };
        assert_eq!(replayed(&*vfs, &salvage).1.unwrap().reason, EndReason::Lost);
    }
    let (vfs, _) = log_of(3, 0);
    vfs.flip_bit(&path(), 40 * 8).unwrap();
    assert_eq!(replayed(&*vfs, &point_in_time()).1.unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn a_log_under_another_name_is_corruption() {
    let (vfs, _) = log_of(3, 0);
    let other = ReplayOptions { number: FileNumber(8), ..point_in_time() };
    let (read, end) = replayed_from(&*vfs, &path(), &other);
    assert!(read.is_empty());
    assert_eq!(end.unwrap_err().message(), "the file of log 000008 holds log 000007");
}

#[test]
fn bytes_moved_within_a_log_or_from_another_are_no_records() {
    let (vfs, ends) = log_of(4, 0);
    let (mut bytes, tail) = (vfs.read_file(&path()).unwrap(), ends[3] as usize);
    bytes.copy_within(128..ends[0] as usize, tail);
    vfs.write_file(&path(), &bytes).unwrap();
    let (read, end) = replayed(&*vfs, &point_in_time());
    assert_eq!((read.len(), end.unwrap().reason), (4, EndReason::Unfinished { next: None }));

    let other = MemoryVfs::new(4); // Another salt, else the same life.
    let log = create(&*other, LogBacking::Pwrite);
    for index in 0..5 {
        put(&log, &payload(index));
    }
    let foreign = other.read_file(&path()).unwrap();
    bytes.truncate(tail);
    bytes.extend(&foreign[tail..]);
    vfs.write_file(&path(), &bytes).unwrap();
    assert_eq!(replayed(&*vfs, &point_in_time()).0.len(), 4);
}

#[test]
fn a_read_that_fails_or_falls_short_is_never_the_end() {
    let (vfs, _) = log_of(40, 0);
    for fault in [Fault::Error(FaultCode::Io), Fault::ShortRead] {
        let faulty = FaultVfs::new(Arc::clone(&vfs) as Arc<dyn Vfs>);
        for mode in MODES {
            faulty.clear();
            faulty.inject(Rule::new(fault).on(Operation::Read).sticky());
            let (read, end) = replayed(&*faulty, &options(mode));
            assert!(read.is_empty());
            assert_eq!(end.unwrap_err().kind(), ErrorKind::Io);
        }
    }
}
