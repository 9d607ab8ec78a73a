//! The trie in an image, read within bounds: nodes, leaves, and a walk over them in the order of keys. Layout:
//! [`crate::trie::layout`].

use base::Result;

use super::view::{EntryView, View, wrong};
use crate::trie::layout::{
    DEPTH_AT, HEADER_AT, Header, KEYS_AT, Kind, LAYOUT_VERSION, LEAF_FIXED_BYTES, Link, META_AT, Meta, NEXT_AT,
    ROOT_AT, SAMPLE_AT, Target, VERSION_AT,
};

/// A node's header, and nothing that it leads to.
#[derive(Clone, Copy)]
pub(super) struct NodeView {
    pub(super) at: u64,
    pub(super) kind: Kind,
    /// As the header counts them.
    pub(super) children: usize,
    pub(super) depth: u32,
    pub(super) sample: Link,
    pub(super) is_locked: bool,
}

/// A version of a key.
#[derive(Clone, Copy)]
pub(super) struct LeafView<'a> {
    pub(super) at: u64,
    pub(super) next: Link,
    /// Where it has one: the link, and for how many `next` links it stands.
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
    /// `Unsupported`: a layout that is not known.
    pub(super) fn new(view: View<'a>, shift: u32, head: u64) -> Result<Self> {
        let version = view.u32(head.saturating_add(VERSION_AT))?;
        if version != LAYOUT_VERSION {
            let message = format!("a trie of layout {version}; {LAYOUT_VERSION} is known");
            return Err(base::Error::unsupported(message).at_offset(head));
        }
        Ok(TrieView { view, shift, head })
    }

    pub(super) fn root(&self) -> Result<Link> {
        Ok(Link(self.view.u32(self.head + ROOT_AT)?))
    }

    pub(super) fn leaf_offset(&self, link: Link) -> u64 {
        link.leaf_offset(self.shift)
    }

    /// The node that `link`, which is not a leaf's, leads to.
    pub(super) fn node(&self, link: Link) -> Result<NodeView> {
        let at = link.node_offset(self.shift);
        let header = Header(self.view.u32(at + HEADER_AT)?);
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
        let (depth, sample) = (self.view.u32(at + DEPTH_AT)?, Link(self.view.u32(at + SAMPLE_AT)?));
        let is_locked = header.0 & Header::LOCKED != 0;
        Ok(NodeView { at, kind, children: header.children(), depth, sample, is_locked })
    }

    /// The bytes of a node's children, in the order they came; none of an N256.
    pub(super) fn labels(&self, node: &NodeView) -> Result<&'a [u8]> {
        self.view.bytes(node.at + KEYS_AT, node.children as u64, "a node's labels")
    }

    /// The link in a node's slot `i`.
    pub(super) fn child(&self, node: &NodeView, i: usize) -> Result<Link> {
        Ok(Link(self.view.u32(node.at + node.kind.children_at() + 4 * i as u64)?))
    }

    /// Upwards, the first child at or above the byte `bound`; downwards, the last below it.
    fn next_child(&self, node: &NodeView, bound: u16, upwards: bool) -> Result<Option<(u8, Link)>> {
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

    /// The version that `link`, which is not null, leads to.
    pub(super) fn leaf(&self, link: Link) -> Result<LeafView<'a>> {
        let at = self.leaf_offset(link);
        if !link.is_leaf() || link.is_null() {
            return Err(wrong(at, format!("{:#x} is no link to a leaf", link.0)));
        }
        let next = Link(self.view.u32(at + NEXT_AT)?);
        let meta = Meta(self.view.u32(at + META_AT)?);
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

/// A node on the way to where a walk stands.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    link: Link,
    pub(super) depth: u32,
    /// Where the walk went: 0 to the node's own leaf, else to the child at that byte, plus 1.
    pub(super) place: u16,
}

pub(super) enum Step {
    Enter(NodeView),
    /// A key, by the link to its newest version.
    Key(Link),
    Leave(NodeView),
}

/// The places of a node: its own leaf, and 256 children.
const PLACES: u16 = 257;

/// A walk over a trie by its keys' bytes. It ends where the trie was checked; in another one it may not.
pub(super) struct Walk<'a> {
    pub(super) trie: TrieView<'a>,
    upwards: bool,
    frames: Vec<Frame>,
    /// To be visited next, unless null.
    pending: Link,
    /// The frame nearest to the root that went to another place since this was set.
    pub(super) turned_at: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(trie: TrieView<'a>, upwards: bool) -> Result<Self> {
        Ok(Walk { trie, upwards, frames: Vec::new(), pending: trie.root()?, turned_at: 0 })
    }

    /// The nodes from the root to where the walk stands.
    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    pub(super) fn next(&mut self) -> Result<Option<Step>> {
        loop {
            let link = std::mem::replace(&mut self.pending, Link::NULL);
            if !link.is_null() {
                return self.visit(link).map(Some);
            }
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            let node = self.trie.node(frame.link)?;
            let Some((place, link)) = next_place(&self.trie, &node, frame.place, self.upwards)? else {
                self.frames.pop();
                return Ok(Some(Step::Leave(node)));
            };
            (frame.place, self.pending) = (place, link);
            self.turned_at = self.turned_at.min(self.frames.len() - 1);
        }
    }

    fn visit(&mut self, link: Link) -> Result<Step> {
        if link.is_leaf() {
            return Ok(Step::Key(link));
        }
        let node = self.trie.node(link)?;
        let from = self.frames.last().map_or(0, |parent| u64::from(parent.depth) + 1);
        let depth = u64::from(node.depth);
        if depth < from || (link.target() == Target::Dense && depth != from) {
            return Err(wrong(node.at, format!("a node of depth {depth} where {from} bytes are used")));
        }
        let place = if self.upwards { PLACES } else { PLACES + 1 };
        self.frames.push(Frame { link, depth: node.depth, place });
        Ok(Step::Enter(node))
    }
}

/// The place of `node` after `place` (`PLACES` and above where none was yet), and its link.
fn next_place(trie: &TrieView<'_>, node: &NodeView, place: u16, upwards: bool) -> Result<Option<(u16, Link)>> {
    let (leaf, ends_here) = node.sample.split_sample();
    let own = ends_here.then_some((0, leaf));
    let child = |bound| Ok(trie.next_child(node, bound, upwards)?.map(|(byte, link)| (u16::from(byte) + 1, link)));
    if upwards {
        let is_first = place >= PLACES;
        if is_first && own.is_some() { Ok(own) } else { child(if is_first { 0 } else { place }) }
    } else {
        if place == 0 {
            return Ok(None);
        }
        Ok(child(place.saturating_sub(1).min(256))?.or(own))
    }
}
