//! Writes that end with the flush of what they wrote.
#![allow(clippy::disallowed_methods, reason = "tests use threads as other programs do")]

use std::path::Path;
use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{Db, ErrorKind, Family, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

const EAGER: WriteOptions = WriteOptions {
    flush_after: true,
    sync: false,
    disable_wal: false,
    no_slowdown: false,
    ignore_missing_column_families: false,
};

fn options(vfs: &Arc<dyn Vfs>, families: &[&str]) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.db.create_missing_column_families = true;
    for name in families {
        options = options.family(*name, FamilyOptions { write_buffer_size: 256 << 10, ..FamilyOptions::default() });
    }
    options
}

fn family(db: &Db, name: &str) -> Arc<Family> {
    db.family(name).expect("open")
}

/// Entries of the family that are in memory only.
fn unflushed(db: &Db, family: &Family) -> u64 {
    let count = |name: &str| db.int_property(family, name).expect("a property");
    count("rocksdb.num-entries-active-mem-table") + count("rocksdb.num-entries-imm-mem-tables")
}

fn get(db: &Db, family: &Family, key: &[u8]) -> Option<Vec<u8>> {
    db.get(family, key, &ReadOptions::default()).expect("readable").map(|value| value.to_vec())
}

fn logs(vfs: &dyn Vfs) -> Vec<String> {
    let names = vfs.read_dir(Path::new("/db")).expect("readable");
    names.into_iter().filter(|name| name.ends_with(".splog")).collect()
}

/// One family is written and flushed again and again, beside one that was written once and one that never was: neither
/// may keep the logs of all those writes.
#[test]
fn logs_do_not_pile_up_behind_families_that_are_not_flushed() {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let mut options = options(&vfs, &["default", "once", "never"]);
    options.db.log_file_bytes = 64 << 10;
    options.db.max_total_wal_size = 256 << 10;
    let db = Db::open("/db", &options).expect("open");
    let (busy, once) = (db.default_family(), family(&db, "once"));
    db.put(&once, b"k", b"v", &WriteOptions::default()).expect("put");
    let mut most = 0;
    for i in 0..1000u32 {
        let mut batch = WriteBatch::new();
        for part in 0..4u32 {
            batch.put(busy.id(), &[i.to_be_bytes(), part.to_be_bytes()].concat(), &[7; 500]);
        }
        db.write(&batch, &EAGER).expect("write");
        assert_eq!(unflushed(&db, &busy), 0);
        most = most.max(logs(&*vfs).len());
    }
    // 2 MB were logged: 32 logs and more. The limit is four; one is current and one a spare.
    assert!(most <= 7, "{most} logs");
    assert_eq!(unflushed(&db, &once), 0, "flushed for the sake of the logs");
    drop(db);
    let again = Db::open("/db", &options).expect("reopen");
    assert_eq!(get(&again, &family(&again, "once"), b"k"), Some(b"v".to_vec()));
    for i in 0..1000u32 {
        let key = [i.to_be_bytes(), 3u32.to_be_bytes()].concat();
        assert_eq!(get(&again, &again.default_family(), &key), Some(vec![7; 500]));
    }
}

/// What a flushed write returned for is in tables, and no table is durable ahead of its log.
#[test]
fn a_flushed_write_survives_power_loss_with_all_before_it() {
    for disable_wal in [false, true] {
        let memory = MemoryVfs::new(2);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let options = options(&vfs, &["default", "other", "third"]);
        let db = Db::open("/db", &options).expect("open");
        let (a, b, c) = (db.default_family(), family(&db, "other"), family(&db, "third"));
        db.put(&c, b"before", b"1", &WriteOptions::default()).expect("put");
        let mut batch = WriteBatch::new();
        batch.put(a.id(), b"k", b"1");
        batch.put(b.id(), b"k", b"2");
        db.write(&batch, &WriteOptions { disable_wal, ..EAGER }).expect("write");
        assert_eq!((unflushed(&db, &a), unflushed(&db, &b), unflushed(&db, &c)), (0, 0, 1));
        let lost: Arc<dyn Vfs> = memory.crash_clone(7, CrashPolicy::NothingUnsyncedKept);
        let found = Db::open("/db", &OpenOptions { vfs: lost, ..options }).expect("recover");
        assert_eq!(get(&found, &found.default_family(), b"k"), Some(b"1".to_vec()));
        assert_eq!(get(&found, &family(&found, "other"), b"k"), Some(b"2".to_vec()));
        if !disable_wal {
            assert_eq!(get(&found, &family(&found, "third"), b"before"), Some(b"1".to_vec()));
        }
    }
}

