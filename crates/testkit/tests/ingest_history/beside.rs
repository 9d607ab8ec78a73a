//! Progress of other operations beside a stalled ingest or writer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use testkit::engine::{
    Db, ErrorKind, IngestMode, IngestOptions, IngestProgress, IngestRequest, OpenOptions, WriteBatch, WriteOptions,
};
use testkit::gate::{Calls, Gate, GateVfs};
use testkit::profile;
use testkit::run::DIR;
use testkit::threads::{start, wait_for, within};
use vfs::{IoClass, RealVfs, Vfs};

use super::{LIMIT, get, options, put, request, table, table_at, threaded};

/// A database with two families and several flush threads.
fn open_gated() -> (Arc<Db>, Arc<dyn Vfs>, Arc<Gate>) {
    open_gated_with(|_| {})
}

fn open_gated_with(change: impl FnOnce(&mut OpenOptions)) -> (Arc<Db>, Arc<dyn Vfs>, Arc<Gate>) {
    let (gated, gate) = GateVfs::new(threaded());
    let mut opened = options(gated.clone(), "tiny");
    opened.db.max_background_jobs = 8;
    opened.db.log_file_bytes = 1 << 20; // a full log is another matter
    change(&mut opened);
    let db = Db::open(DIR, &opened).unwrap();
    db.create_family("other", profile::by_name("tiny").unwrap().family_options("other")).unwrap();
    (Arc::new(db), gated, gate)
}

/// Runs beside a held call: a write, a snapshot, a read, properties under the state lock, a memtable switch, and a
/// flush of another family. The flush is skipped if the held call belongs to the WAL or the MANIFEST: it needs both.
fn others_go_on(db: &Arc<Db>, gate: &Gate) {
    let flushes = !matches!(gate.held_for(), Some(IoClass::Log | IoClass::Manifest));
    let others = start({
        let db = db.clone();
        move || {
            let (family, other) = (db.default_family(), db.family("other").unwrap());
            put(&db, "z", "new");
            assert_eq!((db.snapshot().seq(), get(&db, "z").as_deref()), (db.latest_sequence_number(), Some("new")));
            for property in ["rocksdb.num-running-flushes", "rocksdb.compaction-pending", "spillway.ingests-queued"] {
                db.int_property(&family, property).unwrap();
            }
            let entries = || db.int_property(&family, "rocksdb.num-entries-active-mem-table").unwrap();
            let (mut before, value) = (entries(), "v".repeat(4 << 10));
            while entries() >= before {
                before = entries();
                put(&db, "zz", &value);
            }
            if flushes {
                db.put(&other, b"k", b"other", &WriteOptions::default()).unwrap();
                db.flush(&[&other]).unwrap();
            }
        }
    });
    wait_for("the others", || others.is_finished());
    others.join().unwrap();
    assert!(gate.is_holding());
}

/// Pebble: ingests held the commit lock during syncs and reads. Here each file-system call of the ingesting thread is
/// held in turn, and all other operations must proceed.
///
/// WAL stores are left out: the ingest has its sequence number by then, and later numbers are published after it.
#[test]
fn nobody_waits_for_an_ingest_s_calls_to_the_file_system() {
    for mode in [IngestMode::Flushable, IngestMode::Direct] {
        let mut held = 0;
        while within(LIMIT, move || hold_call(mode, held)) {
            held += 1;
        }
        assert!(held > 5, "{mode:?}: an ingest makes more than {held} calls");
    }
}

/// False if the ingest has no such call.
fn hold_call(mode: IngestMode, passing: u64) -> bool {
    let (db, vfs, gate) = open_gated();
    ["a", "k", "z"].iter().for_each(|key| put(&db, key, "old"));
    let request = request(&db, vec![table(&vfs, "held", &["k", "l"])], Some(("b", "p")));
    let beside = table(&vfs, "beside", &["x", "y"]);
    let ingest = start({
        let (db, gate) = (db.clone(), gate.clone());
        move || {
            gate.hold_call(Calls::Of(std::thread::current().id()), passing);
            db.ingest_all(&[request], &IngestOptions { mode, ..IngestOptions::default() })
        }
    });
    wait_for("the call", || gate.is_holding() || ingest.is_finished());
    let held = gate.is_holding();
    if held {
        others_go_on(&db, &gate);
    }
    // Where the log's sync is held, its own has to wait for that.
    let other = start({
        let db = db.clone();
        move || db.ingest(&db.default_family(), &[beside], &IngestOptions::default())
    });
    gate.open();
    ingest.join().unwrap().unwrap();
    other.join().unwrap().unwrap();
    let found = ["a", "k", "l", "y", "z"].map(|key| get(&db, key));
    let expected =
        ["old", "held", "held", "beside", if held { "new" } else { "old" }].map(|value| Some(value.to_owned()));
    assert_eq!(found, expected, "{mode:?}, call {passing}");
    held
}

