//! Which levels ingested tables were given, as statistics and listeners are told.

use std::sync::Arc;

use base::extend::Event;
use base::metrics::Ticker;
use parking_lot::Mutex;
use testkit::engine::{CompactRangeOptions, IngestMode, IngestOptions, IngestRequest, ReadOptions};

use super::common::{MODES, World, mode, name};

/// The levels that listeners are told of, as they come.
fn levels_told(world: &World) -> Arc<Mutex<Vec<usize>>> {
    let levels = Arc::new(Mutex::new(Vec::new()));
    let told = levels.clone();
    world.whenever(move |_, event| {
        if let Event::TablePlaced { level, .. } = event {
            told.lock().push(*level);
        }
    });
    levels
}

/// Tables that were counted as given level 0, the last level, and one between.
fn counts(world: &World) -> [u64; 3] {
    let statistics = world.db.statistics().expect("asked for");
    [Ticker::IngestPlacedL0, Ticker::IngestPlacedMiddle, Ticker::IngestPlacedLast]
        .map(|ticker| statistics.count(ticker))
}

#[test]
fn each_table_is_told_with_its_level() {
    for ingest in MODES {
        let world = World::with(|options| {
            options.families.iter_mut().for_each(|(_, family)| family.level_compaction_dynamic_level_bytes = false);
        });
        let told = levels_told(&world);
        let bring = |file: &str, keys| {
            world.ingest(world.table(file, keys, file), &mode(ingest)).expect("ingested");
            world.flush();
        };
        bring("empty", 0..10);
        bring("over the last", 5..15);
        bring("apart", 100..110);
        world.put(7, "flushed");
        world.flush();
        bring("over level 0", 6..8);
        assert_eq!((&**told.lock(), counts(&world)), (&[6, 5, 6, 0][..], [1, 1, 2]), "{ingest:?}");
    }
}

#[test]
fn what_comes_from_behind_is_told_too() {
    let world = World::with(|options| options.db.allow_ingest_behind = true);
    let told = levels_told(&world);
    let options = IngestOptions { ingest_behind: true, ..IngestOptions::default() };
    let files = [world.table("a", 0..10, "behind"), world.table("b", 20..30, "behind")];
    world.db.ingest(&world.family, &files, &options).expect("ingested");
    assert_eq!((&**told.lock(), counts(&world)), (&[6, 6][..], [0, 0, 2]));
}

/// Nobody ingested the tombstone that an excise leaves where a snapshot still sees what it removes.
#[test]
fn the_tombstone_of_an_excise_is_no_ingested_table() {
    for ingest in [IngestMode::Flushable, IngestMode::Direct] {
        let world = World::inline();
        world.put_all(0..100, "old");
        world.flush();
        world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
        let snapshot = world.db.snapshot();
        let told = levels_told(&world);
        let excise = Some((name(10).into_bytes(), name(20).into_bytes()));
        let request = IngestRequest { excise, ..IngestRequest::new(world.family.clone(), Vec::new()) };
        world.db.ingest_all(&[request], &mode(ingest)).expect("excised");
        world.flush();
        let tombstones = world.db.levels(&world.family)[0].files;
        assert_eq!((tombstones, &**told.lock(), counts(&world)), (1, &[][..], [0; 3]), "{ingest:?}");
        drop(snapshot);
    }
}

/// Whatever an ingest meets that cannot be read, it is placed above, and nothing else comes of it.
#[test]
fn tables_are_placed_above_one_that_cannot_be_read() {
    for (ingest, excises) in MODES.into_iter().flat_map(|ingest| [(ingest, false), (ingest, true)]) {
        let mut world = World::with(|options| {
            options.families.iter_mut().for_each(|(_, family)| family.disable_auto_compactions = true);
        });
        world.put_all(0..1000, "old");
        world.flush();
        world.db.compact_range(&world.family, None, None, &CompactRangeOptions::default()).expect("compacted");
        world.damage_tables();
        world.reopen();
        let excise = excises.then(|| (name(300).into_bytes(), name(400).into_bytes()));
        let files = vec![world.table("over", 350..360, "new")];
        let request = IngestRequest { excise, ..IngestRequest::new(world.family.clone(), files) };
        world.db.ingest_all(&[request], &mode(ingest)).expect("ingested");
        world.flush();
        for _ in 0..3 {
            world.put(2000, "goes on");
            let found = world.db.get(&world.family, name(355).as_bytes(), &ReadOptions::default()).expect("readable");
            assert!(found.is_some_and(|value| value.starts_with(b"new")), "{ingest:?}, {excises}");
            world.reopen();
        }
    }
}
