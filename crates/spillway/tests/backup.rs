//! Backups: each is a prefix of the history, shares tables with the others, and comes back as it was.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use base::note::{Sink, within};
use base::options::InfoLogLevel;
use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::vfs::RealVfs;
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestOptions, IngestRequest, OpenOptions, ReadOptions, TableWriter, WriteBatch,
    WriteOptions,
};

fn options() -> OpenOptions {
    let family = FamilyOptions { write_buffer_size: 128 << 10, ..FamilyOptions::default() };
    let mut options = OpenOptions::create_if_missing().family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.log_file_bytes = 256 << 10;
    options
}

/// Batches in a database to which batch `n` wrote key `n` of two families. Panics where one is there in part or out of
/// order.
fn batches(db: &Db) -> u64 {
    let counts = ["default", "second"].map(|name| {
        let mut entries = db.iter(&db.family(name).unwrap(), &ReadOptions::default()).unwrap();
        let mut count = 0u64;
        let mut valid = entries.seek_to_first();
        while valid {
            assert_eq!(entries.key(), count.to_be_bytes(), "a hole");
            count += 1;
            valid = entries.next();
        }
        entries.status().unwrap();
        count
    });
    assert_eq!(counts[0], counts[1], "a batch is there in part");
    counts[0]
}

fn write(db: &Db, n: u64) {
    let mut batch = WriteBatch::new();
    for name in ["default", "second"] {
        batch.put(db.family(name).unwrap().id(), &n.to_be_bytes(), &[n as u8; 200]);
    }
    db.write(&batch, &WriteOptions::default()).unwrap();
}

/// A database and its backups.
struct Place {
    dir: tempfile::TempDir,
    db: Db,
    written: u64,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db"), &options()).unwrap();
        Place { dir, db, written: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn engine(&self, options: &BackupOptions) -> BackupEngine {
        BackupEngine::open(self.path("backups"), options).unwrap()
    }

    fn write(&mut self, count: u64) {
        (self.written..self.written + count).for_each(|n| write(&self.db, n));
        self.written += count;
    }

    /// Files under a folder of the backups, and when each was written.
    fn backed_up(&self, folder: &str) -> BTreeMap<String, SystemTime> {
        let entries = std::fs::read_dir(self.path("backups").join(folder)).unwrap().map(Result::unwrap);
        let named =
            |e: std::fs::DirEntry| (e.file_name().into_string().unwrap(), e.metadata().unwrap().modified().unwrap());
        entries.map(named).collect()
    }

    /// Batches in what a backup restores.
    fn restored(&self, engine: &BackupEngine, id: u32) -> u64 {
        let target = self.path("restored");
        engine.restore(id, &target, &RestoreOptions::default()).unwrap();
        let report = check(&target, &CheckOptions::default(), &mut |_| {}).unwrap();
        assert!(report.is_whole(), "{:?}", report.problems);
        batches(&Db::open(&target, &options()).unwrap())
    }
}

#[test]
fn backups_under_writes_are_prefixes_of_the_history() {
    let place = Place::new();
    let engine = place.engine(&BackupOptions { max_background_operations: 3, ..BackupOptions::default() });
    let (written, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut bounds = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                write(&place.db, written.load(Ordering::Relaxed));
                written.fetch_add(1, Ordering::Release);
            }
        });
        for round in 0..12 {
            let before = written.load(Ordering::Acquire);
            let id = engine.create_new_backup(&place.db, round % 4 == 3).unwrap();
            bounds.push((id, before..=written.load(Ordering::Acquire) + 1));
        }
        ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(engine.backups().unwrap().iter().map(|backup| backup.id).collect::<Vec<_>>(), Vec::from_iter(1..=12));
    for (id, expected) in bounds {
        engine.verify(id).unwrap();
        let found = place.restored(&engine, id);
        assert!(expected.contains(&found), "backup {id}: {found}, not {expected:?}");
    }
}

