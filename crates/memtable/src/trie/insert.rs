//! Insertion. An entry becomes visible by one release store or exchange; everything prepared before is unreachable. The
//! end of the descent selects the change:
//!
//! | the descent ends at | the change | published by |
//! |---|---|---|
//! | an empty slot of an N256, or no root | the leaf is stored there | exchange of the slot |
//! | a small node without the child | the leaf is added | store of the header with the new count |
//! | the same, full | a larger copy with the leaf | store of the link in the parent |
//! | a node where the key ends | the leaf goes into its sample | store, or exchange, of the sample |
//! | a leaf of the same key | one more version | replacing the link to the newest, or exchange of a `next` |
//! | any place the key diverges before | a node of two, above it | replacing the link to it |
//!
//! Writers lock small nodes by an exchange of the exact header seen, from the root down, and restart if the exchange
//! fails. A lock is held for a few stores and never waited for. Readers ignore locks.
//! - **T3** A published small node changes only under its lock, and never once it is obsolete.
//! - **T4** A link to a small node is replaced under the lock of the small node containing the link. A link in an N256
//!   or in the head is replaced under the lock of its target instead. The holder of those locks may replace the link if
//!   it is unchanged.

use base::bytes::shared_prefix;
use std::sync::atomic::Ordering::Release;

use super::layout::{Header, Kind, Link, Offset, RANK_MAX, Target};
use super::leaf::{Leaf, leaf_bytes};
use super::memory::Memory;
use super::node::Node;
use super::space::{Purse, Share, first_kind};
use super::tree::Tree;
use super::versions::{last_above, rank_before};
use crate::Entry;
use crate::record::trailer_of;
use crate::stripe::Stripe;

/// The place of a link, and the lock needed to replace it.
#[derive(Clone, Copy)]
struct Spot {
    at: Offset,
    owner: Owner,
}

#[derive(Clone, Copy)]
enum Owner {
    /// The head or an N256.
    Shared,
    /// The sample of an N256.
    Sample,
    /// A small node, and its header when the spot was found.
    Node(Offset, Header),
}

/// Where the descent for a key ended.
struct Place {
    /// The place of the last link followed, and the link.
    spot: Spot,
    link: Link,
    /// Bytes of the key used before that link.
    from: usize,
    /// The node containing the spot; null for the head.
    parent: Link,
    /// True if no byte was skipped on the way: all keys here share the bytes used.
    exact: bool,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    /// The link is null.
    Empty,
    /// The link leads to a leaf.
    Leaf,
    /// The link leads to a small node without a child for the key's byte.
    Missing { header: Header, depth: usize, byte: u8 },
    /// The key ends at the depth of the link's node. No header: an N256.
    Own { header: Option<Header> },
    /// The link leads to a node deeper than the key's length.
    Above,
}

/// An insertion in progress.
struct Work<'a> {
    entry: &'a Entry<'a>,
    trailer: u64,
    stripe: &'a Stripe<Share>,
    purse: &'a mut Purse,
    /// The entry's leaf, and the highest rank it has room for.
    leaf: Option<(Offset, u32)>,
    /// An allocated, unused node of the first kind.
    spare: Option<Offset>,
}

impl<M: Memory> Tree<M> {
    /// Inserts a point entry. `purse` must have received its reservation.
    pub(super) fn insert(&self, stripe: &Stripe<Share>, purse: &mut Purse, entry: &Entry<'_>) {
        let mut work = Work { entry, trailer: trailer_of(entry), stripe, purse, leaf: None, spare: None };
        let mut failures = 0;
        while !self.attempt(&self.locate(entry.user_key), &mut work) {
            self.memory().pause(failures);
            failures = failures.saturating_add(1);
        }
        if let Some(spare) = work.spare {
            self.space.keep_unit(&stripe.own, spare);
        }
    }

    fn locate(&self, key: &[u8]) -> Place {
        let mut spot = Spot { at: self.root_at(), owner: Owner::Shared };
        let (mut from, mut exact, mut parent) = (0, true, Link::NULL);
        loop {
            let link = self.link_at(spot.at);
            let place = |exact, end| Place { spot, link, from, parent, exact, end };
            if link.is_leaf() {
                return place(exact, if link.is_null() { End::Empty } else { End::Leaf });
            }
            let node = self.node(link);
            let header = match link.target() {
                Target::Dense | Target::N256 => None,
                _ => Some(node.header()),
            };
            let depth = self.depth(link, from);
            exact &= depth == from;
            let Some(&byte) = key.get(depth) else {
                return place(exact, if key.len() == depth { End::Own { header } } else { End::Above });
            };
            spot = match header {
                None => Spot { at: node.child_at(Kind::N256, byte.into()), owner: Owner::Shared },
                Some(header) => match node.find(header, byte) {
                    Some(at) => Spot { at, owner: Owner::Node(node.at, header) },
                    None => return place(exact, End::Missing { header, depth, byte }),
                },
            };
            from = depth + 1;
            parent = link;
        }
    }

