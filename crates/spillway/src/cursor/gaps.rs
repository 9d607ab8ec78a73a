//! Gaps: spans of user keys without a live key, remembered so that iterators pass their dead entries by one seek.
//!
//! A gap states: *no key of the span exists at any sequence number from `from` on* (G1). It is a fact of the history,
//! not of tables: flushes, compactions and their zeroed numbers change no key's existence at a number. Nothing is
//! written to disk.
//!
//! # How a gap becomes known
//! An iterator at number `from` passed a run of dead entries, so the span was empty at `from`. Writes with later
//! numbers may already be under way. So the run is *watched* first, then the last number allocated is read under the
//! commit lock. Every write numbered later finds the watched span, and cuts its key out before it is published. If no
//! number was allocated since `from`, the span is a gap at once. Otherwise it becomes one when a later iterator, at or
//! above that last number, finds it empty again.
//!
//! # How a gap ends
//! - A write of a value or an operand cuts its key out before its number is published. A reader loads its own number
//!   first, then the gaps, so it meets no gap with a key that exists at its number. Deletions cut nothing.
//! - Ingests and large batches cut out all their spans. Ingested tables may keep numbers of their own, lower than the
//!   ingest's. So no run is added any more that was found below the ingest's number, perhaps in a view without it.
//! - A step that may show hidden entries again begins a new era: tables ingested behind, tables dropped whole, entries
//!   removed without a deletion by a compaction filter's skip. Versions carry the era, so an iterator over an older
//!   version neither uses nor adds gaps of the new era.

use std::cmp::Ordering;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use base::{SeqNo, UserOrder};
use parking_lot::Mutex;

/// Dead keys in a run to be remembered. Fewer cost less than the memory. Debug builds remember short runs, so that
/// tests meet many gaps.
pub const RUN_MIN: u64 = if cfg!(debug_assertions) { 4 } else { 64 };

/// Dead keys beside gaps already known: such runs grow at one end with every scan.
pub const EXTENSION_MIN: u64 = if cfg!(debug_assertions) { 2 } else { 8 };

/// Gaps of a family. With [`WATCHED_MAX`] and [`KEY_BYTES_MAX`], at most 144 KiB.
const GAPS_MAX: usize = 64;

/// Watched spans of a family.
const WATCHED_MAX: usize = 8;

/// Runs with longer keys at an end are not remembered.
const KEY_BYTES_MAX: usize = 1 << 10;

/// Reads the last number allocated, under the commit lock. `None` once the database is gone.
pub type LastNumber = Box<dyn Fn() -> Option<SeqNo> + Send + Sync>;

/// An end of a span of user keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub key: Vec<u8>,
    /// The key itself is outside.
    pub is_open: bool,
}

impl Edge {
    pub fn closed(key: &[u8]) -> Self {
        Edge { key: key.to_vec(), is_open: false }
    }

    pub fn open(key: &[u8]) -> Self {
        Edge { key: key.to_vec(), is_open: true }
    }
}

/// A span of user keys without a live key at any number from `from` on.
#[derive(Debug)]
pub struct Gap {
    pub start: Edge,
    pub end: Edge,
    pub from: SeqNo,
    /// Dead keys counted when it was found: what it spares. A weight, too high for the parts of a run that was divided:
    /// each has the whole count, and a run over both adds them up. So sums saturate.
    pub dead: u64,
    /// Passed since the last look for a gap to forget.
    used: AtomicBool,
}

impl Gap {
    pub fn new(start: Edge, end: Edge, from: SeqNo, dead: u64) -> Self {
        Gap { start, end, from, dead, used: AtomicBool::new(true) }
    }

    fn part(&self, start: Edge, end: Edge, dead: u64) -> Self {
        Gap::new(start, end, self.from, dead)
    }

    pub fn record_use(&self) {
        self.used.store(true, Relaxed);
    }

    fn starts_after(&self, order: &UserOrder, key: &[u8]) -> bool {
        let start = order.compare(&self.start.key, key);
        start.is_gt() || (start.is_eq() && self.start.is_open)
    }

