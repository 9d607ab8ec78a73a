use std::path::Path;
use std::sync::Arc;

use base::checksum::{crc32c, mask};
use base::options::WalRecoveryMode;
use base::{ErrorKind, Result};
use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
use vfs::memory::MemoryVfs;
use vfs::{IfExists, IoClass, Vfs};

use super::*;

const PATH: &str = "/000012.log";
const NUMBER: u64 = 12;

fn written(records: &[Vec<u8>]) -> Vec<u8> {
    let vfs = MemoryVfs::new(1);
    let mut writer = FramedWriter::new(vfs.create(Path::new(PATH), IfExists::Fail).unwrap(), IoClass::Manifest);
    for record in records {
        writer.append(record).unwrap();
    }
    writer.sync().unwrap();
    let bytes = vfs.read_file(Path::new(PATH)).unwrap();
    assert_eq!(writer.len(), bytes.len() as u64);
    bytes
}

fn holding(bytes: &[u8]) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.write_file(Path::new(PATH), bytes).unwrap();
    vfs
}

fn open(bytes: &[u8]) -> FramedReader {
    FramedReader::open(&*holding(bytes), Path::new(PATH), Some(NUMBER), IoClass::Log).unwrap()
}

/// Payloads up to the end or the first error.
fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Result<FramedEnd>) {
    let mut reader = open(bytes);
    let mut records = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => records.push(record.payload),
            Ok(None) => return (records, Ok(reader.end().unwrap())),
            Err(error) => return (records, Err(error)),
        }
    }
}

fn replayed(bytes: &[u8], mode: WalRecoveryMode) -> (Vec<Vec<u8>>, Result<FramedEnd>) {
    let mut records = Vec::new();
    let end = replay(&mut open(bytes), mode, &mut |record| {
        records.push(record.payload);
        Ok(())
    });
    (records, end)
}

fn is_corrupt_at(end: Result<FramedEnd>, offset: u64) -> bool {
    end.is_err_and(|error| error.kind() == ErrorKind::Corruption && error.offset() == Some(offset))
}

/// One fragment, made by hand.
fn fragment(kind: u8, log_number: Option<u32>, payload: &[u8]) -> Vec<u8> {
    let number = log_number.map(u32::to_le_bytes);
    let covered: Vec<u8> =
        std::iter::once(kind).chain(number.into_iter().flatten()).chain(payload.iter().copied()).collect();
    let mut bytes = mask(crc32c(&covered)).to_le_bytes().to_vec();
    bytes.extend((payload.len() as u16).to_le_bytes());
    bytes.extend(covered);
    bytes
}

fn patterned(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(salt) | 1).collect()
}

#[test]
fn records_of_all_sizes_around_a_blocks_end_come_back() {
    for gap in 0..24 {
        let records = vec![
            patterned(BLOCK_BYTES - 7 - gap, 1),
            vec![],
            patterned(1, 2),
            patterned(3 * BLOCK_BYTES, 3),
            patterned(gap, 4),
            patterned(12 * BLOCK_BYTES, 5),
        ];
        let (read, end) = read(&written(&records));
        assert!(read == records, "gap {gap}");
        assert_eq!(end.unwrap(), FramedEnd::Clean);
    }
}

#[test]
fn a_writer_goes_on_where_a_file_ends() {
    let vfs = holding(&written(&[b"one".to_vec()]));
    let mut writer = FramedWriter::new(vfs.open_append(Path::new(PATH)).unwrap(), IoClass::Manifest);
    writer.append(b"two").unwrap();
    let bytes = vfs.read_file(Path::new(PATH)).unwrap();
    assert_eq!(bytes, written(&[b"one".to_vec(), b"two".to_vec()]));
}

