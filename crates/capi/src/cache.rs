//! `rocksdb_cache_t`: the block cache. RocksDB's kinds differ in locking and eviction; here there is one.

use std::ffi::c_int;
use std::sync::Arc;

use spillway::internal::BlockCache;

use crate::boundary::{export, fallible, handles, of_nothing};
use crate::failure::Failure;

/// A cache. Clones share it. Databases opened with it share it, and keep it when this handle is destroyed.
#[derive(Clone)]
pub struct Cache(Arc<BlockCache>);

/// `rocksdb_lru_cache_options_t`.
pub struct LruOptions {
    capacity_bytes: usize,
    shard_bits: c_int,
}

/// `rocksdb_hyper_clock_cache_options_t`.
pub struct ClockOptions(LruOptions);

/// `rocksdb_memory_allocator_t`: blocks come from `malloc` only.
pub enum MemoryAllocator {}

handles!(Cache, LruOptions, ClockOptions, MemoryAllocator);

/// Lets the capacity decide.
const SHARD_BITS_BY_CAPACITY: c_int = -1;

impl Cache {
    fn new(capacity_bytes: usize) -> Box<Cache> {
        Box::new(Cache(BlockCache::new(capacity_bytes).into()))
    }

    fn of(options: &LruOptions) -> Box<Cache> {
        Cache::sharded(options.capacity_bytes, options.shard_bits)
    }

    /// Negative bits let the capacity decide.
    pub fn sharded(capacity_bytes: usize, shard_bits: c_int) -> Box<Cache> {
        let shards = u32::try_from(shard_bits).ok().and_then(|bits| 1usize.checked_shl(bits));
        let Some(shards) = shards else { return Cache::new(capacity_bytes) };
        Box::new(Cache(BlockCache::with_shards(capacity_bytes, shards).into()))
    }

    pub fn of_shared(cache: Arc<BlockCache>) -> Cache {
        Cache(cache)
    }

    pub fn shared(&self) -> Arc<BlockCache> {
        self.0.clone()
    }

    pub fn usage(&self) -> usize {
        self.0.usage()
    }
}

export! {
    fn rocksdb_cache_create_lru(capacity: usize) -> Box<Cache> {
        Cache::new(capacity)
    }

    fn rocksdb_cache_create_lru_with_strict_capacity_limit(capacity: usize) -> Box<Cache> {
        let cache = Cache::new(capacity);
        cache.0.set_strict(true);
        cache
    }

    fn rocksdb_cache_create_lru_opts(options: &LruOptions) -> Box<Cache> {
        Cache::of(options)
    }

    fn rocksdb_cache_create_hyper_clock(capacity: usize, _estimated_entry_charge: usize) -> Box<Cache> {
        Cache::new(capacity)
    }

    fn rocksdb_cache_create_hyper_clock_opts(options: &ClockOptions) -> Box<Cache> {
        Cache::of(&options.0)
    }

    fn rocksdb_cache_destroy(cache: Option<Box<Cache>>) {
        drop(cache);
    }

    /// RocksDB leaves the cache to the process's end. Here the last user frees it.
    fn rocksdb_cache_disown_data(_cache: &Cache) {}

    fn rocksdb_cache_set_capacity(cache: &Cache, capacity: usize) {
        cache.0.set_capacity(capacity);
    }

    fn rocksdb_cache_get_capacity(cache: &Cache) -> usize {
        cache.0.capacity()
    }

    fn rocksdb_cache_get_usage(cache: &Cache) -> usize {
        cache.usage()
    }

    fn rocksdb_cache_get_pinned_usage(cache: &Cache) -> usize {
        cache.0.pinned_usage()
    }

    fn rocksdb_cache_get_occupancy_count(cache: &Cache) -> usize {
        cache.0.entries()
    }

    /// Places for entries, used or not.
    fn rocksdb_cache_get_table_address_count(cache: &Cache) -> usize {
        cache.0.places()
    }

    fn rocksdb_lru_cache_options_create() -> Box<LruOptions> {
        Box::new(LruOptions { capacity_bytes: 0, shard_bits: SHARD_BITS_BY_CAPACITY })
    }

    fn rocksdb_lru_cache_options_destroy(options: Option<Box<LruOptions>>) {
        drop(options);
    }

    fn rocksdb_lru_cache_options_set_capacity(options: &mut LruOptions, capacity: usize) {
        options.capacity_bytes = capacity;
    }

    fn rocksdb_lru_cache_options_set_num_shard_bits(options: &mut LruOptions, bits: c_int) {
        options.shard_bits = bits;
    }

    fn rocksdb_lru_cache_options_set_memory_allocator(
        _options: &mut LruOptions,
        _allocator: Option<&MemoryAllocator>,
    ) {
    }

    fn rocksdb_hyper_clock_cache_options_set_memory_allocator(
        _options: &mut ClockOptions,
        _allocator: Option<&MemoryAllocator>,
    ) {
    }

    fn rocksdb_hyper_clock_cache_options_create(
        capacity: usize,
        _estimated_entry_charge: usize,
    ) -> Box<ClockOptions> {
        Box::new(ClockOptions(LruOptions { capacity_bytes: capacity, shard_bits: SHARD_BITS_BY_CAPACITY }))
    }

    fn rocksdb_hyper_clock_cache_options_destroy(options: Option<Box<ClockOptions>>) {
        drop(options);
    }

    fn rocksdb_hyper_clock_cache_options_set_capacity(options: &mut ClockOptions, capacity: usize) {
        options.0.capacity_bytes = capacity;
    }

    /// Our cache sizes its tables itself.
    fn rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(_options: &mut ClockOptions, _bytes: usize) {}

    fn rocksdb_hyper_clock_cache_options_set_num_shard_bits(options: &mut ClockOptions, bits: c_int) {
        options.0.shard_bits = bits;
    }
}

fallible! {
    fn rocksdb_jemalloc_nodump_allocator_create() -> Option<Box<MemoryAllocator>> {
        Err(Failure::not_implemented("memory allocators of caches are not there"))
    }
}

of_nothing! { "memory allocators of caches";
    destroy {
        rocksdb_memory_allocator_destroy
    }
}
