//! A fast table reads as a block-based table of the same entries.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base::extend::{BuiltinPrefix, PrefixExtractor};
use base::key::user_key;
use base::metrics::{Statistics, Ticker};
use base::options::FilterPolicy;
use base::tombstone::RangeTombstone;
use base::{Cursor, ErrorKind, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind};
use common::conformance::{block_based, compare_cursors, compare_lookups, compare_properties, hexdump, orders};
use common::converted::{Random, context, random_entries, random_tombstones};
use common::fast::{fast_config, fast_table, open_fast, write_fast};
use common::{Entry, Shared, check_reads, forward, get, key, put};
use table::{AnyTable, BlockBasedTable, BoundedTable, DumpPart, FastTableBuilder, Table, TableBuilder};
use table::{TableBuilderConfig, TableContext, TablePart, TableReadOptions, dump_any, open_any};
use vfs::{AppendFile, Fault, FaultCode, FaultVfs, IfExists, MemoryVfs, Operation, Rule, Vfs};

#[test]
fn all_reads_are_those_of_a_block_based_table() {
    for (seed, order) in orders().into_iter().enumerate() {
        for count in [1, 2, 31, 32, 33, 65, 600, 3000] {
            let mut random = Random(seed as u64 + count);
            let entries = random_entries(&mut random, count, &order);
            let tombstones = random_tombstones(&mut random, 8, &order);
            let expected: Arc<dyn Table> = block_based(&order, &entries, &tombstones);
            let written = write_fast(fast_config(&order), &entries, &tombstones).expect("written");
            assert_eq!(written.summary.file_bytes, written.bytes.len() as u64);
            let bounds = (entries[0].0.clone(), entries[entries.len() - 1].0.clone());
            assert_eq!(written.summary.point_bounds, Some(bounds));
            let table = open_fast(&written.bytes, &context(&order)).expect("opens");
            table.verify().expect("whole");
            if order.user.name() == UserOrder::BYTEWISE_NAME {
                check_reads(&table, &entries);
            }
            compare_properties(table.properties(), expected.properties());
            let table: Arc<dyn Table> = table;
            compare_cursors(&table, &expected, &entries, &mut random);
            compare_lookups(&table, &expected, &entries, &order);
            let fragments = |table: &dyn Table| table.tombstones().map(|all| all.fragments().to_vec());
            assert_eq!(fragments(&*table), fragments(&*expected));
        }
    }
}

/// Keys of one kind, distinct: what indexes by the first bytes find easy, and what they find hard.
fn keys_of(shape: u64, count: u64, random: &mut Random) -> Vec<Vec<u8>> {
    let mut number = || (random.below(1 << 31) << 31) | random.below(1 << 31);
    let key = |nth: u64| -> Vec<u8> {
        match shape {
            0 => number().to_be_bytes().iter().chain(&number().to_be_bytes()).copied().collect(),
            1 => format!("user{:016}", nth * 7).into_bytes(),
            2 => number().to_be_bytes().to_vec(),
            // Long equal beginnings at three depths.
            3 => format!("{}/{}/{}", "tenant".repeat(1 + nth as usize % 3), "row-".repeat(20), nth % 97 * nth).into(),
            // Nothing but zeros, and keys that are the beginnings of others.
            4 => vec![0; nth as usize % 300],
            _ => vec![b"ab"[(nth % 2) as usize]; nth as usize % 40],
        }
    };
    (0..count).map(key).collect()
}

