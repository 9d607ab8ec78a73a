//! Checkpoints and exports made while writers go on: each is a prefix of the history.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

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
        let family = db.family(name).unwrap();
        let mut entries = db.iter(&family, &ReadOptions::default()).unwrap();
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

/// Ends the writer when dropped, by a panic too: who panics waits for it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_checkpoint_under_writes_is_a_prefix_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options()).unwrap();
    // A slow machine does not make the copies larger.
    let (written, allowed, ended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if written.load(Ordering::Relaxed) == allowed.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                    continue;
                }
                write(&db, written.load(Ordering::Relaxed));
                written.fetch_add(1, Ordering::Release);
            }
        });
        let _ends = Ends(&ended);
        for round in 0..20 {
            let path = dir.path().join(format!("checkpoint{round}"));
            allowed.fetch_add(5_000, Ordering::Relaxed);
            let before = written.load(Ordering::Acquire);
            db.checkpoint(&path).unwrap();
            let after = written.load(Ordering::Acquire);
            let report = check(&path, &CheckOptions::default(), &mut |_| {}).unwrap();
            assert!(report.is_whole(), "{:?}", report.problems);
            let copy = Db::open(&path, &options()).unwrap();
            let found = batches(&copy);
            assert!((before..=after + 1).contains(&found), "{found} of {before} to {after}");
            copy.put(&copy.default_family(), b"z", b"", &WriteOptions::default()).unwrap();
        }
    });
    assert_eq!(batches(&db), written.into_inner(), "the original is what it was");
}

#[test]
fn writes_that_are_in_no_log_are_in_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options()).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put(&db.default_family(), b"k", b"v", &unlogged).unwrap();
    db.checkpoint(dir.path().join("copy")).unwrap();
    let copy = Db::open(dir.path().join("copy"), &options()).unwrap();
    let value = copy.get(&copy.default_family(), b"k", &ReadOptions::default()).unwrap();
    assert_eq!(value.as_deref(), Some(&b"v"[..]));
}

#[test]
fn an_export_is_a_database_without_logs_that_can_be_taken_over_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options()).unwrap();
    (0..1000).for_each(|n| write(&db, n));
    let export = dir.path().join("export");
    let summary = db.export(&export, &ExportOptions::default()).unwrap();
    assert_eq!(summary.families, 2);
    let names: Vec<_> = std::fs::read_dir(&export).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".splog")), "{names:?}");
    assert_eq!(db.export(&export, &ExportOptions::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let report = check(&export, &CheckOptions::default(), &mut |_| {}).unwrap();
    assert!(report.is_whole() && report.is_rocksdbs, "{report:?}");
    let again = Db::open(&export, &options()).unwrap();
    assert_eq!(batches(&again), 1000);
}

#[test]
fn what_an_interrupted_checkpoint_left_is_removed_and_strangers_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options()).unwrap();
    let (target, left_over) = (dir.path().join("copy"), dir.path().join("copy.tmp"));
    std::fs::create_dir(&left_over).unwrap();
    std::fs::write(left_over.join("000007.sst"), "half").unwrap();
    std::fs::write(left_over.join("INCOMPLETE"), "an unfinished export, to become copy; make it again").unwrap();
    db.checkpoint(&target).unwrap();
    assert!(target.join("CURRENT").exists() && !left_over.exists());
    std::fs::remove_dir_all(&target).unwrap();
    std::fs::create_dir(&left_over).unwrap();
    std::fs::write(left_over.join("letter.txt"), "dear").unwrap();
    assert_eq!(db.checkpoint(&target).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(left_over.join("letter.txt").exists() && !target.exists());
}

/// The id that a directory's database has, opened for writing, and that its IDENTITY says then.
fn ids(dir: &std::path::Path) -> (String, String) {
    let db = Db::open(dir, &options()).unwrap();
    (db.identity().to_owned(), std::fs::read_to_string(dir.join("IDENTITY")).unwrap())
}

#[test]
fn a_copy_has_an_id_of_its_own_wherever_it_comes_from() {
    use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let db = Db::open(path("db"), &options()).unwrap();
    let id = db.identity().to_owned();
    write(&db, 0);
    db.flush(&db.families().iter().collect::<Vec<_>>()).unwrap();
    write(&db, 1); // in the log
    db.checkpoint(path("checkpoint")).unwrap();
    let backups = BackupEngine::open(path("backups"), &BackupOptions::default()).unwrap();
    backups.create_new_backup(&db, false).unwrap();
    backups.restore_latest(path("restored"), &RestoreOptions::default()).unwrap();
    // Over another database.
    let other = Db::open(path("other"), &options()).unwrap();
    assert_ne!(other.identity(), id);
    drop(other);
    backups.restore_latest(path("other"), &RestoreOptions::default()).unwrap();
    std::fs::write(path("checkpoint/IDENTITY"), "left by somebody else").unwrap();
    db.export(path("exported"), &ExportOptions::default()).unwrap();
    let copies = ["checkpoint", "restored", "other", "exported"];
    let mut known = std::collections::BTreeSet::from([id]);
    for copy in copies {
        let (of_manifest, of_file) = ids(&path(copy));
        assert_eq!((&of_manifest, &of_manifest), (&of_file, &ids(&path(copy)).0), "{copy}: it stays");
        assert!(known.insert(of_manifest), "{copy}: {known:?}");
        assert_eq!(batches(&Db::open(path(copy), &options()).unwrap()), 2, "{copy}");
    }
    let checkpoint = Db::open(path("checkpoint"), &options()).unwrap();
    checkpoint.checkpoint(path("second")).unwrap();
    assert!(known.insert(ids(&path("second")).0), "of a copy of a copy");
}
