//! Waits of writers for an ingest, and their reporting.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use testkit::engine::{
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
    prepared: Option<PreparedIngest>,
}

impl World {
    /// With a prepared ingest of one table with one key, absent from memory.
    fn with_ingest() -> World {
        let memory = MemoryVfs::new(1);
        memory.set_runs_inline(false);
        let (vfs, gate) = GateVfs::new(memory.clone());
        let vfs: Arc<dyn Vfs> = vfs;
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.large_batch_bytes = 4096;
        let db = Arc::new(Db::open("/db", &options).unwrap());
        db.put(&db.default_family(), b"first", b"makes the log", &WriteOptions::default()).unwrap();
        let file = PathBuf::from("/one.sst");
        let mut table = TableWriter::create(vfs, &file, &FamilyOptions::default()).unwrap();
        table.put(b"key", b"ingested").unwrap();
        table.finish().unwrap();
        let request = IngestRequest::new(db.default_family(), vec![file]);
        let prepared = db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap();
        World { memory, gate, db, prepared: Some(prepared) }
    }

    fn commit(&mut self) -> JoinHandle<IngestReport> {
        let (db, prepared) = (self.db.clone(), self.prepared.take().unwrap());
        start(move || db.commit_ingest(prepared).unwrap())
    }

    fn has(&self, key: &str) -> bool {
        let found = self.db.get(&self.db.default_family(), key.as_bytes(), &ReadOptions::default());
        found.unwrap().is_some()
    }

    /// Starts a writer and returns just before it reads the clock and waits.
    fn write(&self) -> JoinHandle<()> {
        let db = self.db.clone();
        let writer =
            start(move || db.put(&db.default_family(), b"other", b"written", &WriteOptions::default()).unwrap());
        wait_for("the writer's entry", || {
            self.db.int_property(&self.db.default_family(), "rocksdb.num-entries-active-mem-table") == Some(2)
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

/// A write numbered after an ingest is acknowledged once the ingest is in the WAL; neither is readable before.
#[test]
fn a_writer_behind_an_ingest_waits_until_it_is_in_the_log() {
    within(LIMIT, || {
        let mut world = World::with_ingest();
        world.gate.hold_after(0);
        let ingest = world.commit();
        wait_for("the ingest's record", || world.gate.is_holding());
        let numbered = world.db.latest_sequence_number();
        let writer = world.write();
        world.let_time_pass();
        assert_eq!(world.db.latest_sequence_number(), numbered, "neither can be read before the ingest can");
        assert!(!writer.is_finished() && !world.has("key"));
        world.gate.open();
        let report = ingest.join().unwrap();
        writer.join().unwrap();
        assert!(world.has("key") && world.has("other"));
        assert!(report.held_up_for >= HELD_FOR && report.locked_for < HELD_FOR, "{report:?}");
        let waits = world.db.ingest_waits();
        assert_eq!(
            (waits.waits, waits.lock_held),
            (0, report.locked_for),
            "the lock was not held meanwhile: {waits:?}"
        );
    });
}

/// A large batch is copied into a log of its own, before the ingest takes numbers.
#[test]
fn a_writer_beside_an_ingest_does_not_wait_for_the_copy_of_its_large_batch() {
    within(LIMIT, || {
        let mut world = World::with_ingest();
        let (db, prepared) = (world.db.clone(), world.prepared.take().unwrap());
        let mut batch = WriteBatch::new();
        batch.put(db.default_family().id(), b"beside", &[7; 8192]);
        world.gate.hold_after(1); // behind the header of the batch's log
        let ingest = start(move || db.write_with_ingest(&batch, prepared).unwrap());
        wait_for("the copy", || world.gate.is_holding());
        world.db.put(&world.db.default_family(), b"other", b"written", &WriteOptions::default()).unwrap();
        assert!(world.gate.is_holding() && world.has("other") && !world.has("key") && !world.has("beside"));
        world.gate.open();
        ingest.join().unwrap();
        assert!(world.has("key") && world.has("beside"));
    });
}
