//! One shard and its eviction policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP
//! 2023). New entries enter a small queue; entries hit there move to the main queue, the rest are evicted. So a scan
//! displaces only a tenth of the cache. Blocks evicted from the small queue enter the main queue if they return soon. A
//! third queue holds index and filter blocks, evicted last.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use super::ghost::Ghosts;
use super::slab::{Queue, Slab};
use super::{BlockKey, CacheStats, Priority};

/// The small queue's share of a shard is one in this many.
const SMALL_SHARE: usize = 10;
/// Visits are counted up to this number.
const VISITS_MAX: u8 = 3;

pub(super) struct Shard<V> {
    /// Holds everything a hit needs: a hit touches one line beside the value's own.
    map: HashMap<BlockKey, Entry<V>, BuildHasherDefault<Mixed>>,
    slab: Slab,
    ghosts: Ghosts,
    stats: CacheStats,
}

struct Entry<V> {
    value: Arc<V>,
    /// Index in `slab`.
    at: u32,
    /// Hits since insertion or since the entry was last spared, up to `VISITS_MAX`.
    visits: u8,
}

/// An entry to insert.
pub(super) struct Newcomer<V> {
    pub(super) key: BlockKey,
    pub(super) value: Arc<V>,
    /// Charged bytes, overhead included.
    pub(super) cost: usize,
    pub(super) priority: Priority,
}

/// Byte budget of an insertion. Evicted values go to `dropped` and are dropped after the lock.
pub(super) struct Room<'a, V> {
    pub(super) bytes: usize,
    /// Most bytes of the high-priority queue. Its oldest blocks move on to the main queue.
    pub(super) high_bytes: usize,
    /// Values in use are not evicted.
    pub(super) is_strict: bool,
    pub(super) dropped: &'a mut Vec<Arc<V>>,
}

impl<V> Shard<V> {
    #[inline]
    pub(super) fn get(&mut self, key: BlockKey) -> Option<Arc<V>> {
        let Some(entry) = self.map.get_mut(&key) else {
            self.stats.misses += 1;
            return None;
        };
        self.stats.hits += 1;
        entry.visits = (entry.visits + 1).min(VISITS_MAX);
        Some(entry.value.clone())
    }

    /// Makes room for an entry of `cost` bytes and inserts it; false if there is no such room.
    pub(super) fn insert(&mut self, newcomer: Newcomer<V>, room: &mut Room<'_, V>) -> bool {
        let Newcomer { key, value, cost, priority } = newcomer;
        room.dropped.extend(self.erase(key));
        let limit = room.bytes.checked_sub(cost);
        if !limit.is_some_and(|limit| self.shrink(limit, room)) {
            room.dropped.push(value);
            return false;
        }
        let queue = match priority {
            Priority::High => Queue::High,
            Priority::Low if self.ghosts.take(key.mixed()) => {
                self.stats.returns += 1;
                Queue::Main
            }
            Priority::Low => Queue::Small,
        };
        let at = self.slab.add(key, cost, queue);
        self.map.insert(key, Entry { value, at, visits: 0 });
        self.stats.inserts += 1;
        self.ghosts.fit(self.map.len());
        self.demote(room.high_bytes);
        true
    }

    pub(super) fn erase(&mut self, key: BlockKey) -> Option<Arc<V>> {
        let entry = self.map.remove(&key)?;
        self.slab.remove(entry.at);
        Some(entry.value)
    }

    /// Evicts down to the room.
    pub(super) fn trim(&mut self, room: &mut Room<'_, V>) {
        self.shrink(room.bytes, room);
        self.demote(room.high_bytes);
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.slab.used_bytes()
    }

    pub(super) fn pinned_bytes(&self) -> usize {
        let held = self.map.values().filter(|entry| Arc::strong_count(&entry.value) > 1);
        held.map(|entry| self.slab.slot(entry.at).cost).sum()
    }

    pub(super) fn entries(&self) -> usize {
        self.map.len()
    }

