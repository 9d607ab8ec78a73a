//! What is done to a database besides reading and writing: families created and dropped, flushes and compactions by
//! hand, options changed.

use std::sync::Arc;

use base::note;
use base::options::FamilyOptions;
use base::{Error, ErrorKind, FamilyId, Result, SeqNo};

use log::Position;
use memtable::Memtable;

use crate::api::db::{DEFAULT_FAMILY, Db, DirectoryLock};
use crate::core::family::{Family, check_name};
use crate::core::space::Needs;
use crate::core::{Core, FamilySet, FamilyState};
use crate::open;
use crate::queue::flushable::Flushable;
use crate::version::edit::VersionEdit;

impl Db {
    /// Creates an empty family.
    ///
    /// # Errors
    /// `InvalidArgument`: there is one of that name, the name is empty, or the options are out of bounds.
    pub fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        self.core().check_writable()?;
        let _noting = self.core().context.noting();
        let family = self.core().create_family(name, options)?;
        self.core().note_family_options(&family);
        self.core().write_options_file();
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
        self.core().drop_family(family)?;
        self.core().write_options_file();
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
        self.core().flush_families(families)
    }

    /// Begins what [`flush`](Self::flush) does, and leaves it to the background.
    ///
    /// # Errors
    /// As of [`flush`](Self::flush), of what is wrong already.
    pub fn begin_flush(&self, families: &[&Arc<Family>]) -> Result<()> {
        self.core().check_writable()?;
        self.core().seal_families(families)?;
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
        self.core().resume()
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
        self.core().set_family_options(family, options)?;
        if !self.core().read_only {
            self.core().write_options_file();
        }
        Ok(())
    }
}

impl Core {
    /// Closes a database, unless that was done or begun before. On no thread that runs a job of it.
    pub(crate) fn close(&self, lock: &DirectoryLock) -> Result<()> {
        let _noting = self.context.noting();
        let _awaited = self.context.pace.await_flushes();
        let flushed = self.flush_unlogged();
        if !self.begin_closing() {
            return Ok(());
        }
        if let Some(registration) = self.state_changed.registration() {
            registration.end();
        }
        self.wait_for_jobs(); // of threads that are not an Env's
        let ended = self.end_log();
        self.purge_obsolete();
        self.give_back_all_space();
        self.tell_background_errors();
        // From here on others may have the directory: whoever is late finds no MANIFEST to write to.
        *self.manifest.lock() = None;
        drop(self.options_file.lock()); // whoever writes one has done so, and nobody begins
        let closed = flushed.and(ended);
        match &closed {
            Ok(()) => note::info!("the database is closed"),
            Err(error) => note::error!(%error, "the database is closed, and not everything went well"),
        }
        self.context.info_log.write_out();
        *lock.lock() = None;
        closed
    }

    fn create_family(&self, name: &str, options: FamilyOptions) -> Result<Arc<Family>> {
        check_name(name)?;
        if self.families.load().by_name(name).is_some() {
            return Err(Error::invalid_argument(format!("column family \"{name}\" exists already")));
        }
        let mut manifest = self.manifest.lock();
        let id = {
            let mut state = self.state.lock();
            if self.families.load().by_name(name).is_some() {
                return Err(Error::invalid_argument(format!("column family \"{name}\" exists already")));
            }
            state.max_family += 1;
            FamilyId(state.max_family)
        };
        let family = open::make_family(self, id, name, options)?;
        let last_seq = family.view_full().mutable.created_at();
        let edit = VersionEdit {
            comparator: Some(family.order().user.name().to_owned()),
            add_family: Some(name.to_owned()),
            log_number: Some(base::FileNumber(0)),
            flushed_through: Some(last_seq),
            max_family: Some(id.0),
            next_file: Some(self.context.numbers.peek()),
            ..VersionEdit::new(id)
        };
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        writer.commit(&[edit]).inspect_err(|e| self.fail_manifest(e))?;
        let mut state = self.state.lock();
        let view = family.view_full();
        state.families.insert(id, FamilyState::new(family.clone(), &view, last_seq));
        self.replace_families(|families| families.push(family.clone()));
        Ok(family)
    }

    fn drop_family(&self, family: &Family) -> Result<()> {
        if family.name() == DEFAULT_FAMILY {
            return Err(Error::invalid_argument("the default column family cannot be dropped"));
        }
        let mut manifest = self.manifest.lock();
        self.check_family(family)?;
        let edit = VersionEdit { drop_family: true, ..VersionEdit::new(family.id()) };
        let writer = manifest.as_mut().ok_or_else(|| Error::closed("the database is closed"))?;
        writer.commit(&[edit]).inspect_err(|e| self.fail_manifest(e))?;
        let mut state = self.state.lock();
        let dropped = state.families.remove(&family.id());
        self.replace_families(|families| families.retain(|other| other.id() != family.id()));
        family.mark_dropped();
        self.refresh_debt(&state);
        drop(state);
        drop(manifest);
        if let Some(dropped) = dropped {
            // Whoever still reads the family keeps its memtables, and no writer waits for that.
            let sealed = dropped.queue.iter().filter_map(|entry| entry.charge());
            sealed.for_each(|charge| charge.left_queue());
            dropped.mutable.memtable_charge().left_queue();
            dropped.tables().for_each(|file| file.mark_obsolete()); // the edit is durable (V3)
        }
        self.release_logs();
        self.state_changed.notify_all();
        Ok(())
    }

