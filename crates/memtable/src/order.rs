//! Orders of user keys as types, so that comparisons are compiled into a memtable's loops. The order is chosen once,
//! when the memtable is made.

use std::cmp::Ordering;
use std::sync::Arc;

use base::Comparator;
use base::bytes::leading_u64;

/// An order of user keys.
pub(crate) trait KeyOrder: Send + Sync + 'static {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// True if two keys are the same key: whole, or without their timestamps.
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool;

    /// How this order relates to the order of the keys' bytes.
    const DIRECTION: Direction;

    /// A number monotonic in key order: `prefix(a) < prefix(b)` implies `a < b`.
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        match Self::DIRECTION {
            Direction::Ascending => leading_u64(key),
            Direction::Descending => !leading_u64(key),
            Direction::Unknown => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
    Unknown,
}

pub(crate) struct Bytewise;

pub(crate) struct ReverseBytewise;

pub(crate) struct Custom {
    comparator: Arc<dyn Comparator>,
    timestamp_bytes: usize,
}

impl Custom {
    pub(crate) fn new(comparator: Arc<dyn Comparator>) -> Self {
        let timestamp_bytes = comparator.timestamp_bytes();
        Custom { comparator, timestamp_bytes }
    }
}

impl KeyOrder for Bytewise {
    const DIRECTION: Direction = Direction::Ascending;

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        compare_bytes(a, b)
    }

    #[inline]
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }
}

impl KeyOrder for ReverseBytewise {
    const DIRECTION: Direction = Direction::Descending;

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        compare_bytes(b, a)
    }

    #[inline]
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }
}

impl KeyOrder for Custom {
    const DIRECTION: Direction = Direction::Unknown;

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.comparator.compare(a, b)
    }

    /// Keys with timestamps are compared bytewise without them: the comparator needs timestamps on both sides and would
    /// tell versions apart.
    #[inline]
    fn same_key(&self, a: &[u8], b: &[u8]) -> bool {
        if self.timestamp_bytes == 0 {
            return self.comparator.compare(a, b).is_eq();
        }
        let bare = |key: &[u8]| key.len().saturating_sub(self.timestamp_bytes);
        a.get(..bare(a)) == b.get(..bare(b))
    }
}

/// Most pairs differ in their first eight bytes, and a call to `memcmp` costs more than one wide comparison.
#[inline]
pub(crate) fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(x), Some(y)) = (a.first_chunk::<8>(), b.first_chunk::<8>())
        && x != y
    {
        return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
    }
    a.cmp(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_never_contradict_the_order() {
        let keys: [&[u8]; 9] = [
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"ab",
            b"abcdefgh",
            b"abcdefghi",
            b"abcdefgi",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ];
        for a in keys {
            for b in keys {
                assert_eq!(Bytewise.compare(a, b), a.cmp(b));
                assert!(a.cmp(b).is_lt() || Bytewise::prefix(a) >= Bytewise::prefix(b), "{a:?} {b:?}");
                assert_eq!(ReverseBytewise.compare(a, b), b.cmp(a));
                assert!(b.cmp(a).is_lt() || ReverseBytewise::prefix(a) >= ReverseBytewise::prefix(b), "{a:?} {b:?}");
            }
        }
    }
}
