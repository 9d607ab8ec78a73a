//! Ingestion bugs of other engines, one test each.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

mod beside;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::FileNumber;
use parking_lot::{Condvar, Mutex};
use testkit::concurrent::{self, FAMILIES, Worker};
use testkit::engine::compaction::CompactRangeOptions;
use testkit::engine::extend::{Event, EventListener};
use testkit::engine::{
    Db, ErrorKind, IngestMode, IngestOptions, IngestProgress, IngestRequest, OpenOptions, ReadOptions, TableWriter,
    WriteOptions,
};
use testkit::ingest::Way;
use testkit::run::{DIR, run_and_look};
use testkit::threads::{start, wait_for, within};
use testkit::{parse, profile};
use vfs::{CrashPolicy, Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};
use wal::{LogConfig, LogFile, RecordKind};

const LIMIT: Duration = Duration::from_secs(120);

fn threaded() -> Arc<MemoryVfs> {
    let memory = MemoryVfs::new(1);
    memory.set_runs_inline(false);
    memory
}

fn options(vfs: Arc<dyn Vfs>, profile_name: &str) -> OpenOptions {
    profile::by_name(profile_name).unwrap().open_options(vfs, [] as [&str; 0])
}

fn open(vfs: Arc<dyn Vfs>, profile_name: &str) -> Arc<Db> {
    Arc::new(Db::open(DIR, &options(vfs, profile_name)).unwrap())
}

/// A table of puts, with its name as values, and of range deletions `START-END`.
fn table(vfs: &Arc<dyn Vfs>, name: &str, entries: &[&str]) -> PathBuf {
    table_at(vfs, Path::new(&format!("/{name}.sst")), name, entries)
}

fn table_at(vfs: &Arc<dyn Vfs>, path: &Path, value: &str, entries: &[&str]) -> PathBuf {
    let options = profile::by_name("tiny").unwrap().family_options("default");
    let mut table = TableWriter::create(vfs.clone(), path, &options).unwrap();
    for entry in entries {
        match entry.split_once('-') {
            Some((start, end)) => table.delete_range(start.as_bytes(), end.as_bytes()).unwrap(),
            None => table.put(entry.as_bytes(), value.as_bytes()).unwrap(),
        }
    }
    table.finish().unwrap();
    path.to_owned()
}

fn put(db: &Db, key: &str, value: &str) {
    db.put(&db.default_family(), key.as_bytes(), value.as_bytes(), &WriteOptions::default()).unwrap();
}

