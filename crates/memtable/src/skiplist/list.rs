//! The list itself: nodes, links, and descents to a key.
//!
//! A node is a tower of links, the highest first, followed by a record. A node's reference points at its lowest link,
//! so the most used links lie beside the key:
//!
//! ```text
//! link h-1 .. link 1 | link 0 | record
//!                      ^ reference
//! ```
//!
//! A link is one word: the tag of its target node (see [`super::tag`]) above the node's reference. Nodes are never
//! unlinked, so a node once before a key stays before it, and is a valid start of a search.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::tag::{NO_TAG, Tagger};
use crate::arena::{Arena, GRANULE_BYTES, Ref};
use crate::order::KeyOrder;
use crate::record::{self, Record, split_target};

/// Nodes of a level for each node of the level above. Tags decide most comparisons without a cache miss, so a descent's
/// cost is the nodes it steps to: half a step a level at 2, one and a half at 4. With 500,000 entries of 116 bytes,
/// inserts at 2 took about three quarters of their time at 4, for five bytes an entry.
pub(crate) const BRANCHING: u32 = 2;

/// Links of the tallest towers. Beyond 2^20 entries each doubling adds a step on the highest level; its nodes are
/// cached.
pub(crate) const HEIGHT_MAX: usize = 20;

/// A link word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(pub(super) u64);

impl Link {
    #[inline]
    pub(super) fn new(node: Ref, tag: u32) -> Link {
        Link(u64::from(tag) << 32 | u64::from(node.raw()))
    }

    #[inline]
    pub(super) fn node(self) -> Ref {
        Ref::from_raw(self.0 as u32)
    }

    #[inline]
    pub(super) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A search target: user key, trailer and tag.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) user_key: &'a [u8],
    pub(super) trailer: u64,
    pub(super) tag: u32,
}

/// For each level, the last node before some key: the insertion point of the key's links.
#[derive(Clone, Copy)]
pub(super) struct Splice([Ref; HEIGHT_MAX]);

impl Splice {
    pub(super) fn new(head: Ref) -> Splice {
        Splice([head; HEIGHT_MAX])
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "levels are below HEIGHT_MAX wherever they are made")]
    pub(super) fn at(&self, level: usize) -> Ref {
        self.0[level]
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "levels are below HEIGHT_MAX wherever they are made")]
    pub(super) fn set(&mut self, level: usize, node: Ref) {
        self.0[level] = node;
    }
}

pub(super) struct List<O, const IMAGE: bool = false> {
    pub(super) arena: Arena<IMAGE>,
    pub(super) order: O,
    pub(super) tagger: Tagger,
    /// A tower of `HEIGHT_MAX` links. In place of a record, a granule pointing to the newest range deletion.
    pub(super) head: Ref,
    /// Height of the tallest node; possibly less while that node is being linked in.
    pub(super) height: AtomicU32,
}

impl<O: KeyOrder> List<O> {
    /// An empty list in `arena`; `None` if the arena has no room for its head.
    pub(super) fn new(arena: Arena, order: O) -> Option<Self> {
        let bytes = (HEIGHT_MAX + 1) * GRANULE_BYTES;
        if !arena.try_reserve(bytes) {
            return None;
        }
        // Allocated memory is zeroed: every link is null.
        let head = arena.allocate(bytes).forward(HEIGHT_MAX - 1);
        Some(List { arena, order, tagger: Tagger::default(), head, height: AtomicU32::new(1) })
    }
}

impl<O: KeyOrder> List<O, true> {
    /// The list of an image. Its links carry tags of the writer's prefix, meaningless here: targets get no tag.
    ///
    /// # Safety
    /// The image must have been checked to be a list with its head at `head` (A2, A5).
    pub(super) unsafe fn of_image(arena: Arena<true>, order: O, head: Ref) -> Self {
        let list = List { arena, order, tagger: Tagger::default(), head, height: AtomicU32::new(1) };
        let is_used = |level: &usize| !list.next(head, *level).node().is_null();
        let height = (0..HEIGHT_MAX).rev().find(is_used).map_or(1, |highest| highest + 1);
        list.height.store(height as u32, Relaxed);
        list
    }
}

