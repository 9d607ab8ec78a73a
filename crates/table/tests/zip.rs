//! A zip table reads as a block-based table of the same entries.
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
use common::zip::{open_zip, write_zip, zip_config, zip_settings, zip_table};
use common::{Entry, Shared, check_reads, forward, get, key, put};
use table::{AnyTable, BlockBasedTable, BoundedTable, DumpPart, Properties, Table, TableBuilder};
use table::{TableContext, TablePart, TableReadOptions, ZipSettings, ZipTableBuilder, dump_any, open_any};
use vfs::{AppendFile, Fault, FaultCode, FaultVfs, IfExists, MemoryVfs, Operation, Rule, Vfs};

#[test]
fn all_reads_are_those_of_a_block_based_table() {
    for (seed, order) in orders().into_iter().enumerate() {
        for count in [1, 2, 15, 16, 17, 33, 600, 3000] {
            let mut random = Random(seed as u64 + count);
            let entries = random_entries(&mut random, count, &order);
            let tombstones = random_tombstones(&mut random, 8, &order);
            let expected: Arc<dyn Table> = block_based(&order, &entries, &tombstones);
            let written = write_zip(zip_config(&order), &entries, &tombstones).expect("written");
            assert_eq!(written.summary.file_bytes, written.bytes.len() as u64);
            let bounds = (entries[0].0.clone(), entries[entries.len() - 1].0.clone());
            assert_eq!(written.summary.point_bounds, Some(bounds));
            let table = open_zip(&written.bytes, &context(&order)).expect("opens");
            table.verify().expect("whole");
            if order.user.name() == UserOrder::BYTEWISE_NAME {
                check_reads(&table, &entries);
            }
            let apart = |properties: &Properties| Properties { compression: String::new(), ..properties.clone() };
            compare_properties(&apart(table.properties()), &apart(expected.properties()));
            let table: Arc<dyn Table> = table;
            compare_cursors(&table, &expected, &entries, &mut random);
            compare_lookups(&table, &expected, &entries, &order);
            let fragments = |table: &dyn Table| table.tombstones().map(|all| all.fragments().to_vec());
            assert_eq!(fragments(&*table), fragments(&*expected));
        }
    }
}

/// Values of several kinds: noise, text that repeats, numbers, nothing.
fn value(shape: u8, noise: u64, len: usize) -> Vec<u8> {
    let mut random = Random(noise);
    match shape {
        0 => (0..len).map(|_| random.below(256) as u8).collect(),
        1 => format!("{{\"id\":{noise},\"name\":\"user {}\",\"tags\":[\"a\",\"b\"]}}", noise % 97).into_bytes(),
        2 => noise.to_le_bytes().to_vec(),
        3 => vec![noise as u8; len],
        _ => Vec::new(),
    }
}

type Versions = BTreeMap<Vec<u8>, BTreeMap<u64, (ValueKind, Vec<u8>)>>;

/// Keys of many shapes, each with some versions.
fn versions(random: &mut Random) -> Versions {
    const KINDS: [ValueKind; 4] = [ValueKind::Value, ValueKind::Deletion, ValueKind::Merge, ValueKind::SingleDeletion];
    let mut versions = Versions::new();
    for _ in 0..random.below(500) {
        let key = match random.below(3) {
            0 => (0..random.below(6))
                .map(|_| [0, b'a', 0xff, random.below(256) as u8][random.below(4) as usize])
                .collect(),
            1 => format!("user:{:08}", random.below(4000)).into_bytes(),
            _ => vec![b'z'; random.below(60) as usize],
        };
        let of_key = versions.entry(key).or_default();
        for _ in 0..1 + random.below(3) {
            let seq =
                [0, random.below(50), (random.below(1 << 28) << 28) | random.below(1 << 28)][random.below(3) as usize];
            let value = value(random.below(5) as u8, random.below(1 << 31), random.below(300) as usize);
            of_key.insert(seq, (KINDS[random.below(4) as usize], value));
        }
    }
    versions
}

/// Against the definition: a sorted map.
#[test]
fn lookups_and_seeks_agree_with_a_sorted_map() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let order = if seed % 2 == 0 { UserOrder::Bytewise } else { UserOrder::ReverseBytewise };
        compare_with_map(&InternalOrder::new(order), &versions(&mut random), &mut random);
    }
}

