//! Key bounds of unfinished writes, in a fixed number of words. Ingests check them against numbered writers, possibly
//! not in the memtables yet.
//!
//! Bounds are conservative: long keys are clipped. So a few stores move a write's bounds into its pipeline slot (C3),
//! and readers take no lock.

use std::sync::atomic::Ordering;

use base::{FamilyId, UserOrder};

use crate::commit::sync::AtomicU64;

/// Bytes kept of a key.
const PREFIX_BYTES: usize = 32;

/// Families with bounds in a slot. A batch over more families counts as touching everything.
pub(super) const FAMILIES_MAX: usize = 4;

/// A key, or its first `PREFIX_BYTES` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    bytes: [u8; PREFIX_BYTES],
    len: u8,
}

impl Prefix {
    fn of(key: &[u8]) -> Self {
        let mut bytes = [0; PREFIX_BYTES];
        let (kept, _) = key.split_at(key.len().min(PREFIX_BYTES));
        if let Some(room) = bytes.get_mut(..kept.len()) {
            room.copy_from_slice(kept);
        }
        Prefix { bytes, len: kept.len() as u8 }
    }

    fn key(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

/// User keys touched by a batch in one family, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBounds {
    family: FamilyId,
    /// `None`: any key.
    keys: Option<(Prefix, Prefix)>,
}

impl KeyBounds {
    /// Bounds from `smallest` to `largest` in the family's order.
    pub fn new(family: FamilyId, order: &UserOrder, smallest: &[u8], largest: &[u8]) -> Self {
        // Only bytewise orders can compare a clipped key.
        let too_long = matches!(order, UserOrder::Custom(_)) && smallest.len().max(largest.len()) > PREFIX_BYTES;
        if too_long {
            return KeyBounds { family, keys: None };
        }
        let first = Prefix::of(smallest);
        // Both bounds of a single change are mostly the same key: copy it once.
        let last = if std::ptr::eq(smallest, largest) { first } else { Prefix::of(largest) };
        KeyBounds { family, keys: Some((first, last)) }
    }

    pub fn family(&self) -> FamilyId {
        self.family
    }

    /// False only if the write touches no key from `start` to `end`, both inclusive. `order` is the family's.
    pub fn may_overlap(&self, order: &UserOrder, start: &[u8], end: &[u8]) -> bool {
        let Some((smallest, largest)) = &self.keys else { return true };
        // In both bytewise orders clipping turns `a < b` into `a <= b` at worst. So ranges clipped on both sides
        // overlap whenever the whole keys do.
        let clip = |key| match order {
            UserOrder::Custom(_) => key,
            UserOrder::Bytewise | UserOrder::ReverseBytewise => <[u8]>::get(key, ..PREFIX_BYTES).unwrap_or(key),
        };
        order.compare(clip(start), largest.key()).is_le() && order.compare(smallest.key(), clip(end)).is_le()
    }
}

/// Keys touched by an unfinished write, in one family or anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Any key in any family.
    Anything,
    Keys(KeyBounds),
}

impl Touched {
    /// False only if the write touches no key of the family from `start` to `end`, both inclusive.
    pub fn may_overlap(&self, family: FamilyId, order: &UserOrder, start: &[u8], end: &[u8]) -> bool {
        match self {
            Touched::Anything => true,
            Touched::Keys(bounds) => bounds.family == family && bounds.may_overlap(order, start, end),
        }
    }
}

/// Bounds of one write, in words readable while the next write replaces them. The reader then checks the pipeline: if
/// the slot was reused, the result is worthless.
#[derive(Default)]
pub(super) struct StoredBounds {
    /// Families stored; more than `FAMILIES_MAX` means anything.
    count: AtomicU64,
    families: [StoredFamily; FAMILIES_MAX],
}

/// `summary`: the family in the low 32 bits, then two key lengths of 8 bits each, then `ANY_KEY`.
#[derive(Default)]
struct StoredFamily {
    summary: AtomicU64,
    smallest: [AtomicU64; PREFIX_BYTES / 8],
    largest: [AtomicU64; PREFIX_BYTES / 8],
}

const SMALLEST_LEN_SHIFT: u32 = 32;
const LARGEST_LEN_SHIFT: u32 = 40;
const ANY_KEY: u64 = 1 << 48;

impl StoredBounds {
    pub fn store(&self, bounds: &[KeyBounds]) {
        self.count.store(bounds.len() as u64, Ordering::Relaxed);
        for (stored, bounds) in self.families.iter().zip(bounds) {
            stored.store(bounds);
        }
    }

    /// Returns the stored bounds in the first of the `FAMILIES_MAX` places.
    pub fn load(&self) -> [Option<Touched>; FAMILIES_MAX] {
        let mut touched = [None; FAMILIES_MAX];
        let count = self.count.load(Ordering::Relaxed);
        if count > FAMILIES_MAX as u64 {
            touched = [Some(Touched::Anything), None, None, None];
        } else {
            for (to, stored) in touched.iter_mut().zip(&self.families).take(count as usize) {
                *to = Some(Touched::Keys(stored.load()));
            }
        }
        touched
    }
}

impl StoredFamily {
    fn store(&self, bounds: &KeyBounds) {
        let family = u64::from(bounds.family.0);
        let Some((smallest, largest)) = &bounds.keys else {
            return self.summary.store(family | ANY_KEY, Ordering::Relaxed);
        };
        let lengths = u64::from(smallest.len) << SMALLEST_LEN_SHIFT | u64::from(largest.len) << LARGEST_LEN_SHIFT;
        self.summary.store(family | lengths, Ordering::Relaxed);
        store_prefix(&self.smallest, smallest);
        store_prefix(&self.largest, largest);
    }

    fn load(&self) -> KeyBounds {
        let summary = self.summary.load(Ordering::Relaxed);
        let family = FamilyId(summary as u32);
        if summary & ANY_KEY != 0 {
            return KeyBounds { family, keys: None };
        }
        let smallest = load_prefix(&self.smallest, (summary >> SMALLEST_LEN_SHIFT) as u8);
        let largest = load_prefix(&self.largest, (summary >> LARGEST_LEN_SHIFT) as u8);
        KeyBounds { family, keys: Some((smallest, largest)) }
    }
}

/// Leaves words behind the key's end unchanged.
fn store_prefix(words: &[AtomicU64], prefix: &Prefix) {
    let used = usize::from(prefix.len).div_ceil(8);
    for (word, bytes) in words.iter().zip(prefix.bytes.as_chunks::<8>().0).take(used) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

fn load_prefix(words: &[AtomicU64], len: u8) -> Prefix {
    let mut bytes = [0; PREFIX_BYTES];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).take(usize::from(len).div_ceil(8)) {
        *to = word.load(Ordering::Relaxed).to_le_bytes();
    }
    Prefix { bytes, len }
}

#[cfg(all(test, not(loom)))]
mod tests {
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
}
