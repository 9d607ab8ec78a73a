//! The block cache, and the limit on memtables, as objects to share.

use std::fmt;
use std::sync::Arc;

use crate::queue::memory::MemoryBudget;

/// A cache of tables' blocks for any number of databases. Clones are one cache.
#[derive(Clone)]
pub struct BlockCache(pub(super) Arc<table::BlockCache>);

impl BlockCache {
    /// A cache of so many bytes, counted uncompressed.
    pub fn new(capacity_bytes: usize) -> Self {
        BlockCache(Arc::new(table::BlockCache::new(capacity_bytes)))
    }

    /// Bytes that the cache may hold.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Changes the capacity; what is too much is dropped at once.
    pub fn set_capacity(&self, capacity_bytes: usize) {
        self.0.set_capacity(capacity_bytes);
    }

    /// Bytes that the cache holds now, with those taken by a [`WriteBufferManager`].
    pub fn usage(&self) -> usize {
        self.0.usage()
    }

    /// Bytes of blocks in use: of iterators, and of values not yet dropped. Walks all entries.
    pub fn pinned_usage(&self) -> usize {
        self.0.pinned_usage()
    }

    /// Makes the capacity strict (RocksDB's `strict_capacity_limit`): blocks in use count and are not evicted, and a read
    /// that finds no room for its block fails with [`MemoryLimit`](crate::ErrorKind::MemoryLimit). Off by default: blocks
    /// in use may be evicted, and then hold memory beside the cache. Reads of flushes and compactions never fail.
    pub fn set_strict_capacity_limit(&self, is_strict: bool) {
        self.0.set_strict(is_strict);
    }

    /// The part of the capacity, between 0 and 1, in which index and filter blocks are evicted last (RocksDB's
    /// `high_pri_pool_ratio`); 0.5 by default. Counts with `cache_index_and_filter_blocks`.
    pub fn set_high_priority_ratio(&self, ratio: f64) {
        self.0.set_high_priority_ratio(ratio);
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("capacity", &self.capacity()).field("usage", &self.usage()).finish()
    }
}

/// A limit on the memtables of any number of databases together (RocksDB's `WriteBufferManager`). Clones are one limit.
///
/// A writer at the limit waits until enough is flushed: of the largest memtable, whichever database has it. So a
/// database that is idle gives way to one that is written to. A limit smaller than one memtable works too, with small
/// flushes. Databases that cannot flush, such as those opened for reading only, are waited for by nobody: with them, all
/// together may hold more.
///
/// With a cache, memtables and blocks have one limit together: what memtables hold is taken from the cache's capacity.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use spillway::{BlockCache, Db, Options, WriteBufferManager};
///
/// let cache = BlockCache::new(256 << 20);
/// let manager = WriteBufferManager::in_cache(64 << 20, &cache);
/// let options = Options::new().write_buffer_manager(manager.clone()).shared_block_cache(cache.clone());
/// let (one, two) = (Db::open_with(dir.path().join("1"), &options)?, Db::open_with(dir.path().join("2"), &options)?);
/// one.put("key", "value")?;
/// assert!(manager.memory_usage() <= manager.limit() && cache.usage() >= manager.cache_usage());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WriteBufferManager(pub(super) Arc<MemoryBudget>);

impl WriteBufferManager {
    /// A limit of so many bytes; 0 for none. Writers wait at it: see [`set_allow_stall`](Self::set_allow_stall).
    pub fn new(limit_bytes: usize) -> Self {
        WriteBufferManager(MemoryBudget::shared(limit_bytes, true, None))
    }

    /// As [`new`](Self::new); what memtables hold is also taken from the capacity of `cache`, in steps of 256 KiB.
    pub fn in_cache(limit_bytes: usize, cache: &BlockCache) -> Self {
        WriteBufferManager(MemoryBudget::shared(limit_bytes, true, Some(cache.0.clone())))
    }

    /// The limit in bytes; 0 if there is none.
    pub fn limit(&self) -> usize {
        if self.0.is_limited() { self.0.limit_bytes() } else { 0 }
    }

    /// Changes the limit; 0 for none. Databases above it begin to flush.
    pub fn set_limit(&self, limit_bytes: usize) {
        self.0.set_limit(limit_bytes);
    }

    /// Whether writers wait at the limit. If not, they pass it until flushes have ended, and the limit is exceeded when
    /// they write faster than flushes. By default they wait. (In RocksDB they do not.)
    pub fn set_allow_stall(&self, allow_stall: bool) {
        self.0.set_allow_stall(allow_stall);
    }

    /// Flushes the oldest memtable first, not the largest. The oldest ends the need for old logs; the largest frees the
    /// most memory.
    pub fn set_flush_oldest_first(&self, oldest_first: bool) {
        self.0.set_flush_oldest_first(oldest_first);
    }

    /// Bytes that memtables hold: written to, waiting for a flush, or made ahead.
    pub fn memory_usage(&self) -> usize {
        self.0.charged_bytes()
    }

    /// Bytes of the memtables that take writes. Asks every database.
    pub fn mutable_memory_usage(&self) -> usize {
        self.0.mutable_bytes()
    }

    /// Bytes taken from the cache's capacity; 0 without a cache.
    pub fn cache_usage(&self) -> usize {
        self.0.bytes_in_cache()
    }
}

impl fmt::Debug for WriteBufferManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (limit, usage) = (self.limit(), self.memory_usage());
        f.debug_struct("WriteBufferManager").field("limit", &limit).field("memory_usage", &usage).finish()
    }
}
