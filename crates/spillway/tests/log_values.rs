//! Values left in the log (`memtable_as_log_index`): what is read is what was written, from memtables, from the tables
//! they become, after reopening and from copies; and a log stays exactly as long as a table needs it.
#![allow(clippy::disallowed_methods, reason = "tests wait as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, Family, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

const MEMTABLES: [&str; 4] = [
    r#"trie:{"convert_to_sst":"kFileMmap"}"#,
    r#"trie:{"convert_to_sst":"kDumpMem","ref_log_format":"kPlainLogRef"}"#,
    r#"skip_list:{"convert_to_sst":"kFileMmap","ref_log_format":"kPlainLogRef"}"#,
    r#"skip_list:{"convert_to_sst":"kDumpMem"}"#,
];

struct World {
    vfs: Arc<MemoryVfs>,
    options: OpenOptions,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    round: u64,
}

impl World {
    fn new(memtable: &str) -> World {
        let vfs = MemoryVfs::new(1);
        let mut family = FamilyOptions { memtable_factory: memtable.into(), ..FamilyOptions::default() };
        family.disable_auto_compactions = true;
        let mut options =
            OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family);
        options.db.memtable_as_log_index = true;
        options.db.log_file_bytes = 64 << 10;
        options.db.large_batch_bytes = 16 << 10;
        World { vfs, options, model: BTreeMap::new(), round: 0 }
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).unwrap()
    }

    /// Values around every limit, alone and in batches, some of them in no log, one batch with a log of its own.
    fn write(&mut self, db: &Db) {
        let family = db.default_family();
        self.round += 1;
        let value = |round: u64, i: usize, len: usize| vec![(round as usize * 31 + i * 7 + len) as u8; len];
        for (i, len) in [0, 1, 7, 8, 11, 12, 13, 100, 1000, 5000].into_iter().enumerate() {
            let (key, value) = (format!("one{i}").into_bytes(), value(self.round, i, len));
            let options = WriteOptions { disable_wal: i % 4 == 3, ..WriteOptions::default() };
            db.put(&family, &key, &value, &options).unwrap();
            self.model.insert(key, value);
        }
        for (batches, len) in [(20, 300), (1, 9000)] {
            for b in 0..batches {
                let mut batch = WriteBatch::new();
                for i in 0..40 {
                    let (key, value) =
                        (format!("many{len}/{b:02}/{i:02}").into_bytes(), value(self.round, i + b, len / 20));
                    batch.put(family.id(), &key, &value);
                    self.model.insert(key, value);
                }
                batch.delete(family.id(), b"one9");
                db.write(&batch, &WriteOptions::default()).unwrap();
            }
        }
        self.model.remove(&b"one9"[..]);
    }

    fn check(&self, db: &Db) {
        let family = db.default_family();
        let options = ReadOptions::default();
        for (key, value) in &self.model {
            assert_eq!(&*db.get(&family, key, &options).unwrap().expect("there"), value, "{}", key.escape_ascii());
        }
        let keys: Vec<&[u8]> = self.model.keys().map(|key| &key[..]).collect();
        for (found, value) in db.multi_get(&family, &keys, &options).unwrap().into_iter().zip(self.model.values()) {
            assert_eq!(&*found.unwrap().expect("there"), value);
        }
        let walk = |forwards: bool| {
            let mut entries = db.iter(&family, &options).unwrap();
            let mut all = Vec::new();
            let mut valid = if forwards { entries.seek_to_first() } else { entries.seek_to_last() };
            while valid {
                all.push((entries.key().to_vec(), entries.value().to_vec()));
                valid = if forwards { entries.next() } else { entries.prev() };
            }
            entries.status().unwrap();
            all
        };
        let expected: Vec<_> = self.model.clone().into_iter().collect();
        assert_eq!(walk(true), expected);
        assert_eq!(walk(false), expected.into_iter().rev().collect::<Vec<_>>());
    }

    /// Values that stay in the log, one by one, as many as make `bytes` of it.
    fn put(&mut self, db: &Db, bytes: usize, options: &WriteOptions) {
        for i in 0..bytes / 100 {
            let (key, value) = (format!("put{i:06}").into_bytes(), vec![i as u8; 100]);
            db.put(&db.default_family(), &key, &value, options).unwrap();
            self.model.insert(key, value);
        }
    }

    /// Checks what a power loss leaves.
    fn check_lost(&self) {
        let vfs = self.vfs.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
        let db = Db::open("/db", &OpenOptions { vfs, ..self.options.clone() }).unwrap();
        self.check(&db);
    }

    fn logs(&self) -> usize {
        let names = self.vfs.read_dir(Path::new("/db")).unwrap();
        names.iter().filter(|name| name.ends_with(".splog")).count()
    }
}

