//! The vector memtable, for bulk loads: an insert appends, and sorting waits until the memtable is sealed or somebody
//! reads. A reader sorts only what came since the last one, as a new run beside the older ones.
//!
//! Any number of threads insert at once, each mostly alone with the shard of its stripe. Readers do not hold writers up;
//! the first reader after new entries sorts them, and others who need them too wait for that.

mod cursor;
mod runs;

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use arc_swap::ArcSwap;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, Result, SeqNo, UserOrder, ValueKind, key};
use parking_lot::Mutex;

use self::runs::{Entries, Item, Run, Walk};
use crate::arena::{Arena, GRANULE_BYTES};
use crate::bloom::Bloom;
use crate::order::{Bytewise, Custom, KeyOrder, ReverseBytewise};
use crate::record::{self, RECORD_OVERHEAD_BYTES, record_bytes};
use crate::registry::Arguments;
use crate::stripe::{Counts, Stripes};
use crate::tombstones::{LINK_BYTES, Tombstones};
use crate::{Entry, Memtable, MemtableConfig, MemtableFactory, Visit};

pub(crate) const NAME: &str = "vector";

/// Items that a vector may be told to make room for when it is made: 4 GiB of them.
const COUNT_MAX: usize = 1 << 28;

/// An entry's item is outside the arena, but is reserved in it, so that the reservation that is compared with
/// `write_buffer_size` counts it. A range deletion has a link in its place.
const BYTES_PER_ENTRY_MAX: usize = size_of::<Item>() + RECORD_OVERHEAD_BYTES + GRANULE_BYTES - 1;
const _: () = assert!(LINK_BYTES <= size_of::<Item>(), "range deletions take no more than other entries");

struct Vector<O> {
    entries: Entries<O>,
    stripes: Stripes<Shard>,
    /// What readers see.
    sorted: ArcSwap<Sorted>,
    /// Held while sorting. Taken before the shards' locks.
    sorting: Mutex<()>,
    tombstones: Tombstones,
    bloom: Option<Bloom>,
    /// Items for which a shard makes room when it is first used.
    count: usize,
}

/// What threads of one stripe appended.
#[derive(Default)]
struct Shard {
    unsorted: Mutex<Vec<Item>>,
    /// Items ever appended. Changes under the lock of `unsorted`, is read without.
    appended: AtomicU64,
}

/// Sorted runs, and how much of each shard is in them.
struct Sorted {
    runs: Vec<Run>,
    covered: Vec<u64>,
}

impl<O: KeyOrder> Vector<O> {
    fn new(config: &MemtableConfig, order: O, count: usize) -> Result<Self> {
        let arena = Arena::new(config.capacity_bytes)?;
        let bloom = Bloom::new(&arena, &config.order.user, config.capacity_bytes, config.bloom_ratio)?;
        let stripes = Stripes::new(Shard::default);
        let nothing = Sorted { runs: Vec::new(), covered: stripes.iter().map(|_| 0).collect() };
        Ok(Vector {
            entries: Entries { arena, order },
            stripes,
            sorted: ArcSwap::from_pointee(nothing),
            sorting: Mutex::new(()),
            tombstones: Tombstones::new(config.order.user.clone()),
            bloom,
            count,
        })
    }

    /// Writes the records of `entries` and appends their items.
    fn append(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        let stripe = self.stripes.mine();
        let arena = &self.entries.arena;
        let mut counts = Counts::default();
        let mut unsorted = stripe.own.unsorted.lock();
        if unsorted.capacity() == 0 {
            unsorted.reserve(self.count);
        }
        let before = unsorted.len();
        for entry in entries {
            counts.note(&entry);
            if entry.kind == ValueKind::RangeDeletion {
                self.tombstones.push(arena, &entry);
                continue;
            }
            if let Some(bloom) = &self.bloom {
                bloom.add(arena, entry.user_key);
            }
            let at = arena.allocate(record_bytes(&entry));
            // SAFETY: the allocation has room for the record, and the shard's lock publishes it later.
            unsafe { record::write(arena, at, &entry) };
            unsorted.push(self.entries.item(at, entry.user_key));
        }
        // Release: a reader that sees the number finds the items behind the lock.
        stripe.own.appended.fetch_add((unsorted.len() - before) as u64, Release);
        drop(unsorted);
        stripe.add(counts);
    }

    /// Sorted runs that hold every entry whose insert returned before this call.
    fn sorted(&self) -> Arc<Sorted> {
        let sorted = self.sorted.load();
        if self.is_current(&sorted) {
            return Arc::clone(&sorted);
        }
        self.sort_new(false)
    }

    fn is_current(&self, sorted: &Sorted) -> bool {
        let appended = self.stripes.iter().map(|stripe| stripe.own.appended.load(Acquire));
        appended.zip(&sorted.covered).all(|(appended, covered)| appended <= *covered)
    }

