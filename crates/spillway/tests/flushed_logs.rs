//! Logs whose content is in tables: they are not synced for these (F1), and not kept.

use std::sync::Arc;

use spillway::metrics::Ticker;
use spillway::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

const LOG_BYTES: u64 = 256 << 10;

fn options(vfs: Arc<MemoryVfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.statistics = true;
    options.db.log_file_bytes = LOG_BYTES;
    options.family("default", FamilyOptions::default())
}

fn put(db: &Db, name: &str, i: u32) {
    let family = db.family(name).expect("open");
    db.put(&family, &i.to_be_bytes(), &[7; 1000], &WriteOptions::default()).expect("put");
}

fn has(db: &Db, name: &str, i: u32) -> bool {
    let family = db.family(name).expect("open");
    db.get(&family, &i.to_be_bytes(), &ReadOptions::default()).expect("get").is_some()
}

fn flush(db: &Db, name: &str) {
    db.flush(&[&db.family(name).expect("open")]).expect("flush");
}

fn syncs(db: &Db) -> u64 {
    db.statistics().expect("asked for").count(Ticker::WalFileSynced)
}

/// Bytes of the logs in the database's folder.
fn log_bytes(vfs: &dyn Vfs) -> u64 {
    let names = vfs.read_dir("/db".as_ref()).expect("there");
    let logs = names.iter().filter(|name| name.ends_with(".splog"));
    logs.map(|name| vfs.metadata(&std::path::Path::new("/db").join(name)).expect("there").len).sum()
}

#[test]
fn a_flush_that_leaves_nothing_behind_syncs_no_log() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    db.create_family("idle", FamilyOptions::default()).expect("created");
    let before = syncs(&db);
    (0..50).for_each(|i| put(&db, "default", i));
    flush(&db, "default");
    assert_eq!(syncs(&db), before);
    (50..100).for_each(|i| put(&db, "default", i));
    for policy in CrashPolicy::ALL {
        let left = Db::open("/db", &options(vfs.crash_clone(3, policy)).family("idle", FamilyOptions::default()));
        let left = left.expect("open");
        assert!((0..50).all(|i| has(&left, "default", i)), "{policy:?}");
        let later: Vec<bool> = (50..100).map(|i| has(&left, "default", i)).collect();
        assert!(later.is_sorted_by(|before, after| before >= after), "a prefix: {policy:?}");
    }
}

#[test]
fn a_flush_syncs_the_log_that_another_family_needs() {
    let vfs = MemoryVfs::new(2);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    db.create_family("other", FamilyOptions::default()).expect("created");
    put(&db, "other", 1);
    put(&db, "default", 2);
    let before = syncs(&db);
    flush(&db, "default");
    assert!(syncs(&db) > before);
    let lost = vfs.crash_clone(3, CrashPolicy::NothingUnsyncedKept);
    let db = Db::open("/db", &options(lost).family("other", FamilyOptions::default())).expect("open");
    assert!(has(&db, "default", 2) && has(&db, "other", 1));
}

#[test]
fn a_flush_of_all_families_at_once_syncs_no_log() {
    let vfs = MemoryVfs::new(3);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    let other = db.create_family("other", FamilyOptions::default()).expect("created");
    let before = syncs(&db);
    let mut batch = WriteBatch::new();
    batch.put(db.default_family().id(), &1u32.to_be_bytes(), b"1");
    batch.put(other.id(), &1u32.to_be_bytes(), b"1");
    db.write(&batch, &WriteOptions { flush_after: true, ..WriteOptions::default() }).expect("write");
    assert_eq!(syncs(&db), before);
    let lost = vfs.crash_clone(3, CrashPolicy::NothingUnsyncedKept);
    let db = Db::open("/db", &options(lost).family("other", FamilyOptions::default())).expect("open");
    assert!(has(&db, "default", 1) && has(&db, "other", 1));
}

#[test]
fn a_log_that_is_in_tables_is_left_at_half_its_size() {
    let vfs = MemoryVfs::new(4);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    let log = |vfs: &dyn Vfs| {
        let mut names: Vec<_> = vfs.read_dir("/db".as_ref()).expect("there");
        names.retain(|name| name.ends_with(".splog"));
        names.into_iter().min().expect("one")
    };
    let first = log(&*vfs);
    put(&db, "default", 0);
    flush(&db, "default");
    assert_eq!(log(&*vfs), first, "it holds next to nothing");
    (0..LOG_BYTES as u32 / 2000).for_each(|i| put(&db, "default", i));
    flush(&db, "default");
    put(&db, "default", 1000);
    for _ in 0..1000 {
        if log(&*vfs) != first {
            break;
        }
        vfs.sleep(std::time::Duration::from_millis(1));
    }
    assert_ne!(log(&*vfs), first);
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let db = Db::open("/db", &options(killed)).expect("open");
    assert!((0..LOG_BYTES as u32 / 2000).all(|i| has(&db, "default", i)) && has(&db, "default", 1000));
}

#[test]
fn a_closed_database_keeps_no_log_of_what_is_in_tables() {
    let vfs = MemoryVfs::new(5);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    let before = syncs(&db);
    (0..100).for_each(|i| put(&db, "default", i));
    flush(&db, "default");
    db.close().expect("closed");
    assert!(log_bytes(&*vfs) < 4096, "{}", log_bytes(&*vfs));
    assert!(syncs(&db) - before <= 2, "those that end the log that is left");
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    assert!((0..100).all(|i| has(&db, "default", i)));
    (100..200).for_each(|i| put(&db, "default", i));
    db.close().expect("closed");
    assert!(log_bytes(&*vfs) > 100_000, "what is not in tables stays in the log");
    let db = Db::open("/db", &options(vfs)).expect("open");
    assert!((0..200).all(|i| has(&db, "default", i)));
}
