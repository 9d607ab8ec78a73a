//! The versions of one key: a list ordered by trailer, the largest (newest) first, with jump links over many steps.
//!
//! From the fourth version on, a key's leaves have a *jump*, spaced as in Eugene Myers' "An applicative random-access
//! stack" (1983): a search among n versions takes O(log n) steps. A late version is inserted at its sorted place, and
//! no earlier jump leads to it. The list stays sorted, so jumps never pass the search target. The bound holds for
//! versions nearly in order: if n versions arrive oldest last, a step is linear in n.

use super::layout::{Link, RANK_MAX};
use super::leaf::{Jump, Leaf, Rank};
use super::memory::Memory;

/// The first version from `head` on with a trailer of at most `trailer`, or null.
#[inline]
pub(super) fn first_at_or_below<M: Memory>(memory: &M, head: Link, trailer: u64) -> Link {
    if head.is_null() || Leaf::of(memory, head).trailer() <= trailer {
        return head;
    }
    last_above(memory, head, trailer).1
}

/// The last version from `head` on with a trailer above `trailer`, and the version after it. The trailer of `head` must
/// be above `trailer`.
pub(super) fn last_above<M: Memory>(memory: &M, head: Link, trailer: u64) -> (Link, Link) {
    let is_above = |link: Link| !link.is_null() && Leaf::of(memory, link).trailer() > trailer;
    let mut at = head;
    loop {
        let leaf = Leaf::of(memory, at);
        let jump = leaf.rank().jump;
        if jump.span > 1 && is_above(Link(jump.to)) {
            at = Link(jump.to);
            continue;
        }
        let next = leaf.next();
        if !is_above(next) {
            return (at, next);
        }
        at = next;
    }
}

/// The oldest version.
pub(super) fn oldest<M: Memory>(memory: &M, head: Link) -> Link {
    let mut at = head;
    loop {
        let leaf = Leaf::of(memory, at);
        let next = leaf.next();
        if next.is_null() {
            return at;
        }
        let jump = leaf.rank().jump;
        at = if jump.span > 1 { Link(jump.to) } else { next };
    }
}

/// The rank of a version inserted before `older`; null for a key's first version.
pub(super) fn rank_before<M: Memory>(memory: &M, older: Link) -> Rank {
    if older.is_null() {
        return Rank::default();
    }
    let below = Leaf::of(memory, older).rank();
    let number = (below.number + 1).min(RANK_MAX);
    let mut jump = Jump { to: older.0, span: 1 };
    if below.jump.to != 0 {
        let next = Leaf::of(memory, Link(below.jump.to)).rank().jump;
        if next.span == below.jump.span {
            jump = Jump { to: next.to, span: (1 + 2 * u64::from(next.span)).min(u64::from(u32::MAX)) as u32 };
        }
    }
    Rank { number, jump }
}
