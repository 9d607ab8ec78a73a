//! The skiplist memtable: any key order, any number of concurrent writers and readers, none waiting for another.
//!
//! Nodes lie in an arena and are linked in from the bottom up, each link by one release exchange. They are never
//! unlinked, so every visible state is a sorted list. William Pugh, "Skip Lists: A Probabilistic Alternative to
//! Balanced Trees", CACM 33(6), 1990.

mod cursor;
mod descent;
mod insert;
pub(crate) mod list;
mod tag;

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, LookupKey, Result, SeqNo, UserOrder, ValueKind, key};
use serde_json::Value;

use self::descent::WIDTH;
use self::insert::{BYTES_PAID, Finger};
use self::list::{List, Target};
use crate::arena::{Arena, ArenaConfig, GRANULE_BYTES, Ref};
use crate::bloom::Bloom;
use crate::gate::Gate;
use crate::image::{self, Representation, SealedImage};
use crate::order::{Bytewise, Custom, KeyOrder, ReverseBytewise};
use crate::record::{RECORD_OVERHEAD_BYTES, trailer_of};
use crate::registry::Arguments;
use crate::stripe::{Counts, Stripe, Stripes};
use crate::tombstones::{LINK_BYTES, Tombstones};
use crate::{Conversion, Entry, Memtable, MemtableConfig, MemtableFactory, Visit, VisitMany};

pub(crate) const NAME: &str = "skip_list";

/// The shared key prefix is learnt after this many entries of a stripe: enough for the two end keys to share no more
/// than all keys do, few enough for the untagged nodes to stay cached.
const LEARN_AT: u64 = 64;

/// Batches from this size up descend together.
const TOGETHER_MIN: usize = 4;

/// Upper bound of the option. Useful lookaheads are a few steps; longer ones delay the search.
const LOOKAHEAD_MAX: usize = 1 << 16;

const _: () = assert!(
    LINK_BYTES + RECORD_OVERHEAD_BYTES < BYTES_PAID - GRANULE_BYTES,
    "range deletions take no more than other entries"
);

struct SkipList<O, const IMAGE: bool = false> {
    list: List<O, IMAGE>,
    stripes: Stripes<Finger>,
    tombstones: Tombstones,
    bloom: Option<Bloom>,
    lookahead: usize,
    gate: Gate,
}

impl<O: KeyOrder> SkipList<O> {
    fn new(config: &MemtableConfig, order: O, factory: &Factory) -> Result<Self> {
        let arena = Arena::with(&ArenaConfig {
            keeps_header: factory.conversion.is_wanted(),
            image: config.image.as_ref(),
            ..ArenaConfig::new(config.capacity_bytes)
        })?;
        let bloom = Bloom::new(&arena, &config.order.user, config.capacity_bytes, config.bloom_ratio)?;
        let list = List::new(arena, order).ok_or_else(|| {
            Error::invalid_argument(format!("{} bytes are too few for a memtable", config.capacity_bytes))
        })?;
        let head = list.head;
        let head_offset = head.raw() as u64 * GRANULE_BYTES as u64;
        image::begin(&list.arena, Representation::SkipList, head_offset, &config.order.user)?;
        let tombstones = Tombstones::in_arena(config.order.user.clone(), head.forward(1));
        let (stripes, gate) = (Stripes::new(|| Finger::new(head)), Gate::new(list.arena.has_header()));
        Ok(SkipList { list, stripes, tombstones, bloom, lookahead: factory.lookahead, gate })
    }
}

impl<O: KeyOrder> SkipList<O, true> {
    /// # Safety
    /// The image must have been checked to be a list of this order, with its head at `head` and these `totals` (A2,
    /// A5).
    unsafe fn of_image(arena: Arena<true>, user: &UserOrder, order: O, head: Ref, totals: Counts) -> Self {
        // SAFETY: as the caller promises.
        let list = unsafe { List::of_image(arena, order, head) };
        let stripes = Stripes::new(|| Finger::new(head));
        stripes.mine().add(totals);
        let tombstones = Tombstones::in_arena(user.clone(), head.forward(1));
        SkipList { list, stripes, tombstones, bloom: None, lookahead: 0, gate: Gate::closed() }
    }
}

/// The skiplist of an image.
///
/// # Safety
/// The image must have been checked to be a skiplist of this order, with its head at `head` and these `totals` (A2,
/// A5).
pub(crate) unsafe fn of_image(order: &UserOrder, arena: Arena<true>, head: u64, totals: Counts) -> Arc<dyn Memtable> {
    let head = Ref::from_raw((head / GRANULE_BYTES as u64) as u32);
    // SAFETY: as the caller promises.
    unsafe {
        match order {
            UserOrder::Bytewise => Arc::new(SkipList::of_image(arena, order, Bytewise, head, totals)),
            UserOrder::ReverseBytewise => Arc::new(SkipList::of_image(arena, order, ReverseBytewise, head, totals)),
            UserOrder::Custom(c) => {
                Arc::new(SkipList::of_image(arena, order, Custom::new(Arc::clone(c)), head, totals))
            }
        }
    }
}