fn get(db: &Db, key: &str) -> Option<String> {
    let found = db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn request(db: &Db, files: Vec<PathBuf>, excise: Option<(&str, &str)>) -> IngestRequest {
    let excise = excise.map(|(start, end)| (start.into(), end.into()));
    IngestRequest { excise, ..IngestRequest::new(db.default_family(), files) }
}

fn table_files(vfs: &MemoryVfs) -> BTreeMap<String, u64> {
    let names = vfs.read_dir(Path::new(DIR)).unwrap();
    let number = |name: String| Some((name.clone(), name.strip_suffix(".sst")?.parse().ok()?));
    names.into_iter().filter_map(number).collect()
}

/// Runs a script under every profile but `defaults` and by every ingest way; `@` stands for the way.
fn in_every_way(script: &str) {
    for profile in profile::ALL.iter().filter(|profile| profile.name != "defaults") {
        for way in Way::ALL {
            let text = format!("profile {}\n{}", profile.name, script.replace('@', way.word()));
            run_and_look(&parse::script(&text).unwrap(), |_| ()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
    }
}

/// Pebble: an ingest got a level below an older memtable flushed after it.
#[test]
fn an_older_memtable_flushed_after_an_ingest_stays_older() {
    in_every_way(
        "put default k old
         put default a x
         ingest @; file default; put k new; put m new
         check
         put default m newest
         flush default
         check
         compact default
         check
         reopen
         check",
    );
    // And the other way round: the ingest went under a memtable that takes newer entries of its keys.
    in_every_way(
        "put default a x
         ingest @; file default; put k old; delete-range m p
         put default k new
         put default n new
         check
         flush default
         check
         reopen
         check",
    );
}

/// Pebble: the overlap test checked the bounds of the tables but not of the excise.
#[test]
fn an_excise_wider_than_its_tables_meets_what_is_in_memory() {
    in_every_way(
        "put default m in-memory
         delete-range default s t
         put default s in-memory
         snapshot before
         ingest @; excise default c x; file default; put d 1
         put default m again
         check
         flush default
         check
         release before
         ingest @; excise default c n
         check
         reopen
         check",
    );
    // In the queue, and in tables.
    in_every_way(
        "put default m 1
         put default z 1
         ingest @; file default; put m 2; put n 2
         ingest @; excise default k p; file default; put a 1
         check
         compact default
         ingest @; excise default y zz
         check
         reopen
         check",
    );
}

/// Pebble: a range-deletion iterator failed during the overlap test, and the table went below entries it should have
/// deleted.
#[test]
fn a_table_that_cannot_be_probed_is_not_placed_below_it() {
    let options = profile::by_name("static-levels").unwrap().family_options("default");
    assert_eq!(options.merge_ingests_max_bytes, 0, "what stands over a memtable is linked");
    for nth in 1.. {
        let memory = MemoryVfs::new(1);
        {
            let vfs: Arc<dyn Vfs> = memory.clone();
            let db = open(vfs.clone(), "static-levels");
            let below = table(&vfs, "below", &["k", "l"]);
            db.ingest(&db.default_family(), &[below], &IngestOptions::default()).unwrap();
            let deleting = table(&vfs, "deleting", &["a", "c-p"]);
            db.ingest(&db.default_family(), &[deleting], &IngestOptions::default()).unwrap();
            db.flush(&[&db.default_family()]).unwrap();
            put(&db, "m", "held"); // so that the next ingest stays in the queue until the flush
        }
        let faulty = FaultVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = faulty.clone();
        let db = open(vfs.clone(), "static-levels");
        let file = table(&vfs, "again", &["k", "m"]);
        let request = request(&db, vec![file], None);
        let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).nth(nth).sticky());
        db.commit_ingest(prepared).unwrap(); // what fails is in the background
        let _failed_or_not = db.flush(&[&db.default_family()]);
        let fired = faulty.fired() > 0;
        faulty.clear();
        drop(db);
        for _ in 0..2 {
            let db = open(memory.clone(), "static-levels");
            assert_eq!(
                [get(&db, "k"), get(&db, "l"), get(&db, "m")],
                [Some("again".into()), None, Some("again".into())]
            );
            db.flush(&[&db.default_family()]).unwrap();
        }
        if !fired {
            assert!(nth > 1, "nothing was read");
            return;
        }
    }
}

/// Stops a compaction when it has begun.
#[derive(Default)]
struct HoldCompactions {
    held: Mutex<bool>,
    begun: AtomicBool,
    changed: Condvar,
}

impl EventListener for HoldCompactions {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::CompactionBegin { .. }) {
            self.begun.store(true, Ordering::Release);
            let mut held = self.held.lock();
            while *held {
                self.changed.wait(&mut held);
            }
        }
    }
}

/// Pebble: a compaction continued although an excise had removed its inputs, and resurrected deleted keys.
#[test]
fn a_compaction_of_what_is_excised_meanwhile_brings_nothing_back() {
    within(LIMIT, || {
        for way in [IngestMode::Flushable, IngestMode::Direct, IngestMode::Blocking, IngestMode::FlushFirst] {
            let memory = threaded();
            let vfs: Arc<dyn Vfs> = memory.clone();
            let hold = Arc::new(HoldCompactions { held: Mutex::new(true), ..HoldCompactions::default() });
            let mut opened = options(vfs.clone(), "tiny");
            opened.db.listeners.push(hold.clone());
            let db = Arc::new(Db::open(DIR, &opened).unwrap());
            ["a", "k", "z"].iter().for_each(|key| put(&db, key, "old"));
            db.flush(&[&db.default_family()]).unwrap();
            let compaction = start({
                let db = db.clone();
                move || db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default())
            });
            wait_for("the compaction", || hold.begun.load(Ordering::Acquire));
            let file = table(&vfs, "new", &["m"]);
            let request = request(&db, vec![file], Some(("b", "p")));
            db.ingest_all(&[request], &IngestOptions { mode: way, ..IngestOptions::default() }).unwrap();
            db.flush(&[&db.default_family()]).unwrap();
            *hold.held.lock() = false;
            hold.changed.notify_all();
            compaction.join().unwrap().unwrap();
            let check = |db: &Db| {
                let found = ["a", "k", "m", "z"].map(|key| get(db, key));
                assert_eq!(found, [Some("old".into()), None, Some("new".into()), Some("old".into())], "{way:?}");
            };
            check(&db);
            db.close().unwrap();
            drop(db);
            check(&open(memory, "tiny"));
        }
    });
}