    fn ends_before(&self, order: &UserOrder, key: &[u8]) -> bool {
        let end = order.compare(&self.end.key, key);
        end.is_lt() || (end.is_eq() && self.end.is_open)
    }

    pub fn holds(&self, order: &UserOrder, key: &[u8]) -> bool {
        !self.starts_after(order, key) && !self.ends_before(order, key)
    }

    /// Whether at least one key may lie between this gap's end and the other's start.
    fn lies_apart_before(&self, order: &UserOrder, other: &Gap) -> bool {
        let (end, start) = (&self.end, &other.start);
        let ends = order.compare(&end.key, &start.key);
        ends.is_lt() || (ends.is_eq() && end.is_open && start.is_open)
    }

    fn meets(&self, order: &UserOrder, other: &Gap) -> bool {
        !self.lies_apart_before(order, other) && !other.lies_apart_before(order, self)
    }

    fn lies_within(&self, order: &UserOrder, other: &Gap) -> bool {
        compare_starts(order, &other.start, &self.start).is_le() && compare_ends(order, &self.end, &other.end).is_le()
    }

    /// The keys of both; they meet.
    fn common(&self, order: &UserOrder, other: &Gap) -> (Edge, Edge) {
        let starts_later = compare_starts(order, &self.start, &other.start).is_ge();
        let ends_earlier = compare_ends(order, &self.end, &other.end).is_le();
        let start = if starts_later { &self.start } else { &other.start };
        let end = if ends_earlier { &self.end } else { &other.end };
        (start.clone(), end.clone())
    }

    /// One gap for both; they meet.
    fn joined(&self, order: &UserOrder, other: &Gap) -> Gap {
        let starts_first = compare_starts(order, &self.start, &other.start).is_le();
        let ends_last = compare_ends(order, &self.end, &other.end).is_ge();
        let start = if starts_first { &self.start } else { &other.start };
        let end = if ends_last { &self.end } else { &other.end };
        Gap::new(start.clone(), end.clone(), self.from.max(other.from), self.dead.max(other.dead))
    }

    /// The parts outside the span, if they are worth keeping. How the dead keys divide is unknown.
    fn without(&self, order: &UserOrder, span: &Cut<'_>) -> impl Iterator<Item = Gap> {
        let starts = order.compare(&self.start.key, span.start).is_lt();
        let ends = order.compare(&self.end.key, span.end);
        let ends = ends.is_gt() || (ends.is_eq() && span.end_is_open && !self.end.is_open);
        let dead = if starts && ends { self.dead / 2 } else { self.dead };
        let left = (starts && dead >= RUN_MIN).then(|| self.part(self.start.clone(), Edge::open(span.start), dead));
        let after = Edge { key: span.end.to_vec(), is_open: !span.end_is_open };
        let right = (ends && dead >= RUN_MIN).then(|| self.part(after, self.end.clone(), dead));
        left.into_iter().chain(right)
    }
}

fn compare_starts(order: &UserOrder, a: &Edge, b: &Edge) -> Ordering {
    order.compare(&a.key, &b.key).then(a.is_open.cmp(&b.is_open))
}

fn compare_ends(order: &UserOrder, a: &Edge, b: &Edge) -> Ordering {
    order.compare(&a.key, &b.key).then(b.is_open.cmp(&a.is_open))
}

/// Keys cut out of gaps, the start included.
#[derive(Clone, Copy)]
pub struct Cut<'a> {
    pub start: &'a [u8],
    pub end: &'a [u8],
    pub end_is_open: bool,
}

impl<'a> Cut<'a> {
    fn of_key(key: &'a [u8]) -> Self {
        Cut { start: key, end: key, end_is_open: false }
    }

    fn meets(&self, order: &UserOrder, gap: &Gap) -> bool {
        let ends = order.compare(self.end, &gap.start.key);
        let ends_before = ends.is_lt() || (ends.is_eq() && (self.end_is_open || gap.start.is_open));
        !ends_before && !gap.ends_before(order, self.start)
    }
}

