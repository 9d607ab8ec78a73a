//! Memory limits and memory usage of databases and caches.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use spillway::{BlockCache, Db};

use crate::boundary::{export, fallible, handles};
use crate::cache::Cache;
use crate::database::Database;

/// `rocksdb_write_buffer_manager_t`: a limit on memtables. Applies to each database by itself.
#[derive(Clone)]
pub struct WriteBufferManager(Arc<Mutex<Managed>>);

struct Managed {
    limit_bytes: usize,
    allow_stall: bool,
    costs_to_cache: bool,
    databases: Watched,
}

/// Open databases.
#[derive(Clone, Default)]
pub struct Watched(Vec<Weak<Db>>);

/// `rocksdb_memory_consumers_t`.
#[derive(Default)]
pub struct Consumers {
    databases: Watched,
    caches: Vec<Arc<BlockCache>>,
}

/// `rocksdb_memory_usage_t`, in bytes.
pub struct Usage {
    memtables: u64,
    unflushed: u64,
    readers: u64,
    caches: u64,
}

handles!(WriteBufferManager, Consumers, Usage);

impl Watched {
    pub fn add(&mut self, db: &Arc<Db>) {
        self.0.retain(|known| known.strong_count() > 0);
        self.0.push(Arc::downgrade(db));
    }

    /// The sum of a property over all families.
    pub fn sum(&self, property: &str) -> u64 {
        let of =
            |db: Arc<Db>| -> u64 { db.families().iter().filter_map(|family| db.int_property(family, property)).sum() };
        self.0.iter().filter_map(Weak::upgrade).map(of).sum()
    }
}

impl WriteBufferManager {
    fn new(limit_bytes: usize, allow_stall: bool, costs_to_cache: bool) -> Box<WriteBufferManager> {
        let managed = Managed { limit_bytes, allow_stall, costs_to_cache, databases: Watched::default() };
        Box::new(WriteBufferManager(Arc::new(Mutex::new(managed))))
    }

    /// The limit in bytes, and whether writers wait at it.
    pub fn limit(&self) -> (usize, bool) {
        let managed = self.0.lock();
        (managed.limit_bytes, managed.allow_stall)
    }

    pub fn watch(&self, db: &Arc<Db>) {
        self.0.lock().databases.add(db);
    }

    fn sum(&self, property: &str) -> usize {
        let databases = self.0.lock().databases.clone();
        usize::try_from(databases.sum(property)).unwrap_or(usize::MAX)
    }
}

export! {
    fn rocksdb_write_buffer_manager_create(buffer_size: usize, allow_stall: bool) -> Box<WriteBufferManager> {
        WriteBufferManager::new(buffer_size, allow_stall, false)
    }

    fn rocksdb_write_buffer_manager_create_with_cache(
        buffer_size: usize,
        cache: Option<&Cache>,
        allow_stall: bool,
    ) -> Box<WriteBufferManager> {
        WriteBufferManager::new(buffer_size, allow_stall, cache.is_some())
    }

    fn rocksdb_write_buffer_manager_destroy(manager: Option<Box<WriteBufferManager>>) {
        drop(manager);
    }

    fn rocksdb_write_buffer_manager_enabled(manager: &WriteBufferManager) -> bool {
        manager.limit().0 > 0
    }

    fn rocksdb_write_buffer_manager_cost_to_cache(manager: &WriteBufferManager) -> bool {
        manager.0.lock().costs_to_cache
    }

    fn rocksdb_write_buffer_manager_buffer_size(manager: &WriteBufferManager) -> usize {
        manager.limit().0
    }

    fn rocksdb_write_buffer_manager_memory_usage(manager: &WriteBufferManager) -> usize {
        manager.sum("rocksdb.size-all-mem-tables")
    }

    /// Memtables are not charged to the cache.
    fn rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(_manager: &WriteBufferManager) -> usize {
        0
    }

    fn rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager: &WriteBufferManager) -> usize {
        manager.sum("rocksdb.cur-size-active-mem-table")
    }

    /// Databases opened from now on have the new limit.
    fn rocksdb_write_buffer_manager_set_buffer_size(manager: &WriteBufferManager, buffer_size: usize) {
        manager.0.lock().limit_bytes = buffer_size;
    }

    fn rocksdb_write_buffer_manager_set_allow_stall(manager: &WriteBufferManager, allow_stall: bool) {
        manager.0.lock().allow_stall = allow_stall;
    }

    fn rocksdb_memory_consumers_create() -> Box<Consumers> {
        Box::default()
    }

    fn rocksdb_memory_consumers_destroy(consumers: Option<Box<Consumers>>) {
        drop(consumers);
    }

    fn rocksdb_memory_consumers_add_db(consumers: &mut Consumers, database: &Database) {
        consumers.databases.add(&database.db);
    }

    fn rocksdb_memory_consumers_add_cache(consumers: &mut Consumers, cache: &Cache) {
        consumers.caches.push(cache.shared());
    }

    fn rocksdb_approximate_memory_usage_destroy(usage: Option<Box<Usage>>) {
        drop(usage);
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_total(usage: &Usage) -> u64 {
        usage.memtables
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(usage: &Usage) -> u64 {
        usage.unflushed
    }

    fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(usage: &Usage) -> u64 {
        usage.readers
    }

    fn rocksdb_approximate_memory_usage_get_cache_total(usage: &Usage) -> u64 {
        usage.caches
    }
}

fallible! {
    fn rocksdb_approximate_memory_usage_create(consumers: &Consumers) -> Box<Usage> {
        let mut caches: Vec<&Arc<BlockCache>> = consumers.caches.iter().collect();
        caches.sort_by_key(|cache| Arc::as_ptr(cache));
        caches.dedup_by(|a, b| Arc::ptr_eq(a, b));
        Ok(Box::new(Usage {
            memtables: consumers.databases.sum("rocksdb.size-all-mem-tables"),
            unflushed: consumers.databases.sum("rocksdb.cur-size-all-mem-tables"),
            readers: consumers.databases.sum("rocksdb.estimate-table-readers-mem"),
            caches: caches.iter().map(|cache| cache.usage() as u64).sum(),
        }))
    }
}
