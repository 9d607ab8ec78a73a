//! The trie memtable: the fast one, for bytewise key order or its reverse. A Patricia trie with nodes of several sizes,
//! after Leis, Kemper, Neumann, "The Adaptive Radix Tree" (ICDE 2013), in an arena of integer references.
//!
//! - A node stores the byte position at which the keys below it diverge. Bytes between two nodes are skipped, and a
//!   lookup compares its key once, at the leaf ([`tree`]). A miss costs as much as a hit, so there is no bloom filter:
//!   the configuration's `bloom_ratio` is checked and not used.
//! - Readers take no locks, never wait and never restart. Each insertion becomes visible by one release store or
//!   exchange. Nothing is moved or freed while the memtable lives, so the arena's bytes are a whole trie at any instant
//!   ([`insert`]; [`layout`] describes the bytes).
//! - Memory is reserved before sequence allocation, and insertions never fail (C4): the children of a node pay in
//!   advance for its growth ([`space`]).
//! - Batched lookups and insertions overlap their cache misses ([`together`]).
//!
//! Invariants, cited by the `SAFETY` comments here, beside the arena's A1 to A4:
//! - **T1** A link leads to a block allocated for the kind of object the link names. The object was written whole
//!   before the release that published the link.
//! - **T2** All threads access the head, the words of nodes and the `next` words of leaves atomically. The rest of a
//!   leaf is written before its publication and never again.
//! - **T3**, **T4** Lock rules: see [`insert`]. **T5** Reservation accounting: see [`space`].
//!
//! For any other key order, [`Factory`] makes a skiplist.

mod cursor;
mod estimate;
mod factory;
#[cfg(test)]
mod image_tests;
mod insert;
pub(crate) mod layout;
mod leaf;
#[cfg(all(test, loom))]
mod loom_tests;
pub(crate) mod memory;
mod node;
pub(crate) mod params;
pub(crate) mod search;
mod space;
#[cfg(test)]
mod tests;
mod together;
mod tree;
mod versions;
mod walk;

use std::marker::PhantomData;
use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, LookupKey, Result, SeqNo, UserOrder, ValueKind, key};

use self::layout::{FAR_SHIFT, Link, NEAR_SHIFT, Offset, leaf_align_bytes};
use self::memory::{ArenaMemory, Memory};
use self::space::{Purse, Space, overhead_max};
use self::together::{Probe, WIDTH};
use self::tree::Tree;
use self::versions::first_at_or_below;
use crate::arena::{Arena, GRANULE_BYTES, Ref};
use crate::bloom::Bloom;
use crate::gate::Gate;
use crate::image::{self, Representation, SealedImage};
use crate::order::{Bytewise, Direction, KeyOrder, ReverseBytewise};
use crate::stripe::{Counts, Stripe};
use crate::tombstones::Tombstones;
use crate::{Entry, Memtable, MemtableConfig, Visit, VisitMany};

pub(crate) use self::factory::Factory;

pub(crate) const NAME: &str = "trie";

/// Batches from this size up descend together.
const TOGETHER_MIN: usize = 3;

/// A trie whose links are shifted by `SHIFT`.
struct Trie<O, const SHIFT: u32, const IMAGE: bool = false> {
    tree: Tree<ArenaMemory<SHIFT, IMAGE>>,
    order: PhantomData<O>,
    tombstones: Tombstones,
    gate: Gate,
}

impl<O: KeyOrder, const SHIFT: u32> Trie<O, SHIFT> {
    /// # Errors
    /// `InvalidArgument`: the bloom ratio is out of bounds, or the arena is too small for the head.
    fn new(config: &MemtableConfig, arena: Arena) -> Result<Self> {
        // No capacity: only the ratio is checked.
        Bloom::new(&arena, &config.order.user, 0, config.bloom_ratio)?;
        let memory = ArenaMemory::new(arena).ok_or_else(|| {
            Error::invalid_argument(format!("{} bytes are too few for a memtable", config.capacity_bytes))
        })?;
        image::begin(memory.arena(), Representation::Trie { shift: SHIFT }, memory.head(), &config.order.user)?;
        let tombstones = Tombstones::in_arena(config.order.user.clone(), memory.tombstones_head());
        let gate = Gate::new(memory.arena().has_header());
        let tree = Tree { space: Space::new(memory) };
        Ok(Trie { tree, order: PhantomData, tombstones, gate })
    }
}

