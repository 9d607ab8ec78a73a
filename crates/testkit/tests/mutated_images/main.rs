//! Databases with damaged memtable images or converted tables, half of the time with corrected checksums. Every
//! operation ends without a panic: in an error naming a file, or in the data as damaged. If a checksum reveals the
//! damage, or the image is not relied on, nothing is lost.
//!
//! SPILLWAY_MUTATIONS is the number of attempts, SPILLWAY_MUTATION_SEED the first seed; a failure prints its seed.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod mutate;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use testkit::concurrent::read_all;
use testkit::engine::compaction::CompactRangeOptions;
use testkit::engine::{Db, Error, OpenOptions, ReadOptions, Result, WriteBatch, WriteOptions};
use testkit::kill::Setting;
use testkit::kill::story::{FAMILIES, Story, counter};
use testkit::model::Contents;
use testkit::profile;
use testkit::random::Random;
use testkit::run::{self, DIR, panic_message};
use testkit::threads::within;
use vfs::{CrashPolicy, MemoryVfs};

/// A damaged database takes milliseconds.
const LIMIT: Duration = Duration::from_secs(20);
const MUTATIONS: &str = "SPILLWAY_MUTATIONS";
const SEED: &str = "SPILLWAY_MUTATION_SEED";
const MUTATIONS_USUAL: u64 = 400;
const PROFILES: [&str; 4] =
    ["converted", "converted reverse skip-list-file", "referring", "referring shortlex skip-list-file"];

type All = BTreeMap<&'static str, Contents>;

/// A database that a process left, in images, in tables that were images, and in logs.
struct Left {
    setting: Setting,
    vfs: Arc<MemoryVfs>,
    whole: All,
}

fn options(setting: Setting, vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = setting.open_options(vfs.clone());
    options.db.max_open_files = -1;
    for (_, family) in &mut options.families {
        family.disable_auto_compactions = true;
    }
    options
}

fn open(setting: Setting, vfs: &Arc<MemoryVfs>, by_image: bool) -> Result<Db> {
    let mut options = options(setting, vfs);
    options.db.memtable_crash_safe_recover = by_image;
    options.db.create_if_missing = false;
    Db::open(DIR, &options)
}

fn write(db: &Db, setting: Setting, n: u64) {
    let order = setting.profile.order.order();
    let mut batch = WriteBatch::new();
    for change in setting.story.operation(n % 3, n, &order).ingest.batch {
        run::add(&mut batch, &db.family(&change.family).unwrap(), &change.action);
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
}

impl Left {
    /// Made by a killed process, or by one that closed the database.
    fn by(profile: &str, killed: bool) -> Left {
        const WRITES: u64 = 240;
        let profile = profile::by_name(profile).unwrap();
        let story = Story { seed: 5, ingests_percent: 0 };
        let (write_buffer_bytes, log_file_bytes) = (256 << 10, 256 << 10);
        let setting = Setting { profile, story, threads: 3, write_buffer_bytes, log_file_bytes };
        let vfs = MemoryVfs::new(1);
        let db = Db::open(DIR, &options(setting, &vfs)).unwrap();
        (1..WRITES).for_each(|n| write(&db, setting, n));
        db.flush(&db.families().iter().collect::<Vec<_>>()).unwrap();
        (WRITES..2 * WRITES).for_each(|n| write(&db, setting, n));
        let whole = read(&db).unwrap();
        if !killed {
            db.close().unwrap();
        }
        let vfs = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        Left { setting, vfs, whole }
    }

    /// Files to damage: images and converted tables.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.vfs.all_files();
        files.retain(|path| {
            let is_image = path.extension().is_some_and(|extension| extension == "spmem");
            is_image || self.vfs.read_file(path).unwrap().ends_with(b"SPILWIMG")
        });
        files
    }
}

