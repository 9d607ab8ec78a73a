//! What a later iterator need not pass, shown by a limit on hidden entries.

use testkit::engine::{ErrorKind, ReadOptions, WriteOptions};

use super::{World, key, walk};

fn limited() -> ReadOptions {
    ReadOptions { max_skippable_internal_keys: 20, ..ReadOptions::default() }
}

#[test]
fn a_run_is_passed_entry_by_entry_once() {
    let world = World::with_dead(1000);
    world.put(2000, "live");
    let refused = |forward| {
        let mut iterator = world.db.iter(&world.family, &limited()).expect("an iterator");
        assert!(!if forward { iterator.seek_to_first() } else { iterator.seek_to_last() && iterator.prev() });
        iterator.status().expect_err("too many hidden").kind()
    };
    assert_eq!((refused(true), refused(false)), (ErrorKind::Busy, ErrorKind::Busy));
    assert_eq!(world.keys(), [2000]);
    for options in [limited(), ReadOptions { iterate_lower_bound: Some(key(500)), ..limited() }] {
        assert_eq!(world.contents(&options).len(), 1);
    }
    let bounded = ReadOptions { iterate_upper_bound: Some(key(900)), ..limited() };
    assert_eq!(world.contents(&bounded).len(), 0);
}

/// Deletions go on at one end, as in a queue; tables come and go.
#[test]
fn a_run_that_grows_is_passed_by_its_growth_alone() {
    let world = World::with_dead(1000);
    (1000..2000).for_each(|n| world.put(n, "live"));
    assert_eq!(world.keys().len(), 1000);
    for round in 0..50 {
        (0..5).for_each(|n| world.delete(1000 + round * 5 + n));
        match round % 8 {
            2 => world.flush(),
            5 => world.compact(),
            _ => {}
        }
        let found = world.contents(&limited());
        assert_eq!(found.len() as u32, 995 - round * 5, "{round}");
    }
}

/// A failed scan brings the next one further.
#[test]
fn a_limit_is_overcome_in_steps() {
    let world = World::with_dead(100);
    world.put(2000, "live");
    let mut failures = 0;
    loop {
        let mut iterator = world.db.iter(&world.family, &limited()).expect("an iterator");
        if iterator.seek_to_first() {
            break;
        }
        failures += 1;
        assert!(failures < 20);
    }
    assert!(failures > 3, "{failures}");
}

#[test]
fn an_old_snapshot_and_a_new_reader_have_their_own_gaps() {
    let world = World::new();
    (0..100).for_each(|n| world.put(n, "old"));
    let full = world.db.snapshot();
    (0..100).for_each(|n| world.delete(n));
    let empty = world.db.snapshot();
    (40..60).for_each(|n| world.put(n, "new"));
    let at = |snapshot: &testkit::engine::Snapshot, limit: bool| {
        let options = if limit { limited() } else { ReadOptions::default() };
        ReadOptions { snapshot: Some(snapshot.clone()), ..options }
    };
    for limit in [false, true] {
        assert_eq!(world.contents(&at(&empty, limit)).len(), 0);
        assert_eq!(world.contents(&at(&full, limit)).len(), 100);
    }
    assert_eq!(world.keys(), (40..60).collect::<Vec<_>>());
    assert_eq!(world.contents(&at(&full, true)).len(), 100);
}

/// A merge operand makes a key live; a deletion, or a range deletion, does not.
#[test]
fn deletions_leave_a_gap_whole() {
    let world = World::with_dead(1000);
    world.put(2000, "live");
    assert_eq!(world.keys(), [2000]);
    (0..1000).step_by(7).for_each(|n| world.delete(n));
    world.db.delete_range(&world.family, &key(3), &key(900), &WriteOptions::default()).expect("deleted");
    assert_eq!(walk(&world.db, &world.family, &limited(), true).len(), 1);
    assert_eq!(walk(&world.db, &world.family, &limited(), false).len(), 1);
}
