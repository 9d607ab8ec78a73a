//! The sorted hash memtable, for point access under heavy writes. Lookups and inserts take constant time at any size.
//! The background sorts; cursors sort the entries it has not reached.
//!
//! Every entry is a node in a hash table ([`buckets`], [`versions`]), shared by readers and writers without a lock, and
//! an item of a write list ([`crate::runs`]), whose chunks are sorted and merged in the background.
//! The table answers lookups, the list cursors. After Speedb's HashSpdRepFactory.

mod buckets;
mod factory;
#[cfg(test)]
mod tests;
mod versions;

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, LookupKey, Result, SeqNo, ValueKind, key};

use self::buckets::{Buckets, NODE_BYTES, bytes_of, record_of};
use self::factory::EntryBytes;
use self::versions::{Version, Versions};
use crate::arena::{Arena, CAPACITY_MAX_BYTES, GRANULE_BYTES, Ref};
use crate::bloom::Bloom;
use crate::order::KeyOrder;
use crate::record::{self, RECORD_OVERHEAD_BYTES, record_bytes, trailer_of};
use crate::runs::{Entries, Growth, Item, RunsCursor, RunsList};
use crate::stripe::Counts;
use crate::tombstones::{LINK_BYTES, Tombstones};
use crate::{Entry, Memtable, MemtableConfig, Visit, VisitMany};

pub(crate) use self::factory::{ARGUMENTS, Factory};

pub(crate) const NAME: &str = "sorted_hash";

/// Items a list reserves at first: small memtables stay small.
const LIST_ITEMS: usize = 64;

/// Lookups, or inserts of a batch, with overlapping memory accesses.
const WIDTH: usize = 16;

/// An entry's item is outside the arena but reserved in it, so that the reservation compared with `write_buffer_size`
/// counts it.
const BYTES_PER_ENTRY_MAX: usize = size_of::<Item>() + NODE_BYTES + RECORD_OVERHEAD_BYTES + GRANULE_BYTES - 1;
const _: () = assert!(LINK_BYTES <= NODE_BYTES, "range deletions take no more than other entries");

struct SortedHash<O> {
    list: Arc<RunsList<O>>,
    buckets: Buckets,
    tombstones: Tombstones,
    /// What the factory learns from sealed memtables.
    entry_bytes: Arc<EntryBytes>,
}

/// Arena bytes for a memtable of this capacity.
fn arena_bytes(capacity_bytes: usize, buckets: usize) -> usize {
    // An impossible capacity is left for the arena to refuse.
    capacity_bytes.saturating_add(bytes_of(buckets)).min(capacity_bytes.max(CAPACITY_MAX_BYTES))
}

impl<O: KeyOrder> SortedHash<O> {
    /// The buckets' memory comes on top of the configured capacity, as far as references reach, so that a memtable made
    /// for one large batch has room for it.
    fn new(config: &MemtableConfig, order: O, factory: &Factory) -> Result<Self> {
        let buckets = factory.buckets_for(config.capacity_bytes, config.room_bytes);
        let arena = Arena::new(arena_bytes(config.capacity_bytes, buckets))?;
        let user_order = &config.order.user;
        // The buckets already filter, and better. Capacity 0: only the ratio is checked.
        Bloom::new(&arena, user_order, 0, config.bloom_ratio)?;
        let buckets = Buckets::new(&arena, buckets, user_order.timestamp_bytes()).ok_or_else(|| {
            Error::invalid_argument(format!("{} bytes are too few for a memtable", config.capacity_bytes))
        })?;
        let growth = Growth { first: LIST_ITEMS, max: factory.run_entries };
        let list = RunsList::new(Entries { arena, order }, growth, config.background.clone());
        let (tombstones, entry_bytes) = (Tombstones::new(user_order.clone()), Arc::clone(&factory.entry_bytes));
        Ok(SortedHash { list, buckets, tombstones, entry_bytes })
    }

    fn entries(&self) -> &Entries<O> {
        &self.list.entries
    }

    /// Writes the record of an entry into an unlinked node.
    #[inline]
    fn write(&self, entry: &Entry<'_>) -> Ref {
        let arena = &self.entries().arena;
        let node = arena.allocate(NODE_BYTES + record_bytes(entry));
        // SAFETY: behind the node's words the allocation has room for the record, and it is not published yet.
        unsafe { record::write(arena, record_of(node), entry) };
        node
    }

    /// Puts a node into the table.
    #[inline]
    fn link_in(&self, node: Ref, hash: u64, entry: &Entry<'_>) {
        if let Err(anchor) = self.buckets.insert(self.entries(), node, hash, entry.user_key) {
            let version = Version { user_key: entry.user_key, trailer: trailer_of(entry) };
            Versions { entries: self.entries(), anchor }.insert(node, &version);
        }
    }