/// A family is dropped during a stalled ingest behind into it and another family. The other family has its table, or
/// nothing of the ingest is left.
#[test]
fn an_ingest_from_behind_is_all_there_or_not_at_all_where_a_family_is_dropped() {
    let (mut held, mut refused) = (0, 0);
    while let Some(was_done) = within(LIMIT, move || drop_beside_behind(held)) {
        (held, refused) = (held + 1, refused + u32::from(!was_done));
    }
    assert!(refused > 0 && refused < held as u32, "of {held} calls {refused} were before the drop");
}

/// Whether the ingest succeeded; `None` if it has no such call.
fn drop_beside_behind(passing: u64) -> Option<bool> {
    let (db, vfs, gate) = open_gated_with(|options| options.db.allow_ingest_behind = true);
    let other = db.family("other").unwrap();
    put(&db, "z", "new"); // for the ingest to sync
    let requests = [(db.default_family(), "one"), (other.clone(), "two")]
        .map(|(family, name)| IngestRequest::new(family, vec![table(&vfs, name, &["k"])]));
    let options = IngestOptions { ingest_behind: true, ..IngestOptions::default() };
    let prepared = db.prepare_ingest(&requests, &options, &IngestProgress::default()).unwrap();
    let commit = start({
        let (db, gate) = (db.clone(), gate.clone());
        move || {
            gate.hold_call(Calls::Of(std::thread::current().id()), passing);
            db.commit_ingest(prepared)
        }
    });
    wait_for("the call", || gate.is_holding() || commit.is_finished());
    let held = gate.is_holding();
    let dropping = start({
        let db = db.clone();
        move || db.drop_family(&other)
    });
    // The MANIFEST is written by one at a time, and a drop syncs the log before (D2).
    let is_awaited = || matches!(gate.held_for(), Some(IoClass::Manifest | IoClass::Log));
    wait_for("the drop", || dropping.is_finished() || is_awaited());
    gate.open();
    dropping.join().unwrap().unwrap();
    let outcome = commit.join().unwrap();
    let was_done = outcome.is_ok();
    if let Err(error) = outcome {
        assert_eq!(error.kind(), ErrorKind::Closed, "call {passing}: {error}");
        let left = vfs.read_dir(Path::new(DIR)).unwrap().into_iter().filter(|name| name.ends_with(".sst")).count();
        assert_eq!(left, 0, "call {passing}");
    }
    assert_eq!(get(&db, "k").is_some(), was_done, "call {passing}");
    held.then_some(was_done)
}

/// The same for the reads of a flush placing ingested tables.
#[test]
fn nobody_waits_for_the_flush_that_seeks_levels() {
    let mut held = 0;
    while within(LIMIT, move || hold_probe(held)) {
        held += 1;
    }
    assert!(held > 0, "nothing was read");
}

/// False if the flush has no such read.
fn hold_probe(passing: u64) -> bool {
    let (db, vfs, gate) = open_gated();
    let family = db.default_family();
    ["a", "z"].iter().for_each(|key| put(&db, key, "old"));
    db.flush(&[&family]).unwrap();
    let request = request(&db, vec![table(&vfs, "between", &["k", "l"])], None);
    let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
    gate.hold_call(Calls::For(IoClass::Ingest), passing);
    db.commit_ingest(prepared).unwrap();
    let flush = start({
        let (db, family) = (db.clone(), family.clone());
        move || db.flush(&[&family])
    });
    wait_for("the read", || gate.is_holding() || flush.is_finished());
    let held = gate.is_holding();
    if held {
        others_go_on(&db, &gate);
    }
    gate.open();
    flush.join().unwrap().unwrap();
    assert_eq!(["a", "k"].map(|key| get(&db, key)), ["old", "between"].map(|value| Some(value.to_owned())));
    held
}

