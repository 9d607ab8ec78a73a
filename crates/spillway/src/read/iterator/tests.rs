use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use base::ValueKind;

use super::*;
use crate::cursor::testing::{
    FakeTable, KEYS, Random, VersionMaker, Write, context, history, key_name, memtable_of, model, view_of,
};

/// The iterator that a sorted map gives.
struct Expected {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    at: Option<Vec<u8>>,
}

impl Expected {
    fn new(entries: BTreeMap<Vec<u8>, Vec<u8>>, options: &ReadOptions) -> Self {
        let within = |key: &Vec<u8>| {
            options.iterate_lower_bound.as_ref().is_none_or(|lower| key >= lower)
                && options.iterate_upper_bound.as_ref().is_none_or(|upper| key < upper)
        };
        Expected { entries: entries.into_iter().filter(|(key, _)| within(key)).collect(), at: None }
    }

    fn step(&mut self, what: u64, target: &[u8]) {
        let from = |bound| self.entries.range::<[u8], _>((bound, Unbounded)).next();
        let until = |bound| self.entries.range::<[u8], _>((Unbounded, bound)).next_back();
        let at = self.at.as_deref();
        let found = match what {
            0 => self.entries.first_key_value(),
            1 => self.entries.last_key_value(),
            2 => from(Included(target)),
            3 => until(Included(target)),
            4..8 => at.and_then(|at| from(Excluded(at))),
            _ => at.and_then(|at| until(Excluded(at))),
        };
        self.at = found.map(|(key, _)| key.clone());
    }
}

fn walk(iterator: &mut DbIterator, what: u64, target: &[u8]) -> bool {
    match what {
        0 => iterator.seek_to_first(),
        1 => iterator.seek_to_last(),
        2 => iterator.seek(target),
        3 => iterator.seek_for_prev(target),
        4..8 => iterator.next(),
        _ => iterator.prev(),
    }
}

#[test]
fn random_walks_agree_with_the_model() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let writes = history(&mut random, 150);
        let view = view_of(&mut random, &writes);
        let seq = SeqNo(random.below(152));
        let bound = |random: &mut Random| (random.below(2) == 0).then(|| key_name(random.below(KEYS)));
        let options = ReadOptions {
            iterate_lower_bound: bound(&mut random),
            iterate_upper_bound: bound(&mut random),
            ..ReadOptions::default()
        };
        let mut expected = Expected::new(model(&writes, seq), &options);
        let mut iterator = DbIterator::new(view, seq, &context(), &options).unwrap();
        for step in 0..200 {
            let what = random.below(12);
            let target = key_name(random.below(KEYS + 2));
            expected.step(what, &target);
            let valid = walk(&mut iterator, what, &target);
            assert_eq!(iterator.status().map_err(|e| e.to_string()), Ok(()));
            assert_eq!(valid, iterator.valid());
            let shown = valid.then(|| (iterator.key().to_vec(), iterator.value().to_vec()));
            let wanted = expected.at.clone().map(|key| (key.clone(), expected.entries[&key].clone()));
            assert_eq!(shown, wanted, "seed {seed} step {step} op {what} target {target:?} seq {seq}");
        }
    }
}

#[test]
fn prefixes_bound_the_walk() {
    let mut random = Random::new(9);
    let writes = history(&mut random, 150);
    let view = view_of(&mut random, &writes);
    let options = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let alive = model(&writes, SeqNo(150));
    let mut iterator = DbIterator::new(view, SeqNo(150), &context(), &options).unwrap();
    let count_of = |prefix: u8| alive.keys().filter(|key| key[0] == prefix).count();
    for (prefix, forward) in [(b'a', true), (b'b', true), (b'a', false), (b'b', false)] {
        let mut more = if forward { iterator.seek(&[prefix]) } else { iterator.seek_for_prev(&[prefix, 0xff]) };
        let mut count = 0;
        while more {
            assert_eq!(iterator.key()[0], prefix);
            count += 1;
            more = if forward { iterator.next() } else { iterator.prev() };
        }
        assert_eq!(count, count_of(prefix));
    }
    let mut more = iterator.seek_to_first();
    while more {
        assert_eq!(iterator.key()[0], b'a');
        more = iterator.next();
    }
}

