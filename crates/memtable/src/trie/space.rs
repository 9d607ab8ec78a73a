//! Where blocks come from and who pays for them (C4).
//!
//! Writers reserve bytes before they are numbered and may not fail afterwards, yet an insertion's worst case, a node
//! that grows to 256 children, is many times what it mostly needs. So growth is paid for by the children that led to it:
//!
//! - A node's *credit* is what its children brought since it was made: [`rate`] bytes each, from the first that it was not
//!   made with. It is derived from the node, not stored. When the node is full, its credit and the rate of the child that
//!   does not fit pay for the larger node.
//! - So an insertion costs at most its leaf, a node of the first kind where it parts two keys (never more than one: skipped
//!   bytes need no nodes), and one rate. That is its [`price_max`], which the caller reserved for it, and which it holds as
//!   a [`Purse`]. What it did not spend goes to the stripe's *pool*, from which later reservations are served.
//!
//! Blocks are cut from a *chunk* of the stripe, leaves from its low end and nodes from its high end. A block that does not
//! fit is paid for by the purse and taken from the arena, rounded up to a unit; where the pool has the means, a whole new
//! chunk is, and the pool pays for the rest. A block cut from a chunk costs its purse nothing: it was paid for. What is
//! left of an old chunk is lost, at most [`CHUNK_SHARE_MAX`]th of it.
//!
//! Thus at any time **T5**: `reserved = allocated + credit + purses and reservations not yet held as such + pools`. Nothing is
//! allocated but what was reserved, and an insertion that was reserved for cannot fail.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::layout::{FAR_SHIFT, Header, Kind, Offset, leaf_align_bytes, unit_bytes};
use super::leaf::LEAF_OVERHEAD_BYTES;
use super::memory::Memory;
use crate::Entry;
use crate::arena::GRANULE_BYTES;
use crate::stripe::{Counts, Stripe, Stripes};

/// A stripe takes bytes from the arena in steps of the capacity's share, within these bounds, and gives back what its pool
/// has above two steps.
const STEPS: usize = 1024;
const STEP_MIN_BYTES: usize = 512;
const STEP_MAX_BYTES: usize = 32 << 10;

/// A block larger than the chunk's share does not end a chunk that has no room for it.
const CHUNK_SHARE_MAX: usize = 8;

/// Nodes are aligned to cache lines where that costs nothing.
const LINE_BYTES: u64 = 64;

/// The kind of nodes that part two keys. Links that reach far have no use for blocks smaller than their unit.
pub(super) const fn first_kind(shift: u32) -> Kind {
    if shift == FAR_SHIFT { Kind::N10 } else { Kind::N4 }
}

/// Children that a node of `kind` has when it is made, or two.
const fn children_made_with(kind: Kind) -> usize {
    match kind {
        Kind::N4 => 2,
        Kind::N10 => Kind::N4.children_max() + 1,
        Kind::N23 => Kind::N10.children_max() + 1,
        Kind::N48 => Kind::N23.children_max() + 1,
        Kind::N256 => Kind::N48.children_max() + 1,
    }
}

/// What each further child brings to a node of `kind`, in bytes: the cost of the larger node, divided by those who pay.
const fn rate(kind: Kind) -> usize {
    match kind {
        Kind::N256 => 0,
        _ => {
            let payers = kind.children_max() + 1 - children_made_with(kind);
            kind.larger().bytes().div_ceil(payers)
        }
    }
}

/// The credit of a node of `kind` with `children`.
pub(super) const fn credit(kind: Kind, children: usize) -> usize {
    children.saturating_sub(children_made_with(kind)) * rate(kind)
}

const RATE_MAX: usize = {
    let (a, b, c, d) = (rate(Kind::N4), rate(Kind::N10), rate(Kind::N23), rate(Kind::N48));
    let (ab, cd) = (if a > b { a } else { b }, if c > d { c } else { d });
    if ab > cd { ab } else { cd }
};

/// What inserting an entry costs at most, beside the bytes of its key and value.
pub(super) const fn overhead_max(shift: u32) -> usize {
    LEAF_OVERHEAD_BYTES + unit_bytes(shift) - 1 + first_kind(shift).bytes() + RATE_MAX
}

