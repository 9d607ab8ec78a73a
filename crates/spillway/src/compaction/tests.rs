//! Compactions of whole databases against a plain map.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::options::{CompressionKind, FamilyOptions};
use base::{Comparator, ErrorKind, UserOrder};
use vfs::{Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};

use super::{BottommostLevelCompaction, CompactRangeOptions};
use crate::batch::options::WriteOptions;
use crate::core::family::Family;
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions};
use crate::cursor::options::ReadOptions;
use crate::cursor::snapshot::Snapshot;
use crate::cursor::testing::{Join, Random};
use crate::database::handle::Database;
use crate::version::span::Span;

const KEYS: u64 = 3000;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

struct Harness {
    db: Database,
    random: Random,
    model: Model,
    held: Vec<(Snapshot, Model)>,
}

fn key(i: u64) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

fn small_levels() -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(Arc::new(Join)),
        target_file_size_base: 8 << 10,
        max_bytes_for_level_base: (32 << 10).into(),
        max_bytes_for_level_multiplier: 4.0,
        num_levels: 5,
        compression: CompressionKind::None,
        paranoid_file_checks: true,
        ..FamilyOptions::default()
    }
}

fn open(vfs: Arc<dyn Vfs>, family: FamilyOptions, subcompactions: usize) -> Database {
    let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
    options.db.max_subcompactions = subcompactions;
    options.db.max_background_jobs = 8;
    options.vfs = vfs;
    Database::open("/db", &options).unwrap()
}

impl Harness {
    fn new(db: Database, seed: u64) -> Self {
        Harness { db, random: Random::new(seed), model: Model::new(), held: Vec::new() }
    }

    fn family(&self) -> Arc<Family> {
        self.db.default_family()
    }

    fn write(&mut self, count: u64) {
        let (family, options) = (self.family(), WriteOptions::default());
        for _ in 0..count {
            let i = self.random.below(KEYS);
            let key = key(i);
            match self.random.below(40) {
                0 => {
                    let end = self::key(i + self.random.below(KEYS / 20));
                    self.db.delete_range(&family, &key, &end, &options).unwrap();
                    self.model.retain(|other, _| *other < key || *other >= end);
                }
                1..6 => {
                    self.db.delete(&family, &key, &options).unwrap();
                    self.model.remove(&key);
                }
                6..9 => {
                    self.db.merge(&family, &key, b"m", &options).unwrap();
                    let value = self.model.entry(key).or_default();
                    if !value.is_empty() {
                        value.push(b',');
                    }
                    value.push(b'm');
                }
                _ => {
                    let value = vec![b'a' + (i % 26) as u8; 20 + self.random.below(80) as usize];
                    self.db.put(&family, &key, &value, &options).unwrap();
                    self.model.insert(key, value);
                }
            }
        }
    }

    fn hold_or_release(&mut self) {
        if self.held.len() < 3 && self.random.below(2) == 0 {
            self.held.push((self.db.snapshot(), self.model.clone()));
        } else if !self.held.is_empty() {
            let at = self.random.below(self.held.len() as u64) as usize;
            self.held.remove(at);
        }
    }

