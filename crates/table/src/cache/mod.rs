//! The block cache: blocks of tables by (table, offset), and answers of hot keys, up to a number of bytes.
//!
//! *Thread safety*: sharded by key, with a short lock per shard. Under the lock, a hit counts its visit and clones an
//! `Arc`; it allocates and moves nothing. (A plain lock measured faster than shared locks and atomic counters: it
//! writes the shard's line once.) No lock is held while a value is dropped or loaded. If two threads miss together,
//! both load, and the last insert stays.
//!
//! *Invariants*: entries stay within the capacity, shard by shard. An evicted value lives until its last `Arc` is
//! dropped, uncharged. With a strict limit, values in use are not evicted, and an insert beyond the capacity fails.

mod answers;
mod ghost;
mod shard;
mod slab;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use self::answers::Answers;
pub use self::answers::{Answer, KeyHash, Question, Reply};
use self::shard::{Newcomer, Room, Shard};

/// Charged for each entry beside its own bytes: 48 for the map at its usual load, 40 for the queues, 16 for the `Arc`.
pub const ENTRY_OVERHEAD_BYTES: usize = 104;
/// Most shards of a cache.
pub const SHARDS_MAX: usize = 64;
/// Smaller shards could not keep an unpartitioned filter or index block: a value larger than its shard is not kept.
const SHARD_BYTES_MIN: usize = 2 << 20;
/// Answers have one in so many bytes of a block cache.
const ANSWERS_SHARE: usize = 16;
/// Part of the capacity for index and filter blocks, in RocksDB as here.
pub const HIGH_PRIORITY_RATIO: f64 = 0.5;

/// Table (by `Cache::new_id`) and offset of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockKey {
    /// Number of the file.
    pub id: u64,
    /// Byte offset in the file.
    pub offset: u64,
}

/// What is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Index and filter blocks: evicted last, as long as they fill at most their part of a shard, half by default.
    High,
    /// Evicted first.
    Low,
}

/// Counts since the cache was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Blocks put in.
    pub inserts: u64,
    /// Blocks put in again soon after they were evicted: a larger cache would have had them.
    pub returns: u64,
}

/// A cache of values `V`, shared by any number of tables and databases.
pub struct Cache<V> {
    /// Its length is a power of two.
    shards: Box<[Cell<V>]>,
    capacity_bytes: AtomicUsize,
    /// Taken from the capacity by owners of other memory.
    reserved_bytes: AtomicUsize,
    is_strict: AtomicBool,
    /// Between 0 and 1, as the number's bits.
    high_priority_ratio: AtomicU64,
    next_id: AtomicU64,
    /// Made by the first question, by the capacity of then.
    answers: OnceLock<Answers>,
    /// The share of answers is one in this many bytes.
    answers_share: AtomicUsize,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Cell<V>(Mutex<Shard<V>>);

impl<V> Cache<V> {
    /// A cache of so many bytes.
    pub fn new(capacity_bytes: usize) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        Cache::with_shards(capacity_bytes, shards)
    }

    /// `shards` is rounded down to a power of two between 1 and `SHARDS_MAX`. `set_capacity` does not change it.
    pub fn with_shards(capacity_bytes: usize, shards: usize) -> Self {
        let shards = 1 << shards.clamp(1, SHARDS_MAX).ilog2();
        Cache {
            shards: (0..shards).map(|_| Cell(Mutex::default())).collect(),
            capacity_bytes: AtomicUsize::new(capacity_bytes),
            reserved_bytes: AtomicUsize::new(0),
            is_strict: AtomicBool::new(false),
            high_priority_ratio: AtomicU64::new(HIGH_PRIORITY_RATIO.to_bits()),
            next_id: AtomicU64::new(1),
            answers: OnceLock::new(),
            answers_share: AtomicUsize::new(ANSWERS_SHARE),
        }
    }

    /// A number unique among the tables of this cache.
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// The block of a key, if it is there.
    #[inline]
    pub fn get(&self, key: BlockKey) -> Option<Arc<V>> {
        self.shard(key).lock().get(key)
    }

    /// Inserts `value`, charged with `charge` bytes, in place of any value of `key`. False if it is not kept: it is larger
    /// than a shard, or the limit is strict and the rest of the shard is in use.
    pub fn insert(&self, key: BlockKey, value: Arc<V>, charge: usize, priority: Priority) -> bool {
        let cost = charge.saturating_add(ENTRY_OVERHEAD_BYTES);
        let mut dropped = Vec::new();
        let mut shard = self.shard(key).lock();
        // Read under the lock: a concurrent capacity cut is either seen here or trims this shard afterwards.
        let mut room = self.room(&mut dropped);
        let kept = shard.insert(Newcomer { key, value, cost, priority }, &mut room);
        drop(shard);
        kept
    }

    /// Gives the whole cache to answers, not only a share. Without effect after the first question.
    pub fn dedicate_to_answers(&self) {
        self.answers_share.store(1, Relaxed);
    }

    /// The answer to a lookup, if it is kept.
    #[inline]
    pub fn ask(&self, question: &Question<'_>) -> Reply {
        let bytes = || self.capacity() / self.answers_share.load(Relaxed);
        self.answers.get_or_init(|| Answers::within(bytes())).ask(question)
    }

