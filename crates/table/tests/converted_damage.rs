//! Damaged converted tables: an error, or the same content; never a panic.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

mod common;

use std::path::Path;
use std::sync::Arc;

use base::checksum::{crc32c, mask};
use base::tombstone::{Fragment, RangeTombstone};
use base::{ErrorKind, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use common::converted::{How, Made, REPRESENTATIONS, Random, TABLE, make, reopened};
use common::{Entry, backward, forward, get, key, put};
use table::{AnyTable, ConvertedTable, DumpPart, Table, TableReadOptions, dump_any};
use vfs::{MemoryVfs, Vfs};

const FOOTER_BYTES: usize = 64;

/// A small table's file: a bit of everything.
fn small(representation: &str) -> (Vec<u8>, Vec<Entry>) {
    let mut entries = vec![
        put("", 7, "empty"),
        put("ab", 14, "new"),
        put("ab", 13, "newer"),
        put("ab", 12, "again"),
        put("ab", 11, "again"),
        (key("ab", 5, ValueKind::Deletion), Vec::new()),
        (key("ab", 4, ValueKind::Merge), b"+".to_vec()),
        put("abc", 3, "three"),
    ];
    entries.extend((0..6).map(|i| put(&format!("xy{i}"), 20 + i, "fan")));
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"abb".to_vec(), seq: SeqNo(9) };
    let Made { vfs, .. } = make((representation, How::Dump), &InternalOrder::default(), &entries, &[tombstone]);
    (vfs.read_file(Path::new(TABLE)).expect("there"), entries)
}

type Content = (Vec<Entry>, Vec<Fragment>);

/// Opens a file and reads it in every way there is; returns what a scan found.
fn read_all(vfs: &MemoryVfs, bytes: &[u8]) -> Result<Content> {
    vfs.write_file(Path::new(TABLE), bytes)?;
    let table = reopened(vfs, &InternalOrder::default())?;
    table.verify()?;
    Ok(content(&table))
}

fn content(table: &Arc<ConvertedTable>) -> Content {
    for user_key in [&b""[..], b"ab", b"xy3", b"nothing"] {
        let _ = get(table, user_key, SeqNo::MAX);
        let _ = get(table, user_key, SeqNo(4));
    }
    let lookups = [b"ab".as_slice(), b"abc", b"xy1"].map(|key| LookupKey::new(key, SeqNo(12)));
    let lookups: Vec<&LookupKey> = lookups.iter().collect();
    table.multi_get(&lookups, &TableReadOptions::default(), &mut |_, _, _, _| true).expect("reads");
    let _ = table.anchors(4);
    let _ = table.approximate_offset(&key("xy3", 1, ValueKind::Value));
    for part in [DumpPart::Layout, DumpPart::Properties, DumpPart::Entries, DumpPart::Tombstones] {
        dump_any(&AnyTable::Converted(table.clone()), part, &mut |_| true).expect("reads");
    }
    let forward = forward(table).expect("reads");
    let mut backward = backward(table).expect("reads");
    backward.reverse();
    assert_eq!(forward, backward);
    (forward, table.tombstones().map(|all| all.fragments().to_vec()).unwrap_or_default())
}