    /// Inserts point entries, at most `WIDTH`.
    fn insert_chunk(&self, chunk: &[Entry<'_>], counts: Counts) {
        let arena = &self.entries().arena;
        let mut nodes = [(Ref::NULL, 0); WIDTH];
        for (slot, entry) in nodes.iter_mut().zip(chunk) {
            let hash = self.buckets.hash(entry.user_key);
            self.buckets.prefetch(arena, hash);
            *slot = (Ref::NULL, hash);
        }
        for ((node, hash), entry) in nodes.iter_mut().zip(chunk) {
            *node = self.write(entry);
            arena.prefetch(self.buckets.first(arena, *hash).node());
        }
        let mut items = [Item::NONE; WIDTH];
        for (((node, hash), entry), item) in nodes.iter().zip(chunk).zip(&mut items) {
            self.link_in(*node, *hash, entry);
            *item = self.entries().item(record_of(*node), entry.user_key);
        }
        self.list.append(items.get(..chunk.len()).unwrap_or(&items), counts);
    }

    /// Shows the versions of the lookup's key. `first` is the first link of its bucket.
    #[inline]
    fn visit_versions(&self, first: buckets::Link, hash: u64, key: &LookupKey, visit: &mut Visit<'_>) {
        let (entries, user_key, visible) = (self.entries(), key.user_key(), key.seq());
        if let Some(anchor) = Buckets::find(entries, first, Ref::NULL, hash, user_key) {
            let from = Version { user_key, trailer: key::pack_trailer(visible, key::SEEK_KIND) };
            Versions { entries, anchor }.visit(&from, visible, visit);
        }
    }
}

impl<O: KeyOrder> Memtable for SortedHash<O> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize {
        entries.saturating_mul(BYTES_PER_ENTRY_MAX).saturating_add(payload_bytes)
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.entries().arena.try_reserve(bytes)
    }

    fn prefetch(&self, user_key: &[u8]) {
        self.buckets.prefetch(&self.entries().arena, self.buckets.hash(user_key));
    }

    fn insert(&self, entry: Entry<'_>) {
        let mut counts = Counts::default();
        counts.note(&entry);
        let arena = &self.entries().arena;
        if entry.kind == ValueKind::RangeDeletion {
            self.tombstones.push(arena, &entry);
            return self.list.append(&[], counts);
        }
        let hash = self.buckets.hash(entry.user_key);
        self.buckets.prefetch(arena, hash);
        let node = self.write(&entry);
        self.link_in(node, hash, &entry);
        self.list.append(&[self.entries().item(record_of(node), entry.user_key)], counts);
    }

    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        // Most batches are one entry, for which the buffers below would cost more than its insert.
        let Some(first) = entries.next() else { return };
        let Some(second) = entries.next() else { return self.insert(first) };
        let entries = &mut [first, second].into_iter().chain(entries);
        const NOTHING: Entry<'_> = Entry { user_key: &[], seq: SeqNo::ZERO, kind: ValueKind::Value, value: &[] };
        let mut more = true;
        while more {
            let mut counts = Counts::default();
            let mut chunk = [NOTHING; WIDTH];
            let mut free = chunk.iter_mut();
            for entry in entries.take(WIDTH) {
                counts.note(&entry);
                if entry.kind == ValueKind::RangeDeletion {
                    self.tombstones.push(&self.entries().arena, &entry);
                } else if let Some(slot) = free.next() {
                    *slot = entry;
                }
            }
            more = counts.entries == WIDTH as u64;
            let len = WIDTH - free.len();
            self.insert_chunk(chunk.get(..len).unwrap_or(&chunk), counts);
        }
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        let hash = self.buckets.hash_of(key);
        self.visit_versions(self.buckets.first(&self.entries().arena, hash), hash, key, visit);
    }

    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        let arena = &self.entries().arena;
        for (chunk, start) in keys.chunks(WIDTH).zip((0..).step_by(WIDTH)) {
            let mut hashes = [0; WIDTH];
            for (hash, key) in hashes.iter_mut().zip(chunk) {
                *hash = self.buckets.hash_of(key);
                self.buckets.prefetch(arena, *hash);
            }
            let firsts = hashes.map(|hash| self.buckets.first(arena, hash));
            for first in firsts.iter().take(chunk.len()) {
                arena.prefetch(first.node());
            }
            for (i, ((key, first), hash)) in (start..).zip(chunk.iter().zip(firsts).zip(hashes)) {
                self.visit_versions(first, hash, key, &mut |seq, kind, value| visit(i, seq, kind, value));
            }
        }
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Box::new(RunsCursor::new(Arc::clone(&self.list)))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.fragmented(&self.entries().arena)
    }

    fn counts(&self) -> Counts {
        self.list.totals()
    }

    /// Includes all buckets, touched or not.
    fn memory_bytes(&self) -> usize {
        let heap = self.list.heap_bytes() + self.tombstones.heap_bytes();
        size_of_val(self) + self.entries().arena.held_bytes() + heap
    }

    /// Excludes the buckets: their memory is beside the capacity.
    fn reserved_bytes(&self) -> usize {
        self.entries().arena.reserved() - self.buckets.bytes()
    }

    fn capacity_bytes(&self) -> usize {
        self.list.entries.arena.capacity() - self.buckets.bytes()
    }

    fn prefault(&self, ahead_bytes: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        self.entries().arena.prefault(ahead_bytes, may_hold)
    }

    /// Merges all entries into one run for the flush.
    fn seal(&self) {
        self.entry_bytes.note(self.reserved_bytes(), self.counts().entries);
        self.list.seal();
    }
}