/// Against the definition, for keys of many shapes with many versions.
#[test]
fn lookups_and_seeks_agree_with_a_sorted_map() {
    for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise].map(InternalOrder::new) {
        for shape in 0..6 {
            let mut random = Random(shape);
            let mut versions: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for key in keys_of(shape, 1500, &mut random) {
                let seqs = versions.entry(key).or_default();
                let count = if random.below(50) == 0 { 40 } else { random.below(3) + 1 };
                seqs.extend((0..count).map(|_| random.below(1000)));
            }
            let mut entries: Vec<Entry> = Vec::new();
            for (key, seqs) in &mut versions {
                seqs.sort_unstable_by(|a, b| b.cmp(a));
                seqs.dedup();
                let value = |seq| format!("{seq}").into_bytes();
                entries
                    .extend(seqs.iter().map(|&seq| (base::key::encode(key, SeqNo(seq), ValueKind::Value), value(seq))));
            }
            entries.sort_by(|a, b| order.compare(&a.0, &b.0));
            let table = fast_table(&order, &entries, &[]);
            table.verify().expect("whole");
            assert_eq!(forward(&table).expect("reads"), entries);
            let mut cursor = table.clone().cursor(&TableReadOptions::default());
            for (key, seqs) in &versions {
                let seq = random.below(1000);
                let found: Vec<u64> = get(&table, key, SeqNo(seq)).expect("reads").iter().map(|v| v.0.0).collect();
                assert_eq!(found, seqs.iter().copied().filter(|&of| of <= seq).collect::<Vec<u64>>());
                let mut absent = key.clone();
                match random.below(3) {
                    0 => absent.push(random.below(256) as u8),
                    1 => drop(absent.pop()),
                    _ => absent.iter_mut().last().into_iter().for_each(|last| *last = random.below(256) as u8),
                }
                if !versions.contains_key(&absent) {
                    assert_eq!(get(&table, &absent, SeqNo::MAX).expect("reads"), []);
                }
                let target = LookupKey::new(&absent, SeqNo(random.below(1000)));
                let at = entries.partition_point(|entry| order.compare(&entry.0, target.internal()).is_lt());
                assert_eq!(cursor.seek(target.internal()), at < entries.len());
                assert_eq!(cursor.key(), entries.get(at).map_or(&[][..], |entry| &entry.0));
                let before = entries.partition_point(|entry| order.compare(&entry.0, target.internal()).is_le());
                assert_eq!(cursor.seek_for_prev(target.internal()), before > 0);
                assert_eq!(cursor.key(), before.checked_sub(1).map_or(&[][..], |before| &entries[before].0));
            }
        }
    }
}

#[test]
fn a_table_of_several_levels_is_whole() {
    for order in orders() {
        let mut entries: Vec<Entry> = (0..40_000).map(|i| put(&format!("{:07}", i * 13), 9, "v")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let table = fast_table(&order, &entries, &[]);
        table.verify().expect("whole");
        let mut lines = Vec::new();
        let mut note = |line: &str| {
            lines.push(line.to_owned());
            true
        };
        dump_any(&AnyTable::Fast(table.clone()), DumpPart::Layout, &mut note).expect("whole");
        assert!(lines[2].starts_with("levels of nodes: 2,"), "{lines:?}");
        let mut cursor = table.clone().cursor(&TableReadOptions::default());
        for (nth, (key, value)) in entries.iter().enumerate() {
            assert_eq!(get(&table, user_key(key), SeqNo::MAX).expect("reads")[0].2, *value);
            if nth % 7 == 0 {
                assert!(cursor.seek(key) && cursor.key() == key && cursor.prev() == (nth > 0));
                assert!(cursor.seek_for_prev(key) && cursor.key() == key);
            }
        }
    }
}

#[test]
fn large_entries_and_long_keys_have_their_groups() {
    let order = InternalOrder::default();
    let long = "k".repeat(70_000);
    let mut entries: Vec<Entry> = (0..40).map(|i| put(&format!("{long}{i:02}"), 5, "after a long prefix")).collect();
    entries.extend((0..40).map(|i| put(&format!("value {i:02}"), 5, &"v".repeat(i * 9000))));
    let written = write_fast(fast_config(&order), &entries, &[]).expect("written");
    let table = open_fast(&written.bytes, &context(&order)).expect("opens");
    table.verify().expect("whole");
    check_reads(&table, &entries);
}

#[test]
fn tables_without_points_and_without_anything_are_tables() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(3) };
    for tombstones in [&[][..], std::slice::from_ref(&tombstone)] {
        let written = write_fast(fast_config(&order), &[], tombstones).expect("written");
        assert_eq!(written.summary.point_bounds, None);
        assert_eq!(written.summary.properties.entries, tombstones.len() as u64);
        let table = open_fast(&written.bytes, &context(&order)).expect("opens");
        check_reads(&table, &[]);
        table.verify().expect("whole");
        assert_eq!(table.tombstones().is_some(), !tombstones.is_empty());
        assert_eq!((table.anchors(5).expect("none"), table.approximate_offset(&[]).expect("none")), (vec![], 0));
    }
}

