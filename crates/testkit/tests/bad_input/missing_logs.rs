//! Deleted WALs: recovery detects and names the missing files, and salvages the rest on request.
#![expect(clippy::indexing_slicing, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::FileNumber;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::version::edit::WalRange;
use testkit::engine::version::recover::recover;
use testkit::engine::{Db, ErrorKind, WriteOptions, repair};
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};
use wal::{RecordKind, ReplayOptions};

use crate::common::{
    Contents, PLAIN, REFERRING, SCRIPT, copy, database, files, manifest, options, read, read_with, refused,
};
use crate::logs::{with_logs_of, with_several_logs};

fn row(vfs: &MemoryVfs, dir: &str) -> WalRange {
    recover(vfs, Path::new(dir)).unwrap().wal_range.expect("our MANIFEST says which logs there are")
}

fn number(log: &Path) -> FileNumber {
    FileNumber(log.file_stem().unwrap().to_string_lossy().parse().unwrap())
}

/// WALs the MANIFEST refers to; the spare is not one.
fn needed(vfs: &MemoryVfs) -> Vec<PathBuf> {
    let row = row(vfs, DIR);
    files(vfs, ".splog").into_iter().filter(|log| (row.oldest..=row.newest.unwrap()).contains(&number(log))).collect()
}

/// Keys in a WAL of [`with_several_logs`]: each record is a batch of one change.
fn keys_in(vfs: &MemoryVfs, log: &Path) -> BTreeSet<Vec<u8>> {
    /// Behind the batch's header, the change's tag and the length of its key.
    const KEY_AT: usize = 12 + 2;
    let mut keys = BTreeSet::new();
    let options = ReplayOptions { number: number(log), ..ReplayOptions::default() };
    wal::replay(vfs, log, &options, &mut |record| {
        if record.kind == RecordKind::Batch {
            keys.insert(record.payload[KEY_AT..KEY_AT + 4].to_vec());
        }
        Ok(())
    })
    .unwrap();
    keys
}

fn in_mode(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> Result<Contents, testkit::engine::Error> {
    let mut options = options(vfs);
    options.db.wal_recovery_mode = mode;
    read_with(&options, DIR)
}

/// Salvages the rest, which must be all but `lost`, and checks a later open for the same.
fn salvaged(vfs: &Arc<MemoryVfs>, whole: &Contents, lost: &BTreeSet<Vec<u8>>) {
    let left = in_mode(vfs, WalRecoveryMode::SkipAnyCorruptedRecords).unwrap();
    let mut expected = whole.clone();
    expected.get_mut("default").unwrap().retain(|key, _| !lost.contains(key));
    assert!(left == expected, "{} keys are left of {}", left["default"].len(), whole["default"].len());
    assert!(read(vfs).unwrap() == left, "a second open differs");
}

#[test]
fn a_missing_log_is_noticed_wherever_it_stood() {
    let whole = with_several_logs();
    let expected = read(&copy(&whole)).unwrap();
    assert_eq!(expected["default"].len(), 30);
    let logs = needed(&whole);
    assert!(logs.len() >= 4, "{logs:?}");
    for missing in &logs {
        let vfs = copy(&whole);
        vfs.remove_file(missing).unwrap();
        for mode in [
            WalRecoveryMode::PointInTime,
            WalRecoveryMode::AbsoluteConsistency,
            WalRecoveryMode::TolerateCorruptedTailRecords,
        ] {
            let error = in_mode(&vfs, mode).expect_err("a log is missing");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&**missing)), "{mode:?}: {error:?}");
            assert!(error.message().contains("kSkipAnyCorruptedRecords"), "{error:?}");
        }
        salvaged(&vfs, &expected, &keys_in(&whole, missing));
    }
}