    /// Makes the change selected by `place`. False if another writer interfered.
    fn attempt(&self, place: &Place, work: &mut Work<'_>) -> bool {
        let key = work.entry.user_key;
        let witness = match place.end {
            End::Leaf => place.link,
            _ if place.exact => Link::NULL,
            End::Empty => self.node(place.parent).sample().split_sample().0,
            End::Missing { .. } | End::Own { .. } | End::Above => self.node(place.link).sample().split_sample().0,
        };
        // No witness: no byte was skipped.
        let (agreed, other) = if witness.is_null() {
            (usize::MAX, None)
        } else {
            let witness = self.leaf(witness).user_key();
            let agreed = shared_prefix(key, witness);
            (agreed, witness.get(agreed).copied())
        };
        match place.end {
            End::Empty if agreed >= place.from.saturating_sub(1) => {
                let leaf = self.prepare(work, Link::NULL);
                self.replace(place.spot, place.link, leaf)
            }
            End::Leaf if agreed == key.len() && other.is_none() => {
                self.add_version(place.spot, place.link, |leaf| leaf, work)
            }
            End::Missing { header, depth, byte } if agreed >= depth => self.append(place, header, byte, work),
            End::Own { header } if agreed >= key.len() => self.end_here(place, header, work),
            _ => {
                let parting = if agreed >= place.from {
                    Some((place.spot, place.link, place.from))
                } else {
                    self.locate_deeper(key, agreed)
                };
                parting.is_some_and(|(spot, link, from)| {
                    let node = self.part(link, from, agreed, other, work);
                    let done = self.replace(spot, link, node);
                    work.spare = (!done).then(|| self.node(node).at);
                    done
                })
            }
        }
    }

    /// The first link on the path of `key` to a leaf or a node deeper than `depth`, its place, and the bytes used
    /// before it. `None` if a node of that depth has appeared.
    fn locate_deeper(&self, key: &[u8], depth: usize) -> Option<(Spot, Link, usize)> {
        let mut spot = Spot { at: self.root_at(), owner: Owner::Shared };
        let mut from = 0;
        loop {
            let link = self.link_at(spot.at);
            if link.is_leaf() {
                return (!link.is_null()).then_some((spot, link, from));
            }
            let (node, at_depth) = (self.node(link), self.depth(link, from));
            if at_depth > depth {
                return Some((spot, link, from));
            }
            let byte = key.get(at_depth).filter(|_| at_depth < depth)?;
            spot = match link.target() {
                Target::Dense | Target::N256 => {
                    Spot { at: node.child_at(Kind::N256, (*byte).into()), owner: Owner::Shared }
                }
                _ => {
                    let header = node.header();
                    Spot { at: node.find(header, *byte)?, owner: Owner::Node(node.at, header) }
                }
            };
            from = at_depth + 1;
        }
    }

    /// Replaces the link at `spot` if it is still `old`, and so publishes the target of `new`.
    fn replace(&self, spot: Spot, old: Link, new: Link) -> bool {
        let guard = match (spot.owner, old.target()) {
            (Owner::Node(at, header), _) => (Node::at(self.memory(), at), header),
            (Owner::Shared, Target::N4 | Target::Middle) => (self.node(old), self.node(old).header()),
            (Owner::Sample | Owner::Shared, _) => {
                // SAFETY: a spot is a word of the head or of a published node (T1, T2).
                return unsafe { self.memory().exchange(spot.at, old.0, new.0, Release) };
            }
        };
        let (node, header) = guard;
        if !node.lock(header) {
            return false;
        }
        let stands = self.link_at(spot.at) == old;
        if stands {
            self.publish(spot, new);
        }
        node.unlock(header);
        stands
    }

    /// Stores a link, and so publishes its target. The caller holds the lock required by T4.
    fn publish(&self, spot: Spot, new: Link) {
        // SAFETY: as in `replace`.
        unsafe { self.memory().store(spot.at, new.0, Release) };
    }

    /// Adds the leaf to the small node at `place.link`.
    fn append(&self, place: &Place, header: Header, byte: u8, work: &mut Work<'_>) -> bool {
        let kind = header.kind().expect("a node's kind was one when written (T1)");
        let leaf = self.prepare(work, Link::NULL);
        if header.children() == kind.children_max() {
            return self.grow(place, header, byte, work);
        }
        let node = self.node(place.link);
        if !node.lock(header) {
            return false;
        }
        work.purse.pay_credit(kind, header.children());
        node.unlock(node.add(header, byte, leaf));
        true
    }

    /// Replaces a full node by a larger one with the prepared leaf.
    fn grow(&self, place: &Place, header: Header, byte: u8, work: &mut Work<'_>) -> bool {
        let old = self.node(place.link);
        let parent = match place.spot.owner {
            Owner::Node(at, header) => Some((Node::at(self.memory(), at), header)),
            Owner::Shared | Owner::Sample => None,
        };
        if parent.is_some_and(|(node, header)| !node.lock(header)) {
            return false;
        }
        let mut done = old.lock(header);
        if done && self.link_at(place.spot.at) != place.link {
            old.unlock(header);
            done = false;
        }
        if done {
            let larger = self.enlarge(old, header, byte, work);
            let skips = old.depth() != place.from;
            let kind = header.kind().map_or(Kind::N256, Kind::larger);
            self.publish(place.spot, Link::node(larger, M::SHIFT, kind, skips));
            old.retire(header);
        }
        if let Some((node, header)) = parent {
            node.unlock(header);
        }
        done
    }

