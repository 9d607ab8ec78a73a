//! Memtables whose family was idle while others were written: its tables reach, by the MANIFEST, beyond the number that its
//! memtable's file begins after. What was written there without a log is found all the same.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use testkit::engine::extend::{Event, EventListener};
use testkit::engine::version::recover::recover;
use testkit::engine::vfs::{CrashPolicy, MemoryVfs};
use testkit::engine::{Db, OpenOptions, ReadOptions, WriteOptions};

use crate::common::{MEMTABLES, options, property};

fn idle_options(vfs: &Arc<MemoryVfs>, memtable: &str) -> OpenOptions {
    let mut options = options(vfs.clone(), memtable, false);
    options.db.avoid_flush_during_shutdown = true;
    options.db.max_manifest_file_size = 1024;
    options.db.log_file_bytes = 4 << 20;
    options
}

fn put(db: &Db, family: &str, key: &[u8], disable_wal: bool) {
    let options = WriteOptions { disable_wal, ..WriteOptions::default() };
    db.put(&db.family(family).unwrap(), key, &[b'v'; 1000], &options).unwrap();
}

fn flush(db: &Db, family: &str) {
    db.flush(&[&db.family(family).unwrap()]).unwrap();
}

/// Through which number the family "second" needs no log, by the MANIFEST.
fn noted(vfs: &MemoryVfs) -> u64 {
    let recovered = recover(vfs, Path::new("/db")).unwrap();
    recovered.families.iter().find(|family| family.name == "second").unwrap().flushed_through.unwrap_or_default().0
}

/// Writes to "second" without a log, ends the database, and looks in the next one.
fn check_found(vfs: &Arc<MemoryVfs>, db: Db, memtable: &str, is_killed: bool) {
    put(&db, "second", b"unlogged", true);
    let left = match is_killed {
        false => {
            db.close().unwrap();
            vfs.clone()
        }
        true => {
            (0..700u32).for_each(|i| put(&db, "default", &i.to_be_bytes(), false)); // until a mark is told
            vfs.crash_clone(1, CrashPolicy::ProcessKilled)
        }
    };
    drop(db);
    for life in 0..3 {
        let left = left.crash_clone(life, CrashPolicy::ProcessKilled);
        let db = Db::open("/db", &idle_options(&left, memtable)).unwrap();
        let found = db.get(&db.family("second").unwrap(), b"unlogged", &ReadOptions::default()).unwrap();
        assert!(found.is_some() && property(&db, "spillway.memtables-restored") > 0, "{memtable} {is_killed}");
        flush(&db, "second");
        assert!(db.get(&db.family("second").unwrap(), b"unlogged", &ReadOptions::default()).unwrap().is_some());
    }
}

/// A new MANIFEST notes how far the idle family came with the others' flushes.
#[test]
fn an_idle_familys_memtable_is_found_behind_a_new_manifest() {
    for (memtable, is_killed) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, false), (memtable, true)]) {
        let vfs = MemoryVfs::new(7);
        let db = Db::open("/db", &idle_options(&vfs, memtable)).unwrap();
        for round in 0..60u8 {
            if noted(&vfs) > 0 {
                break;
            }
            put(&db, "default", &[round], false);
            flush(&db, "default");
        }
        assert!(noted(&vfs) > 0, "what is tried is there");
        check_found(&vfs, db, memtable, is_killed);
    }
}

/// Puts to "default" when a flush of "second" has its memtable, and not yet its table.
#[derive(Default)]
struct Beside(OnceLock<Weak<Db>>);

impl EventListener for Beside {
    fn on_event(&self, event: &Event) {
        if let Event::FlushBegin { family, .. } = event
            && family == "second"
            && let Some(db) = self.0.get().and_then(Weak::upgrade)
        {
            put(&db, "default", b"beside", false);
        }
    }
}

#[test]
fn a_familys_memtable_is_found_that_began_before_its_flush_ended() {
    for (memtable, is_killed) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, false), (memtable, true)]) {
        let vfs = MemoryVfs::new(7);
        let beside = Arc::new(Beside::default());
        let mut options = idle_options(&vfs, memtable);
        options.db.max_manifest_file_size = 1 << 30;
        options.db.listeners.push(beside.clone());
        let db = Arc::new(Db::open("/db", &options).unwrap());
        beside.0.set(Arc::downgrade(&db)).unwrap();
        put(&db, "second", b"flushed", false);
        flush(&db, "second");
        assert_eq!(noted(&vfs), 2, "what is tried is there");
        drop(beside);
        check_found(&vfs, Arc::into_inner(db).unwrap(), memtable, is_killed);
    }
}