fn compare_with_map(order: &InternalOrder, versions: &Versions, random: &mut Random) {
    let mut entries: Vec<Entry> = Vec::new();
    for (key, of_key) in versions {
        let internal = |seq: &u64, kind| base::key::encode(key, SeqNo(*seq), kind);
        entries.extend(of_key.iter().map(|(seq, (kind, value))| (internal(seq, *kind), value.clone())));
    }
    entries.sort_by(|a, b| order.compare(&a.0, &b.0));
    let table = zip_table(order, &entries, &[]);
    table.verify().expect("whole");
    assert_eq!(forward(&table).expect("reads"), entries);
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    for (key, of_key) in versions {
        let seq = if random.below(2) == 0 { SeqNo::MAX } else { SeqNo(random.below(60)) };
        let expected = of_key.range(..=seq.0).rev().map(|(seq, (kind, value))| (SeqNo(*seq), *kind, value.clone()));
        assert_eq!(get(&table, key, seq).expect("reads"), expected.collect::<Vec<_>>());
        let mut near = key.clone();
        match random.below(3) {
            0 => near.push(random.below(256) as u8),
            1 => drop(near.pop()),
            _ => near.iter_mut().last().into_iter().for_each(|last| *last = random.below(256) as u8),
        }
        if !versions.contains_key(&near) {
            assert_eq!(get(&table, &near, SeqNo::MAX).expect("reads"), []);
        }
        let target = LookupKey::new(&near, SeqNo(random.below(60)));
        let at = entries.partition_point(|entry| order.compare(&entry.0, target.internal()).is_lt());
        assert_eq!(cursor.seek(target.internal()), at < entries.len());
        assert_eq!(cursor.key(), entries.get(at).map_or(&[][..], |entry| &entry.0));
        assert_eq!(cursor.value(), entries.get(at).map_or(&[][..], |entry| &entry.1));
        let before = entries.partition_point(|entry| order.compare(&entry.0, target.internal()).is_le());
        assert_eq!(cursor.seek_for_prev(target.internal()), before > 0);
        assert_eq!(cursor.key(), before.checked_sub(1).map_or(&[][..], |before| &entries[before].0));
    }
}

/// Rows as services keep them, enough for a dictionary; neighbours are no more alike than others.
fn rows(count: u64) -> Vec<Entry> {
    let scattered = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let row = |i: u64| {
        let (a, b) = (scattered(i) as u16, scattered(i + count));
        let text = format!(
            "{{\"name\":\"user {a}\",\"city\":\"{}\",\"plan\":\"{}\",\"score\":{},\"address\":\"{} street of the {}\"}}",
            ["Lagos", "Berlin", "Toronto", "Shanghai"][(b % 4) as usize],
            ["free", "professional", "enterprise"][(b / 4 % 3) as usize],
            b / 16 % 100,
            b / 2048 % 300,
            ["old mill", "three rivers", "long market"][(b / 1024 % 3) as usize],
        );
        put(&format!("user:{i:08}"), 0, &text)
    };
    (0..count).map(row).collect()
}

#[test]
fn values_that_are_alike_take_little() {
    let order = InternalOrder::default();
    let entries = rows(20_000);
    let written = write_zip(zip_config(&order), &entries, &[]).expect("written");
    let table = open_zip(&written.bytes, &context(&order)).expect("opens");
    table.verify().expect("whole");
    let sampled: Vec<Entry> = entries.iter().step_by(97).cloned().collect();
    for (key, value) in &sampled {
        assert_eq!(get(&table, user_key(key), SeqNo::MAX).expect("reads")[0].2, *value);
    }
    assert_eq!(forward(&table).expect("reads"), entries);
    let mut blocks = zip_config(&order);
    blocks.compression = base::options::CompressionKind::Zstd;
    blocks.options.block_size = 16 << 10;
    let blocks = common::write(blocks, &entries).expect("written").bytes.len();
    assert!(written.bytes.len() < blocks, "{} bytes, as blocks {blocks}", written.bytes.len());
    assert!(table.memory_bytes() < entries.len() * 8, "{}", table.memory_bytes());
}

#[test]
fn large_entries_and_long_keys_have_their_groups() {
    let order = InternalOrder::default();
    let long = "k".repeat(70_000);
    let mut entries: Vec<Entry> = (0..40).map(|i| put(&format!("{long}{i:02}"), 5, "after a long prefix")).collect();
    entries.extend((0..40).map(|i| put(&format!("value {i:02}"), 5, &"some words ".repeat(i * 90))));
    entries.push((key("value noise", 5, ValueKind::Value), value(0, 5, 60_000)));
    let table = zip_table(&order, &entries, &[]);
    table.verify().expect("whole");
    check_reads(&table, &entries);
}