#[test]
fn what_is_there_is_not_copied_again_and_stays_as_long_as_a_backup_needs_it() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions::default());
    place.write(3000);
    engine.create_new_backup(&place.db, true).unwrap();
    let first = place.backed_up("shared_checksum");
    assert!(!first.is_empty());
    place.write(500);
    assert_eq!(engine.create_new_backup(&place.db, true).unwrap(), 2);
    let second = place.backed_up("shared_checksum");
    assert!(first.iter().all(|(name, time)| second.get(name) == Some(time)), "{first:?} {second:?}");
    assert!(second.len() > first.len());
    for family in ["default", "second"] {
        let family = place.db.family(family).unwrap();
        place.db.compact_range(&family, None, None, &Default::default()).unwrap();
    }
    engine.create_new_backup(&place.db, false).unwrap();
    let info = engine.backups().unwrap();
    assert!(info[0].bytes > 1000 && info[0].files > 4 && info[0].timestamp_s > 1_700_000_000, "{info:?}");
    assert!(info[0].last_seq < info[1].last_seq && info[1].last_seq <= info[2].last_seq, "{info:?}");
    engine.delete(1).unwrap();
    assert!(first.keys().all(|name| place.backed_up("shared_checksum").contains_key(name)), "backup 2 has them too");
    engine.verify(2).unwrap();
    engine.purge_old(1).unwrap();
    assert_eq!(place.backed_up("meta").into_keys().collect::<Vec<_>>(), ["3"]);
    assert_eq!(place.backed_up("private").into_keys().collect::<Vec<_>>(), ["3"]);
    let meta = std::fs::read_to_string(place.path("backups/meta/3")).unwrap();
    assert!(place.backed_up("shared_checksum").keys().all(|name| meta.contains(name)), "what nobody needs is gone");
    assert_eq!(place.restored(&engine, 3), 3500);
    assert_eq!(engine.delete(2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let engine = place.engine(&BackupOptions { destroy_old_data: true, ..BackupOptions::default() });
    assert!(engine.backups().unwrap().is_empty() && place.backed_up("shared_checksum").is_empty());
    let nothing = engine.restore_latest(place.path("new"), &RestoreOptions::default()).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn tables_go_where_the_options_say() {
    for (share_table_files, share_files_with_checksum) in [(false, true), (true, false), (true, true)] {
        let mut place = Place::new();
        let options = BackupOptions { share_table_files, share_files_with_checksum, ..BackupOptions::default() };
        let engine = place.engine(&options);
        for _ in 0..2 {
            place.write(1000);
            engine.create_new_backup(&place.db, true).unwrap();
        }
        let has_tables = |folder: &str| place.backed_up(folder).into_keys().any(|name| name.ends_with(".sst"));
        assert_eq!(has_tables("private/2"), !share_table_files);
        assert_eq!(has_tables("shared"), share_table_files && !share_files_with_checksum);
        assert_eq!(has_tables("shared_checksum"), share_table_files && share_files_with_checksum);
        assert_eq!((place.restored(&engine, 1), place.restored(&engine, 2)), (1000, 2000));
    }
    let nobody = BackupOptions { max_background_operations: 0, ..BackupOptions::default() };
    let error = BackupEngine::open(tempfile::tempdir().unwrap().path(), &nobody).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn two_databases_share_a_directory_only_with_names_that_tell_their_tables_apart() {
    let mut place = Place::new();
    let other = Db::open(place.path("other"), &options()).unwrap();
    (0..700).for_each(|n| write(&other, n));
    place.write(1000);
    let engine = place.engine(&BackupOptions::default());
    engine.create_new_backup(&place.db, true).unwrap();
    engine.create_new_backup(&other, true).unwrap();
    assert_eq!((place.restored(&engine, 1), place.restored(&engine, 2)), (1000, 700));
    let plain = BackupOptions { share_files_with_checksum: false, ..BackupOptions::default() };
    let engine = BackupEngine::open(place.path("plain"), &plain).unwrap();
    engine.create_new_backup(&place.db, false).unwrap();
    let error = engine.create_new_backup(&other, false).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("another database"), "{error}");
    assert_eq!(engine.backups().unwrap().len(), 1, "what failed is not there");
    engine.verify(1).unwrap();
}

#[test]
fn a_database_can_hold_its_own_backups() {
    let mut place = Place::new();
    place.write(500);
    let engine = BackupEngine::open(place.path("db"), &BackupOptions::default()).unwrap();
    engine.create_new_backup(&place.db, false).unwrap();
    place.write(500);
    engine.create_new_backup(&place.db, true).unwrap();
    place.db.close().unwrap();
    assert_eq!(batches(&Db::open(place.path("db"), &options()).unwrap()), 1000);
    engine.restore(1, place.path("db"), &RestoreOptions::default()).unwrap();
    assert_eq!(batches(&Db::open(place.path("db"), &options()).unwrap()), 500);
    assert_eq!(place.restored(&engine, 2), 1000);
}

#[test]
fn damage_is_told_by_the_files_name_and_other_backups_go_on() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions { max_background_operations: 2, ..BackupOptions::default() });
    for _ in 0..3 {
        place.write(1000);
        engine.create_new_backup(&place.db, true).unwrap();
    }
    let only_in_third = place.backed_up("private/3").into_keys().find(|name| name.starts_with("MANIFEST")).unwrap();
    let manifest = place.path("backups/private/3").join(&only_in_third);
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&manifest, &bytes).unwrap();
    assert!(engine.damaged_backups().unwrap().is_empty(), "sizes are as they should be");
    let damaged = |error: testkit::engine::Error, name: &str| {
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains("backup 3"), "{error}");
    };
    damaged(engine.verify(3).unwrap_err(), &only_in_third);
    damaged(engine.restore(3, place.path("new"), &RestoreOptions::default()).unwrap_err(), &only_in_third);
    assert!(!place.path("new/CURRENT").exists(), "half a database is none");
    std::fs::write(&manifest, &bytes[..bytes.len() - 1]).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    damaged(engine.verify(3).unwrap_err(), &only_in_third);
    damaged(engine.damaged_backups().unwrap().remove(0).error, &only_in_third);
    std::fs::write(place.path("backups/meta/2"), "nonsense\n").unwrap();
    let ids: Vec<u32> = engine.damaged_backups().unwrap().iter().map(|damaged| damaged.id).collect();
    assert_eq!((ids, engine.backups().unwrap().len()), (vec![2, 3], 1));
    assert_eq!(engine.restore_latest(place.path("new"), &RestoreOptions::default()).unwrap(), 1);
    assert_eq!(batches(&Db::open(place.path("new"), &options()).unwrap()), 1000);
    // Whose the tables are is not known, so none goes, until the unreadable one does.
    let tables = place.backed_up("shared_checksum");
    engine.delete(3).unwrap();
    assert_eq!(place.backed_up("shared_checksum"), tables);
    engine.delete(2).unwrap();
    assert!(place.backed_up("shared_checksum").len() < tables.len());
    engine.verify(1).unwrap();
}

