//! What a review found in the corners: jobs, drops and crashes that come in between the steps of an ingest.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use base::FileNumber;
use base::extend::{Event, EventListener};
use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{
    CompactRangeOptions, Db, ErrorKind, Family, FamilyOptions, IngestOptions, IngestRequest, OpenOptions,
    OtherFamilies, ReadOptions, WriteBatch, WriteOptions,
};

use super::common::{self, World, name, table};

/// Newer data is linked below older data that change_level moves up meanwhile.
#[test]
fn change_level_beside_a_link() {
    let world = World::with(|o| {
        o.families[0].1.level_compaction_dynamic_level_bytes = false;
        o.families[0].1.num_levels = 7;
    });
    world.put_all(0..50, "old");
    world.flush();
    let change = |level| CompactRangeOptions { change_level: true, target_level: Some(level), ..Default::default() };
    world.db.compact_range(&world.family, None, None, &change(6)).expect("as planned");
    let file = world.table("new.sst", 10..20, "new");
    let done = AtomicBool::new(false);
    let f2 = file.clone();
    world.whenever(move |db, event| {
        if let Event::CompactionBegin { output_level: 2, .. } = event
            && !done.swap(true, Ordering::SeqCst)
        {
            db.ingest(&db.default_family(), std::slice::from_ref(&f2), &IngestOptions::default()).expect("as planned");
        }
    });
    world.db.compact_range(&world.family, None, None, &change(2)).expect("as planned");
    assert_eq!(world.get(15).as_deref(), Some("new"));
}

/// A table that is placed while change_level moves files into the level where it would go.
#[test]
fn change_level_into_a_reserved_place() {
    let world = World::with(|o| {
        o.families[0].1.level_compaction_dynamic_level_bytes = false;
        o.families[0].1.num_levels = 7;
    });
    world.put_all([1, 90], "old");
    world.flush();
    let change = |level| CompactRangeOptions { change_level: true, target_level: Some(level), ..Default::default() };
    world.db.compact_range(&world.family, None, None, &change(2)).expect("as planned");
    let file = world.table("new.sst", 10..20, "new");
    let done = AtomicBool::new(false);
    world.whenever(move |db, event| {
        if let Event::CompactionBegin { level: 2, output_level: 5, .. } = event
            && !done.swap(true, Ordering::SeqCst)
        {
            db.ingest(&db.default_family(), std::slice::from_ref(&file), &IngestOptions::default())
                .expect("as planned");
        }
    });
    world.db.compact_range(&world.family, None, None, &change(5)).expect("as planned");
    world.put(1, "x");
    assert_eq!(world.get(15).as_deref(), Some("new"));
}

fn two_families(world: &World) -> (Arc<Family>, Arc<Family>) {
    let a = world.db.create_family("a", FamilyOptions::default()).expect("as planned");
    let b = world.db.create_family("b", FamilyOptions::default()).expect("as planned");
    (a, b)
}

struct Dropper {
    armed: AtomicBool,
    db: OnceLock<Weak<Db>>,
}

impl EventListener for Dropper {
    fn on_event(&self, event: &Event) {
        if let Event::FlushBegin { family, .. } = event
            && family == "b"
            && self.armed.swap(false, Ordering::SeqCst)
        {
            let db = self.db.get().expect("as planned").upgrade().expect("as planned");
            let a = db.family("a").expect("as planned");
            db.drop_family(&a).expect("as planned");
        }
    }
}

