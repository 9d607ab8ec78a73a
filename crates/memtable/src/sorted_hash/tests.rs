//! Collisions, versions, memory counts, and the hashable orders. The conformance tests cover the common requirements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::{Comparator, Cursor, FamilyId, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind};

use super::arena_bytes;
use crate::arena::CAPACITY_MAX_BYTES;
use crate::{Background, Entry, Memtable, MemtableConfig, factory_from_option_string};

const ROUNDS: u64 = if cfg!(miri) { 8 } else { 400 };

fn config(capacity_bytes: usize) -> MemtableConfig {
    MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity_bytes)
}

fn make(option: &str, config: &MemtableConfig) -> Arc<dyn Memtable> {
    factory_from_option_string(option).expect("known").create(config).expect("created")
}

fn put(memtable: &dyn Memtable, user_key: &[u8], seq: u64) {
    let value = seq.to_le_bytes();
    assert!(memtable.try_reserve(memtable.worst_case_bytes(1, user_key.len() + value.len())));
    memtable.insert(Entry { user_key, seq: SeqNo(seq), kind: ValueKind::Value, value: &value });
}

/// The numbers of a key's versions at or below `seq`, newest first.
fn versions(memtable: &dyn Memtable, user_key: &[u8], seq: u64) -> Vec<u64> {
    let mut found = Vec::new();
    memtable.get(&LookupKey::new(user_key, SeqNo(seq)), &mut |seq, _, value| {
        assert_eq!(value, seq.0.to_le_bytes());
        found.push(seq.0);
        true
    });
    found
}

#[test]
fn one_bucket_for_all_keys_and_writers_keeps_them_apart() {
    const WRITERS: u64 = 4;
    const KEYS: u64 = 7;
    let memtable = make("sorted_hash:1", &config(1 << 20));
    let barrier = std::sync::Barrier::new(WRITERS as usize);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (memtable, barrier) = (&memtable, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for i in 0..ROUNDS {
                    // All make the same keys at once, with numbers that are out of order between them.
                    put(&**memtable, &(i % KEYS).to_be_bytes(), i * WRITERS + writer + 1);
                    assert!(!versions(&**memtable, &(i % KEYS).to_be_bytes(), u64::MAX >> 8).is_empty());
                }
            });
        }
    });
    let mut total = 0;
    for key in 0..KEYS {
        let found = versions(&*memtable, &key.to_be_bytes(), u64::MAX >> 8);
        assert!(found.is_sorted_by(|a, b| a > b), "newest first, none twice");
        assert!(found.iter().all(|seq| (seq - 1) / WRITERS % KEYS == key));
        total += found.len() as u64;
    }
    assert_eq!(total, WRITERS * ROUNDS);
    assert!(versions(&*memtable, &KEYS.to_be_bytes(), u64::MAX >> 8).is_empty());
}

#[test]
fn every_snapshot_of_a_hot_key_is_found_whatever_the_order_of_arrival() {
    let ascending = (1..=ROUNDS).collect::<Vec<_>>();
    let descending = ascending.iter().rev().copied().collect::<Vec<_>>();
    let step = 7; // no factor of the count
    let mixed = ascending.iter().map(|i| i * step % (ROUNDS + 1)).filter(|i| *i != 0).collect::<Vec<_>>();
    for arrivals in [ascending, descending, mixed] {
        let memtable = make("sorted_hash:2", &config(1 << 20));
        arrivals.iter().for_each(|seq| put(&*memtable, b"hot", 2 * seq));
        let mut sorted = arrivals.clone();
        sorted.sort_unstable();
        sorted.dedup();
        for snapshot in 0..2 * ROUNDS + 2 {
            let expected: Vec<u64> = sorted.iter().rev().map(|seq| 2 * seq).filter(|seq| *seq <= snapshot).collect();
            assert_eq!(versions(&*memtable, b"hot", snapshot), expected, "at {snapshot}");
        }
    }
}