impl<O: KeyOrder, const IMAGE: bool> List<O, IMAGE> {
    #[inline]
    pub(super) fn target<'a>(&self, user_key: &'a [u8], trailer: u64) -> Target<'a> {
        Target { user_key, trailer, tag: self.tagger.tag::<O, IMAGE>(&self.arena, user_key) }
    }

    /// The target of an internal key.
    pub(super) fn internal_target<'a>(&self, internal_key: &'a [u8]) -> Target<'a> {
        let (user_key, trailer) = split_target(internal_key);
        self.target(user_key, trailer)
    }

    /// The link of `node` at `level`, acquired: its target can be read.
    #[inline]
    pub(super) fn next(&self, node: Ref, level: usize) -> Link {
        // SAFETY: `node` is the head or was reached through a link of `level` or below it in its own tower, so its tower
        // has that level (A2); tower granules are atomic words to everyone.
        Link(unsafe { self.arena.load(node.back(level)) })
    }

    /// The record of `node`, which is not the head.
    #[inline]
    pub(super) fn record(&self, node: Ref) -> Record<'_> {
        debug_assert!(node != self.head && !node.is_null());
        // SAFETY: nodes other than the head are reached through links loaded with acquire, and are followed by their
        // record (A2).
        unsafe { record::read(&self.arena, node.forward(1)) }
    }

    /// Compares `node` to the target.
    #[inline]
    pub(super) fn compare(&self, node: Ref, target: &Target<'_>) -> Ordering {
        let (user_key, trailer) = self.record(node).split();
        self.order.compare(user_key, target.user_key).then_with(|| target.trailer.cmp(&trailer))
    }

    /// True if `link` leads to a node before the target (or at it, with `OR_AT`).
    #[inline]
    pub(super) fn passes<const OR_AT: bool>(&self, link: Link, target: &Target<'_>) -> bool {
        if link.node().is_null() {
            return false;
        }
        if link.tag() != target.tag && link.tag() != NO_TAG && target.tag != NO_TAG {
            return link.tag() < target.tag;
        }
        let order = self.compare(link.node(), target);
        order.is_lt() || (OR_AT && order.is_eq())
    }

    /// Walks along `level` from `node`, which is before the target. Returns the last node before (or at) the target,
    /// and its link.
    #[inline]
    pub(super) fn walk<const OR_AT: bool>(&self, mut node: Ref, level: usize, target: &Target<'_>) -> (Ref, Link) {
        loop {
            let link = self.next(node, level);
            if !self.passes::<OR_AT>(link, target) {
                return (node, link);
            }
            node = link.node();
        }
    }

    /// Descends to the target. Returns the last node before it (or at it, with `OR_AT`), and its link. Calls `note`
    /// with each level's last node.
    #[inline]
    pub(super) fn descend<const OR_AT: bool>(
        &self,
        target: &Target<'_>,
        mut note: impl FnMut(usize, Ref),
    ) -> (Ref, Link) {
        let mut node = self.head;
        let mut bound = Ref::NULL; // known to be behind the target
        let mut last = Link(0);
        for level in (0..self.top()).rev() {
            loop {
                last = self.next(node, level);
                if last.node() == bound || !self.passes::<OR_AT>(last, target) {
                    break;
                }
                node = last.node();
            }
            bound = last.node();
            note(level, node);
        }
        (node, last)
    }

    /// Levels in use.
    #[inline]
    pub(super) fn top(&self) -> usize {
        (self.height.load(Relaxed) as usize).min(HEIGHT_MAX)
    }

    /// The first node at or after the target, or null.
    #[inline]
    pub(super) fn seek(&self, target: &Target<'_>) -> Ref {
        self.descend::<false>(target, |_, _| {}).1.node()
    }

    /// The last node, or the head.
    pub(super) fn last(&self) -> Ref {
        let mut node = self.head;
        for level in (0..self.top()).rev() {
            while let next = self.next(node, level).node()
                && !next.is_null()
            {
                node = next;
            }
        }
        node
    }

    /// Estimates the nodes from `start` up to `end`: counts the highest level with at least [`SAMPLE_MIN`] of them, and
    /// scales. Exact for few nodes.
    pub(super) fn estimate(&self, start: &Target<'_>, end: &Target<'_>) -> u64 {
        /// A sample of this size puts the estimate within about a quarter.
        const SAMPLE_MIN: u64 = 16;
        let mut node = self.head;
        for level in (0..self.top()).rev() {
            let (before, mut link) = self.walk::<false>(node, level, start);
            node = before;
            let mut count = 0;
            while self.passes::<false>(link, end) {
                count += 1;
                link = self.next(link.node(), level);
            }
            if count >= SAMPLE_MIN || level == 0 {
                return count * u64::from(BRANCHING).pow(level as u32);
            }
        }
        0
    }
}
