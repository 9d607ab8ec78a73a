//! Sorting items: first by their prefixes, as numbers; ties by the bytes behind the group's shared prefix, again as
//! numbers, and so on. Whole keys are compared only in small groups. (Bentley and Sedgewick, "Fast algorithms for
//! sorting and searching strings", SODA 1997, with eight bytes for a letter.)

use std::cmp::Reverse;

use super::item::{Entries, Item};
use super::prefix::common_prefix;
use crate::order::{Direction, KeyOrder};

/// Groups of up to this many items are sorted by comparing whole keys.
const SMALL: usize = 16;

/// Most prefixes taken of a key before whole keys are compared. Without it, keys crafted so that each group loses one
/// key at a time would make a sort quadratic.
const DEPTH_MAX: usize = 16;

impl<O: KeyOrder> Entries<O> {
    /// Sorts items of one base; their initial order is irrelevant.
    pub(super) fn sort(&self, items: &mut [Item]) {
        if O::DIRECTION == Direction::Unknown {
            return self.sort_by_keys(items);
        }
        sort_by_prefix(items);
        self.sort_ties(items, 0);
    }

    /// Sorts the groups of equal prefixes in items sorted by prefix.
    fn sort_ties(&self, items: &mut [Item], depth: usize) {
        for group in items.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            match group.len() {
                0 | 1 => {}
                2..=SMALL => group.sort_unstable_by(|a, b| self.compare_keys(*a, *b)),
                _ if depth == DEPTH_MAX => self.sort_by_keys(group),
                _ => self.sort_deeper(group, depth),
            }
        }
    }

    /// Sorts items with equal prefixes by the bytes behind their shared prefix.
    fn sort_deeper(&self, items: &mut [Item], depth: usize) {
        let Some(before) = items.first().map(|item| item.prefix) else { return };
        // Reads the records in memory order, and leaves versions of one key newest first.
        items.sort_unstable_by_key(|item| Reverse(item.at));
        let key = |item: &Item| self.record(*item).user_key();
        let mut shared = items.first().map_or(&[][..], key);
        let mut longest = 0;
        for item in items.iter() {
            shared = common_prefix(shared, key(item));
            longest = longest.max(key(item).len());
        }
        if longest == shared.len() {
            return items.sort_by_key(|item| Reverse(self.record(*item).split().1)); // one key
        }
        for item in items.iter_mut() {
            let rest = key(item).get(shared.len()..).unwrap_or_default();
            let tail = tail_prefix(rest);
            item.prefix = if O::DIRECTION == Direction::Ascending { tail } else { !tail };
        }
        sort_by_prefix(items);
        self.sort_ties(items, depth + 1);
        items.iter_mut().for_each(|item| item.prefix = before);
    }

    /// Sorts by comparing whole keys; linear time if they were inserted in order.
    fn sort_by_keys(&self, items: &mut [Item]) {
        items.sort_unstable_by_key(|item| Reverse(item.at));
        items.sort_by(|a, b| self.compare_keys(*a, *b));
    }
}

/// Seven bytes and their count: equal only for equal keys and for keys longer than seven bytes. So a group is one key,
/// or falls apart behind these bytes.
fn tail_prefix(rest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(rest.iter().take(7)).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes) | rest.len().min(8) as u64
}

fn sort_by_prefix(items: &mut [Item]) {
    items.sort_unstable_by_key(|item| item.prefix);
}
