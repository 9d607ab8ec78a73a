//! Who waits for an ingest, and how long that is said to have been.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base::extend::Event;
use testkit::engine::{Db, ErrorKind, IngestMode, IngestOptions, IngestRequest};

use super::common::{MODES, World, mode, put, put_now};

/// Whether a write that may not wait is let through, to a key that the ingest overlaps and to one that it does not.
fn passes(db: &Db) -> [bool; 2] {
    [150, 900].map(|key| match put_now(db, key, "meanwhile") {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            false
        }
    })
}

/// What passes at each flush that an ingest waits for. At the first `dirty` of them somebody writes to its keys.
fn passes_at_flushes(world: &World, options: &IngestOptions, dirty: usize) -> Vec<[bool; 2]> {
    world.put(150, "old");
    let file = world.table("new", 100..200, "new");
    let (said, heard) = mpsc::channel();
    let (mut flushes, mut is_over) = (0, false);
    world.whenever(move |db, event| {
        is_over = is_over || matches!(event, Event::Ingested { .. });
        if let Event::FlushBegin { .. } = event
            && !is_over
        {
            flushes += 1;
            let passed = passes(db);
            if flushes <= dirty && passed[0] {
                put(db, 160, "dirty").expect("it was let through");
            }
            let _ = said.send(passed); // nobody listens any more once the ingest is over
        }
    });
    let report = world.ingest(file, options).expect("ingested");
    let all: Vec<_> = heard.try_iter().collect();
    assert_eq!(report.flushes, all.len());
    assert_eq!([150, 160].map(|key| world.get(key).expect("there")), ["new"; 2], "what came before is under it");
    all
}

#[test]
fn flushes_are_waited_for_with_or_without_others() {
    let (open, closed, latched) = ([true, true], [false, false], [false, true]);
    let at_flushes = |ingest, dirty| passes_at_flushes(&World::inline(), &mode(ingest), dirty);
    assert_eq!(at_flushes(IngestMode::Flushable, 0), [[true; 2]; 0], "there is none");
    assert_eq!(at_flushes(IngestMode::Blocking, 0), [closed]);
    // Each flush lets something in that the next look finds: until nobody is let through any more.
    assert_eq!(at_flushes(IngestMode::FlushFirst, 9), [open, open, open, closed]);
    assert_eq!(at_flushes(IngestMode::Direct, 9), [open, latched]);
}

#[test]
fn flush_first_needs_no_stop_where_nobody_writes_to_its_keys() {
    for ingest in [IngestMode::FlushFirst, IngestMode::Direct] {
        let world = World::threaded();
        world.put(150, "old");
        let file = world.table("new", 100..200, "new");
        let mut flushes = 0;
        world.whenever(move |db, event| {
            if let Event::FlushBegin { .. } = event {
                flushes += 1;
                assert_eq!(flushes, 1, "one is enough");
                put_now(db, 151 + 1000, "aside").expect("writers go on");
            }
        });
        assert_eq!(world.ingest(file, &mode(ingest)).expect("ingested").flushes, 1);
        assert_eq!(world.db.ingest_waits().waits, 0);
    }
}

/// A writer that comes while an ingest flushes under its latch or gate; returns its wait as the database tells it.
fn waits_of_a_writer(ingest: IngestMode, key: u32) -> (u64, Duration) {
    const HELD_FOR: Duration = Duration::from_millis(30);
    let world = World::threaded();
    world.put(150, "old");
    let file = world.table("new", 100..200, "new");
    let (writers, flushes) = (Arc::new(parking_lot::Mutex::new(Vec::new())), AtomicUsize::new(0));
    let started = writers.clone();
    world.whenever(move |db, event| {
        let Event::FlushBegin { .. } = event else { return };
        let outside = usize::from(ingest == IngestMode::Direct);
        if flushes.fetch_add(1, Ordering::Relaxed) < outside {
            return put(db, 151, "dirty").expect("nobody is held back yet");
        }
        let db = db.clone();
        started.lock().push(std::thread::spawn(move || put(&db, key, "later").expect("in the end")));
        std::thread::sleep(HELD_FOR);
    });
    let report = world.ingest(file, &mode(ingest)).expect("ingested");
    writers.lock().drain(..).for_each(|writer| writer.join().expect("no panic"));
    assert_eq!(world.get(key).as_deref(), Some("later"), "{ingest:?}: it came after the ingest");
    let waits = world.db.ingest_waits();
    assert!(waits.lock_held >= report.locked_for && waits.total <= waits.longest * waits.waits.max(1) as u32);
    let stalled = world.db.stalls().into_iter().find(|stall| stall.cause.name() == "ingest-latch").expect("a cause");
    assert_eq!(stalled.waits, waits.waits, "{ingest:?}");
    assert_eq!(world.number("spillway.ingest-writer-waits"), waits.waits);
    assert_eq!(world.number("spillway.ingest-longest-writer-wait-nanos"), waits.longest.as_nanos() as u64);
    (waits.waits, waits.longest)
}

