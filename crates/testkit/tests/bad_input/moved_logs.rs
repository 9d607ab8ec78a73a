//! A changed `wal_dir`: the WALs are found and both directories are named, in either direction of the change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::version::recover::recover;
use testkit::engine::{Db, Error, ErrorKind, OpenOptions, OtherFamilies, repair};
use testkit::run::DIR;
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, RealVfs, Rule, Vfs};

use crate::common::{copy, files, manifest, options, read_with};
use crate::restored_logs::{with_values_in, write_values};
use crate::rocksdb_rows::{back_up, database as whole_row};

pub fn with_logs_in(vfs: &Arc<MemoryVfs>, wal_dir: &str) -> OpenOptions {
    let mut options = options(vfs);
    options.db.create_if_missing = true;
    options.db.create_missing_column_families = true;
    options.db.wal_dir = wal_dir.to_owned();
    options
}

/// A closed database with a table, and one write in its WAL only.
fn database(wal_dir: &str) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, wal_dir)).unwrap();
    db.put(&db.default_family(), b"flushed", b"v", &Default::default()).unwrap();
    db.flush(&[&db.default_family()]).unwrap();
    db.put(&db.default_family(), b"k", b"v", &Default::default()).unwrap();
    vfs
}

/// Directory of an option value.
fn place(wal_dir: &str) -> &str {
    if wal_dir.is_empty() { DIR } else { wal_dir }
}

#[test]
fn a_changed_wal_dir_is_refused_with_both_directories() {
    for (was, is) in [("", "/wal"), ("/wal", ""), ("/wal", "/other")] {
        let vfs = database(was);
        let before = vfs.all_files();
        for read_only in [true, false] {
            vfs.create_dir_all(Path::new(place(is))).unwrap();
            let error = read_with(&OpenOptions { read_only, ..with_logs_in(&vfs, is) }, DIR).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
            assert!([was, is].iter().all(|dir| error.message().contains(place(dir))), "{error:?}");
        }
        assert!(before.iter().all(|file| vfs.exists(file).unwrap()), "nothing is deleted");
        let contents = read_with(&with_logs_in(&copy(&vfs), was), DIR).unwrap();
        assert_eq!(contents["default"][&b"k"[..]], b"v");
    }
}

/// The directory of the logs was moved, or lost: each door says what to do, and an empty one in its place leads to a report.
#[test]
fn missing_directory_of_logs_is_named_with_the_way_out() {
    let whole = database("/wal");
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    for path in files(&whole, "").into_iter().filter(|path| path.starts_with(DIR)) {
        vfs.write_file(&path, &whole.read_file(&path).unwrap()).unwrap();
    }
    let writing = OpenOptions { read_only: false, ..reading(&vfs, "/wal") };
    let how = CheckOptions { vfs: vfs.clone(), log_dir: Some("/wal".into()), ..CheckOptions::default() };
    let errors = [
        Db::open(DIR, &reading(&vfs, "/wal")).err(),
        Db::open(DIR, &writing).err(),
        repair(DIR, &writing).err(),
        check(Path::new(DIR), &how, &mut |_| {}).err(),
    ];
    for error in errors {
        let error = error.expect("the logs are not there");
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(Path::new("/wal"))), "{error}");
        assert!(error.message().contains("option wal_dir") && error.message().contains("repair"), "{error}");
    }
    vfs.create_dir_all(Path::new("/wal")).unwrap();
    assert!(!check(Path::new(DIR), &how, &mut |_| {}).unwrap().is_whole());
    assert!(!repair(DIR, &writing).unwrap().lost_nothing());
    assert_eq!(read_with(&reading(&vfs, "/wal"), DIR).unwrap()["default"].len(), 1);
}

#[test]
fn logs_that_moved_with_their_directory_are_found() {
    let vfs = database("/wal");
    vfs.create_dir_all(Path::new("/other")).unwrap();
    for name in vfs.read_dir(Path::new("/wal")).unwrap() {
        vfs.rename(&Path::new("/wal").join(&name), &Path::new("/other").join(&name)).unwrap();
    }
    for _ in 0..2 {
        let contents = read_with(&with_logs_in(&vfs, "/other"), DIR).unwrap();
        assert_eq!(contents["default"][&b"k"[..]], b"v");
    }
    // From then on the other directory is the one that is known.
    let error = read_with(&with_logs_in(&vfs, "/wal"), DIR).unwrap_err();
    assert!(error.message().contains("/other"), "{error:?}");
}

/// What a rescue says of a database whose logs it looks for in the wrong place. Nothing may change.
fn rescued(vfs: &Arc<MemoryVfs>, is: &str, rescue: impl FnOnce(&OpenOptions) -> Option<Error>) -> Error {
    vfs.create_dir_all(Path::new(place(is))).unwrap();
    let before = vfs.all_files();
    let error = rescue(&with_logs_in(vfs, is)).expect("logs lie in another directory");
    let kept = |file: &&std::path::PathBuf| !file.ends_with("LOCK") && !file.ends_with("LOG");
    let after = vfs.all_files();
    assert!(before.iter().filter(kept).eq(after.iter().filter(kept)), "{before:?} {after:?}");
    error
}

