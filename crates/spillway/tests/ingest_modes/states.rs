//! Every mode over every state of the memory and the tables that it may find.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::extend::Event;
use testkit::engine::vfs::{IoClass, Vfs};
use testkit::engine::{
    CompactRangeOptions, ErrorKind, IngestMode, IngestOptions, IngestProgress, IngestRequest, IngestWay, WriteBatch,
};

use super::common::{MODES, World, contents, mode, name, put_now};

/// Where keys are that an ingest overlaps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Empty,
    /// In memory and in tables, but beside the ingest's.
    Beside,
    Mutable,
    /// In a memtable that is sealed, under one that is not.
    Sealed,
    Ingested,
    Level0,
    Compacted,
}

const STATES: [State; 7] =
    [State::Empty, State::Beside, State::Mutable, State::Sealed, State::Ingested, State::Level0, State::Compacted];

/// What is queued stays there for longer, where nobody wants it flushed.
const QUEUED_FOR: Duration = Duration::from_millis(900);

fn fill(world: &World, state: State) {
    match state {
        State::Empty => {}
        State::Beside => {
            world.put_all((0..90).step_by(9), "old");
            world.flush();
            world.put_all((500..600).step_by(9), "old");
        }
        State::Mutable => world.put_all((0..300).step_by(2), "old"),
        State::Sealed => {
            world.put_all((0..300).step_by(2), "old");
            let sealing = world.table("seals", [298], "old");
            world.ingest(sealing, &mode(IngestMode::Flushable)).expect("ingested");
            world.put(700, "old");
        }
        State::Ingested => {
            let first = world.table("first", (0..300).step_by(2), "old");
            world.ingest(first, &mode(IngestMode::Flushable)).expect("ingested");
        }
        State::Level0 | State::Compacted => {
            world.put_all((0..300).step_by(2), "old");
            world.flush();
            if state == State::Compacted {
                let options = CompactRangeOptions::default();
                world.db.compact_range(&world.family, None, None, &options).expect("compacted");
            }
        }
    }
}

fn check(mut world: World, ingest: IngestMode, state: State) {
    let said = format!("{ingest:?} over {state:?}");
    let start = Instant::now();
    fill(&world, state);
    let before = world.contents();
    let snapshot = world.db.snapshot();
    let last = world.db.latest_sequence_number();
    let queued = world.number("spillway.ingests-queued") as usize;
    let unflushed = world.number("rocksdb.num-entries-active-mem-table");
    let file = world.table("new", 100..200, "new");
    let report = world.ingest(file, &mode(ingest)).unwrap_or_else(|e| panic!("{said}: {e}"));
    let expected = match ingest {
        IngestMode::Flushable => IngestWay::Queued,
        IngestMode::Blocking => IngestWay::Blocking,
        IngestMode::FlushFirst => IngestWay::FlushFirst,
        _ => IngestWay::Direct,
    };
    assert_eq!((report.way, report.tables), (expected, 1), "{said}");
    assert!(report.first > last && world.db.latest_sequence_number() == report.last, "{said}: numbers grow");
    if ingest != IngestMode::Flushable {
        let has_level = world.db.live_files().iter().any(|file| file.smallest_seq == report.first);
        assert!(has_level, "{said}");
        assert_eq!((report.under, report.above), (1, 0), "{said}");
        match state {
            State::Mutable | State::Sealed => assert!(report.flushes > 0, "{said}: {report:?}"),
            State::Ingested if start.elapsed() > QUEUED_FOR => assert!(report.flushes <= queued, "{said}: {report:?}"),
            State::Ingested => assert_eq!(report.flushes, queued, "{said}: {report:?}"),
            _ => assert_eq!(report.flushes, 0, "{said}: {report:?}"),
        }
    }
    if state == State::Beside {
        assert_eq!(world.number("rocksdb.num-entries-active-mem-table"), unflushed, "{said}: nothing was flushed");
    }
    let mut after = before.clone();
    after.extend((100..200).map(|key| (name(key), "new".to_owned())));
    assert_eq!(world.contents(), after, "{said}");
    assert_eq!(contents(&world.db, &world.family, Some(snapshot.clone())), before, "{said}: of a snapshot");
    world.put(150, "newer");
    after.insert(name(150), "newer".to_owned());
    assert_eq!(world.contents(), after, "{said}: written over");
    world.flush();
    assert_eq!(contents(&world.db, &world.family, Some(snapshot)), before, "{said}: of a snapshot, flushed");
    for _ in 0..2 {
        world.reopen();
        assert_eq!(world.contents(), after, "{said}: reopened");
    }
    let options = CompactRangeOptions::default();
    world.db.compact_range(&world.family, None, None, &options).expect("compacted");
    assert_eq!(world.contents(), after, "{said}: compacted");
}

#[test]
fn every_mode_over_every_state() {
    for ingest in MODES {
        for state in STATES {
            check(World::inline(), ingest, state);
            check(World::threaded(), ingest, state);
        }
        check(World::real(), ingest, State::Beside);
        check(World::real(), ingest, State::Mutable);
    }
}

