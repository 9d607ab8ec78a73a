//! Writers and readers at once, and memory to the last byte.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use base::key::ParsedKey;
use vfs::RealVfs;

use super::*;

const WRITERS: u64 = 4;

/// Runs `work(0)` to `work(threads - 1)` at once and waits for all.
fn together(threads: u64, work: impl Fn(u64) + Send + Sync + 'static) {
    let vfs = RealVfs::new();
    let work = Arc::new(work);
    let spawn = |t| {
        let work = Arc::clone(&work);
        vfs.spawn("stress", Box::new(move || work(t))).expect("spawned")
    };
    let running: Vec<_> = (0..threads).map(spawn).collect();
    running.into_iter().for_each(|thread| thread.join());
}

/// The writer's `i`-th entry: a key interleaved with the other writers', and a self-verifying value.
fn nth(writer: u64, i: u64) -> (Vec<u8>, u64, Vec<u8>) {
    let seq = i * WRITERS + writer + 1;
    let key = format!("key{:04}", seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 5000).into_bytes();
    (key, seq, seq.to_le_bytes().repeat(4))
}

fn is_whole(key: &[u8], value: &[u8]) -> bool {
    ParsedKey::parse(key).is_some_and(|key| value == key.seq.0.to_le_bytes().repeat(4))
}

#[test]
fn readers_see_only_whole_entries_in_order_while_writers_write() {
    const EACH: u64 = 10_000;
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 32 << 20));
        let done: Arc<[AtomicU64; WRITERS as usize]> = Arc::default();
        let shared = (Arc::clone(&memtable), Arc::clone(&done));
        together(WRITERS + 2, move |t| {
            let (memtable, done) = &shared;
            if t < WRITERS {
                write(&**memtable, t, EACH, &done[t as usize]);
            } else {
                read(memtable, &done[..], t == WRITERS, EACH);
            }
        });
        let mut cursor = Arc::clone(&memtable).cursor();
        assert_eq!(forward(&mut *cursor).len() as u64, WRITERS * EACH, "{option}");
        assert_eq!(memtable.entries(), WRITERS * EACH);
        assert!(memtable.reserved_bytes() <= 32 << 20);
    }
}

/// Half in batches, half one by one; `done` says how many are in.
fn write(memtable: &dyn Memtable, writer: u64, count: u64, done: &AtomicU64) {
    for start in (0..count).step_by(20) {
        let batch: Vec<_> = (start..start + 20).map(|i| nth(writer, i)).collect();
        let (together, singly) = batch.split_at(10);
        let payload = together.iter().map(|(key, _, value)| key.len() + value.len()).sum();
        assert!(memtable.try_reserve(memtable.worst_case_bytes(together.len(), payload)));
        memtable.insert_all(&mut together.iter().map(|(key, seq, value)| Entry {
            user_key: key,
            seq: SeqNo(*seq),
            kind: ValueKind::Value,
            value,
        }));
        for (key, seq, value) in singly {
            assert!(put(memtable, key, *seq, ValueKind::Value, value));
        }
        done.store(start + 20, Release);
    }
}

fn read(memtable: &Arc<dyn Memtable>, done: &[AtomicU64], backwards: bool, count: u64) {
    let order = InternalOrder::default();
    let mut random = Random(u64::from(backwards));
    loop {
        let before: Vec<u64> = done.iter().map(|done| done.load(Acquire)).collect();
        let mut cursor = Arc::clone(memtable).cursor();
        let mut seen = if backwards { backward(&mut *cursor) } else { forward(&mut *cursor) };
        if backwards {
            seen.reverse();
        }
        assert!(seen.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_lt()), "sorted, none twice");
        assert!(seen.iter().all(|(key, value)| is_whole(key, value)));
        assert!(seen.len() as u64 >= before.iter().sum(), "what was in before is seen");
        for (writer, &done) in before.iter().enumerate().filter(|(_, done)| **done != 0) {
            let (key, seq, value) = nth(writer as u64, random.below(done));
            assert_eq!(get(&**memtable, &key, seq).first(), Some(&(seq, ValueKind::Value, value)));
        }
        if before.iter().all(|done| *done == count) {
            return;
        }
    }
}

