use std::path::Path;
use std::sync::Arc;

use base::ErrorKind;
use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
use vfs::memory::MemoryVfs;

use super::*;

const PATH: &str = "/000003.splog";
const BACKINGS: [LogBacking; 2] = [LogBacking::Mapped, LogBacking::Pwrite];

/// Bytes allocated and not yet reserved.
fn room_ahead(log: &LogFile) -> u64 {
    log.allocated.load(Ordering::Acquire) - log.tail() - END_RECORD_BYTES
}

fn create(vfs: &dyn Vfs, backing: LogBacking) -> LogFile {
    let config = LogConfig { capacity_bytes: 16 << 10, extent_bytes: 4 << 10, backing, ..LogConfig::default() };
    LogFile::create(vfs, Path::new(PATH), FileNumber(3), config).unwrap()
}

fn put(log: &LogFile, payload: &[u8]) -> Reservation {
    assert!(log.ensure(payload.len()).unwrap());
    let reservation = log.try_reserve(payload.len()).unwrap();
    log.append(&reservation, RecordKind::Batch, &[payload]).unwrap();
    log.publish(reservation.end());
    reservation
}

#[test]
fn reservations_follow_each_other_until_what_is_allocated_is_used_up() {
    for backing in BACKINGS {
        let log = create(&*MemoryVfs::new(1), backing);
        let first = log.try_reserve(9).unwrap();
        let second = log.try_reserve(0).unwrap();
        assert_eq!((first.offset(), first.end(), first.payload_offset()), (128, 128 + 32, 128 + 20));
        assert_eq!((second.offset(), log.tail()), (first.end(), first.end() + 24));

        let room = room_ahead(&log) as usize - 20;
        assert_eq!(log.try_reserve(room + 1), None);
        let last = log.try_reserve(room).unwrap();
        assert_eq!((room_ahead(&log), last.end() + 24), (0, 4 << 10));
        assert!(log.ensure(100).unwrap(), "another extent");
        assert!(log.try_reserve(100).is_some());
    }
}

#[test]
fn a_log_is_full_at_its_capacity_but_can_still_be_sealed() {
    for backing in BACKINGS {
        let log = create(&*MemoryVfs::new(1), backing);
        let largest = (16 << 10) - 128 - 24 - 20;
        assert!(!log.ensure(largest + 1).unwrap());
        assert!(log.ensure(largest).unwrap());
        assert!(log.try_reserve(largest).is_some());
        assert!(!log.ensure(0).unwrap());
        let end = log.seal().unwrap();
        assert_eq!(end.end(), log.capacity());
        log.append(&end, RecordKind::End, &[]).unwrap();
    }
}

#[test]
fn a_sealed_log_takes_no_more() {
    let log = create(&*MemoryVfs::new(1), LogBacking::Mapped);
    let end = log.seal().unwrap();
    assert!(log.is_sealed());
    assert_eq!(log.tail(), end.end());
    assert_eq!((log.try_reserve(1), log.seal()), (None, None));
    assert!(!log.ensure(1).unwrap());
}

#[test]
fn a_payload_longer_than_the_length_field_is_refused() {
    let log = create(&*MemoryVfs::new(1), LogBacking::Mapped);
    assert_eq!(log.try_reserve(PAYLOAD_BYTES_MAX as usize + 1), None);
    assert!(!log.ensure(usize::MAX).unwrap());
}

#[test]
fn a_full_disk_is_noticed_when_room_is_made_and_the_log_goes_on_once_there_is_space() {
    for backing in BACKINGS {
        let vfs = MemoryVfs::new(1);
        let log = create(&*vfs, backing);
        vfs.set_capacity(Some(4 << 10));
        assert_eq!(log.ensure(5 << 10).unwrap_err().kind(), ErrorKind::NoSpace);
        put(&log, b"what fits the first extent");
        vfs.set_capacity(None);
        assert!(log.ensure(5 << 10).unwrap());
    }
}

