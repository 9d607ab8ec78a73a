//! Every call of a conversion fails, in every way: the flush rewrites, what was written is read, now and after a power
//! loss, and no file is left that could be taken for a table.

use std::sync::Arc;
use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{Db, ErrorKind, WriteOptions};

use crate::common::{BOTH, Place, flush, get, is_mapped, options};

const ENTRIES: u32 = 300;

struct Faulty {
    memory: Arc<MemoryVfs>,
    faults: Arc<FaultVfs>,
    db: Db,
}

/// A database with synced entries that no flush has seen.
fn filled(way: &str) -> Faulty {
    let memory = MemoryVfs::new(1);
    let faults = FaultVfs::new(memory.clone());
    let vfs: Arc<dyn Vfs> = faults.clone();
    let db = Db::open("/db", &options(&vfs, way)).unwrap();
    let family = db.default_family();
    for i in 0..ENTRIES {
        db.put(&family, format!("key{i:04}").as_bytes(), &[7; 100], &WriteOptions::default()).unwrap();
    }
    db.delete_range(&family, b"key0010", b"key0020", &WriteOptions::synced()).unwrap();
    Faulty { memory, faults, db }
}

fn check_entries(db: &Db, what: &str) {
    for i in 0..ENTRIES {
        let expected = (!(10..20).contains(&i)).then(|| vec![7; 100]);
        assert_eq!(get(db, &format!("key{i:04}")), expected, "{what}, key {i}");
    }
}

fn faults_of(operation: Operation) -> Vec<Fault> {
    let mut faults = vec![Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::Io)];
    if operation != Operation::Open {
        faults.push(Fault::Error(FaultCode::NoSpace));
    }
    if operation == Operation::Write {
        faults.push(Fault::ShortWrite(FaultCode::NoSpace));
    }
    faults
}

/// The calls of a conversion, by what their paths contain.
fn calls_of(way: &str) -> Vec<(Operation, &'static str)> {
    use Operation::{Create, Open, OpenAppend, Rename, Sync, SyncDir, Truncate, Write};
    match is_mapped(way) {
        true => {
            let of_image = [Truncate, OpenAppend, Write, Sync, Open].map(|operation| (operation, ".spmem"));
            of_image.into_iter().chain([(Rename, ".spmem"), (SyncDir, "/db")]).collect()
        }
        false => {
            let of_table = [Create, Write, Sync, Open].map(|operation| (operation, ".sst"));
            of_table.into_iter().chain([(SyncDir, "/db")]).collect()
        }
    }
}

fn names(vfs: &dyn Vfs, end: &str) -> Vec<String> {
    vfs.read_dir("/db".as_ref()).unwrap().into_iter().filter(|name| name.ends_with(end)).collect()
}

#[test]
fn a_conversion_that_fails_anywhere_is_a_rewriting_flush() {
    for way in BOTH {
        for (operation, path) in calls_of(way) {
            for fault in faults_of(operation) {
                let Faulty { memory, faults, db } = filled(way);
                let what = format!("{way}, {operation:?} {fault:?}");
                let rule = faults.inject(Rule::new(fault).on(operation).path(path));
                flush(&db);
                assert!(faults.matched(rule) > 0 && faults.fired() == 1, "{what}: no such call");
                let report = db.flushes();
                assert_eq!((report.converted, report.rewritten, report.fallen_back), (0, 1, 1), "{what}");
                assert!(report.last_fall_back.unwrap().contains("injected fault"), "{what}");
                check_entries(&db, &what);
                assert_eq!(names(&*memory, ".sst").len(), 1, "{what}");
                let lost: Arc<dyn Vfs> = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
                check_entries(&Db::open("/db", &options(&lost, way)).unwrap(), &format!("{what}, power lost"));
                // The next memtable is converted again.
                db.put(&db.default_family(), b"next", b"v", &WriteOptions::default()).unwrap();
                flush(&db);
                assert_eq!(db.flushes().converted, 1, "{what}");
                db.close().unwrap();
                drop(db);
                assert!(names(&*memory, ".spmem").is_empty(), "{what}");
                let place = Place::of(memory.clone());
                place.check();
                check_entries(&place.open(way), &what);
            }
        }
    }
}