/// A span found empty at its `from`. Writes numbered above `since` cut it; earlier ones may have missed it.
#[derive(Clone)]
struct Watched {
    gap: Arc<Gap>,
    since: SeqNo,
}

/// What is known of a family at one instant.
#[derive(Clone, Default)]
pub struct Known {
    era: u64,
    /// Runs found below are not added.
    least: SeqNo,
    /// Ascending; no two meet.
    gaps: Vec<Arc<Gap>>,
    /// Oldest first. They may meet each other and gaps.
    watched: Vec<Watched>,
}

impl Known {
    /// A gap over `key` for a reader at `at`.
    pub fn find(&self, order: &UserOrder, key: &[u8], at: SeqNo) -> Option<&Arc<Gap>> {
        let gap = self.gap_at(order, key).filter(|gap| gap.from <= at);
        // A watched span was empty at its own number, whatever was written since.
        let watched = || self.watched.iter().map(|watched| &watched.gap);
        gap.or_else(|| watched().find(|gap| gap.from == at && gap.holds(order, key)))
    }

    fn gap_at(&self, order: &UserOrder, key: &[u8]) -> Option<&Arc<Gap>> {
        let after = self.gaps.partition_point(|gap| !gap.starts_after(order, key));
        self.gaps.get(after.checked_sub(1)?).filter(|gap| !gap.ends_before(order, key))
    }

    fn is_empty(&self) -> bool {
        self.gaps.is_empty() && self.watched.is_empty()
    }

    fn meets(&self, order: &UserOrder, cut: &Cut<'_>) -> bool {
        let after = self.gaps.partition_point(|gap| gap.ends_before(order, cut.start));
        self.gaps.get(after).is_some_and(|gap| cut.meets(order, gap))
            || self.watched.iter().any(|watched| cut.meets(order, &watched.gap))
    }

    fn cut(&mut self, order: &UserOrder, cut: &Cut<'_>) {
        let parts = |gap: Arc<Gap>| -> Vec<Arc<Gap>> {
            if cut.meets(order, &gap) { gap.without(order, cut).map(Arc::new).collect() } else { vec![gap] }
        };
        self.gaps = std::mem::take(&mut self.gaps).into_iter().flat_map(parts).collect();
        let watched = std::mem::take(&mut self.watched).into_iter();
        let parts = watched.flat_map(|Watched { gap, since }| parts(gap).into_iter().map(move |gap| (gap, since)));
        self.watched = parts.map(|(gap, since)| Watched { gap, since }).collect();
        self.forget_beyond_limits();
    }

    /// Adds a gap, joined with those it meets.
    fn add(&mut self, order: &UserOrder, mut gap: Gap) {
        let first = self.gaps.partition_point(|other| other.lies_apart_before(order, &gap));
        let rest = self.gaps.get(first..).unwrap_or_default();
        let count = rest.partition_point(|other| !gap.lies_apart_before(order, other));
        for met in rest.iter().take(count) {
            gap = gap.joined(order, met);
        }
        self.gaps.splice(first..first + count, [Arc::new(gap)]);
        self.forget_beyond_limits();
    }

    /// Turns watched spans into gaps where `run` shows them empty at a number that every unseen write is at or below.
    fn prove_by(&mut self, order: &UserOrder, run: &Gap) {
        for Watched { gap, since } in std::mem::take(&mut self.watched) {
            let is_shown = since <= run.from && gap.meets(order, run);
            if is_shown {
                let (start, end) = gap.common(order, run);
                self.add(order, run.part(start, end, run.dead));
            }
            if !is_shown || !gap.lies_within(order, run) {
                self.watched.push(Watched { gap, since });
            }
        }
    }

    /// Whether watching the run would add nothing now.
    fn has(&self, order: &UserOrder, run: &Gap) -> bool {
        self.gaps.iter().any(|gap| run.lies_within(order, gap))
            || self.watched.iter().any(|watched| watched.since > run.from && watched.gap.meets(order, run))
    }

