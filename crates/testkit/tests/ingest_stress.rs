//! Concurrent writers, multi-family ingests, snapshots, flushes, compactions, checkpoints, and families created and
//! dropped with ingests queued. Every snapshot is a prefix of the history and does not change.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base::SeqNo;
use parking_lot::Mutex;
use testkit::concurrent::{self, FAMILIES, Worker, read_all};
use testkit::engine::compaction::CompactRangeOptions;
use testkit::engine::{
    Db, ErrorKind, Family, IngestOptions, IngestRequest, OtherFamilies, ReadOptions, TableWriter, WriteOptions,
};
use testkit::ingest::Way;
use testkit::profile::{self, Profile};
use testkit::random::Random;
use testkit::tables;
use testkit::threads::{start, wait_for, within};
use vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(300);
const WRITERS: u64 = 2;
const INGESTERS: u64 = 3;

/// `SPILLWAY_EFFORT=1` quadruples the number.
fn operations() -> u64 {
    if std::env::var("SPILLWAY_EFFORT").as_deref() == Ok("1") { 1200 } else { 300 }
}

struct Stress {
    db: Arc<Db>,
    dir: PathBuf,
    vfs: Arc<dyn Vfs>,
    profile: Profile,
    done: AtomicBool,
}

impl Stress {
    fn goes_on(&self) -> bool {
        !self.done.load(Ordering::Relaxed)
    }

    fn worker(&self, number: u64, ways: &[Way]) -> Worker {
        let ingests_percent = if number < WRITERS { 0 } else { 70 };
        let (db, vfs, dir) = (self.db.clone(), self.vfs.clone(), self.dir.with_file_name("tables"));
        Worker { db, vfs, dir, number, ingests_percent, ways: ways.to_vec(), durable: Arc::default() }
    }

    fn reorganise(&self) {
        let mut random = Random::new(9);
        while self.goes_on() {
            let &name = random.pick(&FAMILIES);
            let family = self.db.family(name).unwrap();
            match random.below(4) {
                0 => self.db.flush(&[&family]).unwrap(),
                _ => {
                    let from = format!("{:02}", random.below(20)).into_bytes();
                    self.db.compact_range(&family, Some(&from), None, &CompactRangeOptions::default()).unwrap();
                }
            }
        }
    }

    fn create_and_drop(&self) {
        let dir = self.dir.with_file_name("passing");
        self.vfs.create_dir_all(&dir).unwrap();
        for number in 1..operations() {
            if !self.goes_on() {
                break;
            }
            let family = self.db.create_family("passing", self.profile.family_options("passing")).unwrap();
            for key in 0..number % 5 {
                self.db.put(&family, &key.to_be_bytes(), &[1; 500], &WriteOptions::default()).unwrap();
            }
            let file = dir.join(format!("{number}.sst"));
            let mut table = TableWriter::create(self.vfs.clone(), &file, &family.options()).unwrap();
            table.put(&3u64.to_be_bytes(), b"ingested").unwrap();
            table.finish().unwrap();
            self.db.ingest(&family, &[file], &IngestOptions { move_files: true, ..IngestOptions::default() }).unwrap();
            self.vfs.sync_dir(&dir).unwrap();
            let iterator = self.db.iter(&family, &ReadOptions::default()).unwrap();
            self.db.drop_family(&family).unwrap();
            let mut iterator = iterator;
            assert!(iterator.seek(&3u64.to_be_bytes()));
            assert_eq!(iterator.value(), b"ingested");
        }
    }

    fn check_checkpoints(&self) {
        let dir = self.dir.with_file_name("checkpoint");
        for _ in (0..operations()).take_while(|_| self.goes_on()) {
            self.db.checkpoint(&dir).unwrap();
            let mut options = self.profile.open_options(self.vfs.clone(), FAMILIES);
            // It may have caught a family that passes by.
            options.other_families = OtherFamilies::OpenWith(Box::new(self.profile.family_options("passing")));
            let copy = Db::open(&dir, &options).unwrap();
            let [first, second] = FAMILIES.map(|name| read_all(&copy, name, None, false));
            assert!(first == second, "half an operation in a checkpoint");
            drop(copy);
            Db::destroy(&dir, None, &self.vfs).unwrap();
        }
    }
}

