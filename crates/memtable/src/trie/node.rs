//! Nodes: child lookup, and changes made under a node's lock. The layout is in [`super::layout`].
//!
//! Readers ignore lock bits. They load the header with acquire; the children it counts were written before its release
//! store. A link in a slot may have been replaced since, so slots are loaded with acquire too.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::layout::{DEPTH_AT, HEADER_AT, Header, KEYS_AT, Kind, Link, Offset, SAMPLE_AT};
use super::memory::Memory;
use super::search::{matches, matches_in_word};

/// A node, being written or published.
pub(super) struct Node<'a, M> {
    memory: &'a M,
    pub(super) at: Offset,
}

impl<M> Clone for Node<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Node<'_, M> {}

impl<'a, M: Memory> Node<'a, M> {
    /// The node that `link` leads to.
    #[inline]
    pub(super) fn of(memory: &'a M, link: Link) -> Self {
        debug_assert!(!link.is_leaf());
        Node { memory, at: link.node_offset(M::SHIFT) }
    }

    /// The node at `at`: reached before, or about to be written by this thread.
    #[inline]
    pub(super) fn at(memory: &'a M, at: Offset) -> Self {
        Node { memory, at }
    }

    #[inline]
    pub(super) fn header(self) -> Header {
        // SAFETY: `self` is a whole node (T1), whose words are atomic to all (T2).
        Header(unsafe { self.memory.load(self.at + HEADER_AT, Acquire) })
    }

    #[inline]
    pub(super) fn depth(self) -> usize {
        // SAFETY: as in `header`. Relaxed: it was stored before the node was published.
        unsafe { self.memory.load(self.at + DEPTH_AT, Relaxed) as usize }
    }

    #[inline]
    pub(super) fn sample(self) -> Link {
        self.link(self.at + SAMPLE_AT)
    }

    /// The leaf whose key ends at this node, or null.
    #[inline]
    pub(super) fn own(self) -> Link {
        let (leaf, ends_here) = self.sample().split_sample();
        if ends_here { leaf } else { Link::NULL }
    }

    #[inline]
    pub(super) fn sample_at(self) -> Offset {
        self.at + SAMPLE_AT
    }

    /// Offset of the link of child `i`; in an N256, of the child at byte `i`.
    #[inline]
    pub(super) fn child_at(self, kind: Kind, i: usize) -> Offset {
        self.at + kind.children_at() + 4 * i as u64
    }

    /// A link of this node.
    #[inline]
    pub(super) fn link(self, at: Offset) -> Link {
        // SAFETY: `at` is a word of this node, as in `header`.
        Link(unsafe { self.memory.load(at, Acquire) })
    }

    /// Offset of the link of the child at `byte`; `None` if a node other than an N256 has no such child.
    #[inline(always)]
    pub(super) fn find(self, header: Header, byte: u8) -> Option<Offset> {
        let (kind, found) = match header.kind()? {
            Kind::N256 => return Some(self.child_at(Kind::N256, byte.into())),
            Kind::N4 => (Kind::N4, u64::from(matches_in_word(self.key_word(0), byte))),
            Kind::N10 => (Kind::N10, matches(self.key_words::<3>(), byte)),
            Kind::N23 => (Kind::N23, matches(self.key_words::<6>(), byte)),
            Kind::N48 => (Kind::N48, matches(self.key_words::<12>(), byte)),
        };
        let found = found & ((1 << header.children()) - 1);
        (found != 0).then(|| self.child_at(kind, found.trailing_zeros() as usize))
    }

    /// As [`find`](Self::find), in an N4.
    #[inline(always)]
    pub(super) fn find_in_n4(self, header: Header, byte: u8) -> Option<Offset> {
        let found = matches_in_word(self.key_word(0), byte) & ((1 << header.children()) - 1);
        (found != 0).then(|| self.child_at(Kind::N4, found.trailing_zeros() as usize))
    }

    #[inline]
    fn key_word(self, i: usize) -> u32 {
        // SAFETY: as in `header`; callers name words of the key bytes.
        unsafe { self.memory.load(self.at + KEYS_AT + 4 * i as u64, Relaxed) }
    }

    #[inline]
    fn key_words<const WORDS: usize>(self) -> [u32; WORDS] {
        std::array::from_fn(|i| self.key_word(i))
    }

    /// The byte of child `i` of a node other than an N256.
    #[inline]
    pub(super) fn key_byte(self, i: usize) -> u8 {
        (self.key_word(i / 4) >> (8 * (i % 4))) as u8
    }

    /// Locks the node if its header is still `seen`. The holder sees all writes of former holders.
    #[inline]
    pub(super) fn lock(self, seen: Header) -> bool {
        // SAFETY: as in `header`.
        seen.is_free() && unsafe { self.memory.exchange(self.at + HEADER_AT, seen.0, seen.locked().0, Acquire) }
    }

    /// Publishes the lock holder's writes, and unlocks.
    #[inline]
    pub(super) fn unlock(self, header: Header) {
        self.set_header(header);
    }

    /// Marks a locked node as replaced. It stays locked, so no writer changes it again.
    pub(super) fn retire(self, header: Header) {
        self.set_header(Header(header.locked().0 | Header::OBSOLETE));
    }

    /// Begins to write an unpublished node. Returns a header without children; [`unlock`](Self::unlock) stores the
    /// final header.
    pub(super) fn begin(self, kind: Kind, depth: usize, sample: Link) -> Header {
        self.set(DEPTH_AT, depth as u32);
        self.set(SAMPLE_AT, sample.0);
        Header::new(kind, 0)
    }

    /// Adds a child to a node with room, either unpublished or locked by the caller. Returns the header to publish the
    /// child with; in an N256 the slot itself makes it visible.
    pub(super) fn add(self, header: Header, byte: u8, child: Link) -> Header {
        let kind = header.kind().expect("a node's kind was one when written (T1)");
        if kind == Kind::N256 {
            self.set(kind.children_at() + 4 * u64::from(byte), child.0);
            return header;
        }
        let i = header.children();
        debug_assert!(i < kind.children_max());
        let shift = 8 * (i % 4);
        // Concurrent readers of the word do not count this byte yet. A crashed writer's leftover byte is overwritten.
        let word = self.key_word(i / 4) & !(0xFF << shift) | u32::from(byte) << shift;
        self.set(KEYS_AT + 4 * (i / 4) as u64, word);
        self.set(kind.children_at() + 4 * i as u64, child.0);
        header.with_another()
    }

    /// Stores a field that a later release publishes.
    #[inline]
    fn set(self, field: u64, word: u32) {
        // SAFETY: as in `header`.
        unsafe { self.memory.store(self.at + field, word, Relaxed) };
    }

    #[inline]
    fn set_header(self, header: Header) {
        // SAFETY: as in `header`. Release publishes earlier writes to threads that acquire this word.
        unsafe { self.memory.store(self.at + HEADER_AT, header.0, Release) };
    }
}
