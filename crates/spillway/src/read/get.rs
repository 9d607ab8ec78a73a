//! Point lookups: the mutable memtable, the queue, the kept answers, level 0 from newest to oldest, then one table of every
//! level below. Keeps Q1, V1.

use std::sync::Arc;

use base::{LookupKey, Result, SeqNo};
use table::TableReadOptions;
use vfs::perf::{self, Metric, Timing};

use crate::cursor::ReadContext;
use crate::cursor::options::ReadOptions;
use crate::cursor::search::{Found, Search, Source};
use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;
use crate::version::level::overlaps;
use crate::version::table_file::TableFile;

/// Looks up `user_key` as of `seq`.
///
/// # Errors
/// Errors of table reads and of [`ReadContext::merge`].
pub fn get(
    view: &ReadView,
    context: &ReadContext,
    user_key: &[u8],
    seq: SeqNo,
    options: &ReadOptions,
) -> Result<Found> {
    let key = LookupKey::new(user_key, seq);
    let search = Search::new(context, user_key, seq).merging(options.merges);
    let mut lookup = Lookup { key: &key, options: options.for_tables(), search, memtables: 0 };
    let timing = Timing::of_thread();
    if timing.is_on() {
        return lookup.timed(view, timing);
    }
    if !lookup.in_queue(view)? {
        lookup.in_tables(view)?;
    }
    let memtables = lookup.memtables;
    let found = lookup.search.finish();
    count(memtables, &found);
    found
}

/// Counts a lookup for this thread.
#[inline]
fn count(memtables: u64, found: &Result<Found>) {
    let value = found.as_ref().ok().and_then(|found| found.value.as_ref());
    let bytes = value.map_or(0, |value| value.len() as u64);
    perf::count([(Metric::GetFromMemtableCount, memtables), (Metric::GetReadBytes, bytes)]);
}

struct Lookup<'a> {
    key: &'a LookupKey,
    options: TableReadOptions,
    search: Search<'a>,
    /// Memtables and queued tables searched.
    memtables: u64,
}

impl Lookup<'_> {
    /// The whole lookup, for the times of this thread.
    #[cold]
    fn timed(mut self, view: &ReadView, timing: Timing) -> Result<Found> {
        timing.processor_time(Metric::GetCpuNanos, || {
            if !timing.time(Metric::GetFromMemtableTime, || self.in_queue(view))? {
                timing.time(Metric::GetFromOutputFilesTime, || self.in_tables(view))?;
            }
            let memtables = self.memtables;
            let found = timing.time(Metric::GetPostProcessTime, || self.search.finish());
            count(memtables, &found);
            found
        })
    }

    /// True if older sources cannot matter.
    fn in_queue(&mut self, view: &ReadView) -> Result<bool> {
        if self.in_flushable(&*view.mutable)? {
            return Ok(true);
        }
        for flushable in &view.queue {
            if self.in_flushable(&**flushable)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Searches the kept answers and the tables.
    fn in_tables(&mut self, view: &ReadView) -> Result<()> {
        let version = &*view.version;
        if self.search.ask(version, self.options.fill_cache) {
            return Ok(());
        }
        let (order, user_key) = (&version.order().user, self.key.user_key());
        for file in version.level(0) {
            if overlaps(order, &file.meta, Some(user_key), Some(user_key)) && self.in_table(file, 0)? {
                return Ok(());
            }
        }
        for level in 1..version.num_levels() {
            if self.in_level(version.candidates(level, user_key), level)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Searches the level's tables that may hold the key, until an entry answers.
    fn in_level(&mut self, files: &[Arc<TableFile>], level: usize) -> Result<bool> {
        let mut is_decided = false;
        for file in files {
            is_decided = self.in_table(file, level)?;
            if self.search.is_answered() {
                break;
            }
        }
        Ok(is_decided)
    }

    /// Searches a flushable. True if older sources cannot matter.
    fn in_flushable(&mut self, flushable: &dyn Flushable) -> Result<bool> {
        self.memtables += 1;
        self.search.cover(flushable.tombstones(&self.options)?.as_deref());
        flushable.get(self.key, &self.options, &mut |seq, kind, value| self.search.entry(seq, kind, value))?;
        Ok(self.search.decided_by(Source::Queue))
    }

    fn in_table(&mut self, file: &TableFile, level: usize) -> Result<bool> {
        let Lookup { key, options, search, .. } = self;
        file.read_by(options, |table| {
            search.cover(table.tombstones().as_deref());
            table.get(key, options, &mut |seq, kind, value| search.entry(seq, kind, value))
        })?;
        let is_decided = search.decided_by(Source::Level(level));
        if !is_decided {
            file.count_read();
        }
        Ok(is_decided)
    }
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