impl<O: KeyOrder, const IMAGE: bool> SkipList<O, IMAGE> {
    /// Updates tombstones or the bloom filter for `entry`; true if the entry belongs into the list.
    fn enters_list(&self, entry: &Entry<'_>) -> bool {
        if entry.kind == ValueKind::RangeDeletion {
            self.tombstones.push(&self.list.arena, entry);
            return false;
        }
        if let Some(bloom) = &self.bloom {
            bloom.add(&self.list.arena, entry.user_key);
        }
        true
    }

    /// Counts the inserted entries, and learns the key prefix at `LEARN_AT` entries.
    fn count(&self, stripe: &Stripe<Finger>, counts: Counts, newest: Ref) {
        let before = stripe.add(counts);
        if before >= LEARN_AT || before + counts.entries < LEARN_AT || self.list.tagger.is_learnt() {
            return;
        }
        let first = self.list.next(self.list.head, 0).node();
        let last = self.list.last();
        if !first.is_null() {
            self.list.tagger.learn::<O, IMAGE>(&self.list.arena, first.forward(1), last.forward(1), last == newest);
        }
    }

    /// Inserts up to `WIDTH` point entries; interleaves their descents unless keys seem to come in order.
    fn insert_chunk(&self, stripe: &Stripe<Finger>, chunk: &[Entry<'_>]) -> Ref {
        let mut newest = Ref::NULL;
        let list = &self.list;
        let in_order = chunk.first().is_none_or(|entry| list.continues(&stripe.own, entry));
        if chunk.len() < TOGETHER_MIN || in_order {
            for entry in chunk {
                newest = list.insert(&stripe.own, entry);
            }
            return newest;
        }
        let mut targets = [Target { user_key: &[], trailer: 0, tag: 0 }; WIDTH];
        for (target, entry) in targets.iter_mut().zip(chunk) {
            *target = list.target(entry.user_key, trailer_of(entry));
        }
        let mut descents = list.descend_all(targets.get(..chunk.len()).unwrap_or(&targets));
        for (entry, descent) in chunk.iter().zip(&mut descents) {
            newest = list.insert_at(&stripe.own, entry, &mut descent.splice);
        }
        newest
    }

    /// Shows `visit` the entries of the lookup's user key from `node` on, the first at or after the lookup.
    fn visit_versions(&self, mut node: Ref, key: &LookupKey, visit: &mut Visit<'_>) {
        let (user_key, visible) = (key.user_key(), key.seq());
        while !node.is_null() {
            let record = self.list.record(node);
            if !self.list.order.same_key(record.user_key(), user_key) {
                return;
            }
            let (seq, kind) = record.version();
            // With user timestamps, entries newer than the lookup can follow: timestamps sort before sequence numbers.
            if seq <= visible && !visit(seq, kind, record.value()) {
                return;
            }
            node = self.list.next(node, 0).node();
        }
    }

    fn may_contain(&self, user_key: &[u8]) -> bool {
        self.bloom.as_ref().is_none_or(|bloom| bloom.may_contain(&self.list.arena, user_key))
    }
}

impl<O: KeyOrder, const IMAGE: bool> Memtable for SkipList<O, IMAGE> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize {
        entries.saturating_mul(BYTES_PAID).saturating_add(payload_bytes)
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.list.arena.try_reserve(bytes)
    }