#[test]
fn versions_of_one_key_by_many_writers_fill_it_to_the_last_reservation() {
    for option in options() {
        const CAPACITY: usize = 1 << 20;
        let memtable = make(&option, &config(UserOrder::Bytewise, CAPACITY));
        let written: Arc<AtomicU64> = Arc::default();
        let shared = (Arc::clone(&memtable), Arc::clone(&written));
        together(WRITERS, move |t| {
            let mut random = Random(t);
            let mut seq = t + 1;
            // The memtable stays full once it is.
            while put(&*shared.0, b"hot", seq, ValueKind::Value, &vec![t as u8; random.below(30) as usize]) {
                shared.1.fetch_add(1, Relaxed);
                seq += WRITERS;
            }
        });
        let found = get(&*memtable, b"hot", SeqNo::MAX.0);
        assert_eq!(found.len() as u64, written.load(Relaxed), "{option}");
        assert!(found.is_sorted_by(|a, b| a.0 > b.0), "{option}: newest first, none twice");
        assert!(memtable.reserved_bytes() <= CAPACITY && memtable.reserved_bytes() > CAPACITY - 200);
    }
}

#[test]
fn memory_is_accounted_for_and_never_exceeds_what_was_reserved() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 8 << 20));
        let (fixed, reserved_before) = (memtable.memory_bytes(), memtable.reserved_bytes());
        let mut random = Random(3);
        let (mut before, mut payload) = (fixed, 0);
        for seq in 0..20_000 {
            let key = random.below(1 << 40).to_be_bytes();
            let value = vec![7; random.below(50) as usize];
            assert!(put(&*memtable, &key, seq, ValueKind::Value, &value));
            payload += key.len() + value.len();
            let memory = memtable.memory_bytes();
            assert!(memory >= before + key.len() + value.len() || !tells_every_byte(&option), "{option}: every byte");
            assert!(memory >= payload, "{option}: {memory} held of {payload}");
            before = memory;
        }
        memtable.seal();
        if !tells_every_byte(&option) {
            assert!(
                memtable.memory_bytes() < (8 << 20) + (64 << 10),
                "{option}: no more than the capacity, and itself"
            );
            continue;
        }
        let (held, reserved) = (memtable.memory_bytes() - fixed, memtable.reserved_bytes() - reserved_before);
        assert!(held >= payload, "{option}");
        assert!(held <= reserved, "{option}: {held} held, {reserved} reserved");
        assert!(
            reserved < payload + 20_000 * 64,
            "{option}: reservations are near what is used, {reserved} of {payload}"
        );
    }
}

#[test]
fn a_populated_memtable_holds_its_whole_capacity_and_works_on() {
    const CAPACITY: usize = 4 << 20;
    let in_arenas = |option: &String| ["skip_list", "vector", "trie"].iter().any(|name| option.starts_with(name));
    for option in options().into_iter().filter(in_arenas) {
        let memtable = make(&option, &config(UserOrder::Bytewise, CAPACITY));
        assert!(put(&*memtable, b"before", 1, ValueKind::Value, b"1"));
        while memtable.prefault(usize::MAX, &|_| true) {}
        assert!(memtable.memory_bytes() >= CAPACITY, "{option}: {}", memtable.memory_bytes());
        assert!(put(&*memtable, b"after", 2, ValueKind::Value, b"2"));
        assert_eq!(forward(&mut *Arc::clone(&memtable).cursor()).len(), 2);
        assert!(memtable.memory_bytes() < CAPACITY + (64 << 10), "{option}: {}", memtable.memory_bytes());
    }
}

#[test]
fn range_deletions_by_many_writers_are_all_kept() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 4 << 20));
        let shared = Arc::clone(&memtable);
        together(WRITERS + 1, move |t| {
            let (memtable, mut seen) = (&shared, 0);
            for i in 0..200u64 {
                if t == WRITERS {
                    let fragments = memtable.tombstones().map_or(0, |t| t.fragments().len());
                    assert!(fragments >= seen, "{fragments} after {seen}");
                    seen = fragments;
                    continue;
                }
                let start = (i * WRITERS + t).to_be_bytes();
                let end = (i * WRITERS + t + 1).to_be_bytes();
                assert!(put(&**memtable, &start, i, ValueKind::RangeDeletion, &end));
            }
        });
        assert_eq!(memtable.entries(), WRITERS * 200);
        assert_eq!(memtable.tombstones().expect("many").fragments().len() as u64, WRITERS * 200);
        assert!(forward(&mut *memtable.cursor()).is_empty());
    }
}
