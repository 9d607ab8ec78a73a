//! What a full disk still takes: deletions, flushes and compactions that make room by them, and an open. Nobody else
//! makes any room.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use testkit::engine::{
    CompactRangeOptions, Db, ErrorKind, FamilyOptions, IngestOptions, IngestProgress, OpenOptions, ReadOptions,
    WriteOptions,
};
use testkit::threads::{wait_for, within};
use vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};

use super::{DIR, LIMIT, Mount, VALUE_BYTES, check, fill, value};

const SMALL_MIB: usize = 16;

/// Writes that want a reserve.
const SOME: u64 = (6 << 20) / VALUE_BYTES as u64;

/// Keys that are not deleted.
const KEPT: u64 = 5;

fn options(vfs: &Arc<dyn Vfs>, write_buffer_bytes: usize) -> OpenOptions {
    let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.family("default", FamilyOptions { write_buffer_size: write_buffer_bytes, ..FamilyOptions::default() })
}

fn small_disk(threaded: bool) -> Arc<MemoryVfs> {
    let memory = MemoryVfs::new(1);
    memory.set_runs_inline(!threaded);
    memory.set_capacity(Some((SMALL_MIB as u64) << 20));
    memory
}

fn put(db: &Db, number: u64) -> testkit::engine::Result<()> {
    let options = WriteOptions { no_slowdown: true, ..WriteOptions::synced() };
    db.put(&db.default_family(), &number.to_be_bytes(), &value(number), &options).map(drop)
}

fn is_there(db: &Db, number: u64) -> bool {
    db.get(&db.default_family(), &number.to_be_bytes(), &ReadOptions::default()).unwrap().is_some()
}

/// Space is given back in the background.
fn has_room<T>(what: &str, call: impl Fn() -> testkit::engine::Result<T>) {
    let mut nth = 0;
    wait_for(what, || match call() {
        Err(error) if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy) => {
            nth += 1;
            if nth % 1000 == 0 {
                println!("{what} still fails after {nth} tries: {error}");
            }
            false
        }
        called => called.map(|_| true).unwrap(),
    });
}

/// Flushes, compacts, and writes half of `deleted` again.
fn make_room_and_go_on(db: &Db, deleted: Range<u64>) {
    let family = db.default_family();
    has_room("a flush", || db.flush(&[&family]));
    has_room("a compaction", || db.compact_range(&family, None, None, &CompactRangeOptions::default()));
    let again = deleted.end / 2;
    for number in deleted.start..again {
        has_room("a write", || put(db, number));
    }
    check(db, again);
    assert!(!is_there(db, again));
}

/// Fills the disk once the reserve is there: upkeep makes it, in the background, and this disk is full within milliseconds.
fn fill_beside_reserve(db: &Db, vfs: &Arc<dyn Vfs>, dir: &Path) -> u64 {
    for number in 0..SOME {
        has_room("a write", || put(db, number));
    }
    wait_for("the reserve", || vfs.metadata(&dir.join("RESERVE")).is_ok_and(|reserve| reserve.len > 0));
    fill(db, SOME)
}

/// Fills the disk, deletes key by key, and goes on. `crashes` is called when all is deleted.
fn fill_and_delete(vfs: &Arc<dyn Vfs>, dir: &Path, write_buffer_bytes: usize, crashes: impl Fn(u64)) {
    let db = Db::open(dir, &options(vfs, write_buffer_bytes)).unwrap();
    let written = fill_beside_reserve(&db, vfs, dir);
    assert!(written as usize * VALUE_BYTES > (SMALL_MIB / 4) << 20, "full after {written} writes");
    check(&db, written);
    for number in KEPT..written {
        let options = WriteOptions { sync: number % 16 == 0, ..WriteOptions::default() };
        db.delete(&db.default_family(), &number.to_be_bytes(), &options)
            .unwrap_or_else(|error| panic!("the deletion of {number} of {written}: {error}"));
    }
    db.sync_log().unwrap();
    crashes(written);
    make_room_and_go_on(&db, KEPT..written);
    drop(db);
    let db = Db::open(dir, &options(vfs, write_buffer_bytes)).unwrap();
    check(&db, written / 2);
    assert!(!is_there(&db, written / 2));
}

#[test]
fn deletions_make_room_on_a_full_disk_in_memory() {
    within(LIMIT, || {
        for write_buffer_bytes in [256 << 10, 1 << 20, 64 << 20] {
            for threaded in [false, true] {
                let memory = small_disk(threaded);
                let vfs: Arc<dyn Vfs> = memory.clone();
                fill_and_delete(&vfs, Path::new(DIR), write_buffer_bytes, |written| {
                    check_after_crashes(&memory, write_buffer_bytes, written);
                });
            }
        }
    });
}

