//! Restores that keep the logs which are there: what they go on with is there too, or nothing is touched.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::vfs::RealVfs;
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestMode, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteOptions,
};

const MODES: [IngestMode; 4] =
    [IngestMode::Flushable, IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct];

fn options() -> OpenOptions {
    let mut family = FamilyOptions { disable_auto_compactions: true, ..FamilyOptions::default() };
    // A large batch waits for more, and its file stays.
    (family.min_write_buffer_number_to_merge, family.max_write_buffer_number) = (8, 9);
    let mut options = OpenOptions::create_if_missing().family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.large_batch_bytes = 16 << 10;
    options
}

/// A database, backups of it, and what it should hold.
struct Place {
    dir: tempfile::TempDir,
    options: OpenOptions,
    db: Db,
    expected: BTreeMap<String, usize>,
}

impl Place {
    fn new(options: OpenOptions) -> Place {
        Place::in_dir(tempfile::tempdir().unwrap(), options)
    }

    fn in_dir(dir: tempfile::TempDir, options: OpenOptions) -> Place {
        let db = Db::open(dir.path().join("db"), &options).unwrap();
        Place { dir, options, db, expected: BTreeMap::new() }
    }

    /// With a backup that has no logs.
    fn backed_up(options: OpenOptions) -> Place {
        Place::new(options).back_up()
    }

    /// The same, of a database with the id of another.
    fn backed_up_as(other: &Place, options: OpenOptions) -> Place {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("db")).unwrap();
        std::fs::write(dir.path().join("db/IDENTITY"), other.db.identity()).unwrap();
        Place::in_dir(dir, options).back_up()
    }

    fn back_up(self) -> Place {
        let mut place = self;
        place.put("before", 1);
        place.engine().create_new_backup(&place.db, true).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn engine(&self) -> BackupEngine {
        BackupEngine::open(self.path("backups"), &BackupOptions::default()).unwrap()
    }

    fn put(&mut self, key: &str, value_bytes: usize) {
        let value = vec![b'v'; value_bytes];
        self.db.put(&self.db.default_family(), key.as_bytes(), &value, &WriteOptions::default()).unwrap();
        self.expected.insert(key.to_owned(), value_bytes);
    }

    /// Keeps logs that the default family needs no more.
    fn put_second(&self) {
        self.db.put(&self.db.family("second").unwrap(), b"k", b"v", &WriteOptions::default()).unwrap();
    }

    fn ingest(&mut self, key: &str, mode: IngestMode) {
        let (file, family) = (self.path("in.sst"), self.db.default_family());
        let mut table = TableWriter::create(RealVfs::new(), &file, &family.options()).unwrap();
        table.put(key.as_bytes(), b"ingested").unwrap();
        table.finish().unwrap();
        self.db
            .ingest(&family, std::slice::from_ref(&file), &IngestOptions { mode, ..IngestOptions::default() })
            .unwrap();
        std::fs::remove_file(file).unwrap();
        self.expected.insert(key.to_owned(), 8);
    }

    fn flush(&self) {
        self.db.flush(&[&self.db.default_family()]).unwrap();
    }

    fn reopen(&mut self) {
        self.db.close().unwrap();
        self.db = Db::open(self.path("db"), &self.options).unwrap();
    }

    /// Closes the database, and restores the first backup with its logs.
    fn restore(&self) -> testkit::engine::Result<()> {
        self.db.close().unwrap();
        let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
        self.engine().restore(1, self.path("db"), &keep)
    }

    /// Panics where anything is missing.
    fn check(&self, what: &str) {
        let db = Db::open(self.path("db"), &self.options).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (key, value_bytes) in &self.expected {
            let value = db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(value.map(|value| value.len()), Some(*value_bytes), "{what}: {key}");
        }
    }

    fn files(&self) -> BTreeMap<String, u64> {
        let entries = std::fs::read_dir(self.path("db")).unwrap().map(Result::unwrap);
        entries.map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len())).collect()
    }

    /// The only file whose name ends so, or the last.
    fn last_file(&self, end: &str) -> PathBuf {
        let files = self.files();
        self.path("db").join(files.keys().rfind(|name| name.ends_with(end)).unwrap())
    }

    /// The restore is refused for a reason that names `why`, and has changed nothing.
    /// Moves the original on.
    fn put_into_original(&self, options: &OpenOptions) {
        let db = Db::open(self.path("db"), options).unwrap();
        db.put(&db.default_family(), b"later", b"v", &WriteOptions::default()).unwrap();
        db.close().unwrap();
    }

    fn check_refused(&self, why: &str) {
        self.db.close().unwrap();
        let before = self.files();
        let error = self.restore().expect_err(why);
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(why), "{error}");
        assert!(error.to_string().contains("keep_log_files"), "says what to do: {error}");
        assert_eq!(self.files(), before, "{why}");
    }
}

