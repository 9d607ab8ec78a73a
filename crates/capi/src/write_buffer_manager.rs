//! `rocksdb_write_buffer_manager_t`.

use std::sync::Arc;

use parking_lot::Mutex;
use spillway::internal::Database as Db;

use crate::boundary::{export, handles};
use crate::cache::Cache;
use crate::watched::Watched;

/// A limit on memtables. Applies to each database by itself.
#[derive(Clone)]
pub struct WriteBufferManager(Arc<Mutex<Managed>>);

struct Managed {
    limit_bytes: usize,
    allow_stall: bool,
    costs_to_cache: bool,
    databases: Watched,
}

handles!(WriteBufferManager);

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
}
