//! Many sorted cursors walked as one.
//!
//! The child that holds the current entry stands outside the heap; the others wait in a binary heap. As long as the
//! current child goes on holding the nearest key, a step costs one comparison. Heap items carry the first bytes of
//! their child's key as a number, so that most comparisons touch no key at all.

use std::cmp::Ordering;

use base::key::{TRAILER_BYTES, user_key};
use base::{Cursor, Error, InternalOrder, Result, UserOrder};

/// Bytes of a user key that a heap item carries.
const HEAD_BYTES: usize = 16;

/// A child with the head of its current key, turned so that the smaller number comes first in the walk's direction.
#[derive(Clone, Copy)]
struct Rank {
    head: u128,
    child: usize,
}

/// A cursor over the union of its children. Where two children hold the same internal key, the younger comes first.
///
/// An error of any child ends the walk at once: what the others still hold could be hidden by what the failed one lost.
pub struct MergingCursor<C: Cursor = Box<dyn Cursor>> {
    order: InternalOrder,
    /// Youngest first.
    children: Vec<C>,
    top: Option<Rank>,
    /// The other children that are valid.
    heap: Vec<Rank>,
    forward: bool,
    error: Option<Error>,
    /// The key that a change of direction starts from.
    turn_key: Vec<u8>,
}

impl<C: Cursor> MergingCursor<C> {
    /// `children` youngest first; each over the same order.
    pub fn new(order: InternalOrder, children: Vec<C>) -> Self {
        let heap = Vec::with_capacity(children.len());
        MergingCursor { order, children, top: None, heap, forward: true, error: None, turn_key: Vec::new() }
    }

    /// Moves the children from number `first` on past everything before `target` (forward) or after it (backward), and
    /// leaves the younger ones where they are. The cursor must be valid.
    pub fn skip_from(&mut self, first: usize, target: &[u8]) -> bool {
        for child in self.children.iter_mut().skip(first).filter(|child| child.valid()) {
            match (self.order.compare(child.key(), target), self.forward) {
                (Ordering::Less, true) => child.seek(target),
                (Ordering::Greater, false) => child.seek_for_prev(target),
                _ => true,
            };
        }
        self.rebuild()
    }

    fn position(&mut self, forward: bool, mut place: impl FnMut(&mut C) -> bool) -> bool {
        self.forward = forward;
        self.error = None;
        for child in &mut self.children {
            place(child);
        }
        self.rebuild()
    }

    /// Makes the heap anew from where the children stand.
    fn rebuild(&mut self) -> bool {
        self.heap.clear();
        self.top = None;
        for i in 0..self.children.len() {
            match self.rank(i) {
                Some(rank) => self.heap.push(rank),
                None if self.note_error(i) => return false,
                None => {}
            }
        }
        for i in (0..self.heap.len() / 2).rev() {
            self.sift_down(i);
        }
        self.take_root()
    }

    fn rank(&self, child: usize) -> Option<Rank> {
        let cursor = self.children.get(child)?;
        cursor.valid().then(|| Rank { head: self.head(cursor.key()), child })
    }

    #[inline]
    fn head(&self, internal_key: &[u8]) -> u128 {
        let ascending = match self.order.user {
            UserOrder::Bytewise => head_of(internal_key),
            UserOrder::ReverseBytewise => !head_of(internal_key),
            UserOrder::Custom(_) => return 0,
        };
        if self.forward { ascending } else { !ascending }
    }

    /// Steps the current child and finds the child that holds the next entry.
    #[inline]
    fn step(&mut self) -> bool {
        let Some(Rank { child, .. }) = self.top else { return false };
        let Some(cursor) = self.children.get_mut(child) else { return false };
        let alive = if self.forward { cursor.next() } else { cursor.prev() };
        if !alive {
            return if self.note_error(child) { false } else { self.take_root() };
        }
        let Some(&root) = self.heap.first() else { return true };
        let Some(cursor) = self.children.get(child) else { return false };
        let rank = Rank { head: self.head(cursor.key()), child };
        if self.before(rank, root) {
            self.top = Some(rank);
        } else {
            self.top = Some(root);
            if let Some(slot) = self.heap.first_mut() {
                *slot = rank;
            }
            self.sift_down(0);
        }
        true
    }

