//! Ingests from behind: keys that exist stay as they are, whatever becomes of them.

use base::extend::Event;
use testkit::engine::{
    CompactRangeOptions, ErrorKind, IngestMode, IngestOptions, IngestRequest, IngestWay, WriteBatch,
};

use super::common::{MODES, World, contents, mode, name};

fn world() -> World {
    World::with(|options| options.db.allow_ingest_behind = true)
}

fn behind(ingest: IngestMode) -> IngestOptions {
    IngestOptions { ingest_behind: true, ..mode(ingest) }
}

fn compact(world: &World) {
    let options = CompactRangeOptions {
        bottommost_level_compaction: testkit::engine::BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    world.db.compact_range(&world.family, None, None, &options).expect("compacted");
}

/// Files by level.
fn files(world: &World) -> Vec<usize> {
    world.db.levels(&world.family).iter().map(|level| level.files).collect()
}

#[test]
fn what_exists_or_was_deleted_stays_so() {
    for ingest in MODES {
        let mut world = world();
        world.put_all(0..100, "old");
        for key in 50..70 {
            world.db.delete(&world.family, name(key).as_bytes(), &Default::default()).expect("deleted");
        }
        let (start, end) = (name(70).into_bytes(), name(80).into_bytes());
        world.db.delete_range(&world.family, &start, &end, &Default::default()).expect("deleted");
        compact(&world);
        assert_eq!(files(&world)[6], 0, "the last level is kept");
        world.put(200, "in memory");
        let (last, snapshot) = (world.db.latest_sequence_number(), world.db.snapshot());
        let report = world.ingest(world.table("in", 40..210, "behind"), &behind(ingest)).expect("ingested");
        assert_eq!((report.way, report.first.0, report.tables), (IngestWay::Behind, 0, 1), "{ingest:?}");
        assert_eq!(world.db.latest_sequence_number(), last, "{ingest:?}: it takes no number");
        let check = |world: &World| {
            let found = [0, 49, 50, 69, 70, 79, 80, 100, 200, 209].map(|key| world.get(key).unwrap_or_default());
            let expected = ["old", "old", "", "", "", "", "old", "behind", "in memory", "behind"];
            assert_eq!(found, expected, "{ingest:?}");
            assert_eq!(files(world)[6], 1, "{ingest:?}");
        };
        check(&world);
        assert_eq!(contents(&world.db, &world.family, Some(snapshot)).len(), 100 - 30 + 110, "snapshots see it too");
        compact(&world);
        check(&world);
        world.reopen();
        check(&world);
        // Other ingests and compactions leave the last level alone.
        world.ingest(world.table("above", 300..310, "above"), &mode(ingest)).expect("ingested");
        world.flush();
        compact(&world);
        check(&world);
        assert_eq!(world.get(305).as_deref(), Some("above"));
        world.ingest(world.table("again", 300..310, "behind"), &behind(ingest)).expect("ingested");
        assert_eq!((world.get(305).as_deref(), files(&world)[6]), (Some("above"), 2));
    }
}

#[test]
fn what_does_not_fit_behind_is_refused() {
    let world = world();
    let options = behind(IngestMode::Flushable);
    let invalid = |requests: &[IngestRequest], said: &str| {
        let error = world.refused(requests, &options);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains(said), "{error}");
    };
    let file = |file: &str, keys| world.table(file, keys, "behind");
    world.ingest(file("a", 0..10), &options).expect("ingested");
    invalid(&[world.request(file("b", 9..12))], "last level");
    invalid(&[IngestRequest::new(world.family.clone(), vec![file("c", 20..30), file("d", 25..35)])], "each other");
    let excise = Some((b"x".to_vec(), b"z".to_vec()));
    invalid(&[IngestRequest { excise, ..world.request(file("e", 40..50)) }], "excise");
    let request = [world.request(file("f", 60..70))];
    let prepared = world.db.prepare_ingest(&request, &options, &Default::default()).expect("prepared");
    let mut batch = WriteBatch::new();
    batch.put(world.family.id(), b"k", b"v");
    let error = world.db.write_with_ingest(&batch, prepared).expect_err("no batch comes from behind");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(world.contents().len(), 10);
}

#[test]
fn entries_that_were_made_final_before_are_noticed() {
    let mut world = World::inline();
    world.put_all(0..10, "old");
    compact(&world);
    world.change_options(|options| options.db.allow_ingest_behind = true);
    // Those are in the last level, which overlaps; and in a level above it they may have the number that is ingested.
    let error = world.refused(&[world.request(world.table("a", 5..15, "behind"))], &behind(IngestMode::Direct));
    assert!(error.message().contains("last level"), "{error}");
    world.ingest(world.table("b", 50..60, "behind"), &behind(IngestMode::Direct)).expect("beside it");
    assert_eq!(world.contents().len(), 20);
}

#[test]
fn what_is_ingested_behind_has_no_number_to_be_written() {
    let world = world();
    let request = world.request(world.table("in", 0..10, "behind"));
    let options = IngestOptions { write_global_seqno: true, ..behind(IngestMode::default()) };
    let error = world.refused(&[request], &options);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("write_global_seqno") && error.message().contains("ingest_behind"), "{error}");
}

/// Whether it comes before the excise has left the queue, or after.
#[test]
fn an_excise_hides_what_comes_from_behind_at_any_time() {
    for comes_late in [false, true] {
        let mut world = world();
        world.put_all(0..10, "old");
        world.flush();
        let file = world.table("behind", 3..15, "behind");
        let mut waiting = (!comes_late).then(|| file.clone());
        world.whenever(move |db, event| {
            if let Event::Ingested { .. } = event
                && let Some(file) = waiting.take()
            {
                db.ingest(&db.default_family(), &[file], &behind(IngestMode::default())).expect("ingested");
            }
        });
        let excise = Some((name(0).into_bytes(), name(9).into_bytes()));
        let request = IngestRequest { excise, ..IngestRequest::new(world.family.clone(), Vec::new()) };
        world.db.ingest_all(&[request], &IngestOptions::default()).expect("excised");
        world.flush();
        if comes_late {
            world.ingest(file, &behind(IngestMode::default())).expect("ingested");
        }
        let check = |world: &World| {
            let found = [0, 4, 8, 9, 12].map(|key| world.get(key).unwrap_or_default());
            assert_eq!(found, ["", "", "", "old", "behind"], "late: {comes_late}");
        };
        check(&world);
        compact(&world);
        check(&world);
        world.reopen();
        check(&world);
    }
}
