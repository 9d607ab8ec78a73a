//! A walk over the keys of a trie in an image, in byte order, either way, from an end or from a key.
//!
//! Whatever the bytes are, the walk ends, in time proportional to the keys met: depths grow along every path, every
//! node entered leads to a leaf, and each key is checked against its path and the previous key ([`Walk::check_way`]),
//! so no leaf is met twice.

use base::Result;
use base::bytes::shared_prefix;

use super::trie::{NodeView, TrieView};
use super::view::wrong;
use crate::trie::layout::Link;

/// A node on the path to the walk's position.
#[derive(Clone, Copy)]
struct Frame {
    link: Link,
    depth: u32,
    /// Current place: 0 is the node's own leaf, otherwise the child's byte plus 1. Above 256: none yet.
    place: u16,
}

pub(super) enum Step {
    Enter(NodeView),
    /// A key, by the link to its newest version.
    Key(Link),
    Leave(NodeView),
}

/// The places of a node: its own leaf, and 256 children.
const PLACES: u16 = 257;

pub(super) struct Walk {
    upwards: bool,
    /// The nodes from the root to the current position.
    frames: Vec<Frame>,
    /// Visited next, unless null.
    pending: Link,
    /// Index of the topmost frame whose place changed since the last key.
    turned_at: usize,
}

impl Walk {
    /// Positioned nowhere.
    pub(super) fn new() -> Walk {
        Walk { upwards: true, frames: Vec::new(), pending: Link::NULL, turned_at: 0 }
    }

    fn reset(&mut self, upwards: bool) {
        self.upwards = upwards;
        self.frames.clear();
        (self.pending, self.turned_at) = (Link::NULL, 0);
    }

    /// Begins at an end of the trie.
    pub(super) fn start(&mut self, trie: &TrieView<'_>, upwards: bool) -> Result<()> {
        self.reset(upwards);
        self.pending = trie.root()?;
        Ok(())
    }

    /// Begins at the first key at or after `key` upwards, at or before it downwards.
    pub(super) fn seek(&mut self, trie: &TrieView<'_>, key: &[u8], upwards: bool) -> Result<()> {
        self.reset(upwards);
        let link = self.descend(trie, key)?;
        let (witness, way) = match self.frames.split_last() {
            _ if !link.is_leaf() => (trie.node(link)?.witness(), self.frames.as_slice()),
            Some((last, way)) if link.is_null() => (trie.node(last.link)?.witness(), way),
            _ => (link, self.frames.as_slice()),
        };
        if witness.is_null() && self.frames.is_empty() && link.is_null() {
            return Ok(()); // an empty trie
        }
        let witness = trie.leaf(witness)?;
        let at = witness.at;
        let witness = witness.entry.user_key();
        if let Some(frame) = way.iter().find(|frame| witness.get(frame.depth as usize) != key.get(frame.depth as usize))
        {
            return Err(wrong(at, format!("a key does not agree with its way at byte {}", frame.depth)));
        }
        let agreed = shared_prefix(key, witness);
        // All keys in the subtree of the last node popped, or else behind `link`, compare to the key as the witness
        // does.
        let mut subtree = link;
        while let Some(frame) = self.frames.pop_if(|frame| frame.depth as usize > agreed) {
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
        } else if agreed == key.len() && !subtree.is_leaf() {
            let node = trie.node(subtree)?;
            self.pending = if node.depth as usize == agreed { node.own() } else { Link::NULL };
        }
        Ok(())
    }

    /// Pushes the frames of a descent for `key`, each at the chosen child. Returns its end: a leaf, a node deeper than
    /// the key is long, or null.
    fn descend(&mut self, trie: &TrieView<'_>, key: &[u8]) -> Result<Link> {
        let mut link = trie.root()?;
        let mut from = 0;
        while !link.is_leaf() {
            let node = trie.node_below(link, from)?;
            let Some(&byte) = key.get(node.depth as usize) else { break };
            self.frames.push(Frame { link, depth: node.depth, place: u16::from(byte) + 1 });
            link = trie.child_at(&node, byte)?;
            from = u64::from(node.depth) + 1;
        }
        Ok(link)
    }

    pub(super) fn next(&mut self, trie: &TrieView<'_>) -> Result<Option<Step>> {
        loop {
            let link = std::mem::replace(&mut self.pending, Link::NULL);
            if !link.is_null() {
                return self.visit(trie, link).map(Some);
            }
            let Some(frame) = self.frames.last_mut() else { return Ok(None) };
            let node = trie.node(frame.link)?;
            let Some((place, link)) = next_place(trie, &node, frame.place, self.upwards)? else {
                if frame.place >= PLACES {
                    return Err(wrong(node.at, "a node that leads nowhere"));
                }
                self.frames.pop();
                return Ok(Some(Step::Leave(node)));
            };
            (frame.place, self.pending) = (place, link);
            self.turned_at = self.turned_at.min(self.frames.len() - 1);
        }
    }

    /// The next key, as the link to its newest version.
    pub(super) fn next_key(&mut self, trie: &TrieView<'_>) -> Result<Option<Link>> {
        loop {
            match self.next(trie)? {
                Some(Step::Key(newest)) => return Ok(Some(newest)),
                Some(Step::Enter(_) | Step::Leave(_)) => {}
                None => return Ok(None),
            }
        }
    }

    fn visit(&mut self, trie: &TrieView<'_>, link: Link) -> Result<Step> {
        if link.is_leaf() {
            return Ok(Step::Key(link));
        }
        let from = self.frames.last().map_or(0, |parent| u64::from(parent.depth) + 1);
        let node = trie.node_below(link, from)?;
        let place = if self.upwards { PLACES } else { PLACES + 1 };
        self.frames.push(Frame { link, depth: node.depth, place });
        Ok(Step::Enter(node))
    }

    /// Checks that the `key` at `at`, just found by the walk, belongs there: it has its path's byte at each node, and
    /// parts from the key `before` where their paths part. So it comes after `before`.
    pub(super) fn check_way(&mut self, at: u64, key: &[u8], before: Option<&[u8]>) -> Result<()> {
        let new = self.frames.get(self.turned_at..).unwrap_or_default();
        if let Some(before) = before {
            // If no place changed since, the same key turned up again.
            let depth = new.first().map_or(usize::MAX, |parting| parting.depth as usize);
            if key.get(..depth).is_none() || key.get(..depth) != before.get(..depth) {
                return Err(wrong(at, format!("a key does not share its first {depth} bytes with the one before")));
            }
        }
        for frame in new {
            let depth = frame.depth as usize;
            let agrees = match frame.place.checked_sub(1) {
                Some(byte) => key.get(depth).is_some_and(|&found| u16::from(found) == byte),
                None => key.len() == depth,
            };
            if !agrees {
                return Err(wrong(at, format!("a key does not agree with its way at byte {depth}")));
            }
        }
        self.turned_at = usize::MAX;
        Ok(())
    }
}

/// The place of `node` after `place` (`PLACES` and above: none yet), and its link.
fn next_place(trie: &TrieView<'_>, node: &NodeView, place: u16, upwards: bool) -> Result<Option<(u16, Link)>> {
    let own = Some((0, node.own())).filter(|(_, leaf)| !leaf.is_null());
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
