//! The block cache as an object to share.

use std::fmt;
use std::sync::Arc;

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

    /// Bytes that the cache holds now.
    pub fn usage(&self) -> usize {
        self.0.usage()
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockCache").field("capacity", &self.capacity()).field("usage", &self.usage()).finish()
    }
}
