//! Looking a key up in a trie that was not checked. See [`crate::trie::tree`] for how the live one does.

use base::Result;

use crate::image::trie::{LeafView, NodeView, TrieView};
use crate::image::view::wrong;
use crate::trie::layout::Link;

impl<'a> TrieView<'a> {
    /// The newest version of `key`.
    ///
    /// # Errors
    /// `Corruption`: a reference leads out of the image or to what it does not say, or the way to where the key is not
    /// there is not the key's.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<LeafView<'a>>> {
        let mut link = self.root()?;
        let mut from = 0;
        while !link.is_leaf() {
            let node = self.node_below(link, from)?;
            let depth = node.depth as usize;
            link = match key.get(depth) {
                Some(&byte) => self.child_at(&node, byte)?,
                None if key.len() == depth => node.own(),
                None => Link::NULL,
            };
            if link.is_null() {
                return self.absent(key, &node);
            }
            from = u64::from(node.depth) + 1;
        }
        if link.is_null() {
            return Ok(None);
        }
        let leaf = self.leaf(link)?;
        if leaf.entry.user_key() == key {
            return Ok(Some(leaf));
        }
        self.check_way(key, &leaf, u64::MAX)?;
        Ok(None)
    }

    /// That `key` is not there, as a descent found at `node`.
    fn absent(&self, key: &[u8], node: &NodeView) -> Result<Option<LeafView<'a>>> {
        let witness = self.leaf(node.witness())?;
        self.check_way(key, &witness, node.depth.into())?;
        Ok(None)
    }

    /// That `leaf` lies where a descent for `key` leads, as far as nodes of a depth below `end`: that it has the key's byte
    /// at each. A link to another part of the trie is found out so.
    #[cold]
    fn check_way(&self, key: &[u8], leaf: &LeafView<'_>, end: u64) -> Result<()> {
        let found = leaf.entry.user_key();
        let mut link = self.root()?;
        let mut from = 0;
        while !link.is_leaf() {
            let node = self.node_below(link, from)?;
            if u64::from(node.depth) >= end {
                break;
            }
            let depth = node.depth as usize;
            let Some(&byte) = key.get(depth) else {
                // It was the node's own leaf.
                return if found.len() == depth { Ok(()) } else { Err(astray(leaf, depth)) };
            };
            if found.get(depth) != Some(&byte) {
                return Err(astray(leaf, depth));
            }
            link = self.child_at(&node, byte)?;
            from = u64::from(node.depth) + 1;
        }
        Ok(())
    }
}

fn astray(leaf: &LeafView<'_>, depth: usize) -> base::Error {
    wrong(leaf.at, format!("a key does not agree with its way at byte {depth}"))
}