#[test]
fn kept_logs_go_on_with_the_tables_that_they_ingest() {
    for mode in MODES {
        let mut place = Place::backed_up(options());
        place.put("k1", 10);
        place.ingest("k2", mode);
        place.put("k3", 10);
        place.restore().unwrap();
        place.check(&format!("{mode:?}"));
    }
}

#[test]
fn kept_logs_go_on_with_ingested_tables_that_have_levels() {
    for mode in MODES {
        let mut place = Place::backed_up(options());
        place.put_second();
        place.ingest("k1", mode);
        place.put("k2", 10);
        place.flush();
        place.put("k3", 10);
        place.restore().unwrap();
        place.check(&format!("{mode:?}"));
    }
}

/// The first record after the backup is an ingest's, and the log that it would go on from is gone.
#[test]
fn an_ingest_is_the_first_that_a_kept_log_goes_on_with() {
    let mut place = Place::backed_up(options());
    place.reopen();
    place.ingest("k1", IngestMode::Flushable);
    place.restore().unwrap();
    place.check("first");
}

#[test]
fn kept_logs_go_on_with_large_batches_and_whatever_memtables_are_made_of() {
    let plain = options();
    let (mut images, mut values) = (options(), options());
    images.db.memtable_crash_safe_recover = true;
    values.db.memtable_as_log_index = true;
    for (what, options) in [("plain", plain), ("images", images), ("values in logs", values)] {
        let mut place = Place::new(self::options());
        place.put("before", 1);
        place.engine().create_new_backup(&place.db, true).unwrap();
        place.options = options;
        place.reopen();
        place.put_second();
        place.put("k1", 10);
        place.put("k2", 8 << 10);
        place.flush();
        place.put("k3", 64 << 10);
        assert!(place.files().keys().any(|name| name.ends_with(".spbatch")), "{what}: k3 is a large batch");
        place.put("k4", 8 << 10);
        place.restore().unwrap();
        place.check(what);
    }
}

/// Rewritten by a compaction, lost, or another one.
#[test]
fn a_restore_is_refused_where_what_kept_logs_name_is_not_there() {
    let mut rewritten = Place::backed_up(options());
    rewritten.put_second();
    rewritten.put("k", 10);
    rewritten.ingest("k", IngestMode::Flushable);
    rewritten.flush();
    let all = testkit::engine::CompactRangeOptions::default();
    rewritten.db.compact_range(&rewritten.db.default_family(), None, None, &all).unwrap();
    rewritten.check_refused(".sst");
    rewritten.check("the database is as it was");

    let mut cut = Place::backed_up(options());
    cut.put_second();
    cut.ingest("k", IngestMode::Flushable);
    cut.db.close().unwrap();
    let table = cut.last_file(".sst");
    let whole = std::fs::read(&table).unwrap();
    std::fs::write(&table, &whole[1..]).unwrap();
    cut.check_refused("bytes");
    let mut flipped = whole.clone();
    flipped[5] ^= 1;
    std::fs::write(&table, &flipped).unwrap();
    cut.check_refused(".sst");
    std::fs::write(&table, &whole).unwrap();
    cut.restore().unwrap();
    cut.check("mended");

    let mut large = Place::backed_up(options());
    large.put_second();
    large.put("k", 64 << 10);
    large.db.close().unwrap();
    let (file, aside) = (large.last_file(".spbatch"), large.path("aside"));
    std::fs::rename(&file, &aside).unwrap();
    large.check_refused(".spbatch");
    std::fs::rename(&aside, &file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[40 << 10] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    large.check_refused(".spbatch");
    std::fs::write(&file, &whole).unwrap();
    large.restore().unwrap();
    large.check("mended");
}

/// The logs of another history, whose tables have the numbers of the backup's.
#[test]
fn a_restore_is_refused_where_logs_are_of_another_history() {
    let mut other = Place::backed_up(options());
    for _ in 0..40 {
        other.ingest("other", IngestMode::Flushable);
    }
    other.flush();
    other.engine().create_new_backup(&other.db, true).unwrap();
    let mut place = Place::backed_up_as(&other, options());
    for n in 0..100 {
        place.put(&n.to_string(), 10);
    }
    for _ in 0..20 {
        place.ingest("k", IngestMode::Flushable);
    }
    place.db.close().unwrap();
    let before = place.files();
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let error = other.engine().restore(2, place.path("db"), &keep).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("another way"), "{error}");
    assert_eq!(place.files(), before);
    place.check("the database is as it was");
}

