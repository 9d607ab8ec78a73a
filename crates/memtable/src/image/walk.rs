//! A walk over the keys of a trie in an image, in the order of their bytes, either way, from an end or from a key.
//!
//! It ends, and takes time in proportion to the keys it meets, whatever the bytes are: depths grow along every way, every
//! node entered leads to a leaf, and each key is checked against the way to it and the key before
//! ([`Walk::check_way`]), so that the same leaf does not turn up twice.

use base::Result;

use super::trie::{NodeView, TrieView};
use super::view::wrong;
use crate::trie::layout::Link;
use crate::trie::shared_prefix;

/// A node on the way to where a walk stands.
#[derive(Clone, Copy)]
struct Frame {
    link: Link,
    depth: u32,
    /// Where the walk went: 0 to the node's own leaf, else to the child at that byte, plus 1; above that, nowhere yet.
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
    /// The nodes from the root to where the walk stands.
    frames: Vec<Frame>,
    /// To be visited next, unless null.
    pending: Link,
    /// The frame nearest to the root that went to another place since the last key.
    turned_at: usize,
}

impl Walk {
    /// One that stands nowhere.
    pub(super) fn new() -> Walk {
        Walk { upwards: true, frames: Vec::new(), pending: Link::NULL, turned_at: 0 }
    }

    fn reset(&mut self, upwards: bool) {
        self.upwards = upwards;
        self.frames.clear();
        (self.pending, self.turned_at) = (Link::NULL, 0);
    }

    /// Begins at the trie's end.
    pub(super) fn start(&mut self, trie: &TrieView<'_>, upwards: bool) -> Result<()> {
        self.reset(upwards);
        self.pending = trie.root()?;
        Ok(())
    }

    /// Begins at `key`, or where it would be: at the first key at or after it upwards, at or before it downwards.
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
        // All keys in the subtree of the last node popped, or else behind `link`, stand to the key as the witness does.
        let mut subtree = link;
        while let Some(frame) = self.frames.pop_if(|frame| frame.depth as usize > agreed) {
            subtree = frame.link;
        }
        let comes = if agreed == key.len() {
            // The key is the beginning of all keys in the subtree, or one of them.
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

    /// Makes the frames of a descent for `key`, each standing at the child that it chose, and returns where it ended: at a
    /// leaf, at a node that the key is too short for, or nowhere.
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

    /// The next key, by the link to its newest version.
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

    /// That the `key` at `at`, which the walk found just now, belongs there: that it has its way's byte at each node, and
    /// parts from the key `before` where their ways part. So it comes after that one.
    pub(super) fn check_way(&mut self, at: u64, key: &[u8], before: Option<&[u8]>) -> Result<()> {
        let new = self.frames.get(self.turned_at..).unwrap_or_default();
        if let Some(before) = before {
            // With no other place gone to since, the same key turned up again.
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

/// The place of `node` after `place` (`PLACES` and above where none was yet), and its link.
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
