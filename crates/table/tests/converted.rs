//! A converted table reads as a block-based table of the same entries, while its memtable lives and when its file is
//! opened.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::path::Path;
use std::sync::Arc;

use base::key::user_key;
use base::tombstone::RangeTombstone;
use base::{ErrorKind, InternalOrder, LookupKey, SeqNo, UserOrder};
use common::conformance::{block_based, compare_cursors, compare_lookups, compare_properties, hexdump, orders};
use common::converted::{
    HOWS, How, IMAGE, Made, REPRESENTATIONS, Random, TABLE, config, context, converted, make, memtable_of,
    random_entries, random_tombstones, reopened,
};
use common::{Entry, check_reads, put, write_with};
use table::{AnyTable, BlockBasedTable, BoundedTable, ConvertedTable, DumpPart, Table, TableContext};
use table::{TableBuilderConfig, TablePart, TableReadOptions, convert, dump_any, open_any};
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, IfExists, MemoryVfs, Operation, Rule, Vfs};

#[test]
fn all_reads_are_those_of_a_block_based_table() {
    for (seed, order) in orders().into_iter().enumerate() {
        for representation in REPRESENTATIONS {
            for how in HOWS {
                let mut random = Random(seed as u64);
                let entries = random_entries(&mut random, 600, &order);
                let tombstones = random_tombstones(&mut random, 8, &order);
                let expected: Arc<dyn Table> = block_based(&order, &entries, &tombstones);
                let Made { live, opened, summary, .. } = make((representation, how), &order, &entries, &tombstones);
                assert_eq!(summary.point_bounds, Some((entries[0].0.clone(), entries[entries.len() - 1].0.clone())));
                for table in [live, opened] {
                    if order.user.name() == UserOrder::BYTEWISE_NAME {
                        check_reads(&table, &entries);
                    }
                    table.verify().expect("whole");
                    let (table, random): (Arc<dyn Table>, _) = (table, &mut random);
                    compare_cursors(&table, &expected, &entries, random);
                    compare_lookups(&table, &expected, &entries, &order);
                    let fragments = |table: &dyn Table| table.tombstones().expect("some").fragments().to_vec();
                    assert_eq!(fragments(&*table), fragments(&*expected));
                    compare_properties(table.properties(), expected.properties());
                }
            }
        }
    }
}

#[test]
fn tables_without_points_and_without_anything_are_tables() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(3) };
    for (representation, how) in REPRESENTATIONS.into_iter().flat_map(|name| HOWS.map(|how| (name, how))) {
        for tombstones in [&[][..], std::slice::from_ref(&tombstone)] {
            let Made { live, opened, summary, .. } = make((representation, how), &order, &[], tombstones);
            assert_eq!((summary.point_bounds, summary.properties.entries), (None, tombstones.len() as u64));
            for table in [live, opened] {
                check_reads(&table, &[]);
                table.verify().expect("whole");
                assert_eq!(table.tombstones().is_some(), !tombstones.is_empty());
                assert_eq!(table.anchors(5).expect("none"), []);
            }
        }
    }
}

#[test]
fn long_values_are_pinned_without_a_copy_and_outlive_the_table() {
    let order = InternalOrder::default();
    let entries = [put("long", 2, &"v".repeat(5000)), put("short", 1, "v")];
    for (representation, how) in REPRESENTATIONS.into_iter().flat_map(|name| HOWS.map(|how| (name, how))) {
        let Made { live, opened, .. } = make((representation, how), &order, &entries, &[]);
        for table in [live, opened] {
            let mut pins = Vec::new();
            for (name, is_shared) in [(&b"long"[..], true), (b"short", false)] {
                let lookup = LookupKey::new(name, SeqNo::MAX);
                let mut visit = |_, _, value: table::TableValue<'_>| {
                    let pinned = value.pin();
                    assert_eq!(pinned.as_ptr() == value.bytes.as_ptr(), is_shared);
                    pins.push(pinned);
                    true
                };
                table.get(&lookup, &TableReadOptions::default(), &mut visit).expect("reads");
            }
            drop(table);
            assert_eq!((&*pins[0], &*pins[1]), ("v".repeat(5000).as_bytes(), &b"v"[..]));
        }
    }
}