/// Tools that free space move files away, and leave links.
#[test]
fn files_of_backups_may_be_links() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions::default());
    place.write(1000);
    engine.create_new_backup(&place.db, true).unwrap();
    for (dir, file) in ["shared_checksum", "private/1"]
        .into_iter()
        .flat_map(|dir| place.backed_up(dir).into_keys().map(move |file| (dir, file)).collect::<Vec<_>>())
    {
        let (at, away) = (place.path("backups").join(dir).join(&file), place.path(&format!("away-{file}")));
        std::fs::rename(&at, &away).unwrap();
        std::os::unix::fs::symlink(&away, &at).unwrap();
    }
    let shared = place.backed_up("shared_checksum");
    engine.verify(1).unwrap();
    assert!(engine.damaged_backups().unwrap().is_empty());
    assert_eq!(place.restored(&engine, 1), 1000);
    assert_eq!(engine.create_new_backup(&place.db, true).unwrap(), 2);
    assert!(place.backed_up("shared_checksum").keys().eq(shared.keys()), "nothing is copied again");
    let table = shared.into_keys().next().unwrap();
    std::fs::remove_file(place.path(&format!("away-{table}"))).unwrap();
    let error = engine.verify(1).unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains("is missing"), "{error}");
}

/// Keeps the warnings of a thread.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Sink for Warnings {
    fn takes(&self, level: InfoLogLevel) -> bool {
        level == InfoLogLevel::Warn
    }

    fn take(&self, _: InfoLogLevel, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn the_latest_backup_that_is_taken_for_a_damaged_one_comes_with_a_warning() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions::default());
    for _ in 0..3 {
        place.write(10);
        engine.create_new_backup(&place.db, false).unwrap();
    }
    std::fs::remove_file(place.path("backups/meta/3")).unwrap();
    std::fs::write(place.path("backups/meta/2"), "").unwrap();
    let warnings = Arc::<Warnings>::default();
    let scope = within(Some(warnings.clone()));
    assert_eq!(engine.restore_latest(place.path("new"), &RestoreOptions::default()).unwrap(), 1);
    drop(scope);
    let told = warnings.0.lock().unwrap().join("\n");
    assert!(
        told.contains("backup 2") && told.contains("backup 3 has no file meta/3") && told.contains("taken=1"),
        "{told}"
    );
    std::fs::write(place.path("backups/meta/1"), "").unwrap();
    let error = engine.restore_latest(place.path("new"), &RestoreOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!((1..=3).all(|id| error.to_string().contains(&format!("backup {id}"))), "{error}");
}

