use std::sync::atomic::Ordering;

use base::key::encode;
use base::{SeqNo, ValueKind};

use super::*;
use crate::read::testing::{FakeTable, Random, VecCursor, VersionMaker, order};

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
    LevelCursor::new(order(), files, TableReadOptions::default()).within(bounds)
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