    pub(super) fn places(&self) -> usize {
        self.map.capacity()
    }

    pub(super) fn table_bytes(&self) -> usize {
        self.places() * size_of::<(BlockKey, Entry<V>)>() + self.slab.table_bytes()
    }

    pub(super) fn for_each(&self, visit: &mut impl FnMut(&V, usize)) {
        self.map.values().for_each(|entry| visit(&entry.value, self.slab.slot(entry.at).cost));
    }

    pub(super) fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Evicts until at most `limit` bytes are used; false if more are in use under a strict limit.
    fn shrink(&mut self, limit: usize, room: &mut Room<'_, V>) -> bool {
        if room.is_strict {
            return self.shrink_unused(limit, room);
        }
        while self.slab.used_bytes() > limit {
            let small = self.slab.queue_bytes(Queue::Small);
            let at = if small > room.bytes / SMALL_SHARE { self.slab.oldest(Queue::Small) } else { None };
            match at.or_else(|| self.slab.oldest(Queue::Main)).or_else(|| self.slab.oldest(Queue::Small)) {
                Some(at) => self.pass(at, room),
                None => match self.slab.oldest(Queue::High) {
                    Some(at) => self.pass(at, room),
                    None => return true,
                },
            }
        }
        true
    }

    /// As [`shrink`](Self::shrink), passing over values in use, queue by queue.
    fn shrink_unused(&mut self, limit: usize, room: &mut Room<'_, V>) -> bool {
        let passes_max = self.map.len() * (usize::from(VISITS_MAX) + 1);
        for queue in [Queue::Small, Queue::Main, Queue::High] {
            for _ in 0..passes_max {
                let Some(at) = self.slab.oldest(queue).filter(|_| self.slab.used_bytes() > limit) else { break };
                // A count of one cannot grow: hits take the shard's lock.
                let is_in_use = |entry: &Entry<V>| Arc::strong_count(&entry.value) > 1;
                if self.map.get(&self.slab.slot(at).key).is_some_and(is_in_use) {
                    self.slab.requeue(at, queue);
                } else {
                    self.pass(at, room);
                }
            }
        }
        self.slab.used_bytes() <= limit
    }

    /// Evicts the entry, or spares it if it has visits. Each reprieve costs visits, so every entry goes after at most
    /// `VISITS_MAX` rounds.
    fn pass(&mut self, at: u32, room: &mut Room<'_, V>) {
        let slot = self.slab.slot(at);
        let (key, queue) = (slot.key, slot.queue);
        let visits = self.map.get_mut(&key).map(|entry| &mut entry.visits);
        match (queue, visits) {
            (Queue::Small, Some(visits)) if *visits > 0 => {
                *visits = 0;
                self.slab.requeue(at, Queue::Main);
            }
            (Queue::Main | Queue::High, Some(visits)) if *visits > 0 => {
                *visits -= 1;
                self.slab.requeue(at, queue);
            }
            _ => {
                self.slab.remove(at);
                room.dropped.extend(self.map.remove(&key).map(|entry| entry.value));
                if queue == Queue::Small {
                    self.ghosts.remember(key.mixed());
                }
            }
        }
    }

    /// Demotes high-priority entries down to `limit` bytes.
    fn demote(&mut self, limit: usize) {
        while self.slab.queue_bytes(Queue::High) > limit
            && let Some(at) = self.slab.oldest(Queue::High)
        {
            self.slab.requeue(at, Queue::Main);
        }
    }
}

impl<V> Default for Shard<V> {
    fn default() -> Self {
        Shard {
            map: HashMap::default(),
            slab: Slab::default(),
            ghosts: Ghosts::default(),
            stats: CacheStats::default(),
        }
    }
}

impl Hash for BlockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

/// Passes on the hash of a `BlockKey`, already mixed.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    #[inline]
    fn write_u64(&mut self, mixed: u64) {
        self.0 = mixed;
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("a key is hashed as one number");
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
