//! The trie in an image, read within bounds: nodes and leaves. Layout: [`crate::trie::layout`].

use base::Result;

use super::view::{EntryView, View, wrong};
use crate::trie::layout::{
    DEPTH_AT, HEAD_BYTES, HEADER_AT, Header, KEYS_AT, Kind, LAYOUT_VERSION, LEAF_FIXED_BYTES, Link, META_AT, Meta,
    NEXT_AT, ROOT_AT, SAMPLE_AT, Target, VERSION_AT,
};
use crate::trie::search::matches;

/// The first words of nodes and leaves are read together.
const _: () = assert!(HEADER_AT == 0 && DEPTH_AT == 4 && SAMPLE_AT == 8 && NEXT_AT == 0 && META_AT == 4);

const LABELS: &str = "a node's labels";

/// A node's header only; its references are not followed.
#[derive(Clone, Copy)]
pub(super) struct NodeView {
    pub(super) at: u64,
    pub(super) kind: Kind,
    /// From the header.
    pub(super) children: usize,
    pub(super) depth: u32,
    pub(super) sample: Link,
    pub(super) is_locked: bool,
}

impl NodeView {
    /// A leaf below the node.
    #[inline]
    pub(super) fn witness(&self) -> Link {
        self.sample.split_sample().0
    }

    /// The leaf whose key ends at the node, or null.
    #[inline]
    pub(super) fn own(&self) -> Link {
        let (leaf, ends_here) = self.sample.split_sample();
        if ends_here { leaf } else { Link::NULL }
    }
}

/// A version of a key.
#[derive(Clone, Copy)]
pub(super) struct LeafView<'a> {
    pub(super) at: u64,
    pub(super) next: Link,
    /// The jump, if any: its link, and the number of `next` links it spans.
    pub(super) jump: Option<(Link, u32)>,
    pub(super) entry: EntryView<'a>,
}

#[derive(Clone, Copy)]
pub(super) struct TrieView<'a> {
    view: View<'a>,
    shift: u32,
    head: u64,
}

impl<'a> TrieView<'a> {
    /// # Errors
    /// `Unsupported`: an unknown layout; `Corruption`: no room for a head there.
    pub(super) fn new(view: View<'a>, shift: u32, head: u64) -> Result<Self> {
        view.bytes(head, HEAD_BYTES as u64, "the head of a trie")?;
        let version = view.u32(head + VERSION_AT)?;
        if version != LAYOUT_VERSION {
            let message = format!("a trie of layout {version}; {LAYOUT_VERSION} is known");
            return Err(base::Error::unsupported(message).at_offset(head));
        }
        Ok(TrieView { view, shift, head })
    }

    /// For a head already checked by [`new`](Self::new).
    #[inline]
    pub(super) fn known(view: View<'a>, shift: u32, head: u64) -> Self {
        TrieView { view, shift, head }
    }

    #[inline]
    pub(super) fn root(&self) -> Result<Link> {
        Ok(Link(self.view.u32(self.head + ROOT_AT)?))
    }

    #[inline]
    pub(super) fn node_offset(&self, link: Link) -> u64 {
        link.node_offset(self.shift)
    }

    /// The first words of the node at `at`.
    #[inline]
    pub(super) fn words<const WORDS: usize>(&self, at: u64) -> Result<[u32; WORDS]> {
        self.view.words(at, "a node")
    }

    #[inline]
    pub(super) fn word(&self, at: u64) -> Result<u32> {
        self.view.u32(at)
    }

    #[inline]
    pub(super) fn leaf_offset(&self, link: Link) -> u64 {
        link.leaf_offset(self.shift)
    }

    /// A link to `leaf`.
    #[inline]
    pub(super) fn leaf_link(&self, leaf: &LeafView<'_>) -> Link {
        Link::leaf(leaf.at, self.shift)
    }

    /// The node at `link`, which must not be a leaf's.
    #[inline]
    pub(super) fn node(&self, link: Link) -> Result<NodeView> {
        let at = link.node_offset(self.shift);
        let [header, depth, sample] = self.words(at)?;
        let header = Header(header);
        let kind = header.kind().ok_or_else(|| wrong(at, format!("{:#x} is no node's header", header.0)))?;
        let fits = match link.target() {
            Target::Leaf => false,
            Target::N4 => kind == Kind::N4,
            Target::Middle => matches!(kind, Kind::N10 | Kind::N23 | Kind::N48),
            Target::N256 | Target::Dense => kind == Kind::N256,
        };
        if !fits {
            return Err(wrong(at, format!("a node of kind {kind:?} where a link says {:?}", link.target())));
        }
        let children_max = if kind == Kind::N256 { 0 } else { kind.children_max() };
        if header.unlocked() != Header::new(kind, header.children()) || header.children() > children_max {
            return Err(wrong(at, format!("{:#x} is no header of a {kind:?} that is in use", header.0)));
        }
        self.view.bytes(at, kind.bytes() as u64, "a node")?;
        let is_locked = header.0 & Header::LOCKED != 0;
        Ok(NodeView { at, kind, children: header.children(), depth, sample: Link(sample), is_locked })
    }

