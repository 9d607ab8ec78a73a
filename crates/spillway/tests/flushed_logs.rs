//! Logs whose content is in tables: they are not synced for these (F1), and not kept.

use std::path::Path;
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::metrics::Ticker;
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
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

/// C's and Java's opens make it, as RocksDB's does.
#[test]
fn the_first_log_may_be_made_ahead() {
    let vfs = MemoryVfs::new(4);
    let open = |vfs: &Arc<MemoryVfs>| {
        let db = Db::open("/db", &options(vfs.clone())).expect("open");
        db.make_first_log();
        db
    };
    let logs = |vfs: &MemoryVfs| log_bytes(vfs) / (LOG_BYTES / 16);
    let db = open(&vfs);
    let left = vfs.crash_clone(3, CrashPolicy::AllKept);
    assert!(log_bytes(&*vfs) > 0);
    db.close().expect("closed");
    assert_eq!(log_bytes(&*vfs), 0, "nothing was written to it");
    for vfs in [vfs, left] {
        let db = open(&vfs);
        let made = logs(&vfs);
        put(&db, "default", 1);
        assert_eq!(logs(&vfs), made, "the write takes it");
        for policy in CrashPolicy::ALL {
            let crashed = open(&vfs.crash_clone(3, policy));
            put(&crashed, "default", 2);
            crashed.close().expect("closed");
        }
        db.close().expect("closed");
        assert!(has(&open(&vfs), "default", 1));
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
    put(&db, "default", 0);
    let first = log(&*vfs);
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
    assert_eq!(logs(&*vfs), [""; 0]);
    assert_eq!(syncs(&db), before);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    assert!((0..100).all(|i| has(&db, "default", i)));
    (100..200).for_each(|i| put(&db, "default", i));
    db.close().expect("closed");
    assert!(log_bytes(&*vfs) > 100_000, "what is not in tables stays in the log");
    let db = Db::open("/db", &options(vfs)).expect("open");
    assert!((0..200).all(|i| has(&db, "default", i)));
}

/// The names of the logs in the database's folder.
fn logs(vfs: &dyn Vfs) -> Vec<String> {
    let mut names = vfs.read_dir("/db".as_ref()).expect("there");
    names.retain(|name| name.ends_with(".splog"));
    names
}

#[test]
fn there_is_no_log_before_the_first_logged_write() {
    let vfs = MemoryVfs::new(6);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    let family = db.default_family();
    db.sync_log().expect("nothing to sync");
    db.put(&family, b"a", b"1", &WriteOptions { disable_wal: true, ..WriteOptions::default() }).expect("put");
    db.checkpoint("/copy").expect("copied");
    flush(&db, "default");
    assert_eq!(logs(&*vfs), [""; 0]);
    db.close().expect("closed");
    assert_eq!(logs(&*vfs), [""; 0]);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    put(&db, "default", 1);
    db.sync_log().expect("synced");
    assert_eq!(logs(&*vfs).len(), 1);
    let lost = vfs.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    assert_eq!(logs(&*lost), logs(&*vfs), "its name is durable");
    let left = Db::open("/db", &options(lost.clone())).expect("open");
    assert!(has(&left, "default", 1));
    assert_eq!(logs(&*lost), logs(&*vfs), "an open makes none");
    put(&left, "default", 2);
    assert_eq!(logs(&*lost).len(), 2);
    let killed = lost.crash_clone(2, CrashPolicy::ProcessKilled);
    let left = Db::open("/db", &options(killed.clone())).expect("open");
    assert!(has(&left, "default", 1) && has(&left, "default", 2));
    flush(&left, "default");
    left.close().expect("closed");
    assert_eq!(logs(&*killed), [""; 0], "those of earlier processes go too");
    let checked = CheckOptions { vfs: killed, ..CheckOptions::default() };
    assert!(check(Path::new("/db"), &checked, &mut |_| ()).expect("checked").is_whole());
}

/// What a salvage could not read is named nowhere once the open has ended, though no log took its place.
#[test]
fn a_damaged_log_is_left_behind_by_the_open_that_salvages_it() {
    let vfs = MemoryVfs::new(8);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    (0..100).for_each(|i| put(&db, "default", i));
    db.close().expect("closed");
    let log = Path::new("/db").join(&logs(&*vfs)[0]);
    let mut bytes = vfs.read_file(&log).expect("there");
    bytes[50_000] ^= 1;
    vfs.write_file(&log, &bytes).expect("damaged");
    assert!(Db::open("/db", &options(vfs.clone())).is_err());
    let mut salvage = options(vfs.clone());
    salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let db = Db::open("/db", &salvage).expect("salvaged");
    let left = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    drop(db);
    for vfs in [left, vfs] {
        let db = Db::open("/db", &options(vfs.clone())).expect("nothing is damaged any more");
        assert_eq!((0..100).filter(|i| has(&db, "default", *i)).count(), 99);
        drop(db);
        assert_eq!(logs(&*vfs), [""; 0]);
    }
}

#[test]
fn a_closed_database_makes_no_log_for_a_write_that_comes_late() {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &options(vfs.clone())).expect("open");
    let family = db.default_family();
    db.close().expect("closed");
    let late = db.put(&family, b"a", b"1", &WriteOptions::default());
    assert_eq!(late.expect_err("late").kind(), testkit::engine::ErrorKind::Closed);
    assert_eq!(logs(&*vfs), [""; 0]);
}

#[test]
fn a_flush_lets_go_of_the_log_that_its_memtable_was_written_to() {
    let vfs = MemoryVfs::new(9);
    vfs.set_runs_inline(true);
    let family = FamilyOptions { write_buffer_size: LOG_BYTES as usize / 4 * 3, ..FamilyOptions::default() };
    let db = Db::open("/db", &options(vfs.clone()).family("default", family)).expect("open");
    put(&db, "default", 0);
    let first = logs(&*vfs);
    assert!((1..1000).any(|i| {
        put(&db, "default", i);
        db.flushes().rewritten > 0
    }));
    assert!(log_bytes(&*vfs) < LOG_BYTES, "it was not full");
    assert!(!logs(&*vfs).contains(&first[0]));
}
