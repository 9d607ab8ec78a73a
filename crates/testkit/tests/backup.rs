//! Backups with an I/O fault or a power loss at every call. A new backup is there completely or not at all, earlier
//! backups stay, and a partially restored directory is never opened as a database.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{self, CheckOptions};
use testkit::engine::export::ExportOptions;
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{
    Db, Error, Family, FamilyOptions, OpenOptions, OtherFamilies, ReadOptions, WriteBatch, WriteOptions, repair,
};
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

const BACKUPS: &str = "/backups";

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let trie = r#"trie:{"convert_to_sst":"kFileMmap","ref_log_format":"kPlainLogRef"}"#;
    let family = FamilyOptions { memtable_factory: trie.into(), ..FamilyOptions::default() };
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() }.family("default", family);
    options.db.memtable_as_log_index = true;
    options.db.log_file_bytes = 64 << 10;
    options.db.large_batch_bytes = 8 << 10;
    options
}

fn engine(vfs: Arc<dyn Vfs>) -> Result<BackupEngine, Error> {
    BackupEngine::open(BACKUPS, &BackupOptions { vfs, ..BackupOptions::default() })
}

fn contents(db: &Db) -> Contents {
    contents_of(db, &db.default_family())
}

fn contents_of(db: &Db, family: &Arc<Family>) -> Contents {
    let mut entries = db.iter(family, &ReadOptions::default()).unwrap();
    let mut found = Contents::new();
    let mut valid = entries.seek_to_first();
    while valid {
        found.insert(entries.key().to_vec(), entries.value().to_vec());
        valid = entries.next();
    }
    entries.status().unwrap();
    found
}