#[test]
fn offsets_are_those_of_first_fragments() {
    let mut reader = open(&written(&[vec![1; 10], vec![2; BLOCK_BYTES], vec![3]]));
    let offsets: Vec<u64> = std::iter::from_fn(|| reader.next().unwrap()).map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 17, 17 + 7 + 7 + BLOCK_BYTES as u64]);
    assert_eq!(reader.good_end(), offsets[2] + 8);
}

#[test]
fn every_truncation_yields_a_prefix() {
    let records = vec![patterned(20, 1), vec![], patterned(BLOCK_BYTES + 100, 2), patterned(30, 3)];
    let ends = [27, 34, 34 + 14 + BLOCK_BYTES + 100, 34 + 14 + BLOCK_BYTES + 137];
    let bytes = written(&records);
    assert_eq!(bytes.len(), ends[3]);
    for len in (0..100).chain(BLOCK_BYTES - 40..bytes.len()) {
        let (read, end) = read(&bytes[..len]);
        let whole = ends.iter().filter(|&&end| end <= len).count();
        assert!(read == records[..whole], "cut to {len}");
        let is_clean = len == 0 || ends.contains(&len);
        let start = if whole == 0 { 0 } else { ends[whole - 1] as u64 };
        let expected = if is_clean { FramedEnd::Clean } else { FramedEnd::Torn { offset: start } };
        assert_eq!(end.unwrap(), expected, "cut to {len}");
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_can_be_skipped() {
    let records = vec![patterned(20, 1), patterned(BLOCK_BYTES, 2), patterned(300, 3)];
    let bytes = written(&records);
    let interesting = (0..60).chain(BLOCK_BYTES - 20..BLOCK_BYTES + 20).chain(bytes.len() - 320..bytes.len());
    for bit in interesting.flat_map(|byte| (0..8).map(move |bit| byte * 8 + bit)) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (read, end) = read(&flipped);
        assert!(records.starts_with(&read) && read.len() < records.len(), "bit {bit}");
        assert!(
            matches!(&end, Err(e) if e.kind() == ErrorKind::Corruption) || end.is_ok_and(|e| e != FramedEnd::Clean)
        );
        let (salvaged, end) = replayed(&flipped, WalRecoveryMode::SkipAnyCorruptedRecords);
        end.unwrap();
        assert!(salvaged.iter().all(|record| records.contains(record)), "bit {bit}");
        if bit / 8 < BLOCK_BYTES {
            assert_eq!(salvaged.last(), records.last(), "bit {bit}: what follows in later blocks is kept");
        }
    }
}

#[test]
fn the_modes_differ_on_a_torn_tail_and_on_damage() {
    use WalRecoveryMode::*;
    let records = vec![patterned(20, 1), patterned(20, 2), patterned(BLOCK_BYTES, 3), patterned(20, 4)];
    let bytes = written(&records);
    let torn = &bytes[..bytes.len() - 1];
    for mode in [TolerateCorruptedTailRecords, PointInTime, SkipAnyCorruptedRecords] {
        let (read, end) = replayed(torn, mode);
        assert_eq!((read.len(), end.unwrap()), (3, FramedEnd::Torn { offset: bytes.len() as u64 - 27 }));
    }
    assert_eq!(replayed(torn, AbsoluteConsistency).1.unwrap_err().offset(), Some(bytes.len() as u64 - 27));

    let mut damaged = bytes.clone();
    damaged[30] ^= 1;
    for mode in [TolerateCorruptedTailRecords, AbsoluteConsistency] {
        let error = replayed(&damaged, mode).1.unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(27)));
    }
    let (read, end) = replayed(&damaged, PointInTime);
    assert_eq!((read.len(), end.unwrap()), (1, FramedEnd::Damaged { offset: 27 }));
    let (read, end) = replayed(&damaged, SkipAnyCorruptedRecords);
    assert!(read == [&records[..1], &records[3..]].concat() && end.unwrap() == FramedEnd::Clean);

    damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let (read, end) = replayed(&damaged, SkipAnyCorruptedRecords);
    assert_eq!((read.len(), end.unwrap()), (3, FramedEnd::Damaged { offset: bytes.len() as u64 - 27 }));
}

