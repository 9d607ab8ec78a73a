//! Back-pressure on ingests: they wait where writes would, before they have a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use base::extend::{Event, EventListener};
use parking_lot::{Condvar, Mutex};
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestMode, IngestOptions, IngestRequest, OpenOptions, SeqNo, WriteBatch,
    WriteOptions,
};

use super::common::{MODES, World, contents, mode, name};

/// Keeps flushes, or compactions, from going on, and hears that somebody is stopped for that.
#[derive(Default)]
struct HoldJobs {
    holds_flushes: AtomicBool,
    holds_compactions: AtomicBool,
    turn: Mutex<()>,
    changed: Condvar,
    has_stopped: AtomicBool,
}

impl HoldJobs {
    fn stand(&self, held: &AtomicBool) {
        let mut turn = self.turn.lock();
        while held.load(Ordering::Acquire) {
            self.changed.wait(&mut turn);
        }
    }

    fn let_go(&self) {
        let _turn = self.turn.lock();
        self.holds_flushes.store(false, Ordering::Release);
        self.holds_compactions.store(false, Ordering::Release);
        self.changed.notify_all();
    }
}

impl EventListener for HoldJobs {
    fn on_event(&self, event: &Event) {
        match event {
            Event::FlushBegin { .. } => self.stand(&self.holds_flushes),
            Event::CompactionBegin { .. } => self.stand(&self.holds_compactions),
            Event::StallChanged { stopped: true, .. } => self.has_stopped.store(true, Ordering::Release),
            _ => {}
        }
    }
}

/// A hold that ends before the database is closed, which would wait for what is held.
struct Hold(Arc<HoldJobs>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// One memtable fills the queue, and three tables level 0.
fn world() -> (World, Hold) {
    world_of(FamilyOptions {
        write_buffer_size: 64 << 10,
        max_write_buffer_number: 2,
        level0_file_num_compaction_trigger: 2,
        level0_slowdown_writes_trigger: 3,
        level0_stop_writes_trigger: 3,
        ..FamilyOptions::default()
    })
}

fn world_of(family: FamilyOptions) -> (World, Hold) {
    let hold = Hold(Arc::default());
    let listener = hold.0.clone();
    let world = World::threaded_with(|options: &mut OpenOptions| {
        options.db.listeners.push(listener);
        options.families = vec![("default".to_owned(), family)];
    });
    (world, hold)
}

/// Has the queue hold all that it may, and nobody empty it.
fn fill_queue(world: &World, hold: &Hold) {
    hold.0.holds_flushes.store(true, Ordering::Release);
    let value = "x".repeat(4 << 10);
    for key in 1000.. {
        if world.number("rocksdb.num-immutable-mem-table") > 0 {
            return;
        }
        world.put(key, &value);
    }
}

/// Has level 0 hold so many tables that writers are stopped, and no compaction take any.
fn fill_level0(world: &World, hold: &Hold) {
    hold.0.holds_compactions.store(true, Ordering::Release);
    while world.number("rocksdb.is-write-stopped") == 0 {
        world.put(1000, "old");
        world.flush();
    }
}

/// The number that a write of these keys takes.
fn write(db: &Db, key: u32) -> SeqNo {
    let mut batch = WriteBatch::new();
    batch.put(db.default_family().id(), name(key).as_bytes(), b"meanwhile");
    db.write(&batch, &WriteOptions::default()).expect("written")
}

fn impatient(ingest: IngestMode) -> IngestOptions {
    IngestOptions { no_slowdown: true, ..mode(ingest) }
}

/// Ingests that may not wait are refused, and change nothing.
fn check_busy(world: &World, ingest: IngestMode) {
    let tables = || {
        let names = world.vfs.read_dir(std::path::Path::new("/w/db")).expect("listed").into_iter();
        names.filter(|name| name.ends_with(".sst")).collect::<Vec<_>>()
    };
    let state = || (world.contents(), tables(), world.db.latest_sequence_number());
    let before = state();
    let error = world.ingest(world.table("impatient", 0..5, "impatient"), &impatient(ingest));
    let error = error.expect_err("it would have to wait");
    assert_eq!(error.kind(), ErrorKind::Busy, "{ingest:?}: {error}");
    assert!(state() == before, "{ingest:?}: the database is as it was");
}

fn wait_while<T>(ingesting: &ScopedJoinHandle<'_, T>, holds: impl Fn() -> bool) {
    while holds() && !ingesting.is_finished() {
        std::thread::yield_now();
    }
}

/// The queue is full: an ingest waits until it is let go, and has no number before.
fn check_waits(world: &World, hold: &Hold, ingest: IngestMode) {
    let file = world.table("new", 0..5, "new");
    std::thread::scope(|scope| {
        let ingesting = scope.spawn(|| world.ingest(file, &mode(ingest)));
        wait_while(&ingesting, || !hold.0.has_stopped.load(Ordering::Acquire));
        let (meanwhile, waits) = (write(&world.db, 500), !ingesting.is_finished());
        hold.0.let_go();
        let report = ingesting.join().expect("no panic").expect("ingested");
        assert!(waits, "{ingest:?}: the queue is full");
        assert!(report.first > meanwhile, "{ingest:?}: {} was taken before {meanwhile}", report.first);
    });
    assert_eq!([0, 500].map(|key| world.get(key).expect("there")), ["new", "meanwhile"]);
    let stalls = world.db.stalls();
    let waits = stalls.iter().find(|stall| stall.cause.name() == "memtable-limit").expect("a cause").waits;
    assert_eq!(waits, 1, "{ingest:?}");
}

#[test]
fn an_ingest_waits_for_room_in_the_queue_before_it_has_a_number() {
    for ingest in MODES {
        let (world, hold) = world();
        fill_queue(&world, &hold);
        check_busy(&world, ingest);
        check_waits(&world, &hold, ingest);
    }
}

/// Of ingests that hold next to no memory the queue takes as many as docs/ingest.md says: every read looks at each.
#[test]
fn an_ingest_waits_where_the_queue_has_256_entries() {
    const ENTRIES_MAX: u32 = 256;
    let family = FamilyOptions { write_buffer_size: 1 << 20, max_write_buffer_number: 8, ..FamilyOptions::default() };
    let (world, hold) = world_of(family);
    hold.0.holds_flushes.store(true, Ordering::Release);
    for entry in 0..ENTRIES_MAX {
        let file = world.table(&format!("{entry}"), [1000 + entry], "queued");
        let ingested = world.ingest(file, &impatient(IngestMode::Flushable));
        ingested.unwrap_or_else(|error| panic!("{entry} are in the queue: {error}"));
    }
    assert_eq!(world.number("spillway.ingests-queued"), u64::from(ENTRIES_MAX));
    check_busy(&world, IngestMode::Flushable);
    check_waits(&world, &hold, IngestMode::Flushable);
    assert_eq!(world.contents().len(), ENTRIES_MAX as usize + 5 + 1);
}

/// The batch of an ingest that may not wait finds no room: what the call says, which must not have waited.
fn refused_batch(world: &World, hold: &Hold, batch: &WriteBatch, requests: &[IngestRequest], ingest: IngestMode) {
    let prepared = world.db.prepare_ingest(requests, &impatient(ingest), &Default::default()).expect("prepared");
    let before = world.db.latest_sequence_number();
    let (waited, written) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| world.db.write_with_ingest(batch, prepared));
        wait_while(&writing, || !hold.0.has_stopped.load(Ordering::Acquire));
        let waited = !writing.is_finished();
        if waited {
            hold.0.let_go();
        }
        (waited, writing.join().expect("no panic"))
    });
    assert!(!waited, "{ingest:?}: it was to fail rather than wait");
    let error = written.expect_err("the queue is full");
    assert_eq!(error.kind(), ErrorKind::Busy, "{ingest:?}: {error}");
    assert_eq!(world.db.latest_sequence_number(), before, "{ingest:?}: it took no number");
}