/// Writes some values into tables, some into WALs, and one batch into a WAL of its own.
fn write(db: &Db, round: u8) {
    let family = db.default_family();
    for i in 0..30u8 {
        let value = vec![round ^ i; 200 * usize::from(i)];
        db.put(&family, &[b'k', i % 20, round % 2], &value, &WriteOptions::default()).unwrap();
        if i == 20 {
            db.flush(&[&family]).unwrap();
        }
    }
    let mut batch = WriteBatch::new();
    (0..10u8).for_each(|i| batch.put(family.id(), &[b'b', i, round], &[i; 1000]));
    db.write(&batch, &WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
}

/// A database with one backup, what it held at that time and holds now, and a copy of it as it is now in `/old`.
struct World {
    memory: Arc<MemoryVfs>,
    faulty: Arc<FaultVfs>,
    db: Db,
    states: [Contents; 2],
}

impl World {
    fn new() -> World {
        let memory = MemoryVfs::new(1);
        let faulty = FaultVfs::new(memory.clone());
        let db = Db::open("/db", &options(faulty.clone())).unwrap();
        write(&db, 1);
        let first = contents(&db);
        engine(faulty.clone()).unwrap().create_new_backup(&db, false).unwrap();
        write(&db, 2);
        let second = contents(&db);
        db.checkpoint("/old").unwrap();
        World { memory, faulty, db, states: [first, second] }
    }

    /// Verifies and restores every backup of a file system; returns their ids.
    fn look(&self, vfs: &Arc<MemoryVfs>) -> Vec<u32> {
        let engine = engine(vfs.clone()).unwrap();
        let damaged = engine.damaged_backups().unwrap();
        assert!(damaged.is_empty(), "{damaged:?}");
        let ids: Vec<u32> = engine.backups().unwrap().iter().map(|backup| backup.id).collect();
        for &id in &ids {
            engine.verify(id).unwrap();
            engine.restore(id, "/look", &RestoreOptions::default()).unwrap();
            let copy = Db::open("/look", &options(vfs.clone())).unwrap();
            let expected = self.states.get(id.min(2) as usize - 1).unwrap();
            assert!(contents(&copy) == *expected, "backup {id} is not what was backed up");
        }
        ids
    }
}

/// Fails each call of `work` in turn and then calls `look`, until `work` makes no more calls. Every third failed call
/// takes effect nevertheless.
fn fail_each_call(work: impl Fn(&World) -> Result<(), Error>, mut look: impl FnMut(&World, Result<(), Error>)) {
    let any = Rule::new(Fault::Error(FaultCode::Io));
    let after = Rule::new(Fault::ErrorAfter(FaultCode::Io));
    let short = Rule::new(Fault::ShortWrite(FaultCode::NoSpace)).on(Operation::Write);
    for (rule, step) in [(any, 1), (after, 3), (short, 1)] {
        for nth in (1..).step_by(step) {
            let world = World::new();
            world.faulty.inject(rule.clone().nth(nth));
            let result = work(&world);
            let fired = world.faulty.fired();
            world.faulty.clear();
            look(&world, result);
            if fired == 0 {
                break;
            }
        }
    }
}

#[test]
fn a_backup_that_fails_anywhere_is_not_there_and_the_next_one_is() {
    let create = |world: &World| engine(world.faulty.clone())?.create_new_backup(&world.db, false).map(drop);
    let mut failed = 0;
    fail_each_call(create, |world, result| {
        failed += u64::from(result.is_err());
        let expected: &[u32] = if result.is_ok() { &[1, 2] } else { &[1] };
        assert_eq!(world.look(&world.memory), expected, "{result:?}");
        let again = engine(world.faulty.clone()).unwrap().create_new_backup(&world.db, false);
        match again {
            Ok(id) => assert!(world.look(&world.memory).contains(&id)),
            // The fault hit the log: the database takes no more writes.
            Err(error) => assert!(result.is_err(), "{error}"),
        }
    });
    assert!(failed > 100, "{failed} calls failed");
}

#[test]
fn a_removal_that_fails_anywhere_leaves_whole_backups() {
    let remove = |world: &World| engine(world.faulty.clone())?.delete(1);
    let mut failed = 0;
    fail_each_call(remove, |world, result| {
        failed += u64::from(result.is_err());
        let ids = world.look(&world.memory);
        assert!(result.is_err() || ids.is_empty(), "{ids:?}");
        let engine = engine(world.faulty.clone()).unwrap();
        let id = engine.create_new_backup(&world.db, false).unwrap();
        for left in engine.unfinished_backups().unwrap() {
            engine.delete(left.id).unwrap();
        }
        engine.purge_old(1).unwrap();
        let files = |folder: &str| world.memory.read_dir(&Path::new(BACKUPS).join(folder)).unwrap();
        assert_eq!(files("private"), [id.to_string()], "what the failure left is gone");
        let shared = engine.backups().unwrap().iter().map(|backup| backup.files).sum::<usize>()
            - files(&format!("private/{id}")).len();
        assert_eq!(files("shared_checksum").len(), shared, "what the failure left is gone");
    });
    assert!(failed > 20, "{failed} calls failed");
}

/// Runs `work` once per operation and passes `look` the file system as a crash before the operation leaves it.
fn crash_at_each_operation(work: impl Fn(&World), mut look: impl FnMut(&World, &Arc<MemoryVfs>)) {
    let counted = World::new();
    let before = counted.memory.operations();
    work(&counted);
    let count = counted.memory.operations() - before;
    assert!(count >= 20, "{count} operations");
    // The strictest policy at each operation, the others at every third.
    let policies = [
        (CrashPolicy::NothingUnsyncedKept, 1),
        (CrashPolicy::AllKept, 3),
        (CrashPolicy::RandomBlocksKept, 3),
        (CrashPolicy::DirectoryEntriesLost, 3),
    ];
    for (seed, (policy, step)) in policies.into_iter().enumerate() {
        for operation in (before + 1..=before + count).step_by(step) {
            let world = World::new();
            world.memory.crash_at(operation, seed as u64, policy);
            work(&world);
            let image = world.memory.take_crash_image().unwrap_or_else(|| world.memory.crash_clone(1, policy));
            look(&world, &image);
        }
    }
}

#[test]
fn a_backup_is_there_wholly_or_not_wherever_the_power_goes() {
    let create = |world: &World| {
        engine(world.memory.clone()).unwrap().create_new_backup(&world.db, false).unwrap();
    };
    crash_at_each_operation(create, |world, image| {
        let ids = world.look(image);
        assert!(ids == [1] || ids == [1, 2], "{ids:?}");
        // What the crash left is in nobody's way.
        let db = Db::open("/db", &options(image.clone())).unwrap();
        engine(image.clone()).unwrap().create_new_backup(&db, false).unwrap();
        assert_eq!(world.look(image).len(), ids.len() + 1);
    });
}

/// Tries every door on a directory that an interrupted copy may have left. Returns whether it is marked.
fn is_refused(vfs: &Arc<MemoryVfs>, dir: &str, what: &str) -> bool {
    let mut found = options(vfs.clone());
    found.db.create_if_missing = false;
    if !vfs.exists(&Path::new(dir).join("INCOMPLETE")).unwrap() {
        return false;
    }
    let before = vfs.read_dir(Path::new(dir)).unwrap();
    let reading = OpenOptions { read_only: true, ..found.clone() };
    let bearing = OpenOptions { bear_damage: true, ..reading.clone() };
    let mut salvaging = found.clone();
    salvaging.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let mut trying = found.clone();
    trying.db.best_efforts_recovery = true;
    let mut creating = found.clone();
    creating.db.create_if_missing = true;
    let opens = [&found, &reading, &bearing, &salvaging, &trying, &creating].map(|how| Db::open(dir, how).err());
    let check = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    let others = [
        check::check(Path::new(dir), &check, &mut |_| ()).err(),
        repair(dir, &found).err(),
        Db::open_as_secondary(dir, "/secondary", &reading).err(),
        Db::checkpoint_beside(Path::new(dir), &found, Path::new("/beside")).err(),
        Db::list_families(Path::new(dir), &dyn_vfs).err(),
    ];
    for error in opens.into_iter().chain(others) {
        let told = error.unwrap().to_string();
        let is_cut_off = told.contains("an unfinished copy of a database; make the copy again");
        assert!(is_cut_off || told.contains(&format!("an unfinished {what}")) && told.contains("again"), "{told}");
        assert!(!told.contains("repair"), "{told}");
    }
    assert_eq!(vfs.read_dir(Path::new(dir)).unwrap(), before, "nothing is left or taken");
    true
}

#[test]
fn a_restore_is_whole_or_no_database_wherever_the_power_goes() {
    let target = RestoreOptions::default();
    let restore = |world: &World| {
        let engine = engine(world.memory.clone()).unwrap();
        engine.restore(1, "/old", &target).unwrap();
    };
    let (marked, others) = (AtomicU64::new(0), AtomicU64::new(0));
    crash_at_each_operation(restore, |world, image| {
        let mut found = options(image.clone());
        found.db.create_if_missing = false;
        let again = engine(image.clone()).unwrap();
        if is_refused(image, "/old", "restore of backup 1") {
            marked.fetch_add(1, Ordering::Relaxed);
            assert!(again.replaced_by_restore("/old", &target).unwrap().is_empty(), "its own leftovers");
            let kept = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
            let asked = again.replaced_by_restore("/old", &kept).unwrap();
            others.fetch_add(asked.len() as u64, Ordering::Relaxed);
        } else {
            let db = Db::open("/old", &found).unwrap();
            assert!(world.states.contains(&contents(&db)), "neither what was there nor what was restored");
        }
        again.restore(1, "/old", &target).unwrap();
        let db = Db::open("/old", &found).unwrap();
        assert!(Some(&contents(&db)) == world.states.first());
    });
    assert!(marked.into_inner() > 20 && others.into_inner() > 0, "other options ask");
}

#[test]
fn a_restore_that_fails_anywhere_says_that_it_is_unfinished() {
    let restore = |world: &World| engine(world.faulty.clone())?.restore(1, "/old", &RestoreOptions::default());
    let mut marked = 0;
    fail_each_call(restore, |world, result| {
        let is_marked = is_refused(&world.memory, "/old", "restore of backup 1");
        marked += u64::from(is_marked);
        let told = result.err().map(|error| error.to_string()).unwrap_or_default();
        let is_told = told.contains("is unfinished, and the database that was there is gone");
        let has_current = world.memory.exists(Path::new("/old/CURRENT")).unwrap();
        assert!(is_marked || has_current, "nothing tells that the database is gone");
        assert!(is_marked == is_told || told.contains("the mark of an unfinished restore may remain"), "{told}");
        if is_marked {
            assert!(told.contains("restore again"), "{told}");
            engine(world.memory.clone()).unwrap().restore(1, "/old", &RestoreOptions::default()).unwrap();
            assert!(!is_refused(&world.memory, "/old", ""));
        }
    });
    assert!(marked > 20, "{marked} restores were unfinished");
}

#[test]
fn a_cut_off_checkpoint_or_export_passes_for_no_database() {
    for what in ["checkpoint", "export"] {
        let make = |world: &World| match what {
            "checkpoint" => assert!(world.db.checkpoint("/copy").is_ok()),
            _ => assert!(world.db.export("/copy", &ExportOptions::default()).is_ok()),
        };
        let marked = AtomicU64::new(0);
        crash_at_each_operation(make, |world, image| {
            let mut found = options(image.clone());
            (found.db.create_if_missing, found.adopt_rocksdb) = (false, true);
            let staged = Path::new("/copy.tmp");
            if is_refused(image, "/copy.tmp", what) {
                marked.fetch_add(1, Ordering::Relaxed);
            } else if image.exists(&staged.join("CURRENT")).unwrap() {
                assert!(world.states.get(1) == Some(&contents(&Db::open(staged, &found).unwrap())), "a whole copy");
                image.read_dir(staged).unwrap().iter().for_each(|name| image.remove_file(&staged.join(name)).unwrap());
            }
            if image.exists(Path::new("/copy")).unwrap() {
                return;
            }
            let db = Db::open("/db", &options(image.clone())).unwrap();
            db.checkpoint("/copy").unwrap();
            assert!(!image.exists(staged).unwrap(), "the next copy takes the leftovers away");
            assert!(contents(&Db::open("/copy", &found).unwrap()) == contents(&db));
        });
        assert!(marked.into_inner() > 5);
    }
}

#[test]
fn a_cut_off_deletion_is_marked_until_nothing_else_is_left() {
    let dir = Path::new("/old");
    let destroy = |world: &World| {
        let vfs: Arc<dyn Vfs> = world.memory.clone();
        Db::destroy(dir, None, &vfs).unwrap();
    };
    let (marked, gone) = (AtomicU64::new(0), AtomicU64::new(0));
    crash_at_each_operation(destroy, |_, image| {
        let left = if image.exists(dir).unwrap() { image.read_dir(dir).unwrap() } else { Vec::new() };
        let has = |part: &str| left.iter().any(|name| name.contains(part));
        if has("INCOMPLETE") {
            marked.fetch_add(1, Ordering::Relaxed);
        } else if !has("CURRENT") {
            gone.fetch_add(1, Ordering::Relaxed);
            assert!(![".sst", ".log", "MANIFEST", "OPTIONS"].iter().any(|part| has(part)), "{left:?}");
        } // else the mark was not durable yet, and nothing was deleted
    });
    assert!(marked.into_inner() > 5 && gone.into_inner() > 0);
}

#[test]
fn a_cut_off_import_is_a_whole_family_or_none() {
    let import = |world: &World| {
        let files = world.db.export_family(&world.db.default_family(), "/exported").unwrap();
        world.db.import_family("imported", FamilyOptions::default(), &[&files], false).unwrap();
    };
    crash_at_each_operation(import, |world, image| {
        for repairs in [false, true] {
            let image = image.crash_clone(1, CrashPolicy::AllKept);
            is_refused(&image, "/exported.tmp", "export");
            let mut found = options(image.clone());
            found.other_families = OtherFamilies::OpenWith(Box::default());
            if repairs {
                let report = repair("/db", &found).unwrap();
                assert!(report.lost_nothing(), "{report}");
            }
            let db = Db::open("/db", &found).unwrap();
            assert!(world.states.get(1) == Some(&contents(&db)));
            if let Some(family) = db.family("imported") {
                assert!(world.states.get(1) == Some(&contents_of(&db, &family)));
            }
        }
    });
}
