//! Interleaved descents: each runs until it needs a node outside the cache, prefetches the node, and yields to the next
//! descent. The cache misses of a batch overlap.

use super::list::{Link, List, Splice, Target};
use super::tag::NO_TAG;
use crate::arena::Ref;
use crate::order::KeyOrder;

/// Descents in flight. Processors sustain 10 to 20 misses; more would evict each other's lines.
pub(super) const WIDTH: usize = 16;

/// A descent to one target, in progress or done.
pub(super) struct Descent<'a> {
    target: Target<'a>,
    level: usize,
    /// Before the target.
    node: Ref,
    /// Known to be behind the target.
    bound: Ref,
    /// The node prefetched last.
    asked: Ref,
    /// For each level done, the last node before the target.
    pub(super) splice: Splice,
    /// Once done: the first node at or after the target, or null.
    pub(super) found: Ref,
}

impl<O: KeyOrder, const IMAGE: bool> List<O, IMAGE> {
    /// Descends to all targets. Descents beyond the targets are left unstarted.
    pub(super) fn descend_all<'a>(&self, targets: &[Target<'a>]) -> [Descent<'a>; WIDTH] {
        debug_assert!(targets.len() <= WIDTH);
        let nothing = Target { user_key: &[], trailer: 0, tag: NO_TAG };
        let level = self.top() - 1;
        let mut descents = std::array::from_fn(|i| Descent {
            target: targets.get(i).copied().unwrap_or(nothing),
            level,
            node: self.head,
            bound: Ref::NULL,
            asked: self.head,
            splice: Splice::new(self.head),
            found: Ref::NULL,
        });
        let mut unfinished = (1u32 << targets.len()) - 1;
        while unfinished != 0 {
            for (i, descent) in descents.iter_mut().enumerate() {
                if unfinished & (1 << i) != 0 && self.advance(descent) {
                    unfinished &= !(1 << i);
                }
            }
        }
        descents
    }

    /// Advances until a node must be fetched; true if done.
    #[inline]
    fn advance(&self, descent: &mut Descent<'_>) -> bool {
        loop {
            let link = self.next(descent.node, descent.level);
            if link.node() != descent.bound && !self.is_decided(link, &descent.target) && descent.ask(self, link, 0) {
                return false;
            }
            if link.node() != descent.bound && self.passes::<false>(link, &descent.target) {
                descent.node = link.node();
                if descent.ask(self, link, descent.level) {
                    return false;
                }
                continue;
            }
            descent.splice.set(descent.level, descent.node);
            descent.bound = link.node();
            if descent.level == 0 {
                descent.found = link.node();
                self.arena.prefetch(link.node());
                return true;
            }
            descent.level -= 1;
        }
    }

    /// True if the link's tag alone decides on which side of the target its node lies.
    #[inline]
    fn is_decided(&self, link: Link, target: &Target<'_>) -> bool {
        link.node().is_null() || (link.tag() != target.tag && link.tag() != NO_TAG && target.tag != NO_TAG)
    }
}

impl Descent<'_> {
    /// Prefetches a node, at its record or at its link of `level`; false if it was prefetched last.
    #[inline]
    fn ask<O, const IMAGE: bool>(&mut self, list: &List<O, IMAGE>, link: Link, level: usize) -> bool {
        let fresh = self.asked != link.node();
        if fresh {
            self.asked = link.node();
            list.arena.prefetch(link.node().back(level));
        }
        fresh
    }
}
