//! Copies whose place is taken, backups whose lists are damaged, and restores that were cut off.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupId, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::report::LiveFile;
use testkit::engine::{Db, Error, ErrorKind, OpenOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Rule, Vfs};

use crate::common::{PLAIN, REFERRING, copy, database, files, options, read, read_with};
use crate::moved_logs::with_logs_in;

const BACKUPS: &str = "/backups";
const OTHER: &str = "/other";

fn engine(vfs: &Arc<MemoryVfs>) -> BackupEngine {
    BackupEngine::open(BACKUPS, &BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() }).unwrap()
}

fn write(vfs: &MemoryVfs, path: impl AsRef<Path>, bytes: &[u8]) {
    vfs::write_all(vfs, path.as_ref(), IfExists::Truncate, bytes, IoClass::Other).unwrap();
}

fn put(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), b"v", &WriteOptions::synced()).unwrap();
}

/// A database of the same options elsewhere.
fn other(vfs: &Arc<MemoryVfs>) -> Db {
    let mut options = options(vfs);
    (options.db.create_if_missing, options.db.create_missing_column_families) = (true, true);
    Db::open(OTHER, &options).unwrap()
}

/// Backup 1 of a database, and backup 2 of another one, without a shared file in common.
fn with_backups() -> Arc<MemoryVfs> {
    let vfs = database(PLAIN.script);
    let other = other(&vfs);
    put(&other, "other");
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    for db in [&db, &other] {
        engine(&vfs).create_new_backup(db, true).unwrap();
    }
    vfs
}

/// Every file of backups 1 and 2, but their meta files.
fn backed_up(vfs: &MemoryVfs) -> Vec<PathBuf> {
    let of = |dir: &str, path: &PathBuf| path.starts_with(Path::new(BACKUPS).join(dir));
    let is_theirs = |path: &PathBuf| ["shared_checksum", "private/1", "private/2"].iter().any(|dir| of(dir, path));
    vfs.all_files().into_iter().filter(is_theirs).collect()
}

fn meta(id: BackupId) -> PathBuf {
    Path::new(BACKUPS).join(format!("meta/{id}"))
}

fn shared_in(meta: &[u8]) -> String {
    let text = String::from_utf8(meta.to_vec()).unwrap();
    text.lines().find(|line| line.starts_with("shared")).unwrap().split(' ').next().unwrap().to_owned()
}

/// Makes and deletes a backup, and purges: each removes what no backup needs.
fn change(vfs: &Arc<MemoryVfs>) {
    let db = other(vfs);
    put(&db, "more");
    let engine = engine(vfs);
    let id = engine.create_new_backup(&db, true).unwrap();
    engine.purge_old(9).unwrap();
    engine.delete(id).unwrap();
}

#[test]
fn damaged_list_of_a_backup_costs_no_file_that_is_there() {
    let whole = with_backups();
    let lists = [1, 2].map(|id| whole.read_file(&meta(id)).unwrap());
    let [first, second] = [0, 1].map(|nth| shared_in(lists.get(nth).unwrap()));
    let text = String::from_utf8(lists.first().unwrap().clone()).unwrap();
    let flipped = first.replacen("shared_checksum/0", "shared_checksum/1", 1);
    assert_ne!(flipped, first);
    let damages = [("no file's name", text.replace(&first, &flipped)), ("another's", text.replace(&first, &second))];
    for (what, damaged) in damages {
        let vfs = copy(&whole);
        write(&vfs, meta(1), damaged.as_bytes());
        change(&vfs);
        let left = backed_up(&vfs);
        let missing: Vec<_> = backed_up(&whole).into_iter().filter(|path| !left.contains(path)).collect();
        assert!(missing.is_empty(), "{what}: {missing:?}");
        write(&vfs, meta(1), text.as_bytes());
        change(&vfs);
        (1..=2).for_each(|id| engine(&vfs).verify(id).unwrap());
        assert_eq!(backed_up(&vfs), backed_up(&whole), "{what}: what no backup needs goes once all is known");
    }
}