/// Where rewriting fails as well the flush does, and is done when the cause is mended.
#[test]
fn a_flush_that_can_do_neither_is_done_later() {
    for way in BOTH {
        let Faulty { memory, faults, db } = filled(way);
        faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Write).path(".sst").sticky());
        faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Write).path(".spmem").sticky());
        let error = db.flush(&[&db.default_family()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        check_entries(&db, way);
        assert!(names(&*memory, ".sst").is_empty());
        faults.clear();
        db.resume().unwrap();
        flush(&db);
        let report = db.flushes();
        assert_eq!(report.converted + report.rewritten, 1, "{report:?}");
        check_entries(&db, way);
        let lost: Arc<dyn Vfs> = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
        check_entries(&Db::open("/db", &options(&lost, way)).unwrap(), way);
    }
}

/// From no room at all to enough: the disk fills up at another byte of the conversion each time, and of the flush that
/// rewrites.
#[test]
fn a_conversion_on_a_disk_with_little_room() {
    for way in BOTH {
        let mut ended = [0; 3];
        for room in (0..).step_by(1009) {
            let Faulty { memory, mut db, .. } = filled(way);
            let what = format!("{way}, {room} bytes of room");
            let used: u64 = memory.all_files().iter().map(|path| memory.metadata(path).unwrap().len).sum();
            memory.set_capacity(Some(used + room));
            let flushed = db.flush(&[&db.default_family()]);
            check_entries(&db, &what);
            memory.set_capacity(None);
            match flushed {
                Ok(()) => ended[if db.flushes().converted > 0 { 2 } else { 1 }] += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                    ended[0] += 1;
                    if db.resume().is_err() {
                        drop(db); // the MANIFEST's end is not known: it begins anew
                        db = Place::of(memory.clone()).open(way);
                    }
                    flush(&db);
                }
            }
            check_entries(&db, &what);
            let lost: Arc<dyn Vfs> = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
            check_entries(&Db::open("/db", &options(&lost, way)).unwrap(), &format!("{what}, power lost"));
            if ended[2] > 1 {
                break;
            }
        }
        assert!(is_mapped(way) || ended[0] > 0, "{way}: {ended:?}");
    }
}

/// A table that does not read back as it should is not relied on, where such checks are asked for.
#[test]
fn a_table_that_reads_back_damaged_is_rewritten() {
    for way in BOTH {
        let memory = MemoryVfs::new(1);
        let faults = FaultVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = faults.clone();
        let mut options = options(&vfs, way);
        options.families[0].1.paranoid_file_checks = true;
        let db = Db::open("/db", &options).unwrap();
        db.put(&db.default_family(), b"k", b"v", &WriteOptions::default()).unwrap();
        let path = if is_mapped(way) { ".spmem" } else { ".sst" };
        faults.inject(Rule::new(Fault::ShortRead).on(Operation::Read).path(path));
        flush(&db);
        assert_eq!((db.flushes().rewritten, db.flushes().fallen_back), (1, 1), "{way}");
        db.put(&db.default_family(), b"k2", b"v", &WriteOptions::default()).unwrap();
        flush(&db);
        assert_eq!(db.flushes().converted, 1, "{way}");
        assert_eq!((get(&db, "k"), get(&db, "k2")), (Some(b"v".to_vec()), Some(b"v".to_vec())));
    }
}

/// Damage to a converted table is told when it is opened and when it is checked, and names the file.
#[test]
fn damage_is_told() {
    for way in BOTH {
        let Faulty { memory, db, .. } = filled(way);
        flush(&db);
        let path = db.live_files()[0].path.clone();
        db.close().unwrap();
        drop(db);
        memory.flip_bit(&path, 8 * 5000).unwrap();
        let check = testkit::engine::check::CheckOptions { vfs: memory.clone(), ..Default::default() };
        let report = testkit::engine::check::check("/db".as_ref(), &check, &mut |_| {}).unwrap();
        assert_eq!(report.problems.len(), 1);
        assert!(report.problems[0].to_string().contains(".sst"), "{}", report.problems[0]);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let mut options = options(&vfs, way);
        options.db.paranoid_checks = false;
        let db = Db::open("/db", &options).unwrap();
        let read = db.get(&db.default_family(), b"key0001", &Default::default());
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Corruption);
    }
}
