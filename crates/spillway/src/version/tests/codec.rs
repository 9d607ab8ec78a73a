//! Every field of an edit goes through the bytes unchanged, and bad bytes are refused by name.

use base::ErrorKind;
use base::coding::{put_prefixed, put_varint32, put_varint64};
use wal::{Frontiers, Position};

use super::*;
use crate::version::edit::{LogEnd, WalRange};
use crate::version::edit_codec::{decode_record, encode_record};
use crate::version::log_life::ValueLog;
use crate::version::session::Session;
use crate::version::table_file::Backing;

fn text(random: &mut Random) -> String {
    let len = random.below(12);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn wide(random: &mut Random) -> u64 {
    let shift = random.below(56);
    (1 << shift) | random.below(1 << 20)
}

fn seq(random: &mut Random) -> SeqNo {
    SeqNo(wide(random) & SeqNo::MAX.0)
}

pub(super) fn random_meta(random: &mut Random) -> FileMeta {
    let (a, b) = (seq(random), seq(random));
    let has_checksum = random.chance(2);
    let (number, file_bytes) = (wide(random), wide(random));
    let backing = Backing { number: FileNumber(number + 1 + random.below(9)), file_bytes: file_bytes + wide(random) };
    FileMeta {
        number: FileNumber(number),
        path_id: random.below(4) as u32,
        temperature: random.below(256) as u8,
        file_bytes,
        backing: random.chance(3).then_some(backing),
        smallest: key::encode(text(random).as_bytes(), a, ValueKind::Value),
        largest: key::encode(text(random).as_bytes(), SeqNo::MAX, ValueKind::RangeDeletion),
        smallest_seq: a.min(b),
        largest_seq: a.max(b),
        epoch_number: random.below(3),
        marked_for_compaction: random.chance(2),
        oldest_ancestor_time: random.below(2) * wide(random),
        file_creation_time: random.below(2) * wide(random),
        oldest_blob: random.below(2),
        value_logs: value_logs(random),
        file_checksum: if has_checksum { text(random).into_bytes() } else { Vec::new() },
        file_checksum_func: if has_checksum { "c".to_string() + &text(random) } else { String::new() },
        unique_id: random.chance(2).then(|| (wide(random), wide(random))),
        mostly_deletions: false, // not stored
        deletes_ranges: false,   // nor this
    }
}

fn value_logs(random: &mut Random) -> Vec<ValueLog> {
    let mut numbers: Vec<u64> = (0..random.below(4)).map(|_| wide(random)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| ValueLog { log: FileNumber(number), bytes: wide(random) }).collect()
}

fn range(random: &mut Random) -> WalRange {
    let (a, b) = (FileNumber(wide(random)), FileNumber(wide(random)));
    if random.chance(2) { WalRange::none_through(a) } else { WalRange { oldest: a.min(b), newest: Some(a.max(b)) } }
}

fn frontiers(random: &mut Random) -> Frontiers {
    let mut position = || Position { log: FileNumber(wide(random)), offset: wide(random) };
    Frontiers { synced: position(), published: position() }
}

pub(super) fn random_edit(random: &mut Random) -> VersionEdit {
    fn maybe<T>(random: &mut Random, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
        random.chance(2).then(|| make(random))
    }
    fn some<T>(random: &mut Random, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
        (0..random.below(3)).map(|_| make(random)).collect()
    }
    let number = |random: &mut Random| FileNumber(wide(random));
    let level = |random: &mut Random| random.below(64) as usize;
    VersionEdit {
        family: FamilyId(random.below(3) as u32),
        comparator: maybe(random, text),
        log_number: maybe(random, number),
        prev_log: maybe(random, number),
        next_file: maybe(random, number),
        last_seq: maybe(random, seq),
        min_log_to_keep: maybe(random, number),
        tracked_logs: some(random, |r| (number(r), wide(r))),
        tracked_from: None,
        max_family: maybe(random, |r| r.below(1 << 32) as u32),
        compact_cursors: some(random, |r| (level(r), key::encode(text(r).as_bytes(), seq(r), ValueKind::Merge))),
        deleted: some(random, |r| (level(r), number(r))),
        added: some(random, |r| (level(r), random_meta(r))),
        add_family: maybe(random, text),
        drop_family: random.chance(2),
        value_times: random.chance(2),
        db_id: maybe(random, text),
        atomic_group: maybe(random, |r| r.below(9) as u32),
        fence: maybe(random, |r| r.below(3) as u32),
        flushed_through: maybe(random, seq),
        log_ends: some(random, |r| LogEnd {
            log: number(r),
            end_offset: wide(r),
            last_seq: seq(r),
            on_disk: r.chance(2),
        }),
        wal_range: maybe(random, range),
        log_frontiers: maybe(random, frontiers),
        log_dir: maybe(random, text),
        home: maybe(random, text),
        sessions: maybe(random, |r| {
            some(r, |r| Session { id: r.below(1 << 32) as u32, from: number(r), after: seq(r) })
        }),
        options_file: maybe(random, number),
        linked_ingests: some(random, seq),
    }
}

#[test]
fn every_edit_reads_back_as_it_was() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let edits: Vec<_> = (0..1 + random.below(3)).map(|_| random_edit(&mut random)).collect();
        assert_eq!(decode_record(&encode_record(&edits)).unwrap(), edits);
    }
}

