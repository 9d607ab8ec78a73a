//! A crash at every call of the file system from the seal of a memtable until its table counts, under every policy:
//! everything is there that was synced, whatever became of the conversion.

use std::ops::Range;
use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, WriteOptions};

use crate::common::{BOTH, check_at, flush, get, options};

const ENTRIES: u32 = 60;

/// Runs the same life each time; `before` and `after` its flush the world is shown.
fn live(way: &str, before: impl FnOnce(&Arc<MemoryVfs>), after: impl FnOnce(&Arc<MemoryVfs>)) {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let db = Db::open("/db", &options(&vfs, way)).unwrap();
    for i in 0..ENTRIES {
        let key = format!("key{i:04}");
        db.put(&db.default_family(), key.as_bytes(), &[7; 50], &WriteOptions::default()).unwrap();
    }
    db.merge(&db.default_family(), b"key0001", b"more", &WriteOptions::synced()).unwrap();
    before(&memory);
    flush(&db);
    assert_eq!(db.flushes().converted, 1);
    after(&memory);
}

fn operations_of_flush(way: &str) -> Range<u64> {
    let (mut start, mut end) = (0, 0);
    live(way, |memory| start = memory.operations(), |memory| end = memory.operations());
    start..end
}

fn recover(image: Arc<MemoryVfs>, way: &str, what: &str) {
    let vfs: Arc<dyn Vfs> = image.clone();
    let db = Db::open("/db", &options(&vfs, way)).unwrap_or_else(|error| panic!("{what}: {error}"));
    for i in 0..ENTRIES {
        let expected = if i == 1 { [&[7; 50][..], b",more"].concat() } else { vec![7; 50] };
        assert_eq!(get(&db, &format!("key{i:04}")), Some(expected), "{what}, key {i}");
    }
    db.put(&db.default_family(), b"after", b"v", &WriteOptions::default()).unwrap();
    flush(&db);
    let tables = db.live_files().len();
    db.close().unwrap();
    drop(db);
    let names = vfs.read_dir("/db".as_ref()).unwrap();
    assert_eq!(names.iter().filter(|name| name.ends_with(".sst")).count(), tables, "{what}: {names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".spmem")), "{what}: {names:?}");
    check_at(&vfs, "/db".as_ref());
}

#[test]
fn a_crash_anywhere_in_a_conversion_loses_nothing() {
    for way in BOTH {
        let operations = operations_of_flush(way);
        assert!(operations.end - operations.start >= 7, "{operations:?}");
        for operation in operations {
            for policy in CrashPolicy::ALL {
                let mut image = None;
                let arm = |memory: &Arc<MemoryVfs>| memory.crash_at(operation, operation, policy);
                live(way, arm, |memory| image = memory.take_crash_image());
                let what = format!("{way}, {policy:?} at operation {operation}");
                recover(image.unwrap_or_else(|| panic!("{what}: no such operation")), way, &what);
            }
        }
    }
}
