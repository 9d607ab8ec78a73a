//! Lookups in an unchecked trie. The live lookup: [`crate::trie::tree`].
//!
//! Finding a key proves its path. So a lookup first takes the fast path, reading no more than the live one. Only if the
//! key is not found is the path repeated with each node checked.

use base::Result;

use crate::image::trie::{LeafView, NodeView, TrieView};
use crate::image::view::wrong;
use crate::trie::layout::{DEPTH_AT, Header, Kind, Link, Target};

impl<'a> TrieView<'a> {
    /// The newest version of `key`.
    ///
    /// # Errors
    /// `Corruption`: a reference leaves the image or leads to another kind of block, or the path to an absent key does
    /// not agree with the key.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<LeafView<'a>>> {
        let (mut link, mut from) = (self.root()?, 0);
        while !link.is_leaf() {
            link = self.step(link, &mut from, key)?;
        }
        if !link.is_null() {
            let leaf = self.leaf(link)?;
            if leaf.entry.user_key() == key {
                return Ok(Some(leaf));
            }
        }
        self.find_checked(key)
    }

    /// Steps from the node at `link`, reached with `from` bytes of `key` used, to the child at the key's next byte; to
    /// the node's own leaf if the key ends there; else to null. Each step uses more bytes of the key, so paths end.
    #[inline(always)]
    fn step(&self, link: Link, from: &mut usize, key: &[u8]) -> Result<Link> {
        let at = self.node_offset(link);
        let (kind, children, depth) = match link.target() {
            Target::Dense => (Kind::N256, 0, *from),
            Target::N256 => (Kind::N256, 0, self.word(at + DEPTH_AT)? as usize),
            Target::N4 | Target::Middle | Target::Leaf => {
                let [header, depth] = self.words(at)?;
                let header = Header(header);
                let kind = header.kind().filter(|kind| *kind != Kind::N256 && header.children() <= kind.children_max());
                let kind = kind.ok_or_else(|| wrong(at, "no node where a link says so"))?;
                (kind, header.children(), depth as usize)
            }
        };
        let Some(&byte) = key.get(depth) else {
            return if key.len() == depth { Ok(self.node(link)?.own()) } else { Ok(Link::NULL) };
        };
        if depth < *from {
            return Err(wrong(at, format!("a node of depth {depth} where {from} bytes are used")));
        }
        *from = depth + 1;
        self.child_of(at, kind, children, byte)
    }

    /// As [`find`](Self::find), checking every node on the path.
    #[cold]
    fn find_checked(&self, key: &[u8]) -> Result<Option<LeafView<'a>>> {
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

    /// Checks that `key` is absent, after a descent ended at `node`.
    fn absent(&self, key: &[u8], node: &NodeView) -> Result<Option<LeafView<'a>>> {
        let witness = self.leaf(node.witness())?;
        self.check_way(key, &witness, node.depth.into())?;
        Ok(None)
    }

    /// Checks that `leaf` lies on the path of `key`, for nodes of a depth below `end`: it has the key's byte at each.
    /// This detects a link to another part of the trie.
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
                // The node's own leaf was found.
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
