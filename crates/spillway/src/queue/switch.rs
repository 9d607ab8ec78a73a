//! Replacing what is full: the mutable memtable and the current log. The next ones are made ahead in the background; one
//! that is missing is waited for here, at admission, and counted.

use std::sync::Arc;

use base::metrics::{Histogram, record};
use base::{Error, Result, SeqNo};
use crossbeam_utils::Backoff;
use log::{FILE_HEADER_BYTES, Position, RecordKind};
use parking_lot::MutexGuard;

use crate::commit::admission::stalled;
use crate::commit::commit::Unfinished;
use crate::commit::options::WriteOptions;
use crate::commit::stall::StallCause;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::core::{CommitState, Core, FamilyState, OldViews};
use crate::queue::flushable::QueuedMemtable;
use crate::queue::staged::{Seam, Staged};
use crate::wal::logs::ActiveLog;

impl Core {
    /// Replaces the memtable `full_id` of a family with one that has `need_bytes` of room. Returns at once where another
    /// writer has done so.
    pub(crate) fn switch_full_memtable(
        &self,
        family: &Arc<Family>,
        full_id: u64,
        need_bytes: usize,
        options: &WriteOptions,
    ) -> Result<()> {
        self.wait_for_queue(family, Some(full_id), options)?;
        self.replace_memtable(family, full_id, need_bytes)
    }

    /// Waits while the family has as many memtables as it may have.
    pub(crate) fn wait_for_queue_room(&self, family: &Arc<Family>, options: &WriteOptions) -> Result<()> {
        self.wait_for_queue(family, None, options)
    }

    /// As [`wait_for_queue_room`](Self::wait_for_queue_room), and no longer than the mutable memtable is `full_id`.
    fn wait_for_queue(&self, family: &Arc<Family>, full_id: Option<u64>, options: &WriteOptions) -> Result<()> {
        let start = self.context.vfs.now();
        let mut waiting = None;
        let mut state = self.state.lock();
        loop {
            self.check_writable()?;
            let full = self.family_state(&mut state, family.id())?;
            let replaced = full_id.is_some_and(|id| full.mutable.id() != id);
            if replaced || !full.has_full_queue() {
                break;
            }
            if options.no_slowdown {
                return Err(stalled());
            }
            let wanted = newest(full);
            let raised = wanted > full.flush_wanted_through;
            full.flush_wanted_through = wanted.max(full.flush_wanted_through);
            if waiting.is_none() {
                waiting = Some((family.writer_waits(), self.context.pace.await_flushes()));
                self.upkeep.raise(); // which tells listeners
            }
            if self.context.vfs.runs_inline() {
                drop(state);
                self.drive();
                self.space.check(Needs::Flush)?; // nobody else makes room
                state = self.state.lock();
            } else {
                if raised {
                    self.state_changed.notify_all(); // once, or those who wait here would wake each other for ever
                }
                self.state_changed.wait(&mut state);
            }
        }
        drop(state);
        if waiting.take().is_some() {
            self.stall.count_since(StallCause::Memtables, start);
            self.upkeep.raise();
        }
        Ok(())
    }

    /// Puts a new mutable memtable into a family whose mutable one is still `old_id`, and queues the old one.
    pub(crate) fn replace_memtable(&self, family: &Arc<Family>, old_id: u64, need_bytes: usize) -> Result<()> {
        let start = self.context.vfs.now();
        let spare = self.take_spare(family.id(), need_bytes);
        let made = match spare {
            Some(spare) => spare,
            None => {
                let made = self.make_memtable(family, need_bytes)?;
                self.stall.count_since(StallCause::MemtableSwitch, start);
                made
            }
        };
        let mut state = self.state.lock();
        let switched = self.family_state(&mut state, family.id())?;
        if switched.mutable.id() != old_id {
            let mut made = Some(made);
            switched.spare.get_or_insert_with(|| made.take().expect("given to one place")); // its turn comes
            drop(state);
            drop(made); // another writer was faster
            return Ok(());
        }
        let replaced = self.install_memtable(switched, made);
        self.context.pace.note_replaced(self.context.vfs.now());
        if switched.is_behind() {
            self.context.pace.set_behind(true); // until a version says otherwise
        }
        drop(state);
        drop(replaced);
        self.state_changed.notify_all();
        self.upkeep.raise();
        let micros = self.context.vfs.now().saturating_sub(start).as_micros() as u64;
        record(&self.context.statistics, Histogram::MemtableSwitch, micros);
        Ok(())
    }

    /// Seals the mutable memtable and makes `made` the mutable one. Under the state lock; takes the commit lock.
    #[must_use = "drop what was replaced off the lock"]
    fn install_memtable(&self, family: &mut FamilyState, made: Arc<QueuedMemtable>) -> (Staged, Option<OldViews>) {
        let mut staged = Staged::new(family, std::iter::empty(), Some(&made));
        let commit = self.commit.lock();
        // Numbers up to here may be noted to the old memtable, none after: the commit lock is held.
        let (last, logged_through) = (commit.last_seq, self.pipeline.entered_log());
        let next_record = Some(self.next_record(&commit));
        staged.install(&family.family, &Seam { before: last, last, logged_through, next_record });
        drop(commit);
        staged.follow(family);
        (staged, family.settle_view())
    }

