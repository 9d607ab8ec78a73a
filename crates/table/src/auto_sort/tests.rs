use std::collections::BTreeMap;
use std::path::Path;

use base::key;
use base::{ErrorKind, InternalOrder, SeqNo, UserOrder, ValueKind};
use vfs::{Fault, FaultCode, FaultVfs, IfExists, MemoryVfs, Operation, Rule};

use super::*;
use crate::{BlockBasedTableBuilder, FastTableBuilder, Table, TableContext, TableReadOptions, open_any};

const PATH: &str = "/t.sst";

/// Nearly nothing: runs are merged and merged again.
const MEMORY_BYTES_MIN: usize = 4 << 10;

/// A small generator of numbers, so that each run is the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What makes the file.
#[derive(Clone, Copy)]
enum Kind {
    Blocks,
    Fast,
}

fn builder(vfs: &Arc<dyn Vfs>, kind: Kind, order: &InternalOrder, memory_bytes: usize) -> Box<AutoSortTableBuilder> {
    let config = TableBuilderConfig { order: order.clone(), ..TableBuilderConfig::new(PATH) };
    let file = vfs.create(Path::new(PATH), IfExists::Fail).unwrap();
    let into: Box<dyn TableBuilder> = match kind {
        Kind::Blocks => Box::new(BlockBasedTableBuilder::new(file, config.clone()).unwrap()),
        Kind::Fast => Box::new(FastTableBuilder::new(file, config.clone()).unwrap()),
    };
    let settings = AutoSortSettings { vfs: vfs.clone(), spill_dir: "/".into(), memory_bytes };
    Box::new(AutoSortTableBuilder::new(into, config, settings))
}

fn open(vfs: &Arc<dyn Vfs>, order: &InternalOrder) -> Arc<dyn Table> {
    let file = vfs.open(Path::new(PATH)).unwrap();
    let bytes = file.len().unwrap();
    let context = TableContext { order: order.clone(), ..TableContext::default() };
    let table = open_any(&**vfs, file, Path::new(PATH), bytes, &context).unwrap().into_table();
    table.verify().unwrap();
    table
}

type Entry = (Vec<u8>, Vec<u8>);

fn entries_of(table: Arc<dyn Table>) -> Vec<Entry> {
    let mut cursor = table.cursor(&TableReadOptions::default());
    let (mut all, mut valid) = (Vec::new(), cursor.seek_to_first());
    while valid {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        valid = cursor.next();
    }
    cursor.status().unwrap();
    all
}

/// Of each user key and number the last entry; in order.
fn expected(added: &[Entry], order: &InternalOrder) -> Vec<Entry> {
    let mut last: BTreeMap<(&[u8], u64), &Entry> = BTreeMap::new();
    for entry in added {
        let (user_key, trailer) = key::split(&entry.0).unwrap();
        last.insert((user_key, trailer >> 8), entry);
    }
    let mut all: Vec<Entry> = last.into_values().cloned().collect();
    all.sort_by(|a, b| order.compare(&a.0, &b.0));
    all
}

/// In no order, with many versions and some entries of equal numbers and other kinds.
fn shuffled(count: u64) -> Vec<Entry> {
    let mut numbers = Numbers(count);
    let kinds = [ValueKind::Value, ValueKind::Value, ValueKind::Deletion, ValueKind::Merge];
    (0..count)
        .map(|i| {
            let user_key = format!("{:05}", numbers.below(count / 2)).repeat(numbers.below(3) as usize);
            let kind = kinds[numbers.below(4) as usize];
            let key = key::encode(user_key.as_bytes(), SeqNo(numbers.below(4)), kind);
            (key, format!("{i}").repeat(numbers.below(6) as usize).into_bytes())
        })
        .collect()
}

