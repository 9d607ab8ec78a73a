//! Logs where backups are restored to: those of an original, of other databases, and those that tables need for values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::version::recover::recover;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, WriteBatch, repair};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Operation, Rule, Vfs, write_all};

use crate::common::{copy, read_with};
use crate::moved_logs::with_logs_in;
use crate::rocksdb_rows::{back_up, database as whole_row};

const BACKUPS: &str = "/backups";

fn engine_in(vfs: Arc<dyn Vfs>, backups: &str) -> BackupEngine {
    BackupEngine::open(backups, &BackupOptions { vfs, ..BackupOptions::default() }).unwrap()
}

fn with_wal_dir(wal_dir: &str) -> RestoreOptions {
    RestoreOptions { wal_dir: Some(wal_dir.into()), ..RestoreOptions::default() }
}

fn put(db: &Db, key: &[u8], value: &[u8]) {
    db.put(&db.default_family(), key, value, &Default::default()).unwrap();
}

fn files_in(vfs: &MemoryVfs, dir: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = vfs.all_files().into_iter().filter(|path| path.starts_with(dir));
    paths.map(|path| (path.clone(), vfs.read_file(&path).unwrap())).collect()
}

/// A copy that was not opened for writing yet has its original's id: logs beside it may be its original's.
#[test]
fn no_logs_are_kept_over_a_copy_that_was_not_opened() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, "")).unwrap();
    put(&db, b"k", b"v");
    let engine = engine_in(vfs.clone(), BACKUPS);
    engine.create_new_backup(&db, true).unwrap();
    put(&db, b"later", b"v");
    db.checkpoint("/copy").unwrap();
    let keeping = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let before = files_in(&vfs, "/copy");
    let error = engine.restore(1, "/copy", &keeping).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("open it once, or restore without keep_log_files"), "{error}");
    vfs.remove_file(Path::new("/copy/LOCK")).unwrap();
    assert!(files_in(&vfs, "/copy") == before, "nothing is changed");
    drop(db);
    engine.restore(1, DIR, &keeping).unwrap();
    assert_eq!(read_with(&with_logs_in(&vfs, ""), DIR).unwrap()["default"].len(), 2, "the original keeps its logs");
}

/// A restored backup has an id of its own at once, its logs included: in one directory it and its original leave each other's alone.
#[test]
fn restored_backup_shares_the_log_directory_of_its_original() {
    let vfs = MemoryVfs::new(1);
    let open = |dir: &str| Db::open(dir, &with_logs_in(&vfs, "/wal"));
    let engine = engine_in(vfs.clone(), BACKUPS);
    let restore = |id| engine.restore(id, "/restored", &with_wal_dir("/wal"));
    let db = open(DIR).unwrap();
    put(&db, b"k", b"v");
    engine.create_new_backup(&db, false).unwrap();
    let error = restore(1).unwrap_err();
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.message().contains("another database's log"),
        "{error}"
    );
    engine.create_new_backup(&db, true).unwrap();
    put(&db, b"later", b"v");
    drop(db);
    let logs = files_in(&vfs, "/wal");
    for _ in 0..2 {
        restore(2).unwrap();
        put(&open("/restored").unwrap(), b"own", b"v");
        assert!(logs.iter().all(|(path, bytes)| vfs.read_file(path).is_ok_and(|found| found == *bytes)));
    }
    put(&open(DIR).unwrap(), b"last", b"v");
    let keys = |dir: &str| -> Vec<Vec<u8>> { contents(&with_logs_in(&vfs, "/wal"), dir).into_keys().collect() };
    assert_eq!(keys("/restored"), [b"k".to_vec(), b"own".to_vec()]);
    assert_eq!(keys(DIR), [b"k".to_vec(), b"last".to_vec(), b"later".to_vec()]);
    Db::destroy("/restored", Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    assert_eq!(keys(DIR).len(), 3);
}

