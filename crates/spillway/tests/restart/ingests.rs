//! Ingests at the kill: under the mutable memtable, above it, with a span that they remove, with a batch beside them. A
//! memtable beside one does not tell all, so that its family is replayed; the others are read as they lie.

use std::path::Path;
use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{
    Db, IngestOptions, IngestProgress, IngestReport, IngestRequest, TableWriter, WriteBatch, WriteOptions,
};

use crate::common::{Contents, MEMTABLES, batch, compare, contents, options};

/// Past the mark that memtables are told after so many bytes of log.
const WRITES: u64 = 260;
/// Behind the ingest.
const WRITES_AFTER: u64 = 4;

const TABLE: &str = "/table.sst";

/// What is brought into the family "second".
#[derive(Clone, Copy, Debug)]
struct Brought {
    /// Of the table's keys: `key` meets what memtables hold.
    prefix: &'static str,
    excises: bool,
    with_batch: bool,
}

const UNDER: Brought = Brought { prefix: "other", excises: false, with_batch: false };
const ABOVE: Brought = Brought { prefix: "key", ..UNDER };
const ALL: [Brought; 4] = [UNDER, ABOVE, Brought { excises: true, ..ABOVE }, Brought { with_batch: true, ..UNDER }];

fn ingest(db: &Db, vfs: &Arc<dyn Vfs>, brought: Brought) -> IngestReport {
    let family = db.family("second").unwrap();
    let path = Path::new(TABLE).to_owned();
    let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
    for i in 0..50 {
        table.put(format!("{}{:04}", brought.prefix, i * 10).as_bytes(), b"brought").unwrap();
    }
    table.finish().unwrap();
    let mut request = IngestRequest::new(family, vec![path]);
    request.excise = brought.excises.then(|| (b"key0100".to_vec(), b"key0300".to_vec()));
    let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
    let report = match brought.with_batch {
        false => db.commit_ingest(prepared).unwrap(),
        true => {
            let mut beside = WriteBatch::new();
            beside.put(db.default_family().id(), b"beside", b"brought");
            db.write_with_ingest(&beside, prepared).unwrap()
        }
    };
    vfs.remove_file(Path::new(TABLE)).unwrap();
    report
}

/// Runs the same life each time, and shows the world before and after its ingest, and at its end. Returns what it held
/// then.
fn live(way: (&str, bool), brought: Brought, mut look: impl FnMut(&Arc<MemoryVfs>)) -> [Contents; 2] {
    let memory = MemoryVfs::new(7);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let db = Db::open("/db", &options(vfs.clone(), way.0, way.1)).unwrap();
    for n in 0..WRITES {
        db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
    }
    let before = contents(&db);
    look(&memory);
    let report = ingest(&db, &vfs, brought);
    assert_eq!(report.under, usize::from(brought.prefix != "key"));
    let after = contents(&db);
    look(&memory);
    for n in WRITES..WRITES + WRITES_AFTER {
        db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
    }
    look(&memory);
    [before, after]
}

fn kill_everywhere(way: (&str, bool), brought: Brought) {
    let mut operations = Vec::new();
    let [before, after] = live(way, brought, |memory| operations.push(memory.operations()));
    let [start, ingested, end] = operations.try_into().unwrap();
    assert!(ingested - start > 8 && end > ingested, "{start} {ingested} {end}");
    let mut restored = 0;
    let mut seen = [false; 2];
    for operation in start..end {
        let mut killed = None;
        live(way, brought, |memory| match memory.take_crash_image() {
            Some(image) => killed = Some(image),
            None => memory.crash_at(operation, operation, CrashPolicy::ProcessKilled),
        });
        let found = compare(&killed.expect("a kill"), way.0, way.1);
        restored += found.restored;
        if operation < ingested {
            let states = [&before, &after].map(|state| found.contents == *state);
            assert!(states != [false, false], "half an ingest: {brought:?} {way:?}, operation {operation}");
            seen = [seen[0] | states[0], seen[1] | states[1]];
        }
    }
    assert!(restored > 0, "{brought:?}: no family was read as it lay");
    assert_eq!(seen, [true; 2], "{brought:?}: kills before the commit and behind it");
}

#[test]
fn a_kill_anywhere_in_an_ingest_leaves_it_whole_or_absent_by_image_and_by_replay() {
    for (n, brought) in ALL.into_iter().enumerate() {
        kill_everywhere((MEMTABLES[n % 2], n < 2), brought);
    }
}

/// The kill comes later, when memtables were marked again; and again in the midst of what the first left.
#[test]
fn ingests_between_marks_and_kills() {
    for memtable in MEMTABLES {
        let memory = MemoryVfs::new(7);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let db = Db::open("/db", &options(vfs.clone(), memtable, true)).unwrap();
        let mut n = 0;
        let mut restored = 0;
        for brought in ALL.into_iter().cycle().take(12) {
            for _ in 0..120 {
                db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
                n += 1;
            }
            ingest(&db, &vfs, brought);
            db.write(&batch(&db, n), &WriteOptions::default()).unwrap();
            let expected = contents(&db);
            let killed = memory.crash_clone(n, CrashPolicy::ProcessKilled);
            let again = Db::open("/db", &options(killed.clone(), memtable, true)).unwrap();
            again.write(&batch(&again, n + 1), &WriteOptions::default()).unwrap();
            let twice = killed.crash_clone(n, CrashPolicy::ProcessKilled);
            let further = contents(&again);
            let found = compare(&memory.crash_clone(n, CrashPolicy::ProcessKilled), memtable, true);
            assert!(found.contents == expected, "{memtable}, {brought:?}");
            assert!(compare(&twice, memtable, true).contents == further, "{memtable}, {brought:?}: killed twice");
            restored += found.restored;
        }
        assert!(restored > 0, "{memtable}");
    }
}
