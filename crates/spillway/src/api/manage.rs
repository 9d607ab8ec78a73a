//! What is neither a read nor a write: flushes and compactions by hand, options at run time, copies, reports.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use base::metrics::Statistics;

use crate::api::db::Db;
use crate::api::family::Family;
use crate::api::options::{CompactOptions, Options};
use crate::api::range::KeyRange;
use crate::database::handle::Database;
use crate::database::report::{LevelReport, LiveFile, PinReport, StallReport};
use crate::maintenance::export::{ExportOptions, ExportSummary};

/// Flushing, compacting, options at run time.
impl Family {
    /// Writes the family's memtables to tables. Returns when every earlier write to it is in tables.
    ///
    /// # Errors
    /// `NoSpace`: the disk is full; the flush is tried again when there is room, and writes go on. After any other error
    /// the database is read-only.
    pub fn flush(&self) -> Result<()> {
        self.shared.database.flush(&[&self.inner])
    }

    /// Compacts the tables of a range until each key is in one level, without what was deleted. Flushes first.
    ///
    /// # Errors
    /// `NoSpace`: the disk is full, and the rest of the range is as it was. `ReadOnly`, `Closed`; or the error of a
    /// compaction.
    pub fn compact(&self, range: impl KeyRange) -> Result<()> {
        self.compact_with(range, &CompactOptions::new())
    }

    /// As [`compact`](Self::compact), with options. Also takes tables that only touch the range.
    ///
    /// # Errors
    /// As of [`compact`](Self::compact). `InvalidArgument`: the start is behind the end, or the target level cannot take
    /// the tables.
    pub fn compact_with(&self, range: impl KeyRange, options: &CompactOptions) -> Result<()> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let ends = range.into_bounds();
        let key = |bound| match bound {
            Included(key) | Excluded(key) => Some(key),
            Unbounded => None,
        };
        let (start, end) = (key(ends.0), key(ends.1));
        self.shared.database.compact_range(&self.inner, start.as_deref(), end.as_deref(), &options.0)
    }

    /// Changes options of the family, by RocksDB's names, and stores them. All are changed, or none.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
    /// db.default_family().set_options([("write_buffer_size", "128M"), ("level0_file_num_compaction_trigger", "8")])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, a value out of bounds, or an option that is fixed while the database is open.
    /// `Closed`.
    pub fn set_options<'a>(&self, options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let options: Vec<(&str, &str)> = options.into_iter().collect();
        self.shared.database.set_options(&self.inner, &options)
    }

    /// The options in force, as a text that [`FamilyOptions::text`](crate::FamilyOptions::text) takes.
    pub fn options_text(&self) -> String {
        base::options::string::print(&*self.inner.options())
    }

    /// The levels, level 0 first.
    pub fn levels(&self) -> Vec<LevelReport> {
        self.shared.database.levels(&self.inner)
    }

    /// A property as text, by RocksDB's names (`rocksdb.stats`) and ours (`spillway.stalls`). `None` for an unknown name.
    pub fn property(&self, name: &str) -> Option<String> {
        self.shared.database.property(&self.inner, name)
    }

    /// A property as a number. `None` for an unknown name, and for one of a text.
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.shared.database.int_property(&self.inner, name)
    }

    /// Bytes of tables with keys of a range, roughly. Does not count what is in memory.
    ///
    /// # Errors
    /// `Corruption`, `Io`: an index could not be read.
    pub fn approximate_size<K: AsRef<[u8]>>(&self, range: std::ops::Range<K>) -> Result<u64> {
        let range = (range.start.as_ref(), range.end.as_ref());
        Ok(self.shared.database.approximate_sizes(&self.inner, &[range])?.into_iter().sum())
    }
}

/// Flushing, syncing, copies, reports.
impl Db {
    /// As [`Family::flush`], for all families at once.
    ///
    /// # Errors
    /// As of [`Family::flush`].
    pub fn flush(&self) -> Result<()> {
        let families = self.shared().database.families();
        self.shared().database.flush(&families.iter().collect::<Vec<_>>())
    }

