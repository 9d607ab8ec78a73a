//! What is done to a database besides reading and writing: families created and dropped, flushes and compactions by
//! hand, options changed.

use std::sync::Arc;

use base::note;
use base::options::FamilyOptions;
use base::{Error, Result};

use crate::api::db::Db;
use crate::api::db::OpenOptions;
use crate::api::report::LiveFile;
use crate::compaction::CompactRangeOptions;
use crate::core::FamilyState;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::maintenance::checkpoint;
use crate::maintenance::export::{ExportOptions, ExportSummary};
use crate::open::dump;
use base::SeqNo;
use std::path::Path;

impl Db {
    /// Creates an empty family.
    ///
    /// # Errors
    /// `InvalidArgument`: there is one of that name, the name is empty, or the options are out of bounds.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.core().check_writable()?;
        let _noting = self.core().context.noting();
        let family = self.engine().catalog().create_family(name, options)?;
        dump::note_family_options(&self.core().context.info_log, &family);
        self.engine().options_file.write_options_file();
        Ok(family)
    }

    /// Drops a family. Handles, iterators and snapshots that are open keep reading what they saw; its files are deleted
    /// when the last of them is gone.
    ///
    /// # Errors
    /// `InvalidArgument`: it is the default family. `Closed`: it was dropped before.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.core().check_writable()?;
        let _noting = self.core().context.noting();
        self.engine().catalog().drop_family(family)?;
        self.engine().options_file.write_options_file();
        Ok(())
    }

    /// Flushes families: returns when everything written to them before the call is in tables.
    ///
    /// # Errors
    /// `NoSpace`: the disk is full; the flush is tried again when there is room, and writes go on. After other errors the
    /// database is read-only.
    pub fn flush(&self, families: &[&Arc<Family>]) -> Result<()> {
        let _noting = self.core().context.noting();
        self.core().check_writable()?;
        self.engine().flusher.flush_families(families)
    }

    /// Begins what [`flush`](Self::flush) does, and leaves it to the background.
    ///
    /// # Errors
    /// As of [`flush`](Self::flush), of what is wrong already.
    pub fn begin_flush(&self, families: &[&Arc<Family>]) -> Result<()> {
        self.core().check_writable()?;
        self.engine().flusher.seal_families(families)?;
        self.core().drive_if_inline();
        Ok(())
    }

    /// Lets background work go on after a background error, once its cause is mended. What lacked disk space goes on by
    /// itself when there is room; this tries at once, and returns when it is known how one such flush and one such
    /// compaction end.
    ///
    /// # Errors
    /// `NoSpace`: there is still too little. Others: the error cannot be mended while the database is open; reopen it.
    pub fn resume(&self) -> Result<()> {
        let _noting = self.core().context.noting();
        self.engine().jobs.resume()
    }

    /// Keeps files that nothing needs any more where they are, so that they can be copied, until
    /// [`enable_file_deletions`](Self::enable_file_deletions) was called as often. A deletion under way goes on.
    pub fn disable_file_deletions(&self) {
        self.core().purge.hold();
    }

    pub fn enable_file_deletions(&self) {
        self.core().purge.release();
        self.core().upkeep.raise();
        self.core().drive_if_inline();
    }

    /// Tells the event log of an option of RocksDB's that a call was given and that has no effect.
    pub fn note_without_effect(&self, option: &str, text: &str) {
        let _noting = self.core().context.noting();
        note::warn!("option `{option}={text}` of RocksDB has no effect here");
    }

    /// Changes options of a family that can change while it is open, by RocksDB's names.
    ///
    /// # Errors
    /// `InvalidArgument`: an unknown name, a value out of bounds, an option that is fixed. `Closed`. Nothing was changed.
    pub fn set_options(&self, family: &Family, options: &[(&str, &str)]) -> Result<()> {
        self.core().check_open()?;
        let _noting = self.core().context.noting();
        self.engine().catalog().set_family_options(family, options)?;
        if !self.core().read_only {
            self.engine().options_file.write_options_file();
        }
        Ok(())
    }

    /// Compacts the user keys from `start` through `end`, `None` being the end of the key space: everything written to
    /// them before the call is in one level afterwards; what was ingested from behind (`allow_ingest_behind`) stays in
    /// the last one. Flushes the family first.
    ///
    /// # Errors
    /// `InvalidArgument`: `start` is above `end`, or the target level cannot take the files. `NoSpace`: the disk is full, and
    /// what was not compacted is as it was. `ReadOnly`, `Closed`; what ended a compaction early.
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
        self.engine().flusher.flush_families(&[family])?;
        self.engine().compactor.compact_range(family, start, end, options)
    }

    /// Has the tables that hold user keys from `start` through `end`, `None` being the end of the key space, compacted one
    /// level down by automatic compactions, when those have nothing more urgent. Tables of the deepest level stay. A hint:
    /// it waits for nothing, and is forgotten when the database is closed.
    ///
    /// # Errors
    /// `InvalidArgument`: the family is another database's. `ReadOnly`, `Closed`.
    pub fn suggest_compact_range(&self, family: &Family, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.core().check_writable()?;
        self.core().check_family(family)?;
        self.engine().compactor.suggest_compactions(family, start, end)
    }

    /// Waits until no flush or compaction runs or is due.
    ///
    /// # Errors
    /// The background error that keeps them from ending; `NoSpace`: one of them waits for disk space; `Closed`.
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
            let flushes = state.families.values().any(FamilyState::wants_flush);
            let compacts = state.families.values().any(|family| family.wants_compaction());
            for (needs, _) in
                [(Needs::Flush, flushes), (Needs::Compaction, compacts)].iter().filter(|(_, wanted)| *wanted)
            {
                core.space.check(*needs)?;
            }
            Ok(!flushes && !compacts)
        })
    }

    /// Drops the tables of a family all of whose keys lie from `start` through `end`, `None` being the end of the key space.
    /// Tables of level 0 stay, as do those that a compaction reads or that have no level yet, and whatever is in memory: what
    /// is left of the range is for a range deletion, or [`IngestRequest::excise`](crate::IngestRequest::excise), to remove.
    /// Older versions of a key may reappear where a table above theirs goes. Iterators go on with what they saw; snapshots
    /// do not see any more what was dropped. Returns how many tables went.
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

    /// Makes a database in `dir`, which must not exist, that holds what this one held at some instant during the call:
    /// everything acknowledged before it, and of what was written meanwhile a prefix. Tables are shared by hard links
    /// where the file system allows it, and not read: `check` tells whether they are whole. Returns the number of the last
    /// write in it.
    ///
    /// # Errors
    /// `Corruption`: a table cannot be opened. `InvalidArgument`: there is something at `dir`. `ReadOnly`: this database does not take writes. On any error
    /// nothing is left at `dir`.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<SeqNo> {
        self.engine().copier().checkpoint(dir.as_ref())
    }

    /// As [`checkpoint`](Self::checkpoint), of the database in `dir`, which another process may have open for writing, and go
    /// on writing to. It holds everything that was acknowledged before the call and went to a log: what that process wrote
    /// without one is there once it is flushed.
    ///
    /// # Errors
    /// `Busy`: files went faster than they could be linked. `InvalidArgument`: there is something at `to`, or the database
    /// is RocksDB's. As [`open`](Self::open) for reading only.
    pub fn checkpoint_beside(dir: impl AsRef<Path>, options: &OpenOptions, to: impl AsRef<Path>) -> Result<SeqNo> {
        checkpoint::checkpoint_beside(dir.as_ref(), options, to.as_ref())
    }

    /// Makes a database in `dir`, which must not exist, that RocksDB 7.8 and later open: all families as they are at one
    /// instant during the call. Memtables are flushed first, in this database. Tables that RocksDB does not know, and what
    /// an excise left as parts of files, are written anew there.
    ///
    /// # Errors
    /// `Corruption`: a table is damaged; every block is read. `Busy`: writes kept coming, so that no instant was found; stop them, or export a checkpoint. `InvalidArgument`:
    /// there is something at `dir`. On any error nothing is left there.
    pub fn export(&self, dir: impl AsRef<Path>, options: &ExportOptions) -> Result<ExportSummary> {
        self.engine().copier().export(dir.as_ref(), *options)
    }

    /// Brings a family's tables to `dir`, which must not exist, as they are after a flush that begins now: linked where
    /// that is possible, and all of them such as RocksDB reads. Returns what each is.
    ///
    /// # Errors
    /// `InvalidArgument`: there is something at `dir`. `ReadOnly`: this database does not take writes. On any error
    /// nothing is left there.
    pub fn export_family(&self, family: &Arc<Family>, dir: impl AsRef<Path>) -> Result<Vec<LiveFile>> {
        self.engine().copier().export_family(family, dir.as_ref())
    }
}
