//! Counts a table's block cache hits and misses by block role.

use base::metrics::{Statistics, Ticker};
use vfs::perf::{self, Metric};

use crate::cached::{BlockRole, CachedBlock};

/// A block was in the cache, for this thread's counts.
#[inline]
pub(super) fn hit_of_thread(role: BlockRole) {
    match role {
        BlockRole::Entries => perf::count([(Metric::BlockCacheHitCount, 1)]),
        BlockRole::Index => perf::count([(Metric::BlockCacheHitCount, 1), (Metric::BlockCacheIndexHitCount, 1)]),
        BlockRole::Filter => perf::count([(Metric::BlockCacheHitCount, 1), (Metric::BlockCacheFilterHitCount, 1)]),
    }
}

/// A block was in the cache. Called only if statistics are kept, as `miss`.
#[cold]
pub(super) fn hit(statistics: &Statistics, role: BlockRole, block: &CachedBlock) {
    statistics.add(Ticker::BlockCacheHit, 1);
    statistics.add(Ticker::BlockCacheBytesRead, block.memory_bytes() as u64);
    let of_role = match role {
        BlockRole::Entries => Ticker::BlockCacheDataHit,
        BlockRole::Index => Ticker::BlockCacheIndexHit,
        BlockRole::Filter => Ticker::BlockCacheFilterHit,
    };
    statistics.add(of_role, 1);
}

/// Counts a block read on a cache miss. `kept`: whether the cache took the block; `None` if it was not offered.
#[cold]
pub(super) fn miss(statistics: &Statistics, role: BlockRole, block: &CachedBlock, kept: Option<bool>) {
    let (miss, add, inserted) = match role {
        BlockRole::Entries => {
            (Ticker::BlockCacheDataMiss, Ticker::BlockCacheDataAdd, Ticker::BlockCacheDataBytesInsert)
        }
        BlockRole::Index => {
            (Ticker::BlockCacheIndexMiss, Ticker::BlockCacheIndexAdd, Ticker::BlockCacheIndexBytesInsert)
        }
        BlockRole::Filter => {
            (Ticker::BlockCacheFilterMiss, Ticker::BlockCacheFilterAdd, Ticker::BlockCacheFilterBytesInsert)
        }
    };
    statistics.add(Ticker::BlockCacheMiss, 1);
    statistics.add(miss, 1);
    match kept {
        Some(true) => {
            let bytes = block.memory_bytes() as u64;
            statistics.add(Ticker::BlockCacheAdd, 1);
            statistics.add(add, 1);
            statistics.add(Ticker::BlockCacheBytesWrite, bytes);
            statistics.add(inserted, bytes);
        }
        Some(false) => statistics.add(Ticker::BlockCacheAddFailures, 1),
        None => {}
    }
}
