//! Kills at any moment, closed databases, kills in recovery, and power losses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, WriteBatch, WriteOptions};

use crate::common::{MEMTABLES, batch, compare, contents, options, property};

/// Says when it goes, by a panic as well, that the others are to end.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
            let _end = Ends(&ended);
            let mut at = 100;
            while at < 4000 {
                while written.load(Ordering::Relaxed) < at {
                    std::thread::yield_now();
                }
                let killed = vfs.crash_clone(at, CrashPolicy::ProcessKilled);
                at = written.load(Ordering::Relaxed) + 300;
                restored.push(compare(&killed, memtable, log_index).restored);
            }
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
                assert!(compare(&killed, memtable, log_index).restored > 0, "{memtable} {life}");
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

#[test]
fn a_damaged_memtable_that_was_restored_gives_way_to_the_log() {
    for (memtable, log_index) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, false), (memtable, true)]) {
        let vfs = MemoryVfs::new(11);
        let db = Db::open("/db", &options(vfs.clone(), memtable, log_index)).unwrap();
        (0..300).for_each(|n| db.write(&batch(&db, n), &WriteOptions::default()).map(drop).unwrap());
        let expected = contents(&db);
        let mut given_way = 0;
        for place in 1..40 {
            let killed = vfs.crash_clone(3, CrashPolicy::ProcessKilled);
            damage_images(&killed, place * 4096 + 200);
            let Ok(left) = Db::open("/db", &options(killed.clone(), memtable, log_index)) else {
                panic!("{memtable} {place}: does not open");
            };
            let restored = property(&left, "spillway.memtables-restored");
            let flushed = left.flush(&[&left.default_family(), &left.family("second").unwrap()]);
            let Err(error) = flushed else { continue };
            assert!(restored > 0 && error.to_string().contains("open again"), "{memtable} {place}: {error}");
            let _ = left.close();
            drop(left);
            let again = Db::open("/db", &options(killed, memtable, log_index)).unwrap();
            assert!(contents(&again) == expected, "{memtable} {place}");
            again.flush(&[&again.default_family(), &again.family("second").unwrap()]).unwrap();
            assert!(contents(&again) == expected, "{memtable} {place}: flushed");
            given_way += 1;
        }
        assert!(given_way > 0, "{memtable}");
    }
}

/// A family without images has all of the log read, and a limit that it exceeds has all of it flushed at once.
#[test]
fn a_damaged_memtable_that_replay_flushes_gives_way_to_the_log() {
    for (memtable, log_index) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, false), (memtable, true)]) {
        let opened = |vfs: &Arc<MemoryVfs>, total_bytes| {
            let mut options = options(vfs.clone(), memtable, log_index);
            for (_, family) in options.families.iter_mut().filter(|(name, _)| name == "second") {
                family.memtable_factory = "skip_list".into();
            }
            options.db.max_total_wal_size = total_bytes;
            Db::open("/db", &options)
        };
        let vfs = MemoryVfs::new(11);
        let db = opened(&vfs, 0).unwrap();
        (0..300).for_each(|n| db.write(&batch(&db, n), &WriteOptions::default()).map(drop).unwrap());
        let expected = contents(&db);
        let whole = opened(&vfs.crash_clone(3, CrashPolicy::ProcessKilled), 1).unwrap();
        assert!(property(&whole, "spillway.memtables-restored") > 0 && contents(&whole) == expected, "{memtable}");
        let mut given_way = 0;
        for place in 1..40 {
            let killed = vfs.crash_clone(3, CrashPolicy::ProcessKilled);
            damage_images(&killed, place * 4096 + 200);
            let left = opened(&killed, 1).unwrap_or_else(|error| panic!("{memtable} {place}: {error}"));
            if property(&left, "spillway.memtables-restored") == 0 {
                assert!(contents(&left) == expected, "{memtable} {place}");
                given_way += 1;
            }
        }
        assert!(given_way > 0, "{memtable}");
    }
}

/// Overwrites a stretch of every memtable's file that is so long.
fn damage_images(vfs: &Arc<MemoryVfs>, at: u64) {
    for name in vfs.read_dir("/db".as_ref()).unwrap() {
        let path = std::path::Path::new("/db").join(&name);
        if name.ends_with(".spmem") && vfs.metadata(&path).unwrap().len > at + 64 {
            (at..at + 64).for_each(|byte| vfs.flip_bit(&path, byte * 8 + byte % 7).unwrap());
        }
    }
}
