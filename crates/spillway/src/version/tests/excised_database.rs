//! Virtual tables in a database: read, reopened, copied, checked, compacted, crashed.

use std::collections::{BTreeMap, BTreeSet};

use base::options::FamilyOptions;
use vfs::Vfs;
use vfs::memory::{CrashPolicy, MemoryVfs};

use super::*;
use crate::batch::options::WriteOptions;
use crate::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use crate::core::install::Change;
use crate::core::open_options::OpenOptions;
use crate::cursor::options::ReadOptions;
use crate::database::handle::Database;
use crate::maintenance::check::{CheckOptions, CheckReport, check};
use crate::manage::export::ExportOptions;
use crate::version::excise::{ExciseSpan, plan};
use crate::version::file_name::{self, FileType};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database, and what it should hold.
struct World {
    vfs: Arc<MemoryVfs>,
    db: Database,
    model: Model,
}

fn open(vfs: &Arc<MemoryVfs>, path: &str, num_levels: usize) -> Database {
    let family = FamilyOptions {
        num_levels,
        target_file_size_base: 4 << 10,
        write_buffer_size: 64 << 10,
        ..FamilyOptions::default()
    };
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family);
    options.db.log_file_bytes = 256 << 10;
    Database::open(path, &options).unwrap()
}

fn name(i: u64) -> Vec<u8> {
    format!("key{i:04}").into_bytes()
}

/// Everything there is, found forwards, backwards and key by key.
fn contents(db: &Database) -> Model {
    let mut entries = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
    let (mut forward, mut backward) = (Model::new(), Model::new());
    let mut valid = entries.seek_to_first();
    while valid {
        forward.insert(entries.key().to_vec(), entries.value().to_vec());
        valid = entries.next();
    }
    entries.status().unwrap();
    valid = entries.seek_to_last();
    while valid {
        backward.insert(entries.key().to_vec(), entries.value().to_vec());
        valid = entries.prev();
    }
    entries.status().unwrap();
    assert_eq!(forward, backward);
    forward
}

fn checked(vfs: &Arc<MemoryVfs>, path: &str) -> CheckReport {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let report = check(Path::new(path), &options, &mut |_| {}).unwrap();
    assert!(report.is_whole(), "{:?}", report.problems);
    report
}

impl World {
    fn new(vfs: Arc<MemoryVfs>, num_levels: usize) -> Self {
        World { db: open(&vfs, DIR, num_levels), vfs, model: Model::new() }
    }

    fn put(&mut self, i: u64, value: &[u8]) {
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        self.db.put(&self.db.default_family(), &name(i), value, &synced).unwrap();
        self.model.insert(name(i), value.to_vec());
    }

    fn delete_range(&mut self, first: u64, end: u64) {
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        self.db.delete_range(&self.db.default_family(), &name(first), &name(end), &synced).unwrap();
        self.model.retain(|key, _| *key < name(first) || *key >= name(end));
    }

    fn flush(&self) {
        self.db.flush(&[&self.db.default_family()]).unwrap();
    }

    fn compact(&self, bottommost_level_compaction: BottommostLevelCompaction) {
        let options = CompactRangeOptions { bottommost_level_compaction, ..CompactRangeOptions::default() };
        self.db.compact_range(&self.db.default_family(), None, None, &options).unwrap();
    }

    /// Takes the span out of the tables, and there is nothing else. False where nothing was there.
    fn excise(&mut self, first: u64, end: u64) -> bool {
        self.flush();
        let (core, family) = (self.db.core(), self.db.default_family());
        let (start, end) = (name(first), name(end));
        let version = family.view_full().version.clone();
        let next_number = &mut || core.context.numbers.take();
        let plan = plan(&version, ExciseSpan { start: &start, end: &end }, next_number).unwrap();
        let (is_empty, inputs) = (plan.deleted.is_empty(), plan.deleted.clone());
        let mut edit = VersionEdit::new(family.id());
        plan.add_to(&mut edit);
        let change = Change {
            edit,
            inputs: &inputs,
            compaction: None,
            flushed: &[],
            adopted: &[],
            uncovers: false,
            keeps_content: false,
        };
        assert!(self.db.engine().installer.install(change).unwrap());
        self.model.retain(|key, _| *key < start || *key >= end);
        !is_empty
    }