#[test]
fn a_batch_beside_an_ingest_that_may_not_wait_is_refused_where_it_would() {
    for ingest in MODES {
        let (world, hold) = world();
        let other = world.db.create_family("other", FamilyOptions::default()).expect("made");
        fill_queue(&world, &hold);
        let mut batch = WriteBatch::new();
        // More than the mutable memtable has room for.
        batch.put(world.family.id(), name(1).as_bytes(), &vec![7; 8 << 20]);
        let requests = [IngestRequest::new(other.clone(), vec![world.table("new", 0..5, "new")])];
        refused_batch(&world, &hold, &batch, &requests, ingest);
        refused_batch(&world, &hold, &batch, &[], ingest);
        assert_eq!(contents(&world.db, &other, None).len(), 0, "{ingest:?}");
        assert_eq!(world.get(1), None, "{ingest:?}");
    }
}

#[test]
fn an_ingest_waits_for_compactions_that_are_far_behind_before_it_has_a_number() {
    const LONGER_THAN_AN_INGEST: Duration = Duration::from_millis(50);
    for ingest in MODES {
        let (world, hold) = world();
        fill_level0(&world, &hold);
        check_busy(&world, ingest);
        let file = world.table("new", 0..5, "new");
        let before = world.db.latest_sequence_number();
        std::thread::scope(|scope| {
            let ingesting = scope.spawn(|| world.ingest(file, &mode(ingest)));
            std::thread::sleep(LONGER_THAN_AN_INGEST);
            let (waits, meanwhile) = (!ingesting.is_finished(), world.db.latest_sequence_number());
            hold.0.let_go();
            let report = ingesting.join().expect("no panic").expect("ingested");
            assert!(waits, "{ingest:?}: level 0 is full");
            assert!(meanwhile == before && report.first > before, "{ingest:?}");
        });
        assert_eq!(world.get(4).as_deref(), Some("new"));
    }
}