fn stress(vfs: Arc<dyn Vfs>, dir: PathBuf, profile_name: &str, ways: &'static [Way]) {
    let profile = profile::by_name(profile_name).unwrap();
    let db = Arc::new(Db::open(&dir, &profile.open_options(vfs.clone(), FAMILIES)).unwrap());
    let stress = Arc::new(Stress { db, dir, vfs, profile, done: AtomicBool::new(false) });
    let run = |work: fn(&Stress)| {
        let stress = stress.clone();
        start(move || work(&stress))
    };
    let others = [run(Stress::reorganise), run(Stress::create_and_drop), run(Stress::check_checkpoints)];
    let observers = [100, 101].map(|seed| {
        let stress = stress.clone();
        start(move || concurrent::observe(&stress.db, seed, || stress.goes_on()))
    });
    let workers: Vec<_> = (0..WRITERS + INGESTERS)
        .map(|number| {
            let worker = stress.worker(number, ways);
            start(move || worker.run(operations()))
        })
        .collect();
    let histories: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
    stress.done.store(true, Ordering::Relaxed);
    let histories: Vec<_> = histories.into_iter().map(Result::unwrap).collect();
    others.into_iter().for_each(|other| other.join().unwrap());
    for observer in observers {
        let seen = observer.join().unwrap();
        assert!(seen.len() > 2, "nobody looked");
        concurrent::check_prefixes(&histories, &seen);
    }
    let expected = concurrent::state_at(&histories, SeqNo::MAX);
    assert!(FAMILIES.map(|name| read_all(&stress.db, name, None, false) == expected) == [true; 2], "at the end");
    let Stress { db, dir, vfs, .. } = Arc::into_inner(stress).unwrap();
    drop(Arc::into_inner(db).unwrap());
    let db = Db::open(&dir, &profile.open_options(vfs, FAMILIES)).unwrap();
    assert!(FAMILIES.map(|name| read_all(&db, name, None, true) == expected) == [true; 2], "reopened");
}

/// Crashes while threads write and ingest. The state found must be the state after a prefix of the history with every
/// durable operation.
fn crash_beside_workers(profile_name: &str) {
    const ROUNDS: u64 = 8;
    let profile = profile::by_name(profile_name).unwrap();
    let memory = MemoryVfs::new(1);
    memory.set_runs_inline(false);
    let open = |vfs: Arc<MemoryVfs>| Db::open("/db", &profile.open_options(vfs, FAMILIES)).unwrap();
    let (db, durable) = (Arc::new(open(memory.clone())), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let ingests_percent = if number == 0 { 0 } else { 60 };
            let (db, vfs, durable): (_, Arc<dyn Vfs>, _) = (db.clone(), memory.clone(), durable.clone());
            let (dir, ways) = (PathBuf::from("/tables"), vec![Way::Flushable]);
            let worker = Worker { db, vfs, dir, number, ingests_percent, ways, durable };
            start(move || worker.run(60))
        })
        .collect();
    let mut images = Vec::new();
    for round in 1..=ROUNDS {
        let is_due = || durable.load(Ordering::Acquire) > round * 100 || workers.iter().all(JoinHandle::is_finished);
        wait_for("some more ingests", is_due);
        for policy in CrashPolicy::ALL {
            let promised = match policy {
                CrashPolicy::ProcessKilled => db.latest_sequence_number(),
                _ => SeqNo(durable.load(Ordering::Acquire)),
            };
            images.push((policy, promised, memory.crash_clone(images.len() as u64, policy)));
        }
    }
    let histories: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert!(images.iter().any(|(_, promised, _)| promised.0 > 0), "all crashes came too early");
    for (policy, promised, image) in images {
        let db = open(image);
        let [pairs, other] = FAMILIES.map(|name| read_all(&db, name, None, false));
        assert!(pairs == other, "{profile_name}, {policy:?}: half of an operation");
        let found = concurrent::last_state_like(&histories, &pairs);
        assert!(found >= Some(promised), "{profile_name}, {policy:?}: {found:?} is there, {promised:?} was promised");
    }
}

/// Ingests of several families, one of which is dropped and made again meanwhile.
struct Drops {
    db: Arc<Db>,
    vfs: Arc<dyn Vfs>,
    profile: Profile,
    passing: Mutex<Arc<Family>>,
    done: AtomicBool,
}

impl Drops {
    /// Returns the number of drops.
    fn drop_and_create(&self) -> u64 {
        let mut drops = 0;
        while !self.done.load(Ordering::Relaxed) {
            let family = self.passing.lock().clone();
            self.db.drop_family(&family).unwrap();
            drops += 1;
            let again = self.db.create_family("passing", self.profile.family_options("passing")).unwrap();
            *self.passing.lock() = again;
            // Until something came into it.
            let passing = self.passing.lock().clone();
            let is_empty = || !self.db.iter(&passing, &ReadOptions::default()).unwrap().seek_to_first();
            wait_for("an ingest", || self.done.load(Ordering::Relaxed) || !is_empty());
        }
        drops
    }

    fn table(&self, family: &Arc<Family>, key: &str) -> IngestRequest {
        let file = PathBuf::from(format!("/tables/{key}-{}.sst", family.name()));
        let mut table = TableWriter::create(self.vfs.clone(), &file, &family.options()).unwrap();
        table.put(key.as_bytes(), b"ingested").unwrap();
        table.finish().unwrap();
        IngestRequest::new(family.clone(), vec![file])
    }