/// The next process may give its MANIFEST the number that the backup's has, and its logs note that one.
#[test]
fn logs_of_a_later_process_do_not_make_the_backups_manifest_too_short() {
    let mut place = Place::backed_up(options());
    place.reopen();
    place.put("after", 10);
    place.restore().unwrap();
    place.check("a later process's log");
}

#[test]
fn a_restore_is_refused_where_the_logs_are_another_database_s() {
    let (mut place, other) = (Place::backed_up(options()), Place::backed_up(options()));
    place.put("k", 10);
    place.db.close().unwrap();
    let before = place.files();
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let error = other.engine().restore(1, place.path("db"), &keep).unwrap_err();
    let ids = [&place, &other].map(|place| error.to_string().contains(place.db.identity()));
    assert!(error.kind() == ErrorKind::InvalidArgument && ids == [true; 2], "{error}");
    assert_eq!(place.files(), before);
    place.check("the database is as it was");
}

#[test]
fn a_restore_is_refused_where_kept_logs_do_not_follow_the_backup() {
    let mut place = Place::backed_up(options());
    place.put("k1", 10);
    place.flush();
    place.reopen();
    place.put("k2", 10);
    place.check_refused("is missing");
    place.check("the database is as it was");

    // A log that a crash ended, with another behind it: only the MANIFEST that would go says where it ended.
    let mut crashed = Place::backed_up(options());
    crashed.put("k1", 10);
    copy_all(&crashed.path("db"), &crashed.path("image"));
    crashed.db.close().unwrap();
    std::fs::remove_dir_all(crashed.path("db")).unwrap();
    std::fs::rename(crashed.path("image"), crashed.path("db")).unwrap();
    crashed.db = Db::open(crashed.path("db"), &crashed.options).unwrap();
    crashed.put("k2", 10);
    crashed.check_refused("end");
    crashed.check("the database is as it was");
}

/// The meta file has no checksum. The backup's MANIFEST has the number, too.
#[test]
fn wrong_last_number_in_the_meta_file_makes_no_logs_follow() {
    let mut place = Place::backed_up(options());
    place.put("k", 10);
    place.flush();
    let meta = place.path("backups/meta/1");
    let text = std::fs::read_to_string(&meta).unwrap();
    let wrong: Vec<&str> = text.lines().enumerate().map(|(nth, line)| if nth == 1 { "900" } else { line }).collect();
    std::fs::write(&meta, wrong.join("\n") + "\n").unwrap();
    let error = place.engine().verify(1).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*meta)), "{error}");
    place.check_refused("had writes through number");
    place.check("the database is as it was");
}

/// A log in each of three lives.
fn lived() -> Place {
    let mut place = Place::backed_up(options());
    for key in ["k1", "k2", "k3"] {
        place.reopen();
        place.put(key, 10);
    }
    place.db.close().unwrap();
    place
}

/// How a log is lost, or its end.
const DAMAGES: [fn(&Path); 4] = [
    |log| std::fs::remove_file(log).unwrap(),
    |log| std::fs::write(log, b"").unwrap(),
    |log| std::fs::write(log, vec![0; std::fs::metadata(log).unwrap().len() as usize]).unwrap(),
    |log| std::fs::write(log, &std::fs::read(log).unwrap()[..130]).unwrap(),
];

/// What was flushed lies in tables that a restore deletes.
#[test]
fn a_restore_is_refused_where_a_flush_let_logs_go() {
    for with_logs in [false, true] {
        let mut place = Place::backed_up(options());
        if with_logs {
            place.put("in the log", 10);
            place.engine().create_new_backup(&place.db, false).unwrap();
            place.engine().delete(1).unwrap();
        }
        place.put("k", 10);
        place.flush();
        place.db.close().unwrap();
        let before = place.files();
        let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
        let error = place.engine().restore(1 + u32::from(with_logs), place.path("db"), &keep).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("had writes through number"), "{error}");
        assert_eq!(place.files(), before);
        place.check("the database is as it was");
    }
}

/// The last log's successor would name it; only the existing MANIFEST does.
#[test]
fn a_restore_is_refused_where_the_last_log_is_lost_or_damaged() {
    let place = lived();
    let log = place.last_file(".splog");
    let whole = std::fs::read(&log).unwrap();
    for damage in DAMAGES {
        damage(&log);
        place.check_refused("cannot be kept");
        std::fs::write(&log, &whole).unwrap();
    }
    let current = std::fs::read_to_string(place.path("db/CURRENT")).unwrap();
    let manifest = place.path("db").join(current.trim());
    let text = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, &text[..20]).unwrap();
    std::fs::remove_file(&log).unwrap();
    place.check_refused("cannot be kept"); // its copy tells
    std::fs::write(&log, &whole).unwrap();
    let copy = place.last_file(".spmanifest");
    let text = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, &text[..20]).unwrap();
    place.check_refused("only the MANIFEST that is there tells");
    std::fs::write(&copy, &text).unwrap();
    place.restore().unwrap();
    place.check("all is there");
}