/// Pebble: a checkpoint had the WAL, but not the queued tables named in it.
#[test]
fn a_checkpoint_has_the_tables_in_the_queue() {
    let script = "profile queued
        create other
        put default k 1
        put other k 1
        ingest flushable; excise default a c; file default; put k 2; file default; put k 3; file other; put k 2
        put default k 4
        checkpoint
        ingest flushable; file default; put k 5
        checkpoint
        check";
    let queued = run_and_look(&parse::script(script).unwrap(), |runner| {
        runner.db().live_files().iter().filter(|file| file.is_queued).count()
    });
    assert_eq!(queued, Ok(4), "they were in the queue all the time");
}

/// Pebble: after a crash between a table's link and its WAL record, its file number was reused.
#[test]
fn a_number_is_not_given_out_again_after_a_crash_before_the_commit() {
    for (policy, linked) in [(CrashPolicy::ProcessKilled, true), (CrashPolicy::NothingUnsyncedKept, false)] {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let db = open(vfs.clone(), "tiny");
        put(&db, "a", "1");
        let file = table(&vfs, "file", &["k"]);
        let options = IngestOptions { link_files: linked, ..IngestOptions::default() };
        let request = request(&db, vec![file], None);
        let prepared = db.prepare_ingest(&[request], &options, &IngestProgress::default()).unwrap();
        let image = memory.crash_clone(1, policy);
        drop(prepared);
        let before = table_files(&image);
        let last = *before.values().max().expect("the table was synced before it was committed");
        let again: Arc<dyn Vfs> = image.clone();
        let db = open(again.clone(), "tiny");
        assert_eq!(table_files(&image), BTreeMap::new(), "nobody knows it");
        let file = table(&again, "other", &["k"]);
        db.ingest(&db.default_family(), &[file], &IngestOptions::default()).unwrap();
        put(&db, "k", "2");
        db.flush(&[&db.default_family()]).unwrap();
        assert!(table_files(&image).values().all(|number| *number > last), "{last} was used before");
    }
}

/// Pebble: an ingest failed after its record was durable, and the cleanup deleted the tables named in the record.
#[test]
fn cleaning_up_after_an_error_spares_what_a_durable_record_names() {
    let faults = [Fault::ErrorAfter(FaultCode::Io), Fault::Error(FaultCode::Io)];
    for profile in ["tiny", "vector", "queued"] {
        for (operation, fault) in
            [Operation::Sync, Operation::SyncDir, Operation::Write].into_iter().flat_map(|o| faults.map(|f| (o, f)))
        {
            for nth in 1.. {
                if !fail_a_commit(profile, Rule::new(fault).on(operation).nth(nth)) {
                    break;
                }
            }
        }
    }
}

/// False if the fault did not occur.
fn fail_a_commit(profile: &str, rule: Rule) -> bool {
    let memory = MemoryVfs::new(1);
    let faulty = FaultVfs::new(memory.clone());
    let vfs: Arc<dyn Vfs> = faulty.clone();
    let db = open(vfs.clone(), profile);
    put(&db, "k", "old");
    let file = table(&vfs, "new", &["k", "l"]);
    let request = request(&db, vec![file.clone()], Some(("a", "c")));
    let options = IngestOptions { move_files: true, ..IngestOptions::default() };
    let prepared = db.prepare_ingest(&[request], &options, &IngestProgress::default()).unwrap();
    faulty.inject(rule.clone());
    let committed = db.commit_ingest(prepared);
    let fired = faulty.fired() > 0;
    drop(db);
    faulty.clear();
    assert!(committed.is_ok() || memory.exists(&file).unwrap(), "{rule:?}: it failed, and the caller's file is gone");
    let power_lost = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    for vfs in [memory, power_lost] {
        let db = Db::open(DIR, &self::options(vfs, profile)).unwrap_or_else(|e| panic!("{profile}, {rule:?}: {e:?}"));
        let found = [get(&db, "k"), get(&db, "l")];
        let new = [Some("new".to_owned()), Some("new".to_owned())];
        let is_old = found[1].is_none() && found[0].as_deref().is_none_or(|value| value == "old");
        assert!(found == new || (committed.is_err() && is_old), "{profile}, {rule:?}: {found:?} after {committed:?}");
    }
    fired
}

/// TiKV: ingests wrote the last sequence number without a lock, so it went backward. It was also published before the
/// tables were readable, so that a snapshot's contents changed.
#[test]
fn numbers_never_go_back_and_snapshots_stay_while_many_ingest() {
    /// Nobody says when the observer has its turn.
    const ATTEMPTS_MAX: u32 = 20;
    within(LIMIT, || {
        for way in [Way::Flushable, Way::Direct] {
            let is_seen = (0..ATTEMPTS_MAX).any(|_| is_seen_in_the_midst(way));
            assert!(is_seen, "{way:?}: no snapshot was ever taken while they ingested");
        }
    });
}