fn flush(db: &Db, family: &Arc<Family>) {
    db.flush(&[family]).unwrap();
}

#[test]
fn values_are_read_wherever_they_lie() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        let db = world.open();
        world.write(&db);
        world.check(&db);
        let snapshot = db.snapshot();
        let before = world.model.clone();
        world.write(&db);
        world.check(&db);
        flush(&db, &db.default_family());
        world.check(&db);
        let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
        for (key, value) in &before {
            assert_eq!(&*db.get(&db.default_family(), key, &options).unwrap().expect("there"), value);
        }
        drop(options);
        world.write(&db);
        world.check(&db);
        db.close().unwrap();
        let db = world.open();
        world.check(&db);
        flush(&db, &db.default_family());
        world.check(&db);
        db.close().unwrap();
        let report =
            check(Path::new("/db"), &CheckOptions { vfs: world.vfs.clone(), ..CheckOptions::default() }, &mut |_| ());
        assert!(report.unwrap().problems.is_empty(), "{memtable}");
    }
}

/// `LogRef:<Plain|Short>;blob_no:wal_no:cnt:bytes,..`, as in ToplingDB; a log has one number here.
#[test]
fn table_names_the_logs_that_it_refers_to() {
    for memtable in MEMTABLES {
        let world = World::new(memtable);
        let db = world.open();
        let family = db.default_family();
        let options = WriteOptions::default();
        for i in 0..2000u32 {
            db.put(&family, format!("long{i:04}").as_bytes(), &[7; 100], &options).unwrap();
            db.put(&family, format!("short{i:04}").as_bytes(), b"7", &options).unwrap();
        }
        flush(&db, &family);
        let tables = db.table_properties(&family, None).unwrap();
        let [(_, properties)] = &tables[..] else { panic!("{} tables", tables.len()) };
        let text = String::from_utf8(properties.other["spillway.values.in.logs"].clone()).unwrap();
        let form = if memtable.contains("kPlainLogRef") { "LogRef:Plain;" } else { "LogRef:Short;" };
        let logs = text.strip_prefix(form).unwrap_or_else(|| panic!("{memtable}: {text}"));
        let (mut values, mut bytes, mut numbers) = (0, 0, Vec::new());
        for log in logs.split(',') {
            let parts: Vec<u64> = log.split(':').map(|part| part.parse().unwrap()).collect();
            let [blob, wal, count, size] = parts[..] else { panic!("{text}") };
            assert_eq!(blob, wal);
            (values, bytes) = (values + count, bytes + size);
            numbers.push(wal);
        }
        assert_eq!((values, bytes), (2000, 200_000), "{memtable}: {text}");
        assert!(numbers.len() > 1 && numbers.is_sorted(), "{memtable}: {text}");
        db.close().unwrap();
        let again = world.open();
        let (_, reopened) = &again.table_properties(&again.default_family(), None).unwrap()[0];
        assert_eq!(reopened.other["spillway.values.in.logs"], text.as_bytes());
    }
}