/// Reads everything in both directions and key by key, absent keys included.
fn read(db: &Db) -> Result<All> {
    let mut all = All::new();
    for name in FAMILIES {
        let family = db.family(name).unwrap();
        let options = ReadOptions::default();
        let mut iterator = db.iter(&family, &options)?;
        let mut keys = vec![counter(0), counter(9)];
        let mut valid = iterator.seek_to_first();
        while valid {
            keys.push(iterator.key().to_vec());
            valid = iterator.next();
        }
        iterator.status()?;
        valid = iterator.seek_to_last();
        while valid {
            valid = iterator.prev();
        }
        iterator.status()?;
        for key in &keys {
            db.get(&family, key, &options)?;
        }
        let together: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        db.multi_get(&family, &together, &options)?.into_iter().collect::<Result<Vec<_>>>()?;
        let ranges: Vec<(&[u8], &[u8])> = keys.windows(2).map(|pair| (&*pair[0], &*pair[1])).collect();
        db.approximate_sizes(&family, &ranges)?;
        all.insert(name, read_all(db, name, None, false));
    }
    Ok(all)
}

/// What became of a damaged database.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Nothing of the damage shows.
    Whole,
    Told,
    /// Other data: of bytes under no checksum, or under one that was made right.
    Other,
}

/// Runs all operations on a database, continuing after errors. Returns the contents at the start and the end, or the
/// first error.
fn use_all(db: &Db) -> Result<[All; 2]> {
    let before = read(db);
    let families = db.families();
    let flushed = db.flush(&families.iter().collect::<Vec<_>>());
    let compact = |family| db.compact_range(family, None, None, &CompactRangeOptions::default());
    let compacted: Vec<Result<()>> = families.iter().map(compact).collect();
    let after = read(db);
    let closed = db.close();
    let before = before?;
    flushed?;
    compacted.into_iter().collect::<Result<()>>()?;
    closed?;
    Ok([before, after?])
}

fn check_error(error: &Error, path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = format!("{error:?}");
    assert!(text.contains(name), "an error that does not name {name}: {text}");
}

/// Damages one file of a database, determined by `seed`, and runs all operations.
fn try_one(left: &Left, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let vfs = left.vfs.crash_clone(seed, CrashPolicy::ProcessKilled);
    let files = left.files();
    let [path, other] = [(); 2].map(|()| random.pick(&files).clone());
    let other = vfs.read_file(&other).unwrap();
    let mut bytes = vfs.read_file(&path).unwrap();
    let is_table = path.extension().is_some_and(|extension| extension == "sst");
    mutate::damage(&mut random, &mut bytes, &other);
    let is_mended = random.chance(50);
    match is_mended {
        true if is_table => mutate::mend_table(&mut bytes),
        true => mutate::mend_image(&mut bytes),
        false => {}
    }
    vfs.write_file(&path, &bytes).unwrap();
    let before = vfs.crash_clone(seed, CrashPolicy::ProcessKilled);
    let used = open(left.setting, &vfs, true).and_then(|db| use_all(&db));
    match used {
        Ok(found) if found.iter().all(|found| *found == left.whole) => Outcome::Whole,
        Ok(_) => {
            assert!(!is_table || is_mended, "damage under a checksum that is wrong passed for data");
            Outcome::Other
        }
        Err(error) => {
            check_error(&error, &path);
            if !is_table {
                let by_replay = open(left.setting, &before, false).and_then(|db| read(&db)).unwrap();
                assert!(by_replay == left.whole, "the logs have everything that a damaged image has not");
            }
            Outcome::Told
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap())
}

fn try_many(killed: bool) {
    let (first, all) = (variable(SEED).unwrap_or(1), variable(MUTATIONS).unwrap_or(MUTATIONS_USUAL));
    for name in PROFILES {
        let left = Arc::new(Left::by(name, killed));
        let mut counts = BTreeMap::new();
        for seed in first..first + all.div_ceil(2 * PROFILES.len() as u64) {
            let left = left.clone();
            let tried = move || catch_unwind(AssertUnwindSafe(|| try_one(&left, seed)));
            match within(LIMIT, tried) {
                Ok(outcome) => *counts.entry(format!("{outcome:?}")).or_insert(0) += 1,
                Err(panic) => panic!("{name}, killed: {killed}, seed {seed}: {}", panic_message(&*panic)),
            }
        }
        println!("{name}, killed: {killed}: {counts:?}");
        assert!(counts.contains_key("Whole") && counts.contains_key("Told"), "{counts:?}");
    }
}

#[test]
fn whatever_a_killed_process_left_is_read_or_refused() {
    try_many(true);
}

#[test]
fn whatever_a_closed_database_left_is_read_or_refused() {
    try_many(false);
}