/// After the loss of `lost`, a salvage and a write, every later open finds the write.
fn goes_on_after(whole: &MemoryVfs, lost: &[PathBuf], salvage: impl Fn(&Arc<MemoryVfs>) -> Db) {
    let vfs = copy(whole);
    lost.iter().for_each(|log| vfs.remove_file(log).unwrap());
    let db = salvage(&vfs);
    db.put(&db.default_family(), b"new", b"v", &WriteOptions::synced()).unwrap();
    let killed = copy(&vfs);
    db.close().unwrap();
    for left in [vfs, killed] {
        let contents = read(&left).unwrap_or_else(|error| panic!("without {lost:?}: {error}"));
        assert!(contents["default"].contains_key(&b"new"[..]), "without {lost:?}");
        assert_eq!(read(&left).unwrap(), contents, "a second open differs");
    }
}

#[test]
fn new_logs_take_no_number_of_a_lost_one() {
    let whole = with_several_logs();
    let logs = needed(&whole);
    let salvage = |vfs: &Arc<MemoryVfs>| {
        let mut options = options(vfs);
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        Db::open(DIR, &options).unwrap()
    };
    let best = |vfs: &Arc<MemoryVfs>| {
        let mut options = options(vfs);
        (options.db.best_efforts_recovery, options.db.create_if_missing) = (true, false);
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        Db::open(DIR, &options).unwrap()
    };
    let repaired = |vfs: &Arc<MemoryVfs>| {
        repair(DIR, &options(vfs)).unwrap();
        Db::open(DIR, &options(vfs)).unwrap()
    };
    for first in 0..logs.len() {
        goes_on_after(&whole, &logs[first..], salvage);
        goes_on_after(&whole, &logs[..=first], salvage);
        goes_on_after(&whole, &logs[first..], best);
        goes_on_after(&whole, &logs[first..], repaired);
    }
}

#[test]
fn new_logs_in_a_directory_of_their_own_take_no_number_of_a_lost_one() {
    let vfs = MemoryVfs::new(1);
    let options = |vfs: &Arc<MemoryVfs>| {
        let mut options = crate::common::profile().open_options(vfs.clone(), ["users"]);
        options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 1 << 20);
        options.db.wal_dir = "/wal".to_owned();
        options
    };
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    for number in 0..30u32 {
        db.put(&db.default_family(), &number.to_be_bytes(), &[1; 9000], &WriteOptions::default()).unwrap();
    }
    db.sync_log().unwrap();
    let vfs = copy(&vfs);
    let logs: Vec<_> = vfs.all_files().into_iter().filter(|path| path.starts_with("/wal")).collect();
    assert!(logs.len() >= 4, "{logs:?}");
    logs[1..].iter().for_each(|log| vfs.remove_file(log).unwrap());
    let db = crate::doubts::salvage_with(options(&vfs));
    db.put(&db.default_family(), b"new", b"v", &WriteOptions::synced()).unwrap();
    db.close().unwrap();
    assert!(read_with(&options(&vfs), DIR).unwrap()["default"].contains_key(&b"new"[..]));
}

#[test]
fn new_files_take_no_number_of_a_file_that_was_set_aside() {
    let vfs = database(SCRIPT);
    vfs.create_dir_all(&Path::new(DIR).join("lost")).unwrap();
    vfs.write_file(&Path::new(DIR).join("lost/000900.sst"), b"").unwrap();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    db.put(&db.default_family(), b"new", b"v", &WriteOptions::default()).unwrap();
    drop(db);
    assert_eq!(manifest(&vfs), Path::new(DIR).join("MANIFEST-000901"));
}

#[test]
fn the_spare_is_missed_by_nobody() {
    let whole = with_logs_of(33); // the last log is more than half full
    let spare = files(&whole, ".splog").pop().unwrap();
    assert!(Some(number(&spare)) > row(&whole, DIR).newest);
    let vfs = copy(&whole);
    vfs.remove_file(&spare).unwrap();
    assert_eq!(read(&vfs).unwrap()["default"].len(), 33);
}

