use std::cmp::Ordering as Order;
use std::sync::Arc;

use base::Comparator;

use super::*;

const FAMILY: FamilyId = FamilyId(7);

/// By length first: of keys clipped to one length it says nothing.
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

fn orders() -> [UserOrder; 3] {
    [UserOrder::Bytewise, UserOrder::ReverseBytewise, UserOrder::Custom(Arc::new(ByLength))]
}

/// Keys around the length that is kept, alike for long.
fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0xff], b"b".to_vec()];
    for len in [7, 8, 9, 31, 32, 33, 40] {
        for last in [0, b'a', b'b', 0xff] {
            let mut key = vec![b'a'; len - 1];
            key.push(last);
            keys.push(key.clone());
            key.push(0);
            keys.push(key);
        }
    }
    keys
}

#[test]
fn whatever_overlaps_is_said_to() {
    for order in orders() {
        let mut keys = keys();
        keys.sort_by(|a, b| order.compare(a, b));
        let mut told_apart = 0;
        for (i, smallest) in keys.iter().enumerate() {
            for (j, largest) in keys.iter().enumerate().skip(i) {
                let stored = StoredBounds::default();
                stored.store(&[KeyBounds::new(FAMILY, &order, smallest, largest)]);
                let touched = stored.load()[0].expect("one family");
                for (k, start) in keys.iter().enumerate() {
                    for (l, end) in keys.iter().enumerate().skip(k) {
                        let said = touched.may_overlap(FAMILY, &order, start, end);
                        assert!(said || l < i || j < k, "{order:?} {smallest:?}..{largest:?} {start:?}..{end:?}");
                        told_apart += usize::from(!said);
                    }
                }
                assert!(!touched.may_overlap(FamilyId(8), &order, smallest, largest), "another family's");
            }
        }
        assert!(told_apart > 10_000, "{order:?}: bounds that overlap everything say nothing");
    }
}

#[test]
fn short_keys_are_told_apart_exactly() {
    for order in orders() {
        let mut keys: Vec<&[u8]> = vec![b"a", b"b", b"c", b"d", b"e"];
        keys.sort_by(|a, b| order.compare(a, b));
        let bounds = KeyBounds::new(FAMILY, &order, keys[1], keys[3]);
        let overlaps = |from: usize, to: usize| bounds.may_overlap(&order, keys[from], keys[to]);
        assert!(!overlaps(0, 0) && overlaps(0, 1) && overlaps(2, 2) && overlaps(3, 4) && !overlaps(4, 4));
    }
}

#[test]
fn a_slot_forgets_the_write_before() {
    let order = UserOrder::Bytewise;
    let bounds = |family| KeyBounds::new(FamilyId(family), &order, b"some key or other", b"zz");
    let many: Vec<KeyBounds> = (0..=FAMILIES_MAX as u32).map(bounds).collect();
    let stored = StoredBounds::default();
    let loaded = || stored.load().into_iter().flatten().collect::<Vec<_>>();
    stored.store(&many);
    assert_eq!(loaded(), [Touched::Anything]);
    stored.store(&many[1..]);
    assert_eq!(loaded(), many[1..].iter().copied().map(Touched::Keys).collect::<Vec<_>>());
    let short = KeyBounds::new(FAMILY, &order, b"", b"k");
    stored.store(&[short]);
    assert_eq!(loaded(), [Touched::Keys(short)]);
    stored.store(&[]);
    assert_eq!(loaded(), []);
}
