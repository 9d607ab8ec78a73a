//! Damaged fast tables: an error, or, where nobody asked for checksums, other content; never a panic.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

mod common;

use std::sync::Arc;

use base::checksum::{crc32c, mask};
use base::options::FilterPolicy;
use base::tombstone::{Fragment, RangeTombstone};
use base::{Cursor, ErrorKind, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use common::conformance::orders;
use common::converted::{Random, context};
use common::fast::{fast_config, open_fast, write_fast};
use common::{Entry, key, put};
use table::{AnyTable, DumpPart, FastTable, Table, TableReadOptions, dump_any};

const FOOTER_BYTES: usize = 88;
const EXTENT_BYTES: usize = 32 << 10;

/// Keys that differ late: few, and so many that nodes lie above nodes.
const FAN: u64 = 20;
const FAN_OF_LEVELS: u64 = 2200;

/// A small table's file with nodes and a filter, and what is in it: `fan` keys that differ late, among others.
fn small(order: &InternalOrder, fan: u64) -> (Vec<u8>, Vec<Entry>) {
    let mut entries = vec![put("", 7, "empty"), (key("ab", 4, ValueKind::Merge), b"+".to_vec())];
    entries.extend((5..30).map(|seq| put("ab", seq, "version")));
    entries.push((key("ab", 2, ValueKind::Deletion), Vec::new()));
    entries.extend((0..fan).map(|i| put(&format!("xy{i:04}"), 20, "fan")));
    entries.sort_by(|a, b| order.compare(&a.0, &b.0));
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"abb".to_vec(), seq: SeqNo(9) };
    let mut config = fast_config(order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    (write_fast(config, &entries, &[tombstone]).expect("written").bytes, entries)
}

type Content = (Vec<Entry>, Vec<Fragment>);

/// Steps that no walk over a small table takes.
const STEPS_MAX: usize = 10_000;

fn walk(cursor: &mut dyn Cursor, first: bool, step: fn(&mut dyn Cursor) -> bool) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    let mut valid = first;
    while valid {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        assert!(all.len() < STEPS_MAX, "a walk without end");
        valid = step(cursor);
    }
    cursor.status()?;
    Ok(all)
}

/// Reads a table in every way there is; returns what a scan found.
fn read_all(table: &Arc<FastTable>, verify_checksums: bool) -> Result<Content> {
    let options = TableReadOptions { verify_checksums, ..TableReadOptions::default() };
    for (user_key, seq) in [(&b""[..], SeqNo::MAX), (b"ab", SeqNo::MAX), (b"ab", SeqNo(4)), (b"xy0003", SeqNo(4))] {
        let mut shown = 0;
        table.get(&LookupKey::new(user_key, seq), &options, &mut |_, _, value| {
            std::hint::black_box(value.pin());
            shown += 1;
            shown < STEPS_MAX
        })?;
    }
    let lookups = [b"ab".as_slice(), b"abc", b"xy0001"].map(|key| LookupKey::new(key, SeqNo(12)));
    let lookups: Vec<&LookupKey> = lookups.iter().collect();
    table.multi_get(&lookups, &options, &mut |_, _, _, _| true)?;
    let mut cursor = table.clone().cursor(&options);
    for target in [&key("ab", 12, ValueKind::Value), &key("xy0005", 1, ValueKind::Value)] {
        let (_, _) = (cursor.seek(target), cursor.status()?);
        let (_, _) = (cursor.seek_for_prev(target), cursor.status()?);
    }
    if verify_checksums {
        table.anchors(4)?;
        table.approximate_offset(&key("xy0003", 1, ValueKind::Value))?;
        for part in [DumpPart::Layout, DumpPart::Properties, DumpPart::Index, DumpPart::Tombstones] {
            dump_any(&AnyTable::Fast(table.clone()), part, &mut |_| true)?;
        }
    }
    let first = cursor.seek_to_last();
    let mut backward = walk(&mut *cursor, first, |cursor| cursor.prev())?;
    backward.reverse();
    let first = cursor.seek_to_first();
    let forward = walk(&mut *cursor, first, |cursor| cursor.next())?;
    assert!(forward == backward || !verify_checksums);
    Ok((forward, table.tombstones().map(|all| all.fragments().to_vec()).unwrap_or_default()))
}