/// More versions of one key than a group has entries.
#[test]
fn versions_of_a_key_go_on_in_the_next_group() {
    for order in orders() {
        let mut entries: Vec<Entry> = (0..100).map(|seq| put("many", seq * 3, &format!("version {seq}"))).collect();
        entries.extend([put("man", 7, "before"), put("many1", 7, "after"), put("z", 1, "last")]);
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let table = zip_table(&order, &entries, &[]);
        table.verify().expect("whole");
        let expected: Arc<dyn Table> = block_based(&order, &entries, &[]);
        let table: Arc<dyn Table> = table;
        compare_lookups(&table, &expected, &entries, &order);
        compare_cursors(&table, &expected, &entries, &mut Random(1));
        let mut cursor = table.cursor(&TableReadOptions::default());
        for seq in 0..300 {
            let target = LookupKey::new(b"many", SeqNo(seq));
            assert!(cursor.seek(target.internal()));
            assert_eq!(cursor.value(), format!("version {}", seq / 3).as_bytes());
        }
    }
}

#[test]
fn tables_without_points_and_without_anything_are_tables() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(3) };
    for tombstones in [&[][..], std::slice::from_ref(&tombstone)] {
        let written = write_zip(zip_config(&order), &[], tombstones).expect("written");
        assert_eq!(written.summary.point_bounds, None);
        assert_eq!(written.summary.properties.entries, tombstones.len() as u64);
        let table = open_zip(&written.bytes, &context(&order)).expect("opens");
        check_reads(&table, &[]);
        table.verify().expect("whole");
        assert_eq!(table.tombstones().is_some(), !tombstones.is_empty());
        assert_eq!((table.anchors(5).expect("none"), table.approximate_offset(&[]).expect("none")), (vec![], 0));
    }
}

#[test]
fn long_noise_is_pinned_without_a_copy_and_outlives_the_table() {
    let order = InternalOrder::default();
    let noise = value(0, 3, 5000);
    let entries = [(key("long", 2, ValueKind::Value), noise.clone()), put("short", 1, "v")];
    let table = zip_table(&order, &entries, &[]);
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
    assert_eq!((&*pins[0], &*pins[1]), (&noise[..], &b"v"[..]));
}

