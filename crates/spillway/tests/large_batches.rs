//! The files of large batches, alone and beside ingests: what needs them, and that none stays for nothing.
#![allow(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{self, CheckOptions};
use testkit::engine::dump;
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, IfExists, MemoryVfs, Operation, Rule, Vfs};
use testkit::engine::{
    Db, ErrorKind, Family, FamilyId, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, OpenOptions,
    PreparedIngest, ReadOptions, TableWriter, WriteBatch, WriteOptions,
};

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    options.db.large_batch_bytes = 16 << 10;
    options
}

/// Writes a batch of 20 KiB.
fn write_large(db: &Db, family: &Family, n: u32) -> testkit::engine::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(family.id(), &n.to_be_bytes(), &[7; 20 << 10]);
    db.write(&batch, &WriteOptions::default()).map(drop)
}

fn has(db: &Db, family: &Family, n: u32) -> bool {
    db.get(family, &n.to_be_bytes(), &ReadOptions::default()).expect("get").is_some()
}

fn batch_files(vfs: &dyn Vfs) -> usize {
    let names = vfs.read_dir(Path::new("/db")).expect("there");
    names.iter().filter(|name| name.ends_with(".spbatch")).count()
}

#[test]
fn files_of_large_batches_count_towards_the_limit_of_all_logs() {
    let vfs = MemoryVfs::new(1);
    let mut options = options(vfs.clone());
    options.db.max_total_wal_size = 128 << 10;
    let db = Db::open("/db", &options).expect("open");
    let idle = db.create_family("idle", Default::default()).expect("created");
    db.put(&idle, b"key", b"value", &WriteOptions::default()).expect("put");
    let family = db.default_family();
    let mut most = 0;
    for n in 0..50 {
        write_large(&db, &family, n).expect("written");
        most = most.max(batch_files(&*vfs));
        assert!(most <= 7, "{n}: {most}");
    }
    assert!(most >= 5, "the log that is written to counts with what is in it, not with the space that it has: {most}");
    assert!((0..50).all(|n| has(&db, &family, n)));
}

#[test]
fn a_large_batch_whose_file_cannot_be_synced_leaves_none() {
    let mut failed = 0;
    for nth in 1.. {
        let memory = MemoryVfs::new(2);
        let faulty = FaultVfs::new(memory.clone());
        let db = Db::open("/db", &options(faulty.clone())).expect("open");
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync).path(".spbatch").nth(nth));
        let family = db.default_family();
        let written = write_large(&db, &family, 1);
        if faulty.fired() == 0 {
            break;
        }
        written.expect_err("its file cannot be synced");
        assert_eq!(batch_files(&*memory), 0, "sync {nth}");
        write_large(&db, &family, 2).expect("written");
        assert!(!has(&db, &family, 1) && has(&db, &family, 2));
        failed += 1;
    }
    assert!(failed > 1, "the file is synced when it is made, and when it is filled");
}

/// A database of which nothing is flushed unless asked for, and its families.
struct Place {
    vfs: Arc<MemoryVfs>,
    db: Db,
}

impl Place {
    fn new(seed: u64) -> Place {
        let vfs = MemoryVfs::new(seed);
        let db = Db::open("/db", &waiting(vfs.clone())).expect("open");
        for name in ["second", "gone"] {
            db.create_family(name, waits()).expect("created");
        }
        Place { vfs, db }
    }

    fn family(&self, name: &str) -> Arc<Family> {
        self.db.family(name).expect("it is there")
    }

    fn table(&self, name: &str, entries: &[(&str, &str)]) -> PathBuf {
        let path = Path::new("/").join(name);
        let _ = self.vfs.remove_file(&path); // an earlier ingest's
        let mut table = TableWriter::create(self.vfs.clone(), &path, &FamilyOptions::default()).expect("new");
        entries.iter().for_each(|(key, value)| table.put(key.as_bytes(), value.as_bytes()).expect("ascending"));
        table.finish().expect("made");
        path
    }