#[test]
fn entries_of_any_order_become_a_table_whatever_the_memory() {
    let added = shuffled(20_000); // 0.6 MB
    for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise].map(InternalOrder::new) {
        let expected = expected(&added, &order);
        for (kind, memory_bytes) in [(Kind::Blocks, 64 << 20), (Kind::Fast, 200 << 10), (Kind::Fast, MEMORY_BYTES_MIN)]
        {
            let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
            let mut builder = builder(&vfs, kind, &order, memory_bytes);
            for (key, value) in &added {
                builder.add(key, value).unwrap();
                assert!(builder.runs.len() < 3 * FAN_IN);
            }
            let merges = builder.runs.first().map_or(0, |run| run.0);
            assert_eq!(merges, if memory_bytes == MEMORY_BYTES_MIN { 1 } else { 0 });
            assert_eq!(builder.runs.is_empty(), memory_bytes > 1 << 20);
            let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"b".to_vec(), seq: SeqNo(7) };
            builder.add_tombstone(&tombstone).unwrap();
            assert_eq!(builder.entries(), 20_001);
            let summary = builder.finish().unwrap();
            assert_eq!(summary.properties.entries, expected.len() as u64 + 1);
            assert_eq!(summary.point_bounds.unwrap().0, expected[0].0);
            assert!(entries_of(open(&vfs, &order)) == expected);
            assert_eq!(vfs.read_dir(Path::new("/")).unwrap(), ["t.sst"], "what is spilled has no name");
        }
    }
}

#[test]
fn the_last_of_equal_entries_stays_across_runs() {
    let order = InternalOrder::default();
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let mut builder = builder(&vfs, Kind::Blocks, &order, MEMORY_BYTES_MIN);
    let mut added = Vec::new();
    for round in 0..100 {
        for name in 0..20 {
            let kind = if round % 2 == 0 { ValueKind::Value } else { ValueKind::Merge };
            added.push((key::encode(&[name], SeqNo(3), kind), vec![round; 100]));
        }
    }
    added.push((key::encode(&[4], SeqNo(3), ValueKind::Deletion), Vec::new()));
    added.push((key::encode(&[4], SeqNo(2), ValueKind::Value), b"older, added later".to_vec()));
    added.iter().try_for_each(|(key, value)| builder.add(key, value)).unwrap();
    assert!(builder.runs.len() > 10);
    builder.finish().unwrap();
    let found = entries_of(open(&vfs, &order));
    assert!(found == expected(&added, &order) && found.len() == 21);
    assert_eq!(found[4].0, key::encode(&[4], SeqNo(3), ValueKind::Deletion));
}

#[test]
fn nothing_and_large_entries_are_taken() {
    let order = InternalOrder::default();
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    builder(&vfs, Kind::Fast, &order, 1 << 20).finish().unwrap();
    assert_eq!(entries_of(open(&vfs, &order)), []);
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let mut large = builder(&vfs, Kind::Fast, &order, MEMORY_BYTES_MIN);
    let added: Vec<Entry> =
        (0..20).rev().map(|i| (key::encode(&[i], SeqNo(1), ValueKind::Value), vec![i; 300 << 10])).collect();
    added.iter().try_for_each(|(key, value)| large.add(key, value)).unwrap();
    large.finish().unwrap();
    assert!(entries_of(open(&vfs, &order)) == expected(&added, &order));
}

#[test]
fn what_does_not_belong_is_refused_at_once() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let mut builder = builder(&vfs, Kind::Blocks, &InternalOrder::default(), 1 << 20);
    builder.config.ingestable = true;
    let numbered = key::encode(b"k", SeqNo(1), ValueKind::Value);
    for refused in [&b"short"[..], &numbered, &key::encode(b"k", SeqNo::ZERO, ValueKind::RangeDeletion)] {
        assert_eq!(builder.add(refused, b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    builder.add(&key::encode(b"k", SeqNo::ZERO, ValueKind::Value), b"").unwrap();
    assert_eq!(builder.entries(), 1);
}

#[test]
fn a_disk_that_fails_ends_the_table() {
    let order = InternalOrder::default();
    let added = shuffled(20_000);
    for (operation, nth) in [
        (Operation::Create, 2),
        (Operation::Create, 3),
        (Operation::Write, 1),
        (Operation::Write, 90),
        (Operation::Read, 5),
    ] {
        let faults = FaultVfs::new(MemoryVfs::new(1));
        let rule = faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).nth(nth));
        let vfs: Arc<dyn Vfs> = faults.clone();
        let mut builder = builder(&vfs, Kind::Fast, &order, MEMORY_BYTES_MIN);
        let error = match added.iter().try_for_each(|(key, value)| builder.add(key, value)) {
            Err(error) => {
                assert_eq!(builder.add(&added[0].0, b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
                assert_eq!(builder.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
                error
            }
            Ok(()) => builder.finish().unwrap_err(),
        };
        assert!(error.kind() == ErrorKind::NoSpace && error.path().is_some(), "{operation:?} {nth}: {error}");
        assert!(faults.matched(rule) >= nth);
    }
}
