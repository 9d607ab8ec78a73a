//! The hash table: one word for each bucket, the head of a list of its keys' nodes.
//!
//! ```text
//! link | versions | record
//! ^ reference
//! ```
//!
//! A *link*, in a bucket or a node, is the next node's reference and, above it, a tag: a bit set if that node is the
//! list's last, and 31 bits of its key's hash. So nodes of other keys are skipped without a comparison, and a lookup of
//! an absent key mostly reads only the bucket.
//! A bucket's list has one node for each key, its *anchor*: the first version linked in. Later versions hang from its
//! second word ([`super::versions`]). New anchors go to the list's front, by exchanging the bucket's word. If two
//! threads insert one key, the slower finds the faster one's anchor when it retries.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use base::LookupKey;
use xxhash_rust::xxh3::xxh3_64;

use crate::arena::{Arena, GRANULE_BYTES, Ref};
use crate::order::KeyOrder;
use crate::record::{self, Record};
use crate::runs::Entries;

/// Words of a node before its record.
pub(super) const NODE_WORDS: usize = 2;

/// Bytes of a node beside its record.
pub(super) const NODE_BYTES: usize = NODE_WORDS * GRANULE_BYTES;

/// A link's word.
#[derive(Clone, Copy)]
pub(super) struct Link(u64);

/// Set if the linked node is the last. Never changes: nodes are only added in front.
const LAST: u64 = 1 << 32;

/// The bits taken from the hash.
const HASH: u64 = (u64::MAX << 32) & !LAST;

impl Link {
    /// The link to a node in front of `next`.
    fn new(node: Ref, hash: u64, next: Link) -> Link {
        let last = if next.node().is_null() { LAST } else { 0 };
        Link((hash << 32) & HASH | last | u64::from(node.raw()))
    }

    /// True if the linked node is the last.
    #[inline]
    fn is_last(self) -> bool {
        self.0 & LAST != 0
    }

    #[inline]
    pub(super) fn node(self) -> Ref {
        Ref::from_raw(self.0 as u32)
    }

    /// False if the linked node's key certainly has another hash. A null link may match.
    #[inline]
    pub(super) fn may_match(self, hash: u64) -> bool {
        (self.0 ^ (hash << 32)) & HASH == 0
    }
}

pub(super) struct Buckets {
    start: Ref,
    /// At least 1, at most 2^32.
    count: u64,
    /// Bytes of the timestamp at the end of user keys, excluded from the hash.
    timestamp_bytes: usize,
}

impl Buckets {
    /// `count` empty buckets; `None` if the arena has no room for them.
    pub(super) fn new(arena: &Arena, count: usize, timestamp_bytes: usize) -> Option<Buckets> {
        let bytes = bytes_of(count);
        // Allocated memory is zeroed: every bucket is empty.
        arena.try_reserve(bytes).then(|| Buckets { start: arena.allocate(bytes), count: count as u64, timestamp_bytes })
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of(self.count as usize)
    }

    #[inline]
    pub(super) fn hash(&self, user_key: &[u8]) -> u64 {
        let bare = user_key.len().saturating_sub(self.timestamp_bytes);
        xxh3_64(user_key.get(..bare).unwrap_or(user_key))
    }

    pub(super) fn hash_of(&self, key: &LookupKey) -> u64 {
        self.hash(key.user_key())
    }

    /// The bucket of a hash: chosen by the upper half. The links' tags are bits of the lower half.
    #[inline]
    fn bucket(&self, hash: u64) -> Ref {
        self.start.forward((((hash >> 32) * self.count) >> 32) as usize)
    }

    #[inline]
    pub(super) fn prefetch(&self, arena: &Arena, hash: u64) {
        arena.prefetch(self.bucket(hash));
    }

    /// The first link of the bucket of a hash.
    #[inline]
    pub(super) fn first(&self, arena: &Arena, hash: u64) -> Link {
        link_at(arena, self.bucket(hash))
    }

    /// The anchor of `user_key` among the nodes from `link` up to `end`, exclusive; null means all.
    #[inline]
    pub(super) fn find<O: KeyOrder>(
        entries: &Entries<O>,
        mut link: Link,
        end: Ref,
        hash: u64,
        user_key: &[u8],
    ) -> Option<Ref> {
        while link.node() != end && !link.node().is_null() {
            let node = link.node();
            if link.may_match(hash) && entries.order.same_key(node_record(&entries.arena, node).user_key(), user_key) {
                return Some(node);
            }
            if link.is_last() {
                return None;
            }
            link = link_at(&entries.arena, node);
        }
        None
    }

    /// Makes `node`, whose record is written, the anchor of its key, or returns the existing anchor.
    pub(super) fn insert<O: KeyOrder>(
        &self,
        entries: &Entries<O>,
        node: Ref,
        hash: u64,
        user_key: &[u8],
    ) -> Result<(), Ref> {
        let (arena, bucket) = (&entries.arena, self.bucket(hash));
        let mut looked_at = Ref::NULL;
        loop {
            let first = link_at(arena, bucket);
            if let Some(anchor) = Self::find(entries, first, looked_at, hash, user_key) {
                return Err(anchor);
            }
            // SAFETY: the node is this thread's and its first granule an atomic word to everyone.
            unsafe { arena.word(node) }.store(first.0, Relaxed);
            // SAFETY: buckets are an allocation (A1) of atomic words.
            let word = unsafe { arena.word(bucket) };
            // Release publishes the record and the link; the nodes behind it were acquired by this thread.
            if word.compare_exchange(first.0, Link::new(node, hash, first).0, Release, Relaxed).is_ok() {
                return Ok(());
            }
            looked_at = first.node(); // only nodes in front of it are new
        }
    }
}

/// Bytes of `count` buckets.
pub(super) const fn bytes_of(count: usize) -> usize {
    count * GRANULE_BYTES
}

#[inline]
fn link_at(arena: &Arena, at: Ref) -> Link {
    // SAFETY: `at` is a bucket, or a node that was reached through a link loaded with acquire (A2); the first granule
    // of either is an atomic word to everyone.
    Link(unsafe { arena.word(at) }.load(Acquire))
}

/// The record of a node reached through a link, or made by this thread.
#[inline]
pub(super) fn node_record(arena: &Arena, node: Ref) -> Record<'_> {
    // SAFETY: links are loaded with acquire, and nodes are published with their record (A2).
    unsafe { record::read(arena, record_of(node)) }
}

/// Where the record of a node is.
#[inline]
pub(super) fn record_of(node: Ref) -> Ref {
    node.forward(NODE_WORDS)
}
