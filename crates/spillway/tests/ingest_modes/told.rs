//! What statistics, properties and listeners are told of ingests.

use std::sync::Arc;

use base::extend::Event;
use base::metrics::{Histogram, Ticker};
use parking_lot::Mutex;
use testkit::engine::{Db, IngestMode};

use super::common::{MODES, World, mode, name, put};

#[test]
fn every_way_is_counted_and_told() {
    let world = World::inline();
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = events.clone();
    world.whenever(move |_, event| match event {
        Event::Ingested { tables, .. } => heard.lock().push(format!("{tables} ingested")),
        Event::TablePlaced { level, .. } => heard.lock().push(format!("placed in {level}")),
        _ => {}
    });
    for (round, ingest) in (0..).zip(MODES) {
        let file = world.table(&format!("{round}"), round * 10..round * 10 + 5, "new");
        let report = world.ingest(file, &mode(ingest)).expect("ingested");
        assert!(report.committed_in >= report.synced_in + report.placed_in, "{report:?}");
    }
    world.put(1, "old");
    world.ingest(world.table("over", 0..5, "newer"), &mode(IngestMode::Flushable)).expect("ingested");
    world.ingest(world.table("flushes", 0..5, "newest"), &mode(IngestMode::Blocking)).expect("ingested");
    assert_eq!(world.number("spillway.ingests-queued"), 0);
    let statistics = world.db.statistics().expect("asked for");
    let count = |ticker| statistics.count(ticker);
    let ways = [Ticker::IngestUnder, Ticker::IngestAbove, Ticker::IngestBlocking, Ticker::IngestFlushFirst];
    assert_eq!(ways.map(count), [1, 1, 2, 1]);
    assert_eq!([Ticker::IngestDirect, Ticker::IngestBehind, Ticker::IngestTables].map(count), [1, 0, 6]);
    assert!(count(Ticker::IngestBytes) > 6 * 500);
    let placed = [Ticker::IngestPlacedL0, Ticker::IngestPlacedMiddle, Ticker::IngestPlacedLast].map(count);
    assert_eq!(placed.iter().sum::<u64>(), 6, "{placed:?}");
    assert_eq!(placed[2], 4, "the first four find nothing of theirs");
    let at_level = |level| format!("spillway.ingested-tables-placed-at-level{level}");
    let by_level: Vec<_> = (0..7).map(|level| world.db.property(&world.family, &at_level(level)).unwrap()).collect();
    assert_eq!((by_level[0].clone(), by_level[6].as_str()), (placed[0].to_string(), "4"), "{by_level:?}");
    let between: u64 = by_level[1..6].iter().map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(between, placed[1], "{by_level:?}");
    for histogram in [
        Histogram::IngestPrepare,
        Histogram::IngestCommit,
        Histogram::IngestCommitLock,
        Histogram::IngestLogSync,
        Histogram::IngestTotal,
    ] {
        assert_eq!(statistics.distribution(histogram).count(), 6, "{histogram:?}");
    }
    assert_eq!(count(Ticker::IngestMerged), 1, "the one over a memtable");
    assert_eq!(statistics.distribution(Histogram::IngestLink).count(), 5, "the others");
    let events = events.lock();
    assert_eq!(events.iter().filter(|event| *event == "1 ingested").count(), 6);
    assert_eq!(events.iter().filter(|event| event.starts_with("placed")).count(), 6);
    assert_eq!(world.db.ingest_waits().waits, 0, "nobody else was there");
}

#[test]
fn what_is_queued_is_told() {
    let world = World::inline();
    let file = world.table("new", 0..5, "new");
    let seen = told_while_queued(&world, |db| {
        let number = |name| db.int_property(&db.default_family(), name).expect("a property");
        (number("spillway.ingests-queued"), number("spillway.ingested-tables-queued"))
    });
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    assert_eq!(*seen.lock(), Some((1, 1)), "flushes come after it");
    assert_eq!(world.number("spillway.ingests-queued"), 0);
}