    fn check(&self) {
        self.check_at(&ReadOptions::default(), &self.model);
        for (snapshot, model) in &self.held {
            self.check_at(&ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }, model);
        }
        self.check_shape();
    }

    fn check_at(&self, options: &ReadOptions, model: &Model) {
        let mut iter = self.db.iter(&self.family(), options).unwrap();
        let mut found = Model::new();
        let mut valid = iter.seek_to_first();
        while valid {
            found.insert(iter.key().to_vec(), iter.value().to_vec());
            valid = iter.next();
        }
        iter.status().unwrap();
        let wrong = model.iter().find(|(key, value)| found.get(*key) != Some(*value));
        let extra = found.keys().find(|key| !model.contains_key(*key));
        assert!(wrong.is_none() && extra.is_none(), "missing or wrong {wrong:?}, extra {extra:?}");
    }

    fn check_shape(&self) {
        let (view, context) = (self.family().view_full(), &self.db.core().context);
        for (_, file) in view.version.all_files() {
            let on_disk = context.vfs.metadata(&context.table_path(file.number())).unwrap();
            assert_eq!(on_disk.len, file.meta.file_bytes, "table {}", file.number().0);
        }
        if context.vfs.runs_inline() {
            self.db.engine().jobs.purge_obsolete();
            let names = context.vfs.read_dir(&context.dir).unwrap();
            let on_disk = names.iter().filter(|name| name.ends_with(".sst")).count();
            assert_eq!(
                on_disk,
                view.version.all_files().count(),
                "nothing is left behind, and nobody holds an older version"
            );
        }
        for level in 1..view.version.num_levels() {
            for pair in view.version.level(level).windows(2) {
                assert!(view.version.order().compare(&pair[0].meta.largest, &pair[1].meta.smallest).is_lt());
            }
        }
    }

    fn levels(&self) -> Vec<usize> {
        let view = self.family().view_full();
        (0..view.version.num_levels()).map(|level| view.version.level(level).len()).collect()
    }

    fn compact_all(&self, options: &CompactRangeOptions) {
        self.db.compact_range(&self.family(), None, None, options).unwrap();
    }
}

/// Tables in the directory that no version has.
fn strays(vfs: &dyn Vfs, harness: &Harness) -> Vec<String> {
    let view = harness.family().view_full();
    let live: Vec<String> = view.version.all_files().map(|(_, file)| format!("{}.sst", file.number())).collect();
    let names = vfs.read_dir(Path::new("/db")).unwrap();
    names.into_iter().filter(|name| name.ends_with(".sst") && !live.contains(name)).collect()
}

fn run_random(dynamic: bool, subcompactions: usize, threads: bool, seed: u64) {
    let vfs = MemoryVfs::new(seed);
    vfs.set_runs_inline(!threads);
    let family = FamilyOptions { level_compaction_dynamic_level_bytes: dynamic, ..small_levels() };
    let mut harness = Harness::new(open(vfs.clone(), family.clone(), subcompactions), seed);
    for round in 0..40 {
        harness.write(250);
        harness.hold_or_release();
        harness.db.flush(&[&harness.family()]).unwrap();
        harness.check();
        if round % 10 == 7 {
            let (a, b) = (key(harness.random.below(KEYS)), key(harness.random.below(KEYS)));
            let (start, end) = (a.clone().min(b.clone()), a.max(b));
            let options = CompactRangeOptions::default();
            harness.db.compact_range(&harness.family(), Some(&start), Some(&end), &options).unwrap();
            harness.check();
        }
    }
    harness.db.wait_for_compaction().unwrap();
    harness.check();
    assert!(harness.levels().iter().skip(1).filter(|files| **files > 0).count() > 1, "{:?}", harness.levels());
    harness.held.clear();
    harness.compact_all(&CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    });
    harness.check();
    let view = harness.family().view_full();
    let entries: u64 = view.version.all_files().map(|(_, file)| file.open().unwrap().properties().entries).sum();
    assert_eq!(entries, harness.model.len() as u64, "nothing but what is alive is left: {:?}", harness.levels());
    drop(view);
    let (model, random) = (std::mem::take(&mut harness.model), Random::new(seed));
    harness.db.close().unwrap();
    let harness = Harness { db: open(vfs.clone(), family, subcompactions), random, model, held: Vec::new() };
    harness.check();
    assert_eq!(strays(&*vfs, &harness), Vec::<String>::new());
}

#[test]
fn random_histories_read_as_the_model_says() {
    for seed in 0..4 {
        run_random(seed % 2 == 0, 1, false, seed);
    }
}

#[test]
fn random_histories_with_parts_inline() {
    run_random(true, 3, false, 11);
    run_random(false, 4, false, 12);
}

#[test]
fn random_histories_on_threads() {
    for seed in 0..6 {
        run_random(seed % 2 == 0, 1 + seed as usize % 3, true, seed);
    }
}