#[test]
fn buckets_are_counted_and_bounded() {
    const CAPACITY: usize = 1 << 20;
    let memory = |option| make(option, &config(CAPACITY)).memory_bytes();
    assert!(memory("sorted_hash:1000") >= memory("sorted_hash:1") + 999 * 8);
    assert!(memory("sorted_hash:1000000") <= memory("sorted_hash:1") + CAPACITY / 4);
    for option in ["sorted_hash", "sorted_hash:1000000"] {
        let memtable = make(option, &config(CAPACITY));
        assert!(memtable.try_reserve(CAPACITY - 8), "{option}: a batch as large as the capacity has room");
        assert!(!memtable.try_reserve(8));
        assert!(memtable.reserved_bytes() <= CAPACITY);
    }
}

#[test]
fn sealed_memtable_tells_the_next_how_many_buckets_it_needs() {
    const CAPACITY: usize = 4 << 20;
    let factory = factory_from_option_string("sorted_hash").expect("known");
    let made = || factory.create(&config(CAPACITY)).expect("created");
    let (first, second) = (made(), made());
    let entry = |i: u64| (key(i), vec![7; 1000]);
    for (user_key, value) in (0..1000).map(entry) {
        assert!(first.try_reserve(first.worst_case_bytes(1, user_key.len() + value.len())));
        first.insert(Entry { user_key: &user_key, seq: SeqNo(1), kind: ValueKind::Value, value: &value });
    }
    first.seal();
    let third = made();
    assert_eq!(second.memory_bytes() - third.memory_bytes(), 8 * (CAPACITY / 128 - CAPACITY / 1024));
}

#[test]
fn cursors_and_lookups_agree_across_chunks_seals_and_threads() {
    let count = if cfg!(miri) { 60 } else { 25_000 };
    let memtable = make("sorted_hash", &config(8 << 20));
    std::thread::scope(|scope| {
        for half in 0..2 {
            let memtable = &memtable;
            scope.spawn(move || (0..count).filter(|i| i % 2 == half).for_each(|i| put(&**memtable, &key(i), i + 1)));
        }
    });
    let mut cursor = Arc::clone(&memtable).cursor();
    for sealed in [false, true] {
        let mut more = cursor.seek_to_first();
        let mut seen = 0;
        while more {
            let user_key = base::key::user_key(cursor.key()).to_vec();
            assert_eq!(versions(&*memtable, &user_key, u64::MAX >> 8).len(), 1);
            seen += 1;
            more = cursor.next();
        }
        assert_eq!(seen, count, "sealed: {sealed}");
        memtable.seal();
    }
}

#[test]
fn background_gets_a_run_once_it_has_its_length() {
    for (option, inserted, runs) in [
        ("sorted_hash", 300, 0),
        (r#"sorted_hash:{"run_entries":64}"#, 63, 0),
        (r#"sorted_hash:{"run_entries":64}"#, 64, 1),
        (r#"sorted_hash:{"run_entries":100}"#, 300, 3),
    ] {
        let tasks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tasks);
        let background = Background::new(move |task| {
            counted.fetch_add(1, Relaxed);
            task();
        });
        let memtable = make(option, &MemtableConfig { background, ..config(1 << 20) });
        (0..inserted).for_each(|i| put(&*memtable, &key(i), i + 1));
        assert_eq!(tasks.load(Relaxed), runs, "{option} after {inserted} entries");
    }
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

struct CaseBlind;

impl Comparator for CaseBlind {
    fn name(&self) -> &str {
        "test.CaseBlind"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
    fn equal_keys_can_differ(&self) -> bool {
        true
    }
}

#[test]
fn keys_that_a_hash_would_tell_apart_go_to_a_skiplist() {
    let mut config = config(1 << 20);
    assert_eq!(make("sorted_hash", &config).name(), "sorted_hash");
    config.order = InternalOrder::new(UserOrder::Custom(Arc::new(CaseBlind)));
    let memtable = make("sorted_hash", &config);
    assert_eq!(memtable.name(), "skip_list");
    put(&*memtable, b"Key", 1);
    put(&*memtable, b"kEY", 2);
    assert_eq!(versions(&*memtable, b"key", 9), [2, 1]);
}

#[test]
fn buckets_and_capacity_stay_within_reach_of_references() {
    let reach = CAPACITY_MAX_BYTES;
    assert_eq!(arena_bytes(1 << 20, 1 << 10), (1 << 20) + (8 << 10));
    assert_eq!(arena_bytes(reach - 4096, 1 << 20), reach);
    assert_eq!(arena_bytes(reach, 1 << 20), reach);
    assert!(arena_bytes(reach + 1, 1) > reach, "left to be refused");
}
