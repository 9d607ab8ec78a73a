//! Transactions of several threads, checked as a history, beside plain writers, flushes, compactions and kills; and
//! crashes at every operation of a life of commits.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::engine::{
    Change, CompactRangeOptions, Db, ErrorKind, Family, LockMode, ReadOptions, Track, Transaction, ValueKind,
    WriteOptions,
};
use testkit::history::{End, Isolation, List, Record, check};
use testkit::profile;
use testkit::random::Random;
use testkit::threads::{start, within};
use vfs::{CrashPolicy, MemoryVfs};

const DIR: &str = "/db";
const LIMIT: Duration = Duration::from_secs(120);
const KEYS: u64 = 8;

fn open(vfs: &Arc<MemoryVfs>, profile: &str) -> Arc<Db> {
    let options = profile::by_name(profile).unwrap().open_options(vfs.clone(), ["other"]);
    Arc::new(Db::open(DIR, &options).unwrap())
}

fn list(bytes: Option<&[u8]>) -> List {
    let text = String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn text(list: &List) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// A key stands in a family by its number.
fn family_of(db: &Db, key: u64) -> Arc<Family> {
    db.family(if key.is_multiple_of(2) { "default" } else { "other" }).unwrap()
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Change<'a> {
    Change { kind: ValueKind::Value, key, value }
}

fn state(db: &Db) -> BTreeMap<String, List> {
    let value = |key| db.get(&family_of(db, key), &key.to_be_bytes(), &ReadOptions::default()).unwrap();
    (0..KEYS).map(|key| (format!("{key}"), list(value(key).as_deref()))).collect()
}

/// How a worker's transactions read, and so which isolation they have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// All for an update: serializable.
    Tracked,
    /// At the transaction's snapshot; writes are tracked since.
    AtSnapshot,
    /// Nothing is tracked: neither.
    Untracked,
}

struct Worker {
    db: Arc<Db>,
    reads: Reads,
    next: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    /// Set before the kill: what commits behind it may be there or not.
    dies: Arc<AtomicBool>,
    seed: u64,
}

impl Worker {
    fn run(&self, transactions: u64) -> Vec<Record> {
        let mut random = Random::new(self.seed);
        let mut history = Vec::new();
        let mut transaction = Transaction::default();
        for _ in 0..transactions {
            if self.ends.load(Ordering::Acquire) {
                break;
            }
            history.push(self.one(&mut transaction, &mut random));
            transaction.begin();
        }
        history
    }

    fn one(&self, transaction: &mut Transaction, random: &mut Random) -> Record {
        let mut record = Record { number: self.next.fetch_add(1, Ordering::Relaxed), ..Record::default() };
        if self.reads == Reads::AtSnapshot {
            transaction.set_snapshot(&self.db);
        }
        let keys: BTreeSet<u64> = (0..1 + random.below(3)).map(|_| random.below(KEYS)).collect();
        for key in keys {
            let read = self.read(transaction, key);
            if random.chance(10) {
                std::thread::yield_now();
            }
            if random.chance(60) {
                let appended = text(&[read.clone(), vec![record.number]].concat());
                let track = if self.reads == Reads::Untracked { Track::Untracked } else { Track::Tracked };
                let (family, bytes) = (family_of(&self.db, key), key.to_be_bytes());
                transaction.write(&self.db, &family, set(&bytes, appended.as_bytes()), track).unwrap();
                record.appends.insert(key.to_string());
            }
            record.reads.insert(key.to_string(), read);
        }
        record.end = match transaction.commit(&self.db, &WriteOptions::default()) {
            Ok(()) if self.dies.load(Ordering::Acquire) => End::Unknown,
            Ok(()) => End::Committed,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                End::Aborted
            }
        };
        record
    }

    fn read(&self, transaction: &mut Transaction, key: u64) -> List {
        let (family, bytes) = (family_of(&self.db, key), key.to_be_bytes());
        let options = ReadOptions { snapshot: transaction.snapshot().cloned(), ..ReadOptions::default() };
        let found = match self.reads {
            Reads::Tracked => transaction.get_for_update(&self.db, &family, &bytes, LockMode::Exclusive, &options),
            _ => transaction.get(&self.db, &family, &bytes, &options),
        };
        list(found.unwrap().as_deref())
    }
}

/// Runs workers beside a thread that writes other keys, flushes and compacts.
fn run(vfs: &Arc<MemoryVfs>, profile: &str, reads: Reads, transactions: u64) -> (Vec<Record>, BTreeMap<String, List>) {
    let db = open(vfs, profile);
    let (next, ends) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = (0..4)
        .map(|seed| {
            let (ends, dies) = (Arc::default(), Arc::default());
            let worker = Worker { db: db.clone(), reads, next: next.clone(), ends, dies, seed };
            start(move || worker.run(transactions))
        })
        .collect();
    let beside = start({
        let (db, ends) = (db.clone(), ends.clone());
        move || {
            let mut round = 0u64;
            while !ends.load(Ordering::Acquire) {
                round += 1;
                let family = family_of(&db, round);
                let key = (100 + round % 50).to_be_bytes();
                db.put(&family, &key, &[7; 500], &WriteOptions::default()).unwrap();
                if round.is_multiple_of(40) {
                    db.flush(&[&family]).unwrap();
                }
                if round.is_multiple_of(200) {
                    db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
                }
            }
        }
    });
    let history = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    ends.store(true, Ordering::Release);
    beside.join().unwrap();
    let last = state(&db);
    db.close().unwrap();
    (history, last)
}

