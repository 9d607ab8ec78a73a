//! Ingests beside writers and readers: every key ends with what has the largest number, and snapshots never change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::engine::{Db, IngestMode, SeqNo, WriteBatch, WriteOptions};

use super::common::{MODES, World, contents, mode, name};

/// Writes to its keys until it is told to stop; returns the last number of each, and what was written at it.
fn write_until(db: &Db, keys: std::ops::Range<u32>, stop: &AtomicBool) -> BTreeMap<u32, (SeqNo, String)> {
    let (family, mut last) = (db.default_family(), BTreeMap::new());
    for round in 0.. {
        for key in keys.clone() {
            if stop.load(Ordering::Relaxed) {
                return last;
            }
            let mut batch = WriteBatch::new();
            let value = format!("put {round}");
            batch.put(family.id(), name(key).as_bytes(), value.as_bytes());
            let seq = db.write(&batch, &WriteOptions::default()).expect("written");
            last.insert(key, (seq, value));
        }
    }
    last
}

/// Counts snapshots that were checked.
#[derive(Default)]
struct Checked(AtomicU64);

/// More than there are ever checked: nobody checks any more, whether he ended or panicked.
const CHECKS_OVER: u64 = 1 << 60;

impl Checked {
    /// Returns once a snapshot was taken after the call and checked.
    fn wait_for_next(&self) {
        // The one under way may have been taken before.
        let through = (self.0.load(Ordering::Relaxed) + 2).min(CHECKS_OVER);
        while self.0.load(Ordering::Relaxed) < through {
            std::thread::yield_now();
        }
    }
}

struct Checking<'a>(&'a Checked);

impl Drop for Checking<'_> {
    fn drop(&mut self) {
        self.0.0.store(CHECKS_OVER, Ordering::Relaxed);
    }
}

/// Takes snapshots and reads each twice.
fn check_snapshots(db: &Db, checked: &Checked, stop: &AtomicBool) {
    let _checking = Checking(checked);
    let family = db.default_family();
    let mut seq = SeqNo::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let snapshot = db.snapshot();
        assert!(snapshot.seq() >= seq, "the visible number only grows");
        seq = snapshot.seq();
        let first = contents(db, &family, Some(snapshot.clone()));
        std::thread::yield_now();
        assert_eq!(contents(db, &family, Some(snapshot)), first, "a snapshot at {seq}");
        checked.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn beside_writers(ingests: &[IngestMode], rounds: u32) {
    let mut world = World::threaded();
    let (stop, checked) = (AtomicBool::new(false), Checked::default());
    let mut last: BTreeMap<u32, (SeqNo, String)> = BTreeMap::new();
    let mut newest = |all: BTreeMap<u32, (SeqNo, String)>| {
        for (key, (seq, value)) in all {
            let entry = last.entry(key).or_default();
            *entry = entry.clone().max((seq, value));
        }
    };
    std::thread::scope(|scope| {
        let (db, stop, checked): (&Arc<Db>, _, _) = (&world.db, &stop, &checked);
        let writers: Vec<_> =
            (0..2).map(|i| scope.spawn(move || write_until(db, i * 100..i * 100 + 60, stop))).collect();
        let checker = scope.spawn(move || check_snapshots(db, checked, stop));
        let ingest = |(i, ingest): (usize, &IngestMode)| {
            let (world, ingest) = (&world, *ingest);
            scope.spawn(move || {
                let mut all = Vec::new();
                for round in 0..rounds {
                    if round == rounds / 2 {
                        checked.wait_for_next();
                    }
                    let value = format!("ingest {i} {round}");
                    let from = (round * 37 + i as u32 * 50) % 150;
                    let file = world.table(&format!("{i}-{round}"), from..from + 40, &value);
                    let report = world.ingest(file, &mode(ingest)).expect("ingested");
                    all.push((from..from + 40).map(|key| (key, (report.first, value.clone()))).collect());
                }
                all
            })
        };
        let ingesters: Vec<_> = ingests.iter().enumerate().map(ingest).collect();
        ingesters.into_iter().for_each(|all| all.join().expect("no panic").into_iter().for_each(&mut newest));
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|all| newest(all.join().expect("no panic")));
        checker.join().expect("no panic");
    });
    let expected = last.into_iter().map(|(key, (_, value))| (name(key), value)).collect();
    assert_eq!(world.contents(), expected, "{ingests:?}");
    world.reopen();
    assert_eq!(world.contents(), expected, "{ingests:?}: reopened");
}

#[test]
fn each_mode_beside_writers() {
    for ingest in MODES {
        beside_writers(&[ingest], 25);
    }
}

#[test]
fn all_modes_at_once_beside_writers() {
    let all: Vec<IngestMode> = MODES.into_iter().chain([IngestMode::Direct]).collect();
    beside_writers(&all, 12);
}
