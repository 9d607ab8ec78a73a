use super::*;

const BLOCK: usize = 4096;
/// What one block of the tests takes.
const COST: usize = BLOCK + ENTRY_OVERHEAD_BYTES;

fn key(id: u64, i: u64) -> BlockKey {
    BlockKey { id, offset: i * 4101 }
}

/// A cache of one shard with room for `blocks`.
fn cache_of(blocks: usize) -> Cache<u64> {
    Cache::with_shards(blocks * COST, 1)
}

fn put(cache: &Cache<u64>, key: BlockKey, priority: Priority) {
    assert!(cache.insert(key, Arc::new(key.offset), BLOCK, priority));
}

fn erase(cache: &Cache<u64>, key: BlockKey) -> bool {
    cache.shard(key).lock().erase(key).is_some()
}

/// As a reader does: looks, and loads on a miss.
fn read(cache: &Cache<u64>, key: BlockKey) -> bool {
    let found = cache.get(key);
    if found.is_none() {
        put(cache, key, Priority::Low);
    }
    found.is_some()
}

fn present(cache: &Cache<u64>, id: u64, keys: std::ops::Range<u64>) -> usize {
    keys.filter(|&i| cache.get(key(id, i)).is_some()).count()
}

#[test]
fn a_block_is_found_until_erased_and_the_last_insert_stays() {
    let cache = cache_of(8);
    assert_ne!(cache.new_id(), cache.new_id());
    put(&cache, key(1, 1), Priority::Low);
    assert_eq!(cache.get(key(1, 1)).as_deref(), Some(&4101));
    assert!(cache.get(key(2, 1)).is_none(), "another table's");
    cache.insert(key(1, 1), Arc::new(7), 100, Priority::Low);
    assert_eq!(cache.get(key(1, 1)).as_deref(), Some(&7));
    assert_eq!(cache.usage(), 100 + ENTRY_OVERHEAD_BYTES);
    assert!(erase(&cache, key(1, 1)));
    assert!(!erase(&cache, key(1, 1)));
    assert!(cache.get(key(1, 1)).is_none());
    assert_eq!(cache.usage(), 0);
    assert_eq!(cache.stats(), CacheStats { hits: 2, misses: 2, inserts: 2, returns: 0 });
}

#[test]
fn usage_is_exact_through_eviction_erasure_and_resizing() {
    let cache = cache_of(100);
    (0..1000).for_each(|i| put(&cache, key(1, i), if i % 7 == 0 { Priority::High } else { Priority::Low }));
    assert_eq!(cache.usage(), 100 * COST);
    let before = present(&cache, 1, 0..1000);
    assert_eq!(before, 100);
    let erased = (0..1000).step_by(3).filter(|&i| erase(&cache, key(1, i))).count();
    assert!(erased > 0);
    assert_eq!(cache.usage(), (100 - erased) * COST);

    cache.set_capacity(10 * COST + 1);
    assert_eq!(cache.usage(), 10 * COST);
    assert_eq!(present(&cache, 1, 0..1000), 10);
    cache.set_capacity(0);
    assert_eq!(cache.usage(), 0);
    assert!(!cache.insert(key(1, 0), Arc::new(0), 1, Priority::High));

    cache.set_capacity(20 * COST);
    (0..50).for_each(|i| put(&cache, key(1, i), Priority::Low));
    assert_eq!((cache.usage(), cache.capacity()), (20 * COST, 20 * COST));
}

#[test]
fn what_exceeds_a_shard_is_not_kept_and_displaces_nothing() {
    let cache = cache_of(4);
    (0..4).for_each(|i| put(&cache, key(1, i), Priority::Low));
    assert!(!cache.insert(key(1, 9), Arc::new(0), 4 * COST, Priority::High));
    assert!(!cache.insert(key(1, 9), Arc::new(0), usize::MAX, Priority::High));
    assert_eq!(present(&cache, 1, 0..4), 4);
}

#[test]
fn high_priority_goes_last_but_fills_no_more_than_half() {
    let cache = cache_of(100);
    (0..30).for_each(|i| put(&cache, key(1, i), Priority::High));
    (0..1000).for_each(|i| put(&cache, key(2, i), Priority::Low));
    assert_eq!(present(&cache, 1, 0..30), 30, "untouched, yet kept");

    // More than half: the oldest become ordinary, and unvisited they go before the rest.
    let cache = cache_of(100);
    (0..90).for_each(|i| put(&cache, key(1, i), Priority::High));
    (0..1000).for_each(|i| {
        read(&cache, key(2, i % 40));
    });
    assert_eq!(present(&cache, 1, 40..90), 50);
    assert_eq!(present(&cache, 2, 0..40), 40, "data has the other half");
}

/// Beyond their part, index and filter blocks go as others do.
#[test]
fn the_part_of_high_priority_can_be_changed() {
    for (ratio, kept) in [(0.1, 80..90), (0.9, 0..90)] {
        let cache = cache_of(100);
        cache.set_high_priority_ratio(ratio);
        (0..90).for_each(|i| put(&cache, key(1, i), Priority::High));
        (0..5000).for_each(|i| {
            read(&cache, key(2, i % 90));
        });
        let (count, start) = ((kept.end - kept.start) as usize, kept.start);
        assert_eq!(present(&cache, 1, kept), count, "{ratio}");
        assert!(present(&cache, 1, 0..start) <= 20, "{ratio}");
    }
}

