//! Byte layout of a trie's arena, sufficient to read and check an image without the writing code. All numbers are
//! little-endian in an image; offsets are from the arena's start.
//!
//! **Link**: 32 bits; 0 is null. `SHIFT` is 2 for arenas of at most 16 GiB, 3 for at most 32 GiB.
//!
//! | bits | leads to | offset | aligned to |
//! |---|---|---|---|
//! | `......0` | a leaf | `(link & !1) << SHIFT` | `2 << SHIFT` |
//! | `....001` | an N4 | `(link & !7) << SHIFT` | `8 << SHIFT` |
//! | `....011` | an N10, N23 or N48: see its header | as above | as above |
//! | `....101` | an N256 | as above | as above |
//! | `....111` | an N256 without skips: of depth one more than its parent's, or 0 at the root | as above | as above |
//!
//! **Head**, [`HEAD_BYTES`] at the offset named by [`super::memory::Memory::head`]. The bytes before it, the image's
//! own header and alignment padding, belong to no block.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | link to the root: 0, a leaf or a node |
//! | 4 | 4 | [`LAYOUT_VERSION`] |
//! | 8 | 8 | the newest range deletion, in granules of 8 bytes; 0 for none (see [`crate::tombstones`]) |
//! | 16 | 48 | zero |
//!
//! **Node**: the keys below it share their first `depth` bytes and diverge at the next.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | header: bits 0-7 children (0 in an N256), 8-10 kind, 11 locked, 12 obsolete, others zero |
//! | 4 | 4 | depth |
//! | 8 | 4 | sample: link to some leaf below; bit 0 set if the leaf's key ends here (it is `depth` bytes long) |
//! | 12 | n | not in an N256: one byte for each child, in insertion order; later bytes are undefined |
//! | see below | 4 n | links to children, in the same order; in an N256 by their byte, 0 for none |
//!
//! | kind | number | children at most | child links at | size |
//! |---|---|---|---|---|
//! | N4 | 0 | 4 | 16 | 32 |
//! | N10 | 1 | 10 | 24 | 64 |
//! | N23 | 2 | 23 | 36 | 128 |
//! | N48 | 3 | 48 | 60 | 256 (4 unused) |
//! | N256 | 4 | 256 | 64 (12-63 unused) | 1088 |
//!
//! A child's depth is greater than its parent's. Keys below the child agree on the bytes between, and a descent skips
//! those bytes. A node has at least one child besides its own leaf, or two. A node marked obsolete was replaced by a
//! larger one and is unreachable from the head. Lock bits in an image are meaningless.
//!
//! **Leaf**: one version of one key. A link leads to the key's newest version.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | link to the next older version (a smaller or equal trailer), 0 for none |
//! | 4 | 4 | bits 0-1 *rank*: 0 for a key's oldest version, 3 from the fourth on; bit 2 *long*; not long: bits 3-12 length of the user key, 13-31 of the value |
//! | 8 | 8 | only if long: length of the user key, of the value, 32 bits each |
//! | | 8 | only if the rank is 3, the *jump*: link to an older version, 0 for none; a lower bound on the `next` links spanned |
//! | | n | user key |
//! | | 8 | trailer, `sequence << 8 or kind` |
//! | | n | value |
//!
//! Ranks and jumps (see [`super::versions`]) are hints to shorten a search: the `next` links alone define the order of
//! a key's versions.

/// Version of this whole layout. Images of other versions are not read.
pub(crate) const LAYOUT_VERSION: u32 = 1;

/// `SHIFT` of links in arenas up to [`NEAR_BYTES_MAX`].
pub(crate) const NEAR_SHIFT: u32 = 2;

/// `SHIFT` of links in larger arenas.
pub(crate) const FAR_SHIFT: u32 = 3;

/// Reach of links of [`NEAR_SHIFT`]: 16 GiB.
pub(crate) const NEAR_BYTES_MAX: u64 = 1 << (32 + NEAR_SHIFT);

pub(crate) const HEAD_BYTES: usize = 64;
pub(crate) const ROOT_AT: u64 = 0;
pub(crate) const VERSION_AT: u64 = 4;
pub(crate) const TOMBSTONES_AT: u64 = 8;

pub(crate) const HEADER_AT: u64 = 0;
pub(crate) const DEPTH_AT: u64 = 4;
pub(crate) const SAMPLE_AT: u64 = 8;
pub(crate) const KEYS_AT: u64 = 12;

pub(crate) const NEXT_AT: u64 = 0;
pub(crate) const META_AT: u64 = 4;

/// Bytes of a leaf before its lengths, its jump and its key.
pub(crate) const LEAF_FIXED_BYTES: usize = 8;

/// Bytes of a leaf's long lengths, and of its jump.
pub(crate) const LEAF_PART_BYTES: usize = 8;

/// The rank from which a leaf has a jump.
pub(crate) const RANK_MAX: u32 = 3;

/// A place in the arena, in bytes from its start.
pub(crate) type Offset = u64;

