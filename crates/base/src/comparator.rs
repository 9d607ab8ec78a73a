//! The order of keys. A family's order is fixed when it is created; its name is stored and checked at every open.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::bytes::{leading_u64, shared_prefix};
use crate::key;

/// A total order over user keys.
///
/// Implementations must be deterministic and must order keys the same way for the life of the database.
pub trait Comparator: Send + Sync {
    /// The name stored in the MANIFEST and in every table.
    fn name(&self) -> &str;

    /// The order of two keys. It must be total: equal keys are one key.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Shortens `start` to some key in `[start, limit)`. Doing nothing is always right.
    fn shorten_separator(&self, _start: &mut Vec<u8>, _limit: &[u8]) {}

    /// Bytes of a user-defined timestamp at the end of every key; 0 for none. Filters, equality and hashes ignore the
    /// timestamp.
    fn timestamp_bytes(&self) -> usize {
        0
    }

    /// True if equal keys can differ in their bytes.
    fn equal_keys_can_differ(&self) -> bool {
        false
    }
}

/// A family's order of user keys. The two common orders are variants: hot loops compare bytes without a virtual call.
#[derive(Clone, Default)]
pub enum UserOrder {
    /// By bytes, ascending.
    #[default]
    Bytewise,
    /// By bytes, descending.
    ReverseBytewise,
    /// The order of a comparator.
    Custom(Arc<dyn Comparator>),
}

impl UserOrder {
    /// The stored name of [`Bytewise`](UserOrder::Bytewise).
    pub const BYTEWISE_NAME: &'static str = "leveldb.BytewiseComparator";
    /// The stored name of [`ReverseBytewise`](UserOrder::ReverseBytewise).
    pub const REVERSE_BYTEWISE_NAME: &'static str = "rocksdb.ReverseBytewiseComparator";

    /// The stored name.
    pub fn name(&self) -> &str {
        match self {
            UserOrder::Bytewise => Self::BYTEWISE_NAME,
            UserOrder::ReverseBytewise => Self::REVERSE_BYTEWISE_NAME,
            UserOrder::Custom(c) => c.name(),
        }
    }

    /// The built-in order called `name`.
    pub fn by_name(name: &str) -> Option<UserOrder> {
        match name {
            Self::BYTEWISE_NAME => Some(UserOrder::Bytewise),
            Self::REVERSE_BYTEWISE_NAME => Some(UserOrder::ReverseBytewise),
            _ => None,
        }
    }

    /// The order of two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            UserOrder::Bytewise => a.cmp(b),
            UserOrder::ReverseBytewise => b.cmp(a),
            UserOrder::Custom(c) => c.compare(a, b),
        }
    }

    /// True if two user keys are one key.
    #[inline]
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            UserOrder::Bytewise | UserOrder::ReverseBytewise => a == b,
            UserOrder::Custom(c) => c.compare(a, b) == Ordering::Equal,
        }
    }

    /// A number that never falls as keys ascend: the first eight bytes in the built-in orders, otherwise 0.
    #[inline]
    pub fn rank(&self, key: &[u8]) -> u64 {
        match self {
            UserOrder::Bytewise => leading_u64(key),
            UserOrder::ReverseBytewise => !leading_u64(key),
            UserOrder::Custom(_) => 0,
        }
    }

    /// See [`Comparator::timestamp_bytes`].
    pub fn timestamp_bytes(&self) -> usize {
        match self {
            UserOrder::Bytewise | UserOrder::ReverseBytewise => 0,
            UserOrder::Custom(c) => c.timestamp_bytes(),
        }
    }

    /// `user_key` without its timestamp, for filters, equality and hashes.
    pub fn strip_timestamp<'a>(&self, user_key: &'a [u8]) -> &'a [u8] {
        let len = user_key.len().saturating_sub(self.timestamp_bytes());
        user_key.get(..len).unwrap_or(user_key)
    }

    /// See [`Comparator::equal_keys_can_differ`].
    pub fn equal_keys_can_differ(&self) -> bool {
        matches!(self, UserOrder::Custom(c) if c.equal_keys_can_differ())
    }

    /// See [`Comparator::shorten_separator`].
    pub fn shorten_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match self {
            UserOrder::Bytewise => shorten_bytewise_separator(start, limit),
            UserOrder::ReverseBytewise => {}
            UserOrder::Custom(c) => c.shorten_separator(start, limit),
        }
    }
}

impl fmt::Debug for UserOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn shorten_bytewise_separator(start: &mut Vec<u8>, limit: &[u8]) {
    let shared = shared_prefix(start, limit);
    let (Some(&at), Some(&bound)) = (start.get(shared), limit.get(shared)) else {
        return; // one is a prefix of the other
    };
    if at < u8::MAX && at + 1 < bound {
        start.truncate(shared);
        start.push(at + 1);
    }
}

/// The order of internal keys: user key ascending, then sequence number and kind descending.
#[derive(Clone, Debug, Default)]
pub struct InternalOrder {
    /// The order of user keys.
    pub user: UserOrder,
}

impl InternalOrder {
    /// The internal order over an order of user keys.
    pub fn new(user: UserOrder) -> Self {
        InternalOrder { user }
    }

    /// The order of two internal keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (Some((a_user, a_trailer)), Some((b_user, b_trailer))) = (key::split(a), key::split(b)) else {
            return a.cmp(b); // not internal keys; any total order will do
        };
        self.user.compare(a_user, b_user).then(b_trailer.cmp(&a_trailer))
    }

    /// The order of two internal keys' user keys.
    #[inline]
    pub fn compare_user_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.user.compare(key::user_key(a), key::user_key(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{SeqNo, ValueKind, encode};

    #[test]
    fn newer_versions_sort_first() {
        let order = InternalOrder::default();
        let new = encode(b"k", SeqNo(9), ValueKind::Value);
        let old = encode(b"k", SeqNo(8), ValueKind::Value);
        let next = encode(b"ka", SeqNo(99), ValueKind::Value);
        assert_eq!(order.compare(&new, &old), Ordering::Less);
        assert_eq!(order.compare(&old, &next), Ordering::Less);
        let reverse = InternalOrder::new(UserOrder::ReverseBytewise);
        assert_eq!(reverse.compare(&new, &old), Ordering::Less);
        assert_eq!(reverse.compare(&old, &next), Ordering::Greater);
    }

    #[test]
    fn separators_stay_between() {
        for (start, limit, expected) in
            [("abcz", "abf", "abd"), ("ab", "abc", "ab"), ("abc", "abd", "abc"), ("b", "a", "b")]
        {
            let mut key = start.as_bytes().to_vec();
            UserOrder::Bytewise.shorten_separator(&mut key, limit.as_bytes());
            assert_eq!(key, expected.as_bytes(), "{start} {limit}");
        }
    }
}