    /// Beyond the limits, gaps unused since the last time go first, then short ones; of watched spans the oldest.
    fn forget_beyond_limits(&mut self) {
        while self.gaps.len() > GAPS_MAX {
            let value = |gap: &Arc<Gap>| (gap.used.swap(false, Relaxed), gap.dead);
            let least = self.gaps.iter().map(value).enumerate().min_by_key(|(_, value)| *value);
            self.gaps.remove(least.map_or(0, |(at, _)| at));
        }
        let over = self.watched.len().saturating_sub(WATCHED_MAX);
        self.watched.drain(..over);
    }
}

/// The gaps of a family. Readers and writers take no lock to look; changes take `changing`, before the commit lock.
pub struct Gaps {
    order: UserOrder,
    /// Whether anything is known: all that a write asks without gaps.
    any: AtomicBool,
    known: ArcSwap<Known>,
    changing: Mutex<()>,
    /// Nothing is learned before it is set.
    last_number: OnceLock<LastNumber>,
}

impl Gaps {
    pub fn new(order: UserOrder) -> Arc<Self> {
        let (any, known) = (AtomicBool::new(false), ArcSwap::default());
        Arc::new(Gaps { order, any, known, changing: Mutex::default(), last_number: OnceLock::new() })
    }

    /// Begins to learn. `last_number` is called with `changing` held.
    pub fn learn_with(&self, last_number: LastNumber) {
        let _ = self.last_number.set(last_number);
    }

    /// Whether there is a gap or a watched span. Of two threads that take the commit lock, the later sees what the
    /// earlier added before it.
    #[inline]
    pub fn are_known(&self) -> bool {
        self.any.load(Acquire)
    }

    /// What is known in `era`.
    pub fn known(&self, era: u64) -> Option<Arc<Known>> {
        Some(self.known.load_full()).filter(|known| known.era == era)
    }

    /// Adds a run found dead at `run.from` by an iterator over a version of `era`.
    #[cold]
    pub fn learn(&self, run: Gap, era: u64) {
        let Some(last_number) = self.last_number.get() else { return };
        if run.start.key.len().max(run.end.key.len()) > KEY_BYTES_MAX {
            return;
        }
        let _changing = self.changing.lock();
        let mut next = Known::clone(&self.known.load());
        if next.era != era || run.from < next.least {
            return;
        }
        next.prove_by(&self.order, &run);
        if !next.has(&self.order, &run) {
            let from = run.from;
            let gap = Arc::new(run);
            next.watched.push(Watched { gap: gap.clone(), since: SeqNo::MAX });
            next.forget_beyond_limits();
            self.store(next.clone());
            let last = last_number().unwrap_or(SeqNo::MAX);
            next.watched.pop();
            if last <= from {
                next.add(&self.order, gap.part(gap.start.clone(), gap.end.clone(), gap.dead));
            } else {
                next.watched.push(Watched { gap, since: last });
            }
        }
        self.store(next);
    }

    /// Cuts the keys of values and operands out, before their numbers are published.
    #[cold]
    pub fn cut_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        keys.for_each(|key| self.cut(&Cut::of_key(key)));
    }

    /// Cuts a span out, before the numbers of its entries are published.
    pub fn cut(&self, cut: &Cut<'_>) {
        if self.known.load().meets(&self.order, cut) {
            let _changing = self.changing.lock();
            let mut next = Known::clone(&self.known.load());
            next.cut(&self.order, cut);
            self.store(next);
        }
    }

    /// Adds no run found below `least`. Called before the number of an ingest is published.
    pub fn learn_from(&self, least: SeqNo) {
        let _changing = self.changing.lock();
        let known = self.known.load();
        self.store(Known { least: known.least.max(least), ..Known::clone(&known) });
    }

    /// Forgets everything: a version of `era` is about to be installed, and hidden entries may show in it again.
    pub fn begin_era(&self, era: u64) {
        let _changing = self.changing.lock();
        let least = self.known.load().least;
        self.store(Known { era, least, ..Known::default() });
    }

    /// Called with `changing` held.
    fn store(&self, known: Known) {
        self.any.store(!known.is_empty(), Release);
        self.known.store(Arc::new(known));
    }
}

#[cfg(test)]
#[path = "gaps_tests.rs"]
mod tests;