#[test]
fn lost_lists_of_backups_cost_no_other_file() {
    let whole = with_backups();
    let vfs = copy(&whole);
    let lose = || (1..=2).for_each(|id| vfs.remove_file(&meta(id)).unwrap());
    lose();
    change(&vfs);
    let unfinished: Vec<_> = engine(&vfs).unfinished_backups().unwrap().iter().map(|backup| backup.id).collect();
    assert_eq!(unfinished, [1, 2]);
    (1..=2).for_each(|id| write(&vfs, meta(id), &whole.read_file(&meta(id)).unwrap()));
    (1..=2).for_each(|id| engine(&vfs).verify(id).unwrap());
    lose();
    for id in 1..=2 {
        engine(&vfs).delete(id).unwrap();
    }
    assert!(backed_up(&vfs).is_empty(), "a number deletes what is left, and then what none needs");
    assert_eq!(engine(&vfs).delete(1).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn make(db: &Db, what: &str) -> Result<(), Error> {
    match what {
        "checkpoint" => db.checkpoint("/copy").map(drop),
        "family" => db.export_family(&db.default_family(), "/copy").map(drop),
        _ => db.export("/copy", &ExportOptions::default()).map(drop),
    }
}

#[test]
fn copy_removes_only_an_unfinished_copy_beside_its_place() {
    for what in ["checkpoint", "export", "family"] {
        let vfs = database(PLAIN.script);
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        db.checkpoint("/copy.tmp").unwrap();
        let contents = read_with(&options(&vfs), "/copy.tmp").unwrap();
        let refused = |kind: ErrorKind| {
            let error = make(&db, what).unwrap_err();
            assert_eq!(error.kind(), kind, "{what}: {error}");
            assert!(error.path().is_some_and(|path| path.starts_with("/copy.tmp")), "{what}: {error}");
            error.to_string()
        };
        let told = refused(ErrorKind::InvalidArgument);
        assert!(told.contains("it may be a database") && told.contains("if it is that copy, to /copy"), "{told}");
        assert_eq!(read_with(&options(&vfs), "/copy.tmp").unwrap(), contents, "{what}");
        let mut before = vfs.all_files();
        before.retain(|path| path.starts_with("/copy.tmp"));
        write(&vfs, "/copy.tmp/INCOMPLETE", b"an unfinished restore of backup 1, to become /copy\nlogs restored\n");
        refused(ErrorKind::InvalidArgument);
        assert!(before.iter().all(|path| vfs.exists(path).unwrap()), "{what}");
        write(&vfs, "/copy.tmp/INCOMPLETE", b"an unfinished checkpoint, to become /copy; make it again\n");
        let lock = vfs.lock(Path::new("/copy.tmp/LOCK")).unwrap();
        assert!(refused(ErrorKind::Busy).contains("another copy to /copy may be in the making"));
        assert!(before.iter().all(|path| vfs.exists(path).unwrap()), "{what}: another copy is in the making");
        drop(lock);
        make(&db, what).unwrap();
        assert!(!vfs.exists(Path::new("/copy.tmp")).unwrap() && !vfs.exists(Path::new("/copy/LOCK")).unwrap());
    }
}

#[test]
fn restore_leaves_no_archive_of_what_it_replaces() {
    for wal_dir in [None, Some(PathBuf::from("/logs"))] {
        let vfs = database(PLAIN.script);
        let mut archiving = options(&vfs);
        (archiving.db.wal_ttl_seconds, archiving.db.wal_dir) = (3600, wal_dir.as_ref().map_or("", |_| "/logs").into());
        archiving.db.create_if_missing = true;
        archiving.db.create_missing_column_families = true;
        let db = Db::open("/archiving", &archiving).unwrap();
        put(&db, "first");
        engine(&vfs).create_new_backup(&db, true).unwrap();
        put(&db, "second");
        db.flush(&[&db.default_family()]).unwrap();
        db.close().unwrap();
        let logs = wal_dir.clone().unwrap_or_else(|| "/archiving".into());
        let archive = logs.join("archive");
        assert!(!vfs.read_dir(&archive).unwrap().is_empty(), "{wal_dir:?}");
        put(&other(&vfs), "other");
        let is_log = |path: &PathBuf| path.starts_with(OTHER) && path.extension().is_some_and(|end| end == "splog");
        let log = vfs.all_files().into_iter().find(is_log).unwrap();
        let number = log.file_name().unwrap();
        write(&vfs, archive.join(number), &vfs.read_file(&log).unwrap());
        let how = RestoreOptions { wal_dir: wal_dir.clone(), ..RestoreOptions::default() };
        let goes = engine(&vfs).replaced_by_restore("/archiving", &how).unwrap();
        assert!(goes.iter().all(|path| *path != archive.join(number)), "another database's: {goes:?}");
        let rocksdbs = Path::new("/logs/000099.log");
        if wal_dir.is_some() {
            write(&vfs, rocksdbs, b"of a database of RocksDB's");
        }
        engine(&vfs).restore(1, "/archiving", &how).unwrap();
        assert_eq!(vfs.exists(rocksdbs).unwrap(), wal_dir.is_some());
        assert_eq!(vfs.read_dir(&archive).unwrap(), [number.to_str().unwrap()], "only what is another database's");
        let db = Db::open("/archiving", &archiving).unwrap();
        put(&db, "third");
        assert_eq!(db.get(&db.default_family(), b"second", &Default::default()).unwrap(), None);
    }
}

#[test]
fn restore_keeps_no_logs_that_an_earlier_one_may_have_deleted() {
    let vfs = database(PLAIN.script);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    engine(&vfs).create_new_backup(&db, true).unwrap();
    put(&db, "logged");
    db.close().unwrap();
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let mark = Path::new(DIR).join("INCOMPLETE");
    for other in ["an unfinished restore of backup 1\nlogs restored\n", "an unfinished checkpoint\n", ""] {
        write(&vfs, &mark, other.as_bytes());
        let before = vfs.all_files();
        let error = engine(&vfs).restore(1, DIR, &keep).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("keep_log_files"), "{error}");
        assert_eq!(vfs.all_files(), before);
    }
    write(&vfs, &mark, b"an unfinished restore of backup 1\nlogs kept\n");
    engine(&vfs).restore(1, DIR, &keep).unwrap();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    assert!(db.get(&db.default_family(), b"logged", &Default::default()).unwrap().is_some());
}

fn in_logs(dir: &str) -> RestoreOptions {
    RestoreOptions { wal_dir: Some(dir.into()), ..RestoreOptions::default() }
}

fn files_in(vfs: &MemoryVfs, dir: &str) -> Vec<PathBuf> {
    vfs.all_files().into_iter().filter(|path| path.starts_with(dir)).collect()
}

/// A copy has its original's id, and what a mark is of may have had its logs anywhere.
#[test]
fn restore_over_a_copy_leaves_the_logs_of_its_original() {
    let vfs = MemoryVfs::new(1);
    let (db, other) = (Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap(), other(&vfs));
    [(&db, "first"), (&other, "other")].iter().for_each(|(db, key)| put(db, key));
    let engine = engine(&vfs);
    assert_eq!(engine.create_new_backup(&db, false).unwrap(), 1);
    assert_eq!(engine.create_new_backup(&other, true).unwrap(), 2);
    db.checkpoint("/checkpoint").unwrap();
    for dir in ["/restored", "/lost"] {
        engine.restore(1, dir, &RestoreOptions::default()).unwrap();
    }
    vfs.remove_file(Path::new("/lost/CURRENT")).unwrap();
    vfs.create_dir_all(Path::new("/marked")).unwrap();
    write(&vfs, "/marked/INCOMPLETE", b"an unfinished restore of backup 1; restore again\nlogs restored\n");
    put(&db, "later");
    let before = files_in(&vfs, "/wal");
    for dir in ["/checkpoint", "/restored", "/lost", "/marked"] {
        let error = engine.restore(1, dir, &in_logs("/wal")).expect_err(dir);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{dir}: {error}");
        assert!(error.path().is_some_and(|path| path.starts_with("/wal")), "{dir}: {error}");
        engine.restore(2, dir, &in_logs("/wal")).unwrap();
        assert!(before.iter().all(|log| vfs.exists(log).unwrap()), "{dir}: another database's backup");
    }
    db.close().unwrap();
    let db = Db::open(DIR, &with_logs_in(&copy(&vfs), "/wal")).unwrap();
    assert!(db.get(&db.default_family(), b"later", &Default::default()).unwrap().is_some());
}

#[test]
fn restore_over_a_database_replaces_its_logs() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
    put(&db, "first");
    engine(&vfs).create_new_backup(&db, false).unwrap();
    put(&db, "later");
    drop(db);
    let lose = |names: &[&str]| {
        let is_lost = |path: &PathBuf| names.iter().any(|name| path.to_str().unwrap().contains(name));
        files(&vfs, "").into_iter().filter(is_lost).for_each(|path| vfs.remove_file(&path).unwrap());
    };
    for lost in [&[][..], &["CURRENT"], &["MANIFEST-", ".spmanifest"]] {
        lose(lost);
        engine(&vfs).restore(1, DIR, &in_logs("/wal")).unwrap();
        let db = Db::open(DIR, &with_logs_in(&vfs, "/wal")).unwrap();
        let has = |key: &str| db.get(&db.default_family(), key.as_bytes(), &Default::default()).unwrap().is_some();
        assert!(has("first") && !has("later"), "{lost:?}");
        put(&db, "later");
        drop(db);
    }
    // A copy with a directory of logs of its own.
    for _ in 0..2 {
        engine(&vfs).restore(1, "/restored", &in_logs("/own")).unwrap();
        let db = Db::open("/restored", &with_logs_in(&vfs, "/own")).unwrap();
        put(&db, "later");
    }
}

