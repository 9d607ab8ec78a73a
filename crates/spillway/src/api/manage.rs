//! What is neither a read nor a write: flushes and compactions by hand, options at run time, copies, reports, followers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use base::metrics::Statistics;
use base::options::{FamilyOptions as EngineFamilyOptions, differences};
use base::{Error, ErrorKind, FileNumber, Result, SeqNo};

use crate::api::Shared;
use crate::api::db::Db;
use crate::api::family::Family;
use crate::api::options::{CompactFilesOptions, CompactOptions, FamilyOptions, Options};
use crate::api::range::KeyRange;
use crate::api::updates::Updates;
use crate::core::doubt::Doubt;
use crate::core::live_file::LiveFile;
use crate::database::handle::Database;
use crate::database::report::{LevelReport, PinReport, StallReport};
use crate::engine::Lag;
use crate::manage::export::{ExportOptions, ExportSummary};
use crate::observe::{Observation, ObservedEvents};

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

    /// Compacts tables, by number ([`Db::live_files`]), into a level, on this thread. Tables between them and that level
    /// come along. Returns the new tables.
    ///
    /// # Errors
    /// `InvalidArgument`: a table is not there, or cannot go to that level. `Incomplete`: canceled. `NoSpace`, `ReadOnly`,
    /// `Closed`; or the error of the compaction.
    pub fn compact_files(
        &self,
        files: impl IntoIterator<Item = FileNumber>,
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<FileNumber>> {
        let files: BTreeSet<FileNumber> = files.into_iter().collect();
        self.shared.database.compact_files(&self.inner, &files, output_level, &options.0)
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

    /// The family, with the options that a call gave to make it.
    ///
    /// # Errors
    /// `InvalidArgument`: an option differs that is fixed.
    pub(super) fn take(self, given: &FamilyOptions) -> Result<Family> {
        let now = self.inner.options();
        let wanted = given.over((*now).clone())?;
        let filters = |options: &EngineFamilyOptions| {
            let (filter, factory) = (&options.compaction_filter, &options.compaction_filter_factory);
            (filter.as_ref().map(|one| one.name().to_owned()), factory.as_ref().map(|one| one.name().to_owned()))
        };
        let changed = differences(&*now, &wanted);
        let taken = match () {
            () if filters(&now) != filters(&wanted) => {
                Err(Error::invalid_argument("a compaction filter cannot change while the database is open"))
            }
            () if changed.is_empty() => Ok(()),
            () => self.set_options(changed.iter().map(|(name, text)| (*name, text.as_str()))),
        };
        let name = self.name();
        let told = |error: Error| match error.kind() {
            ErrorKind::InvalidArgument => error
                .context(format!("column family \"{name}\" exists already"))
                .advise(format!("give the option by Options::family(\"{name}\", ...) at the open")),
            _ => error,
        };
        taken.map_err(told)?;
        Ok(self)
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
    /// `max_background_jobs`, `max_subcompactions`, `max_total_wal_size`, `bytes_per_sync`, `wal_bytes_per_sync`,
    /// `delayed_write_rate`, `avoid_flush_during_shutdown`, `stats_dump_period_sec`, `WAL_ttl_seconds`, `WAL_size_limit_MB`.
    /// Those of families: [`Family::set_options`].
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
    /// where the file system allows it. Takes milliseconds, and no space at first. RocksDB refuses it:
    /// [`export`](Self::export) makes one for both.
    ///
    /// # Errors
    /// `InvalidArgument`: `dir` exists. `Corruption`, `Io`, `NoSpace`, `ReadOnly`. Nothing is left at `dir`.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.shared().database.checkpoint(dir).map(drop)
    }

    /// Makes a directory in `dir`, which must not exist, for RocksDB 7.8 and later, while writes go on. Flushes first, and
    /// reads every block.
    ///
    /// # Errors
    /// `InvalidArgument`: `dir` exists. `Corruption`: a table is damaged. `Busy`: ingests kept coming; make a
    /// [checkpoint](Self::checkpoint). Nothing is left at `dir`.
    pub fn export(&self, dir: impl AsRef<Path>) -> Result<ExportSummary> {
        self.shared().database.export(dir, &ExportOptions::default())
    }

    /// One reading of everything that an operator asks for: health, writes, reads, levels, jobs, logs, memory, options. No
    /// I/O; it takes microseconds for each family. Two readings give rates.
    pub fn observe(&self) -> Observation {
        self.shared().database.observe()
    }

    /// The latest events after a number, oldest first, 1,024 at the most: flushes, compactions, ingests, stalls, errors. 0
    /// for all of them, then [`ObservedEvents::last`].
    pub fn events(&self, since: u64) -> ObservedEvents {
        self.shared().database.events(since)
    }

    /// Every table of every family.
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.shared().database.live_files()
    }

    /// Waits of writers, by cause, since the database was opened. Causes without any are there too.
    pub fn stalls(&self) -> Vec<StallReport> {
        self.shared().database.stalls()
    }

    /// Keys that may not have their last durable values, since the open passed over damage
    /// ([`SkipAnyCorruptedRecords`](crate::WalRecoveryMode::SkipAnyCorruptedRecords)) or went back to an older state
    /// ([`Options::best_efforts_recovery`]). All other keys have them,
    /// as far as the end of the last log is known: [durability](crate::docs::durability). Empty after every other open.
    /// The event log has each as a line.
    pub fn recovery_doubts(&self) -> Vec<Doubt> {
        self.shared().database.recovery_doubts()
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

/// Following a database: by its log, or as a secondary.
impl Db {
    /// The number of the newest change that reads find. Each change takes the number after the one before it.
    pub fn latest_sequence_number(&self) -> SeqNo {
        self.shared().database.latest_sequence_number()
    }

    /// The batches in the log from the one with the change numbered `seq` on, in their order; 0 begins with the first one
    /// there is. A replica starts from a [checkpoint](Self::checkpoint), and asks for the number after its
    /// [latest](Self::latest_sequence_number).
    ///
    /// Logs are kept until their changes are in tables, and after that as long as
    /// [`wal_ttl_seconds`](crate::Options::wal_ttl_seconds) and [`wal_size_limit_mb`](crate::Options::wal_size_limit_mb)
    /// say.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
    /// # let replica = spillway::Db::open_with("/replica", &spillway::Options::in_memory())?;
    /// db.put("key", "value")?;
    /// let mut updates = db.updates_since(1)?;
    /// for update in &mut updates {
    ///     replica.batch_from(update?.into_bytes())?.commit()?;
    /// }
    /// assert_eq!(replica.get("key")?.as_deref(), Some(&b"value"[..]));
    /// db.put("key", "another")?;
    /// assert_eq!(updates.next().transpose()?.map(|update| update.sequence_number().0), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: `seq` is beyond the next number to be written: another database's? `Closed`.
    pub fn updates_since(&self, seq: u64) -> Result<Updates> {
        self.shared().database.updates_since(SeqNo(seq), false).map(Updates::new)
    }

    /// Opens the database in `primary`, which another process, or this one, may have open for writing, to read it and to
    /// follow it. Shows it as of now, with all its families; [`try_catch_up_with_primary`](Self::try_catch_up_with_primary)
    /// shows what was logged since. The primary is not disturbed, and knows nothing of it. Files of this reader, such as its
    /// event log, are in `secondary`.
    ///
    /// Every table is kept open, so that the primary may delete it. Writes fail with
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly), reads of a snapshot with [`Unsupported`](crate::ErrorKind::Unsupported): the
    /// primary's compactions drop what only a secondary's snapshot would show. Iterators go on showing what there was when
    /// they were made.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let options = spillway::Options::in_memory();
    /// let db = spillway::Db::open_with("/db", &options)?;
    /// let reader = spillway::Db::open_as_secondary("/db", "/reader", &options)?;
    /// db.put("key", "value")?;
    /// assert_eq!(reader.get("key")?, None);
    /// reader.try_catch_up_with_primary()?;
    /// assert_eq!(reader.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`open_with`](Self::open_with) for reading only. `Busy`: the primary changed its files during every try.
    pub fn open_as_secondary(primary: impl AsRef<Path>, secondary: impl AsRef<Path>, options: &Options) -> Result<Db> {
        let (open, write) = options.resolve(primary.as_ref())?;
        let database = Database::open_as_secondary(primary, secondary, &open)?;
        Ok(Db::of(Shared::new(database, write)?))
    }

    /// Shows everything that the primary has logged by now, in all families at once. The time it takes grows with what is
    /// new. A family that the primary creates is not shown; one that it drops stays as it was.
    ///
    /// # Errors
    /// `Unsupported`: not a secondary. `InvalidArgument`: another database, or an older state, is in the primary's place:
    /// open the secondary again. `Io`: it is gone. `Busy`: it changed its files during every try; try again. What reads
    /// show stays as it is then.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        self.shared().database.try_catch_up_with_primary()
    }

    /// How far a secondary is behind. Reads the log records that it has not read. Also the properties
    /// `spillway.secondary-sequence-number` and `spillway.secondary-bytes-behind`.
    ///
    /// # Errors
    /// `Unsupported`: not a secondary. `Io`, `Corruption`: a log could not be read.
    pub fn lag(&self) -> Result<Lag> {
        self.shared().database.lag()
    }
}
