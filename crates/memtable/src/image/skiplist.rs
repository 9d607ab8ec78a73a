//! The skiplist in an image, read and checked within bounds. Layout: [`crate::skiplist::list`].
//!
//! A link's high half, its tag, has a meaning only to the writer and is ignored. An image does not store a tower's
//! height; only the levels linking to the tower count.

use std::cmp::Ordering;

use base::{Result, UserOrder};

use super::check::Tally;
use super::view::{EntryView, View, check_key, wrong};
use crate::arena::GRANULE_BYTES;
use crate::skiplist::list::HEIGHT_MAX;

const GRANULE: u64 = GRANULE_BYTES as u64;

/// Bytes from the head's lowest link to its end: the link, and the link to range deletions.
pub(super) const HEAD_TAIL_BYTES: u64 = 2 * GRANULE;

#[derive(Clone, Copy)]
pub(super) struct ListView<'a> {
    view: View<'a>,
    head: u64,
}

impl<'a> ListView<'a> {
    /// # Errors
    /// `Corruption`: no room for a head there.
    pub(super) fn new(view: View<'a>, head: u64) -> Result<Self> {
        let tower = (HEIGHT_MAX - 1) as u64 * GRANULE;
        if !head.is_multiple_of(GRANULE) || head < tower {
            return Err(wrong(head, "no list begins here"));
        }
        view.bytes(head - tower, tower + HEAD_TAIL_BYTES, "the head of a list")?;
        Ok(ListView { view, head })
    }

    /// For a head already checked by [`new`](Self::new).
    #[inline]
    pub(super) fn known(view: View<'a>, head: u64) -> Self {
        ListView { view, head }
    }

    /// Offset of the head's lowest link.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Offset of the node behind the one at `node` (or the head) at `level`; 0 if there is none.
    pub(super) fn next(&self, node: u64, level: usize) -> Result<u64> {
        let at = node.checked_sub(level as u64 * GRANULE).ok_or_else(|| wrong(node, "a tower before the image"))?;
        Ok((self.view.u64(at)? & u64::from(u32::MAX)) * GRANULE)
    }

    pub(super) fn first(&self) -> Result<u64> {
        self.next(self.head, 0)
    }

    #[inline]
    pub(super) fn entry(&self, node: u64) -> Result<EntryView<'a>> {
        self.view.record(node + GRANULE)
    }
}

/// Checks and counts everything reachable from the head.
///
/// # Errors
/// `Corruption`.
pub(super) fn check(list: ListView<'_>, order: &UserOrder, tally: &mut Tally) -> Result<()> {
    check_entries(list, order, tally)?;
    for level in 1..HEIGHT_MAX {
        check_level(list, level, tally)?;
    }
    Ok(())
}

fn check_entries(list: ListView<'_>, order: &UserOrder, tally: &mut Tally) -> Result<()> {
    let mut node = list.first()?;
    let mut before: Option<EntryView<'_>> = None;
    while node != 0 {
        let entry = list.entry(node)?;
        tally.marks.take(node, entry.end, "a node")?;
        tally.point(node, &entry)?;
        check_key(node, order, entry.user_key())?;
        let keys = before.map(|before| order.compare(before.user_key(), entry.user_key()));
        let trailers = before.map_or(Ordering::Less, |before| entry.trailer().cmp(&before.trailer()));
        if keys.is_some_and(|keys| keys.then(trailers).is_gt()) {
            return Err(wrong(node, "an entry that belongs before the one that leads to it"));
        }
        before = Some(entry);
        node = list.next(node, 0)?;
    }
    Ok(())
}

/// Checks that the nodes of `level` are nodes of the level below, in the same order: so the level ends, and is sorted.
fn check_level(list: ListView<'_>, level: usize, tally: &mut Tally) -> Result<()> {
    let mut expected = list.next(list.head, level)?;
    let mut below = list.next(list.head, level - 1)?;
    while below != 0 && expected != 0 {
        if below == expected {
            // If it would begin before the image: in the head, which is marked.
            let link_at = below.saturating_sub(level as u64 * GRANULE);
            tally.marks.take(link_at, link_at + GRANULE, "a tower")?;
            expected = list.next(below, level)?;
        }
        below = list.next(below, level - 1)?;
    }
    if expected == 0 {
        return Ok(());
    }
    Err(wrong(expected, format!("level {level} leads to what the level below does not lead to next")))
}
