//! Tables that RocksDB 11.9 wrote, in every format version and with every feature, read whole.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use base::options::{DataBlockIndexType, FilterPolicy, IndexType};
use base::{SeqNo, ValueKind};
use common::{Entry, check_reads, get, key, open, write};
use table::{Properties, Table, TableBuilderConfig, TableContext};

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut all: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("fixtures are there")
        .map(|entry| entry.expect("listed"))
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "sst"))
        .map(|entry| {
            (entry.file_name().into_string().expect("plain name"), std::fs::read(entry.path()).expect("reads"))
        })
        .collect();
    all.sort();
    all
}

/// What the fixtures' README says is in them, at sequence number `seq`.
fn expected(seq: u64) -> Vec<Entry> {
    (0..300)
        .map(|i| {
            let kind = match i % 50 {
                7 => ValueKind::Deletion,
                9 => ValueKind::Merge,
                _ => ValueKind::Value,
            };
            let value =
                if kind == ValueKind::Deletion { String::new() } else { format!("value-{i:06}|").repeat(1 + i % 7) };
            (key(&format!("key{i:06}"), seq, kind), value.into_bytes())
        })
        .collect()
}

#[test]
fn every_fixture_reads_whole() {
    let all = fixtures();
    assert!(all.len() >= 36, "only {} fixtures", all.len());
    for (name, bytes) in all {
        let table = open(&bytes, &TableContext::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        check_reads(&table, &expected(0));
        table.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
        let tombstones = table.tombstones();
        assert_eq!(tombstones.is_some(), name.contains("none-bloom") && !name.starts_with("fv2"), "{name}");
        if let Some(tombstones) = tombstones {
            assert_eq!(tombstones.covering(b"key000450", SeqNo::MAX), Some(SeqNo(0)), "{name}");
            assert_eq!(tombstones.covering(b"key000500", SeqNo::MAX), None, "{name}");
        }
    }
}

#[test]
fn filters_spare_most_absent_keys_their_blocks() {
    for (name, bytes) in fixtures() {
        let filtered = !name.contains("checksum");
        let table = open(&bytes, &TableContext::default()).expect("opens");
        assert_eq!(table.properties().filter_bytes > 0, filtered, "{name}");
        for i in 0..1000 {
            assert_eq!(get(&table, format!("key{i:06}x").as_bytes(), SeqNo::MAX).expect("reads"), [], "{name}");
        }
    }
}

/// Ingested tables are made of keys at 0; the MANIFEST says at which number they were taken in.
#[test]
fn an_ingested_table_takes_its_number_from_the_manifest() {
    let context = TableContext { largest_seq: Some(SeqNo(77)), ..TableContext::default() };
    let mut checked = BTreeSet::new();
    for (name, bytes) in fixtures() {
        let table = open(&bytes, &context).expect("opens");
        assert_eq!(table.global_seq(), Some(SeqNo(77)));
        check_reads(&table, &expected(77));
        table.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(get(&table, b"key000003", SeqNo(76)).expect("reads"), [], "{name}: not visible before");
        if let Some(tombstones) = table.tombstones() {
            assert_eq!(tombstones.covering(b"key000450", SeqNo(77)), Some(SeqNo(77)));
            assert_eq!(tombstones.covering(b"key000450", SeqNo(76)), None);
        }
        checked.insert(name);
    }
    assert!(checked.len() >= 36);
}

/// RocksDB 7.8 writes the number into the file and leaves the checksum of that block stale.
#[test]
fn a_patched_global_sequence_number_is_believed_in_spite_of_the_checksum() {
    for (name, mut bytes) in fixtures() {
        let property = b"external_sst_file.global_seqno";
        let suffix = b"file.global_seqno";
        // Names are delta-coded; the value follows the end of the name.
        let at = bytes.windows(suffix.len()).position(|w| w == suffix).map(|at| at + suffix.len());
        let Some(at) = at.filter(|&at| bytes[at..at + 8] == [0; 8]) else {
            panic!("{name} has no {}", String::from_utf8_lossy(property));
        };
        bytes[at..at + 8].copy_from_slice(&99u64.to_le_bytes());
        let table = open(&bytes, &TableContext::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(table.global_seq(), Some(SeqNo(99)), "{name}");
        let other = TableContext { largest_seq: Some(SeqNo(98)), ..TableContext::default() };
        assert!(open(&bytes, &other).is_err(), "{name}: two numbers");
        let checksummed = !name.contains("checksum0");
        bytes[at - 40] ^= 1;
        assert!(!checksummed || open(&bytes, &TableContext::default()).is_err(), "{name}: damage beside the number");
    }
}

/// The same entries, written here, give RocksDB's very data blocks.
#[test]
fn data_blocks_are_byte_for_byte_rocksdbs() {
    let cases = [
        ("fv5-none-bloom.sst", IndexType::BinarySearch, DataBlockIndexType::BinarySearch),
        ("fv5-none-firstkey.sst", IndexType::BinarySearchWithFirstKey, DataBlockIndexType::BinarySearch),
        ("fv5-none-hashblock.sst", IndexType::BinarySearch, DataBlockIndexType::BinaryAndHash),
    ];
    let all = fixtures();
    for (name, index_type, data_block_index_type) in cases {
        let (_, theirs) = all.iter().find(|(found, _)| found == name).expect("a fixture");
        let mut config = TableBuilderConfig::new("t.sst");
        config.options.block_size = 512;
        config.options.filter_policy = FilterPolicy::bloom(10.0);
        config.options.index_type = index_type;
        config.options.data_block_index_type = data_block_index_type;
        config.ingestable = true;
        let ours = write(config, &expected(0)).expect("writes");
        let p = &ours.summary.properties;
        let data_end = p.data_bytes as usize;
        let differs = ours.bytes[..data_end].iter().zip(&theirs[..data_end]).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name}: {data_end} bytes of data");
        let same_fields = |p: &Properties| {
            (p.data_bytes, p.filter_bytes, p.data_blocks, p.raw_key_bytes, p.raw_value_bytes, p.merge_operands)
        };
        let theirs = open(theirs, &TableContext::default()).expect("opens");
        let expected = (theirs.properties().range_deletions == 0).then(|| same_fields(theirs.properties()));
        assert!(expected.is_none_or(|expected| expected == same_fields(p)), "{name}: {p:?}");
    }
}
