//! Range deletions of a memtable: a lock-free list in the arena, and its fragmented form. The first reader after a push
//! adds it to the fragments; later readers share them.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use arc_swap::ArcSwapOption;
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{SeqNo, UserOrder};
use parking_lot::Mutex;

use crate::Entry;
use crate::arena::{Arena, GRANULE_BYTES, Ref};
use crate::record::{self, record_bytes};

/// Bytes of a range deletion in the arena beside its record: the link to the previous push.
pub(crate) const LINK_BYTES: usize = GRANULE_BYTES;

pub(crate) struct Tombstones {
    order: UserOrder,
    head: Head,
    built: ArcSwapOption<Built>,
    /// Held while building, so that concurrent readers build once.
    building: Mutex<()>,
}

/// Location of the reference to the newest push. Its granule links to the previous push; its record follows.
enum Head {
    Own(AtomicU64),
    /// In the arena, so that the image has range deletions too, each from its publication on.
    InArena(Ref),
}

/// Added one by one; of more, the fragments are built anew. An addition moves the fragments behind it, which is far less than to
/// make them.
const ADDED_MAX: usize = 32;

struct Built {
    /// The fragments cover the list from this head.
    head: Ref,
    fragments: Arc<FragmentedTombstones>,
    heap_bytes: usize,
}

impl Tombstones {
    pub(crate) fn new(order: UserOrder) -> Self {
        Self::with(order, Head::Own(AtomicU64::new(0)))
    }

    /// As [`new`](Self::new), with the list's head in the granule at `head`, zeroed and used for nothing else.
    pub(crate) fn in_arena(order: UserOrder, head: Ref) -> Self {
        Self::with(order, Head::InArena(head))
    }

    fn with(order: UserOrder, head: Head) -> Self {
        Tombstones { order, head, built: ArcSwapOption::empty(), building: Mutex::new(()) }
    }

    /// Bytes of a range deletion in the arena, before rounding to granules.
    pub(crate) fn bytes(entry: &Entry<'_>) -> usize {
        LINK_BYTES + record_bytes(entry)
    }

    /// Adds a range deletion with reserved bytes.
    pub(crate) fn push<const IMAGE: bool>(&self, arena: &Arena<IMAGE>, entry: &Entry<'_>) {
        self.push_at(arena, arena.allocate(Self::bytes(entry)), entry);
    }

    /// Adds a range deletion in an allocation of its [`bytes`](Self::bytes), used for nothing else.
    pub(crate) fn push_at<const IMAGE: bool>(&self, arena: &Arena<IMAGE>, node: Ref, entry: &Entry<'_>) {
        // SAFETY: the allocation has room for link and record and is not published yet.
        unsafe { record::write(arena, node.forward(1), entry) };
        // SAFETY: the first granule of a node is an atomic word to everyone.
        let link = unsafe { arena.word(node) };
        let head_word = match &self.head {
            Head::Own(word) => word,
            // SAFETY: by `in_arena` the granule was handed out to be this word, atomic to everyone.
            Head::InArena(at) => unsafe { arena.word(*at) },
        };
        let mut head = head_word.load(Relaxed);
        loop {
            link.store(head, Relaxed);
            // Release publishes link and record. The records behind `head` were published by earlier exchanges; this
            // one continues their release sequence.
            match head_word.compare_exchange_weak(head, u64::from(node.raw()), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// All range deletions pushed so far. `None` if there are none, at the cost of one load.
    pub(crate) fn fragmented<const IMAGE: bool>(&self, arena: &Arena<IMAGE>) -> Option<Arc<FragmentedTombstones>> {
        let head = self.head(arena);
        if head.is_null() {
            return None;
        }
        if let Some(built) = self.built.load().as_ref()
            && built.head == head
        {
            return Some(Arc::clone(&built.fragments));
        }
        let _building = self.building.lock();
        let head = self.head(arena);
        if let Some(built) = self.built.load().as_ref()
            && built.head == head
        {
            return Some(Arc::clone(&built.fragments));
        }
        let built = Arc::new(self.build(arena, head, self.built.swap(None)));
        let fragments = Arc::clone(&built.fragments);
        self.built.store(Some(built));
        Some(fragments)
    }

    /// True if [`fragmented`](Self::fragmented) has nothing to build.
    pub(crate) fn is_built<const IMAGE: bool>(&self, arena: &Arena<IMAGE>) -> bool {
        let head = self.head(arena);
        head.is_null() || self.built.load().as_ref().is_some_and(|built| built.head == head)
    }

    /// Heap bytes of the fragments kept.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.built.load().as_ref().map_or(0, |built| built.heap_bytes)
    }

    /// The range deletion added last, or null.
    fn head<const IMAGE: bool>(&self, arena: &Arena<IMAGE>) -> Ref {
        let head = match &self.head {
            Head::Own(word) => word.load(Acquire),
            // SAFETY: as in `push_at`.
            Head::InArena(at) => unsafe { arena.load(*at) },
        };
        Ref::from_raw(head as u32)
    }

    /// The fragments of the list from `head`, made of those `before` if little was pushed since. Readers may hold these: they are
    /// copied then.
    fn build<const IMAGE: bool>(&self, arena: &Arena<IMAGE>, head: Ref, before: Option<Arc<Built>>) -> Built {
        let known = before.as_ref().map_or(Ref::NULL, |built| built.head);
        let tombstones = self.pushed(arena, head, known, ADDED_MAX);
        let fragments = match before.filter(|_| tombstones.len() <= ADDED_MAX) {
            Some(before) => {
                let shared = match Arc::try_unwrap(before) {
                    Ok(built) => built.fragments,
                    Err(shared) => shared.fragments.clone(),
                };
                let mut fragments = Arc::unwrap_or_clone(shared);
                tombstones.into_iter().for_each(|tombstone| fragments.add(tombstone));
                fragments
            }
            None => FragmentedTombstones::build(self.order.clone(), self.pushed(arena, head, Ref::NULL, usize::MAX)),
        };
        let heap_bytes = heap_bytes_of(&fragments);
        Built { head, fragments: Arc::new(fragments), heap_bytes }
    }

    /// The range deletions from `head` to `known`, newest first; no more once there are more than `max`.
    fn pushed<const IMAGE: bool>(
        &self,
        arena: &Arena<IMAGE>,
        head: Ref,
        known: Ref,
        max: usize,
    ) -> Vec<RangeTombstone> {
        let mut tombstones = Vec::new();
        let mut node = head;
        while node != known && tombstones.len() <= max {
            // SAFETY: `node` was reached from a head loaded with acquire, so its record is published (A2).
            let record = unsafe { record::read(arena, node.forward(1)) };
            let (start, trailer) = record.split();
            let (start, end) = (start.to_vec(), record.value().to_vec());
            tombstones.push(RangeTombstone { start, end, seq: SeqNo(trailer >> 8) });
            // SAFETY: the first granule of a node is an atomic word to everyone.
            node = Ref::from_raw(unsafe { arena.load(node) } as u32);
        }
        tombstones
    }
}

fn heap_bytes_of(fragments: &FragmentedTombstones) -> usize {
    let each = |f: &base::tombstone::Fragment| {
        size_of_val(f) + f.start.capacity() + f.end.capacity() + f.seqs.capacity() * size_of::<SeqNo>()
    };
    size_of_val(fragments) + fragments.fragments().iter().map(each).sum::<usize>()
}
