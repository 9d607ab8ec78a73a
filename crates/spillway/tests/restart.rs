//! Restart by image: a database whose process was killed opens with its memtables as they lie, and is the same in every
//! key as one that replayed its log.
#![allow(clippy::disallowed_methods, reason = "tests use threads as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spillway::vfs::{CrashPolicy, MemoryVfs};
use spillway::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

const MEMTABLES: [&str; 2] = [r#"trie:{"convert_to_sst":"kFileMmap"}"#, r#"skip_list:{"convert_to_sst":"kFileMmap"}"#];

fn options(vfs: Arc<MemoryVfs>, memtable: &str, log_index: bool) -> OpenOptions {
    let family = FamilyOptions {
        memtable_factory: memtable.into(),
        merge_operator: base::merge::by_name("stringappend"),
        write_buffer_size: 1 << 20,
        ..FamilyOptions::default()
    };
    let options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    let mut options = options.family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.memtable_as_log_index = log_index;
    options.db.log_file_bytes = 256 << 10;
    options
}

/// Everything in both families, by iteration and by lookup.
fn contents(db: &Db) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    ["default", "second"]
        .map(|name| {
            let family = db.family(name).unwrap();
            let options = ReadOptions::default();
            let mut entries = db.iter(&family, &options).unwrap();
            let mut all = Vec::new();
            let mut valid = entries.seek_to_first();
            while valid {
                assert_eq!(&*db.get(&family, entries.key(), &options).unwrap().expect("there"), entries.value());
                all.push((entries.key().to_vec(), entries.value().to_vec()));
                valid = entries.next();
            }
            entries.status().unwrap();
            all
        })
        .to_vec()
}

/// Overwrites, deletes, merges, ranges, in both families; values of many lengths.
fn batch(db: &Db, n: u64) -> WriteBatch {
    let [default, second] = ["default", "second"].map(|name| db.family(name).unwrap().id());
    let mut batch = WriteBatch::new();
    for i in 0..5 {
        let key = format!("key{:04}", (n * 7 + i * 131) % 500);
        batch.put(default, key.as_bytes(), &vec![n as u8; (n * 13 + i * 29) as usize % 300]);
        batch.put(second, key.as_bytes(), format!("{n}").as_bytes());
    }
    batch.merge(second, format!("sum{}", n % 5).as_bytes(), format!("{n}").as_bytes());
    batch.delete(default, format!("key{:04}", (n * 3) % 500).as_bytes());
    if n % 10 == 9 {
        let (start, end) = (format!("key{:04}", n % 490), format!("key{:04}", n % 490 + 5));
        batch.delete_range(second, start.as_bytes(), end.as_bytes());
    }
    batch
}

fn property(db: &Db, name: &str) -> u64 {
    db.int_property(&db.default_family(), name).unwrap()
}

/// Opens what a kill left, by image and by replay, and compares. Returns the memtables that were restored.
fn compare(killed: &Arc<MemoryVfs>, memtable: &str, log_index: bool) -> u64 {
    let copy = killed.crash_clone(5, CrashPolicy::ProcessKilled);
    let by_image = Db::open("/db", &options(killed.clone(), memtable, log_index)).unwrap();
    let mut replaying = options(copy, memtable, log_index);
    replaying.db.memtable_crash_safe_recover = false;
    let by_replay = Db::open("/db", &replaying).unwrap();
    assert_eq!(property(&by_replay, "spillway.memtables-restored"), 0);
    let expected = contents(&by_replay);
    assert!(contents(&by_image) == expected, "{memtable} {log_index}");
    let restored = property(&by_image, "spillway.memtables-restored");
    by_image.put(&by_image.default_family(), b"later", b"1", &WriteOptions::synced()).unwrap();
    by_image.flush(&[&by_image.default_family(), &by_image.family("second").unwrap()]).unwrap();
    by_replay.put(&by_replay.default_family(), b"later", b"1", &WriteOptions::default()).unwrap();
    assert!(contents(&by_image) == contents(&by_replay), "{memtable} {log_index}: flushed");
    restored
}

