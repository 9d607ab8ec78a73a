//! Checking a trie: see [`super`].
//!
//! The walk visits keys in byte order and compares neighbours: two neighbours must part exactly at the depth of the
//! node where their paths part, and each key must have its path's byte at each node. So all keys below a node share the
//! bytes skipped by a descent, at the cost of each key's length once.

use base::Result;

use super::check::Tally;
use super::trie::{LeafView, NodeView, TrieView};
use super::view::wrong;
use super::walk::{Step, Walk};
use crate::trie::layout::{Kind, Link};

struct Check<'a, 't> {
    trie: TrieView<'a>,
    walk: Walk,
    tally: &'t mut Tally,
    /// The previous key.
    before: Option<&'a [u8]>,
}

/// Checks and counts everything reachable from the root.
///
/// # Errors
/// `Corruption`.
pub(super) fn check(trie: TrieView<'_>, tally: &mut Tally) -> Result<()> {
    let mut check = Check { trie, walk: Walk::new(), tally, before: None };
    check.walk.start(&trie, true)?;
    while let Some(step) = check.walk.next(&trie)? {
        match step {
            Step::Enter(node) => check.enter(&node)?,
            Step::Key(newest) => check.key(newest)?,
            Step::Leave(node) => check.leave(&node)?,
        }
    }
    Ok(())
}

impl<'a> Check<'a, '_> {
    fn enter(&mut self, node: &NodeView) -> Result<()> {
        self.tally.marks.take(node.at, node.at + node.kind.bytes() as u64, "a node")?;
        self.tally.locked_nodes += u64::from(node.is_locked);
        let (sample, ends_here) = node.sample.split_sample();
        let children = self.children(node)?;
        if children + usize::from(ends_here) < 2 {
            return Err(wrong(node.at, "a node that parts no keys"));
        }
        // Leaves reached before the node do not lie below it.
        if sample.is_null() || self.tally.marks.is_leaf(self.trie.leaf_offset(sample)) {
            return Err(wrong(node.at, "a node's sample is no leaf below it"));
        }
        Ok(())
    }

    /// The number of children. Each byte has one at most.
    fn children(&self, node: &NodeView) -> Result<usize> {
        let trie = &self.trie;
        if node.kind == Kind::N256 {
            let mut children = 0;
            for i in 0..Kind::N256.children_max() {
                children += usize::from(!trie.child(node, i)?.is_null());
            }
            return Ok(children);
        }
        let mut seen = [false; 256];
        for (i, &byte) in trie.labels(node)?.iter().enumerate() {
            if trie.child(node, i)?.is_null() {
                return Err(wrong(node.at, format!("child {i} of a node leads nowhere")));
            }
            if seen.get_mut(usize::from(byte)).is_some_and(|seen| std::mem::replace(seen, true)) {
                return Err(wrong(node.at, format!("two children of a node at byte {byte}")));
            }
        }
        Ok(node.children)
    }

    fn leave(&mut self, node: &NodeView) -> Result<()> {
        let (sample, _) = node.sample.split_sample();
        if self.tally.marks.is_leaf(self.trie.leaf_offset(sample)) {
            return Ok(());
        }
        Err(wrong(node.at, "a node's sample is no leaf below it"))
    }

    fn key(&mut self, newest: Link) -> Result<()> {
        let leaf = self.trie.leaf(newest)?;
        let key = leaf.entry.user_key();
        self.walk.check_way(leaf.at, key, self.before)?;
        self.before = Some(key);
        if self.check_versions(newest, key)? {
            self.check_jumps_arrive(newest)?;
        }
        Ok(())
    }

    /// Checks the versions of `key` from the newest on; true if one has a jump.
    fn check_versions(&mut self, newest: Link, key: &[u8]) -> Result<bool> {
        let (mut link, mut trailer_max, mut jumps) = (newest, u64::MAX, false);
        while !link.is_null() {
            let leaf = self.trie.leaf(link)?;
            self.tally.marks.take(leaf.at, leaf.entry.end, "a leaf")?;
            self.tally.marks.record_leaf(leaf.at);
            if leaf.entry.user_key() != key {
                return Err(wrong(leaf.at, "an older version of another key"));
            }
            if leaf.entry.trailer() > trailer_max {
                return Err(wrong(leaf.at, "a newer version behind an older one"));
            }
            if let Some((to, span)) = leaf.jump {
                jumps |= self.check_jump(&leaf, to, span)?;
            }
            self.tally.point(leaf.at, &leaf.entry)?;
            (link, trailer_max) = (leaf.next, leaf.entry.trailer());
        }
        Ok(jumps)
    }

    /// Checks that a jump leads to a leaf not reached yet. Returns false for an empty jump: null, with a span of at
    /// most 1.
    fn check_jump(&self, leaf: &LeafView<'_>, to: Link, span: u32) -> Result<bool> {
        if to.is_null() && span <= 1 {
            return Ok(false);
        }
        if to.is_null() || !to.is_leaf() || self.tally.marks.is_leaf(self.trie.leaf_offset(to)) {
            return Err(wrong(leaf.at, "a jump does not lead to an older version"));
        }
        Ok(true)
    }

    /// Checks that every jump's target was reached since, so it is among the versions behind the jump.
    fn check_jumps_arrive(&self, newest: Link) -> Result<()> {
        let mut link = newest;
        while !link.is_null() {
            let leaf = self.trie.leaf(link)?;
            let misses = |to: Link| !to.is_null() && !self.tally.marks.is_leaf(self.trie.leaf_offset(to));
            if leaf.jump.is_some_and(|(to, _)| misses(to)) {
                return Err(wrong(leaf.at, "a jump leads to no version of its key"));
            }
            link = leaf.next;
        }
        Ok(())
    }
}
