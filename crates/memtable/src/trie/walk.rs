//! Walks over the trie's keys in byte order, in either direction, concurrent with writers.
//!
//! A walk keeps the path of nodes from the root. It finds leaves some steps ahead of its caller and prefetches them,
//! more the longer it runs. A node replaced meanwhile is walked to its end: its children are still in the trie, in the
//! same order, so only later keys can be missed.

use super::layout::{Header, Kind, Link, Target};
use super::memory::Memory;
use super::tree::Tree;
use base::bytes::shared_prefix;

/// Most leaves found ahead.
const AHEAD_MAX: usize = 16;

/// From this many leaves ahead a walk counts as long, and prefetches all children of a node.
const LONG_AHEAD: usize = 4;

/// Distance of the prefetched N256 slot from the walk, in slots.
const SLOTS_AHEAD: usize = 12;

/// Places in a node, in order: its own leaf, then the child at each byte.
const PLACES: u16 = 257;

/// A node on the path to the walk's position.
struct Frame {
    link: Link,
    depth: usize,
    /// `None` for an N256.
    header: Option<Header>,
    /// Upwards, the first place not yet walked; downwards, one past the last place not yet walked.
    place: u16,
    /// For nodes other than an N256, once `listed`: a bit for each child's byte.
    bytes: [u64; 4],
    listed: bool,
}

pub(super) struct Walk {
    upwards: bool,
    frames: Vec<Frame>,
    /// A leaf or node to walk before the frames, or null.
    pending: Link,
    /// A ring of leaves found; the next is at `taken` modulo its length.
    found: [Link; AHEAD_MAX],
    taken: usize,
    len: usize,
    /// Leaves to find ahead: few at first, as most walks are short.
    ahead: usize,
}

impl Walk {
    pub(super) fn new() -> Walk {
        Walk {
            upwards: true,
            frames: Vec::new(),
            pending: Link::NULL,
            found: [Link::NULL; AHEAD_MAX],
            taken: 0,
            len: 0,
            ahead: 1,
        }
    }

    fn reset(&mut self, upwards: bool) {
        self.upwards = upwards;
        self.frames.clear();
        self.pending = Link::NULL;
        (self.taken, self.len, self.ahead) = (0, 0, 1);
    }

    /// Begins at the trie's first key in the walking direction.
    pub(super) fn start<M: Memory>(&mut self, tree: &Tree<M>, upwards: bool) {
        self.reset(upwards);
        self.pending = tree.root();
    }

    /// Begins at `key`. If absent, begins at the first key after it upwards, before it downwards.
    pub(super) fn seek<M: Memory>(&mut self, tree: &Tree<M>, key: &[u8], upwards: bool) {
        self.reset(upwards);
        let (mut link, mut from) = (tree.root(), 0);
        while !link.is_leaf() {
            let depth = tree.depth(link, from);
            let Some(&byte) = key.get(depth) else { break };
            let mut frame = Frame::new(tree, link, depth, upwards);
            // The frame continues after the child at the byte; the loop descends into this child.
            frame.place = u16::from(byte) + if upwards { 2 } else { 1 };
            self.frames.push(frame);
            link = tree.step(link, &mut from, key);
        }
        let witness = match self.frames.last() {
            _ if !link.is_leaf() => tree.node(link).sample().split_sample().0,
            Some(frame) if link.is_null() => tree.node(frame.link).sample().split_sample().0,
            _ => link,
        };
        if witness.is_null() {
            return; // an empty trie
        }
        let witness = tree.leaf(witness).user_key();
        let agreed = shared_prefix(key, witness);
        // Every key in the subtree of the last popped node, or else behind `link`, compares to `key` as the witness
        // does.
        let mut subtree = link;
        while let Some(frame) = self.frames.pop_if(|frame| frame.depth > agreed) {
            subtree = frame.link;
        }
        let comes = if agreed == key.len() {
            // The key is a prefix of all keys in the subtree, or one of them.
            upwards || agreed == witness.len() && subtree.is_leaf()
        } else {
            (key.get(agreed) < witness.get(agreed)) == upwards
        };
        if comes {
            self.pending = subtree;
        } else if agreed == key.len() && !subtree.is_leaf() && tree.depth(subtree, from) == agreed {
            self.pending = tree.node(subtree).own();
        }
    }

    /// The newest version of the next key, or null.
    #[inline]
    pub(super) fn next<M: Memory>(&mut self, tree: &Tree<M>) -> Link {
        let leaf = self.take_found().unwrap_or_else(|| self.find_next(tree));
        if leaf.is_null() {
            return leaf;
        }
        while self.len < self.ahead {
            let found = self.find_next(tree);
            if found.is_null() {
                break;
            }
            tree.memory().prefetch(found.leaf_offset(M::SHIFT));
            if let Some(slot) = self.found.get_mut((self.taken + self.len) % AHEAD_MAX) {
                *slot = found;
            }
            self.len += 1;
        }
        self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        leaf
    }