#[test]
fn what_is_left_without_a_meta_file_is_listed_and_keeps_its_number() {
    let mut place = Place::new();
    place.write(10);
    let engine = place.engine(&BackupOptions::default());
    let unfinished = || engine.unfinished_backups().unwrap().iter().map(|backup| backup.id).collect::<Vec<_>>();
    for _ in 0..2 {
        engine.create_new_backup(&place.db, false).unwrap();
    }
    assert!(unfinished().is_empty());
    std::fs::remove_file(place.path("backups/meta/2")).unwrap();
    std::fs::create_dir_all(place.path("backups/private/5.tmp")).unwrap(); // RocksDB's
    std::fs::create_dir_all(place.path("backups/private/4")).unwrap();
    std::fs::write(place.path("backups/private/4/notes"), "no file of a backup").unwrap();
    assert_eq!(unfinished(), [2, 5]);
    assert_eq!(engine.create_new_backup(&place.db, false).unwrap(), 6);
    assert_eq!(unfinished(), [2], "it may have been finished once");
    engine.delete(2).unwrap();
    assert!(unfinished().is_empty());
    assert_eq!(place.backed_up("private").into_keys().collect::<Vec<_>>(), ["1", "4", "6"]);
    assert_eq!((place.restored(&engine, 1), place.restored(&engine, 6)), (10, 10));
}

#[test]
fn reading_a_directory_creates_nothing_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new();
    let engine = BackupEngine::open_to_read(dir.path().join("backups"), &BackupOptions::default()).unwrap();
    assert!(engine.backups().unwrap().is_empty() && engine.damaged_backups().unwrap().is_empty());
    assert!(engine.unfinished_backups().unwrap().is_empty() && engine.verify(1).is_err());
    assert!(!dir.path().join("backups").exists());
    assert_eq!(engine.create_new_backup(&place.db, false).unwrap(), 1, "the first backup makes it");
}

#[test]
fn a_restore_replaces_the_database_and_leaves_other_files() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions::default());
    place.write(300);
    engine.create_new_backup(&place.db, false).unwrap();
    place.write(5000);
    std::fs::write(place.path("db/letter.txt"), "dear").unwrap();
    let busy = engine.restore(1, place.path("db"), &RestoreOptions::default()).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert_eq!(batches(&place.db), 5300);
    place.db.close().unwrap();
    let wal_dir = place.path("logs");
    let apart = RestoreOptions { wal_dir: Some(wal_dir.clone()), keep_log_files: false };
    engine.restore(1, place.path("db"), &apart).unwrap();
    assert!(place.path("db/letter.txt").exists());
    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "splog");
    let logs = |dir: &Path| std::fs::read_dir(dir).unwrap().filter(|e| is_log(&e.as_ref().unwrap().path())).count();
    assert_eq!((logs(&place.path("db")), logs(&wal_dir)), (0, 1));
    let mut options = options();
    options.db.wal_dir = wal_dir.to_str().unwrap().to_owned();
    assert_eq!(batches(&Db::open(place.path("db"), &options).unwrap()), 300);
}

