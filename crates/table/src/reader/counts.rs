//! Counts a table's block cache hits and misses by block role. Called only if statistics are kept.

use base::metrics::{Statistics, Ticker};

use crate::cached::{BlockRole, CachedBlock};

/// A block was in the cache.
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