fn assert_refused(error: &base::Error) {
    let known = [ErrorKind::Corruption, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
    assert!(known.contains(&error.kind()), "{error}");
}

#[test]
fn every_flipped_bit_is_refused_or_harmless() {
    for representation in REPRESENTATIONS {
        let (bytes, entries) = small(representation);
        let vfs = MemoryVfs::new(1);
        let whole = read_all(&vfs, &bytes).expect("whole");
        assert_eq!(whole.0, entries);
        let mut damaged = bytes.clone();
        let (mut refused, mut harmless) = (0, 0);
        for bit in 0..bytes.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read_all(&vfs, &damaged) {
                Ok(content) => {
                    assert!(content == whole, "bit {bit}");
                    harmless += 1;
                }
                Err(error) => {
                    assert_refused(&error);
                    refused += 1;
                }
            }
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        let padding = tail_at(&bytes) - image_bytes(&bytes);
        assert_eq!(harmless, padding * 8, "only what lies between image and tail");
        assert!(refused > 0);
    }
}

#[test]
fn every_truncation_and_every_lengthening_is_refused() {
    for representation in REPRESENTATIONS {
        let (bytes, _) = small(representation);
        let vfs = MemoryVfs::new(1);
        for len in 0..bytes.len() {
            vfs.write_file(Path::new(TABLE), &bytes[..len]).expect("written");
            let table = open_converted(&vfs, len as u64);
            assert_refused(&table.map(|_| ()).expect_err("cut"));
        }
        let longer = [&bytes[..], &[0; 8]].concat();
        vfs.write_file(Path::new(TABLE), &longer).expect("written");
        assert_refused(&open_converted(&vfs, longer.len() as u64).map(|_| ()).expect_err("longer"));
        let other_size = open_converted(&vfs, bytes.len() as u64).map(|_| ()).expect_err("longer than was said");
        assert!(other_size.to_string().contains("bytes instead of"), "{other_size}");
    }
}

/// As a converted table, whatever its magic number.
fn open_converted(vfs: &MemoryVfs, bytes: u64) -> Result<Arc<ConvertedTable>> {
    let path = Path::new(TABLE);
    let context = common::converted::context(&InternalOrder::default());
    ConvertedTable::open(vfs.open(path)?, vfs.map_read(path)?, path, bytes, &context)
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a number")) as usize
}

fn image_bytes(bytes: &[u8]) -> usize {
    u64_at(bytes, bytes.len() - FOOTER_BYTES)
}

fn tail_at(bytes: &[u8]) -> usize {
    u64_at(bytes, bytes.len() - FOOTER_BYTES + 8)
}

/// Makes the checksums right again.
fn mend(bytes: &mut [u8]) {
    let footer = bytes.len() - FOOTER_BYTES;
    let (image, checksums) = (image_bytes(bytes), tail_at(bytes));
    if image <= bytes.len() && checksums + 4 <= footer {
        let crc = mask(crc32c(&bytes[..image]));
        bytes[checksums..checksums + 4].copy_from_slice(&crc.to_le_bytes());
    }
    if checksums <= footer {
        let crc = mask(crc32c(&bytes[checksums..footer + 48]));
        bytes[footer + 48..footer + 52].copy_from_slice(&crc.to_le_bytes());
    }
}

/// With right checksums damage reaches the checker of images. Content can then be another: but it is in order, and reads
/// end.
#[test]
fn damage_under_right_checksums_is_refused_or_read() {
    let order = InternalOrder::default();
    for representation in REPRESENTATIONS {
        let (bytes, _) = small(representation);
        let vfs = MemoryVfs::new(1);
        let mut random = Random(1);
        let mut counts = [0, 0];
        let tail = tail_at(&bytes);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                let (from, len) = match random.below(8) {
                    0 => (tail, bytes.len() - tail),
                    1 => (0, image_bytes(&bytes)),
                    _ => (4096, image_bytes(&bytes) - 4096),
                };
                let at = from + random.below(len as u64) as usize;
                damaged[at] = match random.below(3) {
                    0 => damaged[from + random.below(len as u64) as usize],
                    1 => random.below(256) as u8,
                    _ => damaged[at] ^ (1 << random.below(8)),
                };
            }
            mend(&mut damaged);
            match read_all(&vfs, &damaged) {
                Ok((entries, _)) => {
                    assert!(entries.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_le()));
                    counts[0] += 1;
                }
                Err(error) => {
                    assert_refused(&error);
                    counts[1] += 1;
                }
            }
        }
        assert!(counts[0] > 100 && counts[1] > 1000, "{counts:?}");
    }
}

#[test]
fn errors_name_the_file_and_the_place() {
    let (bytes, _) = small("trie");
    let vfs = MemoryVfs::new(1);
    let error = |at: usize, value: u8| {
        let mut damaged = bytes.clone();
        damaged[at] = value;
        let error = read_all(&vfs, &damaged).expect_err("damaged");
        assert_eq!(error.path().map(|path| path.to_owned()), Some(TABLE.into()), "{error}");
        (error.offset(), error.message().to_owned())
    };
    let footer = bytes.len() - FOOTER_BYTES;
    assert_eq!(error(4200, 99).0, Some(0), "the extent");
    let tail = tail_at(&bytes);
    assert_eq!(error(tail, 99).0, Some(tail as u64), "the tail");
    let (offset, message) = error(footer + 2, 99);
    assert_eq!(offset, Some(footer as u64));
    assert!(message.contains("a footer that no file of"), "{message}");
    assert!(error(footer + 52, 2).1.contains("a converted table of format 2; 1 is known"));
}

/// What changes in the file while the table is open is found by `verify`, whatever is read.
#[test]
fn verify_looks_at_the_file() {
    let (bytes, entries) = small("trie");
    let vfs = MemoryVfs::new(1);
    vfs.write_file(Path::new(TABLE), &bytes).expect("written");
    let table = reopened(&*vfs, &InternalOrder::default()).expect("opens");
    for at in [4200, tail_at(&bytes), bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        vfs.write_file(Path::new(TABLE), &damaged).expect("written");
        assert_eq!(table.verify().expect_err("damaged").kind(), ErrorKind::Corruption, "{at}");
    }
    assert_eq!(forward(&table).expect("in memory still"), entries);
}
