//! Merges sorted cursors.
//!
//! The child with the current entry stands outside a binary heap of the other children. While the current child keeps
//! the nearest key, a step costs one comparison. A heap item caches the first key bytes after a shared prefix as a
//! number, so most comparisons touch no key. All keys seen since the last seek share the prefix. A key without the
//! prefix shortens it.

use base::bytes::shared_prefix;
use std::cmp::Ordering;

use base::key::{TRAILER_BYTES, user_key};
use base::{Cursor, Error, InternalOrder, Result, UserOrder};

/// Key bytes cached in a heap item.
const HEAD_BYTES: usize = 16;

/// A child of a merge.
pub trait MergeChild: Cursor {
    /// Whether the key is a lower bound of the next entry, and the entry not read yet. Only after seeks forward.
    fn is_ahead(&self) -> bool {
        false
    }

    /// Moves on to the entry ahead. False if there is none, or after an error.
    fn arrive(&mut self) -> bool {
        self.valid()
    }
}

impl MergeChild for Box<dyn Cursor> {}

/// A child with the head of its current key: the first bytes after the shared prefix, complemented if necessary so the
/// smaller number comes first in the walk's direction. Equal heads decide nothing.
#[derive(Clone, Copy)]
struct Rank {
    head: u128,
    child: usize,
}

/// A cursor over the union of its children. If two children hold the same internal key, the younger comes first.
///
/// An error of any child ends the walk at once: its lost entries may hide entries of the other children.
pub struct MergingCursor<C: MergeChild = Box<dyn Cursor>> {
    order: InternalOrder,
    /// Youngest first.
    children: Vec<C>,
    top: Option<Rank>,
    /// The other valid children.
    heap: Vec<Rank>,
    forward: bool,
    error: Option<Error>,
    /// Common prefix of the user keys of all valid children. Grows only when all children are repositioned.
    shared: Vec<u8>,
    /// The current key at a change of direction.
    turn_key: Vec<u8>,
}

impl<C: MergeChild> MergingCursor<C> {
    /// `children` are ordered youngest first and share one key order.
    pub fn new(order: InternalOrder, children: Vec<C>) -> Self {
        let heap = Vec::with_capacity(children.len());
        MergingCursor {
            order,
            children,
            top: None,
            heap,
            forward: true,
            error: None,
            shared: Vec::new(),
            turn_key: Vec::new(),
        }
    }

    /// Moves the children from index `first` on past everything before `target` (forward) or after it (backward).
    /// Younger children stay in place. The cursor must be valid.
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

    /// Rebuilds the heap after all children were positioned.
    fn rebuild(&mut self) -> bool {
        self.find_shared();
        self.fill_heap()
    }

    fn find_shared(&mut self) {
        let mut keys = self.children.iter().filter(|child| child.valid()).map(|child| user_key(child.key()));
        self.shared.clear();
        if matches!(self.order.user, UserOrder::Custom(_)) {
            return;
        }
        self.shared.extend_from_slice(keys.next().unwrap_or_default());
        for key in keys {
            self.shared.truncate(shared_prefix(&self.shared, key));
        }
    }