type Damage = fn(&MemoryVfs);

#[test]
fn no_rescue_takes_logs_in_another_directory_for_lost() {
    let lose_manifest: Damage = |vfs| vfs.remove_file(&manifest(vfs)).unwrap();
    let lose_current: Damage = |vfs| vfs.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    let lose_all: Damage = |vfs| {
        files(vfs, ".spmanifest").iter().for_each(|file| vfs.remove_file(file).unwrap());
        vfs.remove_file(&manifest(vfs)).unwrap();
    };
    for (was, is) in [("", "/wal"), ("/wal", ""), ("/wal", "/other")] {
        for (damage, is_recoverable) in
            [(None, true), (Some(lose_manifest), true), (Some(lose_current), true), (Some(lose_all), false)]
        {
            let vfs = database(was);
            damage.into_iter().for_each(|damage| damage(&vfs));
            let mut errors = vec![rescued(&vfs, is, |options| repair(DIR, options).err())];
            if is_recoverable {
                errors.push(rescued(&vfs, is, |options| {
                    let mut options = options.clone();
                    (options.db.best_efforts_recovery, options.db.create_if_missing) = (true, false);
                    Db::open(DIR, &options).err()
                }));
            }
            if damage.is_none() {
                errors.push(rescued(&vfs, is, |options| {
                    let log_dir = Some(is.into()).filter(|_| !is.is_empty());
                    let options = CheckOptions { vfs: options.vfs.clone(), log_dir, ..CheckOptions::default() };
                    check(Path::new(DIR), &options, &mut |_| ()).err()
                }));
            }
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
                assert!([was, is].iter().all(|dir| error.message().contains(place(dir))), "{error:?}");
                assert!(error.message().contains(&format!("open with wal_dir={}", place(was))), "{error:?}");
            }
            let right = with_logs_in(&vfs, was);
            repair(DIR, &right).unwrap();
            assert_eq!(read_with(&right, DIR).unwrap()["default"][&b"k"[..]], b"v");
        }
    }
}

/// The MANIFEST's note lags behind: the log of the last moments is named nowhere.
#[test]
fn a_log_in_another_directory_that_nothing_names_is_found() {
    for (was, is) in [("", "/wal"), ("/wal", "")] {
        let vfs = MemoryVfs::new(1);
        let db = Db::open(DIR, &with_logs_in(&vfs, was)).unwrap();
        db.put(&db.default_family(), b"k", b"v", &Default::default()).unwrap();
        let killed = copy(&vfs);
        drop(db);
        killed.create_dir_all(Path::new(place(is))).unwrap();
        let error = read_with(&with_logs_in(&killed, is), DIR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        repair(DIR, &with_logs_in(&killed, is)).unwrap_err();
        assert_eq!(read_with(&with_logs_in(&killed, was), DIR).unwrap()["default"][&b"k"[..]], b"v");
    }
}

/// A copy of files is as whole as its original, which goes on: its later logs are not the copy's.
#[test]
fn a_copy_does_not_want_the_later_logs_of_its_original() {
    let vfs = MemoryVfs::new(1);
    let open = |wal_dir| Db::open(DIR, &with_logs_in(&vfs, wal_dir)).unwrap();
    let put = |db: &Db, key: &str| db.put(&db.default_family(), key.as_bytes(), b"v", &Default::default()).unwrap();
    let db = open("/wal");
    put(&db, "k");
    db.flush(&[&db.default_family()]).unwrap();
    db.close().unwrap();
    let of_copy: Vec<_> = vfs.all_files().into_iter().filter(|path| path.starts_with(DIR)).collect();
    let of_copy: Vec<_> = of_copy.into_iter().map(|path| (vfs.read_file(&path).unwrap(), path)).collect();
    let db = open("/wal");
    put(&db, "later");
    drop(db);
    vfs.all_files().iter().filter(|path| path.starts_with(DIR)).for_each(|path| vfs.remove_file(path).unwrap());
    of_copy.iter().for_each(|(bytes, path)| vfs.write_file(path, bytes).unwrap());
    let logs = vfs.read_dir(Path::new("/wal")).unwrap();
    assert!(repair(DIR, &with_logs_in(&vfs, "")).unwrap().lost_nothing());
    let found = read_with(&with_logs_in(&vfs, ""), DIR).unwrap();
    assert!(found["default"].contains_key(&b"k"[..]) && !found["default"].contains_key(&b"later"[..]), "{found:?}");
    assert_eq!(vfs.read_dir(Path::new("/wal")).unwrap(), logs);
}

/// A copy of a running database has all logs. The original's next log could also be the copy's: it is refused, with the way out.
#[test]
fn a_copy_of_a_running_original_is_opened_by_a_salvage() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    let family = db.default_family();
    let put = |key: &str| db.put(&family, key.as_bytes(), b"v", &Default::default()).unwrap();
    put("k");
    for (from, to) in [(DIR, "/copy"), ("/wal", "/copy-wal")] {
        vfs.create_dir_all(Path::new(to)).unwrap();
        for name in vfs.read_dir(Path::new(from)).unwrap() {
            let bytes = vfs.read_file(&Path::new(from).join(&name)).unwrap();
            vfs.write_file(&Path::new(to).join(&name), &bytes).unwrap();
        }
    }
    put("later");
    let of_copy = with_logs_in(&copy(&vfs), "/copy-wal");
    assert!(Db::open("/copy", &of_copy).unwrap().recovery_doubts().is_empty(), "no log is newer");
    let logs = || vfs.read_dir(Path::new("/wal")).unwrap().into_iter().filter(|name| name.ends_with(".splog")).max();
    for _ in 0..2 {
        // A log is made ahead.
        let last = logs();
        (0..).take_while(|_| logs() == last).for_each(|number| put(&format!("later {number}")));
    }
    let before = vfs.read_dir(Path::new("/wal")).unwrap();
    let newer = copy(&vfs);
    let refused = with_logs_in(&newer, "/copy-wal");
    let unchanged = newer.all_files();
    let checked = CheckOptions { vfs: newer.clone(), log_dir: Some("/copy-wal".into()), ..CheckOptions::default() };
    let errors = [
        Db::open("/copy", &refused).err(),
        repair("/copy", &refused).err(),
        check(Path::new("/copy"), &checked, &mut |_| ()).err(),
    ];
    for error in errors.map(Option::unwrap) {
        let has = |part: &str| error.message().contains(part);
        assert!(has("wal_recovery_mode=kSkipAny") && has("open with wal_dir=/wal"), "{error:?}");
    }
    assert!(unchanged.iter().all(|file| newer.exists(file).unwrap()));
    let mut salvage = refused;
    salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let repaired = with_logs_in(&copy(&newer), "/copy-wal");
    let mut repairing = repaired.clone();
    repairing.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let report = repair("/copy", &repairing).unwrap();
    assert!(report.doubts.iter().any(|doubt| doubt.why.contains("is left out")), "{report}");
    for (options, doubts) in [(salvage, true), (repaired, false)] {
        let db = Db::open("/copy", &options).unwrap();
        assert_eq!(!db.recovery_doubts().is_empty(), doubts, "{:#?}", db.recovery_doubts());
        assert!(db.get(&db.default_family(), b"k", &Default::default()).unwrap().is_some());
        drop(db);
        assert_eq!(options.vfs.read_dir(Path::new("/wal")).unwrap(), before);
    }
}

