//! Ranges of keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use base::UserOrder;

use crate::cursor::options::ReadOptions;

/// A range of keys in a family's order: any range of Rust's with ends that are bytes.
///
/// `..`, `"a"..`, `"a".."m"`, `"a"..="m"`, `.."m"`, `..="m"`, and pairs of [`Bound`]s, over `&str`, `String`, `&[u8]`,
/// `Vec<u8>`, `[u8; N]` and whatever else is `AsRef<[u8]>`. Both ends have one type: two byte strings of different
/// lengths need `.as_slice()`.
///
/// A range whose start is behind its end is empty.
pub trait KeyRange: sealed::Sealed {
    /// Start and end of the range.
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for RangeFull {}

impl KeyRange for RangeFull {
    fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

macro_rules! ranges {
    ($( $Range:ty, $range:ident => $start:expr, $end:expr; )+) => { $(
        impl<K: AsRef<[u8]>> sealed::Sealed for $Range {}

        impl<K: AsRef<[u8]>> KeyRange for $Range {
            fn into_bounds(self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
                let $range = self;
                ($start, $end)
            }
        }
    )+ };
}

ranges! {
    Range<K>, range => included(&range.start), excluded(&range.end);
    RangeFrom<K>, range => included(&range.start), Bound::Unbounded;
    RangeTo<K>, range => Bound::Unbounded, excluded(&range.end);
    RangeInclusive<K>, range => included(range.start()), included(range.end());
    RangeToInclusive<K>, range => Bound::Unbounded, included(&range.end);
    (Bound<K>, Bound<K>), range => owned(range.0), owned(range.1);
}

fn included<K: AsRef<[u8]>>(key: &K) -> Bound<Vec<u8>> {
    Bound::Included(key.as_ref().to_vec())
}

fn excluded<K: AsRef<[u8]>>(key: &K) -> Bound<Vec<u8>> {
    Bound::Excluded(key.as_ref().to_vec())
}

fn owned<K: AsRef<[u8]>>(bound: Bound<K>) -> Bound<Vec<u8>> {
    bound.map(|key| key.as_ref().to_vec())
}

/// Ends of a range that an iterator's bounds cannot express in the family's order.
#[derive(Clone, Default)]
pub(super) struct Limits {
    /// Keys in the range are above it; equal to the lower bound.
    pub behind: Option<Vec<u8>>,
    /// Keys in the range are at or below it; there is no upper bound.
    pub through: Option<Vec<u8>>,
}

impl Limits {
    /// Sets the bounds of `options` to a range in `order`, as far as they express it.
    pub fn set(options: &mut ReadOptions, order: &UserOrder, range: impl KeyRange) -> Limits {
        let (start, end) = range.into_bounds();
        let mut limits = Limits::default();
        let next = |key: &[u8]| matches!(order, UserOrder::Bytewise).then(|| [key, b"\0"].concat());
        options.iterate_lower_bound = match start {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(key),
            Bound::Excluded(key) => Some(next(&key).unwrap_or_else(|| {
                limits.behind = Some(key.clone());
                key
            })),
        };
        options.iterate_upper_bound = match end {
            Bound::Unbounded => None,
            Bound::Excluded(key) => Some(key),
            Bound::Included(key) => {
                let next = next(&key);
                limits.through = next.is_none().then_some(key);
                next
            }
        };
        limits
    }
}

/// The smallest byte string above every one with `prefix`. `None` if there is none: all bytes of the prefix are 0xFF.
pub(super) fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let len = prefix.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut next = prefix.get(..len)?.to_vec();
    *next.last_mut()? += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_bytes_is_one_of_keys() {
        let bounds = |range: (Bound<Vec<u8>>, Bound<Vec<u8>>)| range;
        let (a, b) = (b"a".to_vec(), b"b".to_vec());
        assert_eq!(bounds((..).into_bounds()), (Bound::Unbounded, Bound::Unbounded));
        assert_eq!(bounds(("a".."b").into_bounds()), (Bound::Included(a.clone()), Bound::Excluded(b.clone())));
        assert_eq!(bounds((b"a"..=b"b").into_bounds()), (Bound::Included(a.clone()), Bound::Included(b.clone())));
        assert_eq!(bounds((String::from("a")..).into_bounds()), (Bound::Included(a.clone()), Bound::Unbounded));
        assert_eq!(bounds((..b.clone()).into_bounds()), (Bound::Unbounded, Bound::Excluded(b.clone())));
        assert_eq!(bounds((..=[b'b']).into_bounds()), (Bound::Unbounded, Bound::Included(b.clone())));
        let pair = (Bound::Excluded(a.as_slice()), Bound::Included(b.as_slice()));
        assert_eq!(bounds(pair.into_bounds()), (Bound::Excluded(a.clone()), Bound::Included(b.clone())));
        assert_eq!(bounds((7u16.to_be_bytes()..).into_bounds()), (Bound::Included(vec![0, 7]), Bound::Unbounded));
    }

    #[test]
    fn keys_with_a_prefix_end_before_the_next_one() {
        assert_eq!(behind_prefix(b"fruit/"), Some(b"fruit0".to_vec()));
        assert_eq!(behind_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((behind_prefix(b"\xff"), behind_prefix(b"")), (None, None));
    }
}