#[test]
fn zeros_behind_the_records_are_space_allocated_ahead() {
    let mut bytes = written(&[patterned(20, 1)]);
    for zeros in [1, 6, 7, 100, 3 * BLOCK_BYTES] {
        bytes.resize(27 + zeros, 0);
        assert_eq!(read(&bytes).1.unwrap(), FramedEnd::Zeros { offset: 27 });
    }
    bytes.extend(fragment(1, None, b"behind"));
    let error = read(&bytes).1.unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(27)));
}

#[test]
fn recyclable_records_are_read_up_to_another_logs() {
    let mut bytes = fragment(5, Some(12), b"ours");
    bytes.extend(fragment(6, Some(12), b"cut "));
    bytes.extend(fragment(8, Some(12), b"in two"));
    let end = bytes.len() as u64;
    bytes.extend(fragment(5, Some(11), b"stale"));
    let (records, reason) = read(&bytes);
    assert_eq!(records, [b"ours".to_vec(), b"cut in two".to_vec()]);
    assert_eq!(reason.unwrap(), FramedEnd::OtherLog { offset: end });
}

#[test]
fn what_a_recycled_file_held_before_is_its_end_and_no_damage() {
    use WalRecoveryMode::*;
    let mut bytes = fragment(5, Some(12), b"ours");
    let end = bytes.len() as u64;
    let stale = fragment(5, Some(11), &patterned(300, 9));
    for rest in [patterned(BLOCK_BYTES, 9), stale.clone(), stale[40..].to_vec(), vec![0; 300]] {
        bytes.truncate(end as usize);
        bytes.extend(&rest);
        for mode in [TolerateCorruptedTailRecords, PointInTime, SkipAnyCorruptedRecords, AbsoluteConsistency] {
            let (records, reason) = replayed(&bytes, mode);
            let reason = reason.unwrap();
            let is_end = reason == FramedEnd::OtherLog { offset: end } || reason == FramedEnd::Zeros { offset: end };
            assert!(records == [b"ours".to_vec()] && is_end, "{mode:?} {reason:?}");
        }
    }
    bytes.truncate(end as usize);
    bytes.extend(&fragment(5, Some(12), &[1; 90])[..50]);
    bytes.extend(&stale[50..]);
    assert_eq!(replayed(&bytes, PointInTime).1.unwrap(), FramedEnd::Torn { offset: end }, "a write that was cut off");
}

/// Every byte of a record in a recycled file is damaged in turn, or all of it is an older log's.
#[test]
fn record_behind_damage_in_a_recycled_file_proves_the_damage() {
    let first = fragment(5, Some(12), b"first");
    let start = first.len();
    let second = fragment(5, Some(12), &patterned(300, 3));
    let behind = [fragment(5, Some(12), b"third"), fragment(5, Some(11), &patterned(900, 5))].concat();
    let stale = fragment(5, Some(11), &patterned(300, 7));
    let changed = (0..second.len()).map(|at| {
        let mut changed = second.clone();
        changed[at] ^= 0x40;
        changed
    });
    for middle in changed.chain([stale]) {
        let bytes = [&first[..], &middle, &behind].concat();
        assert!(is_corrupt_at(replayed(&bytes, WalRecoveryMode::AbsoluteConsistency).1, start as u64));
        assert_eq!(
            replayed(&bytes, WalRecoveryMode::PointInTime).1.unwrap(),
            FramedEnd::Damaged { offset: start as u64 }
        );
        let (records, end) = replayed(&bytes, WalRecoveryMode::SkipAnyCorruptedRecords);
        assert!(records == [b"first".to_vec(), b"third".to_vec()], "{records:?}");
        assert!(matches!(end.unwrap(), FramedEnd::OtherLog { .. }));
    }
}

