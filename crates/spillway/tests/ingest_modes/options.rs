//! RocksDB's options: what they refuse, and what they let through.

use base::extend::Event;
use testkit::engine::{CompactRangeOptions, ErrorKind, IngestMode, IngestOptions, IngestRequest, IngestWay};

use super::common::{MODES, World, mode, name, put};

fn invalid(world: &World, requests: &[IngestRequest], options: &IngestOptions, said: &str) {
    let error = world.refused(requests, options);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains(said), "{error}");
}

#[test]
fn without_allow_blocking_flush_writers_are_not_stopped_for_one() {
    let unblocking = |ingest| IngestOptions { allow_blocking_flush: false, ..mode(ingest) };
    let world = World::inline();
    world.put(150, "old");
    let file = world.table("new", 100..200, "new");
    invalid(&world, &[world.request(file.clone())], &unblocking(IngestMode::Blocking), "requires flush");
    // Nobody writes while it flushes, so that there is nothing to stop anybody for in the end.
    assert_eq!(world.ingest(file.clone(), &unblocking(IngestMode::FlushFirst)).expect("ingested").flushes, 1);
    world.ingest(file.clone(), &unblocking(IngestMode::Blocking)).expect("nothing is in memory any more");
    world.put(150, "old");
    world.whenever(|db, event| {
        if let Event::FlushBegin { .. } = event {
            put(db, 160, "dirty").expect("writers go on");
        }
    });
    for ingest in [IngestMode::FlushFirst, IngestMode::Direct] {
        let error = world.ingest(file.clone(), &unblocking(ingest)).expect_err("somebody always writes");
        assert!(error.message().contains("requires flush"), "{ingest:?}: {error}");
        assert_eq!([150, 160].map(|key| world.get(key).expect("there")), ["old", "dirty"]);
    }
}

#[test]
fn modes_are_read_by_their_names_and_tikvs() {
    let named = |name: &str| name.parse::<IngestMode>().map_err(|error| error.message().to_owned());
    for (name, ingest) in [
        ("flushable", IngestMode::Flushable),
        ("blocking", IngestMode::Blocking),
        ("flush-first", IngestMode::FlushFirst),
        ("direct", IngestMode::Direct),
        ("allow_write", IngestMode::Direct),
    ] {
        assert_eq!(named(name), Ok(ingest));
    }
    let error = named("Direct").expect_err("names are in small letters");
    assert_eq!(
        error,
        "no mode of an ingest is called \"Direct\"; known are flushable, blocking, flush-first, direct, allow_write"
    );
}

#[test]
fn without_allow_global_seqno_nothing_may_be_overlapped() {
    for ingest in MODES {
        let numberless = IngestOptions { allow_global_seqno: false, ..mode(ingest) };
        let world = World::inline();
        let file = world.table("new", 100..200, "new");
        let request = [world.request(file.clone())];
        world.put(150, "in memory");
        invalid(&world, &request, &numberless, "Global seqno is required");
        assert_eq!(world.number("rocksdb.num-entries-active-mem-table"), 1, "nothing was flushed for it");
        world.flush();
        invalid(&world, &request, &numberless, "Global seqno is required");
        world.db.delete(&world.family, name(150).as_bytes(), &Default::default()).expect("deleted");
        world.flush();
        invalid(&world, &request, &numberless, "Global seqno is required");
        world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
        let twice = IngestRequest::new(world.family.clone(), vec![file.clone(), world.table("b", 150..160, "b")]);
        invalid(&world, &[twice], &numberless, "external files key range overlaps");
        let snapshot = world.db.snapshot();
        invalid(&world, &request, &numberless, "snapshots");
        let excise = Some((b"x".to_vec(), b"z".to_vec()));
        invalid(&world, &[IngestRequest { excise, ..request[0].clone() }], &numberless, "excise");
        let unseen = IngestOptions { snapshot_consistency: false, ..numberless.clone() };
        let report = world.ingest(file, &unseen).expect("snapshots may see it");
        assert_ne!(report.way, IngestWay::Queued, "{ingest:?}");
        drop(snapshot);
        world.ingest(world.table("c", 300..310, "c"), &numberless).expect("nothing is in its way");
        assert_eq!(world.contents().len(), 110);
    }
}