#[test]
fn of_two_missing_logs_one_is_named_and_both_are_skipped() {
    let whole = with_several_logs();
    let expected = read(&copy(&whole)).unwrap();
    let logs = needed(&whole);
    for first in 0..logs.len() {
        for second in first + 1..logs.len() {
            let vfs = copy(&whole);
            let gone = [&logs[first], &logs[second]];
            gone.iter().for_each(|log| vfs.remove_file(log).unwrap());
            let error = read(&vfs).expect_err("logs are missing");
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(gone.iter().any(|log| error.path() == Some(log)), "{error:?}");
            let lost = gone.iter().flat_map(|log| keys_in(&whole, log)).collect();
            salvaged(&vfs, &expected, &lost);
        }
    }
}

/// `users` never flushes its first writes; `default` flushes repeatedly.
fn with_a_lagging_family() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &crate::common::profile().open_options(vfs.clone(), ["users"])).unwrap();
    let (default, users) = (db.default_family(), db.family("users").unwrap());
    db.put(&users, b"first", b"v", &Default::default()).unwrap();
    for number in 0..40u32 {
        db.put(&default, &number.to_be_bytes(), &[number as u8; 9000], &Default::default()).unwrap();
    }
    db.sync_log().unwrap();
    vfs.crash_clone(1, CrashPolicy::ProcessKilled)
}

#[test]
fn a_log_of_which_one_family_is_flushed_is_missed() {
    let whole = with_a_lagging_family();
    let logs = needed(&whole);
    assert!(!files(&whole, ".sst").is_empty() && logs.len() >= 4, "{logs:?}");
    for missing in &logs {
        let vfs = copy(&whole);
        vfs.remove_file(missing).unwrap();
        assert_eq!(refused(&vfs, missing).kind(), ErrorKind::Corruption);
    }
}

/// What is prepared is in no table. Its log is missed, and so is one that may end it, even if all that is written is flushed.
#[test]
fn a_log_is_missed_that_may_have_a_step_of_a_transaction() {
    let script = "create users\nbegin z put default k 1\nreopen\nput default a 1\nput users a 1\nreopen\nput default b 2\n\
                  flush default users\nput default c 3";
    let whole = PLAIN.after(script);
    let logs = needed(&whole);
    assert!(logs.len() >= 3, "{logs:?}");
    for missing in &logs[..logs.len() - 1] {
        let vfs = copy(&whole);
        vfs.remove_file(missing).unwrap();
        assert_eq!(refused(&vfs, missing).kind(), ErrorKind::Corruption);
        let checked = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        let report = check(Path::new(DIR), &checked, &mut |_| ()).unwrap();
        assert!(report.problems.iter().any(|problem| problem.0.path() == Some(missing)), "{report:#?}");
        assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
    }
}

#[test]
fn logs_that_are_flushed_may_go_and_come_back_in_any_order() {
    let before = with_a_lagging_family();
    let expected = read(&copy(&before)).unwrap();
    let flushed = copy(&before);
    let db = Db::open(DIR, &options(&flushed)).unwrap();
    db.flush(&db.families().iter().collect::<Vec<_>>()).unwrap();
    drop(db);
    let gone: Vec<_> = needed(&before).into_iter().filter(|log| !flushed.exists(log).unwrap()).collect();
    assert!(gone.len() >= 4, "{gone:?}");
    // A deletion that a power loss took back.
    for back in &gone {
        let vfs = copy(&flushed);
        vfs.write_file(back, &before.read_file(back).unwrap()).unwrap();
        assert!(read(&vfs).unwrap() == expected);
        assert!(!vfs.exists(back).unwrap(), "what nobody needs is deleted");
    }
}