/// What comes from a backup with its logs, where the original has none at the moment.
#[test]
fn restored_logs_are_not_those_of_the_original() {
    let vfs = MemoryVfs::new(1);
    let faulty = FaultVfs::new(vfs.clone());
    let mut options = OpenOptions { vfs: faulty.clone(), ..with_logs_in(&vfs, "/wal") };
    options.db.large_batch_bytes = 4 << 10;
    let db = Db::open(DIR, &options).unwrap();
    put(&db, b"k", b"v");
    // The writer of a large batch flushes it.
    faulty.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Create).path(".sst").sticky());
    let mut batch = WriteBatch::new();
    (0..10u8).for_each(|i| batch.put(db.default_family().id(), &[b'l', i], &[i; 1000]));
    db.write(&batch, &Default::default()).unwrap();
    let engine = engine_in(vfs.clone(), BACKUPS);
    engine.create_new_backup(&db, false).unwrap();
    faulty.clear();
    drop(db);
    let db = Db::open(DIR, &options).unwrap();
    db.flush(&[&db.default_family()]).unwrap();
    db.close().unwrap();
    for (path, _) in files_in(&vfs, "/wal") {
        vfs.rename(&path, &Path::new("/elsewhere").join(path.file_name().unwrap())).unwrap();
    }
    engine.restore(1, "/restored", &with_wal_dir("/wal")).unwrap();
    let brought = files_in(&vfs, "/wal");
    assert!(brought.keys().any(|path| path.extension().is_some_and(|end| end == "spbatch")), "{:?}", brought.keys());
    // The original passes over them, and makes its own.
    put(&Db::open(DIR, &options).unwrap(), b"later", b"v");
    assert!(brought.iter().all(|(path, bytes)| vfs.read_file(path).is_ok_and(|found| found == *bytes)));
    assert_eq!(contents(&options, "/restored").len(), 11);
    put(&Db::open("/restored", &options).unwrap(), b"own", b"v");
    assert_eq!((contents(&options, "/restored").len(), contents(&options, DIR).len()), (12, 12));
    let how = CheckOptions { vfs: vfs.clone(), log_dir: Some("/wal".into()), ..CheckOptions::default() };
    assert!(["/restored", DIR].iter().all(|dir| check(Path::new(dir), &how, &mut |_| {}).unwrap().is_whole()));
}

/// The mark of a cut-off restore tells whose logs it was about to delete. For others it proves nothing.
#[test]
fn mark_of_a_restore_tells_whose_logs_go() {
    let vfs = MemoryVfs::new(1);
    for (dir, wal_dir, backups) in [("/one", "", "/backups-of-one"), ("/two", "/wal", "/backups")] {
        let db = Db::open(dir, &with_logs_in(&vfs, wal_dir)).unwrap();
        put(&db, b"k", dir.as_bytes());
        engine_in(vfs.clone(), backups).create_new_backup(&db, true).unwrap();
        put(&db, b"later", dir.as_bytes());
    }
    let logs = files_in(&vfs, "/wal");
    for operation in [Operation::Rename, Operation::RemoveFile, Operation::Lock, Operation::SyncDir, Operation::Create]
    {
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(operation).nth(2).sticky());
        let _ = engine_in(faulty, "/backups-of-one").restore(1, "/restored", &with_wal_dir("/wal"));
        engine_in(vfs.clone(), "/backups").restore(1, "/restored", &with_wal_dir("/wal")).unwrap();
        assert!(
            logs.iter().all(|(path, bytes)| vfs.read_file(path).is_ok_and(|found| found == *bytes)),
            "{operation:?}"
        );
        assert_eq!(contents(&with_logs_in(&vfs, "/wal"), "/restored")[&b"k"[..]], b"/two");
        engine_in(vfs.clone(), "/backups-of-one").restore(1, "/restored", &with_wal_dir("/wal")).unwrap();
        assert_eq!(contents(&with_logs_in(&vfs, "/wal"), "/restored")[&b"k"[..]], b"/one");
    }
    assert_eq!(contents(&with_logs_in(&vfs, "/wal"), "/two").len(), 2);
}

pub fn with_values_in(vfs: &Arc<MemoryVfs>, wal_dir: &str) -> OpenOptions {
    let trie = r#"trie:{"convert_to_sst":"kFileMmap","ref_log_format":"kPlainLogRef"}"#;
    let family =
        FamilyOptions { memtable_factory: trie.into(), disable_auto_compactions: true, ..FamilyOptions::default() };
    let mut options = with_logs_in(vfs, wal_dir).family("default", family);
    options.db.memtable_as_log_index = true;
    options
}