#[test]
fn with_fail_if_not_bottommost_level_tables_get_the_last_one_or_none() {
    for ingest in MODES {
        let deep = IngestOptions { fail_if_not_bottommost_level: true, ..mode(ingest) };
        let world = World::threaded();
        let ten = |from: u32, file: &str| world.table(file, from..from + 10, "new");
        world.ingest(ten(0, "a"), &deep).expect("nothing is there");
        world.ingest(ten(100, "b"), &deep).expect("nor here");
        let levels = world.db.levels(&world.family);
        assert_eq!(levels.last().map(|level| level.files), Some(2), "{ingest:?}: {levels:?}");
        invalid(&world, &[world.request(ten(5, "c"))], &deep, "Lmax");
        invalid(&world, &[world.request(ten(103, "d"))], &deep, "Lmax");
        world.put(205, "in level 0, soon");
        let files = vec![ten(300, "e"), ten(200, "f")];
        let both = [IngestRequest::new(world.family.clone(), files)];
        world.flush();
        invalid(&world, &both, &deep, "Lmax");
        let excise = Some((b"x".to_vec(), b"z".to_vec()));
        invalid(&world, &[IngestRequest { excise, ..both[0].clone() }], &deep, "excise");
        world.ingest(ten(300, "g"), &deep).expect("nothing was left reserved");
        world.db.wait_for_compaction().expect("nothing keeps it");
    }
}

#[test]
fn numbers_are_written_into_files_where_that_is_asked_for() {
    for ingest in MODES {
        let mut world = World::real();
        world.put(150, "old");
        let file = world.table("new", 100..200, "new");
        let bytes = |path| std::fs::read(path).expect("readable");
        let original = bytes(file.clone());
        let writing = IngestOptions { write_global_seqno: true, ..mode(ingest) };
        let report = world.ingest(file.clone(), &writing).expect("ingested");
        world.flush();
        let of_it = |live: &testkit::engine::report::LiveFile| {
            live.smallest_seq == report.first && live.largest_seq == report.last
        };
        let live = world.db.live_files().into_iter().find(of_it).expect("it is there");
        let stored = bytes(live.path.clone());
        let changed: Vec<usize> = (0..original.len()).filter(|&at| original[at] != stored[at]).collect();
        let (first, last) = (changed[0], changed[changed.len() - 1]);
        assert!(last - first < 8, "{ingest:?}: nothing else was changed");
        assert_eq!(stored[first..first + 8], report.first.0.to_le_bytes(), "{ingest:?}");
        assert_eq!(bytes(file), original, "{ingest:?}: the caller's is as it was");
        world.reopen();
        assert_eq!(world.get(150).as_deref(), Some("new"), "{ingest:?}");
        let files = world.contents();
        assert_eq!(files.len(), 100, "checksums are right but for that one");
    }
}

#[test]
fn contradictions_are_refused() {
    let world = World::inline();
    let request = [world.request(world.table("new", 0..5, "new"))];
    let refuses = |change: fn(&mut IngestOptions), said: &str| {
        let mut options = IngestOptions::default();
        change(&mut options);
        invalid(&world, &request, &options, said);
    };
    refuses(|o| (o.move_files, o.link_files) = (true, true), "move_files");
    refuses(|o| (o.write_global_seqno, o.link_files) = (true, true), "write_global_seqno");
    refuses(|o| (o.write_global_seqno, o.allow_global_seqno) = (true, false), "allow_global_seqno");
    refuses(|o| o.ingest_behind = true, "allow_ingest_behind");
}
