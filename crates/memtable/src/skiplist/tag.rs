//! Tags: 32 bits of a node's key, stored in the links to the node. A descent can mostly compare a node to the target by
//! the tag, without touching the node.
//!
//! A tag is the four key bytes after a prefix shared by nearly all keys of the memtable. (Without the prefix, keys of
//! one table or of small integers would have equal tags.) The prefix is learnt once, from the first and the last of the
//! first keys inserted; earlier nodes have no tag. Keys without the prefix get the lowest or the highest tag, so tags
//! never contradict the order, whatever keys follow.

use base::bytes::{leading_u32, shared_prefix};
use std::cmp::Ordering;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::arena::{Arena, Ref};
use crate::order::{Direction, KeyOrder};
use crate::record;

/// The tag of an untagged node. All other tags keep the order of keys.
pub(super) const NO_TAG: u32 = 0;

const BELOW: u32 = 1;
const ABOVE: u32 = u32::MAX;

/// Prefix bytes dropped if keys arrive in ascending order: the first keys share a longer prefix than all keys do.
const ASCENDING_SLACK_BYTES: usize = 2;

#[derive(Default)]
pub(super) struct Tagger {
    /// A record whose user key begins with the prefix; above it, the prefix length. 0 until learnt.
    learnt: AtomicU64,
}

impl Tagger {
    pub(super) fn is_learnt(&self) -> bool {
        self.learnt.load(Relaxed) != 0
    }

    /// Learns the prefix from the records of the first and the last key. The first caller wins.
    pub(super) fn learn<O: KeyOrder, const IMAGE: bool>(
        &self,
        arena: &Arena<IMAGE>,
        first: Ref,
        last: Ref,
        ascending: bool,
    ) {
        if O::DIRECTION == Direction::Unknown {
            return;
        }
        // SAFETY: both were reached through links loaded with acquire (A2).
        let (a, b) = unsafe { (record::read(arena, first).user_key(), record::read(arena, last).user_key()) };
        let shared = shared_prefix(a, b);
        let len = if ascending { shared.saturating_sub(ASCENDING_SLACK_BYTES) } else { shared };
        let learnt = (len as u64) << 32 | u64::from(first.raw());
        // Release: a user of the prefix has not necessarily acquired a link to `first`. Losing the race is fine.
        let _ = self.learnt.compare_exchange(0, learnt, Release, Relaxed);
    }

    /// The tag of `user_key`.
    #[inline]
    pub(super) fn tag<O: KeyOrder, const IMAGE: bool>(&self, arena: &Arena<IMAGE>, user_key: &[u8]) -> u32 {
        let learnt = self.learnt.load(Acquire);
        if O::DIRECTION == Direction::Unknown || learnt == 0 {
            return NO_TAG;
        }
        // SAFETY: `learn` published a record's place, acquired above (A2).
        let sample = unsafe { record::read(arena, Ref::from_raw(learnt as u32)) }.user_key();
        let prefix = sample.get(..(learnt >> 32) as usize).unwrap_or(sample);
        match O::DIRECTION {
            Direction::Descending => ABOVE - ascending_tag(user_key, prefix) + BELOW,
            _ => ascending_tag(user_key, prefix),
        }
    }
}

#[inline]
fn ascending_tag(user_key: &[u8], prefix: &[u8]) -> u32 {
    let (head, rest) = user_key.split_at_checked(prefix.len()).unwrap_or((user_key, &[]));
    match head.cmp(prefix) {
        Ordering::Less => BELOW,
        Ordering::Greater => ABOVE,
        Ordering::Equal => leading_u32(rest).clamp(BELOW + 1, ABOVE - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_never_contradict_the_order() {
        let keys: [&[u8]; 12] = [
            b"",
            b"t",
            b"table1",
            b"table1\0",
            b"table1\0\0\0\0\x01",
            b"table1abcd",
            b"table1abce",
            b"table1abcefg",
            b"table1\xff\xff\xff\xff",
            b"table1\xff\xff\xff\xff\xff",
            b"table2",
            b"u",
        ];
        for prefix in [&b"table1"[..], b"", b"table"] {
            for pair in keys.windows(2) {
                let (a, b) = (ascending_tag(pair[0], prefix), ascending_tag(pair[1], prefix));
                assert!(a <= b && a != NO_TAG, "{pair:?} {prefix:?}");
            }
        }
        assert!(ascending_tag(b"table1abcd", b"table1") < ascending_tag(b"table1abce", b"table1"));
    }
}