#[test]
fn a_family_can_ask_for_it_by_option() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(3);
    let options = options(&vfs, &["default", "eager"])
        .family("eager", FamilyOptions { eager_flush: true, ..FamilyOptions::default() });
    let db = Db::open("/db", &options).expect("open");
    let (plain, eager) = (db.default_family(), family(&db, "eager"));
    let mut batch = WriteBatch::new();
    batch.put(plain.id(), b"k", b"1");
    batch.put(eager.id(), b"k", b"2");
    db.write(&batch, &WriteOptions::default()).expect("write");
    assert_eq!((unflushed(&db, &plain), unflushed(&db, &eager)), (1, 0));
    db.set_options(&eager, &[("eager_flush", "false")]).expect("it can change");
    db.write(&batch, &WriteOptions::synced()).expect("write");
    assert_eq!((unflushed(&db, &plain), unflushed(&db, &eager)), (2, 1));
    db.put(&plain, b"k", b"3", &WriteOptions { sync: true, ..EAGER }).expect("write");
    assert_eq!((unflushed(&db, &plain), unflushed(&db, &eager)), (0, 1), "only what the batch touched");
}

/// Also a batch that is written to a log of its own.
#[test]
fn large_batches_are_flushed_too() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(4);
    let mut options = options(&vfs, &["default"]);
    options.db.large_batch_bytes = 10 << 10;
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    let mut batch = WriteBatch::new();
    (0..1000u32).for_each(|i| batch.put(family.id(), &i.to_be_bytes(), &[1; 100]));
    db.write(&batch, &EAGER).expect("write");
    assert_eq!((unflushed(&db, &family), db.live_files().len()), (0, 1));
    assert_eq!(get(&db, &family, &999u32.to_be_bytes()), Some(vec![1; 100]));
}

/// The batch is committed before its flush: where that finds no space the write is there, and the flush is tried again when
/// there is room.
#[test]
fn a_flush_that_fails_is_told_and_the_write_stays() {
    let memory = MemoryVfs::new(5);
    let faulty = FaultVfs::new(memory);
    let vfs: Arc<dyn Vfs> = faulty.clone();
    let db = Db::open("/db", &options(&vfs, &["default", "other"])).expect("open");
    let (a, b) = (db.default_family(), family(&db, "other"));
    faulty.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Create).path(".sst").sticky());
    let mut batch = WriteBatch::new();
    batch.put(a.id(), b"k", b"1");
    batch.put(b.id(), b"k", b"2");
    let error = db.write(&batch, &EAGER).expect_err("no table can be made");
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!((get(&db, &a, b"k"), get(&db, &b, b"k")), (Some(b"1".to_vec()), Some(b"2".to_vec())));
    let refused = db.put(&a, b"k", b"3", &EAGER).expect_err("there still is no space for a table");
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    assert_eq!(get(&db, &a, b"k"), Some(b"3".to_vec()));
    faulty.clear();
    db.resume().expect("the cause is mended");
    db.put(&a, b"k", b"4", &EAGER).expect("written and flushed");
    assert_eq!((unflushed(&db, &a), get(&db, &a, b"k")), (0, Some(b"4".to_vec())));
}

/// Writers that flush the same families at once, on threads: each finds its own batch in tables, and nothing is lost.
#[test]
fn many_writers_flush_eagerly_at_once() {
    const WRITERS: u32 = 4;
    const EACH: u32 = 40;
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(&OpenOptions::default().vfs, &["default", "other", "third"]);
    let db = Db::open(dir.path(), &options).expect("open");
    let families = [db.default_family(), family(&db, "other"), family(&db, "third")];
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, families) = (&db, &families);
            scope.spawn(move || {
                for i in 0..EACH {
                    let mut batch = WriteBatch::new();
                    let touched = families.iter().cycle().skip(writer as usize % 3).take(2);
                    touched
                        .for_each(|f| batch.put(f.id(), &[writer.to_be_bytes(), i.to_be_bytes()].concat(), &[3; 2000]));
                    let disable_wal = i % 5 == 0;
                    db.write(&batch, &WriteOptions { disable_wal, ..EAGER }).expect("write");
                }
            });
        }
    });
    assert_eq!(families.iter().map(|f| unflushed(&db, f)).sum::<u64>(), 0);
    db.close().expect("close");
    drop(db);
    let again = Db::open(dir.path(), &options).expect("reopen");
    let families = [again.default_family(), family(&again, "other"), family(&again, "third")];
    for (writer, i) in (0..WRITERS).flat_map(|writer| (0..EACH).map(move |i| (writer, i))) {
        for f in families.iter().cycle().skip(writer as usize % 3).take(2) {
            let key = [writer.to_be_bytes(), i.to_be_bytes()].concat();
            assert_eq!(get(&again, f, &key), Some(vec![3; 2000]), "{writer} {i} {}", f.name());
        }
    }
}
