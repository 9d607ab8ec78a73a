//! Many point lookups in one walk over the views of their families. A memtable is searched for all its keys together, the
//! tables of a level for the keys of all families. Keeps Q1, V1.

use std::cmp::Ordering;
use std::sync::Arc;

use base::metrics::is_sampled;
use base::{ErrorKind, LookupKey, Pinned, Result, SeqNo};
use table::{Lane, Table, TableReadOptions, TableValue, look_up_together};

use crate::cursor::ReadContext;
use crate::cursor::options::ReadOptions;
use crate::cursor::search::{Found, Search, Source};
use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// A key, and its family's state.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub view: &'a ReadView,
    pub context: &'a ReadContext,
    pub user_key: &'a [u8],
}

impl Asked<'_> {
    fn is_of_family(&self, other: &Self) -> bool {
        std::ptr::eq(self.view, other.view)
    }

    /// Keys of a family stand together, ascending. The order of families has no meaning.
    fn compare(&self, other: &Self) -> Ordering {
        match self.is_of_family(other) {
            true => self.context.order.user.compare(self.user_key, other.user_key),
            false => std::ptr::from_ref(self.view).cmp(&std::ptr::from_ref(other.view)),
        }
    }
}

/// As [`multi_get`], counted in the database's statistics, or its sample. Values alone.
pub fn multi_get_counted(asked: &[Asked<'_>], seq: SeqNo, options: &ReadOptions) -> Vec<Result<Option<Pinned>>> {
    let look_up = || multi_get(asked, seq, options);
    let Some(ReadContext { meter, sample, .. }) = asked.first().map(|asked| asked.context) else { return Vec::new() };
    let results = match meter {
        Some(meter) => meter.multi_get(look_up),
        None => look_up(),
    };
    if let Some(sample) = sample.as_ref().filter(|_| is_sampled()) {
        results.iter().flatten().for_each(|found| sample.count(found));
    }
    results.into_iter().map(|result| result.map(|found| found.value)).collect()
}

/// Looks up all keys as of `seq`. Results have the order of `asked`, each with its own error.
pub fn multi_get<'a>(asked: &'a [Asked<'a>], seq: SeqNo, options: &ReadOptions) -> Vec<Result<Found>> {
    let lookups: Vec<LookupKey> = asked.iter().map(|asked| LookupKey::new(asked.user_key, seq)).collect();
    let search = |asked: &Asked<'a>| Search::new(asked.context, asked.user_key, seq).merging(options.merges);
    let mut batch = Batch {
        asked,
        lookups: &lookups,
        searches: asked.iter().map(search).collect(),
        pending: Vec::new(),
        options: options.for_tables(),
    };
    batch.walk();
    batch.searches.into_iter().map(Search::finish).collect()
}

/// The lookups, as they were asked for.
struct Batch<'a> {
    asked: &'a [Asked<'a>],
    lookups: &'a [LookupKey],
    searches: Vec<Search<'a>>,
    /// Undecided lookups, in the order of [`Asked::compare`].
    pending: Vec<usize>,
    options: TableReadOptions,
}

/// A table and the lookup to ask it for.
type ToTable<'a> = (usize, &'a Arc<TableFile>);

impl<'a> Batch<'a> {
    fn walk(&mut self) {
        let mut all: Vec<(usize, &Asked<'_>)> = self.asked.iter().enumerate().collect();
        all.sort_by(|(_, a), (_, b)| a.compare(b));
        let mut versions: Vec<&Version> = Vec::new();
        let mut undecided = Vec::with_capacity(all.len());
        for of_family in all.chunk_by(|(_, a), (_, b)| a.is_of_family(b)) {
            let Some((_, first)) = of_family.first() else { continue };
            self.pending.extend(of_family.iter().map(|&(i, _)| i));
            self.in_memory(first.view);
            undecided.append(&mut self.pending);
            versions.push(&first.view.version);
        }
        self.pending = undecided;
        self.in_level_0(&versions);
        let levels = versions.iter().map(|version| version.num_levels()).max().unwrap_or(0);
        for level in 1..levels {
            if self.pending.is_empty() {
                return;
            }
            if versions.iter().any(|version| !version.level(level).is_empty()) {
                self.in_level(level);
            }
        }
    }

    #[expect(clippy::indexing_slicing, reason = "places come from 0..asked.len(), the length of all lists")]
    fn version(&self, i: usize) -> &'a Version {
        &self.asked[i].view.version
    }