fn assert_refused(error: &base::Error) {
    let known = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
    assert!(known.contains(&error.kind()), "{error}");
}

/// A flipped bit is found by opening, by the read that touches it, and by `verify`; without checksums nothing worse than
/// other content comes of it.
#[test]
fn every_flipped_bit_is_refused() {
    for order in orders() {
        let (bytes, entries) = small(&order, FAN);
        let context = context(&order);
        let whole = open_fast(&bytes, &context).expect("opens");
        assert_eq!(read_all(&whole, true).expect("whole").0, entries);
        let mut damaged = bytes.clone();
        for bit in 0..bytes.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            match open_fast(&damaged, &context) {
                Err(error) => assert_refused(&error),
                Ok(table) => {
                    if let Err(error) = read_all(&table, false) {
                        assert_refused(&error);
                    }
                    assert_refused(&read_all(&table, true).expect_err("its extent was touched"));
                    assert_refused(&table.verify().expect_err("damaged"));
                }
            }
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn every_truncation_and_every_lengthening_is_refused() {
    let order = InternalOrder::default();
    let (bytes, _) = small(&order, FAN);
    for len in 0..bytes.len() {
        assert_refused(&open_fast(&bytes[..len], &context(&order)).map(|_| ()).expect_err("cut"));
    }
    let longer = [&bytes[..], &[0; 8]].concat();
    assert_refused(&open_fast(&longer, &context(&order)).map(|_| ()).expect_err("longer"));
    let mapping = Arc::new(common::fast::Mapped(longer));
    let opened = FastTable::open(mapping, "t.sst".as_ref(), bytes.len() as u64, &context(&order));
    let error = opened.map(|_| ()).expect_err("longer than was said");
    assert!(error.to_string().contains("bytes instead of"), "{error}");
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a number")) as usize
}

/// Where what has checksums ends: behind the first four parts.
fn covered(bytes: &[u8]) -> usize {
    let footer = bytes.len() - FOOTER_BYTES;
    (0..4).map(|part| u64_at(bytes, footer + 8 * part)).fold(0, usize::wrapping_add)
}

/// Makes the checksums right again.
fn mend(bytes: &mut [u8]) {
    let (covered, footer) = (covered(bytes), bytes.len() - FOOTER_BYTES);
    let extents = covered.div_ceil(EXTENT_BYTES);
    if covered.checked_add(4 * extents).is_some_and(|end| end <= footer) {
        let sums: Vec<u8> =
            bytes[..covered].chunks(EXTENT_BYTES).flat_map(|extent| mask(crc32c(extent)).to_le_bytes()).collect();
        bytes[covered..covered + sums.len()].copy_from_slice(&sums);
        let crc = mask(crc32c(&bytes[covered..footer + 72]));
        bytes[footer + 72..footer + 76].copy_from_slice(&crc.to_le_bytes());
    }
}

/// With right checksums damage reaches what follows references. Reads end, and what `verify` accepts is in order and reads
/// the same in both directions.
#[test]
fn damage_under_right_checksums_is_refused_or_read() {
    for order in orders() {
        for (fan, rounds) in [(FAN, 20_000), (FAN_OF_LEVELS, 1000)] {
            let (bytes, _) = small(&order, fan);
            let mut random = Random(fan);
            let counts = (0..rounds).fold([0, 0, 0], |mut counts, _| {
                counts[read_damaged(&bytes, &order, &mut random) as usize] += 1;
                counts
            });
            assert!(counts.iter().all(|count| *count > rounds / 200), "{counts:?}");
        }
    }
}

/// What became of a damaged table.
#[derive(Clone, Copy)]
enum Fate {
    NotOpened,
    NotVerified,
    Verified,
}

fn read_damaged(bytes: &[u8], order: &InternalOrder, random: &mut Random) -> Fate {
    let mut damaged = bytes.to_vec();
    let groups = u64_at(bytes, bytes.len() - FOOTER_BYTES);
    for _ in 0..=random.below(3) {
        let (from, len) = match random.below(8) {
            0 => (bytes.len() - FOOTER_BYTES, 72),
            1 => (covered(bytes), bytes.len() - covered(bytes)),
            2 | 3 => (groups, covered(bytes) - groups),
            _ => (0, groups),
        };
        let at = from + random.below(len as u64) as usize;
        damaged[at] = match random.below(3) {
            0 => damaged[from + random.below(len as u64) as usize],
            1 => random.below(256) as u8,
            _ => damaged[at] ^ (1 << random.below(8)),
        };
    }
    mend(&mut damaged);
    let Ok(table) = open_fast(&damaged, &context(order)).inspect_err(assert_refused) else { return Fate::NotOpened };
    let read = read_all(&table, false).inspect_err(assert_refused);
    if table.verify().inspect_err(assert_refused).is_err() {
        return Fate::NotVerified;
    }
    let (entries, _) = read.expect("verified");
    assert!(entries.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_lt()));
    assert_eq!(read_all(&table, true).expect("verified").0, entries);
    Fate::Verified
}

#[test]
fn errors_name_the_file_and_the_place() {
    let order = InternalOrder::default();
    let (bytes, _) = small(&order, FAN);
    let error = |at: usize, value: u8| {
        let mut damaged = bytes.clone();
        damaged[at] = value;
        let read = open_fast(&damaged, &context(&order)).and_then(|table| read_all(&table, true).map(|_| ()));
        let error = read.expect_err("damaged");
        assert_eq!(error.path().map(|path| path.to_owned()), Some("t.sst".into()), "{error}");
        (error.offset(), error.message().to_owned())
    };
    let footer = bytes.len() - FOOTER_BYTES;
    assert_eq!(error(300, 99).0, Some(0), "the extent");
    assert_eq!(error(covered(&bytes), 99).0, Some(covered(&bytes) as u64), "the tail");
    let (offset, message) = error(footer + 2, 99);
    assert_eq!(offset, Some(footer as u64));
    assert!(message.contains("a footer that no file of"), "{message}");
    assert!(error(footer + 76, 2).1.contains("a fast table of format 2; 1 is known"));
}

/// An extent is checked once, by the first read that asks for it; the others by the reads that touch them.
#[test]
fn damage_is_found_where_it_is_read() {
    let order = InternalOrder::default();
    let entries: Vec<Entry> = (0..2000).map(|i| put(&format!("{i:05}"), 9, &"v".repeat(100))).collect();
    let mut bytes = write_fast(fast_config(&order), &entries, &[]).expect("written").bytes;
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let table = open_fast(&bytes, &context(&order)).expect("its tail is whole");
    let found: Vec<bool> =
        entries.iter().map(|(key, _)| common::get(&table, base::key::user_key(key), SeqNo::MAX).is_ok()).collect();
    let lost = found.iter().filter(|found| !**found).count();
    assert!(found[0] && found[1999] && (100..400).contains(&lost), "{lost}");
    assert_eq!(common::forward(&table).expect_err("walks into it").kind(), ErrorKind::Corruption);
    let options = TableReadOptions { verify_checksums: false, ..TableReadOptions::default() };
    let mut cursor = table.clone().cursor(&options);
    let first = cursor.seek_to_first();
    assert_eq!(walk(&mut *cursor, first, |cursor| cursor.next()).expect("read as it is").len(), 2000);
    assert_eq!(table.verify().expect_err("damaged").kind(), ErrorKind::Corruption);
}