/// On disks as full as that of `memory`.
fn check_after_crashes(memory: &MemoryVfs, write_buffer_bytes: usize, written: u64) {
    for policy in [CrashPolicy::NothingUnsyncedKept, CrashPolicy::RandomBlocksKept, CrashPolicy::ProcessKilled] {
        let left = memory.crash_clone(1, policy);
        left.set_capacity(Some((SMALL_MIB as u64) << 20));
        let vfs: Arc<dyn Vfs> = left;
        let db = Db::open(DIR, &options(&vfs, write_buffer_bytes)).unwrap();
        check(&db, KEPT);
        assert!((KEPT..written).all(|number| !is_there(&db, number)), "{policy:?}");
        make_room_and_go_on(&db, KEPT..KEPT * 4);
    }
}

/// The memtables together are smaller than the reserve, or one holds everything: flushes that the background is late with
/// must fit the reserve once the disk is full.
#[test]
fn deletions_make_room_on_a_full_disk() {
    within(LIMIT, || {
        for (write_buffer_bytes, is_ext4) in [(64 << 10, false), (64 << 20, false), (64 << 10, true)] {
            let dir = tempfile::tempdir().unwrap();
            let at = dir.path().join("mounted");
            std::fs::create_dir(&at).unwrap();
            println!("buffers of {write_buffer_bytes} bytes, ext4: {is_ext4}");
            let mounted =
                if is_ext4 { Mount::ext4(&at, &dir.path().join("image")) } else { Mount::tmpfs(&at, SMALL_MIB) };
            match &mounted {
                Some(_) => {
                    fill_and_delete(&(RealVfs::new() as Arc<dyn Vfs>), &at.join("db"), write_buffer_bytes, |_| {})
                }
                None => println!("skipped: it cannot be mounted here (ext4: {is_ext4})"),
            }
            drop(mounted);
        }
    });
}

/// Fills the disk until the reserve is given up; returns the number of writes.
fn fill_whole(db: &Db) -> u64 {
    let mut written = fill(db, 0);
    loop {
        match put(db, written) {
            Ok(()) => written += 1,
            Err(error) if error.message().contains("only deletions") => return written,
            Err(error) => assert!(matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Busy), "{error}"),
        }
        // Takes space if there is any, and gives the reserve up otherwise.
        db.delete(&db.default_family(), b"no such key", &WriteOptions::default()).unwrap();
    }
}

/// A full disk is no reason why a database cannot be opened, and its reserve stays what it is for.
#[test]
fn a_database_on_a_full_disk_is_opened_to_make_room() {
    within(LIMIT, || {
        for (drops_tables, write_buffer_bytes) in [(false, 1 << 20), (false, 64 << 20), (true, 256 << 10)] {
            let memory = small_disk(false);
            let vfs: Arc<dyn Vfs> = memory.clone();
            let options = options(&vfs, write_buffer_bytes);
            let written = fill_whole(&Db::open(DIR, &options).unwrap());
            for _ in 0..2 {
                drop(Db::open(DIR, &options).unwrap());
            }
            let db = Db::open(DIR, &options).unwrap();
            check(&db, written);
            check_refuses(&db, written);
            let family = db.default_family();
            if drops_tables {
                assert!(db.drop_tables_in_range(&family, None, None).unwrap() > 0);
            }
            let all = (0u64.to_be_bytes(), u64::MAX.to_be_bytes());
            db.delete_range(&family, &all.0, &all.1, &WriteOptions::synced()).unwrap();
            make_room_and_go_on(&db, 0..written);
        }
    });
}

/// Whatever takes space, and frees none.
fn check_refuses(db: &Db, written: u64) {
    let refused = (written..).find_map(|number| put(db, number).err()).unwrap();
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    let ingested = db.prepare_ingest(&[], &IngestOptions::default(), &IngestProgress::default());
    assert_eq!(ingested.unwrap_err().kind(), ErrorKind::NoSpace);
}

/// The reserve is no part of a copy, and goes with its database.
#[test]
fn copies_have_no_reserve_and_destroy_removes_it() {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let options = options(&vfs, 256 << 10);
    let db = Db::open(DIR, &options).unwrap();
    (0..300).for_each(|number| put(&db, number).unwrap());
    let reserves = || memory.all_files().into_iter().filter(|path| path.ends_with("RESERVE")).collect::<Vec<_>>();
    assert_eq!(reserves(), [Path::new("/db/RESERVE")]);
    assert!(vfs.metadata(Path::new("/db/RESERVE")).unwrap().len >= 256 << 10);
    db.checkpoint("/checkpoint").unwrap();
    drop(db);
    drop(Db::open(DIR, &options).unwrap());
    assert_eq!(reserves(), [Path::new("/db/RESERVE")]);
    Db::destroy(DIR, None, &vfs).unwrap();
    assert_eq!(reserves(), Vec::<std::path::PathBuf>::new());
}