    #[expect(clippy::indexing_slicing, reason = "places come from 0..asked.len(), the length of all lists")]
    fn key(&self, i: usize) -> &'a LookupKey {
        &self.lookups[i]
    }

    #[expect(clippy::indexing_slicing, reason = "places come from 0..asked.len(), the length of all lists")]
    fn search(&mut self, i: usize) -> &mut Search<'a> {
        &mut self.searches[i]
    }

    /// Searches the queue and the kept answers of one family, whose lookups are pending.
    fn in_memory(&mut self, view: &ReadView) {
        self.in_flushable(&*view.mutable);
        for flushable in &view.queue {
            self.in_flushable(&**flushable);
        }
        self.ask(&view.version);
    }

    /// Asks the kept answers.
    fn ask(&mut self, version: &Version) {
        let (asked, fill_cache) = (std::mem::take(&mut self.pending), self.options.fill_cache);
        for &i in &asked {
            self.search(i).ask(version, fill_cache);
        }
        self.pending = asked;
        self.retain_pending();
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

    /// Searches the tables of level 0, from the newest on: the nth of each family together.
    fn in_level_0(&mut self, versions: &[&Version]) {
        let tables = versions.iter().map(|version| version.level(0).len()).max().unwrap_or(0);
        for nth in 0..tables {
            let nth_table = |&i: &usize| {
                let (file, user_key) = (self.version(i).level(0).get(nth)?, Some(self.key(i).user_key()));
                overlaps(&self.version(i).order().user, &file.meta, user_key, user_key).then_some((i, file))
            };
            let asked: Vec<ToTable<'_>> = self.pending.iter().filter_map(nth_table).collect();
            self.in_tables(&asked, 0);
            self.retain_pending();
        }
    }

    /// Searches the tables of a sorted level, each for the keys it spans.
    fn in_level(&mut self, level: usize) {
        // A key spans a second table only if RocksDB split its versions. Later tables are searched in later rounds.
        for round in 0.. {
            let mut more = false;
            let mut asked: Vec<ToTable<'_>> = Vec::with_capacity(self.pending.len());
            for &i in &self.pending {
                let files = self.version(i).candidates(level, self.key(i).user_key());
                more |= files.len() > round + 1;
                asked.extend(files.get(round).map(|file| (i, file)));
            }
            self.in_tables(&asked, level);
            // A key decided by a tombstone alone stays pending: its next table may hold newer versions.
            self.retain(|search| !search.is_answered());
            if !more {
                break;
            }
        }
        self.retain_pending();
    }

    /// Searches tables of one level, none of which holds entries of the others' keys, side by side. `asked` is ascending
    /// by table.
    fn in_tables(&mut self, asked: &[ToTable<'_>], level: usize) {
        if asked.is_empty() {
            return;
        }
        let mut opened: Vec<(&[ToTable<'_>], Arc<dyn Table>)> = Vec::with_capacity(asked.len());
        for of_table in asked.chunk_by(|a, b| Arc::ptr_eq(a.1, b.1)) {
            let Some((_, file)) = of_table.first() else { continue };
            match file.open_by(&self.options) {
                Ok(table) => opened.push((of_table, table)),
                Err(error) => of_table.iter().for_each(|&(i, _)| self.search(i).fail_unless_found(&error)),
            }
        }
        let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(asked.len());
        let mut lane_of: Vec<usize> = Vec::with_capacity(asked.len());
        for (of_table, table) in &opened {
            if let Some(tombstones) = table.tombstones() {
                of_table.iter().for_each(|&(i, _)| self.search(i).cover(Some(&tombstones)));
            }
            match table.as_block_based() {
                Some(table) => {
                    lanes.extend(of_table.iter().map(|&(i, _)| Lane { table, key: self.key(i) }));
                    lane_of.extend(of_table.iter().map(|&(i, _)| i));
                }
                None => self.in_table(&**table, of_table),
            }
        }
        let mut failed = Vec::new();
        let options = self.options.clone();
        let mut visit = |nth: usize, seq, kind, value: TableValue<'_>| {
            lane_of.get(nth).is_some_and(|&i| self.search(i).entry(seq, kind, value))
        };
        look_up_together(&lanes, &options, &mut visit, &mut |nth, error| failed.push((nth, error)));
        for (nth, error) in failed {
            if let Some(&i) = lane_of.get(nth) {
                self.search(i).fail(error);
            }
        }
        for &(i, file) in asked {
            if !self.search(i).decided_by(Source::Level(level)) {
                file.count_read();
            }
        }
    }

    /// Searches a table of another format for its keys.
    fn in_table(&mut self, table: &dyn Table, asked: &[ToTable<'_>]) {
        let keys: Vec<&LookupKey> = asked.iter().map(|&(i, _)| self.key(i)).collect();
        let options = self.options.clone();
        let shown = table.multi_get(&keys, &options, &mut |nth, seq, kind, value| {
            asked.get(nth).is_some_and(|&(i, _)| self.search(i).entry(seq, kind, value))
        });
        if let Err(error) = shown {
            for &(i, _) in asked {
                // After a page of a mapping failed, answers may be wrong.
                match error.kind() {
                    ErrorKind::Io => self.search(i).fail(error.clone()),
                    _ => self.search(i).fail_unless_found(&error),
                }
            }
        }
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