#[test]
fn waits_are_counted_where_there_are_any() {
    // A thread may come too late to wait, but hardly ever.
    let waited = |ingest, key| (0..20).any(|_| waits_of_a_writer(ingest, key).0 == 1);
    assert!(waited(IngestMode::Blocking, 150), "the gate holds writers of the same keys back");
    assert!(waited(IngestMode::Blocking, 900), "and of all others");
    assert!(waited(IngestMode::Direct, 150), "a latch holds writers of the same keys back");
    assert_eq!(waits_of_a_writer(IngestMode::Direct, 900).0, 0, "and no others");
}

#[test]
fn an_ingest_that_may_not_wait_does_not() {
    let world = World::inline();
    world.put(150, "old");
    let file = world.table("new", 100..200, "new");
    let second = world.table("second", 120..130, "second");
    let apart = world.table("apart", 920..930, "apart");
    let impatient = IngestOptions { no_slowdown: true, ..mode(IngestMode::Direct) };
    let error = world.refused(&[world.request(file.clone())], &impatient);
    assert_eq!(error.kind(), ErrorKind::Busy, "a flush: {error}");
    let mut flushes = 0;
    world.whenever(move |db, event| {
        let Event::FlushBegin { .. } = event else { return };
        flushes += 1;
        if flushes == 1 {
            return put(db, 151, "dirty").expect("nobody is held back yet");
        } else if flushes > 2 {
            return; // of what comes afterwards
        }
        for ingest in MODES {
            let options = IngestOptions { no_slowdown: true, ..mode(ingest) };
            let error = db.ingest(&db.default_family(), std::slice::from_ref(&second), &options);
            assert_eq!(error.expect_err("a latch").kind(), ErrorKind::Busy, "{ingest:?}");
        }
        let options = IngestOptions { no_slowdown: true, ..mode(IngestMode::Flushable) };
        db.ingest(&db.default_family(), std::slice::from_ref(&apart), &options).expect("nothing is in its way");
    });
    assert_eq!(world.ingest(file, &mode(IngestMode::Direct)).expect("ingested").flushes, 2);
    assert_eq!(world.get(925).as_deref(), Some("apart"));
}

#[test]
fn an_ingest_that_may_not_wait_does_not_wait_for_a_closed_gate() {
    for first in [IngestMode::Blocking, IngestMode::FlushFirst] {
        let world = World::inline();
        world.put(150, "old");
        let file = world.table("new", 100..200, "new");
        let apart = world.table("apart", 920..930, "apart");
        let mut flushes = 0;
        world.whenever(move |db, event| {
            let Event::FlushBegin { .. } = event else { return };
            flushes += 1;
            if put_now(db, 160, "dirty").is_ok() || flushes > 4 {
                return; // the gate is open still, or again
            }
            for ingest in MODES {
                let options = IngestOptions { no_slowdown: true, ..mode(ingest) };
                let error = db.ingest(&db.default_family(), std::slice::from_ref(&apart), &options);
                assert_eq!(error.expect_err("the gate").kind(), ErrorKind::Busy, "{first:?} {ingest:?}");
            }
        });
        assert!(world.ingest(file, &mode(first)).expect("ingested").flushes > 0);
    }
}

/// In memory the clock goes on by a microsecond each time that somebody looks at it.
#[test]
fn the_commit_lock_is_counted_each_time_that_it_is_taken() {
    let world = World::inline();
    let plain = world.ingest(world.table("plain", 0..5, "new"), &mode(IngestMode::Flushable)).expect("ingested");
    // Its record does not fit into what is left of the log: it takes the lock, and takes it again with a fresh log.
    let value = "x".repeat(60 << 10);
    world.put_all(100..103, &value);
    let excise = Some((vec![b'l'; 40 << 10], vec![b'm'; 40 << 10]));
    let request = IngestRequest { excise, ..world.request(world.table("long", 10..15, "new")) };
    let again = world.db.ingest_all(&[request], &mode(IngestMode::Flushable)).expect("ingested");
    assert!(plain.locked_for < again.locked_for, "{plain:?} {again:?}");
    for report in [&plain, &again] {
        assert!(report.locked_for < report.committed_in && report.held_up_for < report.committed_in, "{report:?}");
    }
    let waits = world.db.ingest_waits();
    assert_eq!((waits.lock_held, waits.lock_waits), (plain.locked_for + again.locked_for, 0), "nobody wrote meanwhile");
}
