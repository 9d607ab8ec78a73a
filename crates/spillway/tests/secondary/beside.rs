//! Readers of a secondary beside its catch-ups, and both beside a busy primary: every batch is seen whole.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use testkit::engine::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

const KEYS: u64 = 20;
const ROUNDS: u64 = 3000;

pub fn options() -> OpenOptions {
    let mut family = FamilyOptions { write_buffer_size: 64 << 10, ..FamilyOptions::default() };
    family.level0_file_num_compaction_trigger = 2;
    let mut options = OpenOptions::create_if_missing().family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.log_file_bytes = 128 << 10;
    options
}

/// A batch that gives all keys of both families the same value.
pub fn write(primary: &Db, n: u64) {
    let families = [primary.default_family(), primary.family("second").unwrap()];
    let mut batch = WriteBatch::new();
    for family in &families {
        (0..KEYS)
            .for_each(|key| batch.put(family.id(), &key.to_be_bytes(), &[&n.to_be_bytes()[..], &[7; 40]].concat()));
    }
    primary.write(&batch, &WriteOptions::default()).unwrap();
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

/// The value of all keys; fails if they differ.
pub fn read_all(second: &Db) -> u64 {
    let families = [second.default_family(), second.family("second").unwrap()];
    let keys: Vec<[u8; 8]> = (0..KEYS).map(u64::to_be_bytes).collect();
    let asked: Vec<_> = families.iter().flat_map(|family| keys.iter().map(move |key| (&**family, &key[..]))).collect();
    let found = second.multi_get_across(&asked, &ReadOptions::default()).unwrap();
    let numbers: Vec<u64> = found.into_iter().map(|value| value.unwrap().map_or(0, |value| number(&value))).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    let mut iterator = second.iter(&families[1], &ReadOptions::default()).unwrap();
    iterator.seek_to_first();
    let mut shown = Vec::new();
    while iterator.valid() {
        shown.push(number(iterator.value()));
        iterator.next();
    }
    assert!(shown.iter().all(|number| *number == shown[0]), "{shown:?}");
    assert!(shown.first().is_none_or(|shown| *shown >= numbers[0]), "back from {} to {shown:?}", numbers[0]);
    numbers[0]
}

#[test]
fn readers_beside_catch_ups_see_whole_batches_and_never_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let (at, options) = (dir.path().join("db"), options());
    let primary = Db::open(&at, &options).unwrap();
    let second = Db::open_as_secondary(&at, dir.path().join("second"), &options).unwrap();
    let (is_done, catch_ups) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !is_done.load(Ordering::Acquire) {
                    let now = read_all(&second);
                    assert!(now >= last, "back from {last} to {now}");
                    last = now;
                }
            });
        }
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                second.try_catch_up_with_primary().unwrap();
                catch_ups.fetch_add(1, Ordering::Relaxed);
            }
        });
        (1..=ROUNDS).for_each(|n| write(&primary, n));
        is_done.store(true, Ordering::Release);
    });
    second.try_catch_up_with_primary().unwrap();
    assert_eq!(read_all(&second), ROUNDS);
    assert!(catch_ups.load(Ordering::Relaxed) > 3);
    assert!(dir.path().join("second/LOG").exists(), "its event log");
}
