//! One limit on the memtables of several databases (RocksDB: a write buffer manager), and its part of a block cache.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests use the real file system and threads")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spillway::internal::vfs::MemoryVfs;
use spillway::internal::{
    BlockCache, Database as Db, FamilyOptions, MemoryBudget, OpenOptions, ReadOptions, WriteOptions,
};

const LIMIT: usize = 8 << 20;

fn options(budget: &Arc<MemoryBudget>) -> OpenOptions {
    let family = FamilyOptions { write_buffer_size: 64 << 20, ..FamilyOptions::default() };
    OpenOptions { write_buffer_manager: Some(budget.clone()), ..OpenOptions::create_if_missing() }
        .family("default", family)
}

fn open(dir: &Path, name: &str, budget: &Arc<MemoryBudget>) -> Db {
    Db::open(dir.join(name), &options(budget)).expect("opened")
}

fn put(db: &Db, i: u32) {
    db.put(&db.default_family(), &i.to_be_bytes(), &[i as u8; 1000], &WriteOptions::default()).expect("put");
}

fn number(db: &Db, name: &str) -> u64 {
    db.int_property(&db.default_family(), name).expect("a property")
}

fn holds(db: &Db, count: u32) {
    for i in 0..count {
        let value = db.get(&db.default_family(), &i.to_be_bytes(), &ReadOptions::default()).expect("readable");
        assert_eq!(value.as_deref(), Some(&[i as u8; 1000][..]), "{i}");
    }
}

/// Waits for what background work does.
fn soon(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// RocksDB flushes the database that is written to, and the idle one keeps its memory.
#[test]
fn an_idle_database_gives_way_to_a_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, true, None);
    let (idle, busy) = (open(dir.path(), "idle", &budget), open(dir.path(), "busy", &budget));
    (0..3500).for_each(|i| put(&idle, i));
    assert_eq!(idle.live_files().len(), 0, "half the limit is not reached");
    let mut most = 0;
    for i in 0..3000 {
        put(&busy, i);
        most = most.max(budget.charged_bytes());
    }
    soon("the idle one has flushed", || idle.live_files().len() == 1);
    assert!(number(&idle, "rocksdb.cur-size-all-mem-tables") < 1 << 20);
    assert!(most <= LIMIT, "{most}");
    assert_eq!(busy.live_files().len(), 0, "the largest goes first");
    holds(&idle, 3500);
    holds(&busy, 3000);
}

/// Both in all ways at once: the sum of their memtables is under the limit, and both go on.
#[test]
fn writers_of_several_databases_stay_within_one_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, true, None);
    let dbs: Vec<Db> = ["a", "b", "c", "d"].map(|name| open(dir.path(), name, &budget)).into();
    let empty: u64 = dbs.iter().map(|db| number(db, "rocksdb.size-all-mem-tables")).sum();
    let most = std::thread::scope(|scope| {
        let writers: Vec<_> = dbs.iter().map(|db| scope.spawn(|| (0..10_000).for_each(|i| put(db, i)))).collect();
        let mut most = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            most = most.max(budget.charged_bytes());
            std::thread::yield_now();
        }
        most
    });
    assert!(most <= LIMIT + 2 * empty as usize, "{most} bytes, and {empty} of empty memtables");
    assert!(most > LIMIT / 2, "{most}");
    dbs.iter().for_each(|db| holds(db, 10_000));
    drop(dbs);
    assert_eq!(budget.charged_bytes(), 0);
}

/// As in RocksDB: many small flushes, nothing lost, no wait without an end.
#[test]
fn a_limit_smaller_than_a_memtable_flushes_often() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(1000, true, None);
    let (a, b) = (open(dir.path(), "a", &budget), open(dir.path(), "b", &budget));
    for i in 0..100 {
        put(&a, i);
        put(&b, i);
    }
    drop((a, b));
    let (a, b) = (open(dir.path(), "a", &budget), open(dir.path(), "b", &budget));
    assert!(a.live_files().len() + b.live_files().len() > 2, "it is flushed");
    holds(&a, 100);
    holds(&b, 100);
}

#[test]
fn a_limit_set_later_has_all_databases_flush() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(0, true, None);
    let (a, b) = (open(dir.path(), "a", &budget), open(dir.path(), "b", &budget));
    (0..4000).for_each(|i| put(&a, i));
    (0..6000).for_each(|i| put(&b, i));
    assert!(budget.charged_bytes() > 10_000_000 && budget.mutable_bytes() > 10_000_000, "counted without a limit too");
    assert_eq!(a.live_files().len() + b.live_files().len(), 0);
    budget.set_limit(LIMIT);
    soon("the mutable memtables hold half", || budget.mutable_bytes() <= LIMIT / 2);
    soon("the larger one has flushed", || b.live_files().len() == 1);
    budget.set_limit(0);
    (6000..20_000).for_each(|i| put(&b, i));
    assert_eq!(b.live_files().len(), 1, "there is no limit again");
    holds(&a, 4000);
    holds(&b, 20_000);
}

