//! The nodes above the groups: separators of their children, searched by heads. Format: docs/format/fast.md, "Nodes".

use base::bytes::shared_prefix;
use base::coding::{decode_u32, put_u32, put_u64};
use base::key::{self, SEEK_KIND};
use base::{SeqNo, UserOrder};

use super::heads::{Heads, StoredHead, rank};

/// Children of a node, at most.
const CHILDREN_MAX: usize = 64;

/// A node's header: separators (1 byte), level (1), bytes of the prefix (2), bytes of the node (4).
const HEADER_BYTES: usize = 8;

/// Levels of nodes, at most: 64^11 groups are more than a file has bytes.
pub(super) const LEVELS_MAX: u32 = 11;

/// A node in a file. Its bounds are checked, its contents are not.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    bytes: &'a [u8],
    level: u8,
    heads: &'a [StoredHead],
    children: &'a [[u8; 8]],
    starts: &'a [[u8; 4]],
    prefix: &'a [u8],
}

impl<'a> Node<'a> {
    /// Bytes of the node with this header.
    #[inline]
    pub(super) fn bytes_of(header: &[u8; HEADER_BYTES]) -> usize {
        header.get(4..).and_then(decode_u32).unwrap_or_default() as usize
    }

    /// `bytes`: the whole node. `None` if it is shorter than its directory and prefix.
    #[inline]
    pub(super) fn parse(bytes: &'a [u8], heads: Heads) -> Option<Node<'a>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [count, level, prefix_low, prefix_high, ..] = *header;
        let count = usize::from(count);
        let (head_bytes, rest) = rest.split_at_checked(heads.bytes_of(count))?;
        let (children, rest) = rest.split_at_checked((count + 1) * size_of::<u64>())?;
        let (starts, rest) = rest.split_at_checked(count * size_of::<u32>())?;
        let prefix = rest.get(..usize::from(u16::from_le_bytes([prefix_low, prefix_high])))?;
        let (heads, children) = (head_bytes.as_chunks().0, children.as_chunks().0);
        Some(Node { bytes, level, heads, children, starts: starts.as_chunks().0, prefix })
    }

    /// 1 above groups, one more per level.
    #[inline]
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn children(&self) -> usize {
        self.children.len()
    }

    /// Offset of a child.
    #[inline]
    pub(super) fn child(&self, nth: usize) -> Option<u64> {
        self.children.get(nth).map(|child| u64::from_le_bytes(*child))
    }

    /// The separator, an internal key, between child `nth` and the one after it.
    pub(super) fn separator(&self, nth: usize) -> Option<&'a [u8]> {
        let start = |nth: usize| self.starts.get(nth).map(|start| u32::from_le_bytes(*start) as usize);
        self.bytes.get(start(nth)?..start(nth + 1).unwrap_or(self.bytes.len()))
    }

    /// The common prefix of all user keys below.
    pub(super) fn prefix(&self) -> &'a [u8] {
        self.prefix
    }

    /// Whether the stored head of a separator is right.
    pub(super) fn has_head(&self, nth: usize, heads: Heads) -> bool {
        let rest = self.separator(nth).and_then(|separator| key::user_key(separator).strip_prefix(self.prefix));
        match self.heads.get(nth) {
            Some(stored) => rest.is_some_and(|rest| heads.head(rest) == u32::from_le_bytes(*stored)),
            None => rest.is_some(),
        }
    }

    /// The child for internal key `target`. `None` if the node is damaged.
    #[inline]
    pub(super) fn child_for(&self, target: &[u8], heads: Heads, order: &base::InternalOrder) -> Option<usize> {
        let rest = match heads.strip(key::user_key(target), self.prefix) {
            Ok(rest) => rest,
            Err(side) => return Some(if side.is_lt() { 0 } else { self.children.len() - 1 }),
        };
        let is_before = |nth: usize| Some(order.compare(self.separator(nth)?, target).is_le());
        rank(self.heads, self.starts.len(), heads.head(rest), is_before)
    }
}

/// Builds the nodes while groups are written. Children are complete before their parent, and lie before it.
pub(super) struct NodesBuilder {
    heads: Heads,
    /// The open node of each level.
    open: Vec<OpenNode>,
    /// The complete nodes, encoded.
    nodes: Vec<u8>,
}

#[derive(Default)]
struct OpenNode {
    /// Before its first child.
    separator: Vec<u8>,
    /// The first user key below.
    first_key: Vec<u8>,
    children: Vec<u64>,
    /// Separators between the children, and the end of each.
    separators: Vec<u8>,
    ends: Vec<usize>,
}

/// A complete subtree.
#[derive(Clone, Copy)]
pub(super) struct Subtree<'a> {
    pub(super) at: u64,
    /// Internal key: after every key before the subtree, and not after its first key.
    pub(super) separator: &'a [u8],
    /// User keys.
    pub(super) first_key: &'a [u8],
    pub(super) last_key: &'a [u8],
}