#[test]
fn length_that_reaches_past_the_file_is_damage_where_a_record_follows() {
    let mut bytes = written(&[patterned(20, 1), patterned(30, 2), patterned(40, 3)]);
    bytes[27 + 5] ^= 0x40;
    assert!(is_corrupt_at(read(&bytes).1, 27));
    let (records, end) = replayed(&bytes, WalRecoveryMode::SkipAnyCorruptedRecords);
    assert_eq!((records, end.unwrap()), (vec![patterned(20, 1), patterned(40, 3)], FramedEnd::Clean));
    let (records, end) = read(&bytes[..27 + 7 + 30]);
    assert_eq!((records.len(), end.unwrap()), (1, FramedEnd::Torn { offset: 27 }), "nothing follows");
}

#[test]
fn a_block_may_end_with_up_to_ten_zeros_where_records_are_recyclable() {
    for padding in 0..11 {
        let first = patterned(BLOCK_BYTES - 11 - padding, 1);
        let mut bytes = fragment(5, Some(12), &first);
        bytes.resize(BLOCK_BYTES, 0);
        bytes.extend(fragment(5, Some(12), b"second"));
        let (records, end) = read(&bytes);
        assert!(records == [first, b"second".to_vec()], "padding {padding}");
        assert_eq!(end.unwrap(), FramedEnd::Clean);
    }
}

#[test]
fn what_may_be_ignored_is_and_what_may_not_is_refused() {
    let no_timestamps = [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    let mut bytes = fragment(10, None, &no_timestamps);
    bytes.extend(fragment(130, None, b"too short"));
    bytes.extend(fragment(131, Some(12), &[4, 75, 3].map(u64::to_le_bytes).concat()));
    bytes.extend(fragment(0xc0, None, b"from the future"));
    bytes.extend(fragment(1, None, b"record"));
    let (records, end) = read(&bytes);
    assert_eq!((records, end.unwrap()), (vec![b"record".to_vec()], FramedEnd::Clean));

    let refused =
        [(9, &[7, 0, 0, 0][..], "wal_compression"), (10, &[1, 0, 0, 0, 8, 0], "family 1"), (77, b"?", "type 77")];
    for (kind, payload, named) in refused {
        let mut bytes = fragment(1, None, b"before");
        let offset = bytes.len() as u64;
        bytes.extend(fragment(kind, None, payload));
        bytes.extend(fragment(1, None, b"after"));
        for mode in [WalRecoveryMode::PointInTime, WalRecoveryMode::SkipAnyCorruptedRecords] {
            let error = replayed(&bytes, mode).1.unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Unsupported, Some(offset)));
            assert!(error.message().contains(named), "{error}");
        }
    }
}

#[test]
fn fragments_out_of_place_are_damage_that_can_be_passed() {
    let pieces = [
        fragment(1, None, b"a"),
        fragment(3, None, b"a middle without a start"),
        fragment(2, None, b"a start without an end"),
        fragment(1, None, b"b"),
        fragment(4, None, b"an end without a start"),
        fragment(1, None, b"c"),
    ];
    let bytes = pieces.concat();
    assert!(is_corrupt_at(replayed(&bytes, WalRecoveryMode::AbsoluteConsistency).1, 8));
    let (records, end) = replayed(&bytes, WalRecoveryMode::SkipAnyCorruptedRecords);
    assert_eq!((records, end.unwrap()), (vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], FramedEnd::Clean));
}

