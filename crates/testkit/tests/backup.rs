//! Backups with an I/O fault or a power loss at every call. A new backup is there completely or not at all, earlier
//! backups stay, and a partially restored directory is never opened as a database.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::{Db, Error, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
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
    let mut entries = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
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
fn crash_at_each_operation(work: impl Fn(&World), look: impl Fn(&World, &Arc<MemoryVfs>)) {
    let counted = World::new();
    let before = counted.memory.operations();
    work(&counted);
    let count = counted.memory.operations() - before;
    assert!(count > 20, "{count} operations");
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

#[test]
fn a_restore_is_whole_or_no_database_wherever_the_power_goes() {
    let target = RestoreOptions::default();
    let restore = |world: &World| {
        let engine = engine(world.memory.clone()).unwrap();
        engine.restore(1, "/old", &target).unwrap();
    };
    crash_at_each_operation(restore, |world, image| {
        let mut found = options(image.clone());
        found.db.create_if_missing = false;
        if let Ok(db) = Db::open("/old", &found) {
            assert!(world.states.contains(&contents(&db)), "neither what was there nor what was restored");
        }
        engine(image.clone()).unwrap().restore(1, "/old", &target).unwrap();
        let db = Db::open("/old", &found).unwrap();
        assert!(Some(&contents(&db)) == world.states.first());
    });
}
