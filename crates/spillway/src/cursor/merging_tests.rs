use base::key::{SeqNo, ValueKind, encode};

use super::*;
use crate::cursor::testing::{Random, VecCursor, order};

impl MergeChild for VecCursor {}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn split_at_random(random: &mut Random, children: usize, keys: u64) -> (Entries, Vec<VecCursor>) {
    let order = order();
    let mut all: Entries = (0..keys)
        .map(|i| {
            let name = format!("{:0width$}", random.below(keys), width = 4 + (random.below(2) * 20) as usize);
            (encode(name.as_bytes(), SeqNo(i + 1), ValueKind::Value), i.to_be_bytes().to_vec())
        })
        .collect();
    let mut parts = vec![Entries::new(); children];
    for entry in &all {
        parts[random.below(children as u64) as usize].push(entry.clone());
    }
    all.sort_by(|a, b| order.compare(&a.0, &b.0));
    let cursors = parts
        .into_iter()
        .map(|mut part| {
            part.sort_by(|a, b| order.compare(&a.0, &b.0));
            VecCursor::new(order.clone(), part)
        })
        .collect();
    (all, cursors)
}

/// Random walks over the merged children agree with a walk over one sorted list.
#[test]
fn a_walk_over_many_is_a_walk_over_one() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let children = 1 + random.below(7) as usize;
        let (all, cursors) = split_at_random(&mut random, children, 60);
        let mut expected = VecCursor::new(order(), all.clone());
        let mut merged = MergingCursor::new(order(), cursors);
        for _ in 0..400 {
            let target = all[random.below(60) as usize].0.clone();
            match random.below(8) {
                0 => assert_eq!(merged.seek_to_first(), expected.seek_to_first()),
                1 => assert_eq!(merged.seek_to_last(), expected.seek_to_last()),
                2 => assert_eq!(merged.seek(&target), expected.seek(&target)),
                3 => assert_eq!(merged.seek_for_prev(&target), expected.seek_for_prev(&target)),
                4 | 5 if expected.valid() => assert_eq!(merged.next(), expected.next()),
                6 | 7 if expected.valid() => assert_eq!(merged.prev(), expected.prev()),
                _ => {}
            }
            assert_eq!(merged.valid(), expected.valid());
            assert_eq!((merged.key(), merged.value()), (expected.key(), expected.value()));
        }
    }
}

#[test]
fn reverse_order_is_walked_too() {
    let order = InternalOrder::new(UserOrder::ReverseBytewise);
    let entry = |key: &str, seq| (encode(key.as_bytes(), SeqNo(seq), ValueKind::Value), Vec::new());
    let left = VecCursor::new(order.clone(), vec![entry("c", 1), entry("ab", 2), entry("a", 3)]);
    let right = VecCursor::new(order.clone(), vec![entry("b", 4), entry("aa", 5)]);
    let mut merged = MergingCursor::new(order, vec![left, right]);
    let mut seen = Vec::new();
    let mut more = merged.seek_to_first();
    while more {
        seen.push(String::from_utf8(user_key(merged.key()).to_vec()).unwrap());
        more = merged.next();
    }
    assert_eq!(seen, ["c", "b", "ab", "aa", "a"]);
}

/// Equal internal keys: the younger child's comes first, in both directions.
#[test]
fn the_younger_of_equal_keys_comes_first() {
    let entry = |value: &str| vec![(encode(b"k", SeqNo(5), ValueKind::Value), value.as_bytes().to_vec())];
    let child = |value| VecCursor::new(order(), entry(value));
    let mut merged = MergingCursor::new(order(), vec![child("young"), child("middle"), child("old")]);
    assert!(merged.seek_to_first());
    assert_eq!(merged.value(), b"young");
    assert!(merged.next() && merged.value() == b"middle");
    assert!(merged.prev() && merged.value() == b"young");
    assert!(merged.next() && merged.next() && merged.value() == b"old");
    assert!(merged.prev() && merged.value() == b"middle");
    assert!(merged.next() && merged.value() == b"old");
    assert!(!merged.next());
}

/// A cursor that fails after some entries.
struct Failing {
    inner: VecCursor,
    left: usize,
}

impl Failing {
    fn spend(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.valid()
    }
}

impl Cursor for Failing {
    fn valid(&self) -> bool {
        self.left > 0 && self.inner.valid()
    }
    fn seek_to_first(&mut self) -> bool {
        self.inner.seek_to_first() && self.valid()
    }
    fn seek_to_last(&mut self) -> bool {
        self.inner.seek_to_last() && self.valid()
    }
    fn seek(&mut self, target: &[u8]) -> bool {
        self.inner.seek(target) && self.valid()
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.inner.seek_for_prev(target) && self.valid()
    }
    fn next(&mut self) -> bool {
        self.inner.next();
        self.spend()
    }
    fn prev(&mut self) -> bool {
        self.inner.prev();
        self.spend()
    }
    fn key(&self) -> &[u8] {
        self.inner.key()
    }
    fn value(&self) -> &[u8] {
        self.inner.value()
    }
    fn status(&self) -> Result<()> {
        if self.left > 0 { Ok(()) } else { Err(Error::corruption("bad block")) }
    }
}

#[test]
fn a_failed_child_is_not_an_ended_one() {
    let mut random = Random::new(3);
    let (_, mut cursors) = split_at_random(&mut random, 2, 40);
    let good: Box<dyn Cursor> = Box::new(cursors.pop().unwrap());
    let failing: Box<dyn Cursor> = Box::new(Failing { inner: cursors.pop().unwrap(), left: 3 });
    let mut merged = MergingCursor::new(order(), vec![good, failing]);
    let mut more = merged.seek_to_first();
    let mut steps = 0;
    while more {
        steps += 1;
        more = merged.next();
    }
    assert!(steps < 40, "the good child's entries are not shown past the failure");
    assert_eq!(merged.status().unwrap_err().message(), "bad block");
    assert!(!merged.seek_to_first() && merged.status().is_err());
}
