//! A table's parts for one read, and the descent shared by all searches.

use base::{Error, Result};

use super::FastTable;
use super::group::Group;
use super::heads::Heads;
use super::node::Node;

/// The parts of the mapped file used by a read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) table: &'a FastTable,
    /// The groups.
    pub(super) data: &'a [u8],
    pub(super) nodes: &'a [u8],
    /// Compare checksums, once per extent.
    pub(super) verify: bool,
}

impl FastTable {
    #[inline]
    pub(super) fn reading(&self, verify: bool) -> Reading<'_> {
        let (bytes, footer) = (self.file.bytes(), &self.file.footer);
        let parts = bytes.split_at_checked(footer.data_bytes as usize);
        let (data, rest) = parts.unwrap_or_default();
        let nodes = rest.get(..footer.nodes_bytes as usize).unwrap_or_default();
        Reading { table: self, data, nodes, verify }
    }
}

impl<'a> Reading<'a> {
    #[inline]
    pub(super) fn heads(&self) -> Heads {
        self.table.heads
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    #[cold]
    pub(super) fn damaged(&self, what: &str, at: usize) -> Error {
        self.table.damaged(what, at)
    }

    /// The group at `at`.
    #[inline(always)]
    pub(super) fn group(&self, at: usize) -> Result<Group<'a>> {
        let rest = self.data.get(at..).unwrap_or_default();
        let len = rest.first_chunk().map_or(0, Group::bytes_of);
        let Some(group) = rest.get(..len).and_then(|bytes| Group::parse(bytes, self.heads())) else {
            return Err(self.damaged("a group", at));
        };
        self.check(at, len)?;
        Ok(group)
    }

    /// The node at `at` of the nodes. Fails if its level is not `level`.
    #[inline(always)]
    pub(super) fn node(&self, at: usize, level: u32) -> Result<Node<'a>> {
        let rest = self.nodes.get(at..).unwrap_or_default();
        let len = rest.first_chunk().map_or(0, Node::bytes_of);
        let node = rest.get(..len).and_then(|bytes| Node::parse(bytes, self.heads()));
        let Some(node) = node.filter(|node| u32::from(node.level()) == level) else {
            return Err(self.damaged("a node", self.data.len() + at));
        };
        self.check(self.data.len() + at, len)?;
        Ok(node)
    }

    #[inline(always)]
    pub(super) fn check(&self, at: usize, len: usize) -> Result<()> {
        if self.verify { self.table.file.check(at..at + len) } else { Ok(()) }
    }

    /// Offset of the group reached by `choose`. The table must not be empty.
    #[inline]
    pub(super) fn descend(&self, choose: impl Fn(&Node<'a>) -> Option<usize>) -> Result<usize> {
        let mut at = self.table.file.footer.root as usize;
        for level in (1..=self.table.file.footer.levels).rev() {
            at = self.child(at, level, &choose)?;
        }
        Ok(at)
    }

    #[inline(always)]
    pub(super) fn child(&self, at: usize, level: u32, choose: impl Fn(&Node<'a>) -> Option<usize>) -> Result<usize> {
        let node = self.node(at, level)?;
        let child = choose(&node).and_then(|nth| node.child(nth)).and_then(|child| usize::try_from(child).ok());
        child.ok_or_else(|| self.damaged("a node", self.data.len() + at))
    }

    /// Offset of the group for internal key `target`.
    #[inline]
    pub(super) fn group_for(&self, target: &[u8]) -> Result<usize> {
        self.descend(|node| node.child_for(target, self.heads(), &self.table.file.order))
    }
}
