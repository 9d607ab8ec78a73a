//! Test support for reads: random histories, a plain model of their meaning, and views built from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::extend::MergeOperator;
use base::key::{encode, split};
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, Error, FamilyId, FileNumber, InternalOrder, LookupKey, Result, SeqNo, UserOrder, ValueKind};
use memtable::{Entry, Memtable, MemtableConfig};
use parking_lot::Mutex;
use table::{Properties, Table, TableReadOptions, TableValue, Visit};

use super::ReadContext;
use crate::cursor::gaps::Gaps;
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::flushable::{HeldMemtable, MemtableMaking};
use crate::queue::view::ReadView;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::purge::PurgeQueue;
use crate::version::table_file::FileMeta;
use crate::version::table_store::{OpenSlots, TableOpener, TableStore};
use crate::version::version::Version;

/// A random generator, determined by its seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

pub fn order() -> InternalOrder {
    InternalOrder::default()
}

/// Joins operands with commas, so that their order shows.
pub struct Join;

impl MergeOperator for Join {
    fn name(&self) -> &str {
        "join"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let all: Vec<&[u8]> = existing.into_iter().chain(operands.iter().copied()).collect();
        Some(all.join(&b','))
    }

    fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].join(&b','))
    }
}

pub fn context() -> ReadContext {
    ReadContext {
        order: order(),
        merge_operator: Some(Arc::new(Join)),
        prefix_extractor: Some(Arc::new(base::extend::BuiltinPrefix::Capped(1))),
        max_sequential_skip: 3,
        gaps: Gaps::new(UserOrder::Bytewise),
        meter: None,
        sample: None,
        answers: None,
    }
}

/// One write. For `RangeDeletion` the value is the range's end.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Vec<u8>,
    pub seq: SeqNo,
    pub kind: ValueKind,
    pub value: Vec<u8>,
}

pub const KEYS: u64 = 24;

pub fn key_name(i: u64) -> Vec<u8> {
    format!("{}{:02}", if i < KEYS / 2 { 'a' } else { 'b' }, i).into_bytes()
}

/// Writes numbered from 1. Every fourth key is written and single-deleted in turns, as single deletion asks for.
pub fn history(random: &mut Random, writes: u64) -> Vec<Write> {
    let mut put_once = BTreeSet::new();
    (1..=writes)
        .map(|number| {
            let i = random.below(KEYS);
            let (key, seq, value) = (key_name(i), SeqNo(number), format!("v{number}").into_bytes());
            let write = |kind, value| Write { key: key.clone(), seq, kind, value };
            if random.below(8) == 0 {
                let end = key_name((i + 1 + random.below(6)).min(KEYS));
                return write(ValueKind::RangeDeletion, end);
            }
            if i.is_multiple_of(4) {
                if put_once.insert(i) {
                    return write(ValueKind::Value, value);
                }
                put_once.remove(&i);
                return write(ValueKind::SingleDeletion, Vec::new());
            }
            match random.below(8) {
                0 | 1 => write(ValueKind::Deletion, Vec::new()),
                2 | 3 => write(ValueKind::Merge, value),
                _ => write(ValueKind::Value, value),
            }
        })
        .collect()
}

/// The state of a history at a sequence number, by definition.
pub fn model(history: &[Write], seq: SeqNo) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for write in history.iter().filter(|write| write.seq <= seq) {
        match write.kind {
            ValueKind::Value => drop(state.insert(write.key.clone(), write.value.clone())),
            ValueKind::Deletion | ValueKind::SingleDeletion => drop(state.remove(&write.key)),
            ValueKind::Merge => {
                let merged = Join.full_merge(&[], state.get(&write.key).map(Vec::as_slice), &[&write.value]);
                state.insert(write.key.clone(), merged.unwrap());
            }
            ValueKind::RangeDeletion => state.retain(|key, _| *key < write.key || *key >= write.value),
        }
    }
    state
}

/// Sorted point entries of some writes.
pub fn points(writes: &[Write]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let points = writes.iter().filter(|write| write.kind != ValueKind::RangeDeletion);
    let mut all: Vec<_> = points.map(|w| (encode(&w.key, w.seq, w.kind), w.value.clone())).collect();
    all.sort_by(|a, b| order().compare(&a.0, &b.0));
    all
}