fn threaded() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    vfs
}

#[test]
fn transactions_that_read_for_an_update_are_serializable() {
    within(LIMIT, || {
        for profile in ["tiny", "vector"] {
            let (history, last) = run(&threaded(), profile, Reads::Tracked, 250);
            check(&history, &last, Isolation::Serializable).unwrap();
            assert!(history.iter().any(|record| record.end == End::Aborted), "{profile}: the threads never met");
        }
    });
}

#[test]
fn transactions_that_read_at_their_snapshot_have_snapshot_isolation() {
    within(LIMIT, || {
        let (history, last) = run(&threaded(), "tiny", Reads::AtSnapshot, 250);
        check(&history, &last, Isolation::Snapshot).unwrap();
    });
}

/// The check does find what nothing prevents.
#[test]
fn transactions_that_track_nothing_lose_writes() {
    within(LIMIT, || {
        let (history, last) = run(&threaded(), "tiny", Reads::Untracked, 250);
        check(&history, &last, Isolation::Snapshot).unwrap_err();
    });
}

/// Kills with transactions under way, and goes on after each: the whole history is serializable.
#[test]
fn a_history_over_kills_is_serializable() {
    within(LIMIT, || {
        let mut vfs = threaded();
        let mut history: Vec<Record> = Vec::new();
        let next = Arc::new(AtomicU64::new(1));
        for round in 0..6 {
            let db = open(&vfs, "tiny");
            let (ends, dies) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let workers: Vec<_> = (0..3)
                .map(|n| {
                    let (db, next, ends, dies) = (db.clone(), next.clone(), ends.clone(), dies.clone());
                    let worker = Worker { db, reads: Reads::Tracked, next, ends, dies, seed: round * 10 + n };
                    start(move || worker.run(u64::MAX))
                })
                .collect();
            let from = next.load(Ordering::Relaxed);
            while next.load(Ordering::Relaxed) < from + 150 {
                std::thread::yield_now();
            }
            dies.store(true, Ordering::Release);
            let image = vfs.crash_clone(round, CrashPolicy::ProcessKilled);
            ends.store(true, Ordering::Release);
            history.extend(workers.into_iter().flat_map(|worker| worker.join().unwrap()));
            db.close().unwrap();
            vfs = image;
            vfs.set_runs_inline(false);
        }
        let last = state(&open(&vfs, "tiny"));
        check(&history, &last, Isolation::Serializable).unwrap();
    });
}

/// A life of commits over two families, some of them large, some that conflict. Calls `committed` with the state after
/// each.
fn life(db: &Db, mut committed: impl FnMut(BTreeMap<String, List>)) {
    let mut random = Random::new(7);
    let mut transaction = Transaction::default();
    for number in 1..25u64 {
        for key in [number % KEYS, (number * 3 + 1) % KEYS] {
            let (family, bytes) = (family_of(db, key), key.to_be_bytes());
            let Ok(read) =
                transaction.get_for_update(db, &family, &bytes, LockMode::Exclusive, &ReadOptions::default())
            else {
                return;
            };
            let appended = text(&[list(read.as_deref()), vec![number]].concat());
            transaction.write(db, &family, set(&bytes, appended.as_bytes()), Track::Tracked).unwrap();
        }
        if random.chance(20) {
            transaction.write(db, &family_of(db, 0), set(b"filler", &[7; 40_000]), Track::Untracked).unwrap();
        }
        if random.chance(20) && db.flush(&[&family_of(db, 0)]).is_err() {
            return;
        }
        if transaction.commit(db, &WriteOptions { sync: number % 3 == 0, ..WriteOptions::default() }).is_err() {
            return;
        }
        committed(state(db));
    }
}

#[test]
fn a_crash_leaves_each_commit_whole_or_absent() {
    let whole = MemoryVfs::new(1);
    // The states, each with the number of file-system operations behind its commit.
    let mut states = vec![(0, (0..KEYS).map(|key| (key.to_string(), List::new())).collect::<BTreeMap<_, _>>())];
    let db = open(&whole, "tiny");
    life(&db, |state| states.push((whole.operations(), state)));
    assert_eq!(states.len(), 25, "no commit failed");
    let operations = whole.operations();
    for policy in CrashPolicy::ALL {
        for operation in (0..operations).step_by(7) {
            let vfs = MemoryVfs::new(1);
            vfs.crash_at(operation, operation, policy);
            let options = profile::by_name("tiny").unwrap().open_options(vfs.clone(), ["other"]);
            if let Ok(db) = Db::open(DIR, &options) {
                life(&db, |_| ());
            }
            let Some(image) = vfs.take_crash_image() else { continue };
            let found = state(&open(&image, "tiny"));
            let at = states.iter().rposition(|(_, state)| *state == found);
            let at = at.unwrap_or_else(|| panic!("{policy:?} at {operation}: {found:?} is no state between commits"));
            let acknowledged = states.partition_point(|(behind, _)| *behind <= operation) - 1;
            let is_lost = policy == CrashPolicy::ProcessKilled && at < acknowledged;
            assert!(!is_lost, "at {operation}: commit {acknowledged} was acknowledged, the state is {at}");
        }
    }
}
