//! Damaged tables: correct data or an error, never a panic, never a wrong value, never memory beyond bounds.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use base::coding::put_varint64;
use base::options::{ChecksumKind, CompressionKind, FilterPolicy, IndexType};
use base::tombstone::RangeTombstone;
use base::{ErrorKind, Result, SeqNo};
use common::{Entry, backward, forward, get, open, put, write, write_with};
use table::{AnyTable, Table, TableBuilder, TableBuilderConfig, TableContext};

const FOOTER_BYTES: usize = 53;

fn tiny(compression: CompressionKind, index: IndexType) -> (Vec<u8>, Vec<Entry>) {
    let mut config = TableBuilderConfig::new("t.sst");
    config.compression = compression;
    config.options.block_size = 128;
    config.options.metadata_block_size = 64;
    config.options.index_type = index;
    config.options.filter_policy = FilterPolicy::bloom(10.0);
    config.options.partition_filters = index == IndexType::TwoLevel;
    let all: Vec<Entry> = (0..12).map(|i| put(&format!("key{i}"), 9, &format!("value-{i}-").repeat(5))).collect();
    let mut sorted = all;
    sorted.sort();
    let tombstone = RangeTombstone { start: b"x".to_vec(), end: b"y".to_vec(), seq: SeqNo(3) };
    (write_with(config, &sorted, |b| b.add_tombstone(&tombstone)).expect("writes").bytes, sorted)
}

/// Reads a table in every way there is; returns what a scan found.
fn read_all(bytes: &[u8]) -> Result<Vec<Entry>> {
    let table = open(bytes, &TableContext::default())?;
    let _ = table.verify();
    for user_key in [&b"key0"[..], b"key5", b"nothing", b""] {
        let _ = get(&table, user_key, SeqNo::MAX);
    }
    let _ = backward(&table);
    let _ = table.anchors(4);
    let _ = table.approximate_offset(&common::key("key5", 1, base::ValueKind::Value));
    for part in [table::DumpPart::Layout, table::DumpPart::Properties, table::DumpPart::Index, table::DumpPart::Entries]
    {
        let _ = table::dump_any(&AnyTable::BlockBased(table.clone()), part, &mut |_| true);
    }
    forward(&table)
}

fn assert_right_or_refused(what: &str, result: Result<Vec<Entry>>, expected: &[Entry]) {
    match result {
        Ok(found) => assert_eq!(found, expected, "{what}"),
        Err(error) => {
            let known =
                matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported | ErrorKind::InvalidArgument);
            assert!(known, "{what}: {error:?}");
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    let (bytes, expected) = tiny(CompressionKind::Lz4, IndexType::TwoLevel);
    assert_eq!(read_all(&bytes).expect("whole"), expected);
    for len in 0..bytes.len() {
        let error = read_all(&bytes[..len]).expect_err("truncated");
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{len}: {error:?}");
    }
}

#[test]
fn a_file_that_shrank_after_opening_is_refused() {
    let (bytes, _) = tiny(CompressionKind::None, IndexType::BinarySearch);
    let len = bytes.len() as u64;
    let file = std::sync::Arc::new(common::Bytes(bytes[..bytes.len() - 1].to_vec()));
    let error = table::BlockBasedTable::open(file, "t.sst".as_ref(), len, &TableContext::default()).map(|_| ());
    assert_eq!(error.expect_err("shorter").kind(), ErrorKind::Corruption);
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    for (compression, index) in [
        (CompressionKind::None, IndexType::BinarySearch),
        (CompressionKind::Zstd, IndexType::TwoLevel),
        (CompressionKind::Snappy, IndexType::BinarySearchWithFirstKey),
    ] {
        let (bytes, expected) = tiny(compression, index);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_right_or_refused(&format!("{compression:?} bit {bit}"), read_all(&damaged), &expected);
        }
    }
}