/// A family that is dropped while it is flushed beside another.
#[test]
fn dropped_beside_another_in_a_flush() {
    let dropper = Arc::new(Dropper { armed: AtomicBool::new(false), db: OnceLock::new() });
    let d2 = dropper.clone();
    let mut world = World::with(|o| o.db.listeners.push(d2));
    dropper.db.set(Arc::downgrade(&world.db)).expect("as planned");
    let (a, b) = two_families(&world);
    let (fa, fb) = (world.table("a.sst", 0..5, "t"), world.table("b.sst", 0..5, "t"));
    let requests = [IngestRequest::new(a.clone(), vec![fa]), IngestRequest::new(b.clone(), vec![fb])];
    let (a2, b2, dropper2) = (a.clone(), b.clone(), dropper.clone());
    let step = AtomicU64::new(0);
    world.whenever(move |db, event| match event {
        Event::Ingested { .. } if step.fetch_add(1, Ordering::SeqCst) == 0 => {
            let mut batch = WriteBatch::new();
            batch.put(a2.id(), name(9).as_bytes(), b"v");
            batch.put(b2.id(), name(9).as_bytes(), b"v");
            dropper2.armed.store(true, Ordering::SeqCst);
            db.write(&batch, &WriteOptions { flush_after: true, ..Default::default() }).expect("b is written");
        }
        _ => {}
    });
    world.db.ingest_all(&requests, &IngestOptions::default()).expect("as planned");
    let has_come = world.db.family("a").is_none() && !dropper.armed.load(Ordering::SeqCst);
    assert!(has_come, "the family was to be dropped in the midst of the flush");
    world.put(1, "x");
    drop((a, b));
    for _ in 0..2 {
        assert_eq!(world.get(1).as_deref(), Some("x"));
        let of_b = common::contents(&world.db, &world.db.family("b").expect("it stays"), None);
        let expected = (0..5).map(|key| (name(key), "t")).chain([(name(9), "v")]);
        assert!(of_b.iter().map(|(key, value)| (key.clone(), &**value)).eq(expected), "{of_b:?}");
        world.reopen();
    }
    assert!(world.db.family("a").is_none());
}

/// Where the ingest of a family lies beside which an unlogged batch over two families is written and flushed.
#[derive(Clone, Copy, Debug)]
enum Ingested {
    /// At its queue's old end.
    Alone,
    /// Over a memtable, and so small that a flush would merge both.
    OverMemtable { damaged: bool },
}

/// Writes and flushes such a batch while the ingest is queued, and crashes in the midst of that if told at which operation.
/// Returns the file system and the operations that it took.
fn unlogged_batch_beside(ingested: Ingested, crash_at: Option<u64>) -> (Arc<MemoryVfs>, Range<u64>) {
    let memory = MemoryVfs::new(3);
    let vfs = memory.clone();
    let world = World::with(|o| o.vfs = vfs);
    let (a, b) = two_families(&world);
    let file = world.table("a.sst", 0..1000, "a value of some length, so that there are several blocks");
    if let Ingested::OverMemtable { damaged } = ingested {
        world.db.put(&a, b"k00001", b"under", &WriteOptions::default()).expect("as planned");
        if damaged {
            world.damage_middle(&file);
        }
    }
    let taken = Arc::new(Mutex::new(None));
    let (ids, vfs, operations) = ([a.id(), b.id()], memory.clone(), taken.clone());
    world.whenever(move |db, event| {
        let Event::Ingested { .. } = event else { return };
        let mut batch = WriteBatch::new();
        ids.iter().for_each(|id| batch.put(*id, b"k00001", b"v"));
        let before = vfs.operations();
        crash_at.into_iter().for_each(|at| vfs.crash_at(at, 1, CrashPolicy::ProcessKilled));
        let options = WriteOptions { flush_after: true, disable_wal: true, ..Default::default() };
        db.write(&batch, &options).expect("as planned");
        operations.lock().expect("as planned").get_or_insert(before..vfs.operations());
    });
    world.db.ingest_all(&[IngestRequest::new(a, vec![file])], &IngestOptions::default()).expect("as planned");
    assert_eq!(world.merged(), 0, "it would leave the queue in an edit of its own, were it damaged");
    let operations = taken.lock().expect("as planned").clone();
    (memory, operations.expect("told of the ingest"))
}