/// The existing MANIFEST is gone by then.
#[test]
fn a_restore_that_begins_again_wants_the_same_logs() {
    let place = lived();
    let table = std::fs::read_dir(place.path("backups/shared_checksum")).unwrap().next().unwrap().unwrap().path();
    let backed_up = std::fs::read(&table).unwrap();
    std::fs::write(&table, [&[!backed_up[0]], &backed_up[1..]].concat()).unwrap();
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let restore = || place.engine().restore(1, place.path("db"), &keep);
    assert_eq!(restore().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!place.path("db/CURRENT").exists());
    std::fs::write(&table, &backed_up).unwrap();
    let log = place.last_file(".splog");
    let whole = std::fs::read(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    place.check_refused("cannot be kept");
    std::fs::write(&log, &whole).unwrap();
    restore().unwrap();
    place.check("begun again");
}

/// The backup's MANIFEST names none of them.
#[test]
fn kept_logs_that_are_lost_before_the_first_open_are_missed() {
    let place = lived();
    place.restore().unwrap();
    let files = place.files();
    let logs = files.keys().filter(|name| name.ends_with(".splog")).map(|name| place.path("db").join(name));
    let logs: Vec<PathBuf> = logs.collect();
    let whole: Vec<Vec<u8>> = logs.iter().map(|log| std::fs::read(log).unwrap()).collect();
    let is_missed = |what: &str| {
        let error = Db::open(place.path("db"), &place.options).err().expect(what);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
        assert!(!check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole(), "{what}");
        logs.iter().zip(&whole).for_each(|(log, bytes)| std::fs::write(log, bytes).unwrap());
    };
    for (nth, log) in logs.iter().enumerate() {
        for (how, damage) in DAMAGES.iter().enumerate() {
            damage(log);
            is_missed(&format!("log {nth}, damage {how}"));
        }
    }
    logs.iter().for_each(|log| std::fs::remove_file(log).unwrap());
    is_missed("all logs");
    assert!(check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole());
    place.check("all is there");
}

/// Neither has an end record.
#[test]
fn kept_log_that_a_crash_ended_is_whole_beside_one_that_was_made_ahead() {
    let mut place = Place::backed_up(options());
    place.put("after", 10);
    copy_all(&place.path("db"), &place.path("image"));
    place.db.close().unwrap();
    std::fs::remove_dir_all(place.path("db")).unwrap();
    std::fs::rename(place.path("image"), place.path("db")).unwrap();
    std::fs::write(place.path("db/009999.splog"), vec![0; 4096]).unwrap();
    place.restore().unwrap();
    std::fs::remove_file(place.path("db/009999.splog")).unwrap();
    place.check("the crashed log");
}

/// Families that were made after the backup do not come back. Others that are made now have their numbers.
#[test]
fn families_that_the_backup_does_not_know_leave_nothing_to_those_made_since() {
    for ingests in [false, true] {
        let mut place = Place::backed_up(options());
        let family = FamilyOptions::default();
        for name in ["x", "y"] {
            let made = place.db.create_family(name, family.clone()).unwrap();
            place.db.put(&made, b"of", name.as_bytes(), &WriteOptions::synced()).unwrap();
            if ingests {
                let file = place.path("in.sst");
                let mut table = TableWriter::create(RealVfs::new(), &file, &family).unwrap();
                table.put(b"ingested", name.as_bytes()).unwrap();
                table.finish().unwrap();
                place.db.ingest(&made, std::slice::from_ref(&file), &IngestOptions::default()).unwrap();
                std::fs::remove_file(file).unwrap();
            }
        }
        place.put("k1", 10);
        place.restore().unwrap();
        place.options = options().family("y", family.clone()).family("x", family);
        place.check("others are there");
        let db = Db::open(place.path("db"), &place.options).unwrap();
        for name in ["x", "y"] {
            let family = db.family(name).unwrap();
            for key in [&b"of"[..], b"ingested"] {
                assert!(db.get(&family, key, &ReadOptions::default()).unwrap().is_none(), "{name}, {ingests}");
            }
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A copy by `cp -r` has its original's `wal_dir` and id.
#[test]
fn copied_files_leave_the_logs_of_their_original() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    let mut apart = options();
    apart.db.wal_dir = logs.display().to_string();
    let mut place = Place::in_dir(dir, apart.clone());
    place.put("k", 1);
    place.db.close().unwrap();
    // The name of the directory may go, where it is a symbolic link.
    let (link, mut by_link) = (place.path("link"), apart.clone());
    by_link.db.wal_dir = link.display().to_string();
    std::os::unix::fs::symlink(&logs, &link).unwrap();
    Db::open(place.path("db"), &by_link).unwrap().close().unwrap();
    std::fs::remove_file(link).unwrap();
    let (copy, spare) = (place.path("copy"), place.path("spare"));
    copy_all(&place.path("db"), &copy);
    copy_all(&place.path("db"), &spare);
    let refused = |error: testkit::engine::Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("copy of the files of") && error.message().contains("wal_dir"), "{error}");
    };
    refused(Db::open(&copy, &apart).err().unwrap());
    refused(testkit::engine::repair(&copy, &apart).err().unwrap());
    Db::destroy_by(&spare, &apart.db, &apart.vfs).unwrap();
    let how = RestoreOptions { wal_dir: Some(logs.clone()), keep_log_files: false };
    let backups = place.engine();
    backups.create_new_backup(&Db::open(place.path("db"), &apart).unwrap(), true).unwrap();
    let error = backups.restore(1, &copy, &how).err();
    assert!(error.is_none_or(|error| error.kind() == ErrorKind::InvalidArgument));
    place.check("of the original nothing is gone");

    // With a copy of the logs, too, the copy is whole; and a database may move.
    copy_all(&place.path("db"), &place.path("second"));
    copy_all(&logs, &place.path("logs of second"));
    let mut second = apart.clone();
    second.db.wal_dir = place.path("logs of second").display().to_string();
    place.put_into_original(&apart);
    Db::open(place.path("second"), &second).unwrap().close().unwrap();
    std::fs::rename(place.path("db"), place.path("moved")).unwrap();
    let moved = Db::open(place.path("moved"), &apart).unwrap();
    moved.flush(&[&moved.default_family()]).unwrap();
    moved.checkpoint(place.path("checkpoint")).unwrap();
    moved.close().unwrap();
    drop(moved);

    // A copy is one, too, where its original has no log at the time. The old place of a database may hold its checkpoint, or be none.
    copy_all(&place.path("moved"), &place.path("third"));
    std::fs::rename(&logs, place.path("aside")).unwrap();
    std::fs::create_dir(&logs).unwrap();
    refused(Db::open(place.path("third"), &apart).err().unwrap());
    std::fs::remove_dir(&logs).unwrap();
    std::fs::rename(place.path("aside"), &logs).unwrap();
    std::fs::create_dir(place.path("home")).unwrap();
    std::fs::rename(place.path("moved"), place.path("home/db")).unwrap();
    std::fs::rename(place.path("checkpoint"), place.path("moved")).unwrap();
    Db::open(place.path("home/db"), &apart).unwrap().close().unwrap();
    std::fs::rename(place.path("home/db"), place.path("db")).unwrap();
    std::fs::remove_dir(place.path("home")).unwrap();
    std::fs::write(place.path("home"), b"a file").unwrap();
    place.check("its old place is in no directory");
}

/// A snapshot of the file system was brought back, and the database lived on.
#[test]
fn no_logs_are_kept_that_went_another_way_than_the_backup() {
    let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
    place.put("first", 1);
    place.db.close().unwrap();
    copy_all(&place.path("db"), &place.path("snapshot"));
    place.reopen();
    place.put("lost", 1);
    place.engine().create_new_backup(&place.db, true).unwrap();
    place.db.close().unwrap();
    std::fs::remove_dir_all(place.path("db")).unwrap();
    std::fs::rename(place.path("snapshot"), place.path("db")).unwrap();
    place.expected.remove("lost");
    place.reopen();
    place.put("after", 1);
    place.put("later", 1);
    place.db.close().unwrap();
    place.check_refused("went another way");
}

/// The copy came as far as the backup, and flushed nothing. A snapshot may be of the session in which the backup was made.
#[test]
fn no_logs_are_kept_of_a_copy_that_came_as_far() {
    for is_copied_while_open in [false, true] {
        let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
        place.put("first", 1);
        if !is_copied_while_open {
            place.db.close().unwrap();
        }
        copy_all(&place.path("db"), &place.path("copy"));
        if !is_copied_while_open {
            place.reopen();
        }
        place.put("of the original", 1);
        place.engine().create_new_backup(&place.db, true).unwrap();
        place.db.close().unwrap();
        std::fs::remove_dir_all(place.path("db")).unwrap();
        std::fs::rename(place.path("copy"), place.path("db")).unwrap();
        for key in ["copy's", "copy's next", "copy's last"] {
            place.reopen();
            place.put(key, 1);
        }
        place.check_refused("went another way");
    }
}

/// Logs and large batches of one name, of two copies that went on apart.
#[test]
fn log_of_a_copy_is_never_replayed() {
    for (end, value_bytes) in [(".splog", 1), (".spbatch", 64 << 10)] {
        let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
        place.put("before", 1);
        place.db.close().unwrap();
        copy_all(&place.path("db"), &place.path("copy"));
        place.reopen();
        place.put("own", value_bytes);
        place.db.close().unwrap();
        let copy = Db::open(place.path("copy"), &place.options).unwrap();
        let value = vec![b'c'; value_bytes];
        copy.put(&copy.default_family(), b"own", &value, &WriteOptions::default()).unwrap();
        copy.close().unwrap();
        let own = place.last_file(end);
        std::fs::copy(&own, place.path("aside")).unwrap();
        std::fs::copy(place.path("copy").join(own.file_name().unwrap()), &own).unwrap();

        let error = Db::open(place.path("db"), &place.options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains("a copy of this database") && error.path() == Some(&own), "{error}");
        assert!(!check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole());
        let (mut salvage, salvaged) = (place.options.clone(), place.path("salvaged"));
        salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        copy_all(&place.path("db"), &salvaged);
        let db = Db::open(&salvaged, &salvage).unwrap();
        assert!(!db.recovery_doubts().is_empty());
        assert_eq!(db.get(&db.default_family(), b"own", &ReadOptions::default()).unwrap(), None);
        db.close().unwrap();

        copy_all(&place.path("db"), &place.path("repaired"));
        let report = testkit::engine::repair(place.path("repaired"), &place.options).unwrap();
        assert!(!report.doubts.is_empty() && !report.logs.is_empty(), "{report:?}");
        let kept = place.path("repaired").join("lost").join(own.file_name().unwrap());
        assert_eq!(std::fs::read(kept).unwrap(), std::fs::read(&own).unwrap());

        std::fs::copy(place.path("aside"), &own).unwrap();
        place.check("with its own log again");
    }
}

/// Its place among the sessions tells a log of a copy that was opened more often, and so notes a later MANIFEST.
#[test]
fn log_of_a_copy_between_own_logs_is_never_replayed() {
    let mut options = options();
    options.db.log_file_bytes = 64 << 10;
    options.db.large_batch_bytes = 1 << 20;
    options.db.avoid_flush_during_shutdown = true;
    let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options);
    place.put("before", 1);
    place.db.close().unwrap();
    copy_all(&place.path("db"), &place.path("copy"));
    place.reopen();
    (0..60).for_each(|n| place.put(&format!("k{n:03}"), 4000));
    place.db.close().unwrap();
    let logs = |dir: &Path| {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let logs = names.filter(|name| name.to_str().unwrap().ends_with(".splog"));
        logs.collect::<std::collections::BTreeSet<_>>()
    };
    for part in [0..20, 20..60] {
        let copy = Db::open(place.path("copy"), &place.options).unwrap();
        for n in part {
            copy.put(&copy.default_family(), format!("k{n:03}").as_bytes(), &[b'c'; 4000], &WriteOptions::default())
                .unwrap();
        }
        copy.close().unwrap();
    }
    let (own, copys) = (logs(&place.path("db")), logs(&place.path("copy")));
    let mut exchanged = 0;
    for name in own.intersection(&copys).filter(|name| Some(*name) != own.last()) {
        let (from, to) = (place.path("copy").join(name), place.path("db").join(name));
        let kept = std::fs::read(&to).unwrap();
        if kept == std::fs::read(&from).unwrap() {
            continue; // of before the copy
        }
        exchanged += 1;
        std::fs::copy(from, &to).unwrap();
        let error = Db::open(place.path("db"), &place.options).err().unwrap();
        assert!(error.message().contains("a copy of this database") && error.path() == Some(&to), "{error}");
        assert!(!check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole());
        let _ = std::fs::remove_dir_all(place.path("repaired"));
        copy_all(&place.path("db"), &place.path("repaired"));
        assert!(!testkit::engine::repair(place.path("repaired"), &place.options).unwrap().lost_nothing());
        std::fs::write(&to, kept).unwrap();
    }
    assert!(exchanged > 1, "{own:?}, {copys:?}");
    place.check("with its own logs again");
}

