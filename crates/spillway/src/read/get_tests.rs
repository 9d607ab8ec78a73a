use std::sync::Arc;

use base::key::encode;
use base::{ErrorKind, ValueKind};

use super::*;
use crate::cursor::search::Found;
use crate::cursor::testing::{
    FakeTable, KEYS, Random, VersionMaker, Write, context, fragmented, history, key_name, memtable_of, model,
    range_tombstones, view_of,
};
use crate::read::multi_get::{Asked, multi_get};

fn get_all(view: &ReadView, keys: &[&[u8]], seq: SeqNo, options: &ReadOptions) -> Vec<Result<Found>> {
    let context = &context();
    let asked: Vec<Asked<'_>> = keys.iter().map(|user_key| Asked { view, context, user_key }).collect();
    multi_get(&asked, seq, options)
}

#[test]
fn lookups_agree_with_the_model() {
    let options = ReadOptions::default();
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let writes = history(&mut random, 120);
        let view = view_of(&mut random, &writes);
        for _ in 0..6 {
            let seq = SeqNo(random.below(122));
            let expected = model(&writes, seq);
            let names: Vec<Vec<u8>> = (0..KEYS + 1).map(|_| key_name(random.below(KEYS + 1))).collect();
            for name in &names {
                let found = get(&view, &context(), name, seq, &options).unwrap();
                assert_eq!(
                    found.value.as_deref(),
                    expected.get(name).map(Vec::as_slice),
                    "seed {seed} at {seq}: {name:?}"
                );
            }
            let keys: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            let many = get_all(&view, &keys, seq, &options);
            assert_eq!(many.len(), keys.len());
            for (key, found) in keys.iter().zip(many) {
                let found = found.unwrap().value;
                assert_eq!(found.as_deref(), expected.get(*key).map(Vec::as_slice), "seed {seed} at {seq}: {key:?}");
            }
        }
    }
}

fn write(key: &str, seq: u64, kind: ValueKind, value: &str) -> Write {
    Write { key: key.into(), seq: SeqNo(seq), kind, value: value.into() }
}

fn table(key: &str, seq: u64) -> ((Vec<u8>, Vec<u8>), FakeTable) {
    let internal = encode(key.as_bytes(), SeqNo(seq), ValueKind::Value);
    ((internal.clone(), internal.clone()), FakeTable::new(vec![(internal, b"v".to_vec())], None))
}

#[test]
fn a_lookup_tells_which_part_answered() {
    let mut maker = VersionMaker::default();
    for (level, key) in [(0, "zero"), (1, "one"), (2, "two")] {
        let (bounds, table) = table(key, 3);
        maker.add(level, bounds, table);
    }
    let writes = [write("young", 9, ValueKind::Value, "v"), write("t", 8, ValueKind::RangeDeletion, "u")];
    let view = ReadView::new(memtable_of(&writes), Vec::new(), Arc::new(maker.build()));
    let source =
        |key: &str, seq| get(&view, &context(), key.as_bytes(), SeqNo(seq), &ReadOptions::default()).unwrap().source;
    assert_eq!(source("young", 9), Some(Source::Queue));
    assert_eq!(source("zero", 9), Some(Source::Level(0)));
    assert_eq!(source("one", 9), Some(Source::Level(1)));
    assert_eq!(source("two", 7), Some(Source::Level(2)));
    assert_eq!(source("two", 9), Some(Source::Queue), "the tombstone answers");
    assert_eq!(source("none", 9), None);

    let statistics = base::metrics::Statistics::new();
    for (key, seq) in [("young", 9), ("zero", 9), ("two", 7), ("two", 9), ("none", 9)] {
        get(&view, &context(), key.as_bytes(), SeqNo(seq), &ReadOptions::default()).unwrap().count(&statistics);
    }
    use base::metrics::Ticker::{GetHitL0, GetHitL1, GetHitL2AndUp, MemtableHit, MemtableMiss};
    let counts = [MemtableHit, MemtableMiss, GetHitL0, GetHitL1, GetHitL2AndUp];
    assert_eq!(counts.map(|ticker| statistics.count(ticker)), [2, 3, 1, 0, 1]);
}