    fn insert(&self, entry: Entry<'_>) {
        let _inside = self.gate.enter();
        let stripe = self.stripes.mine();
        let mut counts = Counts::default();
        counts.note(&entry);
        let node = if self.enters_list(&entry) { self.list.insert(&stripe.own, &entry) } else { Ref::NULL };
        self.count(stripe, counts, node);
    }

    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        const NOTHING: Entry<'_> = Entry { user_key: &[], seq: SeqNo::ZERO, kind: ValueKind::Value, value: &[] };
        let _inside = self.gate.enter();
        let stripe = self.stripes.mine();
        let mut more = true;
        while more {
            let mut counts = Counts::default();
            let mut chunk = [NOTHING; WIDTH];
            let mut len = 0;
            more = false;
            for entry in &mut *entries {
                counts.note(&entry);
                if self.enters_list(&entry)
                    && let Some(slot) = chunk.get_mut(len)
                {
                    *slot = entry;
                    len += 1;
                }
                if len == WIDTH {
                    more = true;
                    break;
                }
            }
            let newest = self.insert_chunk(stripe, chunk.get(..len).unwrap_or(&chunk));
            self.count(stripe, counts, newest);
        }
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        if self.may_contain(key.user_key()) {
            let node = self.list.seek(&self.list.internal_target(key.internal()));
            self.visit_versions(node, key, visit);
        }
    }

    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        let mut asked = keys.iter().enumerate().filter(|(_, key)| self.may_contain(key.user_key()));
        loop {
            let chunk: [Option<(usize, &&LookupKey)>; WIDTH] = std::array::from_fn(|_| asked.next());
            let mut targets = [Target { user_key: &[], trailer: 0, tag: 0 }; WIDTH];
            let mut len = 0;
            for (target, (_, key)) in targets.iter_mut().zip(chunk.iter().flatten()) {
                *target = self.list.internal_target(key.internal());
                len += 1;
            }
            let descents = self.list.descend_all(targets.get(..len).unwrap_or(&targets));
            for ((i, key), descent) in chunk.iter().flatten().zip(&descents) {
                self.visit_versions(descent.found, key, &mut |seq, kind, value| visit(*i, seq, kind, value));
            }
            if len < WIDTH {
                return;
            }
        }
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Box::new(cursor::SkipCursor::new(self))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.fragmented(&self.list.arena)
    }

    fn is_ready_to_seek(&self) -> bool {
        self.tombstones.is_built(&self.list.arena)
    }

    fn counts(&self) -> Counts {
        self.stripes.totals()
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self) + self.list.arena.held_bytes() + self.tombstones.heap_bytes()
    }

    fn reserved_bytes(&self) -> usize {
        self.list.arena.reserved()
    }

    fn capacity_bytes(&self) -> usize {
        self.list.arena.capacity()
    }

    fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64 {
        let first = |user_key| self.list.target(user_key, key::pack_trailer(SeqNo::MAX, key::SEEK_KIND));
        self.list.estimate(&first(start), &first(end))
    }

    fn prefault(&self, ahead_bytes: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        self.list.arena.prefault(ahead_bytes, may_hold)
    }

    fn begin_after(&self, created_at: SeqNo) {
        image::begin_after(&self.list.arena, &self.gate, created_at);
    }

    fn advance_empty_to(&self, seq: SeqNo) {
        image::advance_empty_to(&self.list.arena, &self.gate, seq);
    }

    fn mark(&self, complete_through: SeqNo, position: u64) {
        image::mark(&self.list.arena, &self.gate, complete_through, position);
    }

    fn mark_foreign(&self) -> bool {
        image::mark_foreign(&self.list.arena, &self.gate)
    }

    fn seal(&self) {
        if self.gate.close() {
            image::seal(&self.list.arena, self.stripes.totals());
        }
    }

    fn image(&self) -> Option<SealedImage<'_>> {
        SealedImage::of(&self.list.arena, || self.stripes.totals())
    }
}

/// Makes skiplists. `lookahead` is RocksDB's: the steps a forward seek tries before it searches.
#[derive(Default)]
pub(crate) struct Factory {
    lookahead: usize,
    conversion: Conversion,
}

/// The names of a skiplist's arguments.
pub(crate) const ARGUMENTS: &[&str] = &["lookahead", "convert_to_sst", "ref_log_format", "sync_sst_file"];

impl Factory {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Result<Arc<dyn MemtableFactory>> {
        let lookahead = arguments.number("lookahead", 0..=LOOKAHEAD_MAX)?.unwrap_or(0);
        Ok(Arc::new(Factory { lookahead, conversion: Conversion::from_arguments(arguments)? }))
    }

    pub(crate) fn converting(conversion: Conversion) -> Factory {
        Factory { lookahead: 0, conversion }
    }
}

impl MemtableFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn option_string(&self) -> String {
        let mut object = self.conversion.changed_values();
        match (self.lookahead, object.is_empty()) {
            (0, true) => NAME.to_owned(),
            (lookahead, true) => format!("{NAME}:{lookahead}"),
            (lookahead, false) => {
                if lookahead > 0 {
                    object.insert("lookahead".to_owned(), lookahead.into());
                }
                format!("{NAME}:{}", Value::Object(object))
            }
        }
    }

    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>> {
        Ok(match &config.order.user {
            UserOrder::Bytewise => Arc::new(SkipList::new(config, Bytewise, self)?),
            UserOrder::ReverseBytewise => Arc::new(SkipList::new(config, ReverseBytewise, self)?),
            UserOrder::Custom(c) => Arc::new(SkipList::new(config, Custom::new(Arc::clone(c)), self)?),
        })
    }

    fn conversion(&self) -> Conversion {
        self.conversion
    }

    fn can_convert(&self) -> bool {
        true
    }
}
