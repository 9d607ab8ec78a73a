//! Operations other than reads and writes: families created and dropped, manual flushes and compactions, options
//! changed, copies made.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::note;
use base::options::FamilyOptions;
use base::{Error, ErrorKind, FileNumber, Result, ValueKind};

use crate::batch::WriteBatch;
use crate::compaction::{CompactFilesOptions, CompactRangeOptions};
use crate::core::FamilyState;
use crate::core::family::Family;
use crate::core::live_file::LiveFile;
use crate::core::open_options::OpenOptions;
use crate::core::space::Needs;
use crate::database::handle::Database;
use crate::manage::export::{ExportOptions, ExportSummary};
use crate::open::{self, dump};
use base::SeqNo;
use std::path::Path;

impl Database {
    /// Creates an empty family.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken or empty, or the options are out of bounds.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.core().check_writable()?;
        let _noting = self.core().context.noting();
        let family = self.engine().catalog().create_family(name, options)?;
        dump::log_family_options(self.core(), &family);
        self.engine().options_file.family_made(&family);
        Ok(family)
    }

    /// Creates a family of the tables of exported families (see [`export_family`](Self::export_family)), whose key ranges
    /// must not overlap. Tables are linked if possible, and keep their levels and sequence numbers; this database's
    /// numbers go on above them. With `move_files` the files are removed from where they were.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is taken or empty, the options are out of bounds, the exports overlap or are empty, or a
    /// file is no table of the family's order. `Corruption`: a damaged one. No family is left.
    pub fn import_family(
        &self,
        name: &str,
        options: FamilyOptions,
        exports: &[&[LiveFile]],
        move_files: bool,
    ) -> Result<Arc<Family>> {
        let _noting = self.core().context.noting();
        let family = self.engine().importer().import(name, options, exports, move_files)?;
        dump::log_family_options(self.core(), &family);
        self.engine().options_file.write();
        Ok(family)
    }

    /// Drops a family. Open iterators keep reading; later reads and writes fail with `Closed`. Its files are deleted
    /// when no handle or iterator uses them.
    ///
    /// # Errors
    /// `InvalidArgument`: it is the default family. `Closed`: it was dropped before.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.core().check_writable()?;
        let _noting = self.core().context.noting();
        self.engine().catalog().drop_family(family)?;
        self.engine().options_file.family_dropped(family);
        Ok(())
    }

    /// Precedes each write of a value or operand that ends with its time: the MANIFEST notes that of the family before the
    /// first one is written.
    ///
    /// # Errors
    /// As of the write.
    #[inline]
    pub fn record_times(&self, family: &Family) -> Result<()> {
        if family.has_value_times() { Ok(()) } else { self.record_first_times(family) }
    }

    #[cold]
    fn record_first_times(&self, family: &Family) -> Result<()> {
        self.engine().catalog().record_times(family)?;
        self.engine().options_file.times_noted();
        Ok(())
    }

    /// As [`record_times`](Self::record_times), for the values and operands of a batch.
    pub fn record_times_of(&self, batch: &WriteBatch) -> Result<()> {
        let families = self.core().families.load();
        for record in batch.iter() {
            let record = record?;
            let is_timed = matches!(record.kind, ValueKind::Value | ValueKind::Merge);
            let family = families.get(record.family).filter(|_| is_timed);
            family.map_or(Ok(()), |family| self.record_times(family))?;
        }
        Ok(())
    }

    /// Flushes families. Returns when every earlier write to them is in tables.
    ///
    /// # Errors
    /// `NoSpace`: the disk is full; the flush is retried when there is room, and writes go on. After any other error
    /// the database is read-only.
    pub fn flush(&self, families: &[&Arc<Family>]) -> Result<()> {
        let _noting = self.core().context.noting();
        self.core().check_writable()?;
        note::info!(families = families.len(), "a flush was asked for");
        self.engine().flusher.flush_families(families)?;
        self.core().context.info_log.write_out(); // its lines are there when it returns
        Ok(())
    }

    /// Starts a [`flush`](Self::flush) in the background.
    ///
    /// # Errors
    /// As of [`flush`](Self::flush), for errors already present.
    pub fn begin_flush(&self, families: &[&Arc<Family>]) -> Result<()> {
        self.core().check_writable()?;
        self.engine().flusher.seal_families(families)?;
        self.core().drive_if_inline();
        Ok(())
    }

    /// Makes the log that the first write goes to. Writes then go on where the directory is removed, or closed to the
    /// process, after the open: as in RocksDB, which has its log from the open on.
    pub fn make_first_log(&self) {
        self.engine().wal.make_first_log();
    }

    /// Resumes background work after a background error, once its cause is mended. Work stopped by `NoSpace` resumes by
    /// itself when there is room. This call retries at once, and returns once one such flush and one such compaction
    /// have ended.
    ///
    /// # Errors
    /// `NoSpace`: there is still too little. Any other: the error cannot be mended while the database is open; reopen
    /// it.
    pub fn resume(&self) -> Result<()> {
        self.check_open()?;
        let _noting = self.core().context.noting();
        self.engine().jobs.resume()
    }

    /// Keeps obsolete files on disk, so that they can be copied, until
    /// [`enable_file_deletions`](Self::enable_file_deletions) was called as often. A deletion under way goes on.
    pub fn disable_file_deletions(&self) {
        self.core().purge.hold();
    }

    /// Undoes one `disable_file_deletions`. After the last, what is obsolete is deleted before it returns.
    pub fn enable_file_deletions(&self) {
        self.core().purge.release();
        self.engine().jobs.purge_obsolete();
    }

    /// Notes in the event log a call's RocksDB option without effect here.
    pub fn log_without_effect(&self, option: &str, text: &str) {
        let _noting = self.core().context.noting();
        note::warn!("option `{option}={text}` of RocksDB has no effect here");
    }

    /// Notes in the event log what a call does otherwise than it says.
    pub fn log_remark(&self, remark: &str) {
        let _noting = self.core().context.noting();
        note::warn!("{remark}");
    }

    /// Notes in the event log an option of a call whose value is out of bounds.
    pub fn log_clamped(&self, option: &str, asked: &str, taken: &str) {
        let _noting = self.core().context.noting();
        note::warn!("option `{option}={asked}`: {taken} is taken");
    }

    /// Changes mutable options of a family, by RocksDB's names.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, a value out of bounds, or a fixed option. `Closed`. Nothing was changed.
    pub fn set_options(&self, family: &Family, options: &[(&str, &str)]) -> Result<()> {
        self.engine().set_options(family, options)
    }

    /// Changes mutable options of the database, by RocksDB's names.
    ///
    /// # Errors
    /// As of [`set_options`](Self::set_options).
    pub fn set_db_options(&self, options: &[(&str, &str)]) -> Result<()> {
        self.engine().set_db_options(options)
    }

    /// Compacts the user keys from `start` through `end`; `None` is the end of the key space. Afterwards every earlier
    /// write to them is in one level. Tables ingested behind (`allow_ingest_behind`) stay in the last one. Flushes the
    /// family first.
    ///
    /// # Errors
    /// `InvalidArgument`: `start` is above `end`, or the target level cannot take the files. `NoSpace`: the disk is
    /// full, and the rest of the range is as it was. `ReadOnly`, `Closed`; or the error of a compaction.
    pub fn compact_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        let _noting = self.core().context.noting();
        self.core().check_writable()?;
        self.core().check_family(family)?;
        if let (Some(start), Some(end)) = (start, end)
            && family.order().user.compare(start, end).is_gt()
        {
            return Err(Error::invalid_argument("compact_range: the start is above the end"));
        }
        let (flusher, compactor) = (&self.engine().flusher, &self.engine().compactor);
        if let Err(error) = flusher.flush_families(&[family]) {
            if error.kind() != ErrorKind::NoSpace {
                return Err(error);
            }
            compactor.compact_range(family, start, end, options)?; // which may make room
            flusher.flush_families(&[family])?;
        }
        compactor.compact_range(family, start, end, options)
    }

    /// Compacts tables, by number, into a level, on this thread, with all tables between them and that level. Returns the
    /// new tables.
    ///
    /// # Errors
    /// `InvalidArgument`: a table is not there, or cannot go to that level. `Incomplete`: canceled. `NoSpace`, `ReadOnly`,
    /// `Closed`; or the error of the compaction.
    pub fn compact_files(
        &self,
        family: &Arc<Family>,
        files: &BTreeSet<FileNumber>,
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<FileNumber>> {
        let _noting = self.core().context.noting();
        self.core().check_writable()?;
        self.core().check_family(family)?;
        self.engine().compactor.compact_files(family, files, output_level, options)
    }

    /// Marks the tables with user keys from `start` through `end` for compaction one level down; `None` is the end of
    /// the key space. Automatic compactions take them when nothing is more urgent. Tables of the deepest level stay. A
    /// hint: the call does not wait, and closing the database drops the marks.
    ///
    /// # Errors
    /// `InvalidArgument`: the family belongs to a different database. `ReadOnly`, `Closed`.
    pub fn suggest_compact_range(&self, family: &Family, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.core().check_writable()?;
        self.core().check_family(family)?;
        self.engine().compactor.suggest_compactions(family, start, end)
    }

    /// Waits until no flush or compaction runs or is due.
    ///
    /// # Errors
    /// The background error in their way; `NoSpace`: one of them waits for disk space; `Closed`.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.core().check_writable()?;
        let core = self.core();
        let _awaited = (core.context.throttle.await_flushes(), core.context.throttle.await_compactions());
        [Needs::Flush, Needs::Compaction].iter().for_each(|needs| core.space.try_now(*needs));
        core.state.lock().flush_without_waiting();
        core.state_changed.notify_all();
        core.wait_until(|state| {
            if state.flushes_running > 0 || state.compactions_running > 0 {
                return Ok(false);
            }
            let now_s = core.context.now_s();
            let flushes = state.families.values().any(FamilyState::wants_flush);
            let compacts = state.families.values().any(|family| family.wants_compaction(now_s));
            for (needs, _) in
                [(Needs::Flush, flushes), (Needs::Compaction, compacts)].iter().filter(|(_, wanted)| *wanted)
            {
                core.space.check(*needs)?;
            }
            Ok(!flushes && !compacts)
        })
    }

    /// Drops a family's tables with all keys from `start` through `end`; `None` is the end of the key space. Tables of
    /// level 0 stay, as do tables read by compactions, ingested tables without a level, and memtables. Use a range
    /// deletion or [`IngestRequest::excise`](crate::internal::IngestRequest::excise) for the rest of the range. Older versions of
    /// a key may reappear if a table above them goes. Iterators keep the dropped data; snapshots lose it. Returns the
    /// number of dropped tables.
    ///
    /// # Errors
    /// `ReadOnly`, `Closed`; a failure of the MANIFEST, after which the database is read-only (D4).
    pub fn drop_tables_in_range(
        &self,
        family: &Arc<Family>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<usize> {
        self.engine().copier().drop_tables_in_range(family, start, end)
    }

    /// Drops a table of the deepest level with any, or the oldest of level 0 if there is no other level. Its file is
    /// deleted when nobody reads it. Iterators keep the dropped data; snapshots lose it.
    ///
    /// # Errors
    /// `InvalidArgument`: it is another table, or none; a compaction reads it. As of
    /// [`drop_tables_in_range`](Self::drop_tables_in_range).
    pub fn drop_table(&self, family: &Arc<Family>, number: FileNumber) -> Result<()> {
        let _noting = self.core().context.noting();
        self.engine().copier().drop_table(family, number)?;
        self.engine().jobs.purge_obsolete();
        Ok(())
    }

    /// Keeps automatic compactions from starting, until [`continue_compactions`](Self::continue_compactions) was called
    /// as often, and waits for the running ones. Flushes go on: writes do not wait, until level 0 is too large.
    ///
    /// # Errors
    /// The background error of a running one; `Closed`.
    pub fn pause_compactions(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.state.lock().pauses += 1;
        let _awaited = core.context.throttle.await_compactions();
        core.wait_until(|state| Ok(state.compactions_running == 0))
    }

    /// Undoes one [`pause_compactions`](Self::pause_compactions).
    pub fn continue_compactions(&self) {
        let mut state = self.core().state.lock();
        state.pauses = state.pauses.saturating_sub(1);
        drop(state);
        self.core().state_changed.notify_all();
    }

    /// Moves the tables of level 0 into `level`, without rewriting them.
    ///
    /// # Errors
    /// `InvalidArgument`: `level` is 0 or not there, the tables overlap, or a level down to it has tables. As of
    /// [`compact_files`](Self::compact_files).
    pub fn promote_level0(&self, family: &Arc<Family>, level: usize) -> Result<()> {
        let refused = |why: &str| Error::invalid_argument(format!("level 0 cannot move to level {level}: {why}"));
        self.core().check_family(family)?;
        let version = family.view_full().version.clone();
        if level == 0 || level >= version.num_levels() {
            return Err(refused("there is no such level below"));
        }
        if (1..=level).any(|below| !version.level(below).is_empty()) {
            return Err(refused("a level down to it has tables"));
        }
        let order = &family.order().user;
        let mut files: Vec<_> = version.level(0).iter().collect();
        files.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
        let meet = files.windows(2).any(|pair| match pair {
            [a, b] => order.compare(a.largest_user_key(), b.smallest_user_key()).is_ge(),
            _ => false,
        });
        if meet {
            return Err(refused("its tables overlap"));
        }
        let numbers: BTreeSet<FileNumber> = files.iter().map(|file| file.number()).collect();
        if !numbers.is_empty() {
            let options = CompactFilesOptions { allow_trivial_move: true, ..CompactFilesOptions::default() };
            self.compact_files(family, &numbers, level, &options)?;
        }
        Ok(())
    }

    /// Reads every block of every table, and checks its checksum.
    ///
    /// # Errors
    /// `Corruption`, with the file. `Io`.
    pub fn verify_tables(&self) -> Result<()> {
        self.check_open()?;
        for family in self.core().families.load().iter() {
            let view = family.view_full();
            let placed = view.version.all_files().map(|(_, table)| table);
            for table in placed.chain(view.queued_tables()) {
                let path = self.core().context.table_path(table.meta.physical_number());
                table.with(|table| table.verify()).map_err(|error| error.at_path(&path))?;
            }
        }
        Ok(())
    }

    /// Makes a database in `dir`, which must not exist, with the state of this one at some instant during the call:
    /// every write acknowledged before it, and a prefix of the concurrent writes. Tables are hard links if the file
    /// system allows it, and are not read: use `check` to verify them. Returns its last write's sequence number.
    ///
    /// # Errors
    /// `Corruption`: a table cannot be opened. `InvalidArgument`: `dir` exists. `ReadOnly`: this database does not take
    /// writes. On any error nothing is left at `dir`.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<SeqNo> {
        self.engine().copier().checkpoint(dir.as_ref())
    }

    /// As [`checkpoint`](Self::checkpoint), for the database in `dir`, even if a different process has it open and
    /// writes to it. Includes every write acknowledged before the call and logged in the WAL. Unlogged writes are
    /// included once flushed.
    ///
    /// # Errors
    /// `Busy`: files went faster than they could be linked. `InvalidArgument`: `to` exists, or the database is
    /// RocksDB's. As [`open`](Self::open) for reading only.
    pub fn checkpoint_beside(dir: impl AsRef<Path>, options: &OpenOptions, to: impl AsRef<Path>) -> Result<SeqNo> {
        open::checkpoint_beside(dir.as_ref(), options, to.as_ref())
    }

    /// Makes a database in `dir`, which must not exist, for RocksDB 7.8 and later: all families at one instant during
    /// the call, while writes go on. Memtables are flushed first, unless the options say otherwise; what no table has
    /// then goes into a log. Tables in formats unknown to RocksDB, and parts of files left by an excise, are written
    /// anew there, under numbers of their own.
    ///
    /// # Errors
    /// `Corruption`: a table is damaged; every block is read, unless the options say otherwise. `Busy`: a transaction is
    /// prepared, or ingests kept coming; make a [`checkpoint`](Self::checkpoint). `InvalidArgument`: `dir` exists. On any
    /// error nothing is left there.
    pub fn export(&self, dir: impl AsRef<Path>, options: &ExportOptions) -> Result<ExportSummary> {
        self.engine().copier().export(dir.as_ref(), *options)
    }

    /// Exports a family's tables to `dir`, which must not exist, as of a flush begun by the call. Tables are linked if
    /// possible, and all are readable by RocksDB. Returns a description of each.
    ///
    /// # Errors
    /// `InvalidArgument`: `dir` exists. `ReadOnly`: this database does not take writes. On any error nothing is left
    /// there.
    pub fn export_family(&self, family: &Arc<Family>, dir: impl AsRef<Path>) -> Result<Vec<LiveFile>> {
        self.engine().copier().export_family(family, dir.as_ref())
    }
}

#[cfg(test)]
#[path = "manage_tests.rs"]
mod tests;
