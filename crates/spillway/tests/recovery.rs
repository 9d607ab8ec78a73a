//! Opening after crashes, with files missing, and with logs elsewhere.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, Result, WriteBatch, WriteOptions};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() }
}

fn with_logs_in(vfs: &Arc<MemoryVfs>, wal_dir: &str) -> OpenOptions {
    let mut options = options(vfs);
    options.db.wal_dir = wal_dir.to_owned();
    options
}

fn put(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions::synced()).unwrap();
}

fn has(db: &Db, key: &str) -> bool {
    db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap().is_some()
}

fn kind_of(opened: Result<Db>) -> ErrorKind {
    opened.err().expect("refused").kind()
}

/// Files in a directory whose names end so.
fn files(vfs: &MemoryVfs, dir: &str, suffix: &str) -> Vec<PathBuf> {
    let names = vfs.read_dir(Path::new(dir)).unwrap();
    names.iter().filter(|name| name.ends_with(suffix)).map(|name| Path::new(dir).join(name)).collect()
}

#[test]
fn a_first_open_may_crash_at_any_call() {
    let options = |vfs: &Arc<MemoryVfs>| {
        let mut options = options(vfs);
        options.db.log_file_bytes = 64 << 10;
        options
    };
    let whole = MemoryVfs::new(1);
    let before = whole.operations();
    drop(Db::open("/db", &options(&whole)).unwrap());
    let calls = whole.operations() - before;
    assert!(calls > 10, "{calls}");
    for policy in CrashPolicy::ALL {
        for call in 0..calls {
            let vfs = MemoryVfs::new(1);
            vfs.crash_at(vfs.operations() + call, call, policy);
            let _ = Db::open("/db", &options(&vfs));
            let crashed = vfs.take_crash_image().unwrap_or_else(|| panic!("{policy:?}: no crash at call {call}"));
            for round in ["once", "again"] {
                let db =
                    Db::open("/db", &options(&crashed)).unwrap_or_else(|e| panic!("{policy:?} {call} {round}: {e}"));
                put(&db, round);
            }
        }
    }
}

#[test]
fn what_is_left_without_current_is_never_taken_for_a_new_database() {
    let vfs = MemoryVfs::new(2);
    let db = Db::open("/db", &options(&vfs)).unwrap();
    put(&db, "flushed");
    db.flush(&[&db.default_family()]).unwrap();
    put(&db, "logged");
    drop(db);
    let current = vfs.read_file(Path::new("/db/CURRENT")).unwrap();
    vfs.remove_file(Path::new("/db/CURRENT")).unwrap();
    let before = vfs.all_files();
    let error = Db::open("/db", &options(&vfs)).err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("CURRENT is missing"), "{error}");
    assert_eq!(vfs.all_files(), before, "nothing is deleted");
    for table in files(&vfs, "/db", ".sst") {
        vfs.rename(&table, &Path::new("/").join(table.file_name().unwrap())).unwrap();
    }
    assert_eq!(kind_of(Db::open("/db", &options(&vfs))), ErrorKind::Corruption, "the log tells");
    for table in files(&vfs, "/", ".sst") {
        vfs.rename(&table, &Path::new("/db").join(table.file_name().unwrap())).unwrap();
    }
    vfs.write_file(Path::new("/db/CURRENT"), &current).unwrap();
    let db = Db::open("/db", &options(&vfs)).unwrap();
    assert!(has(&db, "flushed") && has(&db, "logged"));
}

/// Nothing was written to its families: no table and no log tells of them.
#[test]
fn manifest_alone_tells_of_a_database() {
    let vfs = MemoryVfs::new(2);
    let db = Db::open("/db", &options(&vfs)).unwrap();
    db.create_family("made", FamilyOptions::default()).unwrap();
    drop(db);
    vfs.remove_file(Path::new("/db/CURRENT")).unwrap();
    for create_if_missing in [true, false] {
        let mut options = options(&vfs);
        options.db.create_if_missing = create_if_missing;
        let error = Db::open("/db", &options).err().expect("refused");
        assert!(error.kind() == ErrorKind::Corruption && error.message().contains("spillway repair"), "{error}");
    }
    assert!(testkit::engine::repair("/db", &options(&vfs)).unwrap().lost_nothing());
    assert!(Db::list_families("/db", &(vfs as Arc<dyn Vfs>)).unwrap().contains(&"made".to_owned()));
}

