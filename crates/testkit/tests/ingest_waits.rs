//! What an ingest says that others can have waited for it, beside what they did wait.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use spillway::{
    Db, FamilyOptions, IngestOptions, IngestProgress, IngestReport, IngestRequest, OpenOptions, PreparedIngest,
    ReadOptions, TableWriter, WriteBatch, WriteOptions,
};
use testkit::gate::{Gate, GateVfs};
use testkit::threads::{start, wait_for, within};
use vfs::{MemoryVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(120);

const HELD_FOR: Duration = Duration::from_secs(5);

/// A database on a file system whose stores to logs can be held, and whose clock stands still by itself.
struct World {
    memory: Arc<MemoryVfs>,
    gate: Arc<Gate>,
    db: Arc<Db>,
    prepared: Vec<PreparedIngest>,
}

impl World {
    /// Each ingest is of one table with one key, which is not in memory.
    fn with_ingests(count: usize) -> World {
        let memory = MemoryVfs::new(1);
        memory.set_runs_inline(false);
        let (vfs, gate) = GateVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = vfs;
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Arc::new(Db::open("/db", &options).unwrap());
        let prepare = |n: usize| {
            let file = PathBuf::from(format!("/{n}.sst"));
            let mut table = TableWriter::create(vfs.clone(), &file, &FamilyOptions::default()).unwrap();
            table.put(format!("key {n}").as_bytes(), b"ingested").unwrap();
            table.finish().unwrap();
            let request = IngestRequest::new(db.default_family(), vec![file]);
            db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap()
        };
        let prepared = (0..count).map(prepare).collect();
        World { memory, gate, db, prepared }
    }

    fn commit_next(&mut self) -> JoinHandle<IngestReport> {
        let (db, prepared) = (self.db.clone(), self.prepared.remove(0));
        start(move || db.commit_ingest(prepared).unwrap())
    }

    /// With a batch, whose record is so long that writers leave it to the ingest.
    fn commit_next_with_batch(&mut self) -> JoinHandle<IngestReport> {
        let (db, prepared) = (self.db.clone(), self.prepared.remove(0));
        let mut batch = WriteBatch::new();
        batch.put(db.default_family().id(), b"batch", &[0; 32 << 10]);
        start(move || db.write_with_ingest(&batch, prepared).unwrap())
    }

    fn has(&self, key: &str) -> bool {
        let found = self.db.get(&self.db.default_family(), key.as_bytes(), &ReadOptions::default());
        found.unwrap().is_some()
    }

    /// Starts a writer and returns once it has but a step to where it looks at the clock and waits.
    fn write(&self) -> JoinHandle<()> {
        let db = self.db.clone();
        let writer =
            start(move || db.put(&db.default_family(), b"other", b"written", &WriteOptions::default()).unwrap());
        wait_for("the writer's entry", || {
            self.db.int_property(&self.db.default_family(), "rocksdb.num-entries-active-mem-table") == Some(1)
        });
        writer
    }

    fn let_time_pass(&self) {
        const STEPS: u32 = 50;
        for _ in 0..STEPS {
            (0..1000).for_each(|_| std::thread::yield_now());
            self.memory.sleep(HELD_FOR / STEPS);
        }
    }
}

/// Writes that are numbered behind an ingest are acknowledged once it is in the log: they wait for that, not for the commit
/// lock alone.
#[test]
fn the_way_of_a_long_record_into_the_log_is_counted_as_a_wait() {
    within(LIMIT, || {
        let mut world = World::with_ingests(1);
        world.gate.hold_after(0);
        let ingest = world.commit_next_with_batch();
        wait_for("the ingest's record", || world.gate.is_holding());
        let numbered = world.db.latest_sequence_number();
        let writer = world.write();
        world.let_time_pass();
        assert_eq!(world.db.latest_sequence_number(), numbered, "neither can be read before the ingest can");
        assert!(!writer.is_finished());
        world.gate.open();
        let report = ingest.join().unwrap();
        writer.join().unwrap();
        assert!(report.held_up_for >= HELD_FOR && report.locked_for < HELD_FOR, "{report:?}");
        let waits = world.db.ingest_waits();
        // The writer looks at the clock once more when the ingest has done so.
        let window = waits.longest_window + Duration::from_millis(1);
        assert!((HELD_FOR / 2..=window).contains(&waits.longest), "{waits:?}");
        assert_eq!((waits.waits, waits.brief_waits, waits.brief_total), (0, 1, waits.longest));
    });
}

/// Whoever comes behind an ingest writes its record where the ingest's thread does not get to it.
#[test]
fn a_writer_waits_for_no_ingest_whose_thread_stands_still() {
    within(LIMIT, || {
        let mut world = World::with_ingests(1);
        world.gate.hold_after(0);
        let ingest = world.commit_next();
        wait_for("the ingest's record", || world.gate.is_holding());
        world.write().join().unwrap();
        assert!(world.gate.is_holding() && world.has("key 0") && world.has("other"));
        world.memory.sleep(HELD_FOR);
        world.gate.open();
        let report = ingest.join().unwrap();
        assert!(report.held_up_for < HELD_FOR, "it was in the log before: {report:?}");
        let waits = world.db.ingest_waits();
        assert!(waits.longest < Duration::from_millis(1), "it wrote the record itself: {waits:?}");
    });
}

/// So does the next ingest.
#[test]
fn an_ingest_waits_for_none_before_it_whose_thread_stands_still() {
    within(LIMIT, || {
        let mut world = World::with_ingests(2);
        world.gate.hold_after(0);
        let older = world.commit_next();
        wait_for("the older ingest's record", || world.gate.is_holding());
        world.commit_next().join().unwrap();
        assert!(world.gate.is_holding() && world.has("key 0") && world.has("key 1"));
        world.gate.open();
        older.join().unwrap();
    });
}

/// Behind two ingests a write waits for the older one, though the newer one is in the log; and where an ingest has larger
/// numbers than the write, it is not that one which it waits for.
#[test]
fn a_wait_for_one_of_several_ingests_is_counted() {
    for writes_last in [true, false] {
        within(LIMIT, move || {
            let mut world = World::with_ingests(2);
            world.gate.hold_after(0);
            let older = world.commit_next_with_batch();
            wait_for("the older ingest's record", || world.gate.is_holding());
            let early = (!writes_last).then(|| world.write());
            let stores = world.gate.stores();
            let newer = world.commit_next();
            wait_for("the newer ingest's record", || world.gate.stores() > stores);
            let writer = early.unwrap_or_else(|| world.write());
            world.let_time_pass();
            assert!(!writer.is_finished());
            world.gate.open();
            older.join().unwrap();
            newer.join().unwrap();
            writer.join().unwrap();
            let waits = world.db.ingest_waits();
            assert!(waits.longest >= HELD_FOR / 2, "the writer came last: {writes_last}: {waits:?}");
            assert_eq!((waits.waits, waits.brief_waits, waits.brief_total), (0, 1, waits.longest));
        });
    }
}