    /// Makes a run of what is unsorted; or one run of everything.
    fn sort_new(&self, into_one: bool) -> Arc<Sorted> {
        let _sorting = self.sorting.lock();
        let sorted = self.sorted.load_full();
        if self.is_current(&sorted) && !(into_one && sorted.runs.len() > 1) {
            return sorted; // somebody else sorted meanwhile
        }
        let mut items = Vec::new();
        let mut covered = Vec::with_capacity(sorted.covered.len());
        for stripe in self.stripes.iter() {
            let mut unsorted = stripe.own.unsorted.lock();
            let new = std::mem::take(&mut *unsorted);
            covered.push(stripe.own.appended.load(Acquire));
            drop(unsorted);
            if items.is_empty() { items = new } else { items.extend(new) }
        }
        self.entries.sort(&mut items);
        let mut runs = sorted.runs.clone();
        if !items.is_empty() {
            self.entries.push_run(&mut runs, items.into());
        }
        if into_one {
            self.entries.merge_all(&mut runs);
        }
        let sorted = Arc::new(Sorted { runs, covered });
        self.sorted.store(Arc::clone(&sorted));
        sorted
    }

    fn visit_versions(&self, sorted: &Sorted, key: &LookupKey, visit: &mut Visit<'_>) {
        let (entries, user_key, visible) = (&self.entries, key.user_key(), key.seq());
        let target = entries.internal_target(key.internal());
        let mut walk = Walk::nowhere();
        walk.seek(entries, &sorted.runs, |item| entries.compare_to(item, &target).is_lt());
        while let Some(item) = walk.item(&sorted.runs) {
            let record = entries.record(item);
            if !entries.order.same_key(record.user_key(), user_key) {
                return;
            }
            let (seq, kind) = record.version();
            // Newer ones than asked for can follow where keys have timestamps: those sort before sequence numbers.
            if seq <= visible && !visit(seq, kind, record.value()) {
                return;
            }
            walk.next(entries, &sorted.runs);
        }
    }
}

impl<O: KeyOrder> Memtable for Vector<O> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn concurrent_insert(&self) -> bool {
        true
    }

    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize {
        entries.saturating_mul(BYTES_PER_ENTRY_MAX).saturating_add(payload_bytes)
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.entries.arena.try_reserve(bytes)
    }

    fn insert(&self, entry: Entry<'_>) {
        self.append(&mut std::iter::once(entry));
    }

    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        self.append(entries);
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.may_contain(&self.entries.arena, key.user_key())) {
            return;
        }
        let sorted = self.sorted.load();
        if self.is_current(&sorted) {
            self.visit_versions(&sorted, key, visit);
        } else {
            self.visit_versions(&self.sort_new(false), key, visit);
        }
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Box::new(cursor::VectorCursor::new(self))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.fragmented(&self.entries.arena)
    }

    fn entries(&self) -> u64 {
        self.stripes.totals().entries
    }

    fn deletions(&self) -> u64 {
        self.stripes.totals().deletions
    }

    fn payload_bytes(&self) -> u64 {
        self.stripes.totals().payload_bytes
    }

    fn memory_bytes(&self) -> usize {
        let sorted: usize = self.sorted.load().runs.iter().map(|run| size_of_val(&**run)).sum();
        let unsorted: usize =
            self.stripes.iter().map(|stripe| stripe.own.unsorted.lock().capacity() * size_of::<Item>()).sum();
        size_of_val(self) + self.entries.arena.allocated() + sorted + unsorted + self.tombstones.heap_bytes()
    }

    fn reserved_bytes(&self) -> usize {
        self.entries.arena.reserved()
    }

    fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64 {
        let entries = &self.entries;
        let first = |user_key| entries.target(user_key, key::pack_trailer(SeqNo::MAX, key::SEEK_KIND));
        let (start, end) = (first(start), first(end));
        let before = |run: &Run, target| run.partition_point(|item| entries.compare_to(*item, target).is_lt());
        self.sorted().runs.iter().map(|run| before(run, &end).saturating_sub(before(run, &start)) as u64).sum()
    }

    /// Sorts everything into one run: what a flush reads.
    fn seal(&self) {
        self.sort_new(true);
    }
}

/// Makes vectors. `count` is RocksDB's: entries to make room for at the start.
pub(crate) struct Factory {
    count: usize,
}

impl Factory {
    pub(crate) fn from_arguments(arguments: &Arguments<'_>) -> Result<Arc<dyn MemtableFactory>> {
        let count = arguments.number("count", COUNT_MAX)?.unwrap_or(0);
        Ok(Arc::new(Factory { count }))
    }
}

impl MemtableFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn option_string(&self) -> String {
        if self.count == 0 { NAME.to_owned() } else { format!("{NAME}:{}", self.count) }
    }

    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>> {
        Ok(match &config.order.user {
            UserOrder::Bytewise => Arc::new(Vector::new(config, Bytewise, self.count)?),
            UserOrder::ReverseBytewise => Arc::new(Vector::new(config, ReverseBytewise, self.count)?),
            UserOrder::Custom(c) => Arc::new(Vector::new(config, Custom::new(Arc::clone(c)), self.count)?),
        })
    }
}