#[test]
fn logs_elsewhere_tell_of_a_database_and_of_rocksdb_s() {
    let vfs = MemoryVfs::new(3);
    let db = Db::open("/db", &with_logs_in(&vfs, "/wal")).unwrap();
    put(&db, "k");
    drop(db);
    vfs.remove_file(Path::new("/db/CURRENT")).unwrap();
    assert_eq!(kind_of(Db::open("/db", &with_logs_in(&vfs, "/wal"))), ErrorKind::Corruption);
    let vfs = MemoryVfs::new(3);
    vfs.create_dir_all(Path::new("/db")).unwrap();
    vfs.write_file(Path::new("/db/000009.log"), b"").unwrap();
    let db = Db::open("/db", &options(&vfs)).unwrap();
    drop(db);
    let vfs = MemoryVfs::new(3);
    vfs.create_dir_all(Path::new("/db")).unwrap();
    vfs.write_file(Path::new("/db/000009.log"), b"something").unwrap();
    assert_eq!(kind_of(Db::open("/db", &options(&vfs))), ErrorKind::Corruption);
}

#[test]
fn numbers_pass_those_in_the_log_directory() {
    let vfs = MemoryVfs::new(4);
    let options = with_logs_in(&vfs, "/wal");
    drop(Db::open("/db", &options).unwrap());
    // What a crash left of the logs that were made ahead, and another database's files.
    (4..40)
        .for_each(|n| drop(vfs.create(&PathBuf::from(format!("/wal/{n:06}.splog")), vfs::IfExists::Truncate).unwrap()));
    let strangers = ["/wal/000041.sst", "/wal/MANIFEST-000042", "/wal/OPTIONS-000043", "/wal/000044.dbtmp"];
    strangers.iter().for_each(|path| vfs.write_file(Path::new(path), b"another's").unwrap());
    let db = Db::open("/db", &options).unwrap();
    put(&db, "k");
    drop(db);
    let logs = files(&vfs, "/wal", ".splog");
    assert!(logs.iter().all(|log| log.as_path() > Path::new("/wal/000044.splog")), "{logs:?}");
    assert!(strangers.iter().all(|path| vfs.exists(Path::new(path)).unwrap()));
    assert!(has(&Db::open("/db", &options).unwrap(), "k"));
}

#[test]
fn destroy_takes_the_logs_elsewhere_along() {
    let vfs = MemoryVfs::new(5);
    let options = with_logs_in(&vfs, "/wal");
    let db = Db::open("/db", &options).unwrap();
    put(&db, "k");
    drop(db);
    vfs.write_file(Path::new("/wal/letter.txt"), b"dear").unwrap();
    Db::destroy("/db", Some(Path::new("/wal")), &options.vfs).unwrap();
    assert_eq!(vfs.all_files(), [PathBuf::from("/wal/letter.txt")]);
    assert!(!has(&Db::open("/db", &options).unwrap(), "k"));
}

#[test]
fn destroy_takes_no_file_s_word_for_where_logs_are() {
    let vfs = MemoryVfs::new(6);
    let elsewhere = with_logs_in(&vfs, "/wal");
    let db = Db::open("/original", &elsewhere).unwrap();
    put(&db, "k");
    drop(db);
    // A copy's options still name the original's logs.
    for path in files(&vfs, "/original", "") {
        let copy = Path::new("/copy").join(path.file_name().unwrap());
        vfs.create_dir_all(Path::new("/copy")).unwrap();
        vfs.write_file(&copy, &vfs.read_file(&path).unwrap()).unwrap();
    }
    Db::destroy("/copy", None, &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    assert!(has(&Db::open("/original", &elsewhere).unwrap(), "k"));
}

#[test]
fn after_a_salvage_the_default_mode_opens() {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &options(&vfs)).unwrap();
    ["a", "b", "c", "d"].iter().for_each(|key| put(&db, key));
    drop(db);
    let log = files(&vfs, "/db", ".splog").pop().unwrap();
    let bytes = vfs.read_file(&log).unwrap();
    let at = bytes.windows(4).position(|window| window == [1, b'b', 1, b'v']).expect("the second record");
    vfs.flip_bit(&log, at as u64 * 8).unwrap();
    assert_eq!(kind_of(Db::open("/db", &options(&vfs))), ErrorKind::Corruption);
    let mut salvage = options(&vfs);
    salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let db = Db::open("/db", &salvage).unwrap();
    put(&db, "e");
    for policy in CrashPolicy::ALL {
        let crashed = vfs.crash_clone(7, policy);
        let again = Db::open("/db", &options(&crashed)).unwrap_or_else(|e| panic!("{policy:?}: {e}"));
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|key| has(&again, key)),
            [true, false, true, true, true],
            "{policy:?}"
        );
    }
}