    /// A larger copy of a locked, full node, with the prepared leaf at `byte`.
    fn enlarge(&self, old: Node<'_, M>, header: Header, byte: u8, work: &mut Work<'_>) -> Offset {
        let kind = header.kind().expect("a node's kind was one when written (T1)");
        work.purse.take_credit(header);
        let at = self.space.node_block(&work.stripe.own, work.purse, kind.larger());
        let node = Node::at(self.memory(), at);
        let mut grown = node.begin(kind.larger(), old.depth(), old.sample());
        for i in 0..header.children() {
            grown = node.add(grown, old.key_byte(i), old.link(old.child_at(kind, i)));
        }
        let (leaf, _) = work.leaf.expect("the leaf was prepared");
        grown = node.add(grown, byte, Link::leaf(leaf, M::SHIFT));
        node.unlock(grown);
        at
    }

    /// Adds an entry whose key ends at the node at `place.link`.
    fn end_here(&self, place: &Place, header: Option<Header>, work: &mut Work<'_>) -> bool {
        let node = self.node(place.link);
        let owner = header.map_or(Owner::Sample, |header| Owner::Node(node.at, header));
        let spot = Spot { at: node.sample_at(), owner };
        let sample = node.sample();
        match sample.split_sample() {
            (newest, true) => self.add_version(spot, newest, Link::ending_here, work),
            (_, false) => {
                let leaf = self.prepare(work, Link::NULL);
                self.replace(spot, sample, leaf.ending_here())
            }
        }
    }

    /// Adds a version to the key with newest version `newest`; `form` turns a leaf link into the word at `spot`. Of
    /// equal trailers the later insertion comes first.
    fn add_version(&self, spot: Spot, newest: Link, form: fn(Link) -> Link, work: &mut Work<'_>) -> bool {
        if work.trailer >= self.leaf(newest).trailer() {
            let leaf = self.prepare(work, newest);
            return self.replace(spot, form(newest), form(leaf));
        }
        let mut newer = newest;
        loop {
            let (before, next) = last_above(self.memory(), newer, work.trailer);
            let leaf = self.prepare(work, next);
            if self.leaf(before).link_in(next, leaf) {
                return true;
            }
            newer = before; // still newer: it is never unlinked
        }
    }

    /// A new node at `depth`, above the entry's leaf and the target of `link`. `from` bytes are used before `link`.
    /// `other` is the byte at `depth` of the keys below `link`, or `None` if `link` is a key of `depth` bytes.
    fn part(&self, link: Link, from: usize, depth: usize, other: Option<u8>, work: &mut Work<'_>) -> Link {
        let leaf = self.prepare(work, Link::NULL);
        let kind = first_kind(M::SHIFT);
        let spare = work.spare.take();
        let at = spare.unwrap_or_else(|| self.space.node_block(&work.stripe.own, work.purse, kind));
        let node = Node::at(self.memory(), at);
        let byte = work.entry.user_key.get(depth).copied();
        let sample = match (other, byte) {
            (None, _) => link.ending_here(),
            (_, None) => leaf.ending_here(),
            _ => leaf,
        };
        let mut header = node.begin(kind, depth, sample);
        if let Some(other) = other {
            header = node.add(header, other, self.below(link, from, depth + 1));
        }
        if let Some(byte) = byte {
            header = node.add(header, byte, leaf);
        }
        node.unlock(header);
        Link::node(at, M::SHIFT, kind, depth != from)
    }

    /// `link` for a new parent with `from` bytes used before it, instead of `was_from`.
    fn below(&self, link: Link, was_from: usize, from: usize) -> Link {
        match link.target() {
            Target::N256 | Target::Dense => {
                let skips = self.depth(link, was_from) != from;
                Link::node(link.node_offset(M::SHIFT), M::SHIFT, Kind::N256, skips)
            }
            Target::Leaf | Target::N4 | Target::Middle => link,
        }
    }

    /// Writes the entry's leaf as the version before `older`, or as the only one. It can be prepared again until it is
    /// published.
    fn prepare(&self, work: &mut Work<'_>, older: Link) -> Link {
        let mut rank = rank_before(self.memory(), older);
        let (at, room_for) = *work.leaf.get_or_insert_with(|| {
            let bytes = leaf_bytes::<M>(rank.number, work.entry);
            (self.space.leaf_block(work.stripe, work.purse, bytes, work.entry), rank.number.max(RANK_MAX - 1))
        });
        rank.number = rank.number.min(room_for);
        let leaf = Leaf::at(self.memory(), at);
        // SAFETY: the block was made for this rank or a higher one, and is not published.
        unsafe { leaf.write(rank, work.entry) };
        leaf.set_next(older);
        leaf.link()
    }
}
