//! Estimates of the number of entries between two keys of an image. Small ranges are counted. For larger ranges of a
//! trie, the estimate follows from where the keys' paths part among the children of nodes, as if all children had
//! equally many entries. The live estimate: [`crate::trie::estimate`].

use base::{Result, SeqNo};

use super::cursor::newest_trailer;
use super::{LazyImage, Reader, Shape};
use crate::image::trie::{NodeView, TrieView};
use crate::image::walk::Walk;
use crate::trie::layout::Kind;

/// Largest range, in keys, counted exactly.
const COUNTED_MAX: u64 = 32;

/// Node bytes as a share of entry bytes: a guess.
const NODES_SHARE: f64 = 0.25;

impl LazyImage {
    pub(super) fn estimate(&self, start: &[u8], end: &[u8]) -> Result<u64> {
        if self.order.compare(start, end).is_ge() {
            return Ok(0);
        }
        match (self.reader(), self.shape) {
            (Reader::Trie(trie), Shape::Trie { upwards, .. }) => self.estimate_in_trie(&trie, start, end, upwards),
            (Reader::SkipList(list), _) => {
                let first = newest_trailer(SeqNo::MAX);
                self.ordered(list).estimate((start, first), (end, first))
            }
            _ => Ok(0),
        }
    }

    fn estimate_in_trie(&self, trie: &TrieView<'_>, start: &[u8], end: &[u8], upwards: bool) -> Result<u64> {
        let mut walk = Walk::new();
        walk.seek(trie, start, upwards)?;
        let (mut counted, mut bytes) = (0, 0);
        while counted < COUNTED_MAX {
            let Some(newest) = walk.next_key(trie)? else { return Ok(counted) };
            let leaf = trie.leaf(newest)?;
            let key = leaf.entry.user_key();
            if if upwards { key >= end } else { key <= end } {
                return Ok(counted);
            }
            counted += 1;
            bytes += leaf.entry.end - leaf.at;
        }
        let entries = match self.header.sealed {
            Some(seal) => seal.entries as f64,
            None => self.bytes() as f64 * counted as f64 / (bytes.max(1) as f64 * (1.0 + NODES_SHARE)),
        };
        let share = (position(trie, end)? - position(trie, start)?).abs();
        Ok(counted.max((share * entries) as u64))
    }
}

/// The share of the trie before `key` in byte order.
fn position(trie: &TrieView<'_>, key: &[u8]) -> Result<f64> {
    let (mut before, mut width) = (0.0, 1.0);
    let (mut link, mut from) = (trie.root()?, 0);
    while !link.is_leaf() {
        let node = trie.node_below(link, from as u64)?;
        let depth = node.depth as usize;
        let sample = trie.leaf(node.witness())?.entry.user_key();
        let (own, theirs) = (skipped(key, from, depth), skipped(sample, from, depth));
        if own != theirs {
            return Ok(if own < theirs { before } else { before + width });
        }
        let Some(&byte) = key.get(depth) else { return Ok(before) };
        let (smaller, all) = children_before(trie, &node, byte)?;
        before += width * smaller as f64 / all.max(1) as f64;
        width /= all.max(1) as f64;
        link = trie.child_at(&node, byte)?;
        from = depth + 1;
    }
    let is_behind = !link.is_null() && trie.leaf(link)?.entry.user_key() < key;
    Ok(if is_behind { before + width } else { before })
}

/// The bytes of `key` from `from` up to `depth`, cut at the key's end.
fn skipped(key: &[u8], from: usize, depth: usize) -> &[u8] {
    key.get(from..depth.min(key.len())).unwrap_or_default()
}

/// Children of a node, its own leaf included: the number before the child at `byte`, and the total.
fn children_before(trie: &TrieView<'_>, node: &NodeView, byte: u8) -> Result<(usize, usize)> {
    let own = usize::from(!node.own().is_null());
    let (mut smaller, mut all) = (own, own);
    let mut count = |child: u8| {
        smaller += usize::from(child < byte);
        all += 1;
    };
    if node.kind == Kind::N256 {
        for child in 0..=u8::MAX {
            if !trie.child(node, child.into())?.is_null() {
                count(child);
            }
        }
    } else {
        trie.labels(node)?.iter().for_each(|&child| count(child));
    }
    Ok((smaller, all))
}