#[test]
fn no_record_is_decoded_past_its_end() {
    let mut random = Random(8);
    for _ in 0..100 {
        let edit = random_edit(&mut random);
        let record = encode_record(std::slice::from_ref(&edit));
        for len in 0..record.len() {
            // A cut between fields is a shorter edit; nothing may be made of a cut field.
            if let Ok(edits) = decode_record(&record[..len]) {
                assert_eq!(encode_record(&edits), record[..len]);
            }
        }
        for bit in 0..record.len() * 8 {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = decode_record(&flipped);
        }
    }
}

/// A tag and a field behind its length.
fn tagged(tag: u32, field: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    put_varint32(&mut record, tag);
    put_prefixed(&mut record, field);
    record
}

fn new_file_4(custom: &[u8]) -> Vec<u8> {
    let mut record = encode_record(&[VersionEdit { added: vec![(0, table(9, 1, 2, 0))], ..VersionEdit::default() }]);
    assert_eq!(record.pop(), Some(1), "the end tag");
    record.extend_from_slice(custom);
    record.push(1);
    record
}

#[test]
fn what_cannot_be_honoured_is_named() {
    let unsupported = [
        (
            tagged(8194, b""),
            "tag 8194 at byte 0 of the record: blob files are not read: set enable_blob_files=false in RocksDB and compact all with enable_blob_garbage_collection first",
        ),
        (
            vec![0x90, 3],
            "tag 400 at byte 0 of the record: blob files are not read: set enable_blob_files=false in RocksDB and compact all with enable_blob_garbage_collection first",
        ),
        (
            vec![0x91, 3],
            "tag 401 at byte 0 of the record: blob files are not read: set enable_blob_files=false in RocksDB and compact all with enable_blob_garbage_collection first",
        ),
        (tagged(8198, b"x"), "tag 8198 at byte 0 of the record: user-defined timestamps (full_history_ts_low)"),
        (tagged(8201, &[0]), "tag 8201 at byte 0 of the record: user-defined timestamps that are not persisted"),
        (
            [&[2, 7][..], &tagged(11, b"")].concat(),
            "tag 11 at byte 2 of the record: unknown, and not to be passed over",
        ),
        (tagged(0x5350_0005, b""), "tag 1397751813 at byte 0 of the record: unknown, and not to be passed over"),
        (new_file_4(&[10, 1, 5]), "tag 103 at byte 0 of the record: table 000009 has user-defined timestamps"),
        (new_file_4(&[16, 1, 0]), "tag 103 at byte 0 of the record: table 000009 has user-defined timestamps"),
        (
            new_file_4(&[66, 0]),
            "tag 103 at byte 0 of the record: table 000009 has the field 66, unknown and not to be passed over",
        ),
    ];
    for (record, message) in unsupported {
        let error = decode_record(&record).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, message));
    }
}

#[test]
fn damage_is_named() {
    let mut reversed = table(9, 1, 2, 0);
    reversed.smallest_seq = SeqNo(10);
    let reversed = encode_record(&[VersionEdit { added: vec![(0, reversed)], ..VersionEdit::default() }]);
    let mut high_seq = vec![4];
    put_varint64(&mut high_seq, SeqNo::MAX.0 + 1);
    for (record, part) in [
        (vec![6, 64, 1], "level 64 is more than any database has"),
        (vec![5, 0, 7, 1, 2, 3, 4, 5, 6, 7], "compaction cursor is 7 bytes, too short for an internal key"),
        (vec![1, 200, 1, b'a'], "comparator is truncated or malformed"),
        (high_seq, "last sequence number 72057594037927936 is past the end of the sequence numbers"),
        (reversed, "table 000009 has its sequence numbers the wrong way round"),
        (new_file_4(&[5, 2, 1, 1]), "field 5 of table 000009 is too long"),
        (vec![3, 255, 255, 255, 255, 255, 255, 255, 255, 127], "is larger than file numbers can be"),
        (tagged(0x5350_0001, &[1, 1]), "a private field is too long"),
    ] {
        let error = decode_record(&record).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains(part), "{error} lacks {part:?}");
    }
}