#[test]
fn logs_are_kept_for_a_backup_without_any() {
    let mut place = Place::new();
    let engine = place.engine(&BackupOptions::default());
    place.write(300);
    engine.create_new_backup(&place.db, true).unwrap();
    place.write(200);
    engine.create_new_backup(&place.db, false).unwrap();
    place.db.close().unwrap();
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let error = engine.restore(2, place.path("db"), &keep).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("keep_log_files"), "{error}");
    engine.restore(1, place.path("db"), &keep).unwrap();
    let db = Db::open(place.path("db"), &options()).unwrap();
    assert_eq!(batches(&db), 500, "the log goes on where the backup ends");
    engine.restore(2, place.path("new"), &keep).unwrap();
    assert_eq!(batches(&Db::open(place.path("new"), &options()).unwrap()), 500);
}

/// Ingested tables that have no level yet, because the memtable below them waits for more, are in the backup as in the log
/// that names them.
#[test]
fn tables_in_the_queue_are_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let mut options = options();
    for (_, family) in &mut options.families {
        (family.min_write_buffer_number_to_merge, family.max_write_buffer_number) = (8, 9);
    }
    let db = Db::open(path("db"), &options).unwrap();
    let families = ["default", "second"].map(|name| db.family(name).unwrap());
    let put = |key: &[u8], value: &[u8]| {
        families.iter().for_each(|family| db.put(family, key, value, &WriteOptions::default()).unwrap());
    };
    [b"a", b"c", b"e"].iter().for_each(|key| put(*key, b"old"));
    let request = |(nth, family): (usize, &std::sync::Arc<testkit::engine::Family>)| {
        let file = path(&format!("{nth}.sst"));
        let mut table = TableWriter::create(RealVfs::new(), &file, &family.options()).unwrap();
        [b"b", b"c"].iter().for_each(|key| table.put(*key, b"ingested").unwrap());
        table.finish().unwrap();
        let excise = Some((b"e".to_vec(), b"f".to_vec()));
        IngestRequest { excise, ..IngestRequest::new(family.clone(), vec![file]) }
    };
    let requests: Vec<IngestRequest> = families.iter().enumerate().map(request).collect();
    db.ingest_all(&requests, &IngestOptions::default()).unwrap();
    put(b"d", b"new");
    let queued = || db.live_files().iter().filter(|file| file.is_queued).count();
    let engine = BackupEngine::open(path("backups"), &BackupOptions::default()).unwrap();
    engine.create_new_backup(&db, false).unwrap();
    assert_eq!(queued(), 2, "nothing was flushed for it");
    db.flush(&families.iter().collect::<Vec<_>>()).unwrap();
    engine.create_new_backup(&db, false).unwrap();
    assert_eq!(queued(), 0);
    for id in [1, 2] {
        engine.verify(id).unwrap();
        engine.restore(id, path("restored"), &RestoreOptions::default()).unwrap();
        let report = check(&path("restored"), &CheckOptions::default(), &mut |_| {}).unwrap();
        assert!(report.is_whole(), "backup {id}: {:?}", report.problems);
        let reading = OpenOptions { read_only: true, ..options.clone() };
        let restored = Db::open(path("restored"), &reading).unwrap();
        assert_eq!(restored.live_files().iter().any(|file| file.is_queued), id == 1, "backup {id}");
        drop(restored);
        let restored = Db::open(path("restored"), &options).unwrap(); // brings all into tables
        for family in ["default", "second"].map(|name| restored.family(name).unwrap()) {
            let get = |key: &str| {
                let found = restored.get(&family, key.as_bytes(), &ReadOptions::default()).unwrap();
                found.map(|value| String::from_utf8(value.to_vec()).unwrap())
            };
            let expected = [Some("old"), Some("ingested"), Some("ingested"), Some("new"), None];
            assert_eq!(
                ["a", "b", "c", "d", "e"].map(get),
                expected.map(|value| value.map(str::to_owned)),
                "backup {id}"
            );
        }
    }
}

/// What came of running RocksDB's tool.
fn ldb(args: &[&str]) -> (bool, String) {
    let ran = Command::new("ldb").args(args).output().expect("ldb (Debian: rocksdb-tools)");
    (ran.status.success(), String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr))
}

