//! Coverage of keys by range tombstones, for a walk over the keys.
//!
//! Each source of a view with range tombstones has a rank: its place among the merged children, youngest first. The
//! answer is constant between two neighbouring bounds of all fragments. Such a *span* is cached, so a walk computes
//! coverage once per span. Without tombstones nothing is computed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::tombstone::{Fragment, FragmentedTombstones};
use base::{FileNumber, SeqNo, UserOrder};
use parking_lot::Mutex;

use crate::version::table_file::TableFile;

/// The tombstones of one flushable or table.
struct Source {
    rank: usize,
    tombstones: Arc<FragmentedTombstones>,
    /// Index of the first fragment ending after the last queried key.
    at: usize,
}

/// Collects tombstones of tables opened during the walk.
pub struct CoverFeed {
    shared: Arc<Feed>,
}

#[derive(Default)]
struct Feed {
    /// Number of sources ever added. Shows new sources without taking the lock.
    added: AtomicUsize,
    list: Mutex<FeedList>,
}

#[derive(Default)]
struct FeedList {
    waiting: Vec<Source>,
    known: BTreeSet<FileNumber>,
}

impl CoverFeed {
    /// Adds the tombstones of a table of the child with this rank, once.
    pub fn add(&self, rank: usize, file: &TableFile, tombstones: Arc<FragmentedTombstones>) {
        let mut list = self.shared.list.lock();
        if list.known.insert(file.number()) {
            let tombstones = file.meta.tombstones_inside(&tombstones);
            list.waiting.push(Source { rank, tombstones, at: 0 });
            self.shared.added.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The tombstones of all sources of a view, at one sequence number.
pub struct CoverIndex {
    order: UserOrder,
    visible: SeqNo,
    /// By rank.
    sources: Vec<Source>,
    feed: Arc<Feed>,
    /// Number of fed sources already in `sources`.
    taken: usize,
    span: Span,
}

/// A range of user keys with the same applicable fragments. `None` bounds are the ends of the key space.
#[derive(Default)]
struct Span {
    known: bool,
    start: Edge,
    end: Edge,
    newest: SeqNo,
}

/// A user key in reused memory, or no bound.
#[derive(Default)]
struct Edge {
    bounded: bool,
    key: Vec<u8>,
}

impl Edge {
    fn set(&mut self, key: Option<&[u8]>) {
        self.bounded = key.is_some();
        self.key.clear();
        self.key.extend_from_slice(key.unwrap_or_default());
    }
}

/// A range of deleted entries: the tombstone covers every entry of children after `rank`.
pub struct Hole<'a> {
    pub rank: usize,
    pub start: &'a [u8],
    pub end: &'a [u8],
}

impl CoverIndex {
    /// Ignores tombstones above `visible`.
    pub fn new(order: UserOrder, visible: SeqNo) -> Self {
        let feed = Arc::default();
        CoverIndex { order, visible, sources: Vec::new(), feed, taken: 0, span: Span::default() }
    }

    pub fn add(&mut self, rank: usize, tombstones: Arc<FragmentedTombstones>) {
        self.insert(Source { rank, tombstones, at: 0 });
    }

    /// Returns a feed for children discovering tables with tombstones during the walk.
    pub fn feed(&self) -> CoverFeed {
        CoverFeed { shared: self.feed.clone() }
    }

    fn insert(&mut self, source: Source) {
        let at = self.sources.partition_point(|s| s.rank <= source.rank);
        self.sources.insert(at, source);
        self.span.known = false;
    }

    /// The newest visible tombstone over `user_key`; zero if there is none. Entries older than it are deleted.
    #[inline]
    pub fn newest_over(&mut self, user_key: &[u8]) -> SeqNo {
        // Only this walk's cursors feed, on the calling thread: no ordering is needed.
        let has_all = self.feed.added.load(Ordering::Relaxed) == self.taken;
        if has_all && self.sources.is_empty() { SeqNo::ZERO } else { self.find_newest_over(user_key) }
    }

    fn find_newest_over(&mut self, user_key: &[u8]) -> SeqNo {
        self.take_fed();
        if !self.span_holds(user_key) {
            self.find_span(user_key);
        }
        self.span.newest
    }

    /// The fragment over the last queried key from the youngest source covering it.
    pub fn hole(&self) -> Option<Hole<'_>> {
        self.sources.iter().find_map(|source| {
            let fragment = source.fragment().filter(|f| f.newest_at(self.visible).is_some())?;
            // The fragment ends at or after the span's end. So it covers the key if it starts at or before the span's
            // start.
            let starts_before =
                self.span.start.bounded && self.order.compare(&fragment.start, &self.span.start.key).is_le();
            starts_before.then_some(Hole { rank: source.rank, start: &fragment.start, end: &fragment.end })
        })
    }

    fn take_fed(&mut self) {
        if self.feed.added.load(Ordering::Relaxed) == self.taken {
            return;
        }
        let fed = std::mem::take(&mut self.feed.list.lock().waiting);
        self.taken += fed.len();
        for source in fed {
            self.insert(source);
        }
    }

    fn span_holds(&self, user_key: &[u8]) -> bool {
        let Span { known, start, end, .. } = &self.span;
        *known
            && (!start.bounded || self.order.compare(&start.key, user_key).is_le())
            && (!end.bounded || self.order.compare(user_key, &end.key).is_lt())
    }

    fn find_span(&mut self, user_key: &[u8]) {
        let order = &self.order;
        let (mut start, mut end, mut newest) = (None, None, SeqNo::ZERO);
        for source in &mut self.sources {
            source.at = locate(&source.tombstones, source.at, user_key);
            let inside = source.fragment().filter(|f| order.compare(&f.start, user_key).is_le());
            let (from, to) = match inside {
                Some(fragment) => (Some(&fragment.start), Some(&fragment.end)),
                None => (source.fragment_before().map(|f| &f.end), source.fragment().map(|f| &f.start)),
            };
            if let Some(seq) = inside.and_then(|f| f.newest_at(self.visible)) {
                newest = newest.max(seq);
            }
            start = [start, from].into_iter().flatten().max_by(|a, b| order.compare(a, b));
            end = [end, to].into_iter().flatten().min_by(|a, b| order.compare(a, b));
        }
        self.span.known = true;
        self.span.start.set(start.map(Vec::as_slice));
        self.span.end.set(end.map(Vec::as_slice));
        self.span.newest = newest;
    }
}

impl Source {
    fn fragment(&self) -> Option<&Fragment> {
        self.tombstones.fragments().get(self.at)
    }

    fn fragment_before(&self) -> Option<&Fragment> {
        self.tombstones.fragments().get(self.at.checked_sub(1)?)
    }
}

/// The index of the first fragment ending after `user_key`. Tries `hint` and its neighbours first, enough for most
/// steps of a walk.
pub fn locate(tombstones: &FragmentedTombstones, hint: usize, user_key: &[u8]) -> usize {
    let order = tombstones.order();
    let ends_after = |i: usize| match tombstones.fragments().get(i) {
        Some(fragment) => order.compare(&fragment.end, user_key).is_gt(),
        None => true,
    };
    let is_first = |i: usize| ends_after(i) && i.checked_sub(1).is_none_or(|before| !ends_after(before));
    let nearby = [hint, hint + 1, hint.saturating_sub(1)];
    nearby
        .into_iter()
        .find(|&i| i <= tombstones.fragments().len() && is_first(i))
        .unwrap_or_else(|| tombstones.seek(user_key))
}

#[cfg(test)]
#[path = "tombstones_tests.rs"]
mod tests;
