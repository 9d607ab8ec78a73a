//! Concurrent batch writers over two families with equal contents, readers checking them, flushes, compactions, created
//! and dropped families, and checkpoints.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use testkit::engine::compaction::CompactRangeOptions;
use testkit::engine::{Db, ErrorKind, ReadOptions, Snapshot, WriteBatch, WriteOptions};
use testkit::profile::{self, Profile};
use testkit::random::Random;
use testkit::threads::{start, within};
use vfs::{MemoryVfs, RealVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(300);
const WRITERS: u64 = 3;
const BATCHES: u64 = 4000;
const FAMILIES: [&str; 2] = ["default", "other"];

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

struct Stress {
    db: Db,
    dir: PathBuf,
    vfs: Arc<dyn Vfs>,
    profile: Profile,
    done: AtomicBool,
    checks: AtomicU64,
    /// Writes that would have had to wait, and asked not to.
    refused: AtomicU64,
}

fn read_all(db: &Db, family: &str, snapshot: Option<&Snapshot>, backward: bool) -> Pairs {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    let mut iterator = db.iter(&db.family(family).unwrap(), &options).unwrap();
    let mut pairs = Pairs::new();
    let mut valid = if backward { iterator.seek_to_last() } else { iterator.seek_to_first() };
    while valid {
        pairs.insert(iterator.key().to_vec(), iterator.value().to_vec());
        valid = if backward { iterator.prev() } else { iterator.next() };
    }
    iterator.status().unwrap();
    pairs
}

impl Stress {
    /// Writes the same to both families, under the writer's own keys. Returns the expected final pairs.
    fn write(&self, writer: u64) -> Pairs {
        let mut random = Random::new(writer);
        let mut mine = Pairs::new();
        for number in 0..BATCHES {
            let no_slowdown = number % 8 == 3;
            let before = no_slowdown.then(|| mine.clone());
            let mut batch = WriteBatch::new();
            for _ in 0..1 + random.below(3) {
                let key = format!("{writer}-{:03}", random.below(200)).into_bytes();
                let choice = random.below(20);
                for family in FAMILIES.map(|name| self.db.family(name).unwrap().id()) {
                    match choice {
                        0..15 => batch.put(family, &key, format!("{number:06}").repeat(40).as_bytes()),
                        15..19 => batch.delete(family, &key),
                        _ => batch.delete_range(family, &key, format!("{writer}-~").as_bytes()),
                    }
                }
                match choice {
                    0..15 => drop(mine.insert(key, format!("{number:06}").repeat(40).into_bytes())),
                    15..19 => drop(mine.remove(&key)),
                    _ => drop(mine.split_off(&key)),
                }
            }
            let options = WriteOptions { sync: number.is_multiple_of(50), no_slowdown, ..WriteOptions::default() };
            match (self.db.write(&batch, &options), before) {
                (Ok(_), _) => {}
                (Err(error), Some(before)) if error.kind() == ErrorKind::Busy => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    mine = before; // nothing of it is there: at the end everything is compared
                }
                (Err(error), _) => panic!("{error:?}"),
            }
        }
        mine
    }

    fn goes_on(&self) -> bool {
        !self.done.load(Ordering::Relaxed)
    }

    /// Both families agree at every snapshot, and a snapshot does not change.
    fn read(&self, reader: u64) {
        let mut random = Random::new(reader);
        let mut held: Option<(Snapshot, Pairs)> = None;
        while self.goes_on() {
            let snapshot = self.db.snapshot();
            let first = read_all(&self.db, FAMILIES[0], Some(&snapshot), random.chance(50));
            let second = read_all(&self.db, FAMILIES[1], Some(&snapshot), random.chance(50));
            assert!(first == second, "a batch is half there at {}", snapshot.seq());
            if let Some((snapshot, pairs)) = &held {
                let again = read_all(&self.db, FAMILIES[0], Some(snapshot), random.chance(50));
                assert!(again == *pairs, "snapshot {} shows something else now", snapshot.seq());
            }
            let family = self.db.family(FAMILIES[0]).unwrap();
            let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            for (key, value) in first.iter().step_by(17) {
                assert_eq!(self.db.get(&family, key, &options).unwrap().as_deref(), Some(&**value));
            }
            if held.is_none() || random.chance(20) {
                held = Some((snapshot, first));
            }
            self.checks.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn reorganise(&self) {
        let mut random = Random::new(9);
        while self.goes_on() {
            let &name = random.pick(&FAMILIES);
            let family = self.db.family(name).unwrap();
            match random.below(3) {
                0 => self.db.flush(&[&family]).unwrap(),
                _ => {
                    let from = format!("{}-", random.below(WRITERS)).into_bytes();
                    self.db.compact_range(&family, Some(&from), None, &CompactRangeOptions::default()).unwrap();
                }
            }
        }
    }

    fn create_and_drop(&self) {
        let mut number = 0u64;
        while self.goes_on() {
            number += 1;
            let family = self.db.create_family("passing", self.profile.family_options("passing")).unwrap();
            for key in 0..number % 50 {
                self.db.put(&family, &key.to_be_bytes(), &[1; 500], &WriteOptions::default()).unwrap();
            }
            let iterator = self.db.iter(&family, &ReadOptions::default()).unwrap();
            self.db.drop_family(&family).unwrap();
            let after = self.db.put(&family, b"k", b"v", &WriteOptions::default()).unwrap_err();
            assert!(matches!(after.kind(), ErrorKind::Closed | ErrorKind::InvalidArgument), "{after:?}");
            let mut iterator = iterator;
            assert_eq!(iterator.seek_to_first(), !number.is_multiple_of(50));
        }
    }

    fn check_checkpoints(&self) {
        let dir = self.dir.with_file_name("checkpoint");
        while self.goes_on() {
            self.db.checkpoint(&dir).unwrap();
            let mut options = self.profile.open_options(self.vfs.clone(), FAMILIES);
            // It may have caught a family that passes by.
            options.other_families =
                testkit::engine::OtherFamilies::OpenWith(Box::new(self.profile.family_options("passing")));
            let copy = Db::open(&dir, &options).unwrap();
            let [first, second] = FAMILIES.map(|name| read_all(&copy, name, None, false));
            assert!(first == second, "half a batch in a checkpoint");
            drop(copy);
            Db::destroy(&dir, None, &self.vfs).unwrap();
        }
    }
}

fn stress(vfs: Arc<dyn Vfs>, dir: PathBuf, profile_name: &'static str) {
    let profile = profile::by_name(profile_name).unwrap();
    let db = Db::open(&dir, &profile.open_options(vfs.clone(), FAMILIES)).unwrap();
    let (done, checks, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let stress = Arc::new(Stress { db, dir, vfs, profile, done, checks, refused });
    let run = |work: fn(&Stress)| {
        let stress = stress.clone();
        start(move || work(&stress))
    };
    let others = [
        run(|s| s.read(100)),
        run(|s| s.read(101)),
        run(Stress::reorganise),
        run(Stress::create_and_drop),
        run(Stress::check_checkpoints),
    ];
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let stress = stress.clone();
            start(move || stress.write(number))
        })
        .collect();
    let written: Vec<_> = writers.into_iter().map(std::thread::JoinHandle::join).collect();
    stress.done.store(true, Ordering::Relaxed);
    for other in others {
        other.join().unwrap();
    }
    let mut expected = Pairs::new();
    written.into_iter().for_each(|mine| expected.extend(mine.unwrap()));
    assert!(stress.checks.load(Ordering::Relaxed) > 2, "nobody looked");
    println!("{profile_name}: {} writes were refused", stress.refused.load(Ordering::Relaxed));
    assert!(FAMILIES.map(|name| read_all(&stress.db, name, None, false) == expected) == [true; 2], "at the end");
    let stress = Arc::into_inner(stress).unwrap();
    drop(stress.db);
    let db = Db::open(&stress.dir, &stress.profile.open_options(stress.vfs, FAMILIES)).unwrap();
    assert!(FAMILIES.map(|name| read_all(&db, name, None, true) == expected) == [true; 2], "reopened");
}

#[test]
fn in_memory() {
    for profile in ["tiny", "vector", "partitioned"] {
        within(LIMIT, move || {
            let vfs = MemoryVfs::new(1);
            vfs.set_runs_inline(false);
            stress(vfs, PathBuf::from("/db"), profile);
        });
    }
}

#[test]
fn on_real_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    within(LIMIT, move || stress(RealVfs::new(), path, "static-levels"));
}
