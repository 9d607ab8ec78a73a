//! Block caches and filters. RocksDB's kinds of caches differ in locking and eviction; here there is one.

use capi::cache::Cache;
use capi::options::table::Filter;

use crate::boundary::natives;

/// A size without a sign: RocksDB takes one below 0 as very large.
pub fn as_size(bytes: i64) -> usize {
    bytes as usize
}

/// With a negative number of bits the capacity decides.
fn sharded(capacity: i64, shard_bits: i32, strict: bool) -> Box<Cache> {
    let cache = Cache::sharded(as_size(capacity), shard_bits);
    cache.shared().set_strict(strict);
    cache
}

pub mod lru {
    use super::*;

    natives! { "LRUCache";
        /// Priorities of blocks have no effect here.
        "newLRUCache" => fn(
            _env,
            capacity: i64,
            shard_bits: i32,
            strict: bool,
            _high_priority_ratio: f64,
            _low_priority_ratio: f64,
        ) -> Box<Cache> {
            Ok(sharded(capacity, shard_bits, strict))
        }
    }
}

pub mod hyper_clock {
    use super::*;

    natives! { "HyperClockCache";
        "newHyperClockCache" =>
        fn(_env, capacity: i64, _estimated_entry_charge: i64, shard_bits: i32, strict: bool) -> Box<Cache> {
            Ok(sharded(capacity, shard_bits, strict))
        }
    }
}

pub mod clock {
    use super::*;

    natives! { "ClockCache";
        "newClockCache" => fn(_env, capacity: i64, shard_bits: i32, strict: bool) -> Box<Cache> {
            Ok(sharded(capacity, shard_bits, strict))
        }
    }
}

pub mod usage {
    use super::*;

    natives! { "Cache";
        "getUsage" => fn(_env, cache: &Cache) -> i64 {
            Ok(cache.usage() as i64)
        }

        "getPinnedUsage" => fn(_env, cache: &Cache) -> i64 {
            Ok(cache.shared().pinned_usage() as i64)
        }
    }
}

pub mod bloom {
    use super::*;

    natives! { "BloomFilter";
        "createNewBloomFilter" => fn(_env, bits_per_key: f64) -> Box<Filter> {
            Ok(Filter::bloom(bits_per_key))
        }
    }
}