/// What inserting an entry of `payload_bytes` costs at most.
pub(super) const fn price_max(shift: u32, payload_bytes: usize) -> usize {
    payload_bytes + overhead_max(shift)
}

/// Bytes reserved for the insertions of one thread.
#[derive(Default)]
pub(super) struct Purse {
    bytes: usize,
}

impl Purse {
    /// Holds what was reserved for an entry of `payload_bytes`.
    #[inline]
    pub(super) fn receive(&mut self, shift: u32, payload_bytes: usize) {
        self.bytes += price_max(shift, payload_bytes);
    }

    #[inline]
    fn pay(&mut self, bytes: usize) {
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.expect("an insertion costs no more than its price (T5)");
    }

    /// Pays the credit that a child brings to a node which had `header`.
    #[inline]
    pub(super) fn pay_credit(&mut self, kind: Kind, children_before: usize) {
        self.pay(credit(kind, children_before + 1) - credit(kind, children_before));
    }

    /// Takes the credit of a full node that is about to be replaced.
    pub(super) fn take_credit(&mut self, header: Header) {
        let kind = header.kind().expect("a node's kind was one when written (T1)");
        self.bytes += credit(kind, header.children());
    }
}

/// What the writers of one stripe share.
pub(super) struct Share {
    /// Bytes reserved from the arena for whoever needs them next.
    pool: AtomicUsize,
    chunk: Mutex<Chunk>,
}

#[derive(Default)]
struct Chunk {
    low: Offset,
    high: Offset,
    /// A unit left over where a node was aligned.
    spare: Option<Offset>,
}

impl Chunk {
    #[inline]
    fn room(&self) -> usize {
        (self.high - self.low) as usize
    }

    #[inline]
    fn cut_low(&mut self, bytes: usize) -> Option<Offset> {
        (bytes <= self.room()).then(|| {
            let at = self.low;
            self.low += bytes as u64;
            at
        })
    }

    /// A block from the high end, aligned to a unit, and to a line where it is as large as one.
    #[inline]
    fn cut_high(&mut self, bytes: usize, unit: u64) -> Option<Offset> {
        if bytes as u64 == unit
            && let Some(spare) = self.spare.take()
        {
            return Some(spare);
        }
        let line = if (bytes as u64) < LINE_BYTES { unit } else { LINE_BYTES };
        let at = self.high.checked_sub(bytes as u64)? & !(line - 1);
        if at < self.low {
            return None;
        }
        if self.high - (at + bytes as u64) >= unit {
            self.spare = Some(at + bytes as u64);
        }
        self.high = at;
        Some(at)
    }
}

impl Share {
    pub(super) fn new() -> Share {
        Share { pool: AtomicUsize::new(0), chunk: Mutex::default() }
    }

    /// Takes `bytes` from the pool.
    fn draw(&self, bytes: usize) -> bool {
        self.pool.try_update(Relaxed, Relaxed, |pool| pool.checked_sub(bytes)).is_ok()
    }
}

/// The memory of a trie, shared out to its writers.
pub(super) struct Space<M> {
    pub(super) memory: M,
    pub(super) stripes: Stripes<Share>,
    step: usize,
}

impl<M: Memory> Space<M> {
    pub(super) fn new(memory: M) -> Self {
        let step =
            (memory.capacity() / STEPS).clamp(STEP_MIN_BYTES, STEP_MAX_BYTES).next_multiple_of(LINE_BYTES as usize);
        Space { memory, stripes: Stripes::new(Share::new), step }
    }

    /// Promises `bytes`: from the stripe's pool, or from the arena together with a step for the pool; towards the end from
    /// the arena alone, with what all pools have put back into it.
    pub(super) fn try_reserve(&self, bytes: usize) -> bool {
        let share = &self.stripes.mine().own;
        if share.draw(bytes) {
            return true;
        }
        let Some(whole) = bytes.checked_next_multiple_of(GRANULE_BYTES) else { return false };
        let with_step = whole.checked_add(self.step);
        let taken = match with_step.filter(|&bytes| self.memory.try_reserve(bytes)) {
            Some(taken) => taken,
            None => {
                self.stripes.iter().for_each(|stripe| self.give_back(&stripe.own, 0));
                if !self.memory.try_reserve(whole) {
                    return false;
                }
                whole
            }
        };
        share.pool.fetch_add(taken - bytes, Relaxed);
        true
    }