fn only_memtable(writes: &[Write]) -> Arc<ReadView> {
    let version = Arc::new(VersionMaker::default().build());
    Arc::new(ReadView::new(memtable_of(writes), Vec::new(), version))
}

fn put(key: &str, seq: u64) -> Write {
    Write { key: key.into(), seq: SeqNo(seq), kind: ValueKind::Value, value: format!("v{seq}").into_bytes() }
}

/// More versions of one key than are stepped over one by one, both sides of the iterator's number.
#[test]
fn many_versions_of_a_key_are_sought_past() {
    let mut writes: Vec<Write> = (1..=40).map(|seq| put("k", seq)).collect();
    writes.extend([put("a", 41), put("z", 42)]);
    writes.push(Write { value: b"m".to_vec(), kind: ValueKind::Merge, ..put("k", 43) });
    for (seq, expected) in [(20, vec![("k", "v20")]), (43, vec![("a", "v41"), ("k", "v40,m"), ("z", "v42")])] {
        let options = ReadOptions::default();
        let mut iterator = DbIterator::new(only_memtable(&writes), SeqNo(seq), &context(), &options).unwrap();
        let text = |iterator: &DbIterator| {
            (
                String::from_utf8_lossy(iterator.key()).into_owned(),
                String::from_utf8_lossy(iterator.value()).into_owned(),
            )
        };
        let (mut ahead, mut back) = (Vec::new(), Vec::new());
        let mut more = iterator.seek_to_first();
        while more {
            ahead.push(text(&iterator));
            more = iterator.next();
        }
        more = iterator.seek_to_last();
        while more {
            back.push(text(&iterator));
            more = iterator.prev();
        }
        back.reverse();
        assert_eq!(ahead, back);
        let ahead: Vec<(&str, &str)> = ahead.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(ahead, expected);
    }
}

#[test]
fn too_many_hidden_entries_are_an_error_where_asked() {
    let deletion = |i: u64| Write { kind: ValueKind::Deletion, ..put(&format!("k{i:03}"), i + 1) };
    let mut writes: Vec<Write> = (0..50).map(deletion).collect();
    writes.extend([put("a", 60), put("z", 61)]);
    let options = ReadOptions { max_skippable_internal_keys: 10, ..ReadOptions::default() };
    let mut iterator = DbIterator::new(only_memtable(&writes), SeqNo(99), &context(), &options).unwrap();
    assert!(iterator.seek_to_first() && !iterator.next());
    assert_eq!(iterator.status().unwrap_err().kind(), ErrorKind::Busy);
    assert!(iterator.seek_to_last() && iterator.key() == b"z" && iterator.status().is_ok());
    assert!(!iterator.prev() && iterator.status().is_err());
    let any = ReadOptions::default();
    let mut iterator = DbIterator::new(only_memtable(&writes), SeqNo(99), &context(), &any).unwrap();
    assert!(iterator.seek_to_first() && iterator.next() && iterator.key() == b"z");
}

/// A young tombstone over a whole old table: the table is passed by a seek, not entry by entry.
#[test]
fn covered_ranges_are_jumped_over() {
    let old: Vec<Write> = (0..1000).map(|i| put(&format!("m{i:04}"), i + 1)).chain([put("z", 1001)]).collect();
    let mut maker = VersionMaker::default();
    maker.add_cut(2, &old, &[]);
    let range = Write { key: b"m".to_vec(), value: b"n".to_vec(), kind: ValueKind::RangeDeletion, ..put("", 2000) };
    let mutable = memtable_of(&[put("a", 1500), range, put("m0500", 2001)]);
    let view = Arc::new(ReadView::new(mutable, Vec::new(), Arc::new(maker.build())));
    let options = ReadOptions { max_skippable_internal_keys: 20, ..ReadOptions::default() };
    let mut iterator = DbIterator::new(view, SeqNo(3000), &context(), &options).unwrap();
    let mut keys = Vec::new();
    let mut more = iterator.seek_to_first();
    while more {
        keys.push(String::from_utf8(iterator.key().to_vec()).unwrap());
        more = iterator.next();
    }
    iterator.status().unwrap();
    assert_eq!(keys, ["a", "m0500", "z"]);
    more = iterator.seek_to_last();
    while more {
        assert_eq!(Some(iterator.key()), keys.pop().as_deref().map(str::as_bytes));
        more = iterator.prev();
    }
    iterator.status().unwrap();
    assert!(keys.is_empty());
}