/// After a crash the whole of it is there, or nothing.
#[test]
fn half_of_an_unlogged_batch() {
    let over = |damaged| Ingested::OverMemtable { damaged };
    for ingested in [Ingested::Alone, over(false), over(true)] {
        let (_, operations) = unlogged_batch_beside(ingested, None);
        let mut found = [0, 0];
        for at in operations {
            let (memory, _) = unlogged_batch_beside(ingested, Some(at));
            let image = memory.take_crash_image().unwrap_or_else(|| panic!("no crash at {at}"));
            let mut options = OpenOptions { vfs: image, ..OpenOptions::create_if_missing() };
            options.other_families = OtherFamilies::OpenWith(Box::default());
            let db = Db::open("/w/db", &options).expect("as planned");
            let has_it = |family: &str| {
                let family = db.family(family).expect("as planned");
                let value = db.get(&family, b"k00001", &ReadOptions::default()).expect("as planned");
                value.as_deref() == Some(b"v")
            };
            let (in_a, in_b) = (has_it("a"), has_it("b"));
            assert_eq!(in_a, in_b, "{ingested:?}: half of it, after a crash at {at}");
            found[usize::from(in_a)] += 1;
        }
        assert!(found.iter().all(|images| *images > 0), "{ingested:?}: crashes without it, and with it: {found:?}");
    }
}

/// Opens a database behind whose logs another one holds these records; what that yields.
fn open_with_log(records: &[(wal::RecordKind, Vec<u8>)]) -> testkit::engine::Result<Db> {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(3);
    let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    Db::open("/db", &options).expect("new").close().expect("closed");
    let config = wal::LogConfig { capacity_bytes: 1 << 16, ..Default::default() };
    let log = wal::LogFile::create(&*vfs, Path::new("/db/000900.splog"), FileNumber(900), config).expect("new");
    for (kind, payload) in records {
        let reservation = log.try_reserve(payload.len()).expect("room");
        log.append(&reservation, *kind, &[payload]).expect("written");
        log.publish(reservation.end());
    }
    log.sync().expect("synced");
    drop(log);
    Db::open("/db", &options)
}

/// The record of an ingest that is nothing but an excise.
fn excise(first: u64, at: u8) -> (wal::RecordKind, Vec<u8>) {
    let mut payload = first.to_le_bytes().to_vec();
    payload.extend([1, 0, 1, 1, at, 1, at + 5, 0]);
    (wal::RecordKind::Ingest, payload)
}

fn batch(first: u64, key: u8) -> (wal::RecordKind, Vec<u8>) {
    let mut payload = first.to_le_bytes().to_vec();
    payload.extend(1u32.to_le_bytes());
    payload.extend([1, 1, key, 1, b'v']);
    (wal::RecordKind::Batch, payload)
}

#[test]
fn a_log_whose_numbers_cannot_be_is_refused() {
    let kind = |records: &[_]| open_with_log(records).err().map(|error| error.kind());
    assert_eq!(kind(&[excise(0, b'a')]), Some(ErrorKind::Corruption), "no number is zero");
    let growing = [batch(100, b'b'), excise(201, b'a'), batch(202, b'b')];
    assert_eq!(kind(&growing), None);
    let back = [growing.as_slice(), &[excise(5, b'a')]].concat();
    assert_eq!(kind(&back), Some(ErrorKind::Corruption), "numbers only grow");
}

/// What comes from behind is durable ahead of writes that came before it.
#[test]
fn behind_is_durable_ahead_of_older_writes() {
    let memory = MemoryVfs::new(3);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let mut options = OpenOptions::create_if_missing();
    options.vfs = vfs.clone();
    options.db.allow_ingest_behind = true;
    let db = Db::open("/db", &options).expect("as planned");
    let family = db.default_family();
    common::put(&db, 4, "first").expect("as planned");
    let file = table(&vfs, Path::new("/behind.sst"), 3..6, "behind");
    let o = IngestOptions { ingest_behind: true, ..Default::default() };
    db.ingest(&family, &[file], &o).expect("as planned");
    options.vfs = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    let again = Db::open("/db", &options).expect("as planned");
    let contents = common::contents(&again, &again.default_family(), None);
    let expected = [(3, "behind"), (4, "first"), (5, "behind")].map(|(key, value)| (name(key), value.to_owned()));
    assert_eq!(contents, expected.into(), "the ingest had returned");
}
