use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use spillway::{Db, ErrorKind, Family, FamilyOptions, KeyRange, Options};

use crate::{in_memory, keys};

/// Orders by length first.
fn by_length(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then(a.cmp(b))
}

type Order = fn(&[u8], &[u8]) -> Ordering;

/// A family in each kind of order, with the order.
fn families(db: &Db) -> [(Family, Order); 3] {
    let family = |name, options: FamilyOptions| db.family_with(name, &options).unwrap();
    [
        (family("bytewise", FamilyOptions::new()), |a, b| a.cmp(b)),
        (family("reverse", FamilyOptions::new().reverse_order()), |a, b| b.cmp(a)),
        (family("by_length", FamilyOptions::new().comparator_fn("by-length", by_length)), by_length),
    ]
}

const KEYS: [&str; 8] = ["", "a", "ab", "abc", "b", "ba", "c", "ca"];

#[test]
fn every_range_is_walked_from_both_ends_in_every_order() {
    let db = in_memory();
    let ends: Vec<Bound<&str>> = KEYS
        .iter()
        .chain(["aa", "zz"].iter())
        .flat_map(|key| [Bound::Included(*key), Bound::Excluded(*key)])
        .chain([Bound::Unbounded])
        .collect();
    for (family, order) in families(&db) {
        for (place, key) in KEYS.into_iter().enumerate() {
            family.put(key, key).unwrap();
            if place == 3 {
                family.flush().unwrap();
            }
        }
        let mut sorted = KEYS.to_vec();
        sorted.sort_by(|a, b| order(a.as_bytes(), b.as_bytes()));
        for start in &ends {
            for end in &ends {
                let holds = |key: &&&str| {
                    let cmp = |other: &str| order(key.as_bytes(), other.as_bytes());
                    let behind_start = match start {
                        Bound::Included(start) => cmp(start).is_ge(),
                        Bound::Excluded(start) => cmp(start).is_gt(),
                        Bound::Unbounded => true,
                    };
                    behind_start
                        && match end {
                            Bound::Included(end) => cmp(end).is_le(),
                            Bound::Excluded(end) => cmp(end).is_lt(),
                            Bound::Unbounded => true,
                        }
                };
                let expected: Vec<&str> = sorted.iter().filter(holds).copied().collect();
                let case = format!("{} {start:?} {end:?}", family.name());
                assert_eq!(keys(family.range((*start, *end))), expected, "{case}");
                let mut backward = keys(family.range((*start, *end)).rev());
                backward.reverse();
                assert_eq!(backward, expected, "{case}, backward");
                meet_in_the_middle(&family, (*start, *end), &expected);
                walk_by_cursor(&family, (*start, *end), &expected, order);
            }
        }
    }
}

/// Steps from both ends, in each pattern, give each entry once.
fn meet_in_the_middle(family: &Family, range: (Bound<&str>, Bound<&str>), expected: &[&str]) {
    for pattern in 0u32..8 {
        let mut entries = family.range(range);
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for step in 0.. {
            let from_front = pattern >> (step % 3) & 1 == 0;
            let entry = if from_front { entries.next() } else { entries.next_back() };
            let Some(entry) = entry else { break };
            let key = String::from_utf8(entry.unwrap().0.to_vec()).unwrap();
            if from_front { front.push(key) } else { back.insert(0, key) }
        }
        assert_eq!([front, back].concat(), expected, "{} {range:?} {pattern:03b}", family.name());
        assert!(entries.next().is_none() && entries.next_back().is_none(), "fused");
    }
}

/// Seeks to every key, and steps on from there.
#[expect(clippy::indexing_slicing, reason = "positions in the list")]
fn walk_by_cursor(family: &Family, range: (Bound<&str>, Bound<&str>), expected: &[&str], order: Order) {
    let mut cursor = family.cursor(range).unwrap();
    for target in KEYS.iter().chain(&["aa", "zz"]) {
        let cmp = |key: &&&str| order(key.as_bytes(), target.as_bytes());
        let at = expected.iter().position(|key| cmp(&key).is_ge());
        assert_eq!(cursor.seek(target).unwrap(), at.is_some(), "{} {range:?} to {target}", family.name());
        if let Some(at) = at {
            assert_eq!((cursor.key(), cursor.value()), (expected[at].as_bytes(), expected[at].as_bytes()));
            assert_eq!(cursor.prev().unwrap(), at > 0, "{} {range:?} before {target}", family.name());
        }
        let at = expected.iter().rposition(|key| cmp(&key).is_le());
        assert_eq!(cursor.seek_back(target).unwrap(), at.is_some(), "{} {range:?} back to {target}", family.name());
        if let Some(at) = at {
            assert_eq!(cursor.key(), expected[at].as_bytes());
            assert_eq!(cursor.next().unwrap(), at + 1 < expected.len(), "{} {range:?} behind {target}", family.name());
        }
    }
}