/// Alignment of nodes, in bytes. Every block the trie allocates from its arena is a multiple of it.
pub(crate) const fn unit_bytes(shift: u32) -> usize {
    8 << shift
}

/// Alignment of leaves, in bytes.
pub(crate) const fn leaf_align_bytes(shift: u32) -> usize {
    2 << shift
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    N4 = 0,
    N10 = 1,
    N23 = 2,
    N48 = 3,
    N256 = 4,
}

impl Kind {
    #[inline]
    pub(crate) const fn from_number(number: u32) -> Option<Kind> {
        Some(match number {
            0 => Kind::N4,
            1 => Kind::N10,
            2 => Kind::N23,
            3 => Kind::N48,
            4 => Kind::N256,
            _ => return None,
        })
    }

    #[inline]
    pub(crate) const fn children_max(self) -> usize {
        match self {
            Kind::N4 => 4,
            Kind::N10 => 10,
            Kind::N23 => 23,
            Kind::N48 => 48,
            Kind::N256 => 256,
        }
    }

    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Kind::N4 => 32,
            Kind::N10 => 64,
            Kind::N23 => 128,
            Kind::N48 => 256,
            Kind::N256 => 1088,
        }
    }

    /// Offset of the first child's link in a node.
    #[inline]
    pub(crate) const fn children_at(self) -> u64 {
        match self {
            Kind::N4 => 16,
            Kind::N10 => 24,
            Kind::N23 => 36,
            Kind::N48 => 60,
            Kind::N256 => 64,
        }
    }

    /// The kind a full node of this kind grows into.
    pub(crate) const fn larger(self) -> Kind {
        match self {
            Kind::N4 => Kind::N10,
            Kind::N10 => Kind::N23,
            Kind::N23 => Kind::N48,
            Kind::N48 | Kind::N256 => Kind::N256,
        }
    }
}

/// Target of a link, as encoded in its low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Leaf,
    N4,
    /// N10, N23 or N48.
    Middle,
    N256,
    /// An N256 without skipped bytes.
    Dense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(pub(crate) u32);

impl Link {
    pub(crate) const NULL: Link = Link(0);

    /// Flag in a node's sample: the leaf's key ends at the node.
    pub(crate) const ENDS_HERE: u32 = 1;

    #[inline]
    pub(crate) fn leaf(at: Offset, shift: u32) -> Link {
        Link((at >> shift) as u32)
    }

    /// A link to a node of `kind`. `skips`: bytes are skipped between its parent (the key's start, at the root) and the
    /// node.
    #[inline]
    pub(crate) fn node(at: Offset, shift: u32, kind: Kind, skips: bool) -> Link {
        let tag = match (kind, skips) {
            (Kind::N4, _) => 0b001,
            (Kind::N256, true) => 0b101,
            (Kind::N256, false) => 0b111,
            _ => 0b011,
        };
        Link((at >> shift) as u32 | tag)
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// True for leaves and for the null link.
    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.0 & 1 == 0
    }

    #[inline]
    pub(crate) fn target(self) -> Target {
        match self.0 & 0b111 {
            0b001 => Target::N4,
            0b011 => Target::Middle,
            0b101 => Target::N256,
            0b111 => Target::Dense,
            _ => Target::Leaf,
        }
    }

    #[inline]
    pub(crate) fn leaf_offset(self, shift: u32) -> Offset {
        u64::from(self.0 & !1) << shift
    }

    #[inline]
    pub(crate) fn node_offset(self, shift: u32) -> Offset {
        u64::from(self.0 & !0b111) << shift
    }

    /// Splits a node's sample into the leaf and whether its key ends there.
    #[inline]
    pub(crate) fn split_sample(self) -> (Link, bool) {
        (Link(self.0 & !Link::ENDS_HERE), self.0 & Link::ENDS_HERE != 0)
    }

    #[inline]
    pub(crate) fn ending_here(self) -> Link {
        Link(self.0 | Link::ENDS_HERE)
    }
}

/// A node's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) u32);

impl Header {
    const KIND_SHIFT: u32 = 8;
    pub(crate) const LOCKED: u32 = 1 << 11;
    pub(crate) const OBSOLETE: u32 = 1 << 12;

    #[inline]
    pub(crate) fn new(kind: Kind, children: usize) -> Header {
        Header(children as u32 | (kind as u32) << Self::KIND_SHIFT)
    }