/// The restored MANIFEST is an older one than the kept logs note: their sessions tell whose they are.
#[test]
fn log_of_a_copy_in_the_place_of_a_kept_one_is_never_replayed() {
    let mut place = Place::backed_up(options());
    place.db.close().unwrap();
    copy_all(&place.path("db"), &place.path("copy"));
    place.reopen();
    place.reopen();
    place.put("own", 1);
    let own = place.last_file(".splog");
    Db::open(place.path("copy"), &place.options).unwrap().close().unwrap();
    let copy = Db::open(place.path("copy"), &place.options).unwrap();
    copy.put(&copy.default_family(), b"own", b"copy's", &WriteOptions::default()).unwrap();
    let copys = std::fs::read(place.path("copy").join(own.file_name().unwrap())).unwrap();
    drop(copy);
    place.restore().unwrap();
    let kept = std::fs::read(&own).unwrap();
    std::fs::write(&own, copys).unwrap();
    assert!(Db::open(place.path("db"), &place.options).is_err());
    assert!(!check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole());
    std::fs::write(&own, kept).unwrap();
    place.check("with its own log again");
}

/// No table has what the backup had: it was deleted, or is a family.
#[test]
fn no_logs_are_kept_of_another_way_that_no_table_tells() {
    type Step = fn(&Db);
    let delete: Step = |db| {
        let (family, options) = (db.default_family(), WriteOptions::default());
        db.put(&family, b"q", b"v", &options).unwrap();
        db.single_delete(&family, b"q", &options).unwrap();
    };
    let write: Step = |db| {
        for key in [b"j", b"k"] {
            db.put(&db.default_family(), key, b"own", &WriteOptions::default()).unwrap();
        }
    };
    let make = |db: &Db, name: &str| drop(db.create_family(name, FamilyOptions::default()).unwrap());
    let steps: [(&str, Step, Step); 2] =
        [("deleted", delete, write), ("dropped", |db| db.drop_family(&db.family("second").unwrap()).unwrap(), write)];
    for (what, of_backup, of_snapshot) in steps {
        let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
        place.put("first", 1);
        place.flush();
        copy_all(&place.path("db"), &place.path("snapshot"));
        of_backup(&place.db);
        place.engine().create_new_backup(&place.db, true).unwrap();
        place.db.close().unwrap();
        std::fs::remove_dir_all(place.path("db")).unwrap();
        std::fs::rename(place.path("snapshot"), place.path("db")).unwrap();
        place.reopen();
        of_snapshot(&place.db);
        assert!(place.restore().is_err(), "{what}");
    }
    let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
    copy_all(&place.path("db"), &place.path("snapshot"));
    make(&place.db, "of the backup");
    place.engine().create_new_backup(&place.db, true).unwrap();
    place.db.close().unwrap();
    std::fs::remove_dir_all(place.path("db")).unwrap();
    std::fs::rename(place.path("snapshot"), place.path("db")).unwrap();
    place.reopen();
    make(&place.db, "of the snapshot");
    place.check_refused("another way");
}