pub fn range_tombstones(writes: &[Write]) -> Vec<RangeTombstone> {
    let ranges = writes.iter().filter(|write| write.kind == ValueKind::RangeDeletion);
    ranges.map(|w| RangeTombstone { start: w.key.clone(), end: w.value.clone(), seq: w.seq }).collect()
}

pub fn fragmented(tombstones: Vec<RangeTombstone>) -> Option<Arc<FragmentedTombstones>> {
    let cut = FragmentedTombstones::build(order().user, tombstones);
    (!cut.is_empty()).then(|| Arc::new(cut))
}

/// A table held in memory.
pub struct FakeTable {
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    pub tombstones: Option<Arc<FragmentedTombstones>>,
    properties: Properties,
}

impl FakeTable {
    pub fn new(entries: Vec<(Vec<u8>, Vec<u8>)>, tombstones: Option<Arc<FragmentedTombstones>>) -> Self {
        FakeTable { entries, tombstones, properties: Properties::default() }
    }
}

impl Table for FakeTable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let from = self.entries.partition_point(|(at, _)| order().compare(at, key.internal()).is_lt());
        for (at, value) in &self.entries[from..] {
            let (user_key, trailer) = split(at).unwrap();
            let kind = ValueKind::from_u8(trailer as u8).unwrap();
            let value = TableValue { bytes: value, owner: None };
            if user_key != key.user_key() || !visit(SeqNo(trailer >> 8), kind, value) {
                break;
            }
        }
        Ok(())
    }

    fn cursor(self: Arc<Self>, _options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(VecCursor::new(order(), self.entries.clone()))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn approximate_offset(&self, _internal_key: &[u8]) -> Result<u64> {
        Ok(0)
    }

    fn anchors(&self, _max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Ok(Vec::new())
    }

    fn verify(&self) -> Result<()> {
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// Tables in memory, and a count of opens.
#[derive(Default)]
pub struct Shelf {
    tables: Mutex<BTreeMap<FileNumber, Arc<FakeTable>>>,
    pub opened: AtomicUsize,
}

struct ShelfOpener(Arc<Shelf>);

impl TableOpener for ShelfOpener {
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
        let table = self.0.tables.lock().get(&meta.number).cloned();
        Ok(table.ok_or_else(|| Error::corruption("no such table"))?)
    }
}

/// Makes versions of tables in memory.
#[derive(Default)]
pub struct VersionMaker {
    pub shelf: Arc<Shelf>,
    edit: VersionEdit,
    last: u64,
}

impl VersionMaker {
    /// Adds a table with its bounds as internal keys.
    pub fn add(&mut self, level: usize, bounds: (Vec<u8>, Vec<u8>), table: FakeTable) -> FileNumber {
        self.last += 1;
        let number = FileNumber(self.last);
        self.shelf.tables.lock().insert(number, Arc::new(table));
        let meta = FileMeta {
            number,
            file_bytes: 1,
            smallest: bounds.0,
            largest: bounds.1,
            largest_seq: SeqNo(self.last),
            epoch_number: self.last,
            ..FileMeta::default()
        };
        self.edit.added.push((level, meta));
        number
    }

    /// Forgets a table, so that opening it fails.
    pub fn lose(&self, number: FileNumber) {
        self.shelf.tables.lock().remove(&number);
    }

    /// Adds the writes as tables with user keys between `cuts`. A tombstone is stored whole in every table it overlaps,
    /// as RocksDB wrote them; the tables' bounds cut it.
    pub fn add_cut(&mut self, level: usize, writes: &[Write], cuts: &[Vec<u8>]) {
        let mut from = Vec::new();
        for to in cuts.iter().cloned().chain([vec![0xff]]) {
            let inside = |key: &[u8]| *key >= *from && *key < *to;
            let entries: Vec<_> = points(writes).into_iter().filter(|(key, _)| inside(split(key).unwrap().0)).collect();
            let ranges = range_tombstones(writes).into_iter().filter(|t| t.start < to && t.end > from);
            let ranges: Vec<RangeTombstone> = ranges.collect();
            let firsts = ranges
                .iter()
                .map(|t| encode(t.start.clone().max(from.clone()).as_slice(), t.seq, ValueKind::RangeDeletion));
            let lasts =
                ranges.iter().map(|t| encode(&t.end.clone().min(to.clone()), SeqNo::MAX, ValueKind::RangeDeletion));
            let keys = || entries.iter().map(|(key, _)| key.clone());
            let smallest = keys().chain(firsts).min_by(|a, b| order().compare(a, b));
            let largest = keys().chain(lasts).max_by(|a, b| order().compare(a, b));
            if let (Some(smallest), Some(largest)) = (smallest, largest) {
                self.add(level, (smallest, largest), FakeTable::new(entries, fragmented(ranges)));
            }
            from = to;
        }
    }

    pub fn build(&self) -> Version {
        let opener = Box::new(ShelfOpener(self.shelf.clone()));
        let store = TableStore::new(
            opener,
            OpenSlots::new(-1),
            crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), PurgeQueue::new()),
        );
        let empty = Version::empty(order(), 4);
        let mut builder = VersionBuilder::new(&empty, &store);
        builder.apply(&self.edit).unwrap();
        builder.build().unwrap().version
    }
}

