//! Every way of writing a table, read back here and by RocksDB's own `sst_dump`.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::process::Command;
use std::sync::Arc;

use base::extend::BuiltinPrefix;
use base::options::{ChecksumKind, CompressionKind, DataBlockIndexType, FilterPolicy, IndexType};
use base::tombstone::RangeTombstone;
use base::{FamilyId, FileNumber, SeqNo, ValueKind};
use common::{Entry, Written, check_reads, forward, get, key, open, put, write, write_with};
use table::{BlockCache, ExternalFile, Table, TableBuilder, TableBuilderConfig, TableContext, TableOrigin};

const COMPRESSIONS: [CompressionKind; 6] = [
    CompressionKind::None,
    CompressionKind::Snappy,
    CompressionKind::Zlib,
    CompressionKind::Lz4,
    CompressionKind::Lz4hc,
    CompressionKind::Zstd,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Filter {
    None,
    Full,
    Partitioned,
    PrefixOnly,
}

fn config(index: IndexType, filter: Filter, compression: CompressionKind) -> TableBuilderConfig {
    let mut config = TableBuilderConfig::new("t.sst");
    config.compression = compression;
    config.options.block_size = 256;
    config.options.metadata_block_size = 128;
    config.options.index_type = index;
    config.options.verify_compression = true;
    if filter != Filter::None {
        config.options.filter_policy = FilterPolicy::bloom(10.0);
    }
    config.options.partition_filters = filter == Filter::Partitioned;
    config.options.whole_key_filtering = filter != Filter::PrefixOnly;
    if filter == Filter::PrefixOnly || index == IndexType::HashSearch {
        config.prefix_extractor = Some(Arc::new(BuiltinPrefix::Fixed(5)));
    }
    config
}

fn context(config: &TableBuilderConfig, cache: Option<Arc<BlockCache>>) -> TableContext {
    TableContext {
        prefix_extractor: config.prefix_extractor.clone(),
        cache_index_and_filter: cache.is_some(),
        cache,
        ..TableContext::default()
    }
}

/// Every combination of index and filter that the options allow.
fn layouts() -> Vec<(IndexType, Filter)> {
    let mut all = Vec::new();
    for &index in IndexType::ALL {
        for filter in [Filter::None, Filter::Full, Filter::Partitioned, Filter::PrefixOnly] {
            if filter != Filter::Partitioned || index == IndexType::TwoLevel {
                all.push((index, filter));
            }
        }
    }
    all
}

/// Plain keys, deletions and merges, one key in ten with several versions.
fn entries(count: usize) -> Vec<Entry> {
    let mut all = Vec::new();
    for i in 0..count {
        let user_key = format!("key{i:05}");
        let versions = if i % 10 == 3 { 12 } else { 1 };
        for seq in (0..versions).rev().map(|v| 1000 + i as u64 * 16 + v) {
            all.push(match (i + seq as usize) % 13 {
                5 => (key(&user_key, seq, ValueKind::Deletion), Vec::new()),
                7 => (key(&user_key, seq, ValueKind::Merge), b"+1".to_vec()),
                8 => (key(&user_key, seq, ValueKind::SingleDeletion), Vec::new()),
                _ => put(&user_key, seq, &format!("value {i} of {seq} ").repeat(1 + i % 4)),
            });
        }
    }
    all
}

#[test]
fn every_combination_reads_back() {
    let all = entries(60);
    let cache = Arc::new(BlockCache::new(8 << 20));
    let mut written = 0;
    for (index, filter) in layouts() {
        for compression in COMPRESSIONS {
            for &checksum in ChecksumKind::ALL {
                for hash in [DataBlockIndexType::BinarySearch, DataBlockIndexType::BinaryAndHash] {
                    for restart in [1, 3, 16] {
                        let mut config = config(index, filter, compression);
                        config.options.checksum = checksum;
                        config.options.data_block_index_type = hash;
                        config.options.block_restart_interval = restart;
                        config.options.index_block_restart_interval = restart;
                        let table = write(config.clone(), &all).expect("writes");
                        let cached = written % 2 == 0;
                        let mut context = context(&config, cached.then(|| cache.clone()));
                        context.mapping = (written % 3 == 1).then(|| common::mapping_of(&table.bytes) as _);
                        let opened = open(&table.bytes, &context);
                        let opened = opened.unwrap_or_else(|e| panic!("{config:?}: {e}", config = config.options));
                        if written % 7 == 0 {
                            check_reads(&opened, &all);
                            opened.verify().expect("verifies");
                        } else {
                            assert_eq!(forward(&opened).expect("reads"), all);
                            assert_eq!(get(&opened, b"key00013", SeqNo::MAX).expect("reads").len(), 12);
                        }
                        written += 1;
                    }
                }
            }
        }
    }
    assert!(written > 2000);
}

#[test]
fn every_format_version_reads_back() {
    let all = entries(80);
    for version in 2..=7 {
        for (index, filter) in layouts() {
            let mut config = config(index, filter, CompressionKind::Lz4);
            config.options.format_version = version;
            config.options.index_block_restart_interval = 4;
            let table = write(config.clone(), &all).expect("writes");
            let opened = open(&table.bytes, &context(&config, None)).expect("opens");
            check_reads(&opened, &all);
            opened.verify().expect("verifies");
        }
    }
}

#[test]
fn the_summary_tells_bounds_and_numbers() {
    let all = entries(50);
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(9999) };
    let config = config(IndexType::BinarySearch, Filter::Full, CompressionKind::None);
    let Written { bytes, summary } = write_with(config, &all, |b| b.add_tombstone(&tombstone)).expect("writes");
    assert_eq!(summary.file_bytes, bytes.len() as u64);
    assert_eq!(summary.point_bounds, Some((all[0].0.clone(), all[all.len() - 1].0.clone())));
    assert_eq!((summary.smallest_seq, summary.largest_seq), (SeqNo(1000), SeqNo(9999)));
    let table = open(&bytes, &TableContext::default()).expect("opens");
    assert_eq!(table.properties(), &summary.properties);
    assert_eq!(table.properties().entries, all.len() as u64 + 1);
    assert_eq!(table.tombstones().expect("one").covering(b"aa", SeqNo::MAX), Some(SeqNo(9999)));
}