#[test]
fn restore_of_a_damaged_manifest_changes_nothing() {
    let vfs = with_backups();
    put(&Db::open("/logged", &with_logs_in(&vfs, "/wal")).unwrap(), "key");
    let is_manifest = |path: &PathBuf| path.to_str().unwrap().contains("MANIFEST-");
    let manifest = files_in(&vfs, "/backups/private/1").into_iter().find(is_manifest).unwrap();
    vfs.flip_bit(&manifest, 8 * 40).unwrap();
    let before = vfs.all_files();
    for dir in ["/new", DIR] {
        let error = engine(&vfs).restore(1, dir, &in_logs("/wal")).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*manifest)), "{error}");
        assert!(error.message().contains("nothing was changed: backup 1 is damaged"), "{error}");
        assert_eq!(vfs.all_files(), before);
    }
}

/// A backup has neither.
#[test]
fn restored_database_has_its_identity_and_the_copy_of_its_manifest() {
    let whole = with_backups();
    let expected = read(&copy(&whole)).unwrap();
    let file = |vfs: &MemoryVfs, path: &str| vfs.read_file(Path::new(path)).unwrap();
    for wal_dir in ["", "/logs"] {
        let vfs = copy(&whole);
        let how = RestoreOptions { wal_dir: Some(wal_dir.into()), ..RestoreOptions::default() };
        engine(&vfs).restore(1, "/restored", &how).unwrap();
        let current = String::from_utf8(file(&vfs, "/restored/CURRENT")).unwrap();
        let number = current.trim_end().strip_prefix("MANIFEST-").unwrap();
        let (manifest, copied) = (format!("/restored/MANIFEST-{number}"), format!("/restored/{number}.spmanifest"));
        assert_eq!(file(&vfs, &manifest), file(&vfs, &copied));
        let id = file(&vfs, "/restored/IDENTITY");
        assert!(id.len() == 36 && file(&vfs, &manifest).windows(36).any(|bytes| bytes == id), "an id of its own");
        let mut options = options(&vfs);
        options.db.wal_dir = wal_dir.to_owned();
        vfs.remove_file(Path::new(&manifest)).unwrap();
        let report = repair("/restored", &options).unwrap();
        assert!(report.lost_nothing(), "{report:#?}");
        assert_eq!(read_with(&options, "/restored").unwrap(), expected);
    }
}