/// Runs many ingests and one observer. Returns whether the observer saw an intermediate state.
fn is_seen_in_the_midst(way: Way) -> bool {
    let vfs: Arc<dyn Vfs> = threaded();
    let profile = profile::by_name("tiny").unwrap();
    let db = Arc::new(Db::open(DIR, &profile.open_options(vfs.clone(), FAMILIES)).unwrap());
    let done = Arc::new(AtomicBool::new(false));
    let observer = start({
        let (db, done) = (db.clone(), done.clone());
        move || concurrent::observe(&db, 1, || !done.load(Ordering::Relaxed))
    });
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let (db, vfs, dir) = (db.clone(), vfs.clone(), PathBuf::from("/tables"));
            let ingests_percent = if number == 0 { 0 } else { 100 };
            let worker = Worker { db, vfs, dir, number, ingests_percent, ways: vec![way], durable: Arc::default() };
            start(move || worker.run(60))
        })
        .collect();
    let histories: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    done.store(true, Ordering::Relaxed);
    let seen = observer.join().unwrap();
    concurrent::check_prefixes(&histories, &seen);
    let last = db.latest_sequence_number();
    seen.iter().any(|seen| !seen.pairs.is_empty() && seen.snapshot.seq() < last)
}

/// Replay stops at a record that it cannot read: skipping it would lose a transaction.
#[test]
fn a_malformed_record_of_a_transaction_stops_replay() {
    for kind in [RecordKind::Prepare, RecordKind::Commit, RecordKind::Rollback] {
        let vfs = MemoryVfs::new(1);
        let db = open(vfs.clone(), "tiny");
        put(&db, "a", "1");
        db.close().unwrap();
        drop(db);
        let number = FileNumber(1_000);
        let path = Path::new(DIR).join(format!("{:06}.splog", number.0));
        let config = LogConfig { capacity_bytes: 1 << 16, ..LogConfig::default() };
        let log = LogFile::create(&*vfs, &path, number, config).unwrap();
        let reservation = log.try_reserve(3).unwrap();
        log.append(&reservation, kind, &[b"xyz"]).unwrap();
        log.publish(reservation.end());
        log.sync().unwrap();
        vfs.sync_dir(Path::new(DIR)).unwrap();
        let error = Db::open(DIR, &options(vfs, "tiny")).map(drop).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error:?}");
    }
}

/// Replay stops at a record it cannot apply: the named table is missing or is a different one.
#[test]
fn a_table_that_the_log_names_and_is_not_there_stops_replay() {
    let damages: [fn(&MemoryVfs, &Path); 2] =
        [|vfs, path| vfs.remove_file(path).unwrap(), |vfs, path| vfs.truncate(path, 100).unwrap()];
    for damage in damages {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let db = open(vfs.clone(), "queued");
        put(&db, "k", "1");
        let file = table(&vfs, "file", &["k"]);
        db.ingest(&db.default_family(), &[file], &IngestOptions::default()).unwrap();
        let [queued] = &db.live_files()[..] else { panic!("one table, in the queue") };
        let path = queued.path.clone();
        let image = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
        damage(&image, &path);
        let error = Db::open(DIR, &options(image, "queued")).map(drop).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error:?}");
    }
}

/// Only the open database that prepared an ingest commits it: not another one, nor a later open of the same.
#[test]
fn an_ingest_is_committed_by_the_database_that_prepared_it() {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let prepare = |db: &Db, name: &str| {
        let request = request(db, vec![table(&vfs, name, &["k"])], None);
        db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap()
    };
    let first = open(vfs.clone(), "tiny");
    let second = Db::open("/other", &options(vfs.clone(), "tiny")).unwrap();
    let error = second.commit_ingest(prepare(&first, "1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    let of_first = request(&first, vec![table(&vfs, "2", &["k"])], None);
    let error = second.prepare_ingest(&[of_first], &IngestOptions::default(), &IngestProgress::default());
    assert_eq!(error.map(drop).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let prepared = prepare(&first, "3");
    first.close().unwrap();
    drop(first);
    let again = open(vfs.clone(), "tiny");
    assert_eq!(again.commit_ingest(prepared).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!([get(&second, "k"), get(&again, "k")], [None, None]);
    assert_eq!(table_files(&memory), BTreeMap::new());
}