/// Writes values of 1 KiB, and flushes: the tables refer to them in the log.
pub fn write_values(options: &OpenOptions, dir: &str, mark: u8) {
    let db = Db::open(dir, options).unwrap();
    (0..40u8).for_each(|i| put(&db, &[mark, i], &[mark ^ i; 1000]));
    db.flush(&[&db.default_family()]).unwrap();
    db.close().unwrap();
}

fn contents(options: &OpenOptions, dir: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    read_with(&OpenOptions { read_only: true, ..options.clone() }, dir).unwrap().remove("default").unwrap()
}

/// Logs of values of a restored backup are its own: each database keeps and deletes its own, in directories of their own and in one.
#[test]
fn restored_values_are_in_logs_of_their_own() {
    for shares in [false, true] {
        let vfs = MemoryVfs::new(1);
        let options = with_values_in(&vfs, "/wal");
        write_values(&options, DIR, b'a');
        let of_original = contents(&options, DIR);
        let engine = engine_in(vfs.clone(), BACKUPS);
        let db = Db::open(DIR, &options).unwrap();
        engine.create_new_backup(&db, true).unwrap();
        db.close().unwrap();
        let logs = files_in(&vfs, "/wal");
        assert!(logs.values().any(|bytes| bytes.len() > 40_000), "values are in logs");
        let error = engine.restore(1, "/restored", &with_wal_dir("/wal")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        let wal_dir = if shares { "/wal" } else { "/other" };
        if shares {
            // The values of the original move, and then its logs are gone.
            let db = Db::open(DIR, &options).unwrap();
            db.compact_range(&db.default_family(), None, None, &Default::default()).unwrap();
            db.close().unwrap();
        }
        engine.restore(1, "/restored", &with_wal_dir(wal_dir)).unwrap();
        write_values(&options, DIR, b'o');
        let of_restored = with_values_in(&vfs, wal_dir);
        let before = files_in(&vfs, wal_dir);
        let db = Db::open("/restored", &of_restored).unwrap();
        db.compact_range(&db.default_family(), None, None, &Default::default()).unwrap();
        db.close().unwrap();
        assert!(contents(&of_restored, "/restored") == of_original && contents(&options, DIR).len() == 80);
        let gone = before.keys().filter(|path| !vfs.exists(path).unwrap()).count();
        assert!(gone > 0, "its values moved: {:?}", before.keys());
        write_values(&of_restored, "/restored", b'r');
        assert_eq!((contents(&of_restored, "/restored").len(), contents(&options, DIR).len()), (80, 80));
    }
}

/// A restore of a database to its own directories ends as whole after a fault at any call.
#[test]
fn restore_with_values_is_begun_again() {
    let made = MemoryVfs::new(1);
    write_values(&with_values_in(&made, "/wal"), DIR, b'a');
    let back_up = |dir: &str, wal_dir: &str| {
        let db = Db::open(dir, &with_values_in(&made, wal_dir)).unwrap();
        engine_in(made.clone(), BACKUPS).create_new_backup(&db, true).unwrap();
        db.close().unwrap();
    };
    back_up(DIR, "/wal");
    engine_in(made.clone(), BACKUPS).restore(1, "/copy", &with_wal_dir("/copy-wal")).unwrap();
    write_values(&with_values_in(&made, "/copy-wal"), "/copy", b'b');
    back_up("/copy", "/copy-wal");
    let expected = contents(&with_values_in(&made, "/copy-wal"), "/copy");
    assert_eq!(expected.len(), 80);
    for nth in 1.. {
        let vfs = copy(&made);
        let faulty = FaultVfs::new(vfs.clone());
        let engine = engine_in(faulty.clone(), BACKUPS);
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = engine.restore(2, "/copy", &with_wal_dir("/copy-wal"));
        let again = engine_in(vfs.clone(), BACKUPS).restore(2, "/copy", &with_wal_dir("/copy-wal"));
        again.unwrap_or_else(|error| panic!("call {nth}: {error}"));
        let options = with_values_in(&vfs, "/copy-wal");
        assert_eq!(contents(&options, "/copy"), expected, "call {nth}");
        let how = CheckOptions { vfs: vfs.clone(), log_dir: Some("/copy-wal".into()), ..CheckOptions::default() };
        assert!(check(Path::new("/copy"), &how, &mut |_| {}).unwrap().is_whole(), "call {nth}");
        write_values(&options, "/copy", b'c');
        assert_eq!(contents(&options, "/copy").len(), 120, "call {nth}");
        if ended.is_ok() {
            return;
        }
    }
}

/// The table is in the backups already. Its values lie in a log that lost a part since: the next backup is no backup.
#[test]
fn values_that_were_lost_since_a_backup_are_not_backed_up_as_whole() {
    let vfs = MemoryVfs::new(1);
    let options = with_values_in(&vfs, "/wal");
    write_values(&options, DIR, b'a');
    let engine = engine_in(vfs.clone(), BACKUPS);
    let back_up = || engine.create_new_backup(&Db::open(DIR, &options).unwrap(), true);
    back_up().unwrap();
    let (log, bytes) = files_in(&vfs, "/wal").into_iter().max_by_key(|(_, bytes)| bytes.len()).unwrap();
    vfs.truncate(&log, bytes.len() / 2).unwrap();
    let error = back_up().unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.path().is_some(), "{error}");
    engine.verify(1).unwrap();
    engine.restore(1, "/restored", &RestoreOptions::default()).unwrap();
    assert_eq!(contents(&with_values_in(&vfs, ""), "/restored").len(), 40);
}

