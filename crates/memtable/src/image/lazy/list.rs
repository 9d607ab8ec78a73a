//! Searches in an unchecked skiplist. Every step goes to an entry not before the previous one. The live search:
//! [`crate::skiplist::list`].

use std::cmp::Ordering;

use base::{Result, SeqNo, UserOrder};

use super::budget::Budget;
use super::cursor::newest_trailer;
use crate::Visit;
use crate::image::skiplist::ListView;
use crate::image::view::{EntryView, check_key, wrong};
use crate::order::compare_bytes;
use crate::skiplist::list::HEIGHT_MAX;

/// Most steps of one search. Each level has half of the nodes of the one below. A search takes a step or two on each
/// level, and on the highest as many as there are millions of entries; an image has room for a thousand million.
/// Writers sharing a stripe may have left lower towers. A longer search follows levels no writer made.
const STEPS_MAX: u32 = 1 << 16;

/// A place to search for: a user key and a trailer.
pub(super) type Target<'k> = (&'k [u8], u64);

/// A node, or the head, which has no entry.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) at: u64,
    pub(super) entry: Option<EntryView<'a>>,
}

/// A list, and its expected order of keys.
#[derive(Clone, Copy)]
pub(super) struct Ordered<'a, 'o> {
    pub(super) list: ListView<'a>,
    pub(super) order: &'o UserOrder,
}

impl<'a> Ordered<'a, '_> {
    pub(super) fn head(&self) -> Node<'a> {
        Node { at: self.list.head(), entry: None }
    }

    /// The node at `at`, with a key the order can compare.
    #[inline]
    pub(super) fn node(&self, at: u64) -> Result<(Node<'a>, EntryView<'a>)> {
        let entry = self.list.entry(at)?;
        check_key(at, self.order, entry.user_key())?;
        Ok((Node { at, entry: Some(entry) }, entry))
    }

    #[inline]
    fn compare(&self, entry: &EntryView<'_>, (user_key, trailer): Target<'_>) -> Ordering {
        let keys = match self.order {
            UserOrder::Bytewise => compare_bytes(entry.user_key(), user_key),
            UserOrder::ReverseBytewise => compare_bytes(user_key, entry.user_key()),
            UserOrder::Custom(order) => order.compare(entry.user_key(), user_key),
        };
        keys.then_with(|| trailer.cmp(&entry.trailer()))
    }

    /// Checks that `entry`, at `at`, is not before the one linking to it.
    #[inline]
    fn check_behind(&self, before: &Node<'_>, at: u64, entry: &EntryView<'_>) -> Result<()> {
        match &before.entry {
            Some(before) if self.compare(before, (entry.user_key(), entry.trailer())).is_gt() => {
                Err(wrong(at, "an entry that belongs before the one that leads to it"))
            }
            _ => Ok(()),
        }
    }

    /// The node behind `node`, on the lowest level.
    #[inline]
    pub(super) fn next(&self, node: &Node<'_>) -> Result<Option<(Node<'a>, EntryView<'a>)>> {
        let at = self.list.next(node.at, 0)?;
        if at == 0 {
            return Ok(None);
        }
        let (next, entry) = self.node(at)?;
        self.check_behind(node, at, &entry)?;
        Ok(Some((next, entry)))
    }

    /// The last node with `passes` true, or the head. `passes` must be true of all nodes up to some node, and of none
    /// behind it.
    fn last_that(&self, passes: impl Fn(&EntryView<'a>) -> bool) -> Result<Node<'a>> {
        let mut before = self.head();
        let (mut behind, mut steps) = (0, 0);
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let at = self.list.next(before.at, level)?;
                if at == 0 || at == behind {
                    break;
                }
                let (node, entry) = self.node(at)?;
                if !passes(&entry) {
                    behind = at;
                    break;
                }
                self.check_behind(&before, at, &entry)?;
                before = node;
                steps += 1;
                if steps > STEPS_MAX {
                    return Err(wrong(at, "a search that takes more steps than the levels of a list allow"));
                }
            }
        }
        Ok(before)
    }

    /// The last node before the target, or at it if `or_at`; the head if there is none.
    pub(super) fn last_before(&self, target: Target<'_>, or_at: bool) -> Result<Node<'a>> {
        self.last_that(|entry| {
            let order = self.compare(entry, target);
            order.is_lt() || (or_at && order.is_eq())
        })
    }

    pub(super) fn last(&self) -> Result<Node<'a>> {
        self.last_that(|_| true)
    }

    /// The node before `node`, whose entry is `entry`; or the head.
    pub(super) fn before(&self, node: &Node<'a>, entry: &EntryView<'a>, budget: &mut Budget) -> Result<Node<'a>> {
        let mut before = self.last_before((entry.user_key(), entry.trailer()), false)?;
        // Entries with equal internal keys may lie between.
        loop {
            match self.next(&before)? {
                Some((next, _)) if next.at == node.at => return Ok(before),
                Some((next, between)) if self.compare(&between, (entry.user_key(), entry.trailer())).is_eq() => {
                    budget.spend(next.at, between.end - next.at)?;
                    before = next;
                }
                _ => return Err(wrong(node.at, "an entry that is not found from above")),
            }
        }
    }
}

/// Shows `visit` the entries of a user key at or below a number, newest first, until it returns false.
pub(super) fn get(
    list: Ordered<'_, '_>,
    user_key: &[u8],
    visible: SeqNo,
    mut budget: Budget,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let mut at = list.last_before((user_key, newest_trailer(visible)), false)?;
    while let Some((node, entry)) = list.next(&at)? {
        if !is_same_key(list.order, entry.user_key(), user_key) {
            return Ok(());
        }
        budget.spend(node.at, entry.end - node.at)?;
        // With timestamps, newer entries can follow: timestamps sort before sequence numbers.
        if entry.seq() <= visible && !visit(entry.seq(), entry.point_kind(node.at)?, entry.value) {
            return Ok(());
        }
        at = node;
    }
    Ok(())
}

/// True if two keys are the same key: whole, or without their timestamps.
fn is_same_key(order: &UserOrder, a: &[u8], b: &[u8]) -> bool {
    match order.timestamp_bytes() {
        0 => order.equal(a, b),
        _ => order.strip_timestamp(a) == order.strip_timestamp(b),
    }
}