/// A directory of RocksDB 11.9 with an unflushed WAL.
pub fn rocksdbs(vfs: &MemoryVfs, logs: &str, options_say: Option<&str>) {
    let fixture = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/fixtures/db-unflushed"));
    let real = RealVfs::new();
    for dir in [DIR, logs] {
        vfs.create_dir_all(Path::new(dir)).unwrap();
    }
    for name in real.read_dir(fixture).unwrap() {
        let bytes = vfs::read_all(&*real, &fixture.join(&name), 1 << 20, vfs::IoClass::Other).unwrap();
        let dir = if name.ends_with(".log") { logs } else { DIR };
        vfs.write_file(&Path::new(dir).join(&name), &bytes).unwrap();
    }
    if let Some(dir) = options_say {
        let text = format!(
            "[Version]\n  rocksdb_version=11.9.0\n  options_file_version=1.1\n[DBOptions]\n  wal_dir={dir}\n\
             [CFOptions \"default\"]\n"
        );
        vfs.write_file(&Path::new(DIR).join("OPTIONS-999999"), text.as_bytes()).unwrap();
    }
}

fn reading(vfs: &Arc<MemoryVfs>, wal_dir: &str) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone(), read_only: true, ..OpenOptions::default() };
    options.db.wal_dir = wal_dir.to_owned();
    options
}

#[test]
fn logs_of_rocksdbs_in_another_directory_are_found() {
    for (lie, said, open) in [(DIR, None, "/wal"), ("/wal", Some("/wal"), ""), ("/wal", Some("/wal"), "/other")] {
        let vfs = MemoryVfs::new(1);
        rocksdbs(&vfs, lie, said);
        vfs.create_dir_all(Path::new(place(open))).unwrap();
        let error = read_with(&reading(&vfs, open), DIR).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!([lie, place(open)].iter().all(|dir| error.message().contains(dir)), "{error:?}");
        let right = if lie == DIR { "" } else { lie };
        let in_tables = recover(&*vfs, Path::new(DIR)).unwrap().last_seq;
        assert!(Db::open(DIR, &reading(&vfs, right)).unwrap().latest_sequence_number() > in_tables);
    }
}