/// Changes the header of each log in a directory so that nothing tells whose it is.
fn hide_owners(vfs: &MemoryVfs, dir: &str) {
    for (path, mut bytes) in files_in(vfs, dir) {
        *bytes.get_mut(40).unwrap() ^= 1;
        write_all(vfs, &path, IfExists::Truncate, &bytes, IoClass::Other).unwrap();
    }
}

/// A log whose header is damaged, or cannot be read, may be a neighbour's: only its own database keeps it or lets it go.
#[test]
fn logs_of_nobody_known_stay_in_a_shared_directory() {
    let vfs = MemoryVfs::new(1);
    let options = with_logs_in(&vfs, "/wal");
    let engine = engine_in(vfs.clone(), BACKUPS);
    let db = Db::open(DIR, &options).unwrap();
    put(&db, b"k", b"v");
    engine.create_new_backup(&db, true).unwrap();
    drop(db);
    let own = files_in(&vfs, "/wal");
    engine.restore(1, "/restored", &with_wal_dir("/wal")).unwrap();
    let db = Db::open("/restored", &options).unwrap();
    for i in 0..3u8 {
        put(&db, &[i], b"of the neighbour");
        db.flush(&[&db.default_family()]).unwrap();
    }
    put(&db, b"last", b"of the neighbour");
    drop(db);
    let neighbours: BTreeMap<_, _> =
        files_in(&vfs, "/wal").into_iter().filter(|(path, _)| !own.contains_key(path)).collect();
    vfs.create_dir_all(Path::new("/aside")).unwrap();
    neighbours.keys().for_each(|path| vfs.rename(path, &Path::new("/aside").join(path.file_name().unwrap())).unwrap());
    for i in 0..12u8 {
        let db = Db::open(DIR, &options).unwrap();
        put(&db, &[i], b"v"); // under numbers above the neighbour's
        db.flush(&[&db.default_family()]).unwrap();
    }
    put(&Db::open(DIR, &options).unwrap(), b"logged", b"v");
    let numbers = |paths: Vec<&PathBuf>| {
        paths.into_iter().filter_map(|path| path.file_stem().map(ToOwned::to_owned)).collect::<Vec<_>>()
    };
    let own = files_in(&vfs, "/wal");
    let [own_numbers, others] = [&own, &neighbours].map(|files| numbers(files.keys().collect()));
    assert!(own_numbers.iter().min() > others.iter().max(), "{own_numbers:?} {others:?}");
    hide_owners(&vfs, "/aside");
    for path in neighbours.keys() {
        vfs.rename(&Path::new("/aside").join(path.file_name().unwrap()), path).unwrap();
    }
    let neighbours: Vec<_> = files_in(&vfs, "/wal").into_iter().filter(|(path, _)| !own.contains_key(path)).collect();
    assert!(!neighbours.is_empty());
    let check_stay = |by: &str| {
        let stays = |(path, bytes): &(PathBuf, Vec<u8>)| vfs.read_file(path).is_ok_and(|found| found == *bytes);
        assert!(neighbours.iter().all(stays), "{by}: {:?}", files_in(&vfs, "/wal").keys());
    };
    put(&Db::open(DIR, &options).unwrap(), b"more", b"v");
    check_stay("an open");
    let _ = engine.restore(1, DIR, &with_wal_dir("/wal")); // refused, perhaps: a name may be taken
    check_stay("a restore");
    Db::destroy(DIR, Some(Path::new("/wal")), &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    check_stay("a deletion");
}

/// A copy that was not opened has its original's id, and no logs in its original's directory of logs. A restore over it that was cut
/// off anywhere must not take them for its own when it begins again.
#[test]
fn restore_over_a_copy_that_begins_again_leaves_the_logs_of_its_original() {
    let made = MemoryVfs::new(1);
    let options = with_logs_in(&made, "/wal");
    let other = Db::open("/other", &with_logs_in(&made, "")).unwrap();
    put(&other, b"k", b"other");
    engine_in(made.clone(), BACKUPS).create_new_backup(&other, true).unwrap();
    drop(other);
    let db = Db::open(DIR, &options).unwrap();
    put(&db, b"k", b"v");
    db.checkpoint("/copy").unwrap();
    put(&db, b"later", b"v");
    drop(db);
    for keeps in [false, true] {
        for nth in 1.. {
            let vfs = copy(&made);
            let logs = files_in(&vfs, "/wal");
            let faulty = FaultVfs::new(vfs.clone());
            faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
            let how = RestoreOptions { keep_log_files: keeps, ..with_wal_dir("/wal") };
            let ended = BackupEngine::open(BACKUPS, &BackupOptions { vfs: faulty, ..BackupOptions::default() })
                .and_then(|engine| engine.restore(1, "/copy", &how));
            let _ = engine_in(vfs.clone(), BACKUPS).restore(1, "/copy", &with_wal_dir("/wal"));
            assert!(
                logs.iter().all(|(path, bytes)| vfs.read_file(path).is_ok_and(|found| found == *bytes)),
                "call {nth}, keeps: {keeps}"
            );
            if ended.is_ok() || keeps && nth > 200 {
                break;
            }
        }
    }
}

/// Numbers of logs are small: another database's log has the name of one with values.
#[test]
fn another_databases_log_is_no_log_of_values() {
    let vfs = MemoryVfs::new(1);
    let options = with_values_in(&vfs, "/wal");
    write_values(&options, DIR, b'a');
    write_values(&with_values_in(&vfs, "/other-wal"), "/other", b'b');
    let [own, others] = ["/wal", "/other-wal"].map(|dir| files_in(&vfs, dir));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
        files.keys().map(|path| path.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&own), names(&others), "the test means equal names");
    let wrong = with_values_in(&vfs, "/other-wal");
    let tables = files_in(&vfs, DIR);
    let is_told = |told: &str| assert!(told.contains("another database's") && told.contains("wal_dir=/wal"), "{told}");
    let opened = Db::open(DIR, &wrong).map(drop).unwrap_err();
    assert_eq!(opened.kind(), ErrorKind::InvalidArgument, "{opened}");
    is_told(&opened.to_string());
    is_told(&Db::open(DIR, &OpenOptions { read_only: true, ..wrong.clone() }).map(drop).unwrap_err().to_string());
    is_told(&repair(Path::new(DIR), &wrong).map(drop).unwrap_err().to_string());
    let how = CheckOptions { vfs: vfs.clone(), log_dir: Some("/other-wal".into()), ..CheckOptions::default() };
    let checked = check(Path::new(DIR), &how, &mut |_| {});
    is_told(
        &checked
            .map(|report| report.problems.iter().map(ToString::to_string).collect())
            .unwrap_or_else(|e| e.to_string()),
    );
    let is_table = |path: &&PathBuf| path.extension().is_some_and(|end| end == "sst");
    assert!(tables.keys().filter(is_table).all(|path| vfs.exists(path).unwrap()), "nothing is moved");
    assert_eq!(contents(&options, DIR).len(), 40);
}