#[test]
fn damaged_backup_is_not_told_to_be_restored_again() {
    let vfs = with_backups();
    let damage = |id: BackupId| {
        let path = Path::new(BACKUPS).join(shared_in(&vfs.read_file(&meta(id)).unwrap()));
        let mut bytes = vfs.read_file(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        write(&vfs, path, &bytes);
    };
    damage(1);
    let restore = |id: BackupId| engine(&vfs).restore(id, "/restored", &RestoreOptions::default());
    let open = || Db::open("/restored", &OpenOptions { read_only: true, ..options(&vfs) }).map(drop);
    for error in [restore(1).unwrap_err(), open().unwrap_err()] {
        let told = error.to_string();
        assert!(told.contains("backup 1 is damaged, and its restore fails again"), "{told}");
        assert!(
            told.contains("restore another one in its place (backup 2)") && !told.contains("restore again"),
            "{told}"
        );
    }
    restore(2).unwrap();
    open().unwrap();
    vfs.remove_file(&meta(1)).unwrap();
    damage(2);
    let told = restore(2).unwrap_err().to_string();
    assert!(told.contains("backup 2 is damaged") && told.contains("there is no other backup"), "{told}");
}

/// The refusals of everything that would write to a database in `dir`.
fn opened_for_writing(vfs: &Arc<MemoryVfs>, dir: &str) -> Vec<Error> {
    let secondary = Db::open_as_secondary(DIR, dir, &OpenOptions { read_only: true, ..options(vfs) });
    let (mut creating, mut going_back) = (options(vfs), options(vfs));
    (creating.db.create_if_missing, going_back.db.best_efforts_recovery) = (true, true);
    let opens = [options(vfs), creating, going_back].map(|options| Db::open(dir, &options).map(drop));
    let repaired = repair(dir, &options(vfs)).map(drop);
    let mut with_logs_there = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    dir.clone_into(&mut with_logs_there.db.wal_dir);
    let logs_there = Db::open("/new", &with_logs_there).map(drop);
    opens.into_iter().chain([repaired, secondary.map(drop), logs_there]).map(|done| done.expect_err(dir)).collect()
}

/// The error names the directory of the backups, and how one is restored.
fn assert_of_backups(error: &Error) {
    let told = error.message();
    let is_told =
        told.contains("belongs to the backups in /backups") && told.contains("backup restore --dir /backups ");
    assert!(error.kind() == ErrorKind::InvalidArgument && is_told, "{error}");
}

#[test]
fn shared_file_that_was_removed_is_copied_again() {
    let vfs = database(PLAIN.script);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    engine(&vfs).create_new_backup(&db, true).unwrap();
    let shared = Path::new(BACKUPS).join(shared_in(&vfs.read_file(&meta(1)).unwrap()));
    let damage = || vfs.flip_bit(&shared, 80).unwrap();
    damage();
    assert_eq!(engine(&vfs).verify(1).unwrap_err().kind(), ErrorKind::Corruption);
    engine(&vfs).create_new_backup(&db, true).unwrap();
    let error = engine(&vfs).restore(1, "/restored", &RestoreOptions::default()).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("every other one shares that file (backup 2): move it out of the backups"), "{told}");
    vfs.remove_file(&shared).unwrap();
    engine(&vfs).create_new_backup(&db, true).unwrap();
    (1..=3).for_each(|id| engine(&vfs).verify(id).unwrap());
}