    /// Syncs the log: every write acknowledged so far survives a loss of power.
    ///
    /// # Errors
    /// `Io`: the disk failed; the database takes no more writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.shared().database.sync_log()
    }

    /// Changes options of the database, by RocksDB's names, and stores them. All are changed, or none. These can change:
    /// `max_background_jobs`, `max_subcompactions`, `max_total_wal_size`, `bytes_per_sync`, `delayed_write_rate`,
    /// `avoid_flush_during_shutdown`, `stats_dump_period_sec`, `WAL_ttl_seconds`, `WAL_size_limit_MB`. Those of families: [`Family::set_options`].
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, a value out of bounds, or an option that is fixed while the database is open.
    /// `Closed`.
    pub fn set_options<'a>(&self, options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
        let options: Vec<(&str, &str)> = options.into_iter().collect();
        self.shared().database.set_db_options(&options)
    }

    /// The options of the database in force, as a text that [`Options::text`] takes.
    pub fn options_text(&self) -> String {
        base::options::string::print(&*self.shared().database.options())
    }

    /// [`Family::compact`] of the default family.
    ///
    /// # Errors
    /// As of [`Family::compact`].
    pub fn compact(&self, range: impl KeyRange) -> Result<()> {
        self.default_family().compact(range)
    }

    /// Waits until no flush or compaction runs or is due.
    ///
    /// # Errors
    /// The background error in their way; `NoSpace`: one of them waits for space; `Closed`.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.shared().database.wait_for_compaction()
    }

    /// Goes on after a background error whose cause is mended. Work that waits for space goes on by itself.
    ///
    /// # Errors
    /// `NoSpace`: there is still too little. Any other: reopen the database.
    pub fn resume(&self) -> Result<()> {
        self.shared().database.resume()
    }

    /// Makes a database in `dir`, which must not exist, with the present state, while writes go on. Tables are hard links
    /// where the file system allows it. Takes milliseconds, and no space at first.
    ///
    /// # Errors
    /// `InvalidArgument`: `dir` exists. `Corruption`, `Io`, `NoSpace`, `ReadOnly`. Nothing is left at `dir`.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.shared().database.checkpoint(dir).map(drop)
    }

    /// Makes a directory in `dir`, which must not exist, for RocksDB 7.8 and later. Flushes first, and reads every block.
    ///
    /// # Errors
    /// `InvalidArgument`: `dir` exists. `Corruption`: a table is damaged. `Busy`: writes kept coming; export a checkpoint.
    /// Nothing is left at `dir`.
    pub fn export(&self, dir: impl AsRef<Path>) -> Result<ExportSummary> {
        self.shared().database.export(dir, &ExportOptions::default())
    }

    /// Every table of every family.
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.shared().database.live_files()
    }

    /// Waits of writers, by cause, since the database was opened. Causes without any are there too.
    pub fn stalls(&self) -> Vec<StallReport> {
        self.shared().database.stalls()
    }

    /// Memtables and tables that old iterators keep, and nobody else: release those iterators, or make them anew. The event
    /// log tells of one that is older than five minutes and keeps 16 MiB.
    pub fn pins(&self) -> Vec<PinReport> {
        self.shared().database.pins()
    }

    /// Counters and distributions; `None` without the option [`Options::statistics`].
    pub fn statistics(&self) -> Option<Arc<Statistics>> {
        self.shared().database.statistics()
    }

    /// [`Family::property`] of the default family.
    pub fn property(&self, name: &str) -> Option<String> {
        self.default_family().property(name)
    }

    /// [`Family::int_property`] of the default family.
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.default_family().int_property(name)
    }

    /// The names of the families of the database in `dir`, which need not be open.
    ///
    /// # Errors
    /// `Corruption`: the MANIFEST is damaged. `Io`: there is no database.
    pub fn family_names(dir: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
        Database::list_families(dir, options.vfs())
    }
}