    fn check(&self) {
        assert_eq!(contents(&self.db), self.model);
        for i in 0..220 {
            let found = self.db.get(&self.db.default_family(), &name(i), &ReadOptions::default()).unwrap();
            assert_eq!(found.as_deref(), self.model.get(&name(i)).map(Vec::as_slice), "key {i}");
        }
        self.check_files();
    }

    /// The tables' files are there, and nothing else of that kind.
    fn check_files(&self) {
        self.db.core().drive();
        let live: BTreeSet<_> = self.db.live_files().into_iter().map(|file| file.path).collect();
        let tables = |name: &String| matches!(file_name::parse(name), Some((FileType::Table, _)));
        let there = self.vfs.read_dir(dir()).unwrap().into_iter().filter(tables).map(|name| dir().join(name));
        assert_eq!(there.collect::<BTreeSet<_>>(), live);
    }

    fn virtual_tables(&self) -> usize {
        self.db.live_files().iter().filter(|file| file.is_virtual).count()
    }

    fn reopen(&mut self, num_levels: usize) {
        self.db.close().unwrap();
        checked(&self.vfs, DIR);
        self.db = open(&self.vfs, DIR, num_levels);
    }
}

/// Some writes, some tables, levels of them.
fn filled(random: &mut Random, num_levels: usize) -> World {
    let mut world = World::new(MemoryVfs::new(5), num_levels);
    for _ in 0..4 {
        for _ in 0..60 {
            world.put(random.below(200), &[random.below(256) as u8; 90]);
        }
        let first = random.below(190);
        world.delete_range(first, first + random.below(15));
        world.flush();
        if random.chance(2) {
            world.compact(BottommostLevelCompaction::default());
        }
    }
    world
}

#[test]
fn what_excises_leave_reads_the_same_everywhere() {
    for seed in 1..12 {
        let mut random = Random(seed);
        let mut world = filled(&mut random, 7);
        for round in 0..6 {
            let first = random.below(180);
            world.excise(first, first + 1 + random.below(30));
            world.check();
            match random.below(5) {
                0 => world.reopen(7),
                1 => world.put(random.below(200), b"later"),
                2 => world.flush(),
                3 => {
                    let copy = format!("/copy{round}");
                    world.db.checkpoint(&copy).unwrap();
                    checked(&world.vfs, &copy);
                    assert_eq!(contents(&open(&world.vfs, &copy, 7)), world.model);
                }
                _ => world.compact(BottommostLevelCompaction::default()),
            }
            world.check();
        }
        world.reopen(7);
        world.check();
    }
}

#[test]
fn a_compaction_by_hand_rewrites_what_is_virtual_wherever_it_is() {
    for num_levels in [7, 1] {
        for rule in [BottommostLevelCompaction::Skip, BottommostLevelCompaction::default()] {
            for compacted_before in [true, false] {
                let mut world = filled(&mut Random(3), num_levels);
                if compacted_before {
                    world.compact(rule);
                }
                assert!(world.excise(50, 120));
                assert!(world.virtual_tables() > 0);
                let sizes = world.db.live_files().iter().map(|file| file.bytes).sum::<u64>();
                assert!(sizes <= checked(&world.vfs, DIR).table_bytes);
                world.compact(rule);
                assert_eq!(world.virtual_tables(), 0, "{rule:?}, {num_levels} levels");
                world.check();
                let written = world.db.live_files();
                world.compact(rule);
                assert_eq!(world.db.live_files(), written, "whole tables of the last level stay as they are");
            }
        }
    }
}

#[test]
fn an_export_has_whole_tables_only() {
    for num_levels in [7, 1] {
        let mut world = filled(&mut Random(4), num_levels);
        world.excise(20, 40);
        world.excise(90, 150);
        assert!(world.virtual_tables() > 0);
        world.db.export("/export", &ExportOptions::default()).unwrap();
        let report = checked(&world.vfs, "/export");
        assert!(report.is_rocksdbs && report.tables > 0);
        let read_only = OpenOptions { read_only: true, vfs: world.vfs.clone(), ..OpenOptions::default() };
        assert_eq!(contents(&Database::open("/export", &read_only).unwrap()), world.model);
        world.check();
    }
}