/// What each door tells of RocksDB's database with its logs in `wal_dir`: a read, an open for writing, a check and a repair.
fn doors(whole: &MemoryVfs, wal_dir: &str) -> Vec<Result<String, Error>> {
    let merge_operator = base::merge::by_name("uint64add");
    let family = testkit::engine::FamilyOptions { merge_operator, ..Default::default() };
    let other_families = || OtherFamilies::OpenWith(Box::new(family.clone()));
    let adopting = |read_only| {
        let vfs = copy(whole);
        let mut options =
            OpenOptions { adopt_rocksdb: true, read_only, other_families: other_families(), ..reading(&vfs, wal_dir) };
        options.db.ignore_unsupported_options = true;
        options
    };
    let open = |options: OpenOptions| Db::open(DIR, &options).map(|db| format!("{:?}", db.recovery_doubts()));
    let log_dir = Some(wal_dir).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let how = CheckOptions { vfs: copy(whole), log_dir, ..CheckOptions::default() };
    let checked = check(Path::new(DIR), &how, &mut |_| {}).map(|report| format!("{:?}", report.problems));
    let repaired = repair(DIR, &adopting(false)).map(|report| format!("{:?}", report.doubts));
    vec![open(adopting(true)), open(adopting(false)), checked, repaired]
}

/// RocksDB's copy of a database has the original's option `wal_dir`, and its own logs, if it has any, beside its tables.
#[test]
fn copy_that_rocksdb_made_is_not_read_with_the_logs_of_its_original() {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, "/wal", Some("/wal"));
    let told = doors(&vfs, "/wal");
    assert!(told.iter().all(|told| told.as_ref().is_ok_and(|told| !told.contains("log"))), "the original: {told:?}");
    for has_log in [false, true] {
        let vfs = copy(&vfs);
        vfs.remove_file(&Path::new(DIR).join("IDENTITY")).unwrap();
        if has_log {
            let log = vfs.read_file(Path::new("/wal/000016.log")).unwrap();
            vfs.write_file(&Path::new(DIR).join("000016.log"), &log).unwrap();
        }
        for result in doors(&vfs, "/wal") {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.message().contains("/wal") && error.message().contains(&format!("wal_dir={DIR}")), "{error}");
        }
        assert!(doors(&vfs, DIR).into_iter().all(|result| result.is_ok()), "has_log: {has_log}");
    }
}

/// RocksDB leaves a log at every close.
#[test]
fn lost_logs_of_rocksdbs_are_told() {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, "/wal", Some("/wal"));
    vfs.remove_file(Path::new("/wal/000016.log")).unwrap();
    for wal_dir in ["", "/wal"] {
        for (door, told) in doors(&vfs, wal_dir).into_iter().enumerate() {
            assert_eq!(told.is_err(), door == 1, "an open for writing refuses: {told:?}");
            let told = told.unwrap_or_else(|error| error.to_string());
            assert!(told.contains("RocksDB leaves a log at every close"), "{wal_dir}, door {door}: {told}");
        }
    }
}