#[test]
fn tables_without_point_entries_are_tables() {
    let empty = write(TableBuilderConfig::new("t.sst"), &[]).expect("writes");
    let table = open(&empty.bytes, &TableContext::default()).expect("opens");
    check_reads(&table, &[]);
    assert_eq!(empty.summary.point_bounds, None);
    let config = config(IndexType::TwoLevel, Filter::Partitioned, CompressionKind::Zstd);
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(3) };
    let only = write_with(config, &[], |b| b.add_tombstone(&tombstone)).expect("writes");
    let table = open(&only.bytes, &TableContext::default()).expect("opens");
    check_reads(&table, &[]);
    table.verify().expect("verifies");
    assert!(table.tombstones().is_some());
}

#[test]
fn keys_out_of_order_are_refused() {
    let wrong: [[Entry; 2]; 3] =
        [[put("b", 1, ""), put("a", 1, "")], [put("a", 1, ""), put("a", 1, "")], [put("a", 1, ""), put("a", 2, "")]];
    for pair in wrong {
        assert!(write(TableBuilderConfig::new("t.sst"), &pair).is_err());
    }
}

#[test]
fn prefix_filters_end_a_seek_within_the_prefix() {
    let all: Vec<Entry> = (0..200).map(|i| put(&format!("p{:04}-{i}", i / 5 * 2), 5, "v")).collect();
    for (index, filter) in [(IndexType::BinarySearch, Filter::PrefixOnly), (IndexType::TwoLevel, Filter::Partitioned)] {
        let mut config = config(index, filter, CompressionKind::None);
        config.prefix_extractor = Some(Arc::new(BuiltinPrefix::Fixed(5)));
        let table = write(config.clone(), &all).expect("writes");
        let opened = open(&table.bytes, &context(&config, None)).expect("opens");
        opened.verify().expect("verifies");
        let options = table::TableReadOptions { prefix_same_as_start: true, ..Default::default() };
        let mut cursor = opened.clone().cursor(&options);
        let (mut denied, mut absent) = (0, 0);
        for prefix in 0..80 {
            let target = base::LookupKey::new(format!("p{prefix:04}").as_bytes(), SeqNo::MAX);
            let found = cursor.seek_in_prefix(target.internal());
            if prefix % 2 == 0 {
                assert!(found && cursor.key().starts_with(target.user_key()), "{prefix}");
            } else {
                absent += 1;
                denied += usize::from(!found);
                assert!(prefix == 79 || cursor.seek(target.internal()), "a seek is bound to no prefix");
            }
        }
        assert!(denied * 10 > absent * 8, "{index:?}: only {denied} of {absent} absent prefixes were denied");
    }
}