/// A repair takes logs of sessions that the MANIFEST does not know, and its database opens.
#[test]
fn repair_over_an_older_manifest_leaves_a_database_that_opens() {
    for value_bytes in [1, 64 << 10] {
        let mut options = options();
        options.db.avoid_flush_during_shutdown = true;
        let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options);
        place.options.db.wal_dir = place.path("logs").display().to_string();
        std::fs::create_dir(place.path("logs")).unwrap();
        place.db.close().unwrap();
        std::fs::remove_dir_all(place.path("db")).unwrap();
        place.db = Db::open(place.path("db"), &place.options).unwrap();
        place.put("first", 1);
        place.db.close().unwrap();
        copy_all(&place.path("db"), &place.path("old"));
        for key in ["second", "third"] {
            place.db = Db::open(place.path("db"), &place.options).unwrap();
            place.put(key, value_bytes);
            place.db.close().unwrap();
        }
        std::fs::remove_dir_all(place.path("db")).unwrap();
        std::fs::rename(place.path("old"), place.path("db")).unwrap();
        assert!(Db::open(place.path("db"), &place.options).is_err());
        assert!(!testkit::engine::repair(place.path("db"), &place.options).unwrap().lost_nothing());
        for _ in 0..2 {
            place.check("after the repair");
        }
    }
}