#[test]
fn a_failed_sync_is_final() {
    for backing in BACKINGS {
        let memory: Arc<MemoryVfs> = MemoryVfs::new(1);
        let vfs = FaultVfs::new(memory);
        let log = create(&*vfs, backing);
        let synced = put(&log, b"synced");
        assert_eq!(log.sync().unwrap(), synced.end());
        let lost = put(&log, b"lost");
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync));
        let error = log.sync().unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(Path::new(PATH))));
        let syncs = vfs.calls(Operation::Sync);
        assert!(log.sync().is_err(), "the fault fires once, and is not tried again");
        assert_eq!(vfs.calls(Operation::Sync), syncs);
        assert_eq!(log.synced(), synced.end());

        let mut buf = [0; 6];
        log.read_written(synced.payload_offset(), &mut buf).unwrap();
        assert_eq!(&buf, b"synced");
        assert!(log.failure_before(synced.end()).is_none() && log.failure_before(lost.end()).is_some());
    }
}

#[test]
fn writeback_starts_once_for_each_page_and_only_for_published_ones() {
    for backing in BACKINGS {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        let log = create(&*vfs, backing);
        let calls = || vfs.calls(Operation::Writeback);
        put(&log, &[7; 5000]);
        assert!(!log.is_writeback_due(8 << 10) && log.is_writeback_due(4 << 10));
        log.start_writeback(8 << 10).unwrap();
        assert_eq!(calls(), 0, "one page is less than two");
        log.start_writeback(4 << 10).unwrap();
        log.start_writeback(1).unwrap();
        assert_eq!(calls(), 1, "the second page is not whole yet");
        let open = log.try_reserve(3000).or_else(|| log.ensure(3000).ok().and_then(|_| log.try_reserve(3000))).unwrap();
        assert!(!log.is_writeback_due(1), "reserved, and not published");
        log.append(&open, RecordKind::Batch, &[&[7; 3000]]).unwrap();
        log.publish(open.end());
        put(&log, &[7; 2000]);
        log.sync().unwrap();
        log.start_writeback(1).unwrap();
        assert_eq!(calls(), 1, "synced");
        put(&log, &[7; 3000]);
        let end = log.seal().unwrap();
        log.append(&end, RecordKind::End, &[]).unwrap();
        log.publish(end.end());
        log.start_writeback(1 << 20).unwrap();
        assert_eq!(calls(), 2, "no more is coming to a sealed log");
    }
}

#[test]
fn a_failed_writeback_fails_every_later_sync() {
    for backing in BACKINGS {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        let log = create(&*vfs, backing);
        let lost = put(&log, &[7; 5000]);
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Writeback));
        let error = log.start_writeback(1).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(Path::new(PATH))));
        assert!(log.sync().is_err() && log.failure_before(lost.end()).is_some());
        assert_eq!(vfs.calls(Operation::Sync), 1, "that of the header");
        log.start_writeback(1).unwrap();
        assert_eq!(vfs.calls(Operation::Writeback), 1);
    }
}

#[test]
fn a_sync_covers_what_was_published_and_a_second_one_has_nothing_to_do() {
    let vfs = FaultVfs::new(MemoryVfs::new(1));
    let log = create(&*vfs, LogBacking::Pwrite);
    let first = put(&log, b"published");
    let second = log.try_reserve(8).unwrap();
    assert_eq!(log.sync().unwrap(), first.end());
    let syncs = vfs.calls(Operation::Sync);
    assert_eq!(log.sync().unwrap(), first.end());
    assert_eq!(vfs.calls(Operation::Sync), syncs);
    assert!(second.offset() >= log.synced());
}