/// What is told of the first ingest that has not left the queue.
fn told_while_queued<T: Send + 'static>(
    world: &World,
    tell: impl Fn(&Arc<Db>) -> T + Send + 'static,
) -> Arc<Mutex<Option<T>>> {
    let seen = Arc::new(Mutex::new(None));
    let heard = seen.clone();
    world.whenever(move |db, event| {
        if let Event::Ingested { .. } = event {
            heard.lock().get_or_insert_with(|| tell(db));
        }
    });
    seen
}

/// Numbers of entries, and sizes: of all tables, of a range with the first of the keys in it, and of one without any.
fn sizes(db: &Arc<Db>) -> Vec<u64> {
    let family = db.default_family();
    let mut sizes: Vec<u64> = [
        "rocksdb.estimate-num-keys",
        "rocksdb.total-sst-files-size",
        "rocksdb.live-sst-files-size",
        "rocksdb.estimate-table-readers-mem",
    ]
    .map(|name| db.int_property(&family, name).expect("a property"))
    .to_vec();
    let (start, middle, end) = (name(0), name(3000), name(9000));
    let ranges = [(start.as_bytes(), middle.as_bytes()), (middle.as_bytes(), end.as_bytes())];
    sizes.extend(db.approximate_sizes(&family, &ranges).expect("readable"));
    sizes
}

#[test]
fn what_is_queued_is_in_all_sizes() {
    let world = World::inline();
    let file = world.table("new", 0..2000, "new");
    let seen = told_while_queued(&world, |db| (db.live_files().iter().all(|file| file.is_queued), sizes(db)));
    world.ingest(file, &mode(IngestMode::Flushable)).expect("ingested");
    assert!(world.db.live_files().iter().all(|file| !file.is_queued));
    let placed = sizes(&world.db);
    assert!(placed[..5].iter().all(|size| *size > 0) && placed[5] == 0, "{placed:?}");
    assert_eq!(*seen.lock(), Some((true, placed)));
}

/// Bytes of the mutable memtable, of all that is to be flushed, and of all memtables, those made ahead included.
fn memory(db: &Arc<Db>) -> [u64; 3] {
    ["rocksdb.cur-size-active-mem-table", "rocksdb.cur-size-all-mem-tables", "rocksdb.size-all-mem-tables"]
        .map(|name| db.int_property(&db.default_family(), name).expect("a property"))
}

#[test]
fn what_is_queued_is_in_the_memory_to_be_flushed_and_in_no_memtable() {
    let world = World::inline();
    world.put(9000, "beside");
    let before = memory(&world.db);
    assert_eq!(before[0], before[1], "nothing else is there");
    let seen = told_while_queued(&world, memory);
    world.ingest(world.table("new", 0..5, "new"), &mode(IngestMode::Flushable)).expect("ingested");
    let [mutable, unflushed, memtables] = seen.lock().expect("it was queued");
    assert!(unflushed > mutable, "{unflushed} and {mutable}: the ingest holds memory");
    assert_eq!([mutable, memtables], [before[0], before[2]], "which is no memtable's");
    assert!(memory(&world.db)[1] < unflushed, "its flush freed that");
}

#[test]
fn a_listener_may_write_once_an_ingest_gave_its_tables_levels() {
    for ingest in [IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct] {
        let world = World::inline();
        let file = world.table("new", 0..5, "new");
        world.whenever(|db, event| {
            if let Event::TablePlaced { .. } | Event::Ingested { .. } = event {
                put(db, 3, "marked").expect("nobody is in its way");
            }
        });
        world.ingest(file, &mode(ingest)).expect("ingested");
        assert_eq!(world.get(3).as_deref(), Some("marked"), "{ingest:?}");
        assert_eq!(world.db.ingest_waits().waits, 0, "{ingest:?}");
    }
}