/// A log that nothing names may be anybody's. The newest one may have writes.
#[test]
fn log_that_cannot_be_read_stops_no_open_if_nothing_names_it() {
    let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
    for _ in 0..4 {
        place.put("k", 1);
        place.reopen();
    }
    place.db.close().unwrap();
    let log = place.last_file(".splog");
    let number: u64 = log.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let stray = |number: u64| place.path("db").join(format!("{number:06}.splog"));
    let is_free = |number: &u64| !stray(*number).exists();
    let before = (1..number).rev().find(is_free).unwrap();
    std::fs::write(stray(before), [7; 4096]).unwrap();
    assert!(check(&place.path("db"), &CheckOptions::default(), &mut |_| {}).unwrap().is_whole());
    Db::open(place.path("db"), &place.options).unwrap().close().unwrap();
    std::fs::write(stray(number + 50), [7; 4096]).unwrap();
    assert!(Db::open(place.path("db"), &place.options).is_err());
}

/// Else a restore deletes the database, and cannot end.
#[test]
fn file_in_the_place_of_lost_is_told_before_anything_is_deleted() {
    let mut place = Place::in_dir(tempfile::tempdir().unwrap(), options());
    place.put("k", 1);
    place.engine().create_new_backup(&place.db, true).unwrap();
    place.db.close().unwrap();
    let lost = place.path("db/lost");
    std::os::unix::fs::symlink(place.path("nowhere"), &lost).unwrap();
    let before = place.files();
    let errors = [
        place.engine().restore(1, place.path("db"), &RestoreOptions::default()).unwrap_err(),
        Db::destroy(place.path("db"), None, &place.options.vfs).unwrap_err(),
    ];
    for error in errors {
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("move it away"), "{error}");
    }
    assert_eq!(place.files(), before);
    std::fs::remove_file(lost).unwrap();
    place.check("nothing is gone");
}