#[test]
fn an_iterator_keeps_what_an_excise_took_from_it() {
    let mut world = filled(&mut Random(6), 7);
    let before = world.model.clone();
    let mut entries = world.db.iter(&world.db.default_family(), &ReadOptions::default()).unwrap();
    world.excise(0, 200);
    world.db.core().drive();
    let mut seen = Model::new();
    let mut valid = entries.seek_to_first();
    while valid {
        seen.insert(entries.key().to_vec(), entries.value().to_vec());
        valid = entries.next();
    }
    entries.status().unwrap();
    assert_eq!(seen, before);
    drop(entries);
    assert!(world.db.live_files().is_empty());
    world.check();
}

#[test]
fn a_check_finds_damage_in_a_shared_file_once_and_bounds_without_anything() {
    let mut world = filled(&mut Random(3), 7);
    world.compact(BottommostLevelCompaction::Force);
    assert!(world.excise(90, 100));
    let shared = world.db.live_files().into_iter().find(|file| file.is_virtual).unwrap().path;
    world.db.close().unwrap();
    let mut bytes = world.vfs.read_file(&shared).unwrap();
    let length = bytes.len();
    bytes[length / 2] ^= 1;
    world.vfs.write_file(&shared, &bytes).unwrap();
    let options = CheckOptions { vfs: world.vfs.clone(), ..CheckOptions::default() };
    let report = check(dir(), &options, &mut |_| {}).unwrap();
    assert!(report.problems.iter().all(|problem| problem.0.path() == Some(&shared)), "{:?}", report.problems);
    assert!(!report.is_whole());
    world.vfs.remove_file(&shared).unwrap();
    let report = check(dir(), &options, &mut |_| {}).unwrap();
    assert!(report.problems[0].0.message().contains("missing"), "{:?}", report.problems);
}

/// The step after which the first excise comes.
const BEFORE_EXCISE: usize = 8;

/// Each step of a database's life with excises in it, and how many operations there had been after it.
fn live(vfs: &Arc<MemoryVfs>) -> Vec<(u64, Model)> {
    let mut world = World::new(vfs.clone(), 3);
    let mut reached = vec![(vfs.operations(), world.model.clone())];
    let mut step = |world: &mut World, run: &dyn Fn(&mut World)| {
        run(world);
        world.db.core().drive();
        reached.push((vfs.operations(), world.model.clone()));
    };
    for i in [10, 20, 30, 40] {
        step(&mut world, &|world| world.put(i, b"first"));
    }
    step(&mut world, &|world| world.flush());
    step(&mut world, &|world| world.delete_range(25, 35));
    step(&mut world, &|world| world.put(45, b"second"));
    step(&mut world, &|world| world.flush());
    step(&mut world, &|world| assert!(world.excise(15, 28)));
    step(&mut world, &|world| world.put(22, b"third"));
    step(&mut world, &|world| assert!(world.excise(38, 42)));
    step(&mut world, &|world| world.compact(BottommostLevelCompaction::Skip));
    step(&mut world, &|world| world.put(12, b"last"));
    reached
}

#[test]
fn a_crash_leaves_an_excise_made_or_not_made() {
    let vfs = MemoryVfs::new(3);
    let reached = live(&vfs);
    let first = reached[BEFORE_EXCISE].0;
    assert!(vfs.operations() - first > 30, "{} operations", vfs.operations() - first);
    for policy in CrashPolicy::ALL {
        for operation in first..vfs.operations() {
            let vfs = MemoryVfs::new(3);
            vfs.crash_at(operation, operation, policy);
            live(&vfs);
            let image = vfs.take_crash_image().expect("the operation came");
            checked(&image, DIR);
            let world = World { db: open(&image, DIR, 3), vfs: image, model: Model::new() };
            let found = contents(&world.db);
            let done = reached.iter().take_while(|(operations, _)| *operations <= operation).count();
            let mut allowed = reached.iter().take(done + 1).skip(done.saturating_sub(1)).map(|(_, model)| model);
            assert!(allowed.any(|model| *model == found), "{policy:?}, operation {operation}: {found:?}");
            world.check_files();
        }
    }
}