impl<O: KeyOrder, const SHIFT: u32> Trie<O, SHIFT, true> {
    /// # Safety
    /// The image must have been checked to be a trie of this order and shift, with its head at `head` and these
    /// `totals` (T1, A5).
    unsafe fn of_image(order: UserOrder, arena: Arena<true>, head: Offset, totals: Counts) -> Self {
        // SAFETY: as the caller promises.
        let memory = unsafe { ArenaMemory::of_image(arena, head) };
        let tombstones = Tombstones::in_arena(order, memory.tombstones_head());
        let tree = Tree { space: Space::new(memory) };
        tree.space.stripes.mine().add(totals);
        Trie { tree, order: PhantomData, tombstones, gate: Gate::closed() }
    }
}

impl<O: KeyOrder, const SHIFT: u32, const IMAGE: bool> Trie<O, SHIFT, IMAGE> {
    const UPWARDS: bool = matches!(O::DIRECTION, Direction::Ascending);

    fn arena(&self) -> &Arena<IMAGE> {
        self.tree.memory().arena()
    }

    /// Inserts one entry; `purse` receives its reservation.
    fn insert_one(&self, stripe: &Stripe<space::Share>, purse: &mut Purse, entry: &Entry<'_>) {
        purse.receive(SHIFT, entry.user_key.len() + entry.value.len());
        if entry.kind == ValueKind::RangeDeletion {
            self.insert_range(stripe, purse, entry);
        } else {
            self.tree.insert(stripe, purse, entry);
        }
    }

    fn insert_range(&self, stripe: &Stripe<space::Share>, purse: &mut Purse, entry: &Entry<'_>) {
        let bytes = Tombstones::bytes(entry).next_multiple_of(leaf_align_bytes(SHIFT));
        let at = self.tree.space.leaf_block(stripe, purse, bytes, entry);
        self.tombstones.push_at(self.arena(), Ref::from_raw((at / GRANULE_BYTES as u64) as u32), entry);
    }

    /// Inserts up to `WIDTH` entries.
    fn insert_chunk(&self, stripe: &Stripe<space::Share>, purse: &mut Purse, chunk: &[Entry<'_>]) {
        if chunk.len() >= TOGETHER_MIN {
            let mut probes = [Probe::NONE; WIDTH];
            for (probe, entry) in probes.iter_mut().zip(chunk) {
                *probe = Probe::new(entry.user_key);
            }
            self.tree.probe_all::<true>(probes.get_mut(..chunk.len()).unwrap_or_default());
        }
        for entry in chunk {
            self.insert_one(stripe, purse, entry);
        }
    }

    /// Shows `visit` the versions from `newest` on, at or below the lookup's sequence number.
    #[inline]
    fn visit_versions(&self, newest: Link, key: &LookupKey, visit: &mut Visit<'_>) {
        if newest.is_null() {
            return;
        }
        let trailer = key::split(key.internal()).map_or(u64::MAX, |(_, trailer)| trailer);
        let mut version = first_at_or_below(self.tree.memory(), newest, trailer);
        while !version.is_null() {
            let leaf = self.tree.leaf(version);
            let (seq, kind) = leaf.version();
            if !visit(seq, kind, leaf.value()) {
                return;
            }
            version = leaf.next();
        }
    }
}

impl<O: KeyOrder, const SHIFT: u32, const IMAGE: bool> Memtable for Trie<O, SHIFT, IMAGE> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize {
        entries.saturating_mul(overhead_max(SHIFT)).saturating_add(payload_bytes)
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.tree.space.try_reserve(bytes)
    }