#[test]
fn a_virtual_table_must_fit_the_table_before_it_and_its_file() {
    // Table 9 is 109 bytes of its file.
    let whole = |level| encode_record(&[VersionEdit { added: vec![(level, table(9, 1, 2, 0))], ..Default::default() }]);
    let bounds = |numbers: &[u64]| {
        let mut field = Vec::new();
        numbers.iter().for_each(|number| put_varint64(&mut field, *number));
        tagged(0x5350_0006, &field)
    };
    let decoded = decode_record(&[whole(2), bounds(&[9, 5, 109])].concat()).unwrap();
    let backing = Some(Backing { number: FileNumber(5), file_bytes: 109 });
    assert_eq!(decoded[0].added, [(2, FileMeta { backing, ..table(9, 1, 2, 0) })]);
    assert_eq!(encode_record(&decoded), [whole(2), bounds(&[9, 5, 109])].concat(), "the bytes are these");
    for (record, part) in [
        (bounds(&[9, 5, 200]), "virtual table 000009 does not stand behind the table itself"),
        ([whole(0), bounds(&[8, 5, 200])].concat(), "virtual table 000008 does not stand behind the table itself"),
        ([whole(0), bounds(&[9, 5, 200]), bounds(&[9, 6, 200])].concat(), "does not stand behind the table itself"),
        ([whole(0), bounds(&[9, 9, 200])].concat(), "virtual table 000009 is said to lie in a file of its own number"),
        ([whole(0), bounds(&[9, 5, 108])].concat(), "has 109 bytes of file 000005, which has 108"),
        ([whole(0), bounds(&[9, 5, 1 << 63])].concat(), "which has 9223372036854775808"),
        ([whole(0), bounds(&[9, 1 << 62, 200])].concat(), "is larger than file numbers can be"),
        ([whole(0), bounds(&[9, 5, 200, 1])].concat(), "a private field is too long"),
        ([whole(0), bounds(&[9, 5])].concat(), "size of the file of a virtual table is truncated or malformed"),
    ] {
        let error = decode_record(&record).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains(part), "{error} lacks {part:?}");
    }
}

#[test]
fn synced_logs_of_rocksdb_are_read_in_both_forms() {
    let mut old = Vec::new();
    put_varint32(&mut old, 8196);
    old.extend_from_slice(&[12, 2, 100, 1]);
    put_varint32(&mut old, 8197);
    old.push(11);
    let new = [tagged(8199, &[12, 2, 100, 1]), tagged(8200, &[11])].concat();
    for record in [old, new] {
        let edits = decode_record(&record).unwrap();
        let tracked_logs = vec![(FileNumber(12), 100)];
        assert_eq!(edits, [VersionEdit { tracked_logs, tracked_from: Some(FileNumber(11)), ..VersionEdit::default() }]);
    }
}

#[test]
fn what_may_be_passed_over_is() {
    let records = [Vec::new(), tagged(8201, &[1]), tagged(8203, b"v"), tagged(16383, &[0; 300])];
    for record in records {
        let with_log = [record, vec![2, 77]].concat();
        let edits = decode_record(&with_log).unwrap();
        assert_eq!(edits, [VersionEdit { log_number: Some(FileNumber(77)), ..VersionEdit::default() }]);
    }
    let tables = decode_record(&new_file_4(&[14, 1, 9, 15, 2, 9, 9, 17, 0, 10, 0, 16, 1, 1])).unwrap();
    assert_eq!(tables[0].added, [(0, table(9, 1, 2, 0))], "unknown fields of a table");
}

#[test]
fn older_forms_of_a_table_are_read() {
    let meta = FileMeta { path_id: 3, ..table(9, 1, 2, 0) };
    for (tag, has_path, has_seq) in [(7, false, false), (100, false, true), (102, true, true)] {
        let mut record = Vec::new();
        put_varint32(&mut record, tag);
        put_varint32(&mut record, 2);
        put_varint64(&mut record, 9);
        if has_path {
            put_varint32(&mut record, 3);
        }
        put_varint64(&mut record, meta.file_bytes);
        put_prefixed(&mut record, &meta.smallest);
        put_prefixed(&mut record, &meta.largest);
        if has_seq {
            put_varint64(&mut record, 9);
            put_varint64(&mut record, 9);
        }
        let mut expected = FileMeta { path_id: if has_path { 3 } else { 0 }, ..meta.clone() };
        if !has_seq {
            (expected.smallest_seq, expected.largest_seq) = (SeqNo(0), SeqNo::MAX);
        }
        assert_eq!(decode_record(&record).unwrap()[0].added, [(2, expected)], "tag {tag}");
    }
    let kept = decode_record(&new_file_4(&[3, 8, 44, 0, 0, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!(kept[0].min_log_to_keep, Some(FileNumber(44)));
}