/// With checksums made right again, damage reaches the parsers. Values can then be wrong: but nothing panics.
#[test]
fn damage_under_a_right_checksum_does_not_panic() {
    for fixture in
        ["fv5-none-hashblock", "fv6-none-partitioned", "fv7-zstd-bloom", "fv5-none-firstkey", "fv2-none-bloom"]
    {
        let path = format!("{}/tests/fixtures/{fixture}.sst", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(path).expect("reads");
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        for _ in 0..1500 {
            let mut damaged = bytes.clone();
            // Checksum type 0 is "none": nothing but the parsers stands in the way.
            let footer = damaged.len() - FOOTER_BYTES;
            damaged[footer] = ChecksumKind::None as u8;
            // The meta blocks, at the end, matter most.
            let reach = if random() % 2 == 0 { footer } else { footer.min(3000) };
            for _ in 0..1 + random() % 3 {
                let at = footer - 1 - random() % reach;
                damaged[at] = match random() % 3 {
                    0 => 0xff,
                    1 => 0,
                    _ => damaged[at] ^ (1 << (random() % 8)),
                };
            }
            let _ = read_all(&damaged);
        }
    }
}

/// A table whose only data block is `block`, stored as `kind`.
fn with_block(block: &[u8], kind: u8) -> Vec<u8> {
    let mut config = TableBuilderConfig::new("t.sst");
    config.options.checksum = ChecksumKind::None;
    let value = vec![b'v'; 2000];
    let written = write(config, &[(common::key("key", 9, base::ValueKind::Value), value)]).expect("writes");
    let size = written.summary.properties.data_bytes as usize - 5;
    assert!(block.len() <= size);
    let mut bytes = written.bytes;
    // The block must keep its length: filler goes in front of a raw block's entries, behind a compressed one's.
    bytes[..size].fill(0);
    let start = if kind == 0 { size - block.len() } else { 0 };
    bytes[start..start + block.len()].copy_from_slice(block);
    bytes[size] = kind;
    bytes
}

#[test]
fn decompression_bombs_are_refused_unallocated() {
    for kind in [1u8, 2, 4, 5, 7] {
        for claim in [400_000_000u64, u64::from(u32::MAX)] {
            let mut bomb = Vec::new();
            put_varint64(&mut bomb, claim);
            let error = read_all(&with_block(&bomb, kind)).expect_err("a bomb");
            assert_eq!(error.kind(), ErrorKind::Corruption, "{kind}");
            assert_eq!(error.path().map(|p| p.to_path_buf()), Some("t.sst".into()), "{error}");
            assert_eq!(error.offset(), Some(0), "{error}");
        }
    }
    let error = read_all(&with_block(b"BZh", 3)).expect_err("bzip2");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn lying_block_footers_are_refused() {
    let footer = |word: u32| with_block(&word.to_le_bytes(), 0);
    for restarts in [0u32, 600, 10_000, (1 << 28) - 1] {
        assert_eq!(read_all(&footer(restarts)).expect_err("a lie").kind(), ErrorKind::Corruption, "{restarts}");
    }
    assert_eq!(read_all(&footer(1 | 1 << 30)).expect_err("reserved").kind(), ErrorKind::Corruption);
    assert_eq!(read_all(&footer(1 | 1 << 28)).expect_err("separated").kind(), ErrorKind::Unsupported);
    assert_eq!(read_all(&footer(1 | 1 << 31)).expect_err("no buckets").kind(), ErrorKind::Corruption);
    // A restart point far outside the entries.
    let outside = [u32::MAX.to_le_bytes(), 1u32.to_le_bytes()].concat();
    assert_eq!(read_all(&with_block(&outside, 0)).expect_err("outside").kind(), ErrorKind::Corruption);
}

#[test]
fn verify_notices_what_checksums_do_not() {
    let mut config = TableBuilderConfig::new("t.sst");
    config.options.checksum = ChecksumKind::None;
    config.options.block_size = 128;
    let all: Vec<Entry> = (0..40).map(|i| put(&format!("key{i:02}"), 9, "value")).collect();
    let bytes = write(config, &all).expect("writes").bytes;
    let change = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|window| window == from).expect("there");
        let mut changed = bytes.clone();
        changed[at..at + to.len()].copy_from_slice(to);
        open(&changed, &TableContext::default()).expect("opens").verify().expect_err("changed").to_string()
    };
    // The first key of a block raised above its successor's; and a kind turned from value to deletion.
    assert!(change(b"key00\x01", b"key09\x01").contains("not in order"));
    assert!(change(b"key00\x01\x09", b"key00\x00\x09").contains("deletions"));
}

#[test]
fn another_order_is_refused() {
    let (bytes, _) = tiny(CompressionKind::None, IndexType::BinarySearch);
    let order = base::InternalOrder::new(base::UserOrder::ReverseBytewise);
    let error =
        open(&bytes, &TableContext { order, ..TableContext::default() }).map(|_| ()).expect_err("another order");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("ReverseBytewise"), "{error}");
}
