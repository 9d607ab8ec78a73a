//! Leaves: versions of keys. The layout is in [`super::layout`].

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::key::{self, TRAILER_BYTES};
use base::{SeqNo, ValueKind};

use super::layout::{
    LEAF_FIXED_BYTES, LEAF_PART_BYTES, Link, META_AT, Meta, NEXT_AT, Offset, RANK_MAX, leaf_align_bytes,
};
use super::memory::Memory;
use crate::Entry;
use crate::record::trailer_of;

/// Bytes of the largest leaf without its key and value, before alignment.
pub(super) const LEAF_OVERHEAD_BYTES: usize = LEAF_FIXED_BYTES + 2 * LEAF_PART_BYTES + TRAILER_BYTES;

/// A version's rank among the versions of its key, as stored in the leaf: a hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) number: u32,
    /// Set if `number` is [`RANK_MAX`].
    pub(super) jump: Jump,
}

/// A link over at least `span` `next` links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) to: u32,
    pub(super) span: u32,
}

/// Bytes of the leaf of `entry`, alignment included.
#[inline]
pub(super) fn leaf_bytes<M: Memory>(rank: u32, entry: &Entry<'_>) -> usize {
    let meta = Meta::new(rank, entry.user_key.len(), entry.value.len());
    let bytes = meta.key_at() as usize + entry.user_key.len() + TRAILER_BYTES + entry.value.len();
    bytes.next_multiple_of(leaf_align_bytes(M::SHIFT))
}

/// A leaf, unpublished or published.
pub(super) struct Leaf<'a, M> {
    memory: &'a M,
    at: Offset,
}

impl<M> Clone for Leaf<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Leaf<'_, M> {}

impl<'a, M: Memory> Leaf<'a, M> {
    /// The leaf at `link`, which must not be null.
    #[inline]
    pub(super) fn of(memory: &'a M, link: Link) -> Self {
        debug_assert!(link.is_leaf() && !link.is_null());
        Leaf { memory, at: link.leaf_offset(M::SHIFT) }
    }

    /// The leaf at `at`, about to be written by this thread.
    #[inline]
    pub(super) fn at(memory: &'a M, at: Offset) -> Self {
        Leaf { memory, at }
    }

    #[inline]
    pub(super) fn link(self) -> Link {
        Link::leaf(self.at, M::SHIFT)
    }

    /// Writes all but the `next` link.
    ///
    /// # Panics
    /// If a length does not fit 32 bits: callers refuse such keys and values at admission (C4).
    ///
    /// # Safety
    /// The block must be unpublished and have [`leaf_bytes`] for this rank or a higher one.
    pub(super) unsafe fn write(self, rank: Rank, entry: &Entry<'_>) {
        let (Ok(key_len), Ok(value_len)) = (u32::try_from(entry.user_key.len()), u32::try_from(entry.value.len()))
        else {
            panic!("a key or value of 4 GiB or more was let in (C4)");
        };
        let meta = Meta::new(rank.number, entry.user_key.len(), entry.value.len());
        let key_at = self.at + meta.key_at();
        let trailer_at = key_at + u64::from(key_len);
        // SAFETY: by the caller all of it lies in a block of this thread's own.
        unsafe {
            self.memory.store(self.at + META_AT, meta.0, Relaxed);
            if meta.is_long() {
                let lengths_at = self.at + LEAF_FIXED_BYTES as u64;
                self.memory.store(lengths_at, key_len, Relaxed);
                self.memory.store(lengths_at + 4, value_len, Relaxed);
            }
            if meta.has_jump() {
                self.memory.store(self.at + meta.jump_at(), rank.jump.to, Relaxed);
                self.memory.store(self.at + meta.jump_at() + 4, rank.jump.span, Relaxed);
            }
            self.memory.write(key_at, entry.user_key);
            self.memory.write(trailer_at, &trailer_of(entry).to_le_bytes());
            if value_len > 0 {
                self.memory.write(trailer_at + TRAILER_BYTES as u64, entry.value);
            }
        }
    }

    #[inline]
    fn meta(self) -> Meta {
        // SAFETY: `self` is a whole leaf (T1); the word was stored before it was published.
        Meta(unsafe { self.memory.load(self.at + META_AT, Relaxed) })
    }

    /// Lengths of key and value.
    #[inline]
    fn lengths(self, meta: Meta) -> (usize, usize) {
        if !meta.is_long() {
            return meta.short_lengths();
        }
        let at = self.at + LEAF_FIXED_BYTES as u64;
        // SAFETY: as in `meta`; long leaves have these words.
        unsafe { (self.memory.load(at, Relaxed) as usize, self.memory.load(at + 4, Relaxed) as usize) }
    }

    #[inline]
    pub(super) fn internal_key(self) -> &'a [u8] {
        let meta = self.meta();
        // SAFETY: the leaf was written whole, with these lengths, before it was published (T1).
        unsafe { self.memory.read(self.at + meta.key_at(), self.lengths(meta).0 + TRAILER_BYTES) }
    }

    #[inline]
    pub(super) fn user_key(self) -> &'a [u8] {
        let meta = self.meta();
        // SAFETY: as in `internal_key`.
        unsafe { self.memory.read(self.at + meta.key_at(), self.lengths(meta).0) }
    }

    #[inline]
    pub(super) fn value(self) -> &'a [u8] {
        let meta = self.meta();
        let (key_len, value_len) = self.lengths(meta);
        if value_len == 0 {
            return &[]; // the leaf ends here
        }
        // SAFETY: as in `internal_key`.
        unsafe { self.memory.read(self.at + meta.key_at() + (key_len + TRAILER_BYTES) as u64, value_len) }
    }

    #[inline]
    pub(super) fn trailer(self) -> u64 {
        key::split(self.internal_key()).expect("a leaf holds a whole internal key (T1)").1
    }

    /// Sequence number and kind.
    #[inline]
    pub(super) fn version(self) -> (SeqNo, ValueKind) {
        let trailer = self.trailer();
        let kind = ValueKind::from_u8(trailer as u8).expect("a leaf's kind was a ValueKind when written (T1)");
        (SeqNo(trailer >> 8), kind)
    }

    #[inline]
    pub(super) fn rank(self) -> Rank {
        let meta = self.meta();
        if !meta.has_jump() {
            return Rank { number: meta.rank(), jump: Jump::default() };
        }
        let at = self.at + meta.jump_at();
        // SAFETY: as in `meta`; leaves of this rank have these words.
        let (to, span) = unsafe { (self.memory.load(at, Relaxed), self.memory.load(at + 4, Relaxed)) };
        Rank { number: RANK_MAX, jump: Jump { to, span } }
    }

    /// The next older version.
    #[inline]
    pub(super) fn next(self) -> Link {
        // SAFETY: `self` is a whole leaf (T1), and this word is atomic to all (T2).
        Link(unsafe { self.memory.load(self.at + NEXT_AT, Acquire) })
    }

    /// Sets the next older version of an unpublished leaf.
    #[inline]
    pub(super) fn set_next(self, next: Link) {
        // SAFETY: as in `next`.
        unsafe { self.memory.store(self.at + NEXT_AT, next.0, Relaxed) };
    }

    /// Publishes `new` as the next older version if it is still `next`.
    pub(super) fn link_in(self, next: Link, new: Link) -> bool {
        // SAFETY: as in `next`. Release publishes the target of `new`.
        unsafe { self.memory.exchange(self.at + NEXT_AT, next.0, new.0, Release) }
    }
}