#[test]
fn rocksdbs_backups_are_restored_here_and_ours_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    let [theirs, backups, restored] = ["theirs", "backups", "restored"].map(|name| dir.path().join(name));
    let (db, to) = (format!("--db={}", theirs.display()), format!("--backup_dir={}", backups.display()));
    for round in 0..3 {
        for i in 0..3 {
            let (key, value) = (format!("key{round}{i}"), format!("value{round}"));
            assert!(ldb(&[&db, "--create_if_missing", "put", &key, &value]).0);
        }
        let (is_ok, said) = ldb(&[&db, "backup", &to]);
        assert!(is_ok, "{said}");
    }
    let engine = BackupEngine::open(&backups, &BackupOptions::default()).unwrap();
    assert_eq!(engine.backups().unwrap().iter().map(|backup| backup.id).collect::<Vec<_>>(), [1, 2, 3]);
    let count = |db: &Db| {
        let mut entries = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
        let mut count = usize::from(entries.seek_to_first());
        while entries.next() {
            count += 1;
        }
        count
    };
    for id in 1..=3 {
        engine.verify(id).unwrap();
        engine.restore(id, &restored, &RestoreOptions::default()).unwrap();
        let db = Db::open(&restored, &OpenOptions::default()).unwrap();
        assert_eq!(count(&db), id as usize * 3);
    }
    // Ours goes into the same directory; RocksDB's tables are known again by their names.
    let db = Db::open(&restored, &OpenOptions::default()).unwrap();
    let tables = std::fs::read_dir(backups.join("shared_checksum")).unwrap().count();
    db.put(&db.default_family(), b"ours", b"value", &WriteOptions::default()).unwrap();
    assert_eq!(engine.create_new_backup(&db, true).unwrap(), 4);
    assert_eq!(std::fs::read_dir(backups.join("shared_checksum")).unwrap().count(), tables + 1);
    drop(db);
    engine.restore(4, &restored, &RestoreOptions::default()).unwrap();
    assert_eq!(count(&Db::open(&restored, &OpenOptions::default()).unwrap()), 10);
    // RocksDB restores its own from beside ours, and does not take ours for a database of its own.
    engine.delete(4).unwrap();
    let again = dir.path().join("again");
    let (db, says_ok) =
        (format!("--db={}", again.display()), ldb(&[&format!("--db={}", again.display()), "restore", &to]));
    assert!(says_ok.0, "{}", says_ok.1);
    let (is_ok, keys) = ldb(&[&db, "scan"]);
    assert!(is_ok && keys.lines().count() == 9, "{keys}");
}

#[test]
fn an_exports_backup_by_rocksdb_comes_back() {
    let mut place = Place::new();
    place.write(2000);
    place.db.export(place.path("export"), &Default::default()).unwrap();
    let (db, to) = (format!("--db={}", place.path("export").display()), place.path("backups"));
    let (is_ok, said) = ldb(&[&db, "backup", &format!("--backup_dir={}", to.display())]);
    assert!(is_ok, "{said}");
    let engine = place.engine(&BackupOptions::default());
    assert_eq!(place.restored(&engine, 1), 2000);
}

/// Its checksum in the backup is right: every block is looked at.
#[test]
fn a_table_that_was_damaged_when_it_was_backed_up_is_found() {
    let mut place = Place::new();
    place.write(500);
    let engine = place.engine(&BackupOptions::default());
    let id = engine.create_new_backup(&place.db, true).unwrap();
    engine.verify(id).unwrap();
    let meta = place.path("backups/meta/1");
    let text = std::fs::read_to_string(&meta).unwrap();
    let line = text.lines().find(|line| line.contains(".sst crc32 ")).unwrap();
    let (name, _) = line.split_once(" crc32 ").unwrap();
    let table = place.path("backups").join(name);
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    let as_if_whole = format!("{name} crc32 {}", base::checksum::crc32c(&bytes));
    std::fs::write(&meta, text.replace(line, &as_if_whole)).unwrap();
    let error = engine.verify(id).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*table)), "{error:?}");
    assert!(error.message().contains("was damaged when it was backed up"), "{error:?}");
}
