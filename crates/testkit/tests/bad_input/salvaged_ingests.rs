//! WAL records of ingests whose replay fails, in the mode that skips such records. Nothing of such an ingest is there,
//! and later writes stay.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::extend::{Event, EventListener};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{
    Db, FamilyOptions, IngestOptions, IngestRequest, OpenOptions, OtherFamilies, ReadOptions, TableWriter,
    WriteOptions, repair,
};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::doubts::in_doubt;

const DIR: &str = "/db";
const FAMILIES: [&str; 2] = ["default", "other"];

fn options(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.db.wal_recovery_mode = mode;
    options.other_families = OtherFamilies::OpenWith(Box::default());
    options
}

fn open(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> Db {
    Db::open(DIR, &options(vfs, mode)).unwrap()
}

fn put(db: &Db, key: &str) {
    for name in FAMILIES {
        let family = db.family(name).unwrap();
        db.put(&family, key.as_bytes(), b"written", &WriteOptions::synced()).unwrap();
    }
}

/// Keys of each family.
fn keys(db: &Db) -> [Vec<String>; 2] {
    FAMILIES.map(|name| {
        let mut iterator = db.iter(&db.family(name).unwrap(), &ReadOptions::default()).unwrap();
        let mut keys = Vec::new();
        let mut valid = iterator.seek_to_first();
        while valid {
            keys.push(String::from_utf8(iterator.key().to_vec()).unwrap());
            valid = iterator.next();
        }
        iterator.status().unwrap();
        keys
    })
}

/// Takes the file system as a crash leaves it when an ingest is durable, before a flush gives its tables levels.
struct CrashOnceIngested {
    vfs: Arc<MemoryVfs>,
    image: Mutex<Option<Arc<MemoryVfs>>>,
}

impl EventListener for CrashOnceIngested {
    fn on_event(&self, event: &Event) {
        if let Event::Ingested { .. } = event {
            self.image.lock().get_or_insert_with(|| crashed(&self.vfs));
        }
    }
}

fn crashed(vfs: &Arc<MemoryVfs>) -> Arc<MemoryVfs> {
    vfs.crash_clone(1, CrashPolicy::NothingUnsyncedKept)
}

/// A database with two queued tables in each of its two families, from one ingest at the end of the WAL. Also returns
/// the tables.
fn with_queued_tables() -> (Arc<MemoryVfs>, Vec<PathBuf>) {
    let vfs = MemoryVfs::new(1);
    let crash = Arc::new(CrashOnceIngested { vfs: vfs.clone(), image: Mutex::default() });
    let mut options = options(&vfs, WalRecoveryMode::PointInTime);
    options.db.listeners.push(crash.clone());
    let db = Db::open(DIR, &options).unwrap();
    db.create_family("other", FamilyOptions::default()).unwrap();
    put(&db, "before");
    let request = |name: &str| {
        let family = db.family(name).unwrap();
        let files = ["1", "2"].map(|file| {
            let path = PathBuf::from(format!("/{name}-{file}.sst"));
            let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
            table.put(b"ingested", b"").unwrap();
            table.finish().unwrap();
            path
        });
        IngestRequest::new(family, files.to_vec())
    };
    db.ingest_all(&FAMILIES.map(request), &IngestOptions::default()).unwrap();
    let whole = crash.image.lock().take().unwrap();
    let is_table = |path: &PathBuf| path.starts_with(DIR) && path.extension().is_some_and(|name| name == "sst");
    let tables = whole.all_files().into_iter().filter(is_table).collect();
    (whole, tables)
}

#[test]
fn an_ingest_that_lacks_a_table_is_passed_over_whole_and_later_writes_stay() {
    let (whole, tables) = with_queued_tables();
    assert_eq!(tables.len(), 4);
    let before = vec!["before".to_owned()];
    for lost in &tables {
        let vfs = crashed(&whole);
        vfs.remove_file(lost).unwrap();
        let db = open(&vfs, WalRecoveryMode::SkipAnyCorruptedRecords);
        let salvaged = keys(&db);
        let of_ingest = FAMILIES.map(|family| (family, "ingested"));
        let all = [&of_ingest[..], &FAMILIES.map(|family| (family, "before"))].concat();
        assert_eq!(in_doubt(&db, &all), of_ingest, "{:?}", db.recovery_doubts());
        put(&db, "after"); // by numbers that nothing else has
        let found = keys(&open(&crashed(&vfs), WalRecoveryMode::PointInTime));
        let expected = [before.clone(), before.clone()].map(|keys| [vec!["after".to_owned()], keys].concat());
        assert_eq!((found, salvaged), (expected, [before.clone(), before.clone()]), "without {}", lost.display());
        for table in tables.iter().filter(|table| *table != lost) {
            let kept = Path::new(DIR).join("lost").join(table.file_name().unwrap());
            assert_eq!(
                vfs.read_file(&kept).unwrap(),
                whole.read_file(table).unwrap(),
                "the rest of the ingest is kept"
            );
        }
    }
}

/// With all tables present, nothing is lost.
#[test]
fn an_ingest_that_is_whole_is_salvaged() {
    let db = open(&with_queued_tables().0, WalRecoveryMode::SkipAnyCorruptedRecords);
    assert!(db.recovery_doubts().is_empty());
    assert_eq!(keys(&db), [(); 2].map(|()| ["before", "ingested"].map(str::to_owned).to_vec()));
}

/// No table of the ingest is taken for a leftover: it was durable.
#[test]
fn tables_that_only_a_lost_log_named_are_told_and_taken_again() {
    let (vfs, tables) = with_queued_tables();
    let whole = crashed(&vfs);
    let mode = WalRecoveryMode::PointInTime;
    let logs: Vec<_> = vfs.all_files().into_iter().filter(|path| path.to_string_lossy().ends_with(".splog")).collect();
    let log = logs.iter().max_by_key(|log| vfs.read_file(log).unwrap().iter().filter(|byte| **byte > 0).count());
    vfs.remove_file(log.unwrap()).unwrap();
    let checked = |vfs: &Arc<MemoryVfs>| {
        let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        check(Path::new(DIR), &options, &mut |_| ()).unwrap()
    };
    let report = checked(&vfs);
    let is_told = |note: &String| note.starts_with("4 tables that nothing readable names");
    assert!(!report.is_whole() && report.superfluous.is_empty(), "{report:?}");
    assert!(report.notes.iter().any(is_told), "{report:?}");
    let report = repair(DIR, &options(&vfs, mode)).unwrap();
    let text = report.to_string();
    assert!(text.contains("4 tables that nothing readable names"), "{text}");
    assert!(text.contains("`spillway ingest` takes them again") && !text.contains("belonged to nothing"), "{text}");
    assert_eq!(report.superfluous.len(), tables.len(), "{text}");
    // Beside whole logs a table without a name is left over.
    whole.write_file(&PathBuf::from("/db/000999.sst"), &whole.read_file(&tables[0]).unwrap()).unwrap();
    assert_eq!(checked(&whole).superfluous.len(), 1);
    let text = repair(DIR, &options(&whole, mode)).unwrap().to_string();
    assert!(text.contains("1 file that belonged to nothing is in lost/ now"), "{text}");
}

/// The log names the tables of an ingest until they have levels.
#[test]
fn a_table_exchanged_for_another_is_not_the_one_of_the_log() {
    let (whole, tables) = with_queued_tables();
    let vfs = crashed(&whole);
    let path = PathBuf::from("/other.sst");
    let mut table = TableWriter::create(vfs.clone(), &path, &FamilyOptions::default()).unwrap();
    table.put(b"ingestee", b"").unwrap();
    table.finish().unwrap();
    let exchanged = &vfs.read_file(&path).unwrap();
    vfs.write_file(&tables[0], exchanged).unwrap();
    let report = repair(DIR, &options(&vfs, WalRecoveryMode::PointInTime)).unwrap();
    let [lost] = &report.lost[..] else { panic!("{report}") };
    assert!(lost.why.starts_with("Mismatch in unique ID on table file: expected "), "{report}");
}