/// A database may have its logs in another one's directory: what replaces or deletes that one leaves them, also when it begins again.
#[test]
fn logs_in_the_directory_of_another_database_stay() {
    let made = MemoryVfs::new(1);
    let engine = engine_in(made.clone(), BACKUPS);
    let db = Db::open(DIR, &with_logs_in(&made, "")).unwrap();
    put(&db, b"k", b"v");
    engine.create_new_backup(&db, true).unwrap();
    drop(db);
    let guest = with_logs_in(&made, DIR);
    let db = Db::open("/guest", &guest).unwrap();
    for i in 0..3u8 {
        put(&db, &[i], b"of the guest");
        db.flush(&[&db.default_family()]).unwrap();
    }
    put(&db, b"last", b"of the guest");
    drop(db);
    let rocksdbs = Path::new(DIR).join("000004.log"); // of a guest of RocksDB's
    made.write_file(&rocksdbs, b"of another").unwrap();
    let change = |vfs: Arc<dyn Vfs>, restores: bool| match restores {
        true => BackupEngine::open(BACKUPS, &BackupOptions { vfs, ..BackupOptions::default() })
            .and_then(|engine| engine.restore(1, DIR, &RestoreOptions::default())),
        false => Db::destroy(DIR, None, &vfs),
    };
    for restores in [true, false] {
        for nth in 1.. {
            let vfs = copy(&made);
            let faulty = FaultVfs::new(vfs.clone());
            faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
            let ended = change(faulty, restores);
            change(vfs.clone(), restores).unwrap();
            assert_eq!(contents(&with_logs_in(&vfs, DIR), "/guest").len(), 4, "call {nth}, restores: {restores}");
            assert!(vfs.exists(&rocksdbs).unwrap(), "call {nth}, restores: {restores}");
            if ended.is_ok() {
                break;
            }
        }
    }
}

