//! Closing a database during operations on other threads.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::time::Duration;

use testkit::engine::{Db, ErrorKind, OpenOptions, ReadOptions, WriteOptions};
use testkit::gate::{Calls, GateVfs};
use testkit::threads::{start, wait_for, within};
use vfs::{MemoryVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(120);

/// A surplus WAL file is removed before the close releases the directory. Otherwise the next open would find an unended
/// WAL.
#[test]
fn a_close_waits_for_whoever_makes_the_next_log() {
    // More than a log of 64 KiB has room for, and than a spare would have.
    close_beside_a_writer_in_call(1, 100_000);
}

/// The same for space allocated in the current WAL.
#[test]
fn a_close_waits_for_whoever_makes_the_log_longer() {
    close_beside_a_writer_in_call(1, 4000);
}

/// Closes a database while a writer with values of this size is held in the file-system call after `passing` others.
fn close_beside_a_writer_in_call(passing: u64, value_bytes: usize) {
    within(LIMIT, move || {
        let memory = MemoryVfs::new(1);
        memory.set_runs_inline(false);
        let (vfs, gate) = GateVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = vfs;
        let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
        options.db.log_file_bytes = 64 << 10;
        let db = Arc::new(Db::open("/db", &options).unwrap());
        let put = move |db: &Db, key: u32, bytes: usize| {
            db.put(&db.default_family(), &key.to_be_bytes(), &vec![7; bytes], &WriteOptions::default())
        };
        put(&db, 0, 1).unwrap(); // which makes the first log
        let writer = start({
            let (db, gate) = (db.clone(), gate.clone());
            move || {
                // Only space in the log and a new log have it call the file system.
                gate.hold_call(Calls::Of(std::thread::current().id()), passing);
                (1u32..).find_map(|key| put(&db, key, value_bytes).err().map(|error| (key, error))).unwrap()
            }
        });
        wait_for("the writer's call", || gate.is_holding());
        let closer = start({
            let (db, gate) = (db.clone(), gate.clone());
            move || {
                db.close().unwrap();
                gate.is_holding()
            }
        });
        // A close that waited for nobody would be over by then.
        let mut looks = 0;
        wait_for("a while", || {
            looks += 1;
            looks > 2000 || closer.is_finished()
        });
        gate.open();
        assert!(!closer.join().unwrap(), "closed while a writer was in the file system");
        let (written, error) = writer.join().unwrap();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        let logs = memory.all_files().iter().filter(|path| path.extension().is_some_and(|is| is == "splog")).count();
        assert_eq!(logs, 1);
        let db = Db::open("/db", &options).unwrap();
        let get = |key: u32| db.get(&db.default_family(), &key.to_be_bytes(), &ReadOptions::default()).unwrap();
        assert!((0..written).all(|key| get(key).is_some()) && get(written).is_none());
    });
}