/// All memory is another database's that has no disk space: its writer waits, others do not.
#[test]
fn a_database_without_disk_space_stops_no_writer_of_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, true, None);
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false); // it has threads
    let full = Db::open("/full", &OpenOptions { vfs: vfs.clone(), ..options(&budget) }).expect("opened");
    vfs.set_capacity(Some(0));
    let put_unlogged = |i: u32, no_slowdown| {
        let options = WriteOptions { disable_wal: true, no_slowdown, ..WriteOptions::default() };
        full.put(&full.default_family(), &i.to_be_bytes(), &[i as u8; 1000], &options)
    };
    let fitted = (0..20_000).find(|i| put_unlogged(*i, true).is_err()).expect("the limit");
    assert!(fitted > 5000 && full.live_files().is_empty(), "{fitted}");
    let (busy, all) = (open(dir.path(), "busy", &budget), fitted + 2000);
    let start = Instant::now();
    std::thread::scope(|scope| {
        // The first of these find room: they give up the spare.
        let waits = scope.spawn(|| (fitted..all).for_each(|i| put_unlogged(i, false).expect("written at last")));
        std::thread::sleep(Duration::from_millis(50));
        (0..1000).for_each(|i| put(&busy, i));
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert!(!waits.is_finished(), "its memory waits for space");
        vfs.set_capacity(None);
    });
    holds(&busy, 1000);
    holds(&full, all);
}

/// Its memory is counted, and nobody waits for it.
#[test]
fn a_database_opened_for_reading_holds_up_no_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = open(dir.path(), "a", &MemoryBudget::shared(0, true, None));
    (0..10_000).for_each(|i| put(&writer, i));
    let budget = MemoryBudget::shared(LIMIT, true, None);
    let reader = Db::open(dir.path().join("a"), &OpenOptions { read_only: true, ..options(&budget) }).expect("opened");
    holds(&reader, 10_000);
    let busy = open(dir.path(), "b", &budget);
    let start = Instant::now();
    (0..200).for_each(|i| put(&busy, i));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    holds(&busy, 200);
}

/// Iterators may outlive their database.
#[test]
fn a_closed_database_is_charged_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, true, None);
    let (a, b) = (open(dir.path(), "a", &budget), open(dir.path(), "b", &budget));
    (0..3000).for_each(|i| put(&a, i));
    let mut iter = a.iter(&a.default_family(), &ReadOptions::default()).expect("an iterator");
    let before = budget.charged_bytes();
    a.close().expect("closed");
    assert!(before > 3_000_000 && budget.charged_bytes() < 1_000_000, "{before} {}", budget.charged_bytes());
    (0..10_000).for_each(|i| put(&b, i));
    assert!(iter.seek_to_first());
    drop((a, b, iter));
    assert_eq!(budget.charged_bytes(), 0);
}

#[test]
fn without_stalls_the_limit_is_passed_and_flushes_begin_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, false, None);
    let (a, b) = (open(dir.path(), "a", &budget), open(dir.path(), "b", &budget));
    (0..5000).for_each(|i| put(&a, i));
    assert_eq!(a.live_files().len(), 0, "below seven eighths");
    (0..5000).for_each(|i| put(&b, i));
    soon("one has flushed", || a.live_files().len() + b.live_files().len() > 0);
    budget.set_limit(1 << 20);
    (0..5000).for_each(|i| put(&b, 5000 + i));
    soon("the rest is flushed", || budget.mutable_bytes() < 1 << 20);
}

#[test]
fn the_oldest_first_if_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let budget = MemoryBudget::shared(LIMIT, true, None);
    budget.set_flush_oldest_first(true);
    let (old, young) = (open(dir.path(), "old", &budget), open(dir.path(), "young", &budget));
    (0..500).for_each(|i| put(&old, i));
    (0..4000).for_each(|i| put(&young, i));
    soon("the older, though it is smaller", || old.live_files().len() == 1);
}

/// Blocks make room for memtables, and have it again.
#[test]
fn memtables_are_charged_to_a_cache() {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = Arc::new(BlockCache::new(16 << 20));
    let budget = MemoryBudget::shared(LIMIT, true, Some(cache.clone()));
    let options = OpenOptions { block_cache: Some(cache.clone()), ..options(&budget) };
    let db = Db::open(dir.path().join("a"), &options).expect("opened");
    (0..40_000).for_each(|i| put(&db, i));
    db.flush(&[&db.default_family()]).expect("flushed");
    holds(&db, 40_000);
    assert!(cache.usage() > 12 << 20 && cache.usage() <= 16 << 20, "{}", cache.usage());
    (0..6000).for_each(|i| put(&db, i));
    let (charged, in_cache) = (budget.charged_bytes(), budget.bytes_in_cache());
    assert!(budget.costs_to_cache() && in_cache >= charged.min(4 << 20) && in_cache % (256 << 10) == 0, "{in_cache}");
    assert!(cache.usage() <= 16 << 20, "{}", cache.usage());
    drop(db);
    assert_eq!((budget.charged_bytes(), budget.bytes_in_cache()), (0, 0));
    drop(budget);
    cache.set_capacity(0);
    assert!(cache.usage() <= 1 << 20, "no reservation is left: {}", cache.usage());
}