#[test]
fn dictionaries_are_written_and_read() {
    let all: Vec<Entry> =
        (0..3000).map(|i| put(&format!("key{i:05}"), 7, &format!("customer-{:08x}-status-open", i * 7919))).collect();
    let mut sizes = Vec::new();
    for train in [0, 16 << 10] {
        let mut config = config(IndexType::BinarySearch, Filter::Full, CompressionKind::Zstd);
        config.compression_options.max_dict_bytes = 2048;
        config.compression_options.zstd_max_train_bytes = train;
        let table = write(config, &all).expect("writes");
        let opened = open(&table.bytes, &TableContext::default()).expect("opens");
        assert!(opened.memory_bytes() > 2000);
        check_reads(&opened, &all);
        opened.verify().expect("verifies");
        sizes.push(table.bytes);
    }
    let without = write(config(IndexType::BinarySearch, Filter::Full, CompressionKind::Zstd), &all).expect("writes");
    for bytes in sizes {
        assert!(bytes.len() < without.bytes.len(), "{} against {}", bytes.len(), without.bytes.len());
        rocksdb_reads("dictionary", &bytes, &all);
    }
}

#[test]
fn anchors_cut_a_table_evenly() {
    let all: Vec<Entry> = (0..5000).map(|i| put(&format!("key{i:05}"), 7, "some value")).collect();
    for index in [IndexType::BinarySearch, IndexType::TwoLevel] {
        let table = write(config(index, Filter::None, CompressionKind::None), &all).expect("writes");
        let opened = open(&table.bytes, &TableContext::default()).expect("opens");
        let anchors = opened.anchors(8).expect("reads");
        assert!((6..=8).contains(&anchors.len()), "{}", anchors.len());
        assert!(anchors.is_sorted());
        let mut before = 0;
        for (user_key, end) in &anchors {
            let share = end - before;
            assert!(share * 8 < opened.properties().data_bytes * 2, "{share}");
            before = *end;
            let near = opened.approximate_offset(base::LookupKey::new(user_key, SeqNo::MAX).internal()).expect("reads");
            assert!(near <= *end && near + 600 > *end, "{near} {end}");
        }
        let past = base::LookupKey::new(b"zzz", SeqNo::MAX);
        assert_eq!(opened.approximate_offset(past.internal()).expect("reads"), opened.properties().data_bytes);
    }
}

/// Runs `sst_dump` on a table; `None` where it is not installed.
fn sst_dump(bytes: &[u8], arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("000001.sst");
    std::fs::write(&path, bytes).expect("writes");
    let output = Command::new("sst_dump").arg(format!("--file={}", path.display())).args(arguments).output();
    let Ok(output) = output else {
        println!("sst_dump is not installed: RocksDB's view of the tables is not checked");
        return None;
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {text}");
    Some(text)
}

/// Has RocksDB verify the table and list its entries, which must be `entries`.
fn rocksdb_reads(what: &str, bytes: &[u8], entries: &[Entry]) {
    let Some(text) = sst_dump(bytes, &["--command=verify"]) else { return };
    assert!(text.contains("The file is ok"), "{what}: {text}");
    let text = sst_dump(bytes, &["--command=scan", "--output_hex"]).expect("installed");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("' seq:")).collect();
    assert_eq!(lines.len(), entries.len(), "{what}: {text}");
    for (line, (key, value)) in lines.iter().zip(entries) {
        let entry = base::ParsedKey::parse(key).expect("well formed");
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        let expected =
            format!("'{}' seq:{}, type:{} => {}", hex(entry.user_key), entry.seq, entry.kind as u8, hex(value));
        assert_eq!(line.trim_end(), expected.trim_end(), "{what}");
    }
}

