//! Memtables of an earlier process that a restart did not take: no later one finds them, whatever was numbered or flushed
//! in between.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{Db, OpenOptions, WriteBatch, WriteOptions};

use crate::common::{MEMTABLES, compare, options, property};

/// In an image, after which number it begins: zero where it was not in use. See docs/format/image.md.
const BEGUN: Range<usize> = 3104..3112;

/// Operands, so that whatever is there twice shows.
fn batch(db: &Db, n: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for family in ["default", "second"] {
        let key = format!("key{:03}", n * 7 % 150);
        batch.merge(db.family(family).unwrap().id(), key.as_bytes(), format!("{n:0100}").as_bytes());
    }
    batch
}

/// What a killed process left, as much as several memtables of the smallest size hold.
fn left(memtable: &str) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &options(vfs.clone(), memtable, false)).unwrap();
    for n in 0..5000 {
        db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
    }
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let control =
        Db::open("/db", &options(killed.crash_clone(2, CrashPolicy::ProcessKilled), memtable, false)).unwrap();
    assert!(property(&control, "spillway.memtables-restored") > 0, "{memtable}: what is tried is to be found");
    killed
}

fn by_replay(vfs: Arc<dyn Vfs>, memtable: &str) -> OpenOptions {
    let mut options = options(vfs, memtable, false);
    options.db.memtable_crash_safe_recover = false;
    options
}

/// Before the first number is given out, not in the background: what those memtables say of numbers holds no more. So too
/// where they are of another mount of the same file system, which a later open may come by.
#[test]
fn what_was_not_taken_is_gone_once_the_database_is_open() {
    for (memtable, mount) in MEMTABLES.into_iter().flat_map(|memtable| [(memtable, 1), (memtable, 2)]) {
        let vfs = left(memtable);
        vfs.set_mount(Some(mount));
        vfs.set_runs_inline(false); // as in a process, where what can wait may never come
        let is_in_use = |path: &PathBuf| {
            path.extension().is_some_and(|kind| kind == "spmem")
                && vfs.read_file(path).unwrap()[BEGUN].iter().any(|byte| *byte != 0)
        };
        let before: Vec<_> = vfs.all_files().into_iter().filter(is_in_use).collect();
        let replaying = by_replay(vfs.clone(), memtable);
        let options = if mount == 1 { replaying } else { options(vfs.clone(), memtable, false) };
        let db = Db::open("/db", &options).unwrap();
        assert!(!before.is_empty() && !vfs.all_files().iter().any(|path| before.contains(path)), "{before:?}");
        compare(&vfs.crash_clone(3, CrashPolicy::ProcessKilled), memtable, false);
        drop(db);
    }
}

/// A restart by the log has other memtables, and makes tables of some; then it is killed, in deleting those that it found.
#[test]
fn a_memtable_that_tables_hold_a_part_of_is_not_taken() {
    for memtable in MEMTABLES {
        let vfs = left(memtable);
        let faults = FaultVfs::new(vfs.clone());
        faults.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::RemoveFile).path(".spmem").sticky());
        let mut small = by_replay(faults, memtable);
        for (_, family) in &mut small.families {
            (family.write_buffer_size, family.max_write_buffer_number) = (64 << 10, 2);
        }
        let error = Db::open("/db", &small).err().expect("what cannot be deleted might be found later");
        assert!(error.to_string().contains(".spmem"), "{error}");
        let killed = vfs.crash_clone(3, CrashPolicy::ProcessKilled);
        let found = compare(&killed, memtable, false);
        assert!(!found.contents.iter().any(Vec::is_empty));
    }
}