    /// Gives back to the arena what a pool has above `keep`.
    fn give_back(&self, share: &Share, keep: usize) {
        let surplus = share.pool.load(Relaxed).saturating_sub(keep) & !(GRANULE_BYTES - 1);
        if surplus > 0 && share.draw(surplus) {
            self.memory.give_back(surplus);
        }
    }

    /// Puts what is left of `purse` into the pool, and what the pool then has too much back to the arena.
    pub(super) fn settle(&self, share: &Share, purse: &mut Purse) {
        let left = std::mem::take(&mut purse.bytes);
        let pool = share.pool.fetch_add(left, Relaxed) + left;
        if pool > 2 * self.step {
            self.give_back(share, self.step);
        }
    }

    /// A zeroed block for the leaf, or for the range deletion, of `entry`, which is counted while the lock is held.
    #[inline]
    pub(super) fn leaf_block(
        &self,
        stripe: &Stripe<Share>,
        purse: &mut Purse,
        bytes: usize,
        entry: &Entry<'_>,
    ) -> Offset {
        debug_assert!(bytes.is_multiple_of(leaf_align_bytes(M::SHIFT)));
        let share = &stripe.own;
        let mut counts = Counts::default();
        counts.note(entry);
        let mut chunk = share.chunk.lock();
        stripe.add_alone(counts);
        if let Some(at) = chunk.cut_low(bytes) {
            return at;
        }
        let whole = bytes.next_multiple_of(unit_bytes(M::SHIFT));
        purse.pay(whole);
        if self.renew(share, &mut chunk, whole) {
            return chunk.cut_low(bytes).expect("a new chunk has room for what it was made for");
        }
        self.memory.allocate(whole)
    }

    /// A block for a node, zeroed where it is an N256.
    #[inline]
    pub(super) fn node_block(&self, share: &Share, purse: &mut Purse, kind: Kind) -> Offset {
        let unit = unit_bytes(M::SHIFT) as u64;
        let mut chunk = share.chunk.lock();
        if let Some(at) = chunk.cut_high(kind.bytes(), unit) {
            return at;
        }
        purse.pay(kind.bytes());
        if self.renew(share, &mut chunk, kind.bytes()) {
            return chunk.cut_high(kind.bytes(), unit).expect("a new chunk has room for what it was made for");
        }
        self.memory.allocate(kind.bytes())
    }

    /// Takes back a unit that was handed out for a node and never published. A small node needs no zeros.
    pub(super) fn keep_unit(&self, share: &Share, at: Offset) {
        share.chunk.lock().spare = Some(at);
    }

    /// Begins a new chunk that has room for `paid` bytes, which were paid for; the pool pays for the rest. False where the
    /// old chunk is too good to end, or where the pool has too little.
    #[cold]
    fn renew(&self, share: &Share, chunk: &mut Chunk, paid: usize) -> bool {
        if paid > self.step / CHUNK_SHARE_MAX && chunk.room() > self.step / CHUNK_SHARE_MAX {
            return false;
        }
        // A unit more, because the arena's frontier may lie across a line.
        let rest = self.step.saturating_sub(paid) + unit_bytes(M::SHIFT);
        if !share.draw(rest) {
            return false;
        }
        let low = self.memory.allocate(paid + rest);
        *chunk = Chunk { low, high: low + (paid + rest) as u64, spare: chunk.spare.take() };
        true
    }

    /// Bytes of chunks that no block was cut from.
    pub(super) fn uncut_bytes(&self) -> usize {
        self.stripes
            .iter()
            .map(|stripe| {
                let chunk = stripe.own.chunk.lock();
                chunk.room() + chunk.spare.map_or(0, |_| unit_bytes(M::SHIFT))
            })
            .sum()
    }

    /// Bytes in pools.
    #[cfg(test)]
    pub(super) fn pooled_bytes(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.own.pool.load(Relaxed)).sum()
    }
}