    /// Seals a family's mutable memtable if it holds anything; returns the number through which it must be flushed so
    /// that everything written before the call is in tables.
    pub(crate) fn seal_for_flush(&self, family: &Arc<Family>) -> Result<SeqNo> {
        let (id, empty) = {
            let mut state = self.state.lock();
            let current = self.family_state(&mut state, family.id())?;
            (current.mutable.id(), current.mutable.is_unused())
        };
        if !empty {
            self.replace_memtable(family, id, 0)?;
        }
        let mut state = self.state.lock();
        let sealed = self.family_state(&mut state, family.id())?;
        let through = newest(sealed);
        sealed.flush_wanted_through = sealed.flush_wanted_through.max(through);
        drop(state);
        self.state_changed.notify_all();
        Ok(through)
    }

    /// Where in the logs the next record begins at the earliest. Before the first log of this process that is the place of
    /// none: a recovery begins with the first log that it finds.
    pub(crate) fn next_record(&self, commit: &CommitState) -> Position {
        let before_logs = || Position { log: self.first_own_file, offset: FILE_HEADER_BYTES };
        commit.log.as_ref().map_or_else(before_logs, |log| log.end_position())
    }

    /// Makes room for a record of `need_bytes`: in the next extent of `full`, or else in the next log. `None`: in the first.
    pub(crate) fn roll_log(&self, full: Option<&Arc<ActiveLog>>, need_bytes: u64) -> Result<()> {
        if let Some(full) = full
            && self.with_all_space(|| full.file.ensure(need_bytes as usize))?
        {
            return Ok(());
        }
        self.replace_log(full, need_bytes)
    }

    /// Makes the spare the current log, or makes one now, where `full` is still the current one.
    fn replace_log(&self, full: Option<&Arc<ActiveLog>>, need_bytes: u64) -> Result<()> {
        let _rolling = self.logs.rolling.lock();
        {
            let commit = self.commit.lock();
            if commit.closed {
                return Err(Error::closed("the database is closed"));
            }
            if commit.log.as_ref().map(|log| log.number()) != full.map(|log| log.number()) {
                return Ok(()); // another writer has done so
            }
        }
        let next = match self.logs.take_spare(need_bytes)? {
            Some(spare) => spare,
            None => {
                let start = self.context.vfs.now();
                let made = self.with_all_space(|| self.logs.create(need_bytes))?;
                if full.is_some() {
                    self.stall.count_since(StallCause::LogSwitch, start);
                }
                made
            }
        };
        if let Err(error) = self.install_log(next.clone()) {
            if !next.is_current() {
                self.logs.discard(&next);
            }
            return Err(error);
        }
        self.upkeep.raise();
        self.flush_for_log_limit(next.file.capacity());
        Ok(())
    }

    /// Makes the next log the current one where all that the current one holds is in tables, and that is `bytes_min` or more:
    /// then it need not be kept until it is full, nor synced.
    pub(crate) fn leave_flushed_log(&self, bytes_min: u64) -> Result<()> {
        self.release_logs();
        let current = self.commit.lock().log.clone();
        match current.filter(|log| log.file.tail() >= bytes_min) {
            Some(log) if self.is_all_in_tables() => self.replace_log(Some(&log), 0),
            _ => Ok(()),
        }
    }

    /// Makes `next` the log that writes go to, and ends the one before it with a record of its own: a place in the
    /// pipeline, so that it is published before anything in `next` is.
    pub(crate) fn install_log(&self, next: Arc<ActiveLog>) -> Result<()> {
        let backoff = Backoff::new();
        let mut unfinished = Unfinished::new(self);
        let mut commit = self.commit.lock();
        while !self.pipeline.has_room() && !commit.closed {
            MutexGuard::unlocked(&mut commit, || backoff.snooze());
            self.check_writable()?;
        }
        if commit.closed {
            return Err(Error::closed("the database is closed"));
        }
        let full = commit.log.take();
        let end = full.and_then(|full| full.file.seal().map(|reservation| (full, reservation)));
        let base = end.as_ref().map_or(0, |(full, _)| full.end());
        if end.is_some() {
            unfinished.hold(self.pipeline.enter(commit.last_seq, base, &[]));
        }
        next.start_at(base);
        self.logs.note_current(&next, commit.last_seq);
        commit.log = Some(next);
        drop(commit);
        if let Some((full, reservation)) = end {
            full.note_published(self.pipeline.published_log());
            let ended = self.logs.append(&full, &reservation, RecordKind::End, &[]);
            ended.inspect_err(|e| self.fail(e))?;
            unfinished.finish();
        }
        Ok(())
    }
}

/// The largest number in a family's sealed memtables, or zero.
pub(crate) fn newest(family: &FamilyState) -> SeqNo {
    family.queue.first().and_then(|youngest| youngest.largest_seq()).unwrap_or(SeqNo::ZERO)
}
