//! Memory usage of databases and caches.

use std::sync::Arc;

use spillway::internal::BlockCache;

use crate::boundary::{export, fallible, handles};
use crate::cache::Cache;
use crate::database::Database;
use crate::watched::Watched;

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

handles!(Consumers, Usage);

export! {
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
            caches: caches.iter().map(|cache| cache.usage() + cache.table_bytes()).sum::<usize>() as u64,
        }))
    }
}