/// Keys of several families in one call, in any order.
#[test]
fn families_are_looked_up_together() {
    let options = ReadOptions::default();
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let histories: Vec<Vec<Write>> = (0..3).map(|_| history(&mut random, 100)).collect();
        let views: Vec<_> = histories.iter().map(|writes| view_of(&mut random, writes)).collect();
        let (context, seq) = (context(), SeqNo(random.below(102)));
        let models: Vec<_> = histories.iter().map(|writes| model(writes, seq)).collect();
        let names: Vec<(usize, Vec<u8>)> =
            (0..40).map(|_| (random.below(3) as usize, key_name(random.below(KEYS + 1)))).collect();
        let mut asked = Vec::new();
        for (part, name) in &names {
            asked.push(Asked { view: &views[*part], context: &context, user_key: name });
        }
        for ((part, name), found) in names.iter().zip(multi_get(&asked, seq, &options)) {
            let expected = models[*part].get(name).map(Vec::as_slice);
            assert_eq!(found.unwrap().value.as_deref(), expected, "seed {seed} at {seq}: {name:?} of {part}");
        }
    }
}

/// An unreadable table fails only lookups reading it.
#[test]
fn errors_reach_the_keys_that_they_concern() {
    let mut maker = VersionMaker::default();
    let (bounds, bad) = table("bad", 3);
    let lost = maker.add(1, bounds, bad);
    let (bounds, good) = table("good", 3);
    maker.add(1, bounds, good);
    maker.lose(lost);
    let view = ReadView::new(memtable_of(&[]), Vec::new(), Arc::new(maker.build()));
    let keys: [&[u8]; 3] = [b"good", b"bad", b"other"];
    let found = get_all(&view, &keys, SeqNo(9), &ReadOptions::default());
    assert_eq!(found[0].as_ref().unwrap().value.as_deref(), Some(&b"v"[..]));
    assert_eq!(found[1].as_ref().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(found[2].as_ref().unwrap().value.is_none());
    assert!(get(&view, &context(), b"bad", SeqNo(9), &ReadOptions::default()).is_err());
}

/// RocksDB splits the versions of a key between neighbours, with a tombstone in both. The first copy decides nothing
/// about newer versions in the second table.
#[test]
fn a_tombstone_in_both_halves_of_a_key_hides_neither() {
    let tombstones = || fragmented(range_tombstones(&[write("a", 3, ValueKind::RangeDeletion, "z")]));
    let bound = |key: &str, seq, kind| encode(key.as_bytes(), SeqNo(seq), kind);
    let (first, last) = (bound("a", 3, ValueKind::RangeDeletion), bound("z", SeqNo::MAX.0, ValueKind::RangeDeletion));
    let (newer, older) = (bound("k", 10, ValueKind::Merge), bound("k", 5, ValueKind::Value));
    let mut maker = VersionMaker::default();
    maker.add(1, (first, newer.clone()), FakeTable::new(vec![(newer, b"operand".to_vec())], tombstones()));
    maker.add(1, (older.clone(), last), FakeTable::new(vec![(older, b"base".to_vec())], tombstones()));
    for key in ["b", "k"] {
        let (bounds, covered) = table(key, 1);
        maker.add(2, bounds, covered);
    }
    let view = ReadView::new(memtable_of(&[]), Vec::new(), Arc::new(maker.build()));
    let keys: [&[u8]; 3] = [b"b", b"k", b"zz"];
    for (seq, merged) in [(20, Some(&b"base,operand"[..])), (9, Some(b"base")), (4, None), (2, Some(b"v"))] {
        let (seq, options) = (SeqNo(seq), ReadOptions::default());
        let expected = [(seq < SeqNo(3)).then_some(&b"v"[..]), merged, None];
        for (found, value) in get_all(&view, &keys, seq, &options).into_iter().zip(expected) {
            assert_eq!(found.unwrap().value.as_deref(), value, "multi_get at {seq}");
        }
        for (key, value) in keys.into_iter().zip(expected) {
            let found = get(&view, &context(), key, seq, &options).unwrap();
            assert_eq!(found.value.as_deref(), value, "{key:?} at {seq}");
        }
    }
}

#[test]
fn operands_need_an_operator() {
    let view = ReadView::new(
        memtable_of(&[write("k", 4, ValueKind::Merge, "1")]),
        Vec::new(),
        Arc::new(VersionMaker::default().build()),
    );
    let context = ReadContext { merge_operator: None, ..context() };
    let error = get(&view, &context, b"k", SeqNo(9), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("merge_operator"));
}