/// Only the log behind it names a log; the end of one that was replayed stands in the MANIFEST, too.
#[test]
fn an_empty_log_that_is_gone_is_no_loss_and_hides_none() {
    let mut vfs = MemoryVfs::new(11);
    let live = |vfs: &Arc<MemoryVfs>, key: &str, sync| -> Result<Arc<MemoryVfs>> {
        let db = Db::open("/db", &options(vfs))?;
        db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions { sync, ..WriteOptions::default() })?;
        Ok(vfs.crash_clone(3, CrashPolicy::NothingUnsyncedKept))
    };
    for (key, sync) in [("a", true), ("b", true), ("c", true), ("d", false), ("e", false), ("f", true)] {
        vfs = live(&vfs, key, sync).unwrap();
    }
    let logs = files(&vfs, "/db", ".splog");
    assert_eq!(logs.len(), 6);
    let without = |gone: &[usize]| {
        let vfs = vfs.crash_clone(1, CrashPolicy::AllKept);
        gone.iter().for_each(|log| vfs.remove_file(&logs[*log]).unwrap());
        vfs
    };
    let mut found = without(&[3]);
    for key in ["g", "h", "i"] {
        found = live(&found, key, true).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    let copied = Db::open("/db", &options(&found)).unwrap();
    copied.checkpoint("/copy").unwrap();
    let copy = Db::open("/copy", &options(&found)).unwrap();
    Db::checkpoint_beside("/db", &options(&found), "/beside").unwrap();
    let beside = Db::open("/beside", &options(&found)).unwrap();
    for key in ["a", "b", "c", "f", "g", "h", "i"] {
        assert!([&copied, &copy, &beside].iter().all(|db| has(db, key)), "{key}");
    }
    assert_eq!(kind_of(Db::open("/db", &options(&without(&[2, 3])))), ErrorKind::Corruption, "c is lost");
    assert_eq!(kind_of(Db::open("/db", &options(&without(&[2, 3, 4])))), ErrorKind::Corruption);
}

#[test]
fn many_short_lives_leave_few_logs() {
    let vfs = MemoryVfs::new(8);
    for n in 0..40 {
        put(&Db::open("/db", &options(&vfs)).unwrap(), &format!("key{n}"));
        let logs = files(&vfs, "/db", ".splog");
        assert!(logs.len() <= 10, "{n}: {logs:?}");
    }
    let db = Db::open("/db", &options(&vfs)).unwrap();
    assert!((0..40).all(|n| has(&db, &format!("key{n}"))));
}

#[test]
fn old_logs_over_the_limit_are_flushed_at_open() {
    let vfs = MemoryVfs::new(9);
    let mut options = options(&vfs);
    put(&Db::open("/db", &options).unwrap(), "k");
    options.db.max_total_wal_size = 1;
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(files(&vfs, "/db", ".sst").len(), 1);
    assert!(has(&db, "k"));
}

#[test]
fn a_checkpoint_has_the_logs_of_large_batches() {
    let vfs = MemoryVfs::new(10);
    let family =
        FamilyOptions { min_write_buffer_number_to_merge: 8, max_write_buffer_number: 16, ..FamilyOptions::default() };
    let mut options = options(&vfs).family("default", family);
    options.db.large_batch_bytes = 4096;
    let db = Db::open("/db", &options).unwrap();
    put(&db, "before");
    let mut batch = WriteBatch::new();
    (0..100u32).for_each(|n| batch.put(db.default_family().id(), &n.to_be_bytes(), &[7; 100]));
    db.write(&batch, &WriteOptions::default()).unwrap();
    put(&db, "after");
    db.checkpoint("/copy").unwrap();
    let copy = Db::open("/copy", &options).unwrap();
    assert!(has(&copy, "before") && has(&copy, "after"));
    for n in 0..100u32 {
        let value = copy.get(&copy.default_family(), &n.to_be_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(value.as_deref(), Some(&[7; 100][..]));
    }
}