#[test]
fn an_excise_and_several_families_go_every_way() {
    for ingest in MODES {
        let mut world = World::threaded();
        let other = world.db.create_family("other", Default::default()).expect("made");
        world.put_all(0..100, "old");
        world.flush();
        world.put_all((0..100).step_by(3), "old");
        let before = world.db.snapshot();
        let excise = Some((name(20).into_bytes(), name(60).into_bytes()));
        let here = IngestRequest { excise, ..world.request(world.table("a", [30, 31], "in")) };
        let there = IngestRequest::new(other.clone(), vec![world.table("b", 5..15, "there")]);
        world.db.ingest_all(&[here, there], &mode(ingest)).expect("ingested");
        let check = |world: &World| {
            assert_eq!(world.contents().len(), 100 - 40 + 2, "{ingest:?}");
            assert_eq!(
                [19, 20, 30, 59, 60].map(|key| world.get(key).unwrap_or_default()),
                ["old", "", "in", "", "old"]
            );
        };
        check(&world);
        assert_eq!(contents(&world.db, &other, None).len(), 10, "{ingest:?}");
        assert_eq!(contents(&world.db, &world.family, Some(before)).len(), 100, "{ingest:?}");
        drop(other);
        world.reopen();
        check(&world);
        let other = world.db.family("other").expect("it is there");
        assert_eq!(contents(&world.db, &other, None).len(), 10, "{ingest:?}");
    }
}

#[test]
fn a_batch_rides_in_every_mode() {
    for ingest in MODES {
        let mut world = World::inline();
        world.put_all([5, 50], "old");
        let request = world.request(world.table("in", [5, 6, 7], "in"));
        let prepared = world.db.prepare_ingest(&[request], &mode(ingest), &Default::default()).expect("prepared");
        let mut batch = WriteBatch::new();
        batch.put(world.family.id(), name(6).as_bytes(), b"batch");
        batch.put(world.family.id(), name(50).as_bytes(), b"batch");
        world.db.write_with_ingest(&batch, prepared).expect("written");
        for _ in 0..2 {
            let found = [5, 6, 7, 50].map(|key| world.get(key).unwrap_or_default());
            assert_eq!(found, ["in", "batch", "in", "batch"], "{ingest:?}");
            world.reopen();
        }
    }
}

#[test]
fn a_family_that_is_dropped_before_the_commit_takes_nothing() {
    for ingest in MODES {
        let world = World::inline();
        let other = world.db.create_family("other", Default::default()).expect("made");
        let requests = [IngestRequest::new(other.clone(), vec![world.table("a", 5..15, "a")])];
        let prepared = world.db.prepare_ingest(&requests, &mode(ingest), &Default::default()).expect("prepared");
        world.db.drop_family(&other).expect("dropped");
        let error = world.db.commit_ingest(prepared).expect_err("there is no such family");
        assert_eq!(error.kind(), testkit::engine::ErrorKind::Closed, "{ingest:?}: {error}");
        world.put(1, "the database goes on");
    }
}

/// What happens while a commit waits for the flush of what it overlaps ends it before it has numbers.
fn fails_beside_a_flush(meanwhile: fn(&Arc<dyn Vfs>, &Path, &IngestProgress), kind: ErrorKind, why: &str) {
    for ingest in [IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct] {
        let world = World::inline();
        world.put_all(0..20, "under");
        let before = (world.contents(), world.db.latest_sequence_number());
        let file = world.table("in.sst", 5..15, "ingested");
        let (progress, request) = (IngestProgress::default(), [world.request(file.clone())]);
        let options = IngestOptions { link_files: true, ..mode(ingest) };
        let prepared = world.db.prepare_ingest(&request, &options, &progress).expect("prepared");
        let (vfs, cancelled) = (world.vfs.clone(), progress.clone());
        world.whenever(move |_, event| {
            if let Event::FlushBegin { .. } = event {
                meanwhile(&vfs, &file, &cancelled);
            }
        });
        let error = world.db.commit_ingest(prepared).expect_err(why);
        assert_eq!((error.kind(), error.message().contains(why)), (kind, true), "{ingest:?}: {error:?}");
        assert_eq!((world.contents(), world.db.latest_sequence_number()), before, "{ingest:?}");
        put_now(&world.db, 10, "no gate is closed").expect("written");
    }
}

#[test]
fn a_file_that_changes_while_the_commit_waits_is_refused() {
    let grow = |vfs: &Arc<dyn Vfs>, file: &Path, _: &IngestProgress| {
        vfs.open_append(file).expect("there").append(b"more", IoClass::Other).expect("written");
    };
    fails_beside_a_flush(grow, ErrorKind::InvalidArgument, "changed or removed");
}

#[test]
fn a_commit_is_cancelled_while_it_waits() {
    fails_beside_a_flush(|_, _, progress| progress.cancel(), ErrorKind::Closed, "cancelled");
}