/// A power loss leaves zeros in place of the pages of the last record, and of what follows.
#[test]
fn zeros_from_a_page_on_inside_the_last_record_are_a_torn_end() {
    const PAGE: usize = 4 << 10;
    let zeroed = |len: usize, from: usize, behind: usize| {
        let mut bytes = written(&[b"one".to_vec(), vec![b'v'; len], b"three".to_vec()]);
        bytes[from..].fill(0);
        bytes.resize(bytes.len() + behind, 0);
        replayed(&bytes, WalRecoveryMode::PointInTime)
    };
    let torn = (vec![b"one".to_vec()], FramedEnd::Torn { offset: 10 });
    for (len, from, behind) in
        [(5000, PAGE, 0), (5000, PAGE, 9 * PAGE), (9000, 2 * PAGE, 0), (90_000, PAGE, 0), (90_000, 20 * PAGE, 0)]
    {
        let (records, end) = zeroed(len, from, behind);
        assert_eq!((records, end.unwrap()), torn, "{len} bytes, zeros from {from}");
    }
    // The header is cut in two: of the checksum, or of the length.
    for header in [3, 5] {
        let mut bytes = written(&[vec![b'v'; PAGE - header - 7], vec![b'w'; 200]]);
        bytes[PAGE..].fill(0);
        let (records, end) = replayed(&bytes, WalRecoveryMode::PointInTime);
        assert_eq!((records.len(), end.unwrap()), (1, FramedEnd::Torn { offset: (PAGE - header) as u64 }));
    }
    // The zeros begin elsewhere, or behind the record, or something follows.
    let is_damaged = |(_, end): (Vec<_>, Result<FramedEnd>)| end.unwrap() == FramedEnd::Damaged { offset: 10 };
    assert!(is_damaged(zeroed(5000, 4200, 0)) && is_damaged(zeroed(3000, 3000, 9 * PAGE)));
    let mut bytes = written(&[b"one".to_vec(), vec![b'v'; 5000]]);
    bytes[PAGE..5000].fill(0);
    assert!(is_damaged(replayed(&bytes, WalRecoveryMode::PointInTime)));
}

#[test]
fn a_read_that_falls_short_is_never_the_end() {
    let vfs = FaultVfs::new(holding(&written(&[patterned(BLOCK_BYTES, 1), patterned(20, 2)])));
    let mut reader = FramedReader::open(&*vfs, Path::new(PATH), None, IoClass::Manifest).unwrap();
    vfs.inject(Rule::new(Fault::ShortRead).on(Operation::Read));
    assert_eq!(reader.next().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_writer_that_failed_stays_failed() {
    for operation in [Operation::Write, Operation::Sync] {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        let mut writer = FramedWriter::new(vfs.create(Path::new(PATH), IfExists::Fail).unwrap(), IoClass::Manifest);
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(operation));
        let failed = writer.append(b"record").and_then(|()| writer.sync());
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
        assert!(writer.append(b"another").is_err());
        assert!(writer.sync().is_err(), "the fault fires once, and nothing is tried again");
    }
}

#[test]
fn record_that_a_visit_finds_corrupt_counts_as_damage() {
    let bytes = written(&[b"one".to_vec(), b"bad".to_vec(), b"two".to_vec()]);
    let visited = |mode, at: Option<&str>| {
        let mut records = Vec::new();
        let end = replay(&mut open(&bytes), mode, &mut |record| {
            if record.payload == b"bad" {
                let error = base::Error::corruption("it is bad");
                return Err(at.map_or(error.clone(), |path| error.at_path(path)));
            }
            records.push((record.payload, record.follows_damage));
            Ok(())
        });
        (records, end)
    };
    let (one, two) = ((b"one".to_vec(), false), (b"two".to_vec(), true));
    let (read, end) = visited(WalRecoveryMode::SkipAnyCorruptedRecords, None);
    assert_eq!((read, end.unwrap()), (vec![one.clone(), two], FramedEnd::Clean));
    let (read, end) = visited(WalRecoveryMode::PointInTime, None);
    assert_eq!((read, end.unwrap()), (vec![one], FramedEnd::Damaged { offset: 10 }));
    assert!(is_corrupt_at(visited(WalRecoveryMode::AbsoluteConsistency, None).1, 10));
    visited(WalRecoveryMode::SkipAnyCorruptedRecords, Some("/000007.sst")).1.unwrap_err();
}
