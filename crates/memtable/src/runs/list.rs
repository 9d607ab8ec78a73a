//! The write list: the lists threads append to, and the chunks readers see.
//!
//! Locks, outermost first: `merging`, `cutting`, a shard's list. No large sort or merge runs under the latter two, so
//! writers wait for a few stores at most. A reader waits for its own sort and the sorts under way.

use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::chunk::{Chunk, Run};
use super::item::{Entries, Item};
use super::ladder::{Parts, is_too_similar, merge};
use super::prefix::{Base, Learner};
use crate::Background;
use crate::order::{Direction, KeyOrder};
use crate::stripe::{Counts, Stripe, Stripes};

/// Entries up to which a reader merges itself, so that small cuts do not pile up: some ten microseconds.
const SMALL_MERGE: usize = 8192;

/// Entries up to which a cut is sorted and merged before readers see it: a microsecond or so under `cutting`.
const TINY_MERGE: usize = 512;

/// Chunks from which a reader runs all pending merges, because the background has fallen behind.
const CHUNKS_MAX: usize = 16;

/// Most items reserved by a list when it restarts after a cut.
const RESTART_ITEMS: usize = 64;

/// How the lists of stripes grow.
pub(crate) struct Growth {
    /// Items to reserve when a list is first used, if memory allows.
    pub(crate) first: usize,
    /// Items at which a list is handed to the background.
    pub(crate) max: usize,
}

pub(crate) struct RunsList<O> {
    pub(crate) entries: Entries<O>,
    shards: Stripes<Shard>,
    /// The readers' snapshot. Changed under `cutting`.
    parts: ArcSwap<Parts>,
    cutting: Mutex<()>,
    /// Held over merges of more than [`SMALL_MERGE`].
    merging: Mutex<()>,
    learner: Learner,
    growth: Growth,
    background: Background,
    /// A background task is queued and has not begun.
    scheduled: AtomicBool,
    /// No append follows.
    sealed: AtomicBool,
    /// Bytes of chunks.
    held: Arc<AtomicUsize>,
    me: Weak<RunsList<O>>,
}

/// Items appended by threads of one stripe.
#[derive(Default)]
struct Shard {
    unsorted: Mutex<Vec<Item>>,
    /// Items ever appended. Written under the lock of `unsorted`, read without it.
    appended: AtomicU64,
}

impl<O: KeyOrder> RunsList<O> {
    pub(crate) fn new(entries: Entries<O>, growth: Growth, background: Background) -> Arc<Self> {
        let shards = Stripes::new(Shard::default);
        let nothing = Parts { chunks: Vec::new(), covered: shards.iter().map(|_| 0).collect() };
        Arc::new_cyclic(|me| RunsList {
            entries,
            shards,
            parts: ArcSwap::from_pointee(nothing),
            cutting: Mutex::new(()),
            merging: Mutex::new(()),
            learner: Learner::new(),
            growth,
            background,
            scheduled: AtomicBool::new(false),
            sealed: AtomicBool::new(false),
            held: Arc::default(),
            me: Weak::clone(me),
        })
    }

    /// Appends items of records written by the calling thread, and adds `counts`.
    #[inline]
    pub(crate) fn append(&self, items: &[Item], counts: Counts) {
        let stripe = self.shards.mine();
        let mut unsorted = stripe.own.unsorted.lock();
        stripe.add_alone(counts);
        let full = self.fill(stripe, &mut unsorted, items);
        drop(unsorted);
        if let Some(rest) = full {
            self.append_full(stripe, rest);
        }
    }