/// A checkpoint has its original's id, a restored backup one of its own. The original's logs are not theirs: through no door.
#[test]
fn copies_leave_the_logs_of_their_original_alone() {
    let vfs = database("/wal");
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    db.checkpoint("/copies/checkpoint").unwrap();
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let engine = BackupEngine::open("/backups", &how).unwrap();
    engine.create_new_backup(&db, true).unwrap();
    engine.restore(1, "/copies/restored", &RestoreOptions::default()).unwrap();
    db.put(&db.default_family(), b"after", b"v", &Default::default()).unwrap();
    drop(db);
    let logs = || vfs.all_files().into_iter().filter(|path| path.starts_with("/wal")).collect::<Vec<_>>();
    let before = logs();
    for copy in ["/copies/checkpoint", "/copies/restored"] {
        let checked = CheckOptions { vfs: vfs.clone(), log_dir: Some("/wal".into()), ..CheckOptions::default() };
        let errors = [
            Db::open(copy, &with_logs_in(&vfs, "/wal")).err(),
            repair(copy, &with_logs_in(&vfs, "/wal")).err(),
            check(Path::new(copy), &checked, &mut |_| {}).err(),
        ];
        for error in errors {
            let is_told = |error: &Error| {
                error.kind() == ErrorKind::InvalidArgument && error.message().contains("this is a copy")
            };
            assert_eq!(error.as_ref().is_some_and(is_told), copy == "/copies/checkpoint", "{error:?}");
        }
    }
    let all = logs();
    assert!(before.iter().all(|log| all.contains(log)));
    // After its first open for writing each has an id of its own, and a deletion goes by what tells where the logs are.
    for (nth, copy_dir) in ["/copies/checkpoint", "/copies/restored"].into_iter().enumerate() {
        let put = |wal_dir: &str| {
            let db = Db::open(copy_dir, &with_logs_in(&vfs, wal_dir)).unwrap();
            db.put(&db.default_family(), b"own", b"v", &Default::default()).unwrap();
            db.flush(&[&db.default_family()]).unwrap();
            assert!(db.get(&db.default_family(), b"after", &Default::default()).unwrap().is_none());
            db.close().unwrap();
        };
        put("");
        put("/wal");
        if nth == 1 {
            vfs.remove_file(&Path::new(copy_dir).join("CURRENT")).unwrap();
        }
        Db::destroy(copy_dir, Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    }
    let of_original = |path: &PathBuf| before.contains(path);
    assert_eq!(logs().into_iter().filter(of_original).collect::<Vec<_>>(), before);
    vfs.create_dir_all(Path::new("/wal")).unwrap();
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    assert!(db.get(&db.default_family(), b"after", &Default::default()).unwrap().is_some());
}

/// In a directory that is empty for a moment, a copy gets an id of its own: its logs are none of the original's.
#[test]
fn copy_whose_logs_go_elsewhere_gets_an_id_of_its_own() {
    let vfs = database("/wal");
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    db.checkpoint("/with-log").unwrap();
    db.flush(&[&db.default_family()]).unwrap();
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    assert!(files(&vfs, ".splog").iter().all(|log| !log.starts_with("/wal")), "all is in tables");
    let error = Db::open("/with-log", &with_logs_in(&vfs, "/wal")).err().expect("its logs are beside its tables");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let put = |dir: &str, key: &[u8]| {
        let db = Db::open(dir, &with_logs_in(&vfs, "/wal")).unwrap();
        db.put(&db.default_family(), key, b"v", &Default::default()).unwrap();
    };
    put("/copy", b"of-copy");
    put(DIR, b"of-original");
    for (dir, key, other) in
        [("/copy", b"of-copy".to_vec(), b"of-original".to_vec()), (DIR, b"of-original".to_vec(), b"of-copy".to_vec())]
    {
        let found = read_with(&reading(&vfs, "/wal"), dir).unwrap();
        assert!(found["default"].contains_key(&key) && !found["default"].contains_key(&other), "{dir}: {found:?}");
        let how = CheckOptions { vfs: vfs.clone(), log_dir: Some("/wal".into()), ..CheckOptions::default() };
        assert!(check(Path::new(dir), &how, &mut |_| {}).unwrap().is_whole(), "{dir}");
    }
}

/// Where a copy's log is lost, no door goes on without a word, whatever directory its logs are to be in.
#[test]
fn copy_that_lost_its_log_is_told_under_another_log_directory() {
    let made = database("");
    Db::open(DIR, &with_logs_in(&made, "")).unwrap().checkpoint("/copy").unwrap();
    let log = made
        .all_files()
        .into_iter()
        .rfind(|path| path.starts_with("/copy") && path.extension() == Some("splog".as_ref()));
    let log = log.expect("the copy needs it");
    for is_cut in [false, true] {
        let vfs = copy(&made);
        if is_cut {
            vfs.truncate(&log, 0).unwrap()
        } else {
            vfs.remove_file(&log).unwrap()
        }
        for wal_dir in ["", "/other"] {
            let vfs = copy(&vfs);
            vfs.create_dir_all(Path::new(place(wal_dir))).unwrap();
            let mut options = with_logs_in(&vfs, wal_dir);
            Db::open("/copy", &options).err().expect("a needed log is not there");
            options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
            let told = Db::open("/copy", &options).map(|db| !db.recovery_doubts().is_empty());
            assert!(told.unwrap_or(true), "cut: {is_cut}, {wal_dir}");
        }
    }
}

/// The directory of a copy under another name is the copy's own.
#[test]
fn copy_opens_under_its_own_directory_by_any_name() {
    let vfs = database("");
    Db::open(DIR, &with_logs_in(&vfs, "")).unwrap().checkpoint("/copy").unwrap();
    for _ in 0..2 {
        let options = with_logs_in(&vfs, "/copy/.");
        assert!(read_with(&OpenOptions { read_only: true, ..options.clone() }, "/copy").is_ok());
        Db::open("/copy", &options).unwrap();
    }
}

/// An export has an id of its own, and the form of RocksDB's directories.
#[test]
fn export_leaves_the_logs_of_its_original_alone() {
    let vfs = database("/wal");
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    db.export("/export", &Default::default()).unwrap();
    db.put(&db.default_family(), b"after", b"v", &Default::default()).unwrap();
    drop(db);
    let logs = || vfs.all_files().into_iter().filter(|path| path.starts_with("/wal")).collect::<Vec<_>>();
    let before = logs();
    let adopting = OpenOptions { adopt_rocksdb: true, ..with_logs_in(&vfs, "/wal") };
    for _ in 0..2 {
        let db = Db::open("/export", &adopting).unwrap();
        assert!(db.get(&db.default_family(), b"after", &Default::default()).unwrap().is_none());
        db.put(&db.default_family(), b"own", b"v", &Default::default()).unwrap();
        db.close().unwrap();
    }
    Db::destroy("/export", Some(Path::new("/wal")), &adopting.vfs).unwrap();
    assert_eq!(logs(), before);
    let found = read_with(&with_logs_in(&vfs, "/wal"), DIR).unwrap();
    assert!(found["default"].contains_key(&b"after"[..]) && !found["default"].contains_key(&b"own"[..]));
}

/// A deletion that is cut off takes the logs along when it is repeated.
#[test]
fn repeated_deletion_knows_where_the_logs_are() {
    let whole = database("/wal");
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = Db::destroy(DIR, Some(Path::new("/wal")), &(faulty as Arc<dyn Vfs>));
        Db::destroy(DIR, Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
        assert_eq!(vfs.all_files(), Vec::<PathBuf>::new(), "call {nth}");
        if ended.is_ok() {
            return;
        }
    }
}

/// After a power loss within it, a database is as it was or is not opened, and the deletion takes all along when it is repeated.
#[test]
fn deletion_is_repeated_after_a_power_loss() {
    let policies = [
        CrashPolicy::NothingUnsyncedKept,
        CrashPolicy::AllKept,
        CrashPolicy::RandomBlocksKept,
        CrashPolicy::DirectoryEntriesLost,
    ];
    let whole = database("/wal");
    let expected = read_with(&reading(&whole, "/wal"), DIR).unwrap();
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = Db::destroy(DIR, Some(Path::new("/wal")), &(faulty as Arc<dyn Vfs>));
        for policy in policies {
            let vfs = vfs.crash_clone(nth, policy);
            if let Ok(found) = read_with(&reading(&vfs, "/wal"), DIR) {
                assert!(found == expected, "call {nth}, {policy:?}");
            }
            Db::destroy(DIR, Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
            assert_eq!(vfs.all_files(), Vec::<PathBuf>::new(), "call {nth}, {policy:?}");
        }
        if ended.is_ok() {
            return;
        }
    }
}

/// Its MANIFEST tells the kind of the logs, under the mark, too.
#[test]
fn repeated_deletion_knows_rocksdbs_logs() {
    let whole = MemoryVfs::new(1);
    rocksdbs(&whole, "/wal", Some("/wal"));
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = Db::destroy(DIR, Some(Path::new("/wal")), &(faulty as Arc<dyn Vfs>));
        Db::destroy(DIR, Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
        assert!(!vfs.all_files().iter().any(|path| path.starts_with("/wal")), "call {nth}: {:?}", vfs.all_files());
        if ended.is_ok() {
            return;
        }
    }
}

/// The MANIFEST and its copy tell where the logs are.
#[test]
fn deletion_without_current_takes_the_logs_along() {
    let as_vfs = |vfs: &Arc<MemoryVfs>| vfs.clone() as Arc<dyn Vfs>;
    for damaged in [None, Some("MANIFEST")] {
        let (vfs, current) = (database("/wal"), Path::new(DIR).join("CURRENT"));
        vfs.remove_file(&current).unwrap();
        damaged.into_iter().for_each(|text| vfs.write_file(&current, text.as_bytes()).unwrap());
        Db::destroy(DIR, Some(Path::new("/wal")), &as_vfs(&vfs)).unwrap();
        assert_eq!(vfs.all_files(), Vec::<PathBuf>::new(), "{damaged:?}");
        Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    }
    // Without a MANIFEST nothing tells, and the database that is made anew says what to do.
    let vfs = database("/wal");
    vfs.remove_file(&manifest(&vfs)).unwrap();
    files(&vfs, ".spmanifest").iter().for_each(|file| vfs.remove_file(file).unwrap());
    Db::destroy(DIR, Some(Path::new("/wal")), &as_vfs(&vfs)).unwrap();
    let error = Db::open(DIR, &with_logs_in(&vfs, "/wal")).err().expect("the logs are there");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("if that database is gone, delete its logs"), "{error}");
}