#[test]
fn a_strict_limit_counts_what_is_in_use_and_refuses_more() {
    let cache = cache_of(10);
    cache.set_strict(true);
    let held: Vec<_> = (0..10)
        .map(|i| {
            let value = Arc::new(i);
            let priority = if i % 3 == 0 { Priority::High } else { Priority::Low };
            assert!(cache.insert(key(1, i), value.clone(), BLOCK, priority));
            value
        })
        .collect();
    assert!(!cache.insert(key(1, 10), Arc::new(10), BLOCK, Priority::Low), "all are in use");
    assert_eq!((cache.usage(), cache.pinned_usage(), cache.entries()), (10 * COST, 10 * COST, 10));
    for (i, value) in held.into_iter().enumerate() {
        drop(value);
        assert!(cache.insert(key(2, i as u64), Arc::new(0), BLOCK, Priority::Low), "one is not in use: {i}");
        assert!(cache.usage() <= 10 * COST);
    }
    cache.set_strict(false);
    let _held = (0..10).map(|i| cache.get(key(2, i))).collect::<Vec<_>>();
    assert!(cache.insert(key(1, 10), Arc::new(10), BLOCK, Priority::Low), "those in use are evicted again");
}

#[test]
fn a_reservation_takes_from_the_capacity() {
    let cache = cache_of(100);
    (0..100).for_each(|i| put(&cache, key(1, i), Priority::Low));
    cache.reserve(60 * COST);
    assert_eq!((cache.usage(), cache.entries()), (100 * COST, 40));
    (0..100).for_each(|i| put(&cache, key(2, i), Priority::Low));
    assert_eq!((cache.usage(), cache.entries()), (100 * COST, 40));
    cache.reserve(60 * COST);
    assert_eq!((cache.usage(), cache.entries()), (120 * COST, 0), "more than the capacity");
    assert!(!cache.insert(key(1, 1), Arc::new(1), BLOCK, Priority::Low));
    cache.give_back(120 * COST);
    (0..100).for_each(|i| put(&cache, key(1, i), Priority::Low));
    assert_eq!((cache.usage(), cache.entries()), (100 * COST, 100));
}

#[test]
fn a_scan_leaves_the_working_set() {
    let cache = cache_of(100);
    for _ in 0..4 {
        (0..60).for_each(|i| {
            read(&cache, key(1, i));
        });
    }
    (0..10_000).for_each(|i| {
        read(&cache, key(2, i));
        // The working set goes on being used, each block a hundred times less often than the scan moves on.
        read(&cache, key(1, i % 60));
    });
    assert!(present(&cache, 1, 0..60) >= 58);
}

#[test]
fn a_block_that_comes_back_soon_after_its_eviction_stays() {
    let cache = cache_of(100);
    (0..200).for_each(|i| put(&cache, key(1, i), Priority::Low));
    // Long evicted from the small queue, and remembered.
    assert!(!read(&cache, key(1, 95)));
    (0..99).for_each(|i| put(&cache, key(2, i), Priority::Low));
    assert!(read(&cache, key(1, 95)));
    assert_eq!(cache.stats().returns, 1);
    assert_eq!(present(&cache, 1, 190..200), 0, "those that did not come back went instead");
}

#[test]
fn an_evicted_value_lives_while_held() {
    let cache = cache_of(2);
    let held = Arc::new(42);
    cache.insert(key(1, 0), held.clone(), BLOCK, Priority::Low);
    assert_eq!(cache.pinned_usage(), COST);
    (1..10).for_each(|i| put(&cache, key(1, i), Priority::Low));
    assert!(cache.get(key(1, 0)).is_none());
    assert_eq!((*held, cache.pinned_usage()), (42, 0));
    assert_eq!(Arc::strong_count(&held), 1, "evicted values are not hoarded");
}

#[test]
fn shards_follow_the_capacity() {
    let shards = |capacity| Cache::<u64>::new(capacity).shards.len();
    assert_eq!([0, 1 << 20, 8 << 20, 13 << 20, 1 << 40].map(shards), [1, 1, 4, 4, SHARDS_MAX]);
    // All shards take their part: none of them is out of the keys' reach.
    let cache: Cache<u64> = Cache::with_shards(64 * 100 * COST, 64);
    (0..100_000).for_each(|i| put(&cache, key(i % 5, i), Priority::Low));
    assert_eq!(cache.usage(), cache.capacity());
}

/// What each thread of the concurrent test does.
fn churn(cache: &Cache<u64>, seed: u64, resizing: bool) {
    let mut state = seed;
    for step in 0..20_000 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let key = key(1, (state >> 40) % 2000);
        match cache.get(key) {
            Some(value) => assert_eq!(*value, key.offset),
            None => put(cache, key, if step % 9 == 0 { Priority::High } else { Priority::Low }),
        }
        match step % 1000 {
            0 if !resizing => assert!(cache.usage() <= cache.capacity()),
            500 if resizing => {
                cache.set_capacity(300 * COST);
                cache.set_capacity(400 * COST);
            }
            700 => _ = erase(cache, key),
            _ => {}
        }
    }
}

#[test]
fn capacity_holds_under_concurrent_load() {
    for resizing in [false, true] {
        let cache: Cache<u64> = Cache::with_shards(400 * COST, 4);
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                let cache = &cache;
                scope.spawn(move || churn(cache, seed, resizing));
            }
        });
        assert!(cache.usage() <= cache.capacity());
        assert_eq!(present(&cache, 1, 0..2000) * COST, cache.usage());
        assert_eq!(cache.pinned_usage(), 0);
        let stats = cache.stats();
        assert_eq!(stats.hits + stats.misses, 4 * 20_000 + 2000);
    }
}
