//! What an ingest says that others can have waited for it, beside what they did wait.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use spillway::{
    Db, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, OpenOptions, TableWriter, WriteOptions,
};
use testkit::gate::GateVfs;
use testkit::threads::{start, wait_for, within};
use vfs::{MemoryVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(120);

/// Writes that are numbered behind an ingest are acknowledged once it is in the log: they wait for that, not for the commit
/// lock alone.
#[test]
fn the_way_into_the_log_is_counted_as_a_wait() {
    const HELD_FOR: Duration = Duration::from_secs(5);
    const STEPS: u32 = 50;
    within(LIMIT, || {
        let memory = MemoryVfs::new(1);
        memory.set_runs_inline(false);
        let (vfs, gate) = GateVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = vfs;
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Arc::new(Db::open("/db", &options).unwrap());
        let file = PathBuf::from("/one.sst");
        let mut table = TableWriter::create(vfs, &file, &FamilyOptions::default()).unwrap();
        table.put(b"key", b"ingested").unwrap();
        table.finish().unwrap();
        let request = IngestRequest::new(db.default_family(), vec![file]);
        let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
        gate.hold_after(0);
        let ingest = start({
            let db = db.clone();
            move || db.commit_ingest(prepared)
        });
        wait_for("the ingest's record", || gate.is_holding());
        let numbered = db.latest_sequence_number();
        let writer = start({
            let db = db.clone();
            move || db.put(&db.default_family(), b"other", b"written", &WriteOptions::default())
        });
        wait_for("the writer's entry", || {
            db.int_property(&db.default_family(), "rocksdb.num-entries-active-mem-table") == Some(1)
        });
        // From there on it has but a step to where it looks at the clock and waits.
        for _ in 0..STEPS {
            (0..1000).for_each(|_| std::thread::yield_now());
            memory.sleep(HELD_FOR / STEPS);
        }
        assert_eq!(db.latest_sequence_number(), numbered, "neither can be read before the ingest can");
        assert!(!writer.is_finished());
        gate.open();
        let report = ingest.join().unwrap().unwrap();
        writer.join().unwrap().unwrap();
        assert!(report.held_up_for >= HELD_FOR && report.locked_for < HELD_FOR, "{report:?}");
        let waits = db.ingest_waits();
        // The writer looks at the clock once more when the ingest has done so.
        let window = waits.longest_window + Duration::from_millis(1);
        assert!((HELD_FOR / 2..=window).contains(&waits.longest), "{waits:?}");
        assert_eq!((waits.waits, waits.brief_waits, waits.brief_total), (0, 1, waits.longest));
    });
}
