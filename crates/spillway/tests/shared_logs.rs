//! Databases whose logs lie in one directory: each replays, deletes and restores its own, and leaves the others' alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};

const LOGS: &str = "/logs";
const DIRS: [&str; 2] = ["/one", "/other"];

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    // Large batches stay in their files for a while.
    let family =
        FamilyOptions { min_write_buffer_number_to_merge: 8, max_write_buffer_number: 9, ..FamilyOptions::default() };
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family);
    options.db.wal_dir = LOGS.to_owned();
    options.db.log_file_bytes = 64 << 10;
    options.db.large_batch_bytes = 10 << 10;
    options
}

fn open(vfs: &Arc<MemoryVfs>, dir: &str) -> Db {
    Db::open(dir, &options(vfs)).unwrap_or_else(|error| panic!("{dir}: {error:?}"))
}

/// Fills several logs, and has some batches in logs of their own.
fn write(db: &Db, keys: std::ops::Range<u32>) {
    for key in keys {
        let len = if key % 20 == 7 { 12 << 10 } else { 2000 };
        let value = [db.path().to_string_lossy().as_bytes(), &vec![key as u8; len]].concat();
        db.put(&db.default_family(), &key.to_be_bytes(), &value, &WriteOptions::default()).unwrap();
    }
}

fn assert_has(db: &Db, keys: u32) {
    let value = |key: u32| db.get(&db.default_family(), &key.to_be_bytes(), &ReadOptions::default()).unwrap();
    for key in 0..keys {
        assert!(value(key).unwrap().starts_with(db.path().to_string_lossy().as_bytes()), "{key}");
    }
    assert!(value(keys).is_none());
}

fn assert_whole(vfs: &Arc<MemoryVfs>, dir: &str) {
    let options = CheckOptions { vfs: vfs.clone(), log_dir: Some(LOGS.into()), ..CheckOptions::default() };
    let report = check(Path::new(dir), &options, &mut |_| {}).unwrap();
    assert!(report.is_whole(), "{dir}: {:?}", report.problems);
}

fn logs(vfs: &MemoryVfs) -> Vec<PathBuf> {
    vfs.all_files().into_iter().filter(|path| path.starts_with(LOGS)).collect()
}

/// Both were written to side by side, and were killed.
fn killed() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let dbs = DIRS.map(|dir| open(&vfs, dir));
    for start in (0..200).step_by(10) {
        dbs.iter().for_each(|db| write(db, start..start + 10));
    }
    vfs.crash_clone(1, CrashPolicy::ProcessKilled)
}

#[test]
fn each_database_has_its_own_logs_in_a_shared_directory() {
    let vfs = killed();
    assert!(logs(&vfs).iter().any(|path| path.extension().is_some_and(|kind| kind == "spbatch")));
    for round in 0..3 {
        for dir in DIRS {
            assert_whole(&vfs, dir);
            let db = open(&vfs, dir);
            assert_has(&db, 200 + round);
            write(&db, 200 + round..201 + round);
            assert_has(&open(&vfs.crash_clone(1, CrashPolicy::ProcessKilled), DIRS[0]), 200 + round + 1);
            if round == 1 {
                db.flush(&[&db.default_family()]).unwrap();
            }
            db.close().unwrap();
        }
    }
    let as_vfs: Arc<dyn Vfs> = vfs.clone();
    Db::destroy("/one", Some(Path::new(LOGS)), &as_vfs).unwrap();
    assert_has(&open(&vfs, "/other"), 203);
}

#[test]
fn a_log_of_another_database_in_the_place_of_one_is_an_error_that_names_both() {
    let vfs = MemoryVfs::new(1);
    let mut ids = Vec::new();
    for dir in DIRS {
        let mut options = options(&vfs);
        options.db.wal_dir.clear();
        let db = Db::open(dir, &options).unwrap();
        write(&db, 0..3);
        ids.push(db.identity().to_owned());
        db.close().unwrap();
    }
    let log_of =
        |dir: &str| vfs.all_files().into_iter().find(|path| path.starts_with(dir) && path.ends_with("000004.splog"));
    let [one, other] = DIRS.map(|dir| log_of(dir).unwrap());
    vfs.write_file(&one, &vfs.read_file(&other).unwrap()).unwrap();
    for read_only in [true, false] {
        let options = OpenOptions { read_only, vfs: vfs.clone(), ..OpenOptions::default() };
        let error = Db::open("/one", &options).err().unwrap();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*one)), "{error}");
        assert!(error.message().contains(&ids[1]) && error.message().contains("wal_dir"), "{error}");
    }
    assert!(vfs.exists(&one).unwrap());
}

#[test]
fn no_database_begins_where_another_s_logs_lie() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "/one");
    write(&db, 0..3);
    let error = Db::open("/other", &options(&vfs)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(db.identity()) && error.message().contains("wal_dir"), "{error}");
    db.close().unwrap();
    assert_has(&open(&vfs, "/one"), 3);
}

#[test]
fn a_restore_leaves_the_logs_of_others() {
    let vfs = killed();
    let engine =
        BackupEngine::open("/backups", &BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() }).unwrap();
    let db = open(&vfs, "/one");
    engine.create_new_backup(&db, false).unwrap();
    write(&db, 200..205);
    db.close().unwrap();
    let how = RestoreOptions { wal_dir: Some(LOGS.into()), ..RestoreOptions::default() };
    engine.restore_latest("/one", &how).unwrap();
    assert_has(&open(&vfs, "/one"), 200);
    assert_has(&open(&vfs, "/other"), 200);
}