const LOG: &str = "000016.log";

/// Adds a log with these bytes.
fn with_log(vfs: &Arc<MemoryVfs>, dir: &str, name: &str, bytes: &[u8]) -> Arc<MemoryVfs> {
    let vfs = copy(vfs);
    vfs.create_dir_all(Path::new(dir)).unwrap();
    vfs.write_file(&Path::new(dir).join(name), bytes).unwrap();
    vfs
}

#[track_caller]
fn are_refused(vfs: &MemoryVfs, wal_dir: &str, dirs: [&str; 2]) {
    for result in doors(vfs, wal_dir) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(dirs.iter().all(|dir| error.message().contains(dir)), "{error}");
    }
}

#[track_caller]
fn are_whole(vfs: &MemoryVfs, wal_dir: &str) {
    let told = doors(vfs, wal_dir);
    assert!(told.iter().all(|told| told.as_ref().is_ok_and(|told| !told.contains("log"))), "{told:?}");
}

/// Each of two databases of RocksDB's has its logs in a directory of its own. A copy of one is told by its bytes.
#[test]
fn logs_of_another_of_rocksdbs_databases_are_not_taken() {
    let whole = MemoryVfs::new(1);
    rocksdbs(&whole, "/wal", Some("/wal"));
    let bytes = whole.read_file(&Path::new("/wal").join(LOG)).unwrap();
    let mut others = bytes.clone();
    *others.last_mut().unwrap() ^= 1;
    let dirs = ["/other", "/wal"];
    are_refused(&with_log(&whole, "/other", LOG, &others), "/other", dirs);
    are_refused(&with_log(&whole, "/other", LOG, b""), "/other", dirs);
    are_refused(&with_log(&with_log(&whole, "/wal", LOG, b""), "/other", LOG, &others), "/other", dirs);
    let copied = with_log(&whole, "/other", LOG, &bytes);
    are_whole(&copied, "/other");
    are_whole(&with_log(&copied, "/wal", LOG, &[&bytes[..], b"later"].concat()), "/other");
    // The MANIFEST has given the number 18, and the open that wrote OPTIONS-999999 all before it.
    for name in ["000018.log", "999998.log"] {
        are_refused(&with_log(&copied, "/wal", name, &bytes), "/other", dirs);
    }
    let went_on = with_log(&copied, "/wal", "1000001.log", &bytes);
    went_on.remove_file(&Path::new("/wal").join(LOG)).unwrap();
    are_whole(&went_on, "/other");
    let moved = with_log(&whole, "/other", LOG, &bytes);
    moved.remove_file(&Path::new("/wal").join(LOG)).unwrap();
    are_whole(&moved, "/other");
}