#[test]
fn offsets_and_anchors_ascend_and_are_near_the_share_of_entries() {
    for order in orders() {
        let mut entries: Vec<Entry> =
            (0..4000).map(|i| put(&format!("key{i:04}"), 9, "value of some length")).collect();
        entries.sort_by(|a, b| order.compare(&a.0, &b.0));
        for representation in REPRESENTATIONS {
            let Made { opened, .. } = make((representation, How::Dump), &order, &entries, &[]);
            let bytes = opened.properties().data_bytes;
            assert_eq!(opened.approximate_offset(&entries[0].0).expect("known"), 0);
            for (i, (key, _)) in entries.iter().enumerate().step_by(400) {
                let (offset, share) = (opened.approximate_offset(key).expect("known"), bytes * i as u64 / 4000);
                assert!(offset.abs_diff(share) <= bytes / 4, "{representation} {i}: {offset} of {bytes}");
            }
            for max in [0, 1, 2, 7, 100, 10_000] {
                let anchors = opened.anchors(max).expect("known");
                assert!(anchors.len() <= max && anchors.len() >= max.min(200) / 2, "{max}: {}", anchors.len());
                assert!(anchors.is_sorted_by(|a, b| order.user.compare(&a.0, &b.0).is_lt() && a.1 < b.1));
                for (key, end) in &anchors {
                    let before = entries.partition_point(|e| order.user.compare(user_key(&e.0), key).is_le()) as u64;
                    assert!(end.abs_diff(bytes * before / 4000) <= bytes / 100, "{end} of {bytes}");
                }
            }
        }
    }
}

#[test]
fn a_part_of_a_converted_table_is_a_table() {
    let order = InternalOrder::default();
    let mut random = Random(5);
    let entries = random_entries(&mut random, 300, &order);
    let Made { opened, summary, .. } = make(("trie", How::Mapped), &order, &entries, &[]);
    let part = TablePart {
        smallest: entries[100].0.clone(),
        largest: entries[200].0.clone(),
        bytes: summary.file_bytes / 3,
        file_bytes: summary.file_bytes,
    };
    let table = BoundedTable::new(opened, order, part).expect("known");
    check_reads(&table, &entries[100..=200]);
}

#[test]
fn the_magic_number_chooses_the_reader() {
    let order = InternalOrder::default();
    let entries = [put("a", 2, "1"), put("b", 1, "2")];
    let Made { vfs, .. } = make(("trie", How::Dump), &order, &entries, &[]);
    let path = Path::new(TABLE);
    let file = vfs.open(path).expect("there");
    let bytes = file.len().expect("known");
    let error = BlockBasedTable::open(file, path, bytes, &context(&order)).map(|_| ()).expect_err("another kind");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let written = write_with(TableBuilderConfig::new("t.sst"), &entries, |_| Ok(())).expect("written");
    vfs.write_file(Path::new("/blocks"), &written.bytes).expect("written");
    let file = vfs.open(Path::new("/blocks")).expect("there");
    let table = open_any(&*vfs, file, Path::new("/blocks"), written.bytes.len() as u64, &context(&order));
    assert!(matches!(table.expect("opens"), AnyTable::BlockBased(_)));
}

#[test]
fn a_dump_shows_what_is_there() {
    let order = InternalOrder::default();
    let tombstone = RangeTombstone { start: b"m".to_vec(), end: b"n".to_vec(), seq: SeqNo(3) };
    let Made { opened, .. } = make(("trie", How::Dump), &order, &[put("a", 2, "1")], &[tombstone]);
    let text = |part| {
        let mut text = String::new();
        dump_any(&AnyTable::Converted(opened.clone()), part, &mut |line| {
            text.push_str(line);
            text.push('\n');
            true
        })
        .expect("whole");
        text
    };
    assert!(text(DumpPart::Layout).contains("representation: trie (references shifted by 2)\n"));
    assert!(text(DumpPart::Properties).contains("entries: 2\ndeletions: 1\n"));
    assert_eq!(text(DumpPart::Index), "");
    assert_eq!(text(DumpPart::Entries), "a @ 2 : Value => 1\n");
    assert_eq!(text(DumpPart::Tombstones), "[m, n) at 3\n");
}

