//! Block allocation and its accounting (C4).
//!
//! Writers reserve bytes before sequence allocation and may not fail afterwards. An insertion's worst case, a node
//! growing to 256 children, is many times its usual cost. So the children of a node pay for its growth in advance:
//!
//! - A node's *credit* is the sum its children paid since it was made: [`rate`] bytes each, beyond the children it was
//!   made with. The credit is derived from the node, not stored. A full node's credit and the rate of the child without
//!   room pay for the larger node.
//! - So an insertion costs at most its leaf, one node of the first kind if it parts two keys (never more: skipped bytes
//!   need no nodes), and one rate. The sum is its [`price_max`], reserved by the caller and held as a [`Purse`].
//!   Unspent bytes go to the stripe's *pool*, to serve later reservations.
//!
//! Blocks are cut from a *chunk* of the stripe, leaves from its low end and nodes from its high end. If a block does
//! not fit, the purse pays for it and the arena allocates it, rounded up to a unit. If the pool has enough bytes, the
//! arena allocates a whole new chunk instead, and the pool pays for the rest. A block cut from a chunk costs its purse
//! nothing: the chunk is paid for. The rest of an old chunk is lost, at most [`CHUNK_SHARE_MAX`]th of a chunk.
//!
//! At any time **T5**: `reserved = allocated + credit + purses and reservations not yet held as such + pools`. Only
//! reserved bytes are allocated, and a reserved insertion cannot fail.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::layout::{FAR_SHIFT, Header, Kind, Offset, leaf_align_bytes, unit_bytes};
use super::leaf::LEAF_OVERHEAD_BYTES;
use super::memory::Memory;
use crate::Entry;
use crate::arena::GRANULE_BYTES;
use crate::stripe::{Counts, Stripe, Stripes};

/// A stripe reserves bytes from the arena in steps of a `STEPS`th of the capacity, within these bounds, and returns
/// pool bytes beyond two steps.
const STEPS: usize = 1024;
const STEP_MIN_BYTES: usize = 512;
const STEP_MAX_BYTES: usize = 32 << 10;

/// A block larger than a `CHUNK_SHARE_MAX`th of a step does not end a chunk with more room than that.
const CHUNK_SHARE_MAX: usize = 8;

/// In chunks, nodes of a cache line or more are aligned to lines.
const LINE_BYTES: u64 = 64;

/// The kind of a new node between two keys. The unit of far links is larger than an N4.
pub(super) const fn first_kind(shift: u32) -> Kind {
    if shift == FAR_SHIFT { Kind::N10 } else { Kind::N4 }
}

/// Children a node of `kind` is made with. An N4 may be made with one less, beside its own leaf.
const fn children_made_with(kind: Kind) -> usize {
    match kind {
        Kind::N4 => 2,
        Kind::N10 => Kind::N4.children_max() + 1,
        Kind::N23 => Kind::N10.children_max() + 1,
        Kind::N48 => Kind::N23.children_max() + 1,
        Kind::N256 => Kind::N48.children_max() + 1,
    }
}

/// Bytes each further child pays to a node of `kind`: the size of the larger node, divided among the paying children.
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

/// Most bytes an insertion costs, beside its key and value.
pub(super) const fn overhead_max(shift: u32) -> usize {
    LEAF_OVERHEAD_BYTES + unit_bytes(shift) - 1 + first_kind(shift).bytes() + RATE_MAX
}

/// Most bytes an insertion of `payload_bytes` costs.
pub(super) const fn price_max(shift: u32, payload_bytes: usize) -> usize {
    payload_bytes + overhead_max(shift)
}

/// Bytes reserved for the insertions of one thread.
#[derive(Default)]
pub(super) struct Purse {
    bytes: usize,
}

impl Purse {
    /// Adds the reservation of an entry of `payload_bytes`.
    #[inline]
    pub(super) fn receive(&mut self, shift: u32, payload_bytes: usize) {
        self.bytes += price_max(shift, payload_bytes);
    }

    #[inline]
    fn pay(&mut self, bytes: usize) {
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.expect("an insertion costs no more than its price (T5)");
    }

    /// Pays the credit for one more child of a node with `children_before`.
    #[inline]
    pub(super) fn pay_credit(&mut self, kind: Kind, children_before: usize) {
        self.pay(credit(kind, children_before + 1) - credit(kind, children_before));
    }

    /// Takes the credit of a full node before its replacement.
    pub(super) fn take_credit(&mut self, header: Header) {
        let kind = header.kind().expect("a node's kind was one when written (T1)");
        self.bytes += credit(kind, header.children());
    }
}

/// Allocation state shared by the writers of one stripe.
pub(super) struct Share {
    /// Bytes reserved from the arena for the stripe's later reservations and chunks.
    pool: AtomicUsize,
    chunk: Mutex<Chunk>,
}

#[derive(Default)]
struct Chunk {
    low: Offset,
    high: Offset,
    /// A free unit above an aligned node.
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

    /// A block from the high end, aligned to a unit, and to a cache line if it is at least a line long.
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
        self.pool.fetch_update(Relaxed, Relaxed, |pool| pool.checked_sub(bytes)).is_ok()
    }
}

/// The memory of a trie, divided among stripes of writers.
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

    /// Reserves `bytes`: from the stripe's pool, or from the arena together with a step for the pool. If the step does
    /// not fit, all pools return their bytes and the arena is asked for `bytes` alone.
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

    /// Returns to the arena a pool's bytes beyond `keep`.
    fn give_back(&self, share: &Share, keep: usize) {
        let surplus = share.pool.load(Relaxed).saturating_sub(keep) & !(GRANULE_BYTES - 1);
        if surplus > 0 && share.draw(surplus) {
            self.memory.give_back(surplus);
        }
    }

    /// Moves the rest of `purse` into the pool, and surplus pool bytes back to the arena.
    pub(super) fn settle(&self, share: &Share, purse: &mut Purse) {
        let left = std::mem::take(&mut purse.bytes);
        let pool = share.pool.fetch_add(left, Relaxed) + left;
        if pool > 2 * self.step {
            self.give_back(share, self.step);
        }
    }

    /// A zeroed block for the leaf or range deletion of `entry`. Counts the entry under the chunk lock.
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

    /// A block for a node, zeroed if it is an N256.
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

    /// Takes back a unit cut for a node and never published. A small node needs no zeros.
    pub(super) fn keep_unit(&self, share: &Share, at: Offset) {
        share.chunk.lock().spare = Some(at);
    }

    /// Begins a new chunk with room for the `paid` bytes; the pool pays for the rest. False if the old chunk has too
    /// much room left to end it, or the pool has too little.
    #[cold]
    fn renew(&self, share: &Share, chunk: &mut Chunk, paid: usize) -> bool {
        if paid > self.step / CHUNK_SHARE_MAX && chunk.room() > self.step / CHUNK_SHARE_MAX {
            return false;
        }
        // One extra unit: the arena's frontier need not be line-aligned.
        let rest = self.step.saturating_sub(paid) + unit_bytes(M::SHIFT);
        if !share.draw(rest) {
            return false;
        }
        let low = self.memory.allocate(paid + rest);
        *chunk = Chunk { low, high: low + (paid + rest) as u64, spare: chunk.spare.take() };
        true
    }

    /// Uncut bytes of all chunks.
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