    #[inline]
    fn take_found(&mut self) -> Option<Link> {
        self.len = self.len.checked_sub(1)?;
        let leaf = self.found.get(self.taken % AHEAD_MAX).copied();
        self.taken += 1;
        leaf
    }

    fn find_next<M: Memory>(&mut self, tree: &Tree<M>) -> Link {
        let mut link = std::mem::replace(&mut self.pending, Link::NULL);
        loop {
            if !link.is_leaf() {
                let from = self.frames.last().map_or(0, |frame| frame.depth + 1);
                let frame = Frame::new(tree, link, tree.depth(link, from), self.upwards);
                if self.ahead >= LONG_AHEAD {
                    frame.prefetch(tree);
                }
                self.frames.push(frame);
            } else if !link.is_null() {
                return link;
            }
            let Some(frame) = self.frames.last_mut() else { return Link::NULL };
            match frame.take(tree, self.upwards) {
                Some(child) => link = child,
                None => {
                    self.frames.pop();
                    link = Link::NULL;
                }
            }
        }
    }
}

impl Frame {
    fn new<M: Memory>(tree: &Tree<M>, link: Link, depth: usize, upwards: bool) -> Frame {
        let header = match link.target() {
            Target::Dense | Target::N256 => None,
            _ => Some(tree.node(link).header()),
        };
        Frame { link, depth, header, place: if upwards { 0 } else { PLACES }, bytes: [0; 4], listed: false }
    }

    /// Prefetches the children of a small node.
    fn prefetch<M: Memory>(&self, tree: &Tree<M>) {
        let node = tree.node(self.link);
        let Some((header, kind)) = self.header.and_then(|header| Some((header, header.kind()?))) else { return };
        for i in 0..header.children() {
            let child = node.link(node.child_at(kind, i));
            tree.prefetch(child, 0, &[]);
        }
    }

    /// The next leaf or child; null if the place just walked is empty; `None` at the end.
    #[inline]
    fn take<M: Memory>(&mut self, tree: &Tree<M>, upwards: bool) -> Option<Link> {
        let node = tree.node(self.link);
        if upwards && self.place == 0 {
            self.place = 1;
            return Some(node.own());
        }
        if !upwards && self.place <= 1 {
            let first = self.place == 1;
            self.place = 0;
            return first.then(|| node.own());
        }
        let byte = match self.header {
            None => self.take_slot(tree, upwards),
            Some(header) => {
                if !self.listed {
                    self.list(tree, header);
                }
                self.take_listed(upwards)
            }
        };
        let Some(byte) = byte else {
            // Downwards, the node's own leaf remains.
            self.place = if upwards { PLACES } else { 1 };
            return (!upwards).then_some(Link::NULL);
        };
        self.place = u16::from(byte) + if upwards { 2 } else { 1 };
        let at = match self.header {
            None => node.child_at(Kind::N256, byte.into()),
            Some(header) => node.find(header, byte)?,
        };
        Some(node.link(at))
    }

    /// The next byte with a child in an N256.
    #[inline]
    fn take_slot<M: Memory>(&self, tree: &Tree<M>, upwards: bool) -> Option<u8> {
        let node = tree.node(self.link);
        let child = |byte: usize| node.link(node.child_at(Kind::N256, byte));
        let place = usize::from(self.place);
        let (byte, ahead) = if upwards {
            let byte = (place - 1..256).find(|&byte| !child(byte).is_null())?;
            (byte, Some(byte + SLOTS_AHEAD).filter(|&ahead| ahead < 256))
        } else {
            let byte = (0..place - 1).rev().find(|&byte| !child(byte).is_null())?;
            (byte, byte.checked_sub(SLOTS_AHEAD))
        };
        if let Some(ahead) = ahead.map(child) {
            tree.prefetch(ahead, 0, &[]);
        }
        Some(byte as u8)
    }

    fn list<M: Memory>(&mut self, tree: &Tree<M>, header: Header) {
        let node = tree.node(self.link);
        for byte in (0..header.children()).map(|i| node.key_byte(i)) {
            if let Some(word) = self.bytes.get_mut(usize::from(byte / 64)) {
                *word |= 1 << (byte % 64);
            }
        }
        self.listed = true;
    }

    /// The next byte with a child in a node other than an N256.
    #[inline]
    fn take_listed(&self, upwards: bool) -> Option<u8> {
        let place = u32::from(self.place);
        // A word's bits at or above the place upwards, below it downwards.
        let rest = |(i, &word): (usize, &u64)| {
            let base = i as u32 * 64;
            let within = (place - 1).saturating_sub(base).min(64);
            let below = 1u64.checked_shl(within).map_or(u64::MAX, |bit| bit - 1);
            (base, word & if upwards { !below } else { below })
        };
        let mut words = self.bytes.iter().enumerate().map(rest).filter(|(_, word)| *word != 0);
        let byte = if upwards {
            words.next().map(|(base, word)| base + word.trailing_zeros())
        } else {
            words.next_back().map(|(base, word)| base + 63 - word.leading_zeros())
        };
        byte.map(|byte| byte as u8)
    }
}