#[test]
fn an_unreadable_table_ends_the_walk_with_its_error() {
    let mut maker = VersionMaker::default();
    let entry = |key: &str| base::key::encode(key.as_bytes(), SeqNo(1), ValueKind::Value);
    maker.add(1, (entry("a"), entry("a")), FakeTable::new(vec![(entry("a"), Vec::new())], None));
    let lost = maker.add(1, (entry("b"), entry("b")), FakeTable::new(Vec::new(), None));
    maker.lose(lost);
    let view = Arc::new(ReadView::new(memtable_of(&[put("c", 2)]), Vec::new(), Arc::new(maker.build())));
    let mut iterator = DbIterator::new(view, SeqNo(9), &context(), &ReadOptions::default()).unwrap();
    assert!(iterator.seek_to_first() && iterator.key() == b"a");
    assert!(!iterator.next(), "what the lost table would show comes before \"c\"");
    assert_eq!(iterator.status().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(iterator.seek(b"c") && iterator.status().is_ok());
    assert!(!iterator.prev() && iterator.status().is_err());
}

#[test]
fn an_iterator_can_be_sent_to_another_thread() {
    fn check<T: Send + 'static>() {}
    check::<DbIterator>();
}

#[test]
fn tables_are_opened_when_the_walk_reaches_them() {
    let mut maker = VersionMaker::default();
    let put = |key: u64| Write { key: key_name(key), seq: SeqNo(1), kind: ValueKind::Value, value: b"v".to_vec() };
    maker.add_cut(0, &[put(1), put(3)], &[]);
    maker.add_cut(0, &[put(5), put(7)], &[]);
    maker.add_cut(1, &[put(9), put(11), put(12)], &[key_name(11)]);
    let opened = maker.shelf.clone();
    let opened = || opened.opened.load(std::sync::atomic::Ordering::Relaxed);
    let view = Arc::new(ReadView::new(memtable_of(&[]), Vec::new(), Arc::new(maker.build())));
    let upper = |key| ReadOptions { iterate_upper_bound: Some(key_name(key)), ..ReadOptions::default() };
    let mut bounded = DbIterator::new(view.clone(), SeqNo(1), &context(), &upper(4)).unwrap();
    assert!(!bounded.seek(&key_name(4)));
    assert_eq!(opened(), 0);
    let mut iterator = DbIterator::new(view, SeqNo(1), &context(), &ReadOptions::default()).unwrap();
    for (key, tables) in [(3, 1), (5, 2), (7, 2), (9, 3), (11, 4)] {
        assert!(if key == 3 { iterator.seek(&key_name(2)) } else { iterator.next() });
        assert_eq!((iterator.key(), opened()), (key_name(key).as_slice(), tables));
    }
}

/// The tombstone's table is opened by the step from the operand, after the walk asked what covers the key.
#[test]
fn a_tombstone_that_begins_at_an_operands_key_hides_the_value_below() {
    let mut maker = VersionMaker::default();
    let write = |seq, kind, value: &[u8]| Write { key: key_name(5), seq: SeqNo(seq), kind, value: value.to_vec() };
    maker.add_cut(3, &[write(1, ValueKind::Value, b"old")], &[]);
    maker.add_cut(1, &[write(2, ValueKind::RangeDeletion, &key_name(6))], &[]);
    let mutable = memtable_of(&[write(3, ValueKind::Merge, b"new")]);
    let view = Arc::new(ReadView::new(mutable, Vec::new(), Arc::new(maker.build())));
    let mut iterator = DbIterator::new(view, SeqNo(3), &context(), &ReadOptions::default()).unwrap();
    assert!(iterator.seek(&key_name(5)));
    assert_eq!(iterator.value(), b"new");
}
