//! Estimates of the entries between two keys. Few entries are counted. More are estimated from the positions of both
//! keys among the children on their paths, as if all children of a node had equally many entries below them.

use super::layout::{Kind, Link, Target};
use super::memory::Memory;
use super::tree::Tree;
use super::walk::Walk;

/// Up to this many entries an estimate is a count.
const COUNTED_MAX: u64 = 32;

impl<M: Memory> Tree<M> {
    /// Estimates the entries with keys from `start` up to `end`, which follows `start` in the direction `upwards`.
    /// `entries`: all entries of the trie.
    pub(super) fn estimate(&self, start: &[u8], end: &[u8], upwards: bool, entries: u64) -> u64 {
        let mut walk = Walk::new();
        walk.seek(self, start, upwards);
        let mut counted = 0;
        while counted < COUNTED_MAX {
            let newest = walk.next(self);
            if newest.is_null() {
                return counted;
            }
            let key = self.leaf(newest).user_key();
            if if upwards { key >= end } else { key <= end } {
                return counted;
            }
            let mut version = newest;
            while !version.is_null() && counted < COUNTED_MAX {
                counted += 1;
                version = self.leaf(version).next();
            }
        }
        let share = (self.position(end) - self.position(start)).abs();
        counted.max((share * entries as f64) as u64)
    }

    /// The fraction of the trie before `key` in byte order.
    fn position(&self, key: &[u8]) -> f64 {
        let (mut before, mut width) = (0.0, 1.0);
        let (mut link, mut from) = (self.root(), 0);
        while !link.is_leaf() {
            let depth = self.depth(link, from);
            let sample = self.leaf(self.node(link).sample().split_sample().0).user_key();
            let skipped = |of: &[u8]| of.get(from..depth.min(of.len())).map(<[u8]>::to_owned).unwrap_or_default();
            let (own, theirs) = (skipped(key), skipped(sample));
            if own != theirs {
                return if own < theirs { before } else { before + width };
            }
            let Some(&byte) = key.get(depth) else { return before };
            let (smaller, all) = self.children_before(link, byte);
            before += width * smaller as f64 / all.max(1) as f64;
            width /= all.max(1) as f64;
            link = self.step(link, &mut from, key);
        }
        let is_behind = !link.is_null() && self.leaf(link).user_key() < key;
        if is_behind { before + width } else { before }
    }

    /// Children of a node before the child at `byte`, and all of them; the node's own leaf counts as one.
    fn children_before(&self, link: Link, byte: u8) -> (usize, usize) {
        let node = self.node(link);
        let own = usize::from(!node.own().is_null());
        let bytes = |children: &mut dyn Iterator<Item = u8>| {
            children.fold((own, own), |(smaller, all), child| (smaller + usize::from(child < byte), all + 1))
        };
        match link.target() {
            Target::Dense | Target::N256 => {
                let is_child = |byte: &u8| !node.link(node.child_at(Kind::N256, (*byte).into())).is_null();
                bytes(&mut (0..=u8::MAX).filter(is_child))
            }
            _ => bytes(&mut (0..node.header().children()).map(|i| node.key_byte(i))),
        }
    }
}