    #[inline]
    pub(crate) fn children(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    /// `None` for an unknown number: possible only in a damaged image.
    #[inline]
    pub(crate) fn kind(self) -> Option<Kind> {
        Kind::from_number((self.0 >> Self::KIND_SHIFT) & 0b111)
    }

    #[inline]
    pub(crate) fn is_free(self) -> bool {
        self.0 & (Self::LOCKED | Self::OBSOLETE) == 0
    }

    #[inline]
    pub(crate) fn locked(self) -> Header {
        Header(self.0 | Self::LOCKED)
    }

    /// The header without its lock bit. Applied before an image's first use: the lock's holder is gone.
    pub(crate) fn unlocked(self) -> Header {
        Header(self.0 & !Self::LOCKED)
    }

    /// One child more. The header must not be that of a full node.
    #[inline]
    pub(crate) fn with_another(self) -> Header {
        Header(self.0 + 1)
    }
}

/// Lengths and form of a leaf: the word at [`META_AT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(pub(crate) u32);

impl Meta {
    const LONG: u32 = 1 << 2;
    const KEY_SHIFT: u32 = 3;
    const KEY_BITS: u32 = 10;
    const VALUE_SHIFT: u32 = Self::KEY_SHIFT + Self::KEY_BITS;

    #[inline]
    pub(crate) fn new(rank: u32, key_len: usize, value_len: usize) -> Meta {
        if key_len < 1 << Self::KEY_BITS && value_len < 1 << (32 - Self::VALUE_SHIFT) {
            return Meta(rank | (key_len as u32) << Self::KEY_SHIFT | (value_len as u32) << Self::VALUE_SHIFT);
        }
        Meta(rank | Self::LONG)
    }

    #[inline]
    pub(crate) fn rank(self) -> u32 {
        self.0 & RANK_MAX
    }

    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.0 & Self::LONG != 0
    }

    #[inline]
    pub(crate) fn has_jump(self) -> bool {
        self.rank() == RANK_MAX
    }

    /// Lengths of key and value; not those of a long leaf.
    #[inline]
    pub(crate) fn short_lengths(self) -> (usize, usize) {
        let key_len = (self.0 >> Self::KEY_SHIFT) & ((1 << Self::KEY_BITS) - 1);
        (key_len as usize, (self.0 >> Self::VALUE_SHIFT) as usize)
    }

    /// Where a leaf's jump lies, if it has one.
    #[inline]
    pub(crate) fn jump_at(self) -> u64 {
        LEAF_FIXED_BYTES as u64 + if self.is_long() { LEAF_PART_BYTES as u64 } else { 0 }
    }

    /// Where a leaf's key begins.
    #[inline]
    pub(crate) fn key_at(self) -> u64 {
        self.jump_at() + if self.has_jump() { LEAF_PART_BYTES as u64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 5] = [Kind::N4, Kind::N10, Kind::N23, Kind::N48, Kind::N256];

    #[test]
    fn nodes_have_room_for_their_parts() {
        for kind in KINDS {
            assert_eq!(Kind::from_number(kind as u32), Some(kind));
            let keys_end = if kind == Kind::N256 { KEYS_AT } else { KEYS_AT + kind.children_max() as u64 };
            assert!(keys_end <= kind.children_at() && kind.children_at().is_multiple_of(4));
            assert!(kind.children_at() as usize + 4 * kind.children_max() <= kind.bytes());
            assert!(kind.bytes().is_multiple_of(unit_bytes(NEAR_SHIFT)));
            let header = Header::new(kind, 3);
            assert_eq!((header.kind(), header.children(), header.is_free()), (Some(kind), 3, true));
            assert_eq!(header.locked().unlocked(), header);
            assert!(!header.locked().is_free());
        }
    }

    #[test]
    fn links_reach_the_ends_of_their_arenas() {
        for (shift, bytes) in [(NEAR_SHIFT, NEAR_BYTES_MAX), (FAR_SHIFT, 2 * NEAR_BYTES_MAX)] {
            let last = bytes - leaf_align_bytes(shift) as u64;
            let leaf = Link::leaf(last, shift);
            assert!(leaf.is_leaf() && leaf.target() == Target::Leaf);
            assert_eq!(leaf.leaf_offset(shift), last);
            assert_eq!(leaf.ending_here().split_sample(), (leaf, true));
            let last = bytes - unit_bytes(shift) as u64;
            for (kind, skips, target) in [
                (Kind::N4, true, Target::N4),
                (Kind::N10, false, Target::Middle),
                (Kind::N23, true, Target::Middle),
                (Kind::N48, true, Target::Middle),
                (Kind::N256, true, Target::N256),
                (Kind::N256, false, Target::Dense),
            ] {
                let node = Link::node(last, shift, kind, skips);
                assert_eq!((node.target(), node.node_offset(shift), node.is_leaf()), (target, last, false));
            }
        }
    }

    #[test]
    fn lengths_round_trip_and_long_ones_say_so() {
        for (key_len, value_len, is_long) in
            [(0, 0, false), (1023, (1 << 19) - 1, false), (1024, 0, true), (0, 1 << 19, true)]
        {
            for rank in 0..=RANK_MAX {
                let meta = Meta::new(rank, key_len, value_len);
                assert_eq!((meta.rank(), meta.is_long(), meta.has_jump()), (rank, is_long, rank == 3));
                assert_eq!(meta.key_at(), 8 + 8 * u64::from(is_long) + 8 * u64::from(rank == 3));
                assert!(is_long || meta.short_lengths() == (key_len, value_len));
            }
        }
    }
}