    /// Two layers over an excise in the default family, a table in `second`.
    fn prepared(&self, progress: &IngestProgress) -> PreparedIngest {
        let layers = vec![
            self.table("lower.sst", &[("a", "lower"), ("b", "lower")]),
            self.table("upper.sst", &[("b", "upper"), ("c", "upper")]),
        ];
        let excise = Some((b"x".to_vec(), b"z".to_vec()));
        let first = IngestRequest { excise, ..IngestRequest::new(self.db.default_family(), layers) };
        let second = IngestRequest::new(self.family("second"), vec![self.table("second.sst", &[("a", "second")])]);
        self.db.prepare_ingest(&[first, second], &IngestOptions::default(), progress).expect("prepared")
    }

    /// A batch of 20 KiB over all families.
    fn batch(&self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"c", b"batch");
        batch.put(self.family("second").id(), b"big", &[7; 20 << 10]);
        batch.put(self.family("gone").id(), b"k", b"v");
        batch
    }

    /// With the ingest and the batch between writes that it hides or keeps.
    fn ingested(seed: u64) -> Place {
        let place = Place::new(seed);
        let put =
            |key: &str| place.db.put(&place.db.default_family(), key.as_bytes(), b"before", &WriteOptions::default());
        ["a", "m", "y"].iter().for_each(|key| put(key).expect("put"));
        let prepared = place.prepared(&IngestProgress::default());
        place.db.write_with_ingest(&place.batch(), prepared).expect("committed");
        put("n").expect("put");
        assert_eq!(batch_files(&*place.vfs), 1);
        place
    }
}

fn waits() -> FamilyOptions {
    FamilyOptions { min_write_buffer_number_to_merge: 8, max_write_buffer_number: 16, ..FamilyOptions::default() }
}

/// For every family that there is.
fn waiting(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let names = Db::list_families("/db", &vfs).unwrap_or_else(|_| vec!["default".to_owned()]);
    names.iter().fold(options(vfs), |options, name| options.family(name, waits()))
}

/// What [`Place::ingested`] holds.
fn check_ingested(db: &Db) {
    let get = |family: &Family, key: &str| db.get(family, key.as_bytes(), &ReadOptions::default()).expect("get");
    let text = |key: &str| get(&db.default_family(), key).map(|value| String::from_utf8_lossy(&value).into_owned());
    let expected = [("a", "lower"), ("b", "upper"), ("c", "batch"), ("m", "before"), ("n", "before")];
    expected.iter().for_each(|(key, value)| assert_eq!(text(key).as_deref(), Some(*value), "{key}"));
    assert_eq!(text("y"), None, "excised");
    let second = db.family("second").expect("there");
    assert_eq!(get(&second, "a").as_deref(), Some(&b"second"[..]));
    assert_eq!(get(&second, "big").map(|value| value.len()), Some(20 << 10));
    if let Some(gone) = db.family("gone") {
        assert!(get(&gone, "k").is_some());
    }
}

fn the_file(vfs: &MemoryVfs) -> PathBuf {
    vfs.all_files().into_iter().find(|path| path.extension().is_some_and(|end| end == "spbatch")).expect("one")
}

#[test]
fn an_ingest_with_a_large_batch_is_replayed_until_every_family_has_flushed_it() {
    let place = Place::ingested(3);
    check_ingested(&place.db);
    let log = place.vfs.all_files().into_iter().find(|path| path.extension().is_some_and(|end| end == "splog"));
    let log = place.vfs.read_file(&log.expect("one")).expect("read");
    assert!(!log.windows(100).any(|bytes| bytes == [7; 100]), "the batch was not copied into the log");
    let mut vfs = place.vfs.clone();
    for round in 0..3 {
        // Also without what was not synced.
        vfs = vfs
            .crash_clone(round, if round == 1 { CrashPolicy::NothingUnsyncedKept } else { CrashPolicy::ProcessKilled });
        let db = Db::open("/db", &waiting(vfs.clone())).unwrap_or_else(|e| panic!("{round}: {e}"));
        if round != 1 {
            db.put(&db.default_family(), b"n", b"before", &WriteOptions::synced()).expect("put");
        }
        check_ingested(&db);
        db.flush(&[&db.default_family()]).expect("flushed");
        if round == 2 {
            db.drop_family(&db.family("gone").expect("there")).expect("dropped");
        }
        assert_eq!(batch_files(&*vfs), 1, "others need it");
    }
    vfs = vfs.crash_clone(9, CrashPolicy::ProcessKilled);
    let db = Db::open("/db", &waiting(vfs.clone())).expect("without a family");
    check_ingested(&db);
    db.flush(&[&db.family("second").expect("there")]).expect("flushed");
    check_ingested(&db);
    db.close().expect("closed");
    assert_eq!(batch_files(&*vfs), 0);
    check_ingested(&Db::open("/db", &waiting(vfs)).expect("the record is of no family any more"));
}