#[test]
fn offsets_and_anchors_ascend_and_are_near_the_share_of_entries() {
    for order in orders() {
        let mut entries: Vec<Entry> =
            (0..4000).map(|i| put(&format!("key{i:04}"), 9, "value of some length")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let table = zip_table(&order, &entries, &[]);
        let bytes = table.properties().data_bytes;
        for (i, (key, _)) in entries.iter().enumerate() {
            let (offset, share) = (table.approximate_offset(key).expect("known"), bytes * i as u64 / 4000);
            assert!(offset.abs_diff(share) <= bytes / 50, "{i}: {offset} of {bytes}");
        }
        for max in [0, 1, 2, 7, 100, 10_000] {
            let anchors = table.anchors(max).expect("known");
            assert!(anchors.len() <= max && anchors.len() >= max.min(200) / 2, "{max}: {}", anchors.len());
            assert!(anchors.is_sorted_by(|a, b| order.user.compare(&a.0, &b.0).is_lt() && a.1 < b.1));
            for (key, end) in &anchors {
                let before = entries.partition_point(|e| order.user.compare(user_key(&e.0), key).is_le()) as u64;
                assert!(end.abs_diff(bytes * before / 4000) <= bytes / 50, "{end} of {bytes}");
            }
        }
    }
}

#[test]
fn a_part_of_a_zip_table_is_a_table() {
    let order = InternalOrder::default();
    let entries = random_entries(&mut Random(5), 300, &order);
    let written = write_zip(zip_config(&order), &entries, &[]).expect("written");
    let file_bytes = written.summary.file_bytes;
    let (smallest, largest) = (entries[100].0.clone(), entries[200].0.clone());
    let part = TablePart { smallest, largest, bytes: file_bytes / 3, file_bytes };
    let table = open_zip(&written.bytes, &context(&order)).expect("opens");
    check_reads(&BoundedTable::new(table, order, part).expect("known"), &entries[100..=200]);
}

#[test]
fn the_magic_number_and_the_order_choose_the_reader() {
    let order = InternalOrder::default();
    let vfs = MemoryVfs::new(1);
    let path = Path::new("/t.sst");
    let written = write_zip(zip_config(&order), &[put("a", 2, "1")], &[]).expect("written");
    vfs.write_file(path, &written.bytes).expect("written");
    let (file, bytes) = (vfs.open(path).expect("there"), written.bytes.len() as u64);
    let error =
        BlockBasedTable::open(file.clone(), path, bytes, &context(&order)).map(|_| ()).expect_err("another kind");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let table = open_any(&*vfs, file, path, bytes, &context(&order)).expect("opens");
    assert!(matches!(table, AnyTable::Zip(_)) && table.table().properties().entries == 1);
    for other in orders().into_iter().skip(1) {
        let error = open_zip(&written.bytes, &context(&other)).map(|_| ()).expect_err("another order");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_dump_shows_what_is_there() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"m".to_vec(), end: b"n".to_vec(), seq: SeqNo(3) };
    let entries: Vec<Entry> = (0..17).map(|i| put(&format!("k{i:02}"), 2, "")).collect();
    let table = zip_table(&order, &entries, &[tombstone]);
    let text = |part| {
        let mut text = String::new();
        dump_any(&AnyTable::Zip(table.clone()), part, &mut |line| {
            text.push_str(line);
            text.push('\n');
            true
        })
        .expect("whole");
        text
    };
    assert!(text(DumpPart::Layout).starts_with("format version: 1, a zip table\n"));
    assert!(text(DumpPart::Properties).contains("entries: 18\ndeletions: 1\n"));
    assert!(
        text(DumpPart::Index).contains(" 16 entries behind \n")
            && text(DumpPart::Index).contains(" 1 entries behind k15")
    );
    assert!(text(DumpPart::Entries).starts_with("k00 @ 2 : Value => \n"));
    assert_eq!(text(DumpPart::Tombstones), "[m, n) at 3\n");
}

/// A table made to be ingested has its number from the MANIFEST, as a block-based one has.
#[test]
fn an_ingested_table_has_one_number() {
    for order in orders() {
        let mut entries: Vec<Entry> = (0..500).map(|i| put(&format!("k{i:03}"), 0, "v")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        let mut config = zip_config(&order);
        config.ingestable = true;
        let written = write_zip(config.clone(), &entries, &[]).expect("written");
        let blocks = common::write(config.clone(), &entries).expect("written");
        let context = TableContext { largest_seq: Some(SeqNo(100)), ..context(&order) };
        let table: Arc<dyn Table> = open_zip(&written.bytes, &context).expect("opens");
        table.verify().expect("whole");
        let expected: Arc<dyn Table> = common::open(&blocks.bytes, &context).expect("opens");
        compare_cursors(&table, &expected, &entries, &mut Random(3));
        compare_lookups(&table, &expected, &entries, &order);
        let error = write_zip(config, &[put("a", 1, "v")], &[]).map(|_| ()).expect_err("a number of its own");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn filters_keep_lookups_of_absent_keys_away() {
    let order = InternalOrder::default();
    let entries: Vec<Entry> = (0..2000).map(|i| put(&format!("{i:05}-suffix"), 9, "v")).collect();
    let mut config = zip_config(&order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    config.options.partition_filters = true;
    let written = write_zip(config, &entries, &[]).expect("written");
    let statistics = Arc::new(Statistics::default());
    let context = TableContext { statistics: Some(statistics.clone()), ..context(&order) };
    let table = open_zip(&written.bytes, &context).expect("opens");
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
    let mut entries: Vec<Entry> = (0..2000).map(|i| put(&format!("{:04}{i}", i / 10 * 2), 9, "v")).collect();
    entries.sort();
    let extractor: Arc<dyn PrefixExtractor> = Arc::new(BuiltinPrefix::Fixed(4));
    let mut config = zip_config(&order);
    config.options.filter_policy = FilterPolicy { bits_per_key: Some(10.0) };
    config.options.whole_key_filtering = false;
    config.prefix_extractor = Some(extractor.clone());
    let written = write_zip(config, &entries, &[]).expect("written");
    let context = TableContext { prefix_extractor: Some(extractor), ..context(&order) };
    let table = open_zip(&written.bytes, &context).expect("opens");
    check_reads(&table, &entries);
    let options = TableReadOptions { prefix_same_as_start: true, ..TableReadOptions::default() };
    let mut cursor = table.cursor(&options);
    let found = (0..200).filter(|i| {
        let target = LookupKey::new(format!("{:04}", i * 2 + 1).as_bytes(), SeqNo::MAX);
        cursor.seek_in_prefix(target.internal())
    });
    assert!(found.count() < 10, "prefixes that no key has");
    let target = LookupKey::new(b"0001", SeqNo::MAX);
    assert!(cursor.seek(target.internal()), "a seek is bound to no prefix");
    assert!(cursor.seek(&entries[50].0) && cursor.status().is_ok());
}

#[test]
fn what_does_not_belong_is_refused_and_the_builder_goes_on() {
    let order = InternalOrder::default();
    let builder = |file: &Shared| {
        ZipTableBuilder::new(Box::new(file.clone()), zip_config(&order), zip_settings(MemoryVfs::new(1))).map(Box::new)
    };
    let mut made = builder(&Shared::default()).expect("made");
    made.add(&key("b", 5, ValueKind::Value), b"v").expect("added");
    let huge = base::key::encode(&vec![b'x'; 17 << 20], SeqNo(1), ValueKind::Value);
    for refused in [&b"short"[..], &key("x", 5, ValueKind::RangeDeletion), &huge] {
        assert_eq!(made.add(refused, b"").expect_err("refused").kind(), ErrorKind::InvalidArgument);
    }
    made.add(&key("c", 5, ValueKind::Value), b"v").expect("added");
    assert_eq!(made.entries(), 2);
    let before = made.add(&key("a", 5, ValueKind::Value), b"v").expect_err("before the last");
    assert_eq!(before.kind(), ErrorKind::InvalidArgument);
    assert_eq!(made.finish().expect_err("failed before").kind(), ErrorKind::InvalidArgument);
    let mut begun = Shared::default();
    begun.append(b"something", vfs::IoClass::Flush).expect("written");
    assert!(builder(&begun).is_err(), "not at the start of its file");
}

/// Entries past the memory that is allowed lie in a file without a name meanwhile.
#[test]
fn entries_spill_and_failures_leave_nothing() {
    let order = InternalOrder::default();
    let noisy = |i: u64| (key(&format!("{i:06}"), 1, ValueKind::Value), value(0, i, 200));
    let entries: Vec<Entry> = (0..7000).map(noisy).collect();
    let in_memory = write_zip(zip_config(&order), &entries, &[]).expect("written").bytes;
    let path = Path::new("/t.sst");
    for operation in [Operation::Create, Operation::Write, Operation::Sync, Operation::Read] {
        for nth in [1, 2, 3, 1000] {
            let memory = MemoryVfs::new(1);
            let faulty = FaultVfs::new(memory.clone());
            let file = faulty.create(path, IfExists::Fail).expect("created");
            let rule = faulty.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).nth(nth));
            let settings = ZipSettings { memory_bytes: 0, ..zip_settings(faulty.clone()) };
            let mut builder = Box::new(ZipTableBuilder::new(file, zip_config(&order), settings).expect("made"));
            let added = entries.iter().try_for_each(|(key, value)| builder.add(key, value));
            let finished = builder.finish();
            assert_eq!(added.is_err() || finished.is_err(), faulty.matched(rule) >= nth, "{operation:?} {nth}");
            assert_eq!(memory.read_dir(Path::new("/")).expect("listed"), ["t.sst"]);
            if finished.is_ok() {
                assert_eq!(memory.read_file(path).expect("there"), in_memory);
            }
        }
    }
}

#[test]
fn a_builder_tells_its_size_about() {
    let order = InternalOrder::default();
    let builder =
        ZipTableBuilder::new(Box::new(Shared::default()), zip_config(&order), zip_settings(MemoryVfs::new(1)));
    let mut builder = Box::new(builder.expect("made"));
    let mut estimates = Vec::new();
    for (nth, (key, value)) in rows(60_000).iter().enumerate() {
        builder.add(key, value).expect("added");
        if nth % 20_000 == 19_999 {
            estimates.push(builder.estimated_bytes());
        }
    }
    let written = builder.finish().expect("written").file_bytes;
    for (estimated, share) in estimates.into_iter().zip([written / 3, written * 2 / 3, written]) {
        assert!(estimated / 2 < share && share < estimated * 2, "{estimated} {share}");
    }
}

#[test]
fn the_page_shows_a_table() {
    const PAGE: &str = include_str!("../../../docs/format/zip.md");
    let mut entries = vec![put("rain", 4, "x"), put("river", 3, "new"), put("river", 2, "old")];
    entries.extend((0..15).map(|i| put(&format!("sea{i:02}"), 1, "wave upon wave upon wave")));
    let tombstone = RangeTombstone { start: b"s".to_vec(), end: b"t".to_vec(), seq: SeqNo(5) };
    let config = table::TableBuilderConfig::new("t.sst");
    let written = write_zip(config, &entries, &[tombstone]).expect("written");
    let dump = hexdump(&written.bytes, 0);
    assert!(PAGE.contains(&format!("```text\n{dump}```")), "docs/format/zip.md does not show:\n{dump}");
}