    fn fill_heap(&mut self) -> bool {
        self.heap.clear();
        self.top = None;
        for i in 0..self.children.len() {
            match self.rank(i) {
                Some(rank) => self.heap.push(rank),
                None if self.record_error(i) => return false,
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
        cursor.valid().then(|| Rank { head: self.head(cursor.key()).unwrap_or_default(), child })
    }

    /// `None` for a key without the shared prefix.
    #[inline]
    fn head(&self, internal_key: &[u8]) -> Option<u128> {
        if matches!(self.order.user, UserOrder::Custom(_)) {
            return Some(0);
        }
        let (front, rest) = internal_key.split_at_checked(self.shared.len())?;
        if rest.len() < TRAILER_BYTES || !same(front, &self.shared) {
            return None;
        }
        let descending = matches!(self.order.user, UserOrder::ReverseBytewise) == self.forward;
        Some(if descending { !head_of(rest) } else { head_of(rest) })
    }

    /// Steps the current child and finds the child that holds the next entry.
    #[inline]
    fn step(&mut self) -> bool {
        let Some(Rank { child, .. }) = self.top else { return false };
        let Some(cursor) = self.children.get_mut(child) else { return false };
        let alive = if self.forward { cursor.next() } else { cursor.prev() };
        if !alive {
            return self.drop_top(child);
        }
        self.place_top(child)
    }

    /// Places the current child, which has moved, among the others.
    #[inline]
    fn place_top(&mut self, child: usize) -> bool {
        let Some(&root) = self.heap.first() else { return true };
        let Some(cursor) = self.children.get(child) else { return false };
        let Some(head) = self.head(cursor.key()) else { return self.shorten_shared(child) };
        let rank = Rank { head, child };
        if self.before(rank, root) {
            self.top = Some(rank);
            return true;
        }
        self.replace_root(rank, root)
    }

    /// Makes `root` the current child, and puts `rank` into the heap instead.
    fn replace_root(&mut self, rank: Rank, root: Rank) -> bool {
        self.top = Some(root);
        if let Some(slot) = self.heap.first_mut() {
            *slot = rank;
        }
        self.sift_down(0);
        self.arrive()
    }

    /// Lets the current child read the entry it is ahead of, which may turn out to be another child's turn.
    #[inline]
    fn arrive(&mut self) -> bool {
        match self.top {
            Some(Rank { child, .. }) if self.children.get(child).is_some_and(C::is_ahead) => self.arrive_at(child),
            _ => true,
        }
    }

    #[cold]
    fn arrive_at(&mut self, child: usize) -> bool {
        let alive = self.children.get_mut(child).is_some_and(C::arrive);
        if alive { self.place_top(child) } else { self.drop_top(child) }
    }

    /// The current child ended.
    fn drop_top(&mut self, child: usize) -> bool {
        if self.record_error(child) { false } else { self.take_root() }
    }

    /// Shortens the shared prefix to its common part with the child's key.
    #[cold]
    fn shorten_shared(&mut self, child: usize) -> bool {
        let key = self.children.get(child).map_or(&[][..], |child| user_key(child.key()));
        self.shared.truncate(shared_prefix(&self.shared, key));
        self.fill_heap()
    }

    /// Makes the heap's root the current child.
    fn take_root(&mut self) -> bool {
        if self.heap.is_empty() {
            self.top = None;
            return false;
        }
        self.top = Some(self.heap.swap_remove(0));
        self.sift_down(0);
        self.arrive()
    }

    /// Whether the child ended with an error. The error becomes this cursor's.
    fn record_error(&mut self, child: usize) -> bool {
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

    /// Changes direction: places every other child on its entry next to the current one, on the new side.
    fn turn(&mut self, forward: bool) -> bool {
        let Some(Rank { child: current, .. }) = self.top else { return false };
        self.turn_key.clear();
        self.turn_key.extend_from_slice(self.children.get(current).map_or(&[], Cursor::key));
        let target = self.turn_key.as_slice();
        for (i, child) in self.children.iter_mut().enumerate() {
            // Among equal keys the younger child comes first, so the walk has already passed the equal keys of the
            // children on one side of `current`.
            if i == current {
                if forward {
                    child.next()
                } else {
                    child.prev()
                };
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

/// Whether two slices of one length are equal. They are short and nearly always equal: a call costs more than the loop.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let words = a_words.iter().zip(b_words).all(|(a, b)| u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b));
    words && a_rest.iter().zip(b_rest).all(|(a, b)| a == b)
}

/// The first bytes of the user key in an internal key, as a number of the same order. Missing bytes count as zeros.
#[inline]
fn head_of(internal_key: &[u8]) -> u128 {
    let user_bytes = internal_key.len().saturating_sub(TRAILER_BYTES);
    let head = if let Some(head) = internal_key.first_chunk::<HEAD_BYTES>() {
        u128::from_be_bytes(*head)
    } else if let Some(head) = internal_key.first_chunk::<TRAILER_BYTES>() {
        u128::from(u64::from_be_bytes(*head)) << 64
    } else {
        0
    };
    if user_bytes >= HEAD_BYTES { head } else { head & !(u128::MAX >> (8 * user_bytes)) }
}

impl<C: MergeChild> Cursor for MergingCursor<C> {
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

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.position(true, |child| child.seek_in_prefix(target))
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