/// A directory of RocksDB's without logs of its own, a flushed copy or an original, with the `wal_dir` of another one: no door takes that
/// one's logs, whatever their numbers, nor does what deletes or replaces the database.
#[test]
fn logs_of_another_of_rocksdbs_databases_stay_where_none_are_named() {
    for (log, is_original) in [("000004.log", false), ("000004.log", true), ("000099.log", false), ("000099.log", true)]
    {
        let vfs = MemoryVfs::new(1);
        rocksdbs(&vfs, "/gone", None);
        let bytes = vfs.read_file(&Path::new("/gone").join(LOG)).unwrap();
        let vfs = with_log(&vfs, "/others", log, &bytes);
        vfs.remove_file(&Path::new("/gone").join(LOG)).unwrap();
        if !is_original {
            vfs.remove_file(&Path::new(DIR).join("IDENTITY")).unwrap();
        }
        are_refused(&vfs, "/others", [DIR, "/others"]);
        let stays = |vfs: &MemoryVfs, what: &str| {
            assert!(vfs.exists(&Path::new("/others").join(log)).unwrap(), "{log}, {is_original}: {what}");
        };
        let destroyed = copy(&vfs);
        Db::destroy(DIR, Some(Path::new("/others")), &(destroyed.clone() as Arc<dyn Vfs>)).unwrap();
        stays(&destroyed, "destroyed");
        let how = RestoreOptions { wal_dir: Some("/others".into()), ..RestoreOptions::default() };
        let engine = |vfs: &Arc<MemoryVfs>| {
            let vfs = vfs.clone();
            BackupEngine::open("/backups", &BackupOptions { vfs, ..BackupOptions::default() }).unwrap()
        };
        let rocksdbs = copy(&vfs);
        back_up(&rocksdbs, &whole_row(), 9);
        let error = engine(&rocksdbs).restore(1, DIR, &how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        stays(&rocksdbs, "a backup of RocksDB's");
        let ours = copy(&vfs);
        let made = OpenOptions { vfs: ours.clone(), ..OpenOptions::create_if_missing() };
        engine(&ours).create_new_backup(&Db::open("/ours", &made).unwrap(), true).unwrap();
        engine(&ours).restore(1, DIR, &how).unwrap();
        stays(&ours, "a backup of ours");
    }
}

/// RocksDB that goes on in another directory leaves its last log beside the tables, empty.
#[test]
fn log_that_rocksdb_left_beside_the_tables_hides_no_other() {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, "/wal", Some("/wal"));
    let bytes = vfs.read_file(&Path::new("/wal").join(LOG)).unwrap();
    let mut others = bytes.clone();
    *others.last_mut().unwrap() ^= 1;
    let goes_on = with_log(&vfs, "/wal", "000018.log", b"");
    let left = with_log(&goes_on, DIR, "000017.log", b"");
    are_whole(&left, "/wal");
    for wal_dir in ["", DIR] {
        are_refused(&left, wal_dir, [DIR, "/wal"]);
    }
    // It has writes, or is newer: of a copy.
    for (name, bytes) in [("000017.log", &bytes[..]), ("000020.log", b"")] {
        are_refused(&with_log(&goes_on, DIR, name, bytes), "/wal", [DIR, "/wal"]);
    }
    // The logs were copied to the tables.
    are_whole(&with_log(&goes_on, DIR, LOG, &bytes), "");
    // The database was moved, and in its old place is another one.
    let moved = with_log(&with_log(&vfs, DIR, LOG, &bytes), "/wal", LOG, &others);
    are_refused(&moved, "", [DIR, "/wal"]);
    are_whole(&with_log(&moved, "/wal", "CURRENT", b"MANIFEST-000005\n"), "");
}