    fn insert(&self, entry: Entry<'_>) {
        let _inside = self.gate.enter();
        let stripe = self.tree.space.stripes.mine();
        let mut purse = Purse::default();
        self.insert_one(stripe, &mut purse, &entry);
        self.tree.space.settle(&stripe.own, &mut purse);
    }

    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        const NOTHING: Entry<'_> = Entry { user_key: &[], seq: SeqNo::ZERO, kind: ValueKind::Value, value: &[] };
        let _inside = self.gate.enter();
        let stripe = self.tree.space.stripes.mine();
        loop {
            let mut chunk = [NOTHING; WIDTH];
            let (mut len, mut purse) = (0, Purse::default());
            for (slot, entry) in chunk.iter_mut().zip(&mut *entries) {
                *slot = entry;
                len += 1;
            }
            self.insert_chunk(stripe, &mut purse, chunk.get(..len).unwrap_or(&chunk));
            self.tree.space.settle(&stripe.own, &mut purse);
            if len < WIDTH {
                return;
            }
        }
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        self.visit_versions(self.tree.find(key.user_key()), key, visit);
    }

    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        for (chunk, first) in keys.chunks(WIDTH).zip((0..).step_by(WIDTH)) {
            let mut probes = [Probe::NONE; WIDTH];
            for (probe, key) in probes.iter_mut().zip(chunk) {
                *probe = Probe::new(key.user_key());
            }
            self.tree.probe_all::<false>(probes.get_mut(..chunk.len()).unwrap_or_default());
            for ((key, probe), i) in chunk.iter().zip(&probes).zip(first..) {
                let newest = self.tree.confirm(probe.link, key.user_key());
                self.visit_versions(newest, key, &mut |seq, kind, value| visit(i, seq, kind, value));
            }
        }
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Box::new(cursor::TrieCursor::new(self))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.fragmented(self.arena())
    }

    fn is_ready_to_seek(&self) -> bool {
        self.tombstones.is_built(self.arena())
    }

    fn counts(&self) -> Counts {
        self.tree.space.stripes.totals()
    }

    fn memory_bytes(&self) -> usize {
        let (allocated, held) = (self.arena().allocated(), self.arena().held_bytes());
        // Without a better count of held pages, uncut chunk bytes are taken as untouched.
        let untouched = if held == allocated { self.tree.space.uncut_bytes() } else { 0 };
        size_of_val(self) + held - untouched.min(held) + self.tombstones.heap_bytes()
    }

    fn reserved_bytes(&self) -> usize {
        self.arena().reserved()
    }

    fn capacity_bytes(&self) -> usize {
        self.arena().capacity()
    }

    fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64 {
        if if Self::UPWARDS { start >= end } else { start <= end } {
            return 0;
        }
        self.tree.estimate(start, end, Self::UPWARDS, self.entries())
    }

    fn prefault(&self, ahead_bytes: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        self.arena().prefault(ahead_bytes, may_hold)
    }

    fn begin_after(&self, created_at: SeqNo) {
        image::begin_after(self.arena(), &self.gate, created_at);
    }

    fn advance_empty_to(&self, seq: SeqNo) {
        image::advance_empty_to(self.arena(), &self.gate, seq);
    }

    fn mark(&self, complete_through: SeqNo, position: u64) {
        image::mark(self.arena(), &self.gate, complete_through, position);
    }

    fn mark_foreign(&self) -> bool {
        image::mark_foreign(self.arena(), &self.gate)
    }

    fn seal(&self) {
        if self.gate.close() {
            image::seal(self.arena(), self.tree.space.stripes.totals());
        }
    }

    fn image(&self) -> Option<SealedImage<'_>> {
        SealedImage::of(self.arena(), || self.tree.space.stripes.totals())
    }
}

/// The trie of an image; `None` if a trie cannot have this order or shift.
///
/// # Safety
/// The image must have been checked to be a trie of this order, shifted by `shift`, with its head at `head` and these
/// `totals` (T1, A5).
pub(crate) unsafe fn of_image(
    order: &UserOrder,
    arena: Arena<true>,
    shift: u32,
    head: Offset,
    totals: Counts,
) -> Option<Arc<dyn Memtable>> {
    let user = order.clone();
    // SAFETY: as the caller promises.
    unsafe {
        Some(match (order, shift) {
            (UserOrder::Bytewise, NEAR_SHIFT) => {
                Arc::new(Trie::<Bytewise, NEAR_SHIFT, true>::of_image(user, arena, head, totals))
            }
            (UserOrder::Bytewise, FAR_SHIFT) => {
                Arc::new(Trie::<Bytewise, FAR_SHIFT, true>::of_image(user, arena, head, totals))
            }
            (UserOrder::ReverseBytewise, NEAR_SHIFT) => {
                Arc::new(Trie::<ReverseBytewise, NEAR_SHIFT, true>::of_image(user, arena, head, totals))
            }
            (UserOrder::ReverseBytewise, FAR_SHIFT) => {
                Arc::new(Trie::<ReverseBytewise, FAR_SHIFT, true>::of_image(user, arena, head, totals))
            }
            _ => return None,
        })
    }
}