    /// Called under the state lock.
    fn replace_families(&self, change: impl FnOnce(&mut Vec<Arc<Family>>)) {
        let mut families: Vec<_> = self.families.load().iter().cloned().collect();
        change(&mut families);
        self.families.store(Arc::new(FamilySet::new(families)));
    }

    /// Has the background flush what was written to families so far. Returns how far that is.
    fn seal_families(&self, families: &[&Arc<Family>]) -> Result<Vec<(FamilyId, SeqNo)>> {
        let mut goals: Vec<(FamilyId, SeqNo)> = Vec::with_capacity(families.len());
        for family in families {
            self.check_family(family)?;
            goals.push((family.id(), self.seal_for_flush(family)?));
        }
        self.state_changed.notify_all();
        Ok(goals)
    }

    pub(crate) fn flush_families(&self, families: &[&Arc<Family>]) -> Result<()> {
        let _awaited = self.context.pace.await_flushes();
        self.space.try_now(Needs::Flush);
        let goals = self.seal_families(families)?;
        self.wait_until(|state| {
            let is_done = |(id, through): &(FamilyId, SeqNo)| {
                state.families.get(id).is_none_or(|family| family.is_flushed_through(*through))
            };
            self.is_done_or_lacks_space(goals.iter().all(is_done))
        })
    }

    /// For whoever waits for a flush: no use where none begins.
    pub(crate) fn is_done_or_lacks_space(&self, is_done: bool) -> Result<bool> {
        if !is_done {
            self.space.check(Needs::Flush)?;
        }
        Ok(is_done)
    }

    /// Flushes the families that hold writes which are not in any log.
    ///
    /// # Errors
    /// Why those writes are lost with the memory that they are in.
    pub(crate) fn flush_unlogged(&self) -> Result<()> {
        if self.read_only || self.context.options.avoid_flush_during_shutdown || self.is_closing() {
            return Ok(());
        }
        let families: Vec<Arc<Family>> =
            self.families.load().iter().filter(|family| family.has_unlogged_writes()).cloned().collect();
        if families.is_empty() {
            return Ok(());
        }
        if self.space.is_lacking(Needs::Manifest) {
            let _ = self.mend(); // or the error stands
        }
        if let Some(error) = self.background_error() {
            return Err(error.context("writes that went to no log (disable_wal) may be lost"));
        }
        self.flush_families(&families.iter().collect::<Vec<_>>())
    }

    /// Ends the log at the end of the database's life. What is in tables is kept in no log: less to sync, to keep and to read at
    /// the next open. No background work is under way.
    pub(crate) fn end_log(&self) -> Result<()> {
        let (log, next_record, last_seq, entered) = {
            let mut commit = self.commit.lock();
            commit.closed = true;
            let next_record = self.next_record(&commit);
            (commit.log.take(), next_record, commit.last_seq, self.pipeline.entered_log())
        };
        // Who is making the next log finds that nobody wants it, and removes it while the directory is this database's.
        drop(self.logs.rolling.lock());
        // Writes that took their numbers before are finished by their own threads; none takes numbers any more.
        if self.read_only || self.background_error().is_some() {
            return Ok(());
        }
        self.pipeline.wait_visible(last_seq)?;
        self.pipeline.wait_published(entered)?;
        self.keep_images(last_seq, next_record);
        let is_needed = !self.is_all_in_tables();
        log.map_or(Ok(()), |log| self.logs.end(&log, last_seq, is_needed))?;
        self.release_logs();
        match self.note_logs() {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                note::warn!(%error, "logs stay, though all of them is in tables");
                Ok(())
            }
            noted => noted,
        }
    }

    /// Leaves memtables' files to the next open. No write is under way any more.
    fn keep_images(&self, last_seq: SeqNo, next_record: Position) {
        if !self.context.options.memtable_crash_safe_recover {
            return;
        }
        self.mark_memtables(last_seq, next_record);
        for family in self.families.load().iter() {
            let view = family.view();
            let queued = view.queue.iter().filter_map(|entry| entry.as_memtable());
            queued.chain([view.mutable.memtable()]).for_each(leave_image);
        }
    }

    fn set_family_options(&self, family: &Family, changes: &[(&str, &str)]) -> Result<()> {
        self.check_family(family)?;
        family.change_options(|options| {
            let remarks = base::options::set_at_runtime(options, changes)?;
            for remark in remarks.into_iter().chain(options.settle()) {
                note::warn!("column family \"{}\": {remark}", family.name());
            }
            options.validate()
        })?;
        self.refresh_debt(&self.state.lock());
        self.state_changed.notify_all();
        self.upkeep.raise();
        Ok(())
    }
}

/// Seals a memtable, and leaves its file where it lies.
fn leave_image(memtable: &Arc<dyn Memtable>) {
    memtable.seal();
    let Some(file) = memtable.image().and_then(|image| image.file) else { return };
    match file.give_back_the_rest() {
        Ok(()) => file.keep(),
        Err(error) => note::info!(%error, "a memtable's file is not kept; the next open replays the log"),
    }
}