#[test]
fn rocksdb_reads_every_layout_in_every_compression() {
    let all = entries(120);
    for (index, filter) in layouts() {
        for compression in COMPRESSIONS {
            let config = config(index, filter, compression);
            let table = write(config, &all).expect("writes");
            rocksdb_reads(&format!("{index:?} {filter:?} {compression:?}"), &table.bytes, &all);
        }
    }
}

#[test]
fn rocksdb_reads_every_checksum_version_and_block_kind() {
    let all = entries(120);
    for &checksum in ChecksumKind::ALL {
        for version in 2..=5 {
            let mut config = config(IndexType::TwoLevel, Filter::Partitioned, CompressionKind::Snappy);
            config.options.checksum = checksum;
            config.options.format_version = version;
            config.options.index_block_restart_interval = version as usize;
            config.options.data_block_index_type = DataBlockIndexType::BinaryAndHash;
            let table = write(config, &all).expect("writes");
            rocksdb_reads(&format!("{checksum:?} version {version}"), &table.bytes, &all);
        }
    }
}

#[test]
fn rocksdb_sees_the_properties() {
    let all = entries(120);
    let mut config = config(IndexType::BinarySearch, Filter::Full, CompressionKind::Zstd);
    config.merge_operator = "UInt64AddOperator".to_string();
    config.origin = TableOrigin {
        value_times: false,
        family: Some(FamilyId(3)),
        family_name: "second".to_string(),
        db_id: "12345678-1234-1234-1234-123456789012".to_string(),
        session_id: "ABCDEFGHIJ0123456789".to_string(),
        host_id: "host".to_string(),
        file_number: FileNumber(42),
        creation_time_s: 1_700_000_000,
        oldest_key_time_s: 1_600_000_000,
        file_creation_time_s: 1_700_000_001,
    };
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(3) };
    let table = write_with(config, &all, |b| b.add_tombstone(&tombstone)).expect("writes");
    let Some(text) = sst_dump(&table.bytes, &["--command=none", "--show_properties"]) else { return };
    let expected = [
        format!("# entries: {}", all.len() + 1),
        "# range deletions: 1".to_string(),
        "column family ID: 3".to_string(),
        "column family name: second".to_string(),
        "comparator name: leveldb.BytewiseComparator".to_string(),
        "merge operator name: UInt64AddOperator".to_string(),
        "filter policy name: bloomfilter".to_string(),
        "SST file compression algo: ZSTD".to_string(),
        "creation time: 1700000000".to_string(),
        "time stamp of earliest key: 1600000000".to_string(),
        "file creation time: 1700000001".to_string(),
        "DB session identity: ABCDEFGHIJ0123456789".to_string(),
        "original file number: 42".to_string(),
    ];
    for line in expected {
        assert!(text.contains(&line), "no `{line}` in {text}");
    }
    assert!(!text.contains("unique ID: N/A"), "{text}");
}

#[test]
fn an_ingestable_table_says_so_and_has_no_numbers() {
    let mut config = config(IndexType::BinarySearch, Filter::Full, CompressionKind::None);
    config.ingestable = true;
    assert!(write(config.clone(), &[put("a", 1, "")]).is_err(), "only number 0");
    let all: Vec<Entry> = (0..100).map(|i| put(&format!("key{i:05}"), 0, "value")).collect();
    let table = write(config, &all).expect("writes");
    let opened = open(&table.bytes, &TableContext::default()).expect("opens");
    assert_eq!(opened.properties().external, Some(ExternalFile { version: 2, global_seqno: 0 }));
    rocksdb_reads("ingestable", &table.bytes, &all);
}