#[test]
fn an_ingest_whose_large_batch_is_missing_or_damaged_is_refused_and_salvage_leaves_out_both() {
    let place = Place::ingested(4);
    let file = the_file(&place.vfs);
    let whole = place.vfs.read_file(&file).expect("there");
    let changed = [&whole[..5000], &[0], &whole[5001..]].concat();
    let left = [("missing", None), ("empty", Some(&whole[..128])), ("changed", Some(&changed[..]))];
    for (what, bytes) in left {
        let killed = || {
            let vfs = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
            match bytes {
                None => vfs.remove_file(&file).expect("removed"),
                Some(bytes) => vfs.write_file(&file, bytes).expect("written"),
            }
            vfs
        };
        let vfs = killed();
        let error = Db::open("/db", &waiting(vfs.clone())).err().expect(what);
        assert!(error.is_not_found() || error.kind() == ErrorKind::Corruption, "{what}: {error}");
        assert_eq!(error.path(), Some(&*file), "{what}: {error}");
        let options = CheckOptions { vfs, ..CheckOptions::default() };
        let report = check::check(Path::new("/db"), &options, &mut |_| ()).expect("checked");
        assert!(report.problems.iter().any(|problem| problem.0.path() == Some(&*file)), "{what}: {report:?}");
        let mut options = waiting(killed());
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        let db = Db::open("/db", &options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let has =
            |key: &str| db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).expect("get").is_some();
        assert_eq!(["a", "b", "c", "m", "n", "y"].map(has), [true, false, false, true, true, true], "{what}");
    }
}

#[test]
fn a_large_batch_beside_an_ingest_that_is_not_committed_leaves_no_file() {
    let place = Place::new(5);
    let progress = IngestProgress::default();
    let prepared = place.prepared(&progress);
    progress.cancel();
    place.db.write_with_ingest(&place.batch(), prepared).expect_err("cancelled");
    assert_eq!(batch_files(&*place.vfs), 0, "refused before it was numbered");
    let memory = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let faulty = FaultVfs::new(memory.clone());
    let place = Place { db: Db::open("/db", &waiting(faulty.clone())).expect("open"), vfs: memory };
    let prepared = place.prepared(&IngestProgress::default());
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Sync).path(".spbatch").nth(2));
    place.db.write_with_ingest(&place.batch(), prepared).expect_err("its file cannot be synced");
    assert_eq!((faulty.fired(), batch_files(&*place.vfs)), (1, 0));
    let prepared = place.prepared(&IngestProgress::default());
    place.db.write_with_ingest(&place.batch(), prepared).expect("nothing failed after a number was taken");
    // As a crash between the file's sync and the record: no record names the file.
    let copy = place.vfs.crash_clone(2, CrashPolicy::ProcessKilled);
    let bytes = copy.read_file(&the_file(&copy)).expect("there");
    copy.write_file(Path::new("/db/009999.spbatch"), &bytes).expect("written");
    Db::open("/db", &waiting(copy.clone())).expect("open").close().expect("closed");
    assert!(!copy.exists(Path::new("/db/009999.spbatch")).expect("looked"));
}

#[test]
fn copies_and_repairs_have_the_large_batch_beside_an_ingest() {
    let place = Place::ingested(6);
    place.db.checkpoint("/copy").expect("copied");
    check_ingested(&Db::open("/copy", &waiting(place.vfs.clone())).expect("the copy"));
    let backups = BackupOptions { vfs: place.vfs.clone(), ..BackupOptions::default() };
    let engine = BackupEngine::open("/backups", &backups).expect("open");
    engine.create_new_backup(&place.db, false).expect("backed up");
    engine.restore(1, "/restored", &RestoreOptions::default()).expect("restored");
    check_ingested(&Db::open("/restored", &waiting(place.vfs.clone())).expect("the backup"));
    let vfs = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let report = check::check(Path::new("/db"), &options, &mut |_| ()).expect("checked");
    assert!(report.is_whole(), "{:?}", report.problems);
    let last = place.db.latest_sequence_number();
    assert_eq!((report.log_changes, report.last_seq), (3 + 3 + 1, last), "the large batch's are among them");
    testkit::engine::repair("/db", &waiting(vfs.clone())).expect("repaired");
    check_ingested(&Db::open("/db", &waiting(vfs)).expect("the repaired"));
}

