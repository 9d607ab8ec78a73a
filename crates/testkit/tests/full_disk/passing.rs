//! Temporary lack of space: failed work completes once space is back, without a reopen. Meanwhile the database takes
//! writes as long as memory lasts.

use std::sync::Arc;
use std::time::Duration;

use base::extend::{Event, EventListener};
use parking_lot::Mutex;
use testkit::engine::{CompactRangeOptions, Db, ErrorKind, ReadOptions, WriteBatch, WriteOptions};
use testkit::profile;
use testkit::threads::within;
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, IoClass, MemoryVfs, Operation, Rule, Vfs};

use super::{DIR, LIMIT, leave_room};

/// What the listener heard, by name.
#[derive(Default)]
struct Heard(Mutex<Vec<&'static str>>);

impl EventListener for Heard {
    fn on_event(&self, event: &Event) {
        let name = match event {
            Event::BackgroundError { .. } => "error",
            Event::RecoveryBegin { .. } => "begin",
            Event::RecoveryEnd { .. } => "end",
            _ => return,
        };
        self.0.lock().push(name);
    }
}

/// A database on a disk that is told when to be full.
struct World {
    memory: Arc<MemoryVfs>,
    faults: Arc<FaultVfs>,
    heard: Arc<Heard>,
    db: Db,
    written: u32,
}

impl World {
    fn new(name: &str) -> World {
        Self::with(name, true)
    }

    fn with(name: &str, runs_inline: bool) -> World {
        let memory = MemoryVfs::new(1);
        memory.set_runs_inline(runs_inline);
        let faults = FaultVfs::new(memory.clone());
        let heard = Arc::new(Heard::default());
        let mut options = profile::by_name(name).unwrap().open_options(faults.clone(), ["other"]);
        options.db.listeners.push(heard.clone());
        let db = Db::open(DIR, &options).unwrap();
        World { memory, faults, heard, db, written: 0 }
    }

    fn write(&mut self, options: &WriteOptions) -> testkit::engine::Result<()> {
        let (key, value) = entry(self.written);
        self.db.put(&self.db.default_family(), &key, &value, options)?;
        self.written += 1;
        Ok(())
    }

    /// Makes `count` writes of about 1 KiB each.
    fn write_some(&mut self, count: u32) {
        (0..count).for_each(|_| self.write(&WriteOptions::synced()).unwrap());
    }

    fn flush(&self) -> testkit::engine::Result<()> {
        self.db.flush(&[&self.db.default_family()])
    }

    fn property(&self, name: &str) -> u64 {
        self.db.int_property(&self.db.default_family(), name).unwrap()
    }

    fn check(&self, what: &str) {
        check(&self.db, self.written, what);
    }

    /// An image of a crash now must hold every synced write.
    fn check_after_crash(&self, what: &str) {
        for policy in [CrashPolicy::NothingUnsyncedKept, CrashPolicy::RandomBlocksKept, CrashPolicy::ProcessKilled] {
            let left: Arc<dyn Vfs> = self.memory.crash_clone(3, policy);
            let options = profile::by_name("tiny").unwrap().open_options(left, ["other"]);
            check(&Db::open(DIR, &options).unwrap(), self.written, &format!("{what}, {policy:?}"));
        }
    }

    /// Checks that every table file is known to the database.
    fn check_files(&self, what: &str) {
        let all = self.memory.all_files();
        let tables = all.iter().filter(|path| path.extension().is_some_and(|end| end == "sst"));
        assert_eq!(tables.count(), self.db.live_files().len(), "{what}");
    }

    fn pass(&self, time: Duration) {
        self.memory.sleep(time);
    }
}

fn entry(n: u32) -> (Vec<u8>, Vec<u8>) {
    let mut random = testkit::random::Random::new(u64::from(n));
    let value = (0..128).flat_map(|_| random.draw().to_le_bytes()).collect();
    (n.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec(), value)
}

fn check(db: &Db, written: u32, what: &str) {
    for n in 0..written {
        let (key, value) = entry(n);
        let found = db.get(&db.default_family(), &key, &ReadOptions::default()).unwrap();
        assert!(found.as_deref() == Some(&value[..]), "{what}: write {n} of {written} is lost");
    }
}

fn no_space(fault: fn(FaultCode) -> Fault, operation: Operation) -> Rule {
    Rule::new(fault(FaultCode::NoSpace)).on(operation).sticky()
}

const FAULTS: [fn(FaultCode) -> Fault; 3] = [Fault::Error, Fault::ErrorAfter, Fault::ShortWrite];

/// The calls by which a table is written.
const OF_TABLES: [(Operation, usize); 3] = [(Operation::Create, 1), (Operation::Write, 3), (Operation::Sync, 2)];

#[test]
fn a_flush_is_done_when_there_is_room_whatever_call_found_none() {
    for name in ["tiny", "vector", "converted", "dumped"] {
        for (operation, faults) in OF_TABLES {
            for fault in FAULTS.into_iter().take(faults) {
                let what = format!("{name}, {operation:?} {:?}", fault(FaultCode::NoSpace));
                let mut world = World::new(name);
                world.write_some(20);
                let rule = world.faults.inject(no_space(fault, operation).path(".sst"));
                world.faults.inject(no_space(fault, operation).path(".spmem"));
                let flushed = world.flush();
                if world.faults.matched(rule) == 0 {
                    continue; // it was converted
                }
                assert_eq!(flushed.unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
                world.write_some(20);
                world.check(&what);
                world.check_after_crash(&what);
                assert_eq!(world.db.resume().unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
                assert_eq!(*world.heard.0.lock(), ["error", "begin"], "{what}");
                world.faults.clear();
                let flushes = world.db.flushes();
                world.pass(Duration::from_secs(60));
                world.write_some(1);
                assert!(world.db.flushes().rewritten > flushes.rewritten, "{what}: not tried again by itself");
                assert_eq!(*world.heard.0.lock(), ["error", "begin", "end"], "{what}");
                assert_eq!(world.db.flushes().converted, flushes.converted, "{what}: converted after a failure (D4)");
                world.check(&what);
                world.check_files(&what);
                world.flush().unwrap();
                world.check_after_crash(&what);
            }
        }
    }
}

#[test]
fn a_compaction_that_finds_no_space_leaves_the_database_writable() {
    for (operation, faults) in OF_TABLES {
        for fault in FAULTS.into_iter().take(faults) {
            let what = format!("{operation:?} {:?}", fault(FaultCode::NoSpace));
            let mut world = World::new("tiny");
            world.write_some(40);
            world.flush().unwrap();
            let rule = no_space(fault, operation).path(".sst");
            // The other calls carry no class: the second table is a compaction's.
            let rule = if operation == Operation::Create { rule.nth(2) } else { rule.class(IoClass::Compaction) };
            world.faults.inject(rule);
            world.write_some(40);
            let _ = world.flush();
            world.write_some(100);
            assert!(world.property("rocksdb.background-errors") >= 1, "{what}");
            assert_eq!(world.property("rocksdb.is-write-stopped"), 0, "{what}");
            let waited = world.db.wait_for_compaction();
            assert_eq!(waited.unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
            let family = world.db.default_family();
            let compacted = world.db.compact_range(&family, None, None, &CompactRangeOptions::default());
            assert_eq!(compacted.unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
            world.write_some(10);
            world.check(&what);
            world.check_after_crash(&what);
            world.faults.clear();
            world.pass(Duration::from_secs(60));
            world.write_some(1);
            assert_eq!(world.heard.0.lock().last(), Some(&"end"), "{what}");
            world.db.wait_for_compaction().unwrap();
            world.check(&what);
            world.check_files(&what);
            world.check_after_crash(&what);
        }
    }
}

#[test]
fn a_lack_of_descriptors_ends_as_a_full_disk_does() {
    for compacts in [false, true] {
        let mut world = World::new("tiny");
        world.write_some(40);
        world.flush().unwrap();
        let rule = Rule::new(Fault::Error(FaultCode::TooManyFiles)).on(Operation::Create).path(".sst").sticky();
        world.faults.inject(if compacts { rule.nth(2) } else { rule });
        world.write_some(40);
        let flushed = world.flush();
        world.write_some(100);
        let waited = if compacts { world.db.wait_for_compaction() } else { flushed };
        let told = waited.unwrap_err().to_string();
        assert!(told.contains("waits, and is tried again") && told.contains("`ulimit -n`"), "{told}");
        assert_eq!(world.property("rocksdb.is-write-stopped"), 0);
        world.check_after_crash("without descriptors");
        world.faults.clear();
        world.pass(Duration::from_secs(60));
        world.write_some(1);
        assert_eq!(world.heard.0.lock().last(), Some(&"end"), "compacts: {compacts}");
        world.flush().unwrap();
        world.db.wait_for_compaction().unwrap();
        world.check_files("with descriptors again");
        world.check_after_crash("with descriptors again");
    }
}

/// Retries are rare while the disk stays full, and immediate once free space appears.
#[test]
fn tries_come_seldom_and_when_there_is_room() {
    let mut world = World::new("tiny");
    world.write_some(30);
    leave_room(&world.memory, 4096);
    assert_eq!(world.flush().unwrap_err().kind(), ErrorKind::NoSpace);
    let errors = world.property("rocksdb.background-errors");
    for _ in 0..600 {
        world.pass(Duration::from_millis(500));
        world.db.write(&WriteBatch::new(), &WriteOptions::default()).unwrap(); // which takes no space
    }
    let tries = world.property("rocksdb.background-errors") - errors;
    assert!((4..12).contains(&tries), "{tries} tries in five minutes");
    leave_room(&world.memory, 1 << 20);
    world.pass(Duration::from_secs(1));
    world.db.put(&world.db.default_family(), b"small", b"", &WriteOptions::default()).unwrap();
    assert_eq!(world.heard.0.lock().last(), Some(&"end"));
    assert_eq!(world.property("rocksdb.background-errors"), errors + tries);
    world.check("at the end");
}

#[test]
fn writers_wait_for_memory_until_there_is_room() {
    within(LIMIT, || {
        let mut world = World::with("tiny", false);
        world.faults.inject(no_space(Fault::Error, Operation::Write).class(IoClass::Flush));
        let no_slowdown = WriteOptions { no_slowdown: true, ..WriteOptions::synced() };
        let refused = loop {
            if let Err(error) = world.write(&no_slowdown) {
                break error;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        assert!(world.written > 100, "{} writes", world.written);
        assert_eq!(world.flush().unwrap_err().kind(), ErrorKind::NoSpace);
        world.check("while the disk is full");
        world.check_after_crash("while the disk is full");
        std::thread::scope(|scope| {
            let faults = world.faults.clone();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                faults.clear();
            });
            world.write_some(300); // it waits for what is cleared
        });
        world.db.wait_for_compaction().unwrap();
        world.check("at the end");
    });
}

/// Writers stalled by compaction debt continue once compactions have space.
#[test]
fn a_debt_that_lacks_space_is_paid_when_there_is_room() {
    within(LIMIT, || {
        let mut world = World::with("tiny", false);
        let stop = [("level0_slowdown_writes_trigger", "4"), ("level0_stop_writes_trigger", "6")];
        world.db.set_options(&world.db.default_family(), &stop).unwrap();
        world.faults.inject(no_space(Fault::Error, Operation::Write).class(IoClass::Compaction));
        let no_slowdown = WriteOptions { no_slowdown: true, ..WriteOptions::default() };
        while world.property("rocksdb.is-write-stopped") == 0 {
            match world.write(&no_slowdown) {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                    world.write(&WriteOptions::default()).unwrap(); // slowed down, not stopped
                }
            }
            let _ = world.flush();
        }
        std::thread::scope(|scope| {
            let faults = world.faults.clone();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                faults.clear();
            });
            world.write_some(1);
        });
        world.db.wait_for_compaction().unwrap();
        world.check("at the end");
    });
}

/// A new MANIFEST replaces one with a failed append. Until then the database is read-only: the contents of the old one
/// are unknown.
#[test]
fn a_manifest_without_space_is_replaced_when_there_is_room() {
    for operation in [Operation::Write, Operation::Sync] {
        for fault in FAULTS.into_iter().take(if operation == Operation::Write { 3 } else { 2 }) {
            for by_itself in [false, true] {
                let what = format!("{operation:?} {:?}, by itself: {by_itself}", fault(FaultCode::NoSpace));
                let mut world = World::new("tiny");
                world.write_some(30);
                world.faults.inject(no_space(fault, operation).path("MANIFEST"));
                assert_eq!(world.flush().unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
                let refused = world.write(&WriteOptions::default()).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::NoSpace, "{what}: {refused}");
                world.check(&what);
                world.check_after_crash(&what);
                assert_eq!(world.db.resume().unwrap_err().kind(), ErrorKind::NoSpace, "{what}");
                world.check_after_crash(&what);
                world.faults.clear();
                if by_itself {
                    world.pass(Duration::from_secs(60));
                } else {
                    world.db.resume().unwrap();
                }
                world.write_some(30);
                assert_eq!(*world.heard.0.lock(), ["error", "begin", "end"], "{what}");
                world.check_after_crash(&what);
                world.flush().unwrap();
                world.check(&what);
                world.check_files(&what);
                world.check_after_crash(&what);
            }
        }
    }
}

/// A WAL not created for lack of space fails the one write and nothing else.
#[test]
fn a_log_that_cannot_be_made_fails_the_write_alone() {
    for operation in [Operation::CreateMapped, Operation::Allocate, Operation::Sync] {
        let mut world = World::new("tiny");
        let rule = no_space(Fault::Error, operation).path(".splog");
        // Of syncs, that of a new log alone: it carries records' class, too, so that no write is synced meanwhile.
        world.faults.inject(rule);
        let unsynced = WriteOptions::default();
        let refused = loop {
            if let Err(error) = world.write(&unsynced) {
                break error;
            }
        };
        assert_eq!(refused.kind(), ErrorKind::NoSpace, "{operation:?}: {refused}");
        world.faults.clear();
        if operation == Operation::Sync && world.write(&unsynced).is_err() {
            continue; // a flush wanted the log synced, and that is never tried again (D4)
        }
        world.write_some(10);
        world.check(&format!("{operation:?}"));
    }
}

/// Unlogged writes exist in memory only: a close reports their loss, or finds space for them.
#[test]
fn writes_without_a_log_that_a_close_loses_are_told() {
    for has_room in [false, true] {
        let mut world = World::new("tiny");
        world.write_some(5);
        let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        world.db.put(&world.db.default_family(), b"unlogged", b"", &unlogged).unwrap();
        world.faults.inject(no_space(Fault::Error, Operation::Write).path("MANIFEST"));
        assert_eq!(world.flush().unwrap_err().kind(), ErrorKind::NoSpace);
        if has_room {
            world.faults.clear();
            world.db.close().unwrap();
        } else {
            let closed = world.db.close().unwrap_err();
            assert_eq!(closed.kind(), ErrorKind::NoSpace, "{closed}");
            assert!(closed.message().contains("disable_wal"), "{closed}");
        }
        let options = profile::by_name("tiny").unwrap().open_options(world.memory.clone(), ["other"]);
        let db = Db::open(DIR, &options).unwrap();
        check(&db, world.written, "reopened");
        let found = db.get(&db.default_family(), b"unlogged", &ReadOptions::default()).unwrap();
        assert_eq!(found.is_some(), has_room);
    }
}