#[test]
fn a_checkpoint_misses_its_logs() {
    let vfs = MemoryVfs::new(1);
    let mut options = crate::common::profile().open_options(vfs.clone(), ["users"]);
    options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 1 << 20);
    let db = Db::open(DIR, &options).unwrap();
    for number in 0..30u32 {
        db.put(&db.default_family(), &number.to_be_bytes(), &[1; 9000], &Default::default()).unwrap();
    }
    db.checkpoint("/copy").unwrap();
    drop(db);
    let in_copy = |vfs: &Arc<MemoryVfs>| read_with(&crate::common::options(vfs), "/copy");
    assert_eq!(in_copy(&copy(&vfs)).unwrap()["default"].len(), 30);
    let row = row(&vfs, "/copy");
    let logs: Vec<_> = vfs.read_dir(Path::new("/copy")).unwrap();
    let logs: Vec<_> =
        logs.iter().filter(|name| name.ends_with(".splog")).map(|n| Path::new("/copy").join(n)).collect();
    assert!(logs.len() >= 4 && number(&logs[0]) == row.oldest && logs.last().map(|last| number(last)) == row.newest);
    for missing in &logs {
        let vfs = copy(&vfs);
        vfs.remove_file(missing).unwrap();
        let error = in_copy(&vfs).expect_err("a log is missing");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&**missing)), "{error:?}");
    }
}

#[test]
fn check_lists_what_is_missing() {
    let vfs = with_several_logs();
    let logs = needed(&vfs);
    let check = || check(Path::new(DIR), &CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() }, &mut |_| ());
    assert!(check().unwrap().is_whole());
    vfs.remove_file(&logs[1]).unwrap();
    let report = check().unwrap();
    assert!(report.problems.iter().any(|problem| problem.0.path() == Some(&*logs[1])), "{:?}", report.problems);
}

/// A log that only tables need, for values in it.
#[test]
fn missing_log_of_values_leaves_all_else_to_a_salvage() {
    let vfs = REFERRING.database();
    let logs = files(&vfs, ".splog");
    assert!(!logs.is_empty());
    logs.iter().for_each(|log| vfs.remove_file(log).unwrap());
    let error = Db::open(DIR, &REFERRING.options(&copy(&vfs))).err().expect("it is refused");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*logs[0])), "{error}");
    assert!(error.message().contains("kSkipAnyCorruptedRecords"), "{error}");
    for is_best_efforts in [false, true] {
        let vfs = copy(&vfs);
        let mut options = REFERRING.options(&vfs);
        options.db.best_efforts_recovery = is_best_efforts;
        if !is_best_efforts {
            options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        }
        let db = Db::open(DIR, &options).unwrap();
        let all = [("default", "a"), ("default", "d")];
        assert_eq!(crate::doubts::in_doubt(&db, &all), all, "{:?}", db.recovery_doubts());
        let get = |key: &[u8]| db.get(&db.default_family(), key, &Default::default());
        assert_eq!(get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
        assert!(get(b"a").is_err());
        db.put(&db.default_family(), b"new", b"v", &WriteOptions::synced()).unwrap();
    }
}

/// A reader opens it before anything reads its values.
#[test]
fn damaged_header_of_a_log_of_values_leaves_all_else_to_readers() {
    let vfs = REFERRING.database();
    let logs = files(&vfs, ".splog");
    for log in &logs {
        let mut bytes = vfs.read_file(log).unwrap();
        bytes[32..40].fill(0);
        vfs.write_file(log, &bytes).unwrap();
    }
    for salvages in [false, true] {
        let mut options = REFERRING.options(&vfs);
        options.read_only = true;
        if salvages {
            options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        }
        let db = Db::open(DIR, &options).unwrap();
        let all = [("default", "a"), ("default", "d")];
        let doubted = crate::doubts::in_doubt(&db, &all);
        assert_eq!(doubted.len(), if salvages { 2 } else { 0 }, "{:?}", db.recovery_doubts());
        let get = |key: &[u8]| db.get(&db.default_family(), key, &Default::default());
        assert_eq!(get(b"b").unwrap().as_deref(), Some(&b"1"[..]));
        let error = get(b"a").unwrap_err();
        assert!(error.kind() == ErrorKind::Corruption && !error.message().contains("wal_recovery_mode"), "{error}");
    }
    let report = repair(DIR, &REFERRING.options(&vfs)).unwrap();
    assert!(!report.lost.is_empty(), "{report}");
    assert!(Db::open(DIR, &REFERRING.options(&vfs)).is_ok());
}