#[test]
fn a_repair_reports_a_large_batch_without_its_file() {
    for (is_missing, why) in [(true, "is missing"), (false, "the file of a large batch is empty")] {
        let place = Place::ingested(8);
        let last = place.db.latest_sequence_number();
        let vfs = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        let file = the_file(&vfs);
        match is_missing {
            true => vfs.remove_file(&file).expect("removed"),
            false => drop(vfs.create(&file, IfExists::Truncate).expect("emptied")),
        }
        let report = testkit::engine::repair("/db", &waiting(vfs.clone())).expect("repaired");
        let name = file.file_name().expect("named").to_string_lossy().into_owned();
        assert_eq!(report.logs.len(), 1, "{report:?}");
        assert!(report.logs[0].contains(&name) && report.logs[0].contains(why), "{report:?}");
        assert!(report.logs[0].ends_with("the large batch in it is lost"), "{report:?}");
        assert!(!report.lost_nothing() && report.last_seq == last, "{report:?}");
        let again = testkit::engine::repair("/db", &waiting(vfs.clone())).expect("repaired");
        assert!(again.found_nothing(), "{again:?}");
    }
}

#[test]
fn a_missing_large_batch_is_in_doubt_without_a_manifest() {
    let place = Place::ingested(10);
    let vfs = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let file = the_file(&vfs);
    let is_of_manifest = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains("MANIFEST") || name.ends_with(".spmanifest") || name.ends_with("CURRENT")
    };
    let gone = vfs.all_files().into_iter().filter(is_of_manifest).chain([file.clone()]);
    gone.for_each(|gone| vfs.remove_file(&gone).expect("removed"));
    let report = testkit::engine::repair("/db", &waiting(vfs)).expect("repaired");
    let name = file.file_name().expect("named").to_string_lossy().into_owned();
    let of_file: Vec<_> = report.doubts.iter().filter(|doubt| doubt.why.contains(&name)).collect();
    assert!(of_file.iter().any(|doubt| doubt.why.ends_with("unless it was flushed before")), "{report:?}");
    assert!(report.logs.is_empty() && !report.lost_nothing(), "{report:?}");
}

#[test]
fn a_repair_does_not_miss_a_large_batch_that_tables_have() {
    let place = Place::new(9);
    write_large(&place.db, &place.db.default_family(), 1).expect("written");
    place.db.put(&place.family("second"), b"keeps", b"the log", &WriteOptions::synced()).expect("put");
    place.db.flush(&[&place.db.default_family()]).expect("flushed");
    let vfs = place.vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let file = vfs.all_files().into_iter().find(|path| path.extension().is_some_and(|end| end == "spbatch"));
    file.into_iter().for_each(|file| vfs.remove_file(&file).expect("removed")); // as upkeep does in time
    let report = testkit::engine::repair("/db", &waiting(vfs)).expect("repaired");
    assert!(report.lost_nothing(), "{report:?}");
}

#[test]
fn a_dump_names_the_file_of_a_large_batch_and_shows_it() {
    let place = Place::ingested(7);
    let log = place.vfs.all_files().into_iter().find(|path| path.extension().is_some_and(|end| end == "splog"));
    let dumped = |path: &Path| {
        let mut text = String::new();
        dump::dump_log(&*place.vfs, path, &mut |line| {
            text.push_str(line);
            text.push('\n');
            true
        })
        .expect("dumped");
        text
    };
    let file = the_file(&place.vfs);
    let (text, name) = (dumped(&log.expect("one")), file.file_name().expect("named").to_string_lossy());
    assert!(text.contains("ingest from number 4, 2 families"), "{text}");
    assert!(text.contains(" bytes, arrived 20"), "by the wall clock: {text}");
    assert!(text.contains(&format!("batch from number 7, 3 changes, in {name}\n")), "{text}");
    let text = dumped(&file);
    assert!(text.contains("put 'k' => 'v' in family 2"), "{text}");
}
