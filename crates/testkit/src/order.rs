//! Key orders of scripts.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{Comparator, UserOrder};

use crate::ops::Key;

/// A key order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrder {
    #[default]
    Bytewise,
    Reverse,
    /// Shorter keys first: a custom order, different from bytewise order for keys of different lengths.
    Shortlex,
}

impl KeyOrder {
    pub const ALL: [KeyOrder; 3] = [KeyOrder::Bytewise, KeyOrder::Reverse, KeyOrder::Shortlex];

    /// Name in profiles.
    pub fn word(self) -> &'static str {
        match self {
            KeyOrder::Bytewise => "bytewise",
            KeyOrder::Reverse => "reverse",
            KeyOrder::Shortlex => "shortlex",
        }
    }

    /// The engine's order.
    pub fn order(self) -> UserOrder {
        match self {
            KeyOrder::Bytewise => UserOrder::Bytewise,
            KeyOrder::Reverse => UserOrder::ReverseBytewise,
            KeyOrder::Shortlex => UserOrder::Custom(Arc::new(Shortlex)),
        }
    }

    /// Whether keys with a common prefix are contiguous, as prefix iteration requires.
    pub fn keeps_prefixes_together(self) -> bool {
        self != KeyOrder::Shortlex
    }

    /// A key slightly after `key`, with few or no script keys between them. The empty key if no key follows.
    pub fn a_little_behind(self, key: &[u8]) -> Key {
        let mut behind = key.to_vec();
        match (self, behind.pop()) {
            (KeyOrder::Bytewise, _) => [key, b"!"].concat(),
            (KeyOrder::Reverse, Some(0) | None) => behind,
            (KeyOrder::Reverse, Some(last)) => [&*behind, &[last - 1, u8::MAX]].concat(),
            (KeyOrder::Shortlex, Some(u8::MAX) | None) => [key, b"\0"].concat(),
            (KeyOrder::Shortlex, Some(last)) => [&*behind, &[last + 1]].concat(),
        }
    }
}

/// Orders the ends of a range.
pub(crate) fn arrange(order: &UserOrder, start: &mut Key, end: &mut Key) {
    if order.compare(start, end).is_gt() {
        std::mem::swap(start, end);
    }
}

struct Shortlex;

impl Comparator for Shortlex {
    fn name(&self) -> &str {
        "testkit.Shortlex"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_little_behind_is_behind() {
        let mut random = crate::random::Random::new(1);
        for _ in 0..1000 {
            let len = 1 + random.below(4);
            let key: Key = (0..len).map(|_| *random.pick(&[0, 1, b'a', 254, 255])).collect();
            for order in KeyOrder::ALL {
                let behind = order.a_little_behind(&key);
                assert!(order.order().compare(&key, &behind).is_lt(), "{order:?}: {key:?}, {behind:?}");
            }
        }
        assert_eq!(KeyOrder::Reverse.a_little_behind(b"k007"), b"k006\xff");
        assert_eq!(KeyOrder::Shortlex.a_little_behind(b"k007"), b"k008");
    }
}
