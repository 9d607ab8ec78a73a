//! Heads: four bytes of each key, stored side by side. They decide most comparisons without the keys.
//!
//! The keys of a node or group share a prefix. A key's head is the four bytes after the prefix, zero-padded, as an
//! order-preserving number: if two heads differ, the keys compare the same way. Keys with equal heads are compared
//! whole. Custom orders have no heads.

use std::cmp::Ordering;

use base::UserOrder;
use base::bytes::{leading_u32, shared_prefix};

/// The kind of a table's heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heads {
    None,
    Ascending,
    /// Complemented, as greater bytes come first.
    Descending,
}

/// A key's head as it is stored: little-endian.
pub(super) type StoredHead = [u8; 4];

impl Heads {
    pub(super) fn of(order: &UserOrder) -> Heads {
        match order {
            UserOrder::Bytewise => Heads::Ascending,
            UserOrder::ReverseBytewise => Heads::Descending,
            UserOrder::Custom(_) => Heads::None,
        }
    }

    /// The number stored in the footer.
    pub(super) fn number(self) -> u32 {
        match self {
            Heads::None => 0,
            Heads::Ascending => 1,
            Heads::Descending => 2,
        }
    }

    /// Bytes of `count` heads.
    pub(super) fn bytes_of(self, count: usize) -> usize {
        if self == Heads::None { 0 } else { count * size_of::<StoredHead>() }
    }

    /// The head of a user key, from `rest`: the key without the prefix.
    #[inline]
    pub(super) fn head(self, rest: &[u8]) -> u32 {
        let first = leading_u32(rest);
        if self == Heads::Descending { !first } else { first }
    }

    /// Common prefix length of two user keys, limited to the 16 bits of a header; 0 without heads.
    pub(super) fn shared(self, a: &[u8], b: &[u8]) -> usize {
        if self == Heads::None { 0 } else { shared_prefix(a, b).min(usize::from(u16::MAX)) }
    }

    /// `user_key` without `prefix`. If it has a different prefix: its order relative to all keys with `prefix`.
    #[inline]
    pub(super) fn strip<'k>(self, user_key: &'k [u8], prefix: &[u8]) -> Result<&'k [u8], Ordering> {
        match user_key.split_at_checked(prefix.len()) {
            Some((start, rest)) if start == prefix => Ok(rest),
            _ if self == Heads::Descending => Err(prefix.cmp(user_key)),
            _ => Err(user_key.cmp(prefix)),
        }
    }
}

/// How many of `count` sorted keys are before the target with `head`. `is_before` decides keys with equal heads, and
/// all keys if there are no heads. `None` if `is_before` returns it.
#[inline]
pub(super) fn rank(
    heads: &[StoredHead],
    count: usize,
    head: u32,
    mut is_before: impl FnMut(usize) -> Option<bool>,
) -> Option<usize> {
    let mut low = heads.partition_point(|stored| u32::from_le_bytes(*stored) < head);
    let ties = heads.get(low..).unwrap_or_default();
    let mut high = match ties.first() {
        Some(first) if u32::from_le_bytes(*first) == head => {
            low + ties.partition_point(|stored| u32::from_le_bytes(*stored) == head)
        }
        Some(_) => low,
        None if heads.is_empty() => count,
        None => low,
    };
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, over all pairs of short keys with and without a common beginning.
    #[test]
    fn heads_and_prefixes_agree_with_the_order() {
        let letters = [b'a', 0, 0xff];
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for at in 0..120 {
            keys.extend(letters.map(|letter| [&keys[at][..], &[letter]].concat()));
        }
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            let heads = Heads::of(&order);
            for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
                let by_head = heads.head(a).cmp(&heads.head(b));
                assert!(by_head.is_eq() || by_head == order.compare(a, b), "{a:?} {b:?}");
                let shared = heads.shared(a, b);
                assert_eq!(a[..shared], b[..shared]);
                match heads.strip(a, b) {
                    Ok(rest) => assert_eq!([b, rest].concat(), *a),
                    Err(side) => {
                        for longer in keys.iter().filter(|key| key.starts_with(b)) {
                            assert_eq!(side, order.compare(a, longer), "{a:?} {b:?} {longer:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_are_those_of_the_keys() {
        let keys = [1u32, 3, 3, 3, 7, 7, 9];
        let stored: Vec<StoredHead> = keys.iter().map(|key| key.to_le_bytes()).collect();
        for head in 0..11 {
            // Of keys with equal heads those before place 2 are before the one looked for, in whole.
            let expected = keys.iter().enumerate().filter(|&(i, &key)| key < head || (key == head && i < 2)).count();
            assert_eq!(rank(&stored, keys.len(), head, |i| Some(i < 2)), Some(expected));
            assert_eq!(
                rank(&[], keys.len(), head, |i| Some(keys[i] < head)).unwrap(),
                keys.partition_point(|&k| k < head)
            );
        }
        assert_eq!(rank(&stored, keys.len(), 3, |_| None), None);
    }
}