#[test]
fn a_log_stays_as_long_as_a_table_refers_to_it() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        let db = world.open();
        let family = db.default_family();
        for _ in 0..12 {
            world.write(&db);
            flush(&db, &family);
        }
        assert!(db.live_files().iter().filter(|file| file.level == 0).count() >= 3, "{memtable}");
        db.close().unwrap();
        assert!(world.logs() > 3, "{memtable}: {}", world.logs());
        let db = world.open();
        world.check(&db);
        let checkpoint = "/checkpoint";
        db.checkpoint(checkpoint).unwrap();
        let copy = Db::open(checkpoint, &world.options).unwrap();
        world.check(&copy);
        copy.close().unwrap();
        let family = db.default_family();
        db.compact_range(&family, None, None, &testkit::engine::CompactRangeOptions::default()).unwrap();
        world.check(&db);
        db.close().unwrap();
        assert!(world.logs() <= 2, "{memtable}: {} logs that nobody needs", world.logs());
        let db = world.open();
        world.check(&db);
    }
}

#[test]
fn a_table_that_keeps_a_log_that_is_mostly_dead_is_compacted_ahead_of_its_turn() {
    let mut world = World::new(MEMTABLES[0]);
    let (_, mut options) = world.options.families.remove(0);
    options.disable_auto_compactions = false;
    (options.level0_file_num_compaction_trigger, options.level0_slowdown_writes_trigger) = (1000, 2000);
    options.level0_stop_writes_trigger = 3000; // so that nothing else has a table of level 0 compacted
    world.options = world.options.family("default", options.clone()).family("second", options);
    world.options.db.create_missing_column_families = true;
    let db = world.open();
    let (default, second) = (db.default_family(), db.family("second").unwrap());
    db.put(&second, b"kept", &[1; 100], &WriteOptions::default()).unwrap();
    for i in 0..200u32 {
        db.put(&default, &i.to_be_bytes(), &[i as u8; 1000], &WriteOptions::default()).unwrap();
    }
    db.flush(&[&default, &second]).unwrap();
    let at_level0 = || db.live_files().iter().filter(|file| file.family == "second" && file.level == 0).count();
    assert_eq!(at_level0(), 1, "most of its log is needed by the other family");
    // Moves the values of the other family out of the logs: what is left of the first one is a hundred bytes.
    db.compact_range(&default, None, None, &testkit::engine::CompactRangeOptions::default()).unwrap();
    for _ in 0..200 {
        if at_level0() == 0 {
            break;
        }
        db.put(&default, b"later", &[2; 100], &WriteOptions::default()).unwrap();
        flush(&db, &default);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(at_level0(), 0);
    assert_eq!(&*db.get(&second, b"kept", &ReadOptions::default()).unwrap().unwrap(), [1; 100]);
}

/// Values of lengths at which a reference is longer than what it stands for, until memtables are full of them (C4).
#[test]
fn memtables_are_filled_with_values_that_are_hardly_worth_a_reference() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        for (_, family) in &mut world.options.families {
            family.write_buffer_size = 64 << 10;
        }
        let db = world.open();
        let family = db.default_family();
        for len in [7, 8, 9, 11, 12, 13, 15, 23, 24, 25] {
            for i in 0..600u32 {
                let mut batch = WriteBatch::new();
                for j in 0..5 {
                    batch.put(family.id(), format!("{len:02}{i:06}{j}").as_bytes(), &vec![i as u8; len]);
                }
                db.write(&batch, &WriteOptions::default()).unwrap();
            }
        }
        for len in [7, 8, 12, 15, 24] {
            let value = db.get(&family, format!("{len:02}0005994").as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(value.as_deref(), Some(&vec![599u32 as u8; len][..]), "{memtable}, {len}");
        }
    }
}

#[test]
fn a_checkpoint_of_a_database_whose_log_is_empty_opens() {
    let mut world = World::new(MEMTABLES[0]);
    world.options.db.memtable_crash_safe_recover = false;
    let db = world.open();
    for _ in 0..6 {
        world.write(&db);
        flush(&db, &db.default_family());
    }
    db.close().unwrap();
    let db = world.open();
    db.checkpoint("/checkpoint").unwrap();
    let copy = Db::open("/checkpoint", &world.options).unwrap();
    world.check(&copy);
}