/// A restored backup has an id of its own, and so have the logs that it brings.
#[test]
fn a_restore_to_another_directory_leaves_the_original_s_logs() {
    let vfs = MemoryVfs::new(1);
    let engine =
        BackupEngine::open("/backups", &BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() }).unwrap();
    let db = open(&vfs, "/one");
    write(&db, 0..100);
    engine.create_new_backup(&db, false).unwrap();
    write(&db, 100..200);
    let how = RestoreOptions { wal_dir: Some(LOGS.into()), ..RestoreOptions::default() };
    let before = logs(&vfs);
    for _ in 0..2 {
        engine.restore_latest("/copy", &how).unwrap();
        let copy = open(&vfs, "/copy");
        let has =
            |key: u32| copy.get(&copy.default_family(), &key.to_be_bytes(), &ReadOptions::default()).unwrap().is_some();
        assert!((0..100).all(has) && !has(100));
        drop(copy);
        assert!(before.iter().all(|log| logs(&vfs).contains(log)));
    }
    db.close().unwrap();
    assert_has(&open(&vfs, "/one"), 200);
}

/// A crash of a restore leaves logs with the backup's id and no database: the next attempt goes on from there.
#[test]
fn a_restore_with_a_wal_dir_is_begun_again_after_a_crash() {
    let vfs = MemoryVfs::new(1);
    let backups = |vfs: &Arc<MemoryVfs>| {
        BackupEngine::open("/backups", &BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() }).unwrap()
    };
    let db = open(&vfs, "/one");
    write(&db, 0..100);
    backups(&vfs).create_new_backup(&db, false).unwrap();
    db.close().unwrap();
    drop(db);
    let how = RestoreOptions { wal_dir: Some("/copy-logs".into()), ..RestoreOptions::default() };
    let mut crashes = 0;
    for policy in [CrashPolicy::AllKept, CrashPolicy::NothingUnsyncedKept, CrashPolicy::DirectoryEntriesLost] {
        for operation in 0.. {
            let vfs = vfs.crash_clone(1, CrashPolicy::AllKept);
            let engine = backups(&vfs);
            vfs.crash_at(vfs.operations() + operation, 1, policy);
            engine.restore_latest("/copy", &how).unwrap();
            let Some(crashed) = vfs.take_crash_image() else { break };
            let restored = backups(&crashed).restore_latest("/copy", &how);
            restored.unwrap_or_else(|error| panic!("{operation}, {policy:?}: {error}"));
            crashes += 1;
        }
    }
    assert!(crashes > 50, "{crashes}");
}

/// The MANIFEST's copy or IDENTITY tells whose logs they are. Without both a repair takes nobody's.
#[test]
fn a_repair_without_a_manifest_takes_no_logs_of_others() {
    let vfs = killed();
    let of_one_of = |vfs: &MemoryVfs, name: &str| {
        let mut all = vfs.all_files().into_iter();
        all.find(|path| path.starts_with("/one") && path.to_string_lossy().contains(name)).unwrap()
    };
    vfs.remove_file(&of_one_of(&vfs, "MANIFEST-")).unwrap();
    let nameless = vfs.crash_clone(1, CrashPolicy::AllKept);
    let report = testkit::engine::repair("/one", &options(&vfs)).unwrap();
    assert!(report.lost_nothing(), "{report}");
    for dir in DIRS {
        assert_whole(&vfs, dir);
        assert_has(&open(&vfs, dir), 200);
    }
    ["IDENTITY", ".spmanifest"].iter().for_each(|name| nameless.remove_file(&of_one_of(&nameless, name)).unwrap());
    let before = nameless.all_files();
    let error = testkit::engine::repair("/one", &options(&nameless)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("IDENTITY") && error.message().contains(LOGS), "{error}");
    assert_eq!(logs(&nameless), before.into_iter().filter(|path| path.starts_with(LOGS)).collect::<Vec<_>>());
}

/// A checkpoint has the id of the database that it was made of. Opened under the same options it would take that one's logs.
#[test]
fn a_copy_takes_no_logs_of_the_database_that_it_was_made_of() {
    for flushes in [true, false] {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs, "/one");
        write(&db, 0..5);
        if flushes {
            db.flush(&[&db.default_family()]).unwrap();
        }
        db.checkpoint("/copy").unwrap();
        if !flushes {
            Db::checkpoint_beside("/one", &OpenOptions { read_only: true, ..options(&vfs) }, "/beside").unwrap();
        }
        write(&db, 5..50);
        let before = logs(&vfs);
        for copy in ["/copy", "/beside"].into_iter().filter(|copy| vfs.exists(Path::new(copy)).unwrap()) {
            for read_only in [true, false] {
                let error = Db::open(copy, &OpenOptions { read_only, ..options(&vfs) }).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                assert!(error.path().is_some_and(|path| path.starts_with(LOGS)), "{error}");
                assert!(error.message().contains("wal_dir"), "{error}");
            }
            assert_eq!(logs(&vfs), before);
            let mut own = options(&vfs);
            own.db.wal_dir.clear();
            let opened = Db::open(copy, &own).unwrap();
            let family = opened.default_family();
            let found = |key: u32| opened.get(&family, &key.to_be_bytes(), &ReadOptions::default()).unwrap().is_some();
            assert!((0..5).all(&found) && !found(5), "{copy}");
        }
        db.close().unwrap();
        assert_has(&open(&vfs, "/one"), 50);
    }
}