/// Nothing tells whose it is, and no database opens beside it.
#[test]
fn no_restore_beside_a_log_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    let mut apart = options();
    apart.db.wal_dir = logs.display().to_string();
    let mut place = Place::in_dir(dir, apart.clone());
    place.put("k", 1);
    place.engine().create_new_backup(&place.db, true).unwrap();
    place.db.close().unwrap();
    let log = logs.join("000099.splog");
    std::fs::write(&log, [7; 4096]).unwrap();
    let how = RestoreOptions { wal_dir: Some(logs), keep_log_files: false };
    let before = place.files();
    let error = place.engine().restore(1, place.path("db"), &how).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.path() == Some(&*log), "{error}");
    assert_eq!(place.files(), before);
    std::fs::remove_file(&log).unwrap();
    place.engine().restore(1, place.path("db"), &how).unwrap();
    place.check("restored");
}

/// A backup's MANIFEST names none of the logs that are kept, so an open elsewhere would miss nothing.
#[test]
fn logs_kept_in_another_directory_are_not_forgotten() {
    use std::os::unix::ffi::OsStrExt;

    for name in ["logs".as_bytes(), b"logs \xff"] {
        check_kept_apart(std::ffi::OsStr::from_bytes(name));
    }
}

fn check_kept_apart(name: &std::ffi::OsStr) {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join(name);
    let mut apart = options();
    apart.db.wal_dir = spillway::internal::name::of_path(&logs).into_owned();
    let mut place = Place::in_dir(dir, apart.clone()).back_up();
    place.put("after", 1);
    place.db.close().unwrap();
    place.check_refused(&format!("has its logs in {}", logs.display()));
    let how = RestoreOptions { wal_dir: Some(logs.clone()), keep_log_files: true };
    place.engine().restore(1, place.path("db"), &how).unwrap();
    std::fs::rename(&logs, place.path("unmounted")).unwrap();
    std::fs::create_dir(&logs).unwrap();
    let error = Db::open(place.path("db"), &apart).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    std::fs::remove_dir(&logs).unwrap();
    std::fs::rename(place.path("unmounted"), &logs).unwrap();
    let error = Db::open(place.path("db"), &options()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(&format!("open with wal_dir={}", logs.display())), "{error}");
    place.check("with wal_dir");
    Db::destroy_by(place.path("db"), &apart.db, &apart.vfs).unwrap();
    assert!(!logs.exists() || std::fs::read_dir(&logs).unwrap().count() == 0);
}

/// An empty log directory, and the database's own by another name.
#[test]
fn no_directory_of_logs_is_the_databases() {
    for keep_log_files in [false, true] {
        for own in ["", "db/../db"] {
            let place = Place::backed_up(options());
            place.db.close().unwrap();
            let wal_dir = Some(if own.is_empty() { PathBuf::new() } else { place.path(own) });
            let how = RestoreOptions { wal_dir, keep_log_files };
            place.engine().restore(1, place.path("db"), &how).unwrap();
            let files = place.files();
            let stored = files.keys().find(|name| name.starts_with("OPTIONS-")).unwrap();
            let stored = std::fs::read_to_string(place.path("db").join(stored)).unwrap();
            assert!(!stored.contains("db/../db"), "the database can be moved");
            place.check(own);
        }
    }
}

#[test]
fn a_restore_stores_the_directory_of_its_logs() {
    use spillway::Options;
    let mut place = Place::backed_up(options());
    let logs = place.path("logs");
    let how = RestoreOptions { wal_dir: Some(logs.clone()), keep_log_files: false };
    let to = place.path("restored");
    place.engine().restore(1, &to, &how).unwrap();
    place.expected.clear();
    let db = spillway::Db::open_with(&to, &Options::new()).unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    assert!(std::fs::read_dir(&logs).unwrap().count() > 0, "the log lies there");
}