/// A writer has its sequence numbers but has not inserted its entries yet. An overlapping ingest must go above the
/// writer's memtable and be newer. The range between two keys of a batch counts as written.
#[test]
fn what_unfinished_writers_touch_is_met() {
    let cases: [(&[&str], bool); 4] = [(&["k"], true), (&["a", "k"], true), (&["h", "q"], true), (&["a", "c"], false)];
    for (written, meets) in cases {
        within(LIMIT, move || ingest_beside_a_writer(written, meets));
    }
}

fn ingest_beside_a_writer(written: &'static [&'static str], meets: bool) {
    let (db, vfs, gate) = open_gated();
    put(&db, "z", "the first write makes the log");
    let before = db.latest_sequence_number();
    let request = request(&db, vec![table(&vfs, "ingested", &["k", "l"])], None);
    let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
    gate.hold_after(0);
    let writer = start({
        let db = db.clone();
        move || {
            let mut batch = WriteBatch::new();
            written.iter().for_each(|key| batch.put(db.default_family().id(), key.as_bytes(), b"written"));
            db.write(&batch, &WriteOptions::default()).unwrap()
        }
    });
    wait_for("the writer", || gate.is_holding());
    let stores = gate.stores();
    let ingest = start({
        let db = db.clone();
        move || db.commit_ingest(prepared).unwrap()
    });
    wait_for("the ingest's record", || gate.stores() > stores);
    assert_eq!((gate.is_holding(), db.latest_sequence_number()), (true, before), "published in turn");
    gate.open();
    let (report, last) = (ingest.join().unwrap(), writer.join().unwrap());
    assert_eq!((report.above, report.under), if meets { (1, 0) } else { (0, 1) }, "beside {written:?}");
    assert!(report.first > last);
    let check = |db: &Db| {
        assert_eq!(["k", "l"].map(|key| get(db, key)), [Some("ingested".into()), Some("ingested".into())]);
        for key in written.iter().filter(|key| **key != "k") {
            assert_eq!(get(db, key).as_deref(), Some("written"));
        }
    };
    check(&db);
    db.flush(&[&db.default_family()]).unwrap();
    check(&db);
}

/// Pebble: ingests spun for their turn under the commit lock. Here writers progress beside many ingests, and the lock
/// is mostly held for less than a millisecond: its holder can lose its processor.
#[test]
fn writers_get_on_beside_many_ingests() {
    const INGESTS: usize = 8 * 25;
    within(LIMIT, || {
        let dir = tempfile::tempdir().unwrap();
        let vfs: Arc<dyn Vfs> = RealVfs::new(); // whose clock goes on
        let db = Arc::new(Db::open(dir.path().join("db"), &options(vfs.clone(), "tiny")).unwrap());
        let ingesters: Vec<_> = (0..8)
            .map(|number| {
                let (db, vfs, dir) = (db.clone(), vfs.clone(), dir.path().to_owned());
                start(move || {
                    let ingest = |round: usize| {
                        let file = table_at(&vfs, &dir.join(format!("{number}-{round}.sst")), "new", &["k"]);
                        let options = IngestOptions { move_files: true, ..IngestOptions::default() };
                        db.ingest(&db.default_family(), &[file], &options).unwrap().locked_for
                    };
                    (0..INGESTS / 8).map(ingest).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut writes = 0;
        while !ingesters.iter().all(std::thread::JoinHandle::is_finished) {
            put(&db, "w", "1");
            writes += 1;
        }
        let mut locked: Vec<_> = ingesters.into_iter().flat_map(|ingester| ingester.join().unwrap()).collect();
        locked.sort();
        let median = locked[INGESTS / 2];
        println!("{writes} writes; the commit lock was held for {median:?}, {:?} at the most", locked[INGESTS - 1]);
        assert!(writes > INGESTS, "only {writes} writes beside {INGESTS} ingests");
        assert!(
            median > Duration::ZERO && median < Duration::from_millis(1),
            "the commit lock was held for {median:?}"
        );
    });
}