#[test]
fn ranges_and_prefixes_are_those_of_the_standard_library() {
    let db = in_memory();
    let all: BTreeSet<Vec<u8>> = (0u16..300).map(|n| n.to_be_bytes().to_vec()).collect();
    for key in &all {
        db.put(key, "").unwrap();
    }
    let of = |range: &dyn Fn() -> spillway::Iter| range().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>();
    let low = 7u16.to_be_bytes();
    assert_eq!(of(&|| db.range(low..)), all.range(low.to_vec()..).cloned().collect::<Vec<_>>());
    assert_eq!(of(&|| db.range(..=low)), all.range(..=low.to_vec()).cloned().collect::<Vec<_>>());
    assert_eq!(of(&|| db.range(b"\x01\x00"..b"\x01\x05")).len(), 5);
    assert_eq!(of(&|| db.range(vec![1u8]..)).len(), 44);
    assert_eq!(of(&|| db.range("\u{1}"..)).len(), 44);
    assert_eq!(of(&|| db.range(..)).len(), 300);
    assert_eq!(of(&|| db.range(low..[0, 3])).len(), 0, "ends the wrong way round");
    assert_eq!(of(&|| db.prefix([1])), all.range(vec![1]..vec![2]).cloned().collect::<Vec<_>>());
    assert_eq!(of(&|| db.prefix("")).len(), 300);
    assert_eq!(of(&|| db.prefix([9])).len(), 0);
    assert_eq!(db.first().unwrap().unwrap().0.to_vec(), [0, 0]);
    assert_eq!(db.last().unwrap().unwrap().0.to_vec(), [1, 43]);
    fn takes_any(range: impl KeyRange) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        range.into_bounds()
    }
    assert_eq!(takes_any(..).0, Bound::Unbounded);
}

#[test]
fn prefixes_follow_the_order_of_the_family() {
    let db = in_memory();
    let [_, (reverse, _), (custom, _)] = families(&db);
    for key in ["a", "ab", "ab\u{7f}", "b", "ba"] {
        reverse.put(key, "").unwrap();
        custom.put(key, "").unwrap();
    }
    reverse.put([0xFF], "").unwrap();
    assert_eq!(keys(reverse.prefix("a")), ["ab\u{7f}", "ab", "a"]);
    assert_eq!(keys(reverse.prefix("a").rev()), ["a", "ab", "ab\u{7f}"]);
    assert_eq!(reverse.prefix([0xFF]).count(), 1);
    let mut refused = custom.prefix("a");
    assert_eq!(refused.next().unwrap().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(refused.next().is_none(), "fused");
}

#[test]
fn iteration_shows_the_state_of_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &Options::new().write_buffer_size(64 << 10)).unwrap();
    for n in 0u32..500 {
        db.put(n.to_be_bytes(), "old").unwrap();
    }
    let (mut entries, before) = (db.iter(), db.snapshot());
    let (first, _) = entries.next().unwrap().unwrap();
    assert_eq!(first.to_vec(), 0u32.to_be_bytes());
    for n in 0u32..1000 {
        db.put(n.to_be_bytes(), vec![0; 1000]).unwrap(); // several memtables
    }
    db.delete_range(0u32.to_be_bytes()..900u32.to_be_bytes()).unwrap();
    db.compact(..).unwrap();
    // The back's cursor is made only now.
    let (last, value) = entries.next_back().unwrap().unwrap();
    assert_eq!((last.to_vec(), &value[..]), (499u32.to_be_bytes().to_vec(), b"old".as_slice()));
    assert_eq!(entries.count(), 498);
    assert_eq!(db.iter().count(), 100);
    assert_eq!(before.iter(db.default_family()).count(), 500);
    assert_eq!(before.range(db.default_family(), ..10u32.to_be_bytes()).count(), 10);
    assert_eq!(before.prefix(db.default_family(), [0, 0, 1]).rev().count(), 244);
    let mut cursor = before.cursor(db.default_family(), ..).unwrap();
    assert!(cursor.last().unwrap());
    assert_eq!(cursor.value(), b"old");
    assert!(before.contains_key(db.default_family(), 3u32.to_be_bytes()).unwrap());
    let found = before.multi_get(db.default_family(), [3u32.to_be_bytes(), 700u32.to_be_bytes()]).unwrap();
    assert_eq!(found.iter().filter(|value| value.is_some()).count(), 1);
}
