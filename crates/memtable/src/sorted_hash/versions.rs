//! The versions of a key: two lists at its anchor, one of versions before the anchor in the order (mostly newer), one
//! of versions behind it, each newest first. The second word of an anchor holds the two heads, the former in the lower
//! half.
//!
//! A version's node has two words. *older* holds the next version and, above it, the list's length from here. *jump*
//! holds a version farther on, so that the n-th newest is found in O(log n) steps, however often a key is overwritten.
//! (Myers, "An applicative random-access stack", Information Processing Letters 17, 1983.) Versions arriving out of
//! order are inserted at their place; jumps may pass over them, which makes a search only a little longer.
//!
//! Nothing is ever unlinked, so a node before some version stays before it.

use std::cmp::Ordering as Order;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::buckets::node_record;
use crate::Visit;
use crate::arena::{Arena, Ref};
use crate::order::KeyOrder;
use crate::runs::Entries;
use base::SeqNo;

/// A place in the order of one key's versions.
#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    /// With its timestamp, if keys have one.
    pub(super) user_key: &'a [u8],
    pub(super) trailer: u64,
}

/// Half of a word, holding a reference.
#[derive(Clone, Copy)]
struct Place {
    word: Ref,
    shift: u32,
}

impl Place {
    /// The head of the list of versions before the anchor.
    fn before(anchor: Ref) -> Place {
        Place { word: anchor.forward(1), shift: 0 }
    }

    fn behind(anchor: Ref) -> Place {
        Place { word: anchor.forward(1), shift: 32 }
    }

    fn older(node: Ref) -> Place {
        Place { word: node, shift: 0 }
    }

    fn reference(self, word: u64) -> Ref {
        Ref::from_raw((word >> self.shift) as u32)
    }

    fn with(self, word: u64, node: Ref) -> u64 {
        word & !(u64::from(u32::MAX) << self.shift) | u64::from(node.raw()) << self.shift
    }
}

pub(super) struct Versions<'a, O> {
    pub(super) entries: &'a Entries<O>,
    pub(super) anchor: Ref,
}

impl<O: KeyOrder> Versions<'_, O> {
    /// Links in a node with a written record of this version. Of equal versions the later comes first.
    pub(super) fn insert(&self, node: Ref, version: &Version<'_>) {
        let arena = &self.entries.arena;
        let mut place =
            if self.is_before(self.anchor, version) { Place::behind(self.anchor) } else { Place::before(self.anchor) };
        loop {
            let (at, word) = self.seek(place, version);
            let next = at.reference(word);
            link_to(arena, node, next);
            // Release publishes the record and the node's words; the nodes behind were acquired by this thread.
            if word_at(arena, at.word).compare_exchange(word, at.with(word, node), Release, Relaxed).is_ok() {
                return;
            }
            place = at;
        }
    }

    /// Shows `visit` the versions from `from` on with numbers at most `visible`, until it returns false.
    pub(super) fn visit(&self, from: &Version<'_>, visible: SeqNo, visit: &mut Visit<'_>) {
        let mut show = |node| {
            let record = node_record(&self.entries.arena, node);
            let (seq, kind) = record.version();
            // With timestamps, newer versions can follow: timestamps sort before sequence numbers.
            seq > visible || visit(seq, kind, record.value())
        };
        let more = self.list(Place::before(self.anchor), from, &mut show)
            && (self.is_before(self.anchor, from) || show(self.anchor));
        if more {
            self.list(Place::behind(self.anchor), from, &mut show);
        }
    }

    /// Shows one of the lists from `from` on; false if `show` returned false.
    fn list(&self, head: Place, from: &Version<'_>, show: &mut impl FnMut(Ref) -> bool) -> bool {
        let (place, word) = self.seek(head, from);
        let mut node = place.reference(word);
        while !node.is_null() {
            if !show(node) {
                return false;
            }
            let older = Place::older(node);
            node = older.reference(word_at(&self.entries.arena, older.word).load(Acquire));
        }
        true
    }

    /// The place of the link to the first version not before `version`, and its word.
    #[inline]
    fn seek(&self, mut place: Place, version: &Version<'_>) -> (Place, u64) {
        let arena = &self.entries.arena;
        loop {
            let word = word_at(arena, place.word).load(Acquire);
            let next = place.reference(word);
            if next.is_null() || !self.is_before(next, version) {
                return (place, word);
            }
            let mut node = next;
            while let jump = jump(arena, node)
                && !jump.is_null()
                && self.is_before(jump, version)
            {
                node = jump;
            }
            place = Place::older(node);
        }
    }

    /// True if the version of `node` comes before `version`, as newer ones do.
    #[inline]
    fn is_before(&self, node: Ref, version: &Version<'_>) -> bool {
        let (user_key, trailer) = node_record(&self.entries.arena, node).split();
        match self.entries.order.compare(user_key, version.user_key) {
            Order::Equal => trailer > version.trailer,
            order => order.is_lt(), // by their timestamps
        }
    }
}

/// Writes the words of a node placed before `next`, which may be null.
fn link_to(arena: &Arena, node: Ref, next: Ref) {
    let length = length(arena, next).wrapping_add(1);
    let skipped = jump(arena, next);
    let far = jump(arena, skipped);
    let span = |from, to| length_between(arena, from, to);
    let jump = if span(next, skipped) == span(skipped, far) { far } else { next };
    word_at(arena, node).store(u64::from(length) << 32 | u64::from(next.raw()), Relaxed);
    word_at(arena, node.forward(1)).store(u64::from(jump.raw()), Relaxed);
}

/// Versions from `node` to the end of its list, as known when it was linked in.
fn length(arena: &Arena, node: Ref) -> u32 {
    if node.is_null() { 0 } else { (word_at(arena, node).load(Relaxed) >> 32) as u32 }
}

fn length_between(arena: &Arena, from: Ref, to: Ref) -> u32 {
    length(arena, from).wrapping_sub(length(arena, to))
}

/// The target of a version's jump. Relaxed: stored before the node was published, and its writer had acquired the
/// target.
#[inline]
fn jump(arena: &Arena, node: Ref) -> Ref {
    if node.is_null() { Ref::NULL } else { Ref::from_raw(word_at(arena, node.forward(1)).load(Relaxed) as u32) }
}

#[inline]
fn word_at(arena: &Arena, at: Ref) -> &std::sync::atomic::AtomicU64 {
    // SAFETY: `at` is one of the two words of a node that was made by this thread or reached through a reference loaded
    // with acquire (A2); they are atomic words to everyone.
    unsafe { arena.word(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sorted_hash::buckets::NODE_BYTES;

    /// Without records: only the words are read.
    #[test]
    fn jumps_reach_the_end_of_a_list_in_logarithmic_steps() {
        const COUNT: usize = 1000;
        let arena = Arena::new(COUNT * NODE_BYTES + 8).expect("maps");
        assert!(arena.try_reserve(COUNT * NODE_BYTES));
        let mut head = Ref::NULL;
        for _ in 0..COUNT {
            let node = arena.allocate(NODE_BYTES);
            link_to(&arena, node, head);
            head = node;
        }
        assert_eq!(length(&arena, head), COUNT as u32);
        let (mut steps, mut node) = (0, head);
        while !node.is_null() {
            (steps, node) = (steps + 1, jump(&arena, node));
        }
        assert!(steps <= 2 * COUNT.ilog2(), "{steps} jumps");
    }
}
