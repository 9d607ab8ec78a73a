//! A disk that is full at any call of a restart: it is told, or gone without, and nothing is lost either way.

use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{Db, ErrorKind, WriteOptions};

use crate::common::{Contents, MEMTABLES, batch, compare, contents, options, property};

/// The calls that take room.
const TAKING_ROOM: [Operation; 9] = [
    Operation::Create,
    Operation::OpenAppend,
    Operation::Write,
    Operation::Sync,
    Operation::Allocate,
    Operation::CreateMapped,
    Operation::SyncDir,
    Operation::Rename,
    Operation::Link,
];

/// What a killed process left: memtables in files that a restart finds.
fn left(memtable: &str, log_index: bool) -> (Arc<MemoryVfs>, Contents) {
    let memory = MemoryVfs::new(7);
    let db = Db::open("/db", &options(memory.clone(), memtable, log_index)).unwrap();
    for n in 0..260 {
        db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
    }
    let expected = contents(&db);
    (memory.crash_clone(1, CrashPolicy::ProcessKilled), expected)
}

/// Opens, reads and flushes under a fault; false where no call met it.
fn restart_under(rule: Rule, killed: &Arc<MemoryVfs>, way: (&str, bool), expected: &Contents) -> bool {
    let memory = killed.crash_clone(2, CrashPolicy::ProcessKilled);
    let faults = FaultVfs::new(memory.clone());
    let what = format!("{rule:?}");
    faults.inject(rule);
    let vfs: Arc<dyn Vfs> = faults.clone();
    match Db::open("/db", &options(vfs, way.0, way.1)) {
        Err(error) => check_error(&error, &what),
        Ok(db) => {
            assert!(contents(&db) == *expected, "{what}");
            assert!(property(&db, "spillway.memtables-restored") > 0, "{what}");
            let families = db.families();
            if let Err(error) = db.flush(&families.iter().collect::<Vec<_>>()) {
                check_error(&error, &what);
            }
            assert!(contents(&db) == *expected, "{what}, flushed");
        }
    }
    assert!(compare(&memory, way.0, way.1).contents == *expected, "{what}, closed");
    faults.fired() > 0
}

fn check_error(error: &testkit::engine::Error, what: &str) {
    let is_told = matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::ReadOnly);
    assert!(is_told && error.to_string().contains("injected fault"), "{what}: {error:?}");
}

#[test]
fn a_disk_that_is_full_at_any_call_of_a_restart_loses_nothing() {
    for (memtable, log_index) in MEMTABLES.into_iter().zip([true, false]) {
        let (killed, expected) = left(memtable, log_index);
        for operation in TAKING_ROOM {
            let full = || Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation);
            let mut met = 0;
            while restart_under(full().nth(met + 1), &killed, (memtable, log_index), &expected) {
                met += 1;
                if met % 2 == 1 {
                    restart_under(full().nth(met).sticky(), &killed, (memtable, log_index), &expected);
                }
            }
            assert!(met > 0 || operation == Operation::Link || operation == Operation::CreateMapped, "{operation:?}");
        }
    }
}

/// From a disk that is more than full to one with enough room: it fills up at another byte each time.
#[test]
fn a_restart_on_a_disk_with_little_room() {
    for (memtable, log_index) in MEMTABLES.into_iter().zip([false, true]) {
        let (killed, expected) = left(memtable, log_index);
        let used = |memory: &Arc<MemoryVfs>| -> u64 {
            memory.all_files().iter().map(|path| memory.metadata(path).unwrap().len).sum()
        };
        let mut ended = [0; 2];
        for room in (used(&killed) / 4..).step_by(100_043) {
            let memory = killed.crash_clone(2, CrashPolicy::ProcessKilled);
            memory.set_capacity(Some(room)); // files that go make room
            let outcome = Db::open("/db", &options(memory.clone(), memtable, log_index)).and_then(|db| {
                assert!(contents(&db) == expected, "{room} bytes");
                db.flush(&[&db.default_family(), &db.family("second").unwrap()])
            });
            memory.set_capacity(None);
            assert!(compare(&memory, memtable, log_index).contents == expected, "{room} bytes");
            match outcome {
                Ok(()) => ended[1] += 1,
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::ReadOnly), "{error:?}");
                    ended[0] += 1;
                }
            }
            if ended[1] > 2 {
                break;
            }
        }
        assert!(ended[0] > 5, "{ended:?}");
    }
}