/// What a state of RocksDB's is brought beside would pass for its logs.
#[test]
fn rocksdbs_backup_is_not_restored_over_the_place_of_its_guests_logs() {
    let vfs = MemoryVfs::new(1);
    back_up(&vfs, &whole_row(), 9);
    drop(Db::open(DIR, &with_logs_in(&vfs, "")).unwrap());
    let log = Path::new(DIR).join("000004.log");
    vfs.write_file(&log, b"of another").unwrap();
    let error = engine_in(vfs.clone(), BACKUPS).restore(1, DIR, &RestoreOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(&*log)), "{error}");
    assert_eq!(vfs.read_file(&log).unwrap(), b"of another");
}

/// The MANIFEST names the last log that was, of which it has none: a guest may give its own log the number behind it.
#[test]
fn guests_log_behind_the_last_one_that_was_is_none_of_the_databases() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    let guest = Db::open("/guest", &with_logs_in(&vfs, DIR)).unwrap();
    let db = Db::open(DIR, &with_logs_in(&vfs, "")).unwrap();
    put(&db, b"k", b"v");
    db.flush(&[&db.default_family()]).unwrap();
    db.close().unwrap();
    let row = recover(&*vfs, Path::new(DIR)).unwrap().wal_range.unwrap();
    assert_eq!(row.newest, None);
    let log = Path::new(DIR).join(format!("{}.splog", row.oldest));
    for _ in 4..row.oldest.0 {
        guest.set_db_options(&[("bytes_per_sync", "0")]).unwrap(); // its OPTIONS file takes a number
    }
    put(&guest, b"g", b"of the guest");
    assert!(vfs.exists(&log).unwrap(), "{:?}", files_in(&vfs, DIR).keys());
    drop(guest);
    Db::destroy(DIR, None, &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    assert_eq!(contents(&with_logs_in(&vfs, DIR), "/guest").len(), 1);
}
