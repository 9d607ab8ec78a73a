//! Sorted runs of references to entries, and the ladder that keeps them few: each run is at least twice as long as the
//! one after it, so that n entries make at most log2 n runs and each entry is merged at most log2 n times.

use std::cmp::Ordering;
use std::sync::Arc;

use base::key;

use crate::arena::{Arena, Ref};
use crate::order::KeyOrder;
use crate::record::{self, Record};

/// Runs of a full ladder: the longest has fewer than 2^32 entries, because references have 32 bits.
pub(super) const RUNS_MAX: usize = 33;

/// A published entry, with enough of its key to settle most comparisons.
#[derive(Clone, Copy)]
pub(super) struct Item {
    prefix: u64,
    at: Ref,
}

pub(super) type Run = Arc<[Item]>;

/// An internal key to search for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    prefix: u64,
    user_key: &'a [u8],
    trailer: u64,
}

/// Where entries are, and how they sort.
pub(super) struct Entries<O> {
    pub(super) arena: Arena,
    pub(super) order: O,
}

impl<O: KeyOrder> Entries<O> {
    /// The item of the record at `at`, which must have been written by the calling thread or published to it.
    pub(super) fn item(&self, at: Ref, user_key: &[u8]) -> Item {
        Item { prefix: O::prefix(user_key), at }
    }

    #[inline]
    pub(super) fn record(&self, item: Item) -> Record<'_> {
        // SAFETY: items are made from written records and reach other threads through the shards' locks, which publish
        // the records too (A2).
        unsafe { record::read(&self.arena, item.at) }
    }

    pub(super) fn target<'a>(&self, user_key: &'a [u8], trailer: u64) -> Target<'a> {
        Target { prefix: O::prefix(user_key), user_key, trailer }
    }

    pub(super) fn internal_target<'a>(&self, internal_key: &'a [u8]) -> Target<'a> {
        let (user_key, trailer) = key::split(internal_key).unwrap_or((internal_key, u64::MAX));
        self.target(user_key, trailer)
    }

    #[inline]
    pub(super) fn compare_to(&self, item: Item, target: &Target<'_>) -> Ordering {
        item.prefix.cmp(&target.prefix).then_with(|| {
            let (user_key, trailer) = self.record(item).split();
            self.order.compare(user_key, target.user_key).then_with(|| target.trailer.cmp(&trailer))
        })
    }

    /// A total order: of entries with equal internal keys the later comes first.
    #[inline]
    pub(super) fn compare(&self, a: Item, b: Item) -> Ordering {
        let target = |item: Item| {
            let (user_key, trailer) = self.record(item).split();
            Target { prefix: item.prefix, user_key, trailer }
        };
        a.prefix.cmp(&b.prefix).then_with(|| self.compare_to(a, &target(b))).then_with(|| b.at.cmp(&a.at))
    }

    pub(super) fn sort(&self, items: &mut [Item]) {
        items.sort_unstable_by(|a, b| self.compare(*a, *b));
    }

    fn merge(&self, a: &[Item], b: &[Item]) -> Run {
        let mut merged = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let from = if self.compare(*x, *y).is_lt() { &mut a } else { &mut b };
            merged.extend(from.next());
        }
        merged.extend(a);
        merged.extend(b);
        merged.into()
    }

    /// Adds a run to a ladder, merging what has become too similar in length.
    pub(super) fn push_run(&self, ladder: &mut Vec<Run>, run: Run) {
        ladder.push(run);
        while let [.., longer, last] = ladder.as_slice()
            && longer.len() < 2 * last.len()
        {
            self.merge_last(ladder);
        }
        assert!(ladder.len() <= RUNS_MAX, "a ladder's runs double in length");
    }

    /// Merges a ladder into one run at most, the shortest first.
    pub(super) fn merge_all(&self, ladder: &mut Vec<Run>) {
        while ladder.len() > 1 {
            self.merge_last(ladder);
        }
    }

    fn merge_last(&self, ladder: &mut Vec<Run>) {
        if let (Some(b), Some(a)) = (ladder.pop(), ladder.pop()) {
            ladder.push(self.merge(&a, &b));
        }
    }
}

/// A position in a ladder: for each run its first entry at or after the current one. The current one's run points at it,
/// all others point beyond, so steps in either direction need no search.
pub(super) struct Walk {
    at: [usize; RUNS_MAX],
    /// The current entry's run; `None` where the walk stands nowhere.
    run: Option<usize>,
}

impl Walk {
    pub(super) fn nowhere() -> Walk {
        Walk { at: [0; RUNS_MAX], run: None }
    }

    /// Stands on the first entry for which `passed` is false; it must be true for a prefix of each run.
    pub(super) fn seek<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run], passed: impl Fn(Item) -> bool) {
        self.place(runs, passed);
        self.choose_first(entries, runs);
    }

    /// Stands on the last entry for which `passed` is true.
    pub(super) fn seek_back<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run], passed: impl Fn(Item) -> bool) {
        self.place(runs, passed);
        self.choose_last(entries, runs);
    }

    pub(super) fn next<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run]) {
        if let Some(at) = self.run.and_then(|run| self.at.get_mut(run)) {
            *at += 1;
        }
        self.choose_first(entries, runs);
    }

    pub(super) fn prev<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run]) {
        self.choose_last(entries, runs);
    }

    pub(super) fn item(&self, runs: &[Run]) -> Option<Item> {
        let run = self.run?;
        runs.get(run)?.get(*self.at.get(run)?).copied()
    }

    fn place(&mut self, runs: &[Run], passed: impl Fn(Item) -> bool) {
        for (at, run) in self.at.iter_mut().zip(runs) {
            *at = run.partition_point(|item| passed(*item));
        }
    }

    fn choose_first<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run]) {
        let heads = self.at.iter().zip(runs).enumerate().filter_map(|(i, (at, run))| Some((i, *run.get(*at)?)));
        self.run = heads.min_by(|(_, a), (_, b)| entries.compare(*a, *b)).map(|(i, _)| i);
    }

    fn choose_last<O: KeyOrder>(&mut self, entries: &Entries<O>, runs: &[Run]) {
        let before = |at: usize, run: &Run| run.get(at.checked_sub(1)?).copied();
        let tails = self.at.iter().zip(runs).enumerate().filter_map(|(i, (at, run))| Some((i, before(*at, run)?)));
        self.run = tails.max_by(|(_, a), (_, b)| entries.compare(*a, *b)).map(|(i, _)| i);
        if let Some(at) = self.run.and_then(|run| self.at.get_mut(run)) {
            *at -= 1;
        }
    }
}