/// A checkpoint of RocksDB's whose MANIFEST is lost is repaired without the logs of its original.
#[test]
fn copy_that_rocksdb_made_is_repaired_without_its_manifest() {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, "/wal", Some("/wal"));
    vfs.remove_file(&Path::new(DIR).join("MANIFEST-000005")).unwrap();
    let original = copy(&vfs);
    vfs.remove_file(&Path::new(DIR).join("IDENTITY")).unwrap();
    let logs = vfs.read_dir(Path::new("/wal")).unwrap();
    let repaired = |vfs: &Arc<MemoryVfs>, wal_dir: &str| {
        let merge_operator = base::merge::by_name("uint64add");
        let family = testkit::engine::FamilyOptions { merge_operator, ..Default::default() };
        let other_families = OtherFamilies::OpenWith(Box::new(family));
        repair(DIR, &OpenOptions { adopt_rocksdb: true, read_only: false, other_families, ..reading(vfs, wal_dir) })
    };
    let error = repaired(&vfs, "/wal").unwrap_err();
    assert!(error.message().contains(&format!("open it with wal_dir={DIR}")), "{error}");
    assert!(!vfs.all_files().iter().any(|file| file.starts_with(format!("{DIR}/lost"))), "nothing is changed");
    repaired(&vfs, DIR).unwrap();
    assert_eq!(vfs.read_dir(Path::new("/wal")).unwrap(), logs);
    // An original's logs are not passed over.
    let error = repaired(&original, DIR).unwrap_err();
    assert!(error.message().contains("open with wal_dir=/wal"), "{error}");
    repaired(&original, "/wal").unwrap();
}

/// RocksDB's copy without a log, opened without its `wal_dir`, is not told to take its original's logs.
#[test]
fn copy_that_rocksdb_made_is_told_to_open_with_its_own_directory() {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, "/wal", Some("/wal"));
    vfs.remove_file(&Path::new(DIR).join("IDENTITY")).unwrap();
    for result in doors(&vfs, "") {
        let error = result.unwrap_err();
        assert!(error.message().contains(&format!("If it is a copy, open it with wal_dir={DIR}")), "{error}");
    }
}

/// Tables of a copy were made under the id of its original. Its logs tell its own.
#[test]
fn copy_without_a_manifest_is_repaired_with_its_logs() {
    let vfs = database("");
    let options = with_logs_in(&vfs, "");
    Db::open(DIR, &options).unwrap().checkpoint("/copy").unwrap();
    let db = Db::open("/copy", &options).unwrap();
    db.put(&db.default_family(), b"own", b"v", &Default::default()).unwrap();
    drop(db);
    let is_gone = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        path.starts_with("/copy")
            && ["MANIFEST", "spmanifest", "CURRENT", "IDENTITY"].iter().any(|part| name.contains(part))
    };
    vfs.all_files().iter().filter(|path| is_gone(path)).for_each(|path| vfs.remove_file(path).unwrap());
    let report = repair("/copy", &options).unwrap();
    assert!(report.doubts.iter().all(|doubt| !doubt.why.contains("missing")), "{report}");
    assert!(read_with(&options, "/copy").unwrap()["default"].contains_key(&b"own"[..]));
}

/// All is in tables, and their values lie in logs of the other directory: each door names it, and changes nothing.
#[test]
fn logs_of_values_in_another_directory_are_found() {
    for (was, is) in [("/wal", ""), ("", "/wal"), ("/wal", "/other")] {
        let vfs = MemoryVfs::new(1);
        let options = with_values_in(&vfs, was);
        write_values(&options, DIR, b'a');
        // A later MANIFEST than that of the logs.
        Db::open(DIR, &options).unwrap().close().unwrap();
        let expected = read_with(&with_values_in(&copy(&vfs), was), DIR).unwrap();
        vfs.create_dir_all(Path::new(place(is))).unwrap();
        let wrong = with_values_in(&vfs, is);
        let mut salvaging = wrong.clone();
        salvaging.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        let mut going_back = wrong.clone();
        (going_back.db.best_efforts_recovery, going_back.db.create_if_missing) = (true, false);
        let how = CheckOptions { vfs: vfs.clone(), log_dir: Some(place(is).into()), ..CheckOptions::default() };
        let reading = OpenOptions { read_only: true, ..wrong.clone() };
        let before = vfs.all_files();
        let errors = [
            Db::open(DIR, &wrong).err(),
            Db::open(DIR, &reading).err(),
            Db::open(DIR, &salvaging).err(),
            Db::open(DIR, &going_back).err(),
            repair(DIR, &wrong).err(),
            repair(DIR, &salvaging).err(),
            check(Path::new(DIR), &how, &mut |_| ()).err(),
        ];
        for (door, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("{was:?} {is:?}, door {door}"));
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "door {door}: {error}");
            assert!(error.message().contains(&format!("open with wal_dir={}", place(was))), "door {door}: {error}");
        }
        assert!(before.iter().all(|file| vfs.exists(file).unwrap()));
        let found = read_with(&with_values_in(&vfs, was), DIR).unwrap();
        assert!(found == expected && found["default"].len() == 40);
    }
}