    /// Makes the heap's root the current child.
    fn take_root(&mut self) -> bool {
        if self.heap.is_empty() {
            self.top = None;
            return false;
        }
        self.top = Some(self.heap.swap_remove(0));
        self.sift_down(0);
        true
    }

    /// Whether the child ended because of an error, which then is this cursor's.
    fn note_error(&mut self, child: usize) -> bool {
        let status = self.children.get(child).map_or(Ok(()), Cursor::status);
        let Err(error) = status else { return false };
        self.error = Some(error);
        self.heap.clear();
        self.top = None;
        true
    }

    #[inline]
    fn before(&self, a: Rank, b: Rank) -> bool {
        if a.head != b.head { a.head < b.head } else { self.key_before(a.child, b.child) }
    }

    fn key_before(&self, a: usize, b: usize) -> bool {
        let (Some(a_cursor), Some(b_cursor)) = (self.children.get(a), self.children.get(b)) else { return a < b };
        let ascending = self.order.compare(a_cursor.key(), b_cursor.key()).then(a.cmp(&b));
        if self.forward { ascending.is_lt() } else { ascending.is_gt() }
    }

    #[expect(clippy::indexing_slicing, reason = "every index is compared with the length just before")]
    fn sift_down(&mut self, mut at: usize) {
        let len = self.heap.len();
        if at >= len {
            return;
        }
        let moved = self.heap[at];
        loop {
            let mut below = 2 * at + 1;
            if below >= len {
                break;
            }
            if below + 1 < len && self.before(self.heap[below + 1], self.heap[below]) {
                below += 1;
            }
            if self.before(moved, self.heap[below]) {
                break;
            }
            self.heap[at] = self.heap[below];
            at = below;
        }
        self.heap[at] = moved;
    }

    /// Changes direction: every other child is placed on its entry next to the current one, on the new side.
    fn turn(&mut self, forward: bool) -> bool {
        let Some(Rank { child: current, .. }) = self.top else { return false };
        self.turn_key.clear();
        self.turn_key.extend_from_slice(self.children.get(current).map_or(&[], Cursor::key));
        let target = self.turn_key.as_slice();
        for (i, child) in self.children.iter_mut().enumerate() {
            // Among equal keys the younger child comes first, so that one side of `current` has passed its own.
            if i == current {
                if forward { child.next() } else { child.prev() };
            } else if forward {
                if child.seek(target) && i < current && child.key() == target {
                    child.next();
                }
            } else if child.seek_for_prev(target) && i > current && child.key() == target {
                child.prev();
            }
        }
        self.forward = forward;
        self.rebuild()
    }
}

/// The first bytes of the user key, as a number that orders as they do; equal numbers say nothing.
#[inline]
fn head_of(internal_key: &[u8]) -> u128 {
    if internal_key.len() >= HEAD_BYTES + TRAILER_BYTES
        && let Some(head) = internal_key.first_chunk::<HEAD_BYTES>()
    {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; HEAD_BYTES];
    for (to, from) in head.iter_mut().zip(user_key(internal_key)) {
        *to = *from;
    }
    u128::from_be_bytes(head)
}

impl<C: Cursor> Cursor for MergingCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.top.is_some()
    }

    fn seek_to_first(&mut self) -> bool {
        self.position(true, |child| child.seek_to_first())
    }

    fn seek_to_last(&mut self) -> bool {
        self.position(false, |child| child.seek_to_last())
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.position(true, |child| child.seek(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.position(false, |child| child.seek_for_prev(target))
    }

    #[inline]
    fn next(&mut self) -> bool {
        if self.forward { self.step() } else { self.turn(true) }
    }

    #[inline]
    fn prev(&mut self) -> bool {
        if self.forward { self.turn(false) } else { self.step() }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.top.and_then(|top| self.children.get(top.child)).map_or(&[], Cursor::key)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.top.and_then(|top| self.children.get(top.child)).map_or(&[], Cursor::value)
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
#[path = "merging_tests.rs"]
mod tests;
