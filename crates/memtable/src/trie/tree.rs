//! Descent of the trie: by a key's bytes at the depths of nodes; bytes between are skipped. A descent proves nothing
//! about skipped bytes, so the caller compares the whole key once at the leaf.

use std::sync::atomic::Ordering::Acquire;

use super::layout::{Kind, Link, Offset, ROOT_AT, Target};
use super::leaf::Leaf;
use super::memory::Memory;
use super::node::Node;
use super::space::Space;

pub(super) struct Tree<M> {
    pub(super) space: Space<M>,
}

impl<M: Memory> Tree<M> {
    #[inline]
    pub(super) fn memory(&self) -> &M {
        &self.space.memory
    }

    #[inline]
    pub(super) fn leaf(&self, link: Link) -> Leaf<'_, M> {
        Leaf::of(self.memory(), link)
    }

    #[inline]
    pub(super) fn node(&self, link: Link) -> Node<'_, M> {
        Node::of(self.memory(), link)
    }

    /// Offset of the link to the root.
    #[inline]
    pub(super) fn root_at(&self) -> Offset {
        self.memory().head() + ROOT_AT
    }

    /// The link at `at`, in the head or in a node.
    #[inline]
    pub(super) fn link_at(&self, at: Offset) -> Link {
        // SAFETY: callers name the root's word, or one they found in a published node (T1, T2).
        Link(unsafe { self.memory().load(at, Acquire) })
    }

    #[inline]
    pub(super) fn root(&self) -> Link {
        self.link_at(self.root_at())
    }

    /// The depth of the node at `link`, reached with `from` bytes of the key used.
    #[inline]
    pub(super) fn depth(&self, link: Link, from: usize) -> usize {
        if link.target() == Target::Dense { from } else { self.node(link).depth() }
    }

    /// Steps from the node at `link`, reached with `from` bytes of `key` used, to the child for the key's next byte. If
    /// the key ends at the node: its own leaf. Null if there is neither.
    #[inline(always)]
    pub(super) fn step(&self, link: Link, from: &mut usize, key: &[u8]) -> Link {
        let node = self.node(link);
        let target = link.target();
        // The header of a `Dense` N256 is never read: one cache line less.
        let header = match target {
            Target::Dense | Target::N256 => None,
            _ => Some(node.header()),
        };
        let depth = if target == Target::Dense { *from } else { node.depth() };
        let Some(&byte) = key.get(depth) else {
            return if key.len() == depth { node.own() } else { Link::NULL };
        };
        *from = depth + 1;
        let at = match header {
            None => Some(node.child_at(Kind::N256, byte.into())),
            Some(header) if target == Target::N4 => node.find_in_n4(header, byte),
            Some(header) => node.find(header, byte),
        };
        at.map_or(Link::NULL, |at| node.link(at))
    }

    /// The newest version of `key`, or null.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Link {
        let (mut link, mut from) = (self.root(), 0);
        while !link.is_leaf() {
            link = self.step(link, &mut from, key);
        }
        self.confirm(link, key)
    }

    /// `link` if it is a leaf of `key`, else null.
    #[inline]
    pub(super) fn confirm(&self, link: Link, key: &[u8]) -> Link {
        if !link.is_null() && same_bytes(self.leaf(link).user_key(), key) { link } else { Link::NULL }
    }

    /// Prefetches the line a descent for `key` reads first behind `link`.
    #[inline]
    pub(super) fn prefetch(&self, link: Link, from: usize, key: &[u8]) {
        let at = match link.target() {
            Target::Leaf => link.leaf_offset(M::SHIFT),
            Target::Dense => {
                let byte = key.get(from).copied().unwrap_or(0);
                self.node(link).child_at(Kind::N256, byte.into())
            }
            Target::N4 | Target::Middle | Target::N256 => link.node_offset(M::SHIFT),
        };
        self.memory().prefetch(at);
    }
}

/// Equality, without a call to `memcmp` for short keys.
#[inline]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    const FIRST_AND_LAST_MAX: usize = 16;
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(x), Some(y)) if a.len() <= FIRST_AND_LAST_MAX => {
            u64::from_ne_bytes(*x) == u64::from_ne_bytes(*y) && a.last_chunk::<8>() == b.last_chunk::<8>()
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_equal_everywhere() {
        let a: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            for other_len in 0..=40 {
                assert_eq!(same_bytes(&a[..len], &a[..other_len]), len == other_len);
                let mut b = a[..other_len].to_vec();
                for at in 0..other_len.min(len) {
                    b[at] ^= 0x80;
                    assert!(!same_bytes(&a[..len], &b));
                    b[at] ^= 0x80;
                }
            }
        }
    }
}