/// The nodes of a table.
pub(super) struct Nodes {
    pub(super) bytes: Vec<u8>,
    /// Levels of nodes above the groups.
    pub(super) levels: u32,
    /// Offset of the topmost node, or of the only group.
    pub(super) root: u64,
}

impl NodesBuilder {
    pub(super) fn new(heads: Heads) -> Self {
        NodesBuilder { heads, open: Vec::new(), nodes: Vec::new() }
    }

    /// Bytes of all nodes so far, about.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.len() + self.open.iter().map(OpenNode::bytes).sum::<usize>()
    }

    /// Adds a group.
    pub(super) fn add(&mut self, group: Subtree<'_>) {
        self.add_at(0, group);
    }

    fn add_at(&mut self, level: usize, subtree: Subtree<'_>) {
        if self.open.len() == level {
            self.open.push(OpenNode::default());
        }
        let Some(node) = self.open.get_mut(level) else { return };
        node.add(subtree);
        if node.children.len() == CHILDREN_MAX {
            self.end_node(level, subtree.last_key);
        }
    }

    /// Writes the open node of a level and adds it to the one above.
    fn end_node(&mut self, level: usize, last_key: &[u8]) {
        let Some(node) = self.open.get_mut(level).map(std::mem::take) else { return };
        let at = self.nodes.len() as u64;
        node.encode_to(&mut self.nodes, level, self.heads, last_key);
        let OpenNode { separator, first_key, .. } = &node;
        self.add_at(level + 1, Subtree { at, separator, first_key, last_key });
    }

    /// Ends all nodes; `last_key` is the table's last user key.
    pub(super) fn finish(mut self, last_key: &[u8]) -> Nodes {
        let mut level = 0;
        loop {
            let is_top = level + 1 >= self.open.len();
            let children = self.open.get(level).map_or(&[][..], |node| &node.children);
            match *children {
                [root] if is_top => return Nodes { bytes: self.nodes, levels: level as u32, root },
                [] if is_top => return Nodes { bytes: self.nodes, levels: 0, root: 0 },
                [] => {}
                [..] => self.end_node(level, last_key),
            }
            level += 1;
        }
    }
}

impl OpenNode {
    fn bytes(&self) -> usize {
        self.separators.len() + self.children.len() * (size_of::<u64>() + size_of::<usize>())
    }

    fn add(&mut self, subtree: Subtree<'_>) {
        if self.children.is_empty() {
            self.separator.extend_from_slice(subtree.separator);
            self.first_key.extend_from_slice(subtree.first_key);
        } else {
            self.separators.extend_from_slice(subtree.separator);
            self.ends.push(self.separators.len());
        }
        self.children.push(subtree.at);
    }

    fn encode_to(&self, out: &mut Vec<u8>, level: usize, heads: Heads, last_key: &[u8]) {
        let count = self.ends.len();
        let shared = heads.shared(&self.first_key, last_key);
        let prefix = self.first_key.get(..shared).unwrap_or_default();
        let directory =
            HEADER_BYTES + heads.bytes_of(count) + (count + 1) * size_of::<u64>() + count * size_of::<u32>();
        let first_start = directory + prefix.len();
        out.extend_from_slice(&[count as u8, level as u8 + 1]);
        out.extend_from_slice(&(prefix.len() as u16).to_le_bytes());
        put_u32(out, (first_start + self.separators.len()) as u32);
        let starts = || [0].into_iter().chain(self.ends.iter().copied());
        if heads != Heads::None {
            for (start, &end) in starts().zip(&self.ends) {
                let separator = key::user_key(self.separators.get(start..end).unwrap_or_default());
                put_u32(out, heads.head(separator.get(prefix.len()..).unwrap_or_default()));
            }
        }
        self.children.iter().for_each(|&child| put_u64(out, child));
        starts().take(count).for_each(|start| put_u32(out, (first_start + start) as u32));
        out.extend_from_slice(prefix);
        out.extend_from_slice(&self.separators);
    }
}

/// An internal key after `last` and not after its successor `first`; shortened in bytewise order.
pub(super) fn separator(out: &mut Vec<u8>, last: &[u8], first: &[u8], order: &UserOrder) {
    out.clear();
    let (last_user, first_user) = (key::user_key(last), key::user_key(first));
    if order.equal(last_user, first_user) {
        out.extend_from_slice(first);
        return;
    }
    let cut = match order {
        UserOrder::Bytewise => shared_prefix(last_user, first_user) + 1,
        UserOrder::ReverseBytewise | UserOrder::Custom(_) => first_user.len(),
    };
    key::append(out, first_user.get(..cut).unwrap_or(first_user), SeqNo::MAX, SEEK_KIND);
}