/// Of backups that share a file the list of one has another checksum. The file is as the others have it.
#[test]
fn wrong_checksum_in_a_list_of_a_backup_costs_no_shared_file() {
    let vfs = database(PLAIN.script);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    (1..=3).for_each(|id| assert_eq!(engine(&vfs).create_new_backup(&db, true).unwrap(), id));
    let text = String::from_utf8(vfs.read_file(&meta(3)).unwrap()).unwrap();
    let shared = shared_in(text.as_bytes());
    let line = text.lines().find(|line| line.starts_with(&shared)).unwrap();
    let (name, checksum) = line.rsplit_once(' ').unwrap();
    let wrong = checksum.parse::<u32>().unwrap() ^ 1;
    write(&vfs, meta(3), text.replace(line, &format!("{name} {wrong}")).as_bytes());
    let told = engine(&vfs).restore(3, "/restored", &RestoreOptions::default()).unwrap_err().to_string();
    assert!(
        told.contains("until meta/3 is brought back (the file itself is as backup 1, backup 2 should have it)"),
        "{told}"
    );
    assert!(told.contains("restore another one in its place (backup 1, backup 2)"), "{told}");
    engine(&vfs).restore(2, "/restored", &RestoreOptions::default()).unwrap();
    // A new backup copies the file again, and takes over neither checksum.
    assert_eq!(engine(&vfs).create_new_backup(&db, true).unwrap(), 4);
    [2, 4].iter().for_each(|id| engine(&vfs).verify(*id).unwrap());
}

