use std::sync::atomic::Ordering;

use base::key::encode;
use base::{SeqNo, ValueKind};

use super::*;
use crate::cursor::merging::MergingCursor;
use crate::cursor::testing::{FakeTable, Random, VecCursor, VersionMaker, order};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn entry(i: u64) -> (Vec<u8>, Vec<u8>) {
    (encode(format!("{i:04}").as_bytes(), SeqNo(5), ValueKind::Value), i.to_be_bytes().to_vec())
}

/// Tables of four entries with even numbers each, from 0 on.
fn level(tables: u64) -> (VersionMaker, Entries) {
    let mut maker = VersionMaker::default();
    let all: Entries = (0..tables * 4).map(|i| entry(2 * i)).collect();
    for part in all.chunks(4) {
        let bounds = (part[0].0.clone(), part[3].0.clone());
        maker.add(1, bounds, FakeTable::new(part.to_vec(), None));
    }
    (maker, all)
}

fn cursor(maker: &VersionMaker, bounds: UserBounds) -> LevelCursor {
    let files = LevelFiles::OfVersion(Arc::new(maker.build()), 1);
    let context = LevelContext::new(order(), TableReadOptions::default()).within(bounds);
    LevelCursor::new(Arc::new(context), 0, files)
}

fn waiting(maker: &VersionMaker, bounds: UserBounds, level: usize) -> LevelCursor {
    let files = LevelFiles::OfVersion(Arc::new(maker.build()), level);
    let context = LevelContext::new(order(), TableReadOptions::default()).within(bounds).waiting();
    LevelCursor::new(Arc::new(context), 0, files)
}

#[test]
fn a_level_is_walked_as_one_table() {
    let mut random = Random::new(5);
    let (maker, all) = level(5);
    let mut expected = VecCursor::new(order(), all);
    let mut level = cursor(&maker, UserBounds::default());
    for _ in 0..2000 {
        let target = entry(random.below(44)).0;
        match random.below(8) {
            0 => assert_eq!(level.seek_to_first(), expected.seek_to_first()),
            1 => assert_eq!(level.seek_to_last(), expected.seek_to_last()),
            2 => assert_eq!(level.seek(&target), expected.seek(&target)),
            3 => assert_eq!(level.seek_for_prev(&target), expected.seek_for_prev(&target)),
            4 | 5 if expected.valid() => assert_eq!(level.next(), expected.next()),
            6 | 7 if expected.valid() => assert_eq!(level.prev(), expected.prev()),
            _ => {}
        }
        assert_eq!((level.valid(), level.key(), level.value()), (expected.valid(), expected.key(), expected.value()));
    }
}

#[test]
fn tables_outside_the_bounds_are_not_opened() {
    let (maker, _) = level(5);
    let bounds = UserBounds { lower: Some(b"0016".to_vec()), upper: Some(b"0024".to_vec()) };
    let mut level = cursor(&maker, bounds);
    assert!(level.seek_to_first());
    assert_eq!(level.key(), entry(16).0, "the third table begins at the lower bound");
    while level.next() {}
    assert!(level.status().is_ok());
    assert!(level.seek_to_last());
    assert_eq!(level.key(), entry(22).0);
    while level.prev() {}
    assert!(!level.seek(&entry(24).0) && !level.seek_for_prev(&entry(15).0));
    assert_eq!(maker.shelf.opened.load(Ordering::Relaxed), 1);
}

#[test]
fn a_table_that_cannot_be_opened_is_no_end() {
    let (maker, _) = level(3);
    maker.lose(base::FileNumber(2));
    let mut level = cursor(&maker, UserBounds::default());
    assert!(level.seek_to_first());
    while level.next() {}
    assert_eq!(level.status().unwrap_err().message(), "no such table");
    assert!(level.seek(&entry(16).0), "the third table is whole");
    assert!(level.status().is_ok());
}

#[test]
fn a_waiting_cursor_reads_a_table_once_the_merge_reaches_it() {
    let (maker, _) = level(3);
    let mut level = waiting(&maker, UserBounds::default(), 1);
    assert!(level.seek(&entry(7).0) && level.is_ahead());
    assert_eq!((level.key(), level.value()), (entry(8).0.as_slice(), &[][..]));
    assert_eq!(maker.shelf.opened.load(Ordering::Relaxed), 0);
    assert!(level.arrive() && !level.is_ahead());
    assert_eq!((level.key(), level.value()), (entry(8).0.as_slice(), entry(8).1.as_slice()));
    assert!(level.seek(&entry(6).0) && !level.is_ahead(), "within a table");
    assert!(!level.seek(&entry(23).0), "behind all tables");
}

#[test]
fn a_waiting_cursor_does_not_pass_the_bounds() {
    let (maker, _) = level(3);
    let bounds = UserBounds { lower: None, upper: Some(b"0008".to_vec()) };
    let mut level = waiting(&maker, bounds, 1);
    assert!(!level.seek(&entry(7).0) && level.status().is_ok());
    assert_eq!(maker.shelf.opened.load(Ordering::Relaxed), 0);
}

/// Runs of tables of up to three entries, each run with a part of the entries at random.
fn runs(random: &mut Random, count: usize) -> (VersionMaker, Entries) {
    let all: Entries = (0..60).map(entry).collect();
    let mut maker = VersionMaker::default();
    let mut parts = vec![Entries::new(); count];
    for entry in &all {
        parts[random.below(count as u64) as usize].push(entry.clone());
    }
    for (level, part) in parts.iter().enumerate() {
        for entries in part.chunks(3) {
            // Bounds may be wider than the entries, as range tombstones make them.
            let smallest = match random.below(3) {
                0 => encode(&entries[0].0[..4], SeqNo(9), ValueKind::RangeDeletion),
                _ => entries[0].0.clone(),
            };
            maker.add(
                level + 1,
                (smallest, entries[entries.len() - 1].0.clone()),
                FakeTable::new(entries.to_vec(), None),
            );
        }
    }
    (maker, all)
}

/// Random walks over merged runs which wait agree with a walk over one sorted list.
#[test]
fn a_merge_of_waiting_runs_is_a_walk_over_one() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(3) as usize;
        let (maker, all) = runs(&mut random, count);
        let run = |level| waiting(&maker, UserBounds::default(), level);
        let mut merged = MergingCursor::new(order(), (1..=count).map(run).collect());
        let mut expected = VecCursor::new(order(), all);
        for _ in 0..400 {
            let target = entry(random.below(62)).0;
            match random.below(9) {
                0 => assert_eq!(merged.seek_to_first(), expected.seek_to_first()),
                1 => assert_eq!(merged.seek_to_last(), expected.seek_to_last()),
                2 => assert_eq!(merged.seek(&target), expected.seek(&target)),
                3 => assert_eq!(merged.seek_for_prev(&target), expected.seek_for_prev(&target)),
                4 if expected.valid() => {
                    assert_eq!(merged.next(), expected.next());
                    if merged.valid() {
                        merged.skip_from(0, &target);
                        if order().compare(expected.key(), &target).is_lt() {
                            expected.seek(&target);
                        }
                    }
                }
                5 | 6 if expected.valid() => assert_eq!(merged.next(), expected.next()),
                7 | 8 if expected.valid() => assert_eq!(merged.prev(), expected.prev()),
                _ => {}
            }
            assert_eq!((merged.key(), merged.value()), (expected.key(), expected.value()), "seed {seed}");
        }
    }
}
