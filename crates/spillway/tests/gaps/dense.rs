//! Tables with mostly deletions are compacted though no level is due, and not for ever.

use testkit::engine::{CompactRangeOptions, ReadOptions};

use super::World;

/// More deletions than make a table worth it.
const KEYS: u32 = 5000;

fn files(world: &World) -> Vec<usize> {
    world.db.levels(&world.family).iter().map(|level| level.files).take(4).collect()
}

/// Values in level 2; their deletions are flushed.
fn with_flushed_deletions() -> (World, ReadOptions) {
    let world = World::with(|_, family| family.level_compaction_dynamic_level_bytes = false);
    (0..KEYS).for_each(|n| world.put(n, "old"));
    let down = CompactRangeOptions { change_level: true, target_level: Some(2), ..CompactRangeOptions::default() };
    world.db.compact_range(&world.family, None, None, &down).expect("compacted");
    assert_eq!(files(&world), [0, 0, 1, 0]);
    let then = ReadOptions { snapshot: Some(world.db.snapshot()), ..ReadOptions::default() };
    (0..KEYS).for_each(|n| world.delete(n));
    (world, then)
}

#[test]
fn deletions_go_down_to_what_they_delete() {
    let (world, then) = with_flushed_deletions();
    drop(then);
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
    assert_eq!(files(&world), [0; 4]);
}

#[test]
fn deletions_kept_for_a_snapshot_stop_in_the_deepest_level() {
    let (world, then) = with_flushed_deletions();
    world.flush();
    world.db.wait_for_compaction().expect("an end");
    assert_eq!(files(&world), [0, 0, 1, 0]);
    assert_eq!(world.contents(&then).len(), KEYS as usize);
    assert!(world.keys().is_empty());
}

#[test]
fn few_deletions_wait_for_a_level_to_be_due() {
    let world = World::with_dead(100);
    world.flush();
    world.db.wait_for_compaction().expect("compacted");
    assert_eq!(files(&world), [1, 0, 0, 0]);
}