    /// The bytes of a node's children, in insertion order; empty for an N256.
    #[inline]
    pub(super) fn labels(&self, node: &NodeView) -> Result<&'a [u8]> {
        self.view.bytes(node.at + KEYS_AT, node.children as u64, LABELS)
    }

    /// The link in a node's slot `i`.
    #[inline]
    pub(super) fn child(&self, node: &NodeView, i: usize) -> Result<Link> {
        Ok(Link(self.view.u32(node.at + node.kind.children_at() + 4 * i as u64)?))
    }

    /// The node at `link`, reached with `from` bytes of the key used.
    ///
    /// # Errors
    /// As [`node`](Self::node); `Corruption` also if its depth is below `from`: depths grow along every path, so each
    /// path ends.
    #[inline]
    pub(super) fn node_below(&self, link: Link, from: u64) -> Result<NodeView> {
        let node = self.node(link)?;
        let depth = u64::from(node.depth);
        if depth < from || (link.target() == Target::Dense && depth != from) {
            return Err(wrong(node.at, format!("a node of depth {depth} where {from} bytes are used")));
        }
        Ok(node)
    }

    /// The child at `byte`; null if there is none.
    #[inline]
    pub(super) fn child_at(&self, node: &NodeView, byte: u8) -> Result<Link> {
        self.child_of(node.at, node.kind, node.children, byte)
    }

    /// As [`child_at`](Self::child_at), of a node at `node` presumed to be of this kind with so many children, at most
    /// the kind's maximum.
    #[inline]
    pub(super) fn child_of(&self, node: u64, kind: Kind, children: usize, byte: u8) -> Result<Link> {
        let at = node + KEYS_AT;
        let slot = |i: usize| Ok(Link(self.view.u32(node + kind.children_at() + 4 * i as u64)?));
        let found = match kind {
            Kind::N256 => return slot(byte.into()),
            Kind::N4 => matches(self.view.words::<1>(at, LABELS)?, byte),
            Kind::N10 => matches(self.view.words::<3>(at, LABELS)?, byte),
            Kind::N23 => matches(self.view.words::<6>(at, LABELS)?, byte),
            Kind::N48 => matches(self.view.words::<12>(at, LABELS)?, byte),
        };
        let found = found & ((1 << children) - 1);
        if found == 0 { Ok(Link::NULL) } else { slot(found.trailing_zeros() as usize) }
    }

    /// Upwards, the first child at or above the byte `bound`; downwards, the last below it.
    pub(super) fn next_child(&self, node: &NodeView, bound: u16, upwards: bool) -> Result<Option<(u8, Link)>> {
        let is_ahead = |byte: u8| (u16::from(byte) >= bound) == upwards;
        if node.kind == Kind::N256 {
            let bytes = if upwards { bound..256 } else { 0..bound };
            let slot = |byte: u16| Ok((byte as u8, self.child(node, byte.into())?));
            let is_there = |slot: &Result<(u8, Link)>| slot.as_ref().map_or(true, |(_, link)| !link.is_null());
            let found = if upwards { bytes.map(slot).find(is_there) } else { bytes.rev().map(slot).find(is_there) };
            return found.transpose();
        }
        let labels = self.labels(node)?.iter().copied().enumerate().filter(|(_, byte)| is_ahead(*byte));
        let found = if upwards { labels.min_by_key(|(_, byte)| *byte) } else { labels.max_by_key(|(_, byte)| *byte) };
        found.map(|(i, byte)| Ok((byte, self.child(node, i)?))).transpose()
    }

    /// The version at `link`, which must not be null.
    #[inline(always)]
    pub(super) fn leaf(&self, link: Link) -> Result<LeafView<'a>> {
        let at = self.leaf_offset(link);
        if !link.is_leaf() || link.is_null() {
            return Err(wrong(at, format!("{:#x} is no link to a leaf", link.0)));
        }
        let [next, meta] = self.view.words(at, "a leaf")?;
        let (next, meta) = (Link(next), Meta(meta));
        let (key_len, value_len) = if meta.is_long() {
            let lengths_at = at + LEAF_FIXED_BYTES as u64;
            (self.view.u32(lengths_at)?, self.view.u32(lengths_at + 4)?)
        } else {
            let (key_len, value_len) = meta.short_lengths();
            (key_len as u32, value_len as u32)
        };
        let jump_at = at + meta.jump_at();
        let jump =
            if meta.has_jump() { Some((Link(self.view.u32(jump_at)?), self.view.u32(jump_at + 4)?)) } else { None };
        Ok(LeafView { at, next, jump, entry: self.view.entry(at + meta.key_at(), key_len, value_len)? })
    }
}