pub fn memtable_of(writes: &[Write]) -> Arc<QueuedMemtable> {
    let factory = memtable::factory_from_option_string("skip_list").unwrap();
    let config = MemtableConfig::new(order(), FamilyId::DEFAULT, 1 << 20);
    let memtable: Arc<dyn Memtable> = factory.create(&config).unwrap();
    let held = HeldMemtable::new(memtable.clone(), 1 << 20, &MemtableMaking::inline());
    let queued = QueuedMemtable::new(1, held, true, None);
    for write in writes {
        let payload = write.key.len() + write.value.len();
        assert!(memtable.try_reserve(memtable.worst_case_bytes(1, payload)));
        memtable.insert(Entry { user_key: &write.key, seq: write.seq, kind: write.kind, value: &write.value });
    }
    queued
}

/// A view that holds the history in layers, the older the deeper.
pub fn view_of(random: &mut Random, history: &[Write]) -> Arc<ReadView> {
    let mut places: Vec<usize> = (0..6).map(|_| random.below(history.len() as u64 + 1) as usize).collect();
    places.sort_unstable();
    let part = |from: usize, to: usize| &history[from..to];
    let mut maker = VersionMaker::default();
    let cuts = |random: &mut Random| {
        let cuts: BTreeSet<Vec<u8>> = (0..3).map(|_| key_name(random.below(KEYS))).collect();
        Vec::from_iter(cuts)
    };
    maker.add_cut(3, part(0, places[0]), &cuts(random));
    maker.add_cut(1, part(places[0], places[1]), &cuts(random));
    maker.add_cut(0, part(places[1], places[2]), &[]);
    maker.add_cut(0, part(places[2], places[3]), &[]);
    let old: Arc<dyn Flushable> = memtable_of(part(places[3], places[4]));
    let young: Arc<dyn Flushable> = memtable_of(part(places[4], places[5]));
    let mutable = memtable_of(part(places[5], history.len()));
    Arc::new(ReadView::new(mutable, vec![young, old], Arc::new(maker.build())))
}

/// A cursor over sorted entries in memory.
pub struct VecCursor {
    order: InternalOrder,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl VecCursor {
    /// `entries` are (internal key, value), sorted by `order`.
    pub fn new(order: InternalOrder, entries: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let at = entries.len();
        VecCursor { order, entries, at }
    }

    fn entry(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.entries.get(self.at)
    }

    fn stand(&mut self, at: Option<usize>) -> bool {
        self.at = at.unwrap_or(self.entries.len());
        self.valid()
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn seek_to_first(&mut self) -> bool {
        self.stand(Some(0))
    }
    fn seek_to_last(&mut self) -> bool {
        self.stand(self.entries.len().checked_sub(1))
    }
    fn seek(&mut self, target: &[u8]) -> bool {
        let at = self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_lt());
        self.stand(Some(at))
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        let after = self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_le());
        self.stand(after.checked_sub(1))
    }
    fn next(&mut self) -> bool {
        self.stand(Some(self.at + 1))
    }
    fn prev(&mut self) -> bool {
        self.stand(self.at.checked_sub(1))
    }
    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |(key, _)| key)
    }
    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |(_, value)| value)
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
