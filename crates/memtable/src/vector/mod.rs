//! The vector memtable, for bulk loads: an insert appends, and sorting waits for the seal or a read. A reader sorts
//! only entries added since the last sort, as a new run beside the older ones.
//!
//! Any number of threads insert at once, mostly without contention on their stripe's list. Readers do not delay
//! writers. The first reader after new entries sorts them; concurrent readers wait for the sort.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, Result, UserOrder, ValueKind};

use crate::arena::{Arena, GRANULE_BYTES};
use crate::bloom::Bloom;
use crate::order::{Bytewise, Custom, KeyOrder, ReverseBytewise};
use crate::record::{self, RECORD_OVERHEAD_BYTES, record_bytes};
use crate::registry::Arguments;
use crate::runs::{Entries, Growth, Item, RunsCursor, RunsList};
use crate::stripe::{Counts, STRIPES};
use crate::tombstones::{LINK_BYTES, Tombstones};
use crate::{Entry, Memtable, MemtableConfig, MemtableFactory, Visit};

pub(crate) const NAME: &str = "vector";

/// Largest `count` option: 4 GiB of items.
const COUNT_MAX: usize = 1 << 28;

/// Items of a batch appended together.
const TOGETHER: usize = 32;

/// An entry's item is outside the arena but reserved in it, so that the reservation compared with `write_buffer_size`
/// counts it. A range deletion has a link in its place.
const BYTES_PER_ENTRY_MAX: usize = size_of::<Item>() + RECORD_OVERHEAD_BYTES + GRANULE_BYTES - 1;
const _: () = assert!(LINK_BYTES <= size_of::<Item>(), "range deletions take no more than other entries");

struct Vector<O> {
    list: Arc<RunsList<O>>,
    tombstones: Tombstones,
    bloom: Option<Bloom>,
}

impl<O: KeyOrder> Vector<O> {
    fn new(config: &MemtableConfig, order: O, count: usize) -> Result<Self> {
        let arena = Arena::new(config.capacity_bytes)?;
        let bloom = Bloom::new(&arena, &config.order.user, config.capacity_bytes, config.bloom_ratio)?;
        let count = count.min(config.capacity_bytes / BYTES_PER_ENTRY_MAX);
        let growth = Growth { first: count.div_ceil(STRIPES), max: usize::MAX };
        let list = RunsList::new(Entries { arena, order }, growth, config.background.clone());
        Ok(Vector { list, tombstones: Tombstones::new(config.order.user.clone()), bloom })
    }

    /// Writes the entry's record and returns its item; `None` for a range deletion, kept in `tombstones`.
    #[inline]
    fn write(&self, entry: &Entry<'_>) -> Option<Item> {
        let entries = &self.list.entries;
        if entry.kind == ValueKind::RangeDeletion {
            self.tombstones.push(&entries.arena, entry);
            return None;
        }
        if let Some(bloom) = &self.bloom {
            bloom.add(&entries.arena, entry.user_key);
        }
        let at = entries.arena.allocate(record_bytes(entry));
        // SAFETY: the allocation has room for the record, and the list publishes it later.
        unsafe { record::write(&entries.arena, at, entry) };
        Some(entries.item(at, entry.user_key))
    }
}

impl<O: KeyOrder> Memtable for Vector<O> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize {
        entries.saturating_mul(BYTES_PER_ENTRY_MAX).saturating_add(payload_bytes)
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.list.entries.arena.try_reserve(bytes)
    }

    fn insert(&self, entry: Entry<'_>) {
        let mut counts = Counts::default();
        counts.note(&entry);
        self.list.append(self.write(&entry).as_slice(), counts);
    }

    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        let mut more = true;
        while more {
            let mut items = [Item::NONE; TOGETHER];
            let mut free = items.iter_mut();
            let mut counts = Counts::default();
            for entry in entries.take(TOGETHER) {
                counts.note(&entry);
                if let Some(item) = self.write(&entry)
                    && let Some(slot) = free.next()
                {
                    *slot = item;
                }
            }
            more = counts.entries == TOGETHER as u64;
            let len = TOGETHER - free.len();
            self.list.append(items.get(..len).unwrap_or(&items), counts);
        }
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        let arena = &self.list.entries.arena;
        if self.bloom.as_ref().is_none_or(|bloom| bloom.may_contain(arena, key.user_key())) {
            self.list.get(key, visit);
        }
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Box::new(RunsCursor::new(Arc::clone(&self.list)))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.fragmented(&self.list.entries.arena)
    }

    fn counts(&self) -> Counts {
        self.list.totals()
    }

    fn memory_bytes(&self) -> usize {
        let heap = self.list.heap_bytes() + self.tombstones.heap_bytes();
        size_of_val(self) + self.list.entries.arena.held_bytes() + heap
    }

    fn reserved_bytes(&self) -> usize {
        self.list.entries.arena.reserved()
    }

    fn capacity_bytes(&self) -> usize {
        self.list.entries.arena.capacity()
    }

    fn prefault(&self, ahead_bytes: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        self.list.entries.arena.prefault(ahead_bytes, may_hold)
    }

    /// Sorts all entries into one run for the flush.
    fn seal(&self) {
        self.list.seal();
    }
}

/// Makes vectors. `count` is RocksDB's: the number of entries to reserve, divided equally among the stripes. Each
/// stripe reserves on first use.
pub(crate) struct Factory {
    count: usize,
}

impl Factory {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Arc<dyn MemtableFactory>> {
        let count = arguments.number("count", 0..=COUNT_MAX)?.unwrap_or(0);
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

#[cfg(test)]
mod tests {
    use base::{FamilyId, InternalOrder, SeqNo};

    use super::*;

    fn vector(count: usize, capacity_bytes: usize) -> Arc<dyn Memtable> {
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity_bytes);
        Factory { count }.create(&config).expect("made")
    }

    fn put(vector: &dyn Memtable, seq: u64) {
        let entry = Entry { user_key: b"key", seq: SeqNo(seq), kind: ValueKind::Value, value: b"" };
        assert!(vector.try_reserve(vector.worst_case_bytes(1, 3)));
        vector.insert(entry);
    }

    #[test]
    fn count_is_for_all_stripes_together_and_for_what_fits() {
        let with_room_for = |count, capacity_bytes| {
            let vector = vector(count, capacity_bytes);
            std::thread::scope(|scope| {
                for seq in 0..STRIPES as u64 {
                    let vector = &vector;
                    scope.spawn(move || put(&**vector, seq));
                }
            });
            vector.memory_bytes()
        };
        const COUNT: usize = 80_000;
        let of_count = COUNT * size_of::<Item>();
        let room = with_room_for(COUNT, 64 << 20);
        assert!((of_count / STRIPES..of_count + (64 << 10)).contains(&room), "{room} bytes");
        let room = with_room_for(COUNT_MAX, 1 << 20);
        assert!(room < 1 << 20, "{room} bytes, for entries that the arena has no room for");
    }
}