/// A database with an old log and a current one, open.
fn with_logs() -> (Arc<MemoryVfs>, Db, Vec<PathBuf>) {
    let vfs = copy(&database(PLAIN.script));
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    put(&db, "more");
    let mut logs = files(&vfs, ".splog");
    let has_records = |log: &PathBuf| vfs.read_file(log).unwrap().iter().skip(128).any(|byte| *byte != 0);
    logs.retain(has_records);
    (vfs, db, logs)
}

#[test]
fn damaged_log_of_an_open_database_is_not_copied() {
    type Damage<'a> = (&'a str, &'a dyn Fn(&MemoryVfs, &Path));
    let damages: [Damage<'_>; 5] = [
        ("empty", &|vfs, log| vfs.truncate(log, 0).unwrap()),
        ("zeros", &|vfs, log| [0, 4096].iter().for_each(|len| vfs.truncate(log, *len).unwrap())),
        ("header", &|vfs, log| vfs.flip_bit(log, 8 * 20).unwrap()),
        ("record", &|vfs, log| vfs.flip_bit(log, 8 * 150).unwrap()),
        ("cut", &|vfs, log| vfs.truncate(log, 150).unwrap()),
    ];
    let logged = ExportOptions { flush_from_log_bytes: u64::MAX, ..ExportOptions::default() };
    for (what, damage) in damages {
        for nth in 0..2 {
            let (vfs, db, logs) = with_logs();
            assert_eq!(logs.len(), 2);
            damage(&vfs, logs.get(nth).unwrap());
            let made = [engine(&vfs).create_new_backup(&db, false).map(drop), db.export("/copy", &logged).map(drop)];
            for (way, made) in ["backup", "export"].iter().zip(made) {
                let told = format!("{way}, log {nth}, {what}: {made:?}");
                assert_eq!(made.map_err(|error| error.kind()), Err(ErrorKind::Corruption), "{told}");
            }
        }
    }
}

/// The damage was there when the backup was made: its checksum is right.
#[test]
fn verification_reads_the_logs_of_a_backup() {
    let (vfs, db, _) = with_logs();
    engine(&vfs).create_new_backup(&db, false).unwrap();
    engine(&vfs).verify(1).unwrap();
    let is_log = |path: &PathBuf| path.starts_with(BACKUPS) && path.extension().is_some_and(|end| end == "splog");
    let logs: Vec<_> = vfs.all_files().into_iter().filter(is_log).collect();
    assert_eq!(logs.len(), 2);
    for log in logs {
        let vfs = copy(&vfs);
        let before = vfs.read_file(&log).unwrap();
        vfs.flip_bit(&log, 8 * 150).unwrap();
        let [before, after] = [before, vfs.read_file(&log).unwrap()].map(|bytes| base::checksum::crc32c(&bytes));
        let text = String::from_utf8(vfs.read_file(&meta(1)).unwrap()).unwrap();
        let changed = text.replace(&format!(" crc32 {before}\n"), &format!(" crc32 {after}\n"));
        assert_ne!(changed, text);
        write(&vfs, meta(1), changed.as_bytes());
        let error = engine(&vfs).verify(1).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*log)), "{error}");
        assert!(error.message().contains("was damaged when it was backed up"), "{error}");
    }
}

#[test]
fn damaged_table_that_is_open_is_not_copied() {
    let vfs = database(PLAIN.script);
    read(&vfs).unwrap();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let table = files(&vfs, ".sst").pop().unwrap();
    for family in db.families() {
        for key in ["a", "b", "c", "d"] {
            db.get(&family, key.as_bytes(), &Default::default()).unwrap();
        }
    }
    for byte in 0..vfs.read_file(&table).unwrap().len() as u64 {
        vfs.flip_bit(&table, 8 * byte + byte % 8).unwrap();
        let made = [engine(&vfs).create_new_backup(&db, false).map(drop), make(&db, "export")];
        assert!(made.iter().all(Result::is_err), "byte {byte}: {made:?}");
        vfs.flip_bit(&table, 8 * byte + byte % 8).unwrap();
    }
    engine(&vfs).create_new_backup(&db, false).unwrap();
}