#[test]
fn long_values_are_pinned_without_a_copy_and_outlive_the_table() {
    let order = InternalOrder::default();
    let table = fast_table(&order, &[put("long", 2, &"v".repeat(5000)), put("short", 1, "v")], &[]);
    let mut pins = Vec::new();
    for (name, is_shared) in [(&b"long"[..], true), (b"short", false)] {
        let mut visit = |_, _, value: table::TableValue<'_>| {
            let pinned = value.pin();
            assert_eq!(pinned.as_ptr() == value.bytes.as_ptr(), is_shared);
            pins.push(pinned);
            true
        };
        table.get(&LookupKey::new(name, SeqNo::MAX), &TableReadOptions::default(), &mut visit).expect("reads");
    }
    drop(table);
    assert_eq!((&*pins[0], &*pins[1]), ("v".repeat(5000).as_bytes(), &b"v"[..]));
}

#[test]
fn offsets_and_anchors_ascend_and_are_near_the_share_of_entries() {
    for order in orders() {
        let mut entries: Vec<Entry> =
            (0..4000).map(|i| put(&format!("key{i:04}"), 9, "value of some length")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let table = fast_table(&order, &entries, &[]);
        let bytes = table.properties().data_bytes;
        for (i, (key, _)) in entries.iter().enumerate() {
            let (offset, share) = (table.approximate_offset(key).expect("known"), bytes * i as u64 / 4000);
            assert!(offset.abs_diff(share) <= bytes / 100, "{i}: {offset} of {bytes}");
        }
        let last = user_key(&entries[3999].0);
        let past = base::key::encode(last, SeqNo::ZERO, ValueKind::Deletion);
        assert_eq!(table.approximate_offset(&past).expect("known"), bytes);
        for max in [0, 1, 2, 7, 100, 10_000] {
            let anchors = table.anchors(max).expect("known");
            assert!(anchors.len() <= max && anchors.len() >= max.min(200) / 2, "{max}: {}", anchors.len());
            assert!(anchors.is_sorted_by(|a, b| order.user.compare(&a.0, &b.0).is_lt() && a.1 < b.1));
            for (key, end) in &anchors {
                let before = entries.partition_point(|e| order.user.compare(user_key(&e.0), key).is_le()) as u64;
                assert!(end.abs_diff(bytes * before / 4000) <= bytes / 100, "{end} of {bytes}");
            }
        }
    }
}

#[test]
fn a_part_of_a_fast_table_is_a_table() {
    let order = InternalOrder::default();
    let entries = random_entries(&mut Random(5), 300, &order);
    let written = write_fast(fast_config(&order), &entries, &[]).expect("written");
    let file_bytes = written.summary.file_bytes;
    let (smallest, largest) = (entries[100].0.clone(), entries[200].0.clone());
    let part = TablePart { smallest, largest, bytes: file_bytes / 3, file_bytes };
    let table = open_fast(&written.bytes, &context(&order)).expect("opens");
    check_reads(&BoundedTable::new(table, order, part).expect("known"), &entries[100..=200]);
}

#[test]
fn the_magic_number_and_the_order_choose_the_reader() {
    let order = InternalOrder::default();
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/t.sst");
    let written = write_fast(fast_config(&order), &[put("a", 2, "1")], &[]).expect("written");
    vfs.write_file(path, &written.bytes).expect("written");
    let (file, bytes) = (vfs.open(path).expect("there"), written.bytes.len() as u64);
    let error =
        BlockBasedTable::open(file.clone(), path, bytes, &context(&order)).map(|_| ()).expect_err("another kind");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let table = open_any(&*vfs, file, path, bytes, &context(&order)).expect("opens");
    assert!(matches!(table, AnyTable::Fast(_)) && table.table().properties().entries == 1);
    for other in orders().into_iter().skip(1) {
        let error = open_fast(&written.bytes, &context(&other)).map(|_| ()).expect_err("another order");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_dump_shows_what_is_there() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"m".to_vec(), end: b"n".to_vec(), seq: SeqNo(3) };
    let table = fast_table(&order, &[put("a", 2, "1")], &[tombstone]);
    let text = |part| {
        let mut text = String::new();
        dump_any(&AnyTable::Fast(table.clone()), part, &mut |line| {
            text.push_str(line);
            text.push('\n');
            true
        })
        .expect("whole");
        text
    };
    assert!(text(DumpPart::Layout).contains("a fast table\n"));
    assert!(text(DumpPart::Properties).contains("entries: 2\ndeletions: 1\n"));
    assert_eq!(text(DumpPart::Index), "0+30: 1 entries from a @ 2 : Value\n");
    assert_eq!(text(DumpPart::Entries), "a @ 2 : Value => 1\n");
    assert_eq!(text(DumpPart::Tombstones), "[m, n) at 3\n");
}

/// A table made to be ingested has its number from the MANIFEST, as a block-based one has.
#[test]
fn an_ingested_table_has_one_number() {
    for order in orders() {
        let mut entries: Vec<Entry> = (0..500).map(|i| put(&format!("k{i:03}"), 0, "v")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo::ZERO };
        let config = TableBuilderConfig { ingestable: true, ..fast_config(&order) };
        let written = write_fast(config.clone(), &entries, std::slice::from_ref(&tombstone)).expect("written");
        let blocks = common::write_with(config.clone(), &entries, |b| b.add_tombstone(&tombstone)).expect("written");
        let context = TableContext { largest_seq: Some(SeqNo(100)), ..context(&order) };
        let table: Arc<dyn Table> = open_fast(&written.bytes, &context).expect("opens");
        let expected: Arc<dyn Table> = common::open(&blocks.bytes, &context).expect("opens");
        compare_cursors(&table, &expected, &entries, &mut Random(3));
        compare_lookups(&table, &expected, &entries, &order);
        let numbers = |table: &dyn Table| table.tombstones().map(|all| all.fragments().to_vec());
        // The order without a name for bytes turns the tombstone round: none is left.
        assert_eq!(numbers(&*table), numbers(&*expected));
        let error = write_fast(config, &[put("a", 1, "v")], &[]).map(|_| ()).expect_err("a number of its own");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn filters_keep_lookups_of_absent_keys_away() {
    let order = InternalOrder::default();
    let entries: Vec<Entry> = (0..2000).map(|i| put(&format!("{i:05}-suffix"), 9, "v")).collect();
    let mut config = fast_config(&order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    config.options.partition_filters = true;
    let written = write_fast(config.clone(), &entries, &[]).expect("written");
    let statistics = Arc::new(Statistics::default());
    let context = TableContext { statistics: Some(statistics.clone()), ..context(&order) };
    let table = open_fast(&written.bytes, &context).expect("opens");
    table.verify().expect("whole");
    check_reads(&table, &entries);
    assert_eq!(table.properties().filter_entries, 2000);
    let before = statistics.count(Ticker::BloomFilterUseful);
    for i in 0..1000 {
        assert_eq!(get(&table, format!("{i:05}-absent").as_bytes(), SeqNo::MAX).expect("reads"), []);
    }
    assert!(statistics.count(Ticker::BloomFilterUseful) - before > 950);
    assert!(statistics.count(Ticker::BloomFilterFullTruePositive) >= 2000);
}

#[test]
fn a_prefix_filter_ends_seeks() {
    let order = InternalOrder::default();
    let entries: Vec<Entry> = (0..2000).map(|i| put(&format!("{:04}{i}", i / 10 * 2), 9, "v")).collect();
    let extractor: Arc<dyn PrefixExtractor> = Arc::new(BuiltinPrefix::Fixed(4));
    let mut config = fast_config(&order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    config.options.whole_key_filtering = false;
    config.prefix_extractor = Some(extractor.clone());
    let mut sorted = entries;
    sorted.sort();
    let written = write_fast(config, &sorted, &[]).expect("written");
    let context = TableContext { prefix_extractor: Some(extractor), ..context(&order) };
    let table = open_fast(&written.bytes, &context).expect("opens");
    check_reads(&table, &sorted);
    let options = TableReadOptions { prefix_same_as_start: true, ..TableReadOptions::default() };
    let mut cursor = table.cursor(&options);
    let found = (0..200).filter(|i| {
        let target = LookupKey::new(format!("{:04}", i * 2 + 1).as_bytes(), SeqNo::MAX);
        cursor.seek_in_prefix(target.internal())
    });
    assert!(found.count() < 10, "prefixes that no key has");
    let target = LookupKey::new(b"0001", SeqNo::MAX);
    assert!(cursor.seek(target.internal()), "a seek is bound to no prefix");
    assert!(cursor.seek(&sorted[50].0) && cursor.status().is_ok());
}

#[test]
fn what_does_not_belong_is_refused_and_the_builder_goes_on() {
    let order = InternalOrder::default();
    let file = Shared::default();
    let mut builder = Box::new(FastTableBuilder::new(Box::new(file.clone()), fast_config(&order)).expect("made"));
    builder.add(&key("b", 5, ValueKind::Value), b"v").expect("added");
    let huge = base::key::encode(&vec![b'x'; 17 << 20], SeqNo(1), ValueKind::Value);
    for refused in [&b"short"[..], &key("x", 5, ValueKind::RangeDeletion), &huge] {
        assert_eq!(builder.add(refused, b"").expect_err("refused").kind(), ErrorKind::InvalidArgument);
    }
    builder.add(&key("c", 5, ValueKind::Value), b"v").expect("added");
    assert_eq!(builder.entries(), 2);
    assert_eq!(
        builder.add(&key("a", 5, ValueKind::Value), b"v").expect_err("before").kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(builder.finish().expect_err("failed before").kind(), ErrorKind::InvalidArgument);
    let mut begun = Shared::default();
    begun.append(b"something", vfs::IoClass::Flush).expect("written");
    assert!(FastTableBuilder::new(Box::new(begun), fast_config(&order)).is_err(), "not at the start of its file");
}

#[test]
fn a_write_that_fails_ends_the_table() {
    let order = InternalOrder::default();
    let entries: Vec<Entry> = (0..20_000).map(|i| put(&format!("{i:06}"), 1, "some value or other")).collect();
    for operation in [Operation::Write, Operation::Sync] {
        for nth in 1..4 {
            let memory = MemoryVfs::new(1);
            let faulty = FaultVfs::new(memory.clone());
            let rule = faulty.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).nth(nth));
            let file = faulty.create(Path::new("/t.sst"), IfExists::Fail).expect("created");
            let mut builder = Box::new(FastTableBuilder::new(file, fast_config(&order)).expect("made"));
            let added = entries.iter().try_for_each(|(key, value)| builder.add(key, value));
            let finished = builder.finish();
            let failed = faulty.matched(rule) >= nth;
            assert_eq!(added.is_err() || finished.is_err(), failed, "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_builder_tells_its_size_and_holds_little() {
    let order = InternalOrder::default();
    let file = Shared::default();
    let mut builder = Box::new(FastTableBuilder::new(Box::new(file.clone()), fast_config(&order)).expect("made"));
    for i in 0..100_000 {
        builder.add(&key(&format!("{i:08}"), 1, ValueKind::Value), &[b'v'; 100]).expect("added");
        let unwritten = builder.estimated_bytes() - file.len();
        assert!(unwritten < (1 << 20) + 4 * i, "{unwritten} bytes after {i} entries");
    }
    let estimated = builder.estimated_bytes();
    let written = builder.finish().expect("written").file_bytes;
    assert!(estimated.abs_diff(written) < written / 50, "{estimated} {written}");
}

#[test]
fn the_page_shows_a_table() {
    const PAGE: &str = include_str!("../../../docs/format/fast.md");
    let mut entries = vec![put("rain", 4, "x"), put("river", 3, "new"), put("river", 2, "old")];
    entries.extend((0..30).map(|i| put(&format!("sea{i:02}"), 1, "")));
    let tombstone = RangeTombstone { start: b"s".to_vec(), end: b"t".to_vec(), seq: SeqNo(5) };
    let written = write_fast(TableBuilderConfig::new("t.sst"), &entries, &[tombstone]).expect("written");
    let dump = hexdump(&written.bytes, 0);
    assert!(PAGE.contains(&format!("```text\n{dump}```")), "docs/format/fast.md does not show:\n{dump}");
}