/// Each process leaves a log without an `End` record, kept for the values of a table.
#[test]
fn copies_whose_logs_are_there_for_their_values_only_open() {
    for is_index in [true, false] {
        let mut world = World::new(MEMTABLES[0]);
        world.options.db.log_file_bytes = 1 << 20;
        for _ in 0..2 {
            let db = world.open();
            world.put(&db, 1000, &WriteOptions::default());
            flush(&db, &db.default_family());
            db.close().unwrap();
        }
        world.options.db.memtable_as_log_index = is_index;
        let beside = OpenOptions { read_only: true, ..world.options.clone() };
        Db::checkpoint_beside(Path::new("/db"), &beside, Path::new("/beside")).unwrap();
        world.check(&Db::open("/beside", &world.options).unwrap());
        let db = world.open();
        db.checkpoint("/checkpoint").unwrap();
        world.check(&Db::open("/checkpoint", &world.options).unwrap());
    }
}

#[test]
fn a_table_is_durable_only_with_the_values_that_it_refers_to() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        let db = world.open();
        world.put(&db, 1000, &WriteOptions::default());
        flush(&db, &db.default_family());
        world.check_lost();
    }
}

#[test]
fn a_log_that_a_table_refers_to_is_durable_once_the_database_is_closed() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        world.options.db.log_file_bytes = 1 << 20;
        let db = world.open();
        world.put(&db, 100 << 10, &WriteOptions::default());
        flush(&db, &db.default_family());
        db.close().unwrap();
        world.check_lost();
    }
}

#[test]
fn a_synced_write_that_is_flushed_at_once_has_its_values_synced() {
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        let db = world.open();
        world.put(&db, 40 << 10, &WriteOptions::default()); // so that the flush leaves the log
        let options = WriteOptions { sync: true, flush_after: true, ..WriteOptions::default() };
        world.put(&db, 100, &options);
        world.check_lost();
    }
}

#[test]
fn reads_go_on_after_a_failed_sync_of_the_log() {
    use testkit::engine::vfs::{Fault, FaultCode, FaultVfs, Operation, Rule};
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        let faults = FaultVfs::new(world.vfs.clone());
        world.options.vfs = faults.clone();
        let db = world.open();
        world.put(&db, 1000, &WriteOptions::synced());
        world.put(&db, 40 << 10, &WriteOptions::default());
        faults.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync).path(".splog"));
        db.sync_log().unwrap_err();
        db.put(&db.default_family(), b"k", b"v", &WriteOptions::default()).unwrap_err();
        world.check(&db);
    }
}

#[test]
fn logs_kept_for_values_are_bounded_by_the_tables_of_level_0() {
    const LIMIT_BYTES: u64 = 256 << 10;
    for memtable in MEMTABLES {
        let mut world = World::new(memtable);
        world.options.db.max_total_wal_size = LIMIT_BYTES;
        world.options.families[0].1.disable_auto_compactions = false;
        let tables_max = world.options.families[0].1.level0_file_num_compaction_trigger as u64;
        let db = world.open();
        let mut bytes_max = 0;
        for n in 0..3000u32 {
            db.put(&db.default_family(), &n.to_be_bytes(), &[n as u8; 1000], &WriteOptions::default()).unwrap();
            let is_log = |name: &&String| name.ends_with(".splog");
            let names = if n % 50 == 0 { world.vfs.read_dir(Path::new("/db")).unwrap() } else { Vec::new() };
            let bytes = |name: &String| world.vfs.metadata(&Path::new("/db").join(name)).unwrap().len;
            bytes_max = bytes_max.max(names.iter().filter(is_log).map(bytes).sum());
        }
        // And two logs of 64 KiB: the current one and the spare.
        let bound = (1 + tables_max) * LIMIT_BYTES + (128 << 10);
        assert!((LIMIT_BYTES..=bound).contains(&bytes_max), "{memtable}: {bytes_max} bytes of logs");
    }
}