#[test]
fn records_of_every_length_in_any_parts_are_read_back() {
    for backing in BACKINGS {
        let config = LogConfig { backing, ..LogConfig::default() };
        let log = LogFile::create(&*MemoryVfs::new(1), Path::new(PATH), FileNumber(3), config).unwrap();
        for len in (0..600).chain(4000..4200).chain([70_001]) {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            assert!(log.ensure(len).unwrap());
            let reservation = log.try_reserve(len).unwrap();
            let (head, rest) = payload.split_at(len.min(12));
            let (body, tail) = rest.split_at(rest.len() / 2);
            log.append(&reservation, RecordKind::Batch, &[head, &[], body, tail]).unwrap();
            log.publish(reservation.end());
            let mut read = vec![0; len];
            log.read_written(reservation.payload_offset(), &mut read).unwrap();
            assert!(read == payload, "{backing:?}, {len} bytes");
        }
    }
}

#[test]
#[should_panic(expected = "fill its reservation")]
fn parts_of_another_length_than_reserved_are_broken_logic() {
    let log = create(&*MemoryVfs::new(1), LogBacking::Mapped);
    let reservation = log.try_reserve(4).unwrap();
    let _ = log.append(&reservation, RecordKind::Batch, &[b"five!"]);
}

#[test]
fn a_log_that_cannot_be_created_leaves_nothing_behind() {
    for backing in BACKINGS {
        for operation in [Operation::Allocate, Operation::Sync] {
            let vfs = FaultVfs::new(MemoryVfs::new(1));
            vfs.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation));
            let config = LogConfig { backing, ..LogConfig::default() };
            let error = LogFile::create(&*vfs, Path::new(PATH), FileNumber(3), config).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::NoSpace);
            assert!(!vfs.exists(Path::new(PATH)).unwrap());
            create(&*vfs, backing);
        }
    }
}

#[test]
fn extents_follow_the_writer_and_grow_with_what_is_written() {
    for backing in BACKINGS {
        let vfs = MemoryVfs::new(1);
        let config = LogConfig {
            capacity_bytes: 1 << 20,
            extent_bytes: 64 << 10,
            extent_max_bytes: 256 << 10,
            backing,
            ..LogConfig::default()
        };
        let log = LogFile::create(&*vfs, Path::new(PATH), FileNumber(3), config).unwrap();
        let mut seen = Vec::new();
        while log.ensure(4000).unwrap() {
            put(&log, &[7; 4000]);
            let len = vfs.metadata(Path::new(PATH)).unwrap().len >> 10;
            if seen.last() != Some(&len) {
                seen.push(len);
            }
        }
        assert_eq!(seen, [64, 128, 256, 512, 768, 1024], "KiB");
    }
}

#[test]
fn what_is_allocated_ahead_needs_no_allocation_by_the_writer() {
    let log = create(&*MemoryVfs::new(1), LogBacking::Mapped);
    assert_eq!(log.try_reserve(8000), None);
    log.allocate_ahead(9000).unwrap();
    assert!(log.try_reserve(8000).is_some());
    log.allocate_ahead(u64::MAX).unwrap();
    assert_eq!(room_ahead(&log), log.capacity() - log.tail() - 24, "no more than the capacity");
}

#[test]
fn where_the_disk_has_no_room_for_an_extent_a_record_takes_what_it_needs() {
    for backing in BACKINGS {
        let vfs = MemoryVfs::new(1);
        let config = LogConfig { capacity_bytes: 1 << 20, extent_bytes: 64 << 10, backing, ..LogConfig::default() };
        let log = LogFile::create(&*vfs, Path::new(PATH), FileNumber(3), config).unwrap();
        vfs.set_capacity(Some(72 << 10));
        put(&log, &[7; 60 << 10]);
        put(&log, &[7; 4 << 10]);
        assert_eq!(vfs.metadata(Path::new(PATH)).unwrap().len, 68 << 10);
        assert_eq!(log.ensure(20 << 10).unwrap_err().kind(), ErrorKind::NoSpace);
        put(&log, &[7; 2 << 10]);
    }
}
