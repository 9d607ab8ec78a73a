//! Every way in which a key of a gap comes back.

use std::sync::Arc;

use testkit::engine::extend::{CompactionFilter, FilterDecision};
use testkit::engine::{
    CompactRangeOptions, FamilyOptions, IngestMode, IngestOptions, ReadOptions, WriteBatch, WriteOptions,
};

use super::{World, key};

/// Compactions give the entries of the last level number 0, below that of every gap.
#[test]
fn a_zeroed_number_hides_nothing() {
    let world = World::with_dead(100);
    assert!(world.keys().is_empty());
    world.put(50, "new");
    world.compact();
    assert_eq!(world.keys(), [50]);
    world.delete(50);
    assert!(world.keys().is_empty());
    world.compact();
    world.put(0, "new");
    world.put(99, "new");
    world.flush();
    assert_eq!(world.keys(), [0, 99]);
    world.compact();
    assert_eq!(world.keys(), [0, 99]);
}

#[test]
fn batches_and_ingests_bring_keys_back() {
    for mode in [IngestMode::Flushable, IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct] {
        let world = World::with(|options, _| options.db.large_batch_bytes = 4 << 10);
        (0..100).for_each(|n| world.put(n, "old"));
        (0..100).for_each(|n| world.delete(n));
        assert!(world.keys().is_empty());
        let options = IngestOptions { mode, ..IngestOptions::default() };
        world.db.ingest(&world.family, &[world.table([20, 30])], &options).expect("ingested");
        assert_eq!(world.keys(), [20, 30], "{mode:?}");
        let mut batch = WriteBatch::new();
        batch.put(world.family.id(), &key(60), &[7; 5 << 10]);
        batch.put(world.family.id(), &key(61), b"small");
        world.db.write(&batch, &WriteOptions::default()).expect("written");
        assert_eq!(world.keys(), [20, 30, 60, 61], "{mode:?}");
        world.compact();
        assert_eq!(world.keys(), [20, 30, 60, 61], "{mode:?}");
    }
}

/// Such tables have number 0, and are seen at every number.
#[test]
fn tables_from_behind_show() {
    let world = World::with(|options, _| options.db.allow_ingest_behind = true);
    (0..100).step_by(2).for_each(|n| world.put(n, "old"));
    (0..100).step_by(2).for_each(|n| world.delete(n));
    let snapshot = world.db.snapshot();
    let before = world.db.iter(&world.family, &ReadOptions::default()).expect("an iterator");
    assert!(world.keys().is_empty());
    let options = IngestOptions { ingest_behind: true, ..IngestOptions::default() };
    world.db.ingest(&world.family, &[world.table(30..40)], &options).expect("ingested");
    let odd = [31, 33, 35, 37, 39];
    assert_eq!(world.keys(), odd);
    // An iterator of before finds nothing, and may not say so to later ones.
    let mut before = before;
    assert!(!before.seek_to_first() && !before.seek_to_last());
    assert_eq!(world.keys(), odd);
    let then = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(world.contents(&then).len(), odd.len());
}

/// Values in level 2, their deletions in level 1.
fn deletions_in_level_1(world: &World) {
    (0..100).for_each(|n| world.put(n, "old"));
    let down = CompactRangeOptions { change_level: true, target_level: Some(2), ..CompactRangeOptions::default() };
    world.db.compact_range(&world.family, None, None, &down).expect("compacted");
    (20..80).for_each(|n| world.delete(n));
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
    assert_eq!(world.keys().len(), 40);
}

fn leveled(family: &mut FamilyOptions) {
    family.level_compaction_dynamic_level_bytes = false;
    family.level0_file_num_compaction_trigger = 1;
}

fn files(world: &World) -> Vec<usize> {
    world.db.levels(&world.family).iter().map(|level| level.files).take(3).collect()
}

#[test]
fn what_dropped_tables_had_deleted_shows() {
    let world = World::with(|_, family| leveled(family));
    deletions_in_level_1(&world);
    assert_eq!(files(&world), [0, 1, 1]);
    let (start, end) = (key(20), key(80));
    assert_eq!(world.db.drop_tables_in_range(&world.family, Some(&start), Some(&end)).expect("dropped"), 1);
    assert_eq!(world.keys().len(), 100);
}

/// Skips from one key to a later one.
struct Skip;

impl CompactionFilter for Skip {
    fn name(&self) -> &str {
        "test.Skip"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        if value == b"skip" { FilterDecision::RemoveAndSkipUntil(key(90)) } else { FilterDecision::Keep }
    }
}

#[test]
fn what_a_filter_skipped_hides_nothing() {
    let world = World::with(|_, family| {
        leveled(family);
        family.compaction_filter = Some(Arc::new(Skip));
    });
    deletions_in_level_1(&world);
    world.put(10, "skip");
    world.put(85, "new");
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
    // The deletions in level 1 were skipped too, so the values in level 2 show.
    let get = world.db.get(&world.family, &key(50), &ReadOptions::default()).expect("read");
    assert_eq!(world.keys().contains(&50), get.is_some());
    assert!(get.is_some(), "{:?}", files(&world));
}