#[test]
fn what_cannot_be_converted_is_refused() {
    let order = InternalOrder::default();
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let create = |name: &str| vfs.create(Path::new(name), IfExists::Fail).expect("created");
    let kind = |memtable: &Arc<dyn memtable::Memtable>, file| {
        convert(memtable, file, &config(&order)).map(|_| ()).expect_err("refused").kind()
    };
    for name in REPRESENTATIONS {
        let memtable = memtable_of(&vfs, (name, How::Dump), &order, &[put("a", 1, "v")], &[]);
        assert_eq!(kind(&memtable, create(&format!("/{name}-open"))), ErrorKind::InvalidArgument, "not sealed");
        memtable.seal();
        let mut other = create(&format!("/{name}-other"));
        other.append(b"something else", vfs::IoClass::Flush).expect("written");
        assert_eq!(kind(&memtable, other), ErrorKind::InvalidArgument, "another's file");
        let file = vfs.open(Path::new(&format!("/{name}-open"))).expect("there");
        let (vector, summary) = (memtable::factory_from_option_string("vector"), table::TableSummary::default());
        let plain = memtable::MemtableConfig::new(order.clone(), base::FamilyId(1), 1 << 16);
        let plain = vector.expect("known").create(&plain).expect("created");
        plain.seal();
        assert_eq!(kind(&plain, create(&format!("/{name}-vector"))), ErrorKind::InvalidArgument, "no image");
        let table = ConvertedTable::of_memtable(
            plain,
            &summary,
            file,
            Path::new(TABLE),
            &TableContext { order: order.clone(), ..TableContext::default() },
        );
        assert_eq!(table.map(|_| ()).expect_err("no image").kind(), ErrorKind::InvalidArgument);
    }
}

/// A table that was synced, and its directory, outlives a power loss; the memtable's stores through its mapping included.
#[test]
fn a_converted_table_survives_a_power_loss() {
    let order = InternalOrder::default();
    let entries = random_entries(&mut Random(8), 500, &order);
    for (representation, how) in REPRESENTATIONS.into_iter().flat_map(|name| HOWS.map(|how| (name, how))) {
        let Made { vfs, live, .. } = make((representation, how), &order, &entries, &[]);
        for policy in [CrashPolicy::NothingUnsyncedKept, CrashPolicy::AllKept, CrashPolicy::DirectoryEntriesLost] {
            let left = vfs.crash_clone(3, policy);
            check_reads(&reopened(&*left, &order).expect("opens"), &entries);
        }
        drop(live);
        check_reads(&reopened(&*vfs, &order).expect("the file stays"), &entries);
        assert!(!vfs.exists(Path::new(IMAGE)).expect("asked"));
    }
}

/// A conversion that fails anywhere leaves the memtable as it was, and no table.
#[test]
fn a_failed_conversion_leaves_the_memtable() {
    let order = InternalOrder::default();
    let entries = random_entries(&mut Random(9), 200, &order);
    for (representation, how) in REPRESENTATIONS.into_iter().flat_map(|name| HOWS.map(|how| (name, how))) {
        for operation in [Operation::Write, Operation::Sync, Operation::OpenAppend, Operation::Create] {
            for nth in 1..4 {
                let memory = MemoryVfs::new(1);
                let faulty = FaultVfs::new(memory.clone());
                let rule = faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(operation).nth(nth));
                let vfs: Arc<dyn Vfs> = faulty.clone();
                // A wrapper gives no address of a mapped file: the memtable lies in the file beneath.
                let beneath: Arc<dyn Vfs> = memory.clone();
                let memtable = memtable_of(&beneath, (representation, how), &order, &entries, &[]);
                let result = converted(&vfs, &memtable, &order);
                assert_eq!(result.is_err(), faulty.matched(rule) >= nth, "{operation:?} {nth}");
                if result.is_ok() {
                    continue;
                }
                let mut cursor = memtable.clone().cursor();
                let mut found = cursor.seek_to_first();
                for (key, value) in &entries {
                    assert!(found && cursor.key() == key && cursor.value() == value);
                    found = cursor.next();
                }
                let left = reopened(&*memory, &order);
                assert!(!found && (left.is_err() || operation == Operation::Sync), "only a sync can leave a table");
                drop((cursor, memtable));
                assert!(!memory.exists(Path::new(IMAGE)).expect("asked"), "its file goes with it");
            }
        }
    }
}

#[test]
fn the_page_shows_a_tail() {
    const PAGE: &str = include_str!("../../../docs/format/converted.md");
    let order = InternalOrder::default();
    let entries = [put("", 1, "e"), put("rain", 4, "x"), put("river", 3, "new"), put("river", 2, "old")];
    let tombstone = RangeTombstone { start: b"s".to_vec(), end: b"t".to_vec(), seq: SeqNo(5) };
    let Made { vfs, summary, .. } = make(("trie", How::Dump), &order, &entries, &[tombstone]);
    let bytes = vfs.read_file(Path::new(TABLE)).expect("there");
    assert_eq!(summary.file_bytes, bytes.len() as u64);
    let tail = bytes[bytes.len() - 56..].first_chunk().expect("a number");
    let dump = hexdump(&bytes, u64::from_le_bytes(*tail) as usize);
    assert!(PAGE.contains(&format!("```text\n{dump}```")), "docs/format/converted.md does not show:\n{dump}");
}