#[test]
fn tables_written_in_key_order_are_moved() {
    let vfs = MemoryVfs::new(1);
    let harness = Harness::new(open(vfs.clone(), small_levels(), 1), 1);
    for i in 0..6u64 {
        for j in 0..50 {
            harness.db.put(&harness.family(), &key(i * 100 + j), &[b'v'; 50], &WriteOptions::default()).unwrap();
        }
        harness.db.flush(&[&harness.family()]).unwrap();
    }
    let before: Vec<_> = harness.family().view_full().version.all_files().map(|(_, f)| f.number()).collect();
    harness.compact_all(&CompactRangeOptions::default());
    let view = harness.family().view_full();
    let mut after: Vec<_> = view.version.all_files().map(|(_, f)| f.number()).collect();
    after.sort();
    let mut expected = before.clone();
    expected.sort();
    assert_eq!(after, expected, "no table was rewritten");
    assert_eq!(harness.levels(), [0, 0, 0, 0, 6]);
}

#[test]
fn a_level_can_be_moved_up() {
    let harness = Harness::new(open(MemoryVfs::new(1), small_levels(), 1), 1);
    for i in 0..50 {
        harness.db.put(&harness.family(), &key(i), b"v", &WriteOptions::default()).unwrap();
    }
    let change = |target_level| CompactRangeOptions { change_level: true, target_level, ..Default::default() };
    harness.compact_all(&change(Some(2)));
    assert_eq!(harness.levels(), [0, 0, 1, 0, 0]);
    let error = harness.db.compact_range(&harness.family(), None, None, &change(Some(9))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    harness.compact_all(&change(None));
    assert_eq!(harness.levels(), [0, 1, 0, 0, 0]);
    harness.compact_all(&CompactRangeOptions { exclusive_manual_compaction: true, ..change(Some(4)) });
    assert_eq!(harness.levels(), [0, 0, 0, 0, 1]);
}

#[test]
fn a_compaction_that_fails_leaves_no_files() {
    for nth in [1, 2, 5] {
        let memory = MemoryVfs::new(nth);
        let faulty = FaultVfs::new(memory.clone());
        let family = FamilyOptions { disable_auto_compactions: true, ..small_levels() };
        let mut harness = Harness::new(open(faulty.clone(), family, 2), nth);
        for _ in 0..4 {
            harness.write(400);
            harness.db.flush(&[&harness.family()]).unwrap();
        }
        faulty.inject(
            Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Write).class(IoClass::Compaction).nth(nth),
        );
        let error = harness.db.compact_range(&harness.family(), None, None, &CompactRangeOptions::default());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(strays(&*memory, &harness), Vec::<String>::new());
        harness.check();
        faulty.clear();
        harness.db.resume().unwrap();
        harness.compact_all(&CompactRangeOptions::default());
        harness.check();
        assert_eq!(harness.levels().first(), Some(&0));
    }
}

/// Counts comparisons.
struct Counting(AtomicUsize);

impl Comparator for Counting {
    fn name(&self) -> &str {
        "test.Counting"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        self.0.fetch_add(1, Ordering::Relaxed);
        a.cmp(b)
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "other threads are to have time")]
fn a_compaction_by_hand_sleeps_while_its_place_is_reserved() {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let counting = Arc::new(Counting(AtomicUsize::new(0)));
    let family = FamilyOptions { order: UserOrder::Custom(counting.clone()), ..small_levels() };
    let mut harness = Harness::new(open(vfs, family, 1), 1);
    harness.write(100);
    let (core, id) = (harness.db.core(), harness.family().id());
    let everything = Span { start: Vec::new(), end: b"z".to_vec(), end_is_exclusive: false };
    let places = (0..5).map(|level| (level, everything.clone())).collect();
    let reservation = core.state.lock().families.get_mut(&id).unwrap().compactions.reserve(places);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| harness.compact_all(&CompactRangeOptions::default()));
        while !core.state.lock().families[&id].compactions.is_held() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20)); // the flush before it is told of
        let before = counting.0.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        let comparisons = counting.0.load(Ordering::Relaxed) - before;
        core.state.lock().families.get_mut(&id).unwrap().compactions.end_reservation(reservation);
        core.state_changed.notify_all();
        call.join().unwrap();
        assert!(comparisons < 200, "{comparisons}");
    });
    harness.check();
    assert_eq!(harness.levels()[0], 0);
}