    /// Appends as many of `items` as fit. If the list is then full, returns the rest.
    #[inline]
    fn fill<'a>(&self, stripe: &Stripe<Shard>, unsorted: &mut Vec<Item>, items: &'a [Item]) -> Option<&'a [Item]> {
        let room = self.growth.max - unsorted.len();
        let (fits, rest) = items.split_at_checked(room).unwrap_or((items, &[]));
        // Only this thread writes the number: it holds the lock.
        let appended = stripe.own.appended.load(Relaxed);
        if unsorted.capacity() - unsorted.len() < fits.len() {
            self.grow(unsorted, fits.len(), appended == 0);
        }
        unsorted.extend_from_slice(fits);
        // Release: a reader of this number finds the items behind the lock.
        stripe.own.appended.store(appended + fits.len() as u64, Release);
        (unsorted.len() == self.growth.max).then_some(rest)
    }

    /// Makes room for `more` items, within the list's maximum, and for later ones.
    fn grow(&self, unsorted: &mut Vec<Item>, more: usize, is_first: bool) {
        let first = if is_first { self.growth.first } else { self.growth.first.min(RESTART_ITEMS) };
        let wanted = (2 * unsorted.capacity()).max(first).max(unsorted.len() + more).min(self.growth.max);
        if unsorted.try_reserve_exact(wanted - unsorted.len()).is_err() {
            unsorted.reserve_exact(more);
        }
    }

    #[cold]
    fn append_full(&self, stripe: &Stripe<Shard>, mut items: &[Item]) {
        loop {
            self.hand_over();
            let rest = self.fill(stripe, &mut stripe.own.unsorted.lock(), items);
            match rest {
                Some(rest) => items = rest,
                None => return,
            }
        }
    }

    /// Cuts off the full lists, and schedules their sort in the background.
    fn hand_over(&self) {
        {
            let _cutting = self.cutting.lock();
            self.cut(|unsorted| unsorted.len() >= self.growth.max);
        }
        self.schedule();
    }

    /// Makes one chunk of the `wanted` lists. The caller holds `cutting`.
    fn cut(&self, wanted: impl Fn(&Vec<Item>) -> bool) -> Arc<Parts> {
        let before = self.parts.load_full();
        let mut covered = Vec::with_capacity(before.covered.len());
        let mut items = Vec::new();
        for (stripe, &before) in self.shards.iter().zip(&before.covered) {
            let mut unsorted = stripe.own.unsorted.lock();
            if unsorted.is_empty() || !wanted(&unsorted) {
                covered.push(before);
                continue;
            }
            covered.push(stripe.own.appended.load(Relaxed));
            let taken = std::mem::take(&mut *unsorted);
            drop(unsorted);
            if items.is_empty() { items = taken } else { items.extend(taken) }
        }
        if items.is_empty() {
            return before;
        }
        let parts = match items.len() {
            // A user's comparator might panic: its entries must be in a chunk first.
            0..=TINY_MERGE if O::DIRECTION != Direction::Unknown => self.with_tiny(&before, items),
            _ => before.with(Arc::new(Chunk::unsorted(items, &self.held))),
        };
        let parts = Arc::new(Parts { covered, ..parts });
        self.parts.store(Arc::clone(&parts));
        parts
    }

    /// `before` with a few items more, sorted and merged with the chunks of similar size.
    fn with_tiny(&self, before: &Parts, mut items: Vec<Item>) -> Parts {
        let base = self.sort(&mut items, before);
        let mut run = Run { base, items: items.into_boxed_slice() };
        let mut chunks = before.chunks.as_slice();
        while let Some((last, others)) = chunks.split_last()
            && let Some(last) = last.run()
            && is_too_similar(last.items.len(), run.items.len())
            && last.items.len() + run.items.len() <= TINY_MERGE
        {
            run = self.merged(last, &run);
            chunks = others;
        }
        let rest = Parts { chunks: chunks.to_vec(), covered: Vec::new() };
        rest.with(Arc::new(Chunk::sorted(run, &self.held)))
    }

    /// Chunks, all sorted, that hold every entry whose insert returned before this call.
    pub(super) fn current(&self) -> Arc<Parts> {
        // Loaded before the parts: if true, the parts include the last cut.
        let sealed = self.sealed.load(Acquire);
        let parts = self.parts.load();
        if sealed || self.covers_all(&parts) {
            if parts.chunks.iter().all(|chunk| chunk.run().is_some()) {
                return Arc::clone(&parts);
            }
            return self.tidy(Arc::clone(&parts));
        }
        drop(parts);
        let parts = {
            let _cutting = self.cutting.lock();
            self.cut(|_| true)
        };
        self.tidy(parts)
    }

    fn covers_all(&self, parts: &Parts) -> bool {
        let appended = self.shards.iter().map(|stripe| stripe.own.appended.load(Acquire));
        appended.zip(&parts.covered).all(|(appended, covered)| appended <= *covered)
    }

    /// Sorts the chunks of `parts` and merges small ones; returns the new parts.
    fn tidy(&self, mut parts: Arc<Parts>) -> Arc<Parts> {
        loop {
            self.sort_all(&parts);
            let Some(pair) = parts.too_similar(SMALL_MERGE) else { break };
            self.merge_pair(&pair);
            parts = self.parts.load_full();
        }
        if parts.too_similar(usize::MAX).is_none() {
            return parts;
        }
        if parts.chunks.len() <= CHUNKS_MAX {
            self.schedule();
            return parts;
        }
        self.merge_similar();
        let parts = self.parts.load_full();
        self.sort_all(&parts);
        parts
    }

    fn sort_all(&self, parts: &Parts) {
        for chunk in &parts.chunks {
            self.run_of(chunk);
        }
    }

    /// The run of a chunk, sorted now if it was not sorted yet.
    fn run_of<'a>(&self, chunk: &'a Chunk) -> &'a Run {
        chunk.sort_with(|items| self.sort(items, &self.parts.load()))
    }

    /// Sorts freshly appended items, and returns their base. `parts` are the chunks beside them.
    fn sort(&self, items: &mut [Item], parts: &Parts) -> Arc<Base> {
        let total = || self.shards.totals().entries;
        let base = self.learner.base_for(&self.entries, items, parts.items(0), total);
        if !base.is_empty() {
            base.rekey(&self.entries, items);
        }
        self.entries.sort(items);
        base
    }

    /// Schedules [`work`](Self::work) in the background; at most one task is queued.
    fn schedule(&self) {
        if self.scheduled.swap(true, AcqRel) {
            return;
        }
        let me = Weak::clone(&self.me);
        self.background.run(Box::new(move || {
            if let Some(list) = me.upgrade() {
                // Acquires the changes of callers for which the task was already scheduled.
                list.scheduled.swap(false, AcqRel);
                list.work();
            }
        }));
    }

    /// Sorts unsorted chunks, then merges chunks of similar length.
    fn work(&self) {
        let unsorted = || self.parts.load().chunks.iter().find(|chunk| chunk.run().is_none()).cloned();
        while let Some(chunk) = unsorted() {
            self.run_of(&chunk);
        }
        self.merge_similar();
    }

    /// Brings the ladder into order, unless another thread is doing so.
    fn merge_similar(&self) {
        let Some(_merging) = self.merging.try_lock() else { return };
        self.climb();
    }

    /// As `merge_similar`. The caller holds `merging`.
    fn climb(&self) {
        let too_similar = || self.parts.load().too_similar(usize::MAX);
        while let Some(pair) = too_similar() {
            self.merge_pair(&pair);
        }
    }

    /// Merges two chunks, unless another thread has merged one of them meanwhile.
    fn merge_pair(&self, pair: &[Arc<Chunk>; 2]) {
        let [a, b] = pair;
        let run = self.merged(self.run_of(a), self.run_of(b));
        self.replace(pair, run);
    }

    fn merged(&self, a: &Run, b: &Run) -> Run {
        let base = self.learner.base();
        let items = match (Arc::ptr_eq(&a.base, &base), Arc::ptr_eq(&b.base, &base)) {
            (true, true) => merge(&self.entries, &a.items, &b.items),
            (true, false) => merge(&self.entries, &a.items, &self.rekeyed(&base, b)),
            (false, true) => merge(&self.entries, &self.rekeyed(&base, a), &b.items),
            (false, false) => merge(&self.entries, &self.rekeyed(&base, a), &self.rekeyed(&base, b)),
        };
        Run { base, items: items.into_boxed_slice() }
    }

    fn rekeyed(&self, base: &Base, run: &Run) -> Box<[Item]> {
        let mut items = run.items.clone();
        base.rekey(&self.entries, &mut items);
        items
    }

    /// Replaces `inputs` by their merged run. False if another merge has taken one of them.
    fn replace(&self, inputs: &[Arc<Chunk>], run: Run) -> bool {
        let merged = Arc::new(Chunk::sorted(run, &self.held));
        let _cutting = self.cutting.lock();
        let parts = self.parts.load_full().replacing(inputs, merged);
        parts.map(|parts| self.parts.store(Arc::new(parts))).is_some()
    }

    /// Merges all entries into one run. No append may follow.
    pub(crate) fn seal(&self) {
        {
            let _cutting = self.cutting.lock();
            self.cut(|_| true);
            self.sealed.store(true, Release);
        }
        let _merging = self.merging.lock();
        loop {
            // Needed if the background lags: else each of many chunks of equal length would move every entry before it.
            self.climb();
            let parts = self.parts.load_full();
            // Shortest first: each is far shorter than the next, so an entry moves about twice.
            let mut chunks = parts.chunks.iter().rev();
            let (Some(shortest), Some(next)) = (chunks.next(), chunks.next()) else {
                return self.sort_all(&parts);
            };
            let mut all = self.merged(self.run_of(shortest), self.run_of(next));
            for chunk in chunks {
                all = self.merged(&all, self.run_of(chunk));
            }
            self.replace(&parts.chunks, all);
        }
    }

    /// Counts of all inserted entries.
    pub(crate) fn totals(&self) -> Counts {
        self.shards.totals()
    }

    /// Heap bytes outside the arena, including chunks held only by cursors.
    pub(crate) fn heap_bytes(&self) -> usize {
        let lists = self.shards.iter().map(|stripe| stripe.own.unsorted.lock().capacity() * size_of::<Item>());
        size_of_val(self) + self.held.load(Relaxed) + lists.sum::<usize>()
    }
}
