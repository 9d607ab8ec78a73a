//! Memtables' memory as a part of a block cache: the cache makes room for what a budget charges (RocksDB:
//! `cost_to_cache`). Blocks and memtables then have one limit together, the cache's capacity.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// The part grows and shrinks by so much, as RocksDB's dummy entries do.
const STEP_BYTES: usize = 256 << 10;

/// A budget's part of a cache.
pub(super) struct CacheCharge {
    cache: Arc<table::BlockCache>,
    /// A leaf, but for the locks of the cache.
    bytes: Mutex<usize>,
}

impl CacheCharge {
    pub fn new(cache: Arc<table::BlockCache>) -> Self {
        CacheCharge { cache, bytes: Mutex::new(0) }
    }

    pub fn bytes(&self) -> usize {
        *self.bytes.lock()
    }

    /// Covers the charged bytes. The part shrinks late, below three quarters: a flush is soon followed by new writes.
    pub fn follow(&self, charged_bytes: &AtomicUsize) {
        let mut bytes = self.bytes.lock();
        let wanted = charged_bytes.load(Ordering::Acquire).next_multiple_of(STEP_BYTES);
        if wanted > *bytes {
            self.cache.reserve(wanted - *bytes);
            *bytes = wanted;
        } else if wanted < *bytes / 4 * 3 {
            self.cache.give_back(*bytes - wanted);
            *bytes = wanted;
        }
    }
}

impl Drop for CacheCharge {
    fn drop(&mut self) {
        self.cache.give_back(*self.bytes.get_mut());
    }
}
