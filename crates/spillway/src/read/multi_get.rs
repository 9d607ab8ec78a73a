//! Many point lookups in one walk over the view. Each memtable and table is searched once for all its candidate keys,
//! in key order. Keeps Q1, V1.

use std::sync::Arc;

use base::{LookupKey, Result, SeqNo};
use table::TableReadOptions;

use super::ReadContext;
use super::options::ReadOptions;
use super::search::{Found, Search, Source};
use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;

/// Looks up all `keys` as of `seq`. Results have the order of `keys`, each with its own error.
pub fn multi_get(
    view: &ReadView,
    context: &ReadContext,
    keys: &[&[u8]],
    seq: SeqNo,
    options: &ReadOptions,
) -> Vec<Result<Found>> {
    let mut sorted: Vec<usize> = (0..keys.len()).collect();
    let key_at = |i: usize| keys.get(i).copied().unwrap_or_default();
    sorted.sort_by(|&a, &b| context.order.user.compare(key_at(a), key_at(b)));
    let lookups: Vec<LookupKey> = sorted.iter().map(|&i| LookupKey::new(key_at(i), seq)).collect();
    let mut batch = Batch {
        lookups: &lookups,
        searches: sorted.iter().map(|&i| Search::new(context, key_at(i), seq).merging(options.merges)).collect(),
        pending: (0..keys.len()).collect(),
        options: options.for_tables(),
    };
    batch.walk(view);
    let mut results: Vec<(usize, Result<Found>)> =
        sorted.into_iter().zip(batch.searches.into_iter().map(Search::finish)).collect();
    results.sort_unstable_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The lookups by ascending key. Indices below refer to this order.
struct Batch<'a> {
    lookups: &'a [LookupKey],
    searches: Vec<Search<'a>>,
    /// Undecided lookups, ascending.
    pending: Vec<usize>,
    options: TableReadOptions,
}

impl<'a> Batch<'a> {
    fn walk(&mut self, view: &ReadView) {
        self.in_flushable(&*view.mutable);
        for flushable in &view.queue {
            self.in_flushable(&**flushable);
        }
        let order = &view.version.order().user;
        for file in view.version.level(0) {
            let spanned = |i: &usize| {
                let user_key = self.key(*i).user_key();
                overlaps(order, &file.meta, Some(user_key), Some(user_key))
            };
            let asked: Vec<usize> = self.pending.iter().copied().filter(spanned).collect();
            self.in_table(file, 0, &asked);
            self.retain_pending();
        }
        for level in 1..view.version.num_levels() {
            if self.pending.is_empty() {
                return;
            }
            self.in_level(view, level);
        }
    }

    #[expect(clippy::indexing_slicing, reason = "places come from 0..keys.len(), the length of both lists")]
    fn key(&self, i: usize) -> &'a LookupKey {
        &self.lookups[i]
    }

    #[expect(clippy::indexing_slicing, reason = "places come from 0..keys.len(), the length of both lists")]
    fn search(&mut self, i: usize) -> &mut Search<'a> {
        &mut self.searches[i]
    }

    fn in_flushable(&mut self, flushable: &dyn Flushable) {
        if self.pending.is_empty() {
            return;
        }
        let asked = std::mem::take(&mut self.pending);
        let shown = self.show_flushable(flushable, &asked);
        self.end_source(shown, Source::Queue, &asked);
        self.pending = asked;
        self.retain_pending();
    }

    fn show_flushable(&mut self, flushable: &dyn Flushable, asked: &[usize]) -> Result<()> {
        if let Some(tombstones) = flushable.tombstones(&self.options)? {
            asked.iter().for_each(|&i| self.search(i).cover(Some(&tombstones)));
        }
        let keys: Vec<&LookupKey> = asked.iter().map(|&i| self.key(i)).collect();
        let options = self.options.clone();
        flushable.multi_get(&keys, &options, &mut |nth, seq, kind, value| {
            asked.get(nth).is_some_and(|&i| self.search(i).entry(seq, kind, value))
        })
    }

    /// Searches each table of a sorted level for the keys it spans.
    fn in_level(&mut self, view: &ReadView, level: usize) {
        // A key spans a second table only if RocksDB split its versions. Later tables are searched in later rounds.
        for round in 0.. {
            let mut group: Vec<usize> = Vec::new();
            let mut current: Option<&Arc<TableFile>> = None;
            let mut more = false;
            for i in self.pending.clone() {
                let files = view.version.candidates(level, self.key(i).user_key());
                more |= files.len() > round + 1;
                let Some(file) = files.get(round) else { continue };
                if let Some(before) = current.filter(|before| before.number() != file.number()) {
                    self.in_table(before, level, &group);
                    group.clear();
                }
                current = Some(file);
                group.push(i);
            }
            if let Some(last) = current {
                self.in_table(last, level, &group);
            }
            // A key decided by a tombstone alone stays pending: its next table may hold newer versions.
            self.retain(|search| !search.is_answered());
            if !more {
                break;
            }
        }
        self.retain_pending();
    }

    fn in_table(&mut self, file: &TableFile, level: usize, asked: &[usize]) {
        if asked.is_empty() {
            return;
        }
        let keys: Vec<&LookupKey> = asked.iter().map(|&i| self.key(i)).collect();
        let options = self.options.clone();
        let shown = file.read_by(&options, |table| {
            if let Some(tombstones) = table.tombstones() {
                asked.iter().for_each(|&i| self.search(i).cover(Some(&tombstones)));
            }
            table.multi_get(&keys, &options, &mut |nth, seq, kind, value| {
                asked.get(nth).is_some_and(|&i| self.search(i).entry(seq, kind, value))
            })
        });
        self.end_source(shown, Source::Level(level), asked);
    }

    /// Ends a source for the keys in `asked`. An error of the source fails every key without an answer.
    fn end_source(&mut self, shown: Result<()>, source: Source, asked: &[usize]) {
        for &i in asked {
            let search = self.search(i);
            if let Err(error) = &shown {
                search.fail_unless_found(error);
            }
            search.decided_by(source);
        }
    }

    fn retain_pending(&mut self) {
        self.retain(|search| !search.is_decided());
    }

    fn retain(&mut self, is_open: impl Fn(&Search<'a>) -> bool) {
        let searches = &self.searches;
        self.pending.retain(|&i| searches.get(i).is_some_and(&is_open));
    }
}
