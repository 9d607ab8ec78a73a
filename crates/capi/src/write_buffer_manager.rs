//! `rocksdb_write_buffer_manager_t`.

use std::sync::Arc;

use spillway::internal::MemoryBudget;

use crate::boundary::{export, handles};
use crate::cache::Cache;

/// A limit on the memtables of all databases opened with it. They keep it when this handle is destroyed.
#[derive(Clone)]
pub struct WriteBufferManager(Arc<MemoryBudget>);

handles!(WriteBufferManager);

impl WriteBufferManager {
    /// A size of 0 limits nothing.
    pub fn new(buffer_bytes: usize, allow_stall: bool, cache: Option<&Cache>) -> Box<WriteBufferManager> {
        Box::new(WriteBufferManager(MemoryBudget::shared(buffer_bytes, allow_stall, cache.map(Cache::shared))))
    }

    pub fn shared(&self) -> Arc<MemoryBudget> {
        self.0.clone()
    }
}

export! {
    fn rocksdb_write_buffer_manager_create(buffer_size: usize, allow_stall: bool) -> Box<WriteBufferManager> {
        WriteBufferManager::new(buffer_size, allow_stall, None)
    }

    fn rocksdb_write_buffer_manager_create_with_cache(
        buffer_size: usize,
        cache: Option<&Cache>,
        allow_stall: bool,
    ) -> Box<WriteBufferManager> {
        WriteBufferManager::new(buffer_size, allow_stall, cache)
    }

    fn rocksdb_write_buffer_manager_destroy(manager: Option<Box<WriteBufferManager>>) {
        drop(manager);
    }

    fn rocksdb_write_buffer_manager_enabled(manager: &WriteBufferManager) -> bool {
        manager.0.is_limited()
    }

    fn rocksdb_write_buffer_manager_cost_to_cache(manager: &WriteBufferManager) -> bool {
        manager.0.costs_to_cache()
    }

    fn rocksdb_write_buffer_manager_buffer_size(manager: &WriteBufferManager) -> usize {
        if manager.0.is_limited() { manager.0.limit_bytes() } else { 0 }
    }

    fn rocksdb_write_buffer_manager_memory_usage(manager: &WriteBufferManager) -> usize {
        manager.0.charged_bytes()
    }

    fn rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager: &WriteBufferManager) -> usize {
        manager.0.bytes_in_cache()
    }

    fn rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager: &WriteBufferManager) -> usize {
        manager.0.mutable_bytes()
    }

    fn rocksdb_write_buffer_manager_set_buffer_size(manager: &WriteBufferManager, buffer_size: usize) {
        manager.0.set_limit(buffer_size);
    }

    fn rocksdb_write_buffer_manager_set_allow_stall(manager: &WriteBufferManager, allow_stall: bool) {
        manager.0.set_allow_stall(allow_stall);
    }
}