    /// Returns the numbers of successful and of failed ingests; each is all or nothing.
    fn ingest(&self, thread: u64) -> (u64, u64) {
        let (mut random, mut done, mut refused) = (Random::new(thread), 0, 0);
        for number in 0..operations() / 2 {
            let key = format!("{:02}-{thread}-{number}", random.below(20));
            let lasting = FAMILIES.map(|name| self.db.family(name).unwrap());
            for family in &lasting {
                self.db.put(family, key.as_bytes(), b"before", &WriteOptions::default()).unwrap();
            }
            let passing = self.passing.lock().clone();
            let requests = lasting.iter().chain([&passing]).map(|family| self.table(family, &key)).collect::<Vec<_>>();
            let options = IngestOptions { mode: tables::mode(*random.pick(&Way::ALL)), ..IngestOptions::default() };
            let expected: &[u8] = match self.db.ingest_all(&requests, &options) {
                Ok(_) => b"ingested",
                Err(error) if error.kind() == ErrorKind::Closed => b"before",
                Err(error) => panic!("{error}"),
            };
            if expected == b"ingested" {
                done += 1;
            } else {
                refused += 1;
                // One refusal a drop and thread at the most, however long making the family again takes.
                wait_for("the family again", || !Arc::ptr_eq(&passing, &self.passing.lock()));
            }
            for family in &lasting {
                let found = self.db.get(family, key.as_bytes(), &ReadOptions::default()).unwrap();
                assert_eq!(found.as_deref(), Some(expected), "{key}, {options:?}");
            }
        }
        (done, refused)
    }
}

fn drops_beside_ingests(profile_name: &str) {
    let profile = profile::by_name(profile_name).unwrap();
    let memory = MemoryVfs::new(1);
    memory.set_runs_inline(false);
    let vfs: Arc<dyn Vfs> = memory;
    vfs.create_dir_all("/tables".as_ref()).unwrap();
    let open = || Db::open("/db", &profile.open_options(vfs.clone(), FAMILIES)).unwrap();
    let db = Arc::new(open());
    let passing = Mutex::new(db.create_family("passing", profile.family_options("passing")).unwrap());
    let drops = Arc::new(Drops { db: db.clone(), vfs: vfs.clone(), profile, passing, done: AtomicBool::new(false) });
    let run = |thread| {
        let drops = drops.clone();
        start(move || drops.ingest(thread))
    };
    let ingesters: Vec<_> = (0..INGESTERS).map(run).collect();
    let dropper = drops.clone();
    let dropper = start(move || dropper.drop_and_create());
    let outcomes: Vec<_> = ingesters.into_iter().map(|ingester| ingester.join().unwrap()).collect();
    drops.done.store(true, Ordering::Relaxed);
    let dropped = dropper.join().unwrap();
    let done: u64 = outcomes.iter().map(|outcome| outcome.0).sum();
    let refused: u64 = outcomes.iter().map(|outcome| outcome.1).sum();
    println!("{profile_name}: {done} done, {refused} refused, {dropped} drops");
    assert!(done > 100 && refused > 0 && dropped > 5, "{done} done, {refused} refused, {dropped} drops");
    // No gate is closed and no latch is left behind: a write would wait for ever.
    for name in FAMILIES {
        db.put(&db.family(name).unwrap(), b"00", b"last", &WriteOptions::default()).unwrap();
    }
    db.drop_family(&drops.passing.lock().clone()).unwrap();
    drop(Arc::into_inner(drops));
    let contents = FAMILIES.map(|name| read_all(&db, name, None, false));
    db.close().unwrap();
    drop(db);
    let db = open();
    assert!(FAMILIES.map(|name| read_all(&db, name, None, false)) == contents, "reopened");
    wait_for("only tables that somebody names", || {
        let there = vfs.read_dir("/db".as_ref()).unwrap().iter().filter(|file| file.ends_with(".sst")).count();
        there == db.live_files().len()
    });
}

#[test]
fn families_are_dropped_beside_ingests() {
    within(LIMIT, || ["tiny", "queued"].map(drops_beside_ingests));
}

#[test]
fn crashes_beside_ingests() {
    within(LIMIT, || ["tiny", "vector", "queued"].map(crash_beside_workers));
}

fn in_memory(profile: &'static str, ways: &'static [Way]) {
    within(LIMIT, move || {
        let vfs = MemoryVfs::new(1);
        vfs.set_runs_inline(false);
        stress(vfs, PathBuf::from("/db"), profile, ways);
    });
}

#[test]
fn flushable_ingests() {
    for profile in ["tiny", "queued"] {
        in_memory(profile, &[Way::Flushable]);
    }
}

#[test]
fn ingests_of_all_ways() {
    in_memory("tiny", &Way::ALL);
}

#[test]
fn on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    within(LIMIT, move || stress(RealVfs::new(), path, "static-levels", &[Way::Flushable, Way::Direct]));
}
