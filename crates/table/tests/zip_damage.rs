//! Damaged zip tables: an error, or, where nobody asked for checksums, other content; never a panic.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

mod common;

use std::sync::Arc;

use base::checksum::{crc32c, mask};
use base::options::FilterPolicy;
use base::tombstone::{Fragment, RangeTombstone};
use base::{Cursor, ErrorKind, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use common::conformance::orders;
use common::converted::{Random, context};
use common::zip::{open_zip, write_zip, zip_config};
use common::{Entry, key, put};
use table::{AnyTable, DumpPart, Table, TableReadOptions, ZipTable, dump_any};

const FOOTER_BYTES: usize = 112;

/// A small table's file with several groups and a filter; and what is in it.
fn small(order: &InternalOrder) -> (Vec<u8>, Vec<Entry>) {
    let mut entries = vec![put("", 7, "empty"), (key("ab", 4, ValueKind::Merge), b"+".to_vec())];
    entries.extend((5..30).map(|seq| put("ab", seq, "version")));
    entries.push((key("ab", 2, ValueKind::Deletion), Vec::new()));
    entries.extend((0..20).map(|i| put(&format!("xy{i:02}"), 20, "fan")));
    entries.sort_by(|a, b| order.compare(&a.0, &b.0));
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"abb".to_vec(), seq: SeqNo(9) };
    let mut config = zip_config(order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    (write_zip(config, &entries, &[tombstone]).expect("written").bytes, entries)
}

type Content = (Vec<Entry>, Vec<Fragment>);

/// Steps that no walk over a small table takes.
const STEPS_MAX: usize = 3000;

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
fn read_all(table: &Arc<ZipTable>, verify_checksums: bool) -> Result<Content> {
    let options = TableReadOptions { verify_checksums, ..TableReadOptions::default() };
    for (user_key, seq) in [(&b""[..], SeqNo::MAX), (b"ab", SeqNo::MAX), (b"ab", SeqNo(4)), (b"xy03", SeqNo(4))] {
        let mut shown = 0;
        table.get(&LookupKey::new(user_key, seq), &options, &mut |_, _, value| {
            std::hint::black_box(value.pin());
            shown += 1;
            shown < STEPS_MAX
        })?;
    }
    let lookups = [b"ab".as_slice(), b"abc", b"xy01"].map(|key| LookupKey::new(key, SeqNo(12)));
    let lookups: Vec<&LookupKey> = lookups.iter().collect();
    table.multi_get(&lookups, &options, &mut |_, _, _, _| true)?;
    let mut cursor = table.clone().cursor(&options);
    for target in [&key("ab", 12, ValueKind::Value), &key("xy05", 1, ValueKind::Value)] {
        let (_, _) = (cursor.seek(target), cursor.status()?);
        let (_, _) = (cursor.seek_for_prev(target), cursor.status()?);
    }
    if verify_checksums {
        table.anchors(4)?;
        table.approximate_offset(&key("xy03", 1, ValueKind::Value))?;
        for part in [DumpPart::Layout, DumpPart::Properties, DumpPart::Index, DumpPart::Tombstones] {
            dump_any(&AnyTable::Zip(table.clone()), part, &mut |_| true)?;
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
        let (bytes, entries) = small(&order);
        let context = context(&order);
        let whole = open_zip(&bytes, &context).expect("opens");
        assert_eq!(read_all(&whole, true).expect("whole").0, entries);
        let mut damaged = bytes.clone();
        for bit in 0..bytes.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            match open_zip(&damaged, &context) {
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
    let (bytes, _) = small(&order);
    for len in 0..bytes.len() {
        assert_refused(&open_zip(&bytes[..len], &context(&order)).map(|_| ()).expect_err("cut"));
    }
    let longer = [&bytes[..], &[0; 8]].concat();
    assert_refused(&open_zip(&longer, &context(&order)).map(|_| ()).expect_err("longer"));
    let mapping = Arc::new(common::fast::Mapped(longer));
    let opened = ZipTable::open(mapping, "t.sst".as_ref(), bytes.len() as u64, &context(&order));
    let error = opened.map(|_| ()).expect_err("longer than was said");
    assert!(error.to_string().contains("bytes instead of"), "{error}");
}

/// Where what has checksums ends.
fn covered(bytes: &[u8]) -> usize {
    let footer = &bytes[bytes.len() - FOOTER_BYTES..];
    footer.as_chunks::<8>().0[..5].iter().map(|part| u64::from_le_bytes(*part) as usize).fold(0, usize::wrapping_add)
}

/// Makes the checksums right again.
fn mend(bytes: &mut [u8]) {
    let (covered, footer) = (covered(bytes), bytes.len() - FOOTER_BYTES);
    if covered.checked_add(4).is_some_and(|end| end <= footer) {
        let crc = mask(crc32c(&bytes[..covered]));
        bytes[covered..covered + 4].copy_from_slice(&crc.to_le_bytes());
        let crc = mask(crc32c(&bytes[covered..footer + 96]));
        bytes[footer + 96..footer + 100].copy_from_slice(&crc.to_le_bytes());
    }
}

/// With right checksums damage reaches what follows references. Reads end, and what `verify` accepts is in order and reads
/// the same in both directions.
#[test]
fn damage_under_right_checksums_is_refused_or_read() {
    for order in orders() {
        let (bytes, _) = small(&order);
        let mut random = Random(1);
        let mut counts = [0, 0, 0];
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                let (from, len) = match random.below(8) {
                    0 => (bytes.len() - FOOTER_BYTES, 96),
                    1 => (covered(&bytes), bytes.len() - covered(&bytes)),
                    _ => (0, covered(&bytes)),
                };
                let at = from + random.below(len as u64) as usize;
                damaged[at] = match random.below(3) {
                    0 => damaged[from + random.below(len as u64) as usize],
                    1 => random.below(256) as u8,
                    _ => damaged[at] ^ (1 << random.below(8)),
                };
            }
            mend(&mut damaged);
            let Ok(table) = open_zip(&damaged, &context(&order)).inspect_err(assert_refused) else {
                counts[0] += 1;
                continue;
            };
            let read = read_all(&table, false).inspect_err(assert_refused);
            match table.verify().inspect_err(assert_refused) {
                Err(_) => counts[1] += 1,
                Ok(()) => {
                    let (entries, _) = read.expect("verified");
                    assert!(entries.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_lt()));
                    assert_eq!(read_all(&table, true).expect("verified").0, entries);
                    counts[2] += 1;
                }
            }
        }
        assert!(counts[0] > 1000 && counts[1] > 1000 && counts[2] > 100, "{counts:?}");
    }
}

#[test]
fn errors_name_the_file_and_the_place() {
    let order = InternalOrder::default();
    let (bytes, _) = small(&order);
    let error = |at: usize, value: u8| {
        let mut damaged = bytes.clone();
        damaged[at] = value;
        let read = open_zip(&damaged, &context(&order)).and_then(|table| read_all(&table, true).map(|_| ()));
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
    assert!(error(footer + 100, 2).1.contains("a zip table of format 2; 1 is known"));
}

/// An extent is checked once, by the first read that asks for it; the others by the reads that touch them.
#[test]
fn damage_is_found_where_it_is_read() {
    let order = InternalOrder::default();
    let mut random = Random(1);
    let mut noise = || (0..100).map(|_| random.below(256) as u8).collect();
    let entries: Vec<Entry> = (0..2000).map(|i| (key(&format!("{i:05}"), 9, ValueKind::Value), noise())).collect();
    let mut bytes = write_zip(zip_config(&order), &entries, &[]).expect("written").bytes;
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let table = open_zip(&bytes, &context(&order)).expect("its tail is whole");
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