#[test]
fn a_killed_process_leaves_memtables_that_say_what_its_log_says() {
    for (memtable, log_index) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, false), (memtable, true)]) {
        let vfs = MemoryVfs::new(7);
        let db = Db::open("/db", &options(vfs.clone(), memtable, log_index)).unwrap();
        let (written, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut restored = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let n = written.fetch_add(1, Ordering::Relaxed);
                        db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
                    }
                });
            }
            let mut at = 100;
            while at < 4000 {
                while written.load(Ordering::Relaxed) < at {
                    std::thread::yield_now();
                }
                let killed = vfs.crash_clone(at, CrashPolicy::ProcessKilled);
                at = written.load(Ordering::Relaxed) + 300;
                restored.push(compare(&killed, memtable, log_index));
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert!(restored.iter().any(|restored| *restored > 0), "{memtable}: {restored:?}");
    }
}

#[test]
fn a_closed_database_opens_by_its_images_and_so_does_one_killed_in_recovery() {
    for memtable in MEMTABLES {
        for log_index in [false, true] {
            let vfs = MemoryVfs::new(7);
            let db = Db::open("/db", &options(vfs.clone(), memtable, log_index)).unwrap();
            for n in 0..500 {
                db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
            }
            let before = contents(&db);
            db.close().unwrap();
            drop(db);
            for life in 0..4 {
                let killed = vfs.crash_clone(life, CrashPolicy::ProcessKilled);
                assert!(compare(&killed, memtable, log_index) > 0, "{memtable} {life}");
            }
            let db = Db::open("/db", &options(vfs.clone(), memtable, log_index)).unwrap();
            assert!(property(&db, "spillway.memtables-restored") > 0);
            assert!(contents(&db) == before);
        }
    }
}

#[test]
fn after_a_power_loss_no_image_counts() {
    for memtable in MEMTABLES {
        let vfs = MemoryVfs::new(7);
        let db = Db::open("/db", &options(vfs.clone(), memtable, true)).unwrap();
        for n in 0..300 {
            db.write(&batch(&db, n), &WriteOptions { sync: n % 50 == 49, ..WriteOptions::default() }).unwrap();
        }
        let before = contents(&db);
        for policy in CrashPolicy::ALL.into_iter().filter(|policy| *policy != CrashPolicy::ProcessKilled) {
            let lost = vfs.crash_clone(1, policy);
            let db = Db::open("/db", &options(lost, memtable, true)).unwrap();
            assert_eq!(property(&db, "spillway.memtables-restored"), 0, "{policy:?}");
            assert!(contents(&db) == before, "{policy:?}"); // the last write was synced
        }
    }
}

/// A log that was passed over may name a large batch's file, which whoever replays it will want.
#[test]
fn the_file_of_a_large_batch_outlives_a_restart_that_passes_its_log_over() {
    for memtable in MEMTABLES {
        let vfs = MemoryVfs::new(7);
        let opened = |vfs: &Arc<MemoryVfs>| {
            let mut options = options(vfs.clone(), memtable, false);
            options.db.large_batch_bytes = 4096;
            Db::open("/db", &options).unwrap()
        };
        let db = opened(&vfs);
        let mut large = WriteBatch::new();
        for i in 0..100 {
            large.put(db.default_family().id(), format!("large{i:03}").as_bytes(), &[i; 100]);
        }
        db.write(&large, &WriteOptions::synced()).unwrap();
        let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        let again = opened(&killed);
        again.put(&again.default_family(), b"small", b"1", &WriteOptions::synced()).unwrap();
        let expected = contents(&again);
        let killed = killed.crash_clone(2, CrashPolicy::ProcessKilled);
        let restored = opened(&killed);
        let lost = killed.crash_clone(3, CrashPolicy::AllKept);
        assert!(contents(&restored) == expected);
        assert!(contents(&opened(&lost)) == expected, "{memtable}");
    }
}