    /// Keeps the answer to a wanted question, unless it is long.
    pub fn keep(&self, hash: KeyHash, question: &Question<'_>, answer: &Answer<'_>) {
        if self.answers.get().is_some_and(|answers| answers.keep(hash, question, answer)) {
            self.trim();
        }
    }

    fn answer_bytes(&self) -> usize {
        self.answers.get().map_or(0, Answers::memory_bytes)
    }

    /// Bytes that the cache may hold.
    pub fn capacity(&self) -> usize {
        self.capacity_bytes.load(Relaxed)
    }

    /// Takes effect at once: evicts entries over the new capacity. Memory of answers stays as it is.
    pub fn set_capacity(&self, capacity_bytes: usize) {
        self.capacity_bytes.store(capacity_bytes, Relaxed);
        self.trim();
    }

    /// Takes bytes from the capacity for memory outside the cache; blocks make room at once. More than the capacity may be
    /// taken: then no block is kept.
    pub fn reserve(&self, bytes: usize) {
        self.reserved_bytes.fetch_add(bytes, Relaxed);
        self.trim();
    }

    /// Ends a reservation, wholly or in part.
    pub fn give_back(&self, bytes: usize) {
        self.reserved_bytes.fetch_sub(bytes, Relaxed);
    }

    fn trim(&self) {
        for cell in &self.shards {
            let mut dropped = Vec::new();
            let mut shard = cell.0.lock();
            shard.trim(&mut self.room(&mut dropped));
            drop(shard);
        }
    }

    /// Whether blocks in use count, and a read fails that finds no room for its block. Blocks evicted before, while in
    /// use, do not count.
    pub fn set_strict(&self, is_strict: bool) {
        self.is_strict.store(is_strict, Relaxed);
    }

    /// Whether the limit is strict.
    pub fn is_strict(&self) -> bool {
        self.is_strict.load(Relaxed)
    }

    /// Sets the part of the capacity, between 0 and 1, in which index and filter blocks are evicted last.
    pub fn set_high_priority_ratio(&self, ratio: f64) {
        self.high_priority_ratio.store(ratio.clamp(0.0, 1.0).to_bits(), Relaxed);
        self.trim();
    }

    /// The part of the capacity in which index and filter blocks are evicted last.
    pub fn high_priority_ratio(&self) -> f64 {
        f64::from_bits(self.high_priority_ratio.load(Relaxed))
    }

    fn room<'a>(&self, dropped: &'a mut Vec<Arc<V>>) -> Room<'a, V> {
        let bytes = self.shard_bytes();
        let high_bytes = (bytes as f64 * self.high_priority_ratio()) as usize;
        Room { bytes, high_bytes, is_strict: self.is_strict(), dropped }
    }

    /// Bytes of entries, overhead included, of answers and of reservations. Summed shard by shard: not a snapshot.
    pub fn usage(&self) -> usize {
        self.answer_bytes()
            + self.reserved_bytes.load(Relaxed)
            + self.shards.iter().map(|cell| cell.0.lock().used_bytes()).sum::<usize>()
    }

    /// Bytes of the cache's own tables, which its capacity does not count.
    pub fn table_bytes(&self) -> usize {
        size_of::<Self>()
            + self.shards.iter().map(|cell| size_of::<Cell<V>>() + cell.0.lock().table_bytes()).sum::<usize>()
    }

    /// Bytes of entries referenced outside the cache. Walks all entries.
    pub fn pinned_usage(&self) -> usize {
        self.shards.iter().map(|cell| cell.0.lock().pinned_bytes()).sum()
    }

    /// Blocks that the cache holds.
    pub fn entries(&self) -> usize {
        self.shards.iter().map(|cell| cell.0.lock().entries()).sum()
    }

    /// Blocks that the cache's tables have places for.
    pub fn places(&self) -> usize {
        self.shards.iter().map(|cell| cell.0.lock().places()).sum()
    }

    /// Passes each entry and its charged bytes to `visit`, shard by shard, under the shard's lock.
    pub fn for_each(&self, mut visit: impl FnMut(&V, usize)) {
        self.shards.iter().for_each(|cell| cell.0.lock().for_each(&mut visit));
    }

    /// Counts since the cache was made.
    pub fn stats(&self) -> CacheStats {
        let mut sum = CacheStats::default();
        for cell in &self.shards {
            let stats = cell.0.lock().stats();
            sum.hits += stats.hits;
            sum.misses += stats.misses;
            sum.inserts += stats.inserts;
            sum.returns += stats.returns;
        }
        sum
    }

    fn shard_bytes(&self) -> usize {
        let others = self.answer_bytes() + self.reserved_bytes.load(Relaxed);
        self.capacity().saturating_sub(others) / self.shards.len()
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "masked by the length, a power of two")]
    fn shard(&self, key: BlockKey) -> &Mutex<Shard<V>> {
        // Bits unused by the shard's map: it takes the lowest and the topmost.
        let at = (key.mixed() >> 40) as usize & (self.shards.len() - 1);
        &self.shards[at].0
    }
}

impl BlockKey {
    /// Spreads the key over 64 bits.
    #[inline]
    fn mixed(self) -> u64 {
        let product = u128::from(self.id ^ 0x2d35_8dcc_aa6c_78a5) * u128::from(self.offset ^ 0x8bb8_4b93_962e_acc9);
        product as u64 ^ (product >> 64) as u64
    }
}