/// The first and the last value are in the table itself.
#[test]
fn table_whose_values_lie_in_logs_is_not_imported() {
    let script = "create users\nput default a 1\nput default b noise:1:1062\nput default c 1\nflush default";
    let vfs = REFERRING.after(script);
    let (from, to) = (Db::open(DIR, &REFERRING.options(&vfs)).unwrap(), other(&vfs));
    let family = from.default_family();
    let import = |files: &[LiveFile]| to.import_family("one", (*family.options()).clone(), &[files], false);
    let files = from.live_files();
    let error = import(&files).map(drop).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("export_family"), "{error}");
    assert!(files.iter().all(|file| vfs.exists(&file.path).unwrap()));
    let imported = import(&from.export_family(&family, "/export").unwrap()).unwrap();
    let [found, written] = [(&to, &imported), (&from, &family)].map(|(db, family)| {
        let value = db.get(family, b"b", &Default::default()).unwrap();
        value.map(|value| value.to_vec()).unwrap()
    });
    assert_eq!(found, written);
}

#[test]
fn backups_are_no_place_for_a_database() {
    let vfs = with_backups();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    let before = vfs.all_files();
    let engine = engine(&vfs);
    let logs = |dir: &str| RestoreOptions { wal_dir: Some(dir.into()), ..RestoreOptions::default() };
    for dir in ["/backups/private/2", "/backups/private/1", "/backups/meta", "/backups/shared_checksum"] {
        let refusals = [
            engine.restore(1, dir, &RestoreOptions::default()).unwrap_err(),
            engine.restore(1, "/restored", &logs(dir)).unwrap_err(),
            db.checkpoint(format!("{dir}/copy")).unwrap_err(),
            Db::destroy(dir, None, &dyn_vfs).unwrap_err(),
        ];
        refusals.iter().chain(&opened_for_writing(&vfs, dir)).for_each(assert_of_backups);
    }
    assert_eq!(vfs.all_files(), before);
    for lost in [meta(1), meta(2)] {
        vfs.remove_file(&lost).unwrap();
    }
    opened_for_writing(&vfs, "/backups/private/1").iter().for_each(assert_of_backups);
    assert!(vfs.all_files().iter().filter(|path| before.contains(path)).count() + 2 == before.len());
    for dir in ["/data/private", "/data/meta/names"] {
        vfs.create_dir_all(Path::new(dir)).unwrap();
    }
    db.checkpoint("/data/private/copy").unwrap();
    // Databases in directories of these names.
    let made = OpenOptions { vfs: dyn_vfs.clone(), ..OpenOptions::create_if_missing() };
    for _ in 0..2 {
        for dir in ["/data/private/1001", "/data/meta", "/data/shared/db"] {
            drop(Db::open(dir, &made).unwrap());
        }
    }
}

/// The open that gives a checkpoint its id is cut off at each call of the file system.
#[test]
fn first_open_of_a_checkpoint_that_is_cut_off_leaves_it_whole() {
    let whole = MemoryVfs::new(1);
    let mut how = with_logs_in(&whole, "");
    how.db.large_batch_bytes = 4 << 10;
    let db = Db::open("/original", &how).unwrap();
    for key in ["a", "b", "c"] {
        put(&db, key);
    }
    let mut large = testkit::engine::WriteBatch::new();
    large.put(db.default_family().id(), b"large", &[b'v'; 8 << 10]);
    db.write(&large, &WriteOptions::default()).unwrap();
    db.checkpoint(DIR).unwrap();
    drop(db);
    let expected = read(&copy(&whole)).unwrap();
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        if Db::open(DIR, &OpenOptions { vfs: faulty, ..options(&vfs) }).is_ok() {
            return;
        }
        let report =
            check(Path::new(DIR), &CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() }, &mut |_| {}).unwrap();
        assert!(report.is_whole(), "call {nth}: {report:#?}");
        assert_eq!(read(&vfs).unwrap(), expected, "call {nth}");
    }
}
