//! The commit path. Writes, large batches and ingests are each a [`Commit`]; all go through [`Committer::number`] and
//! [`Committer::apply`]:
//!
//! 1. Admission, off the locks: memtable room, latches of a conflict check, every fallible or blocking step (C4).
//! 2. Under the commit lock, bounded (C3): check, then take sequence numbers, WAL space and a pipeline slot. A commit with
//!    flushables also holds the state lock and installs the views staged there (V1).
//! 3. Off the locks: append the record (C1, C2), insert the entries, publish in order (S2).
//!
//! A failed check under the locks names the [`Missing`] resource. The commit provides it off the locks and retries.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Counters, Histogram, Statistics, Ticker};
use base::{Error, Result};
use crossbeam_utils::Backoff;
use vfs::perf::{Metric, Timing};

use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;
use crate::commit::admission::{self, Part, flushed_eagerly};
use crate::commit::slow::{SlowWrites, Step, StepTimes};
use crate::commit::{Commit, Committed, ConflictCheck, Entries, InLog, Missing, Record, Written};
use crate::core::context::Context;
use crate::core::family::FamilySet;
use crate::core::unfinished::Unfinished;
use crate::core::{CommitState, Core, State};
use crate::cursor::sample::Sample;
use crate::memtables::Memtables;
use crate::memtables::staged::MemtableBoundary;
use crate::order::SeqRange;
use crate::order::pipeline::Ticket;
use crate::order::stall::{IngestWaits, StallCause};
use crate::rollover::roll::Wal;

/// So often a commit's conflicts are checked again before its keys are latched: a latch makes every other commit look at it.
const RECHECKS_MAX: u32 = 2;

/// A commit with numbers and its flushables in the queues. If it is dropped before [`apply`](Committer::apply), the
/// database turns read-only (C4).
pub(crate) struct Numbered<'a> {
    pub given: SeqRange,
    space: Option<InLog>,
    unfinished: Unfinished<'a>,
}

/// Resources taken under the commit lock.
struct Allocation {
    given: SeqRange,
    ticket: Ticket,
    space: Option<InLog>,
}

/// Runs commits through the pipeline.
pub(crate) struct Committer {
    pub core: Arc<Core>,
    pub memtables: Arc<Memtables>,
    pub wal: Arc<Wal>,
    pub ingest_waits: IngestWaits,
    pub counts: WriteCounts,
}

impl Committer {
    pub fn new(core: Arc<Core>, memtables: Arc<Memtables>, wal: Arc<Wal>) -> Arc<Self> {
        let (ingest_waits, counts) = (IngestWaits::default(), WriteCounts::new(&core.context));
        Arc::new(Committer { core, memtables, wal, ingest_waits, counts })
    }

    /// [`write`](Self::write), counted; timed if statistics are kept or it is in the sample.
    #[inline]
    pub(crate) fn write_counted(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        conflicts: Option<&dyn ConflictCheck>,
    ) -> Result<Written> {
        let times = self.counts.slow.begin();
        let start = self.counts.start(&self.core.context);
        let written = self.write(batch, options, conflicts, times.as_ref())?;
        self.end_watch(times.as_ref(), batch);
        self.counts.add(batch, options, &self.core.context, start);
        Ok(written)
    }

    /// Tells of a watched write, if it was slow.
    #[inline]
    pub(super) fn end_watch(&self, times: Option<&StepTimes>, batch: &WriteBatch) {
        if let Some(times) = times {
            let first = || batch.iter().next()?.ok().and_then(|change| self.core.name_of(change.family));
            self.counts.slow.end(times, &self.core.context, batch.len(), first);
        }
    }

    /// Applies a batch atomically. Every read started after the return sees it. The caller
    /// flushes `to_flush` ([`flush_written`](crate::flush::group::Flusher::flush_written)).
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`: nothing was written. `Busy`: the write would have to wait. `ReadOnly`: the database
    /// takes no writes. `Io`, `NoSpace`: the write failed. If it had reached the WAL, a reopen may or may not find it.
    /// `Conflict`: of `conflicts`; nothing was written.
    pub(crate) fn write(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        conflicts: Option<&dyn ConflictCheck>,
        times: Option<&StepTimes>,
    ) -> Result<Written> {
        self.core.check_writable().or_else(|refused| self.core.check_after_refusal(refused))?;
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument("Sync writes has to enable WAL. Unset sync, or disable_wal"));
        }
        batch.check_size()?;
        let set = self.core.families.load();
        if batch.is_empty() {
            // All that was read still stands at the number visible now.
            conflicts.map_or(Ok(()), |check| check.check(self.core.pipeline.visible()))?;
            return self.write_nothing(&set, options);
        }
        self.wait_for_debt(batch.len(), options, || batch.only_deletes())?;
        if self.is_large(batch) {
            return self.write_large(batch, &set, options, conflicts, times);
        }
        let mut commit = Commit::of_batch(batch, options);
        (commit.conflicts, commit.times) = (conflicts, times);
        commit.take_apart(&set)?;
        let numbered = self.number(&mut commit)?;
        let committed = self.apply(&mut commit, numbered)?;
        self.pass_due_mark(&committed);
        let given = committed.given;
        if options.sync {
            Timing::of_thread().time(Metric::WriteWalTime, || self.wal.sync_write(given.log_end))?;
            times.into_iter().for_each(|times| times.mark(Step::Synced));
        }
        Ok(Written { last: given.last, to_flush: flushed_eagerly(commit.parts(), options) })
    }

    /// Marks the memtables if a recovery watermark is due.
    #[inline]
    pub(super) fn pass_due_mark(&self, committed: &Committed) {
        let Committed { given, log, .. } = committed;
        if let Some((log, at)) = log
            && self.core.logs.takes_mark(given.log_end)
        {
            self.wal.pass_mark(given.last, log.position_of(at.end()));
        }
    }

    /// A batch without changes. `sync` makes every earlier write durable, as [`sync_log`](crate::internal::Database::sync_log) does.
    /// `flush_after` flushes every live family.
    #[cold]
    fn write_nothing(&self, set: &FamilySet, options: &WriteOptions) -> Result<Written> {
        let last = self.core.pipeline.visible();
        let live = set.iter().filter(|family| options.flush_after && !family.is_dropped());
        let to_flush = live.cloned().collect();
        if options.sync {
            self.wal.sync_write(self.core.pipeline.published_log())?;
        }
        Ok(Written { last, to_flush })
    }

    /// Allocates the commit's sequence numbers and enqueues its flushables.
    ///
    /// # Errors
    /// Nothing was committed. Unused successors stay in the commit; the caller [returns](Self::give_back_successors)
    /// them to the spares.
    pub(crate) fn number<'a>(&'a self, commit: &mut Commit<'a>) -> Result<Numbered<'a>> {
        if let Some(check) = commit.conflicts {
            let visible = self.core.pipeline.visible();
            check.check(visible)?;
            commit.checked_at = Some(visible);
        }
        if !commit.flushables.is_empty() {
            self.make_successors(commit)?;
        }
        let backoff = Backoff::new();
        loop {
            if let Some(Entries { parts, options, is_in_record, .. }) = &mut commit.entries {
                self.reserve_memtables(parts, &mut commit.permit, options, *is_in_record)?;
            }
            match self.try_number(commit) {
                Ok(numbered) => return Ok(numbered),
                Err(missing) => self.provide(missing, commit, &backoff)?,
            }
        }
    }

    /// Provides the missing resource, or waits for it.
    #[cold]
    fn provide<'a>(&'a self, missing: Missing, commit: &mut Commit<'a>, backoff: &Backoff) -> Result<()> {
        match (missing, commit.conflicts) {
            (Missing::Check, None) => {}
            (Missing::Check, Some(check)) if commit.rechecks < RECHECKS_MAX => self.check_again(commit, check)?,
            (Missing::Check | Missing::Latch, Some(check)) => self.latch_and_check(commit, check)?,
            (missing, _) => self.provide_unchecked(missing, commit, backoff)?,
        }
        self.core.check_writable()
    }

    /// The same, of what has nothing to do with conflicts.
    fn provide_unchecked<'a>(&'a self, missing: Missing, commit: &mut Commit<'a>, backoff: &Backoff) -> Result<()> {
        match missing {
            Missing::Failed(error) => return Err(error),
            Missing::Memtable | Missing::Check => {}
            Missing::Successor(at) => {
                commit.flushables.get_mut(at).map_or(Ok(()), |flushable| self.make_successor(flushable))?;
            }
            Missing::Latch => {
                self.hold_nothing(commit); // a waiting commit must not pin memtables
                let permit = self.clear_of_latches(&commit.keys(), commit.waiter)?;
                commit.permit = permit;
            }
            Missing::Wal(log) => {
                commit.permit.give_back();
                let need_bytes = commit.record_bytes().unwrap_or(0) as u64;
                self.core.with_reserve(|| commit.frees_space(), || self.wal.roll_log(log.as_ref(), need_bytes))?;
            }
            Missing::Slot => {
                commit.permit.give_back();
                let _wait = self.core.stall.wait(StallCause::Pipeline);
                backoff.snooze();
            }
        }
        Ok(())
    }

    /// Checks conflicts again, once all that is numbered is visible.
    fn check_again(&self, commit: &mut Commit<'_>, check: &dyn ConflictCheck) -> Result<()> {
        self.hold_nothing(commit); // as in any wait
        let numbered = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(numbered)?;
        commit.rechecks += 1;
        commit.checked_at = Some(numbered);
        check.check(numbered)
    }

    /// Latches the touched keys, waits until older writes are visible, and checks conflicts again.
    fn latch_and_check<'a>(&'a self, commit: &mut Commit<'a>, check: &dyn ConflictCheck) -> Result<()> {
        // A latched commit is not compared with memtables, and here nothing was flushed first.
        let may_go_under = commit.flushables.iter().any(|flushable| flushable.coverage.is_some());
        assert!(!may_go_under, "conflicts are not checked for what may go under a memtable (Q1)");
        self.hold_nothing(commit); // as in any wait
        let reach = commit.checked_keys(check);
        commit.latch =
            Some(self.latch(reach, commit.waiter.no_slowdown, "it would have to wait for another commit")?);
        (commit.is_latched, commit.checked_at) = (true, None);
        let numbered = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(numbered)?;
        check.check(numbered)
    }

    /// Takes the state lock if the commit has flushables, then the commit lock. The state lock keeps the queues as
    /// staged; the commit lock makes the queue order equal the number order (Q1).
    fn try_number<'a>(&'a self, commit: &mut Commit<'_>) -> Result<Numbered<'a>, Missing> {
        let mut unfinished = Unfinished::new(&self.core);
        let mut state = None;
        if !commit.flushables.is_empty() {
            commit.staged.clear();
            let state = state.insert(self.core.state.lock());
            self.stage(&commit.flushables, state, &mut commit.staged)?;
        }
        let mut end = self.ingest_waits.lock(&self.core.commit);
        let held = (!commit.waiter.is_writer).then(|| self.ingest_waits.hold_lock(self.core.context.vfs.now()));
        let taken = self.take(commit, &mut end);
        if let Ok(taken) = &taken {
            unfinished.hold(taken.ticket);
            self.install_flushables(commit, &taken.given);
        }
        if let Some(held) = held {
            commit.lock.locked_at = held.since;
            commit.lock.locked_for += held.end(self.core.context.vfs.now());
        }
        drop(end);
        let Allocation { given, space, .. } = taken?;
        if let Some(mut state) = state {
            self.follow_flushables(commit, &mut state);
        }
        Ok(Numbered { given, space, unfinished })
    }

    /// Checks every precondition, then takes numbers, WAL space and a slot. Called under the commit lock:
    /// O(families); an ingest also looks at unfinished writes and at memtables (C3).
    fn take(&self, commit: &mut Commit<'_>, end: &mut CommitState) -> Result<Allocation, Missing> {
        if commit.checked_at.is_some_and(|checked_at| checked_at != end.last_seq) {
            return Err(Missing::Check);
        }
        if !commit.is_latched && !self.core.latches.lets_pass(&commit.permit) {
            return Err(Missing::Latch);
        }
        if commit.entries.as_ref().is_some_and(|entries| !entries.parts.iter().all(Part::is_current)) {
            return Err(Missing::Memtable);
        }
        if !commit.is_latched
            && !commit.flushables.is_empty()
            && let Some(at) = self.overlapping(&mut commit.flushables, &commit.staged)
        {
            return Err(Missing::Successor(at));
        }
        self.take_numbers(commit, end)
    }

    /// Takes sequence numbers, WAL space for the record and a pipeline slot. O(1) (C3).
    fn take_numbers(&self, commit: &Commit<'_>, end: &mut CommitState) -> Result<Allocation, Missing> {
        if !self.core.pipeline.has_room() {
            return Err(Missing::Slot);
        }
        let exhausted = || Error::read_only("the database has used up its 2^56 sequence numbers");
        let before = end.last_seq;
        let last = before.checked_add(commit.count).ok_or_else(exhausted)?;
        if end.closed {
            return Err(Error::closed("the database is closed").into());
        }
        // The last fallible step: reserved space must be filled.
        let reserve = |bytes| {
            let log = end.log.as_ref()?;
            log.file.try_reserve(bytes).map(|reservation| (log.clone(), reservation))
        };
        let space = match commit.record_bytes().map(reserve) {
            None => None,
            Some(Some(space)) => Some(space),
            Some(None) => return Err(Missing::Wal(end.log.clone())),
        };
        assert!(last > before, "sequence numbers only grow (S1, S3)");
        end.last_seq = last;
        let log_end = space.as_ref().map_or(0, |(log, reservation)| log.position(reservation));
        if let (Some(Record::Prepare { .. }), Some((log, reservation))) = (&commit.record, &space) {
            self.core.logs.prepared.begin(log.position_of(reservation.offset()));
        }
        let ticket = self.core.pipeline.enter(last, log_end, &commit.bounds);
        Ok(Allocation { given: SeqRange { before, last, log_end }, ticket, space })
    }

    /// Numbers the flushables and installs the staged views. Readers find the flushables before any number in need of
    /// them is published (V1). Writes with later numbers use the successor memtables. Called under the commit lock:
    /// O(1) for each family (C3).
    ///
    /// `mark_foreign` precedes the append of the record. So a recovery with the record also finds the mark in the
    /// memtable's image.
    fn install_flushables(&self, commit: &mut Commit<'_>, given: &SeqRange) {
        if let Some(own) = commit.own_log {
            own.commit(given.last);
        }
        if commit.staged.is_empty() {
            return;
        }
        let logged_through = self.core.pipeline.entered_log();
        for (flushable, staged) in commit.flushables.iter().zip(&mut commit.staged) {
            if staged.keeps_mutable() {
                staged.mutable().memtable().mark_foreign();
            }
            flushable.entries.iter().for_each(|entry| entry.set_numbers(given));
            // The sealed memtable holds no number above `before`.
            let SeqRange { before, last, .. } = *given;
            staged.install(&flushable.family, &MemtableBoundary { before, last, logged_through, replay_from: None });
        }
    }

    /// Updates the families' state, used by jobs, to the installed views. Called under the state lock.
    fn follow_flushables(&self, commit: &mut Commit<'_>, state: &mut State) {
        for (flushable, staged) in commit.flushables.iter_mut().zip(&mut commit.staged) {
            flushable.follow(staged, flushable.state_in(state));
            if self.core.flushes_can_wait() && flushable.brings_ingest() {
                commit.begins_wait |= state.record_ingest(flushable.family.id(), commit.lock.locked_at);
            }
        }
    }

    /// Logs a numbered commit, inserts its entries and publishes it. Returns once it is visible.
    ///
    /// # Errors
    /// `Io`, sticky: the database takes no more writes.
    pub(crate) fn apply(&self, commit: &mut Commit<'_>, numbered: Numbered<'_>) -> Result<Committed> {
        let Numbered { given, space, mut unfinished } = numbered;
        commit.mark(Step::Numbered);
        let timing = Timing::of_thread();
        commit.parts().iter().for_each(Part::prefetch);
        if let (Some(record), Some((log, reservation))) = (&commit.record, &space) {
            log.record_published(self.core.pipeline.published_log());
            let append = |kind, pieces: &[&[u8]]| self.core.logs.append(log, reservation, kind, pieces);
            let appended = timing.time(Metric::WriteWalTime, || record.appended(&given, append));
            appended.inspect_err(|error| self.core.fail(error))?;
            commit.mark(Step::Logged);
        }
        if let Some(entries) = &commit.entries {
            timing.time(Metric::WriteMemtableTime, || entries.insert(&given, space.as_ref()));
            commit.mark(Step::Inserted);
        }
        commit.flushables.iter().for_each(|flushable| flushable.cut_gaps(&given));
        unfinished.finish();
        let mut under = 0;
        if !commit.staged.is_empty() {
            under = self.end_flushables(commit);
        }
        commit.latch = None;
        commit.permit.give_back();
        self.core.pipeline.wait_visible(given.last)?;
        commit.mark(Step::Published);
        Ok(Committed { given, under, begins_wait: commit.begins_wait, log: space })
    }

    /// Exchanges the views of published flushables. Returns the number of families with flushables under the mutable
    /// memtable.
    #[cold]
    fn end_flushables(&self, commit: &mut Commit<'_>) -> usize {
        if !commit.waiter.is_writer {
            commit.lock.published_at = self.core.context.vfs.now();
        }
        let under = commit.staged.iter().filter(|staged| staged.keeps_mutable()).count();
        self.exchange_views(&commit.flushables, &mut commit.staged);
        under
    }

    /// Releases the commit's views and successor memtables before a wait.
    fn hold_nothing(&self, commit: &mut Commit<'_>) {
        if let Some(entries) = &mut commit.entries {
            admission::release_views(&mut entries.parts);
        }
        self.give_back_successors(&mut commit.flushables);
    }
}

/// Writes since the database was opened.
pub(crate) struct WriteCounts {
    statistics: Option<Arc<Statistics>>,
    sample: Option<Arc<Sample>>,
    /// Beside `statistics`: a write reads both.
    pub slow: SlowWrites,
    /// Writes, changes, bytes; logged writes, their bytes.
    sums: Counters<5>,
}

impl WriteCounts {
    pub fn new(context: &Context) -> Self {
        let slow = SlowWrites::default();
        slow.watch(context.options.slow_operation_micros, context.vfs.now());
        let (statistics, sample) = (context.statistics.clone(), context.sample.clone());
        WriteCounts { statistics, sample, slow, sums: Counters::default() }
    }

    pub fn sums(&self) -> [u64; 5] {
        self.sums.sums()
    }

    /// Start time of a write that is timed: of all with statistics, else of those in the sample.
    #[inline]
    pub fn start(&self, context: &Context) -> Option<Duration> {
        match &self.statistics {
            Some(_) => Some(context.vfs.now()),
            None => self.sample.as_ref().and_then(|sample| sample.start()),
        }
    }

    /// Counts a write, and its duration if it was timed. A batch without changes does not count.
    #[inline]
    pub fn add(&self, batch: &WriteBatch, options: &WriteOptions, context: &Context, start: Option<Duration>) {
        if batch.is_empty() {
            return;
        }
        let (bytes, logged) = (batch.len() as u64, u64::from(!options.disable_wal));
        self.sums.add([1, u64::from(batch.count()), bytes, logged, logged * bytes]);
        if let Some(start) = start {
            match (&self.statistics, &self.sample) {
                (Some(statistics), _) => {
                    tell(statistics, batch, options, context.vfs.now().saturating_sub(start));
                }
                (None, Some(sample)) => sample.end_write(start),
                (None, None) => {}
            }
        }
    }
}

fn tell(statistics: &Statistics, batch: &WriteBatch, options: &WriteOptions, took: Duration) {
    let bytes = batch.len() as u64;
    statistics.record(Histogram::DbWrite, took.as_micros() as u64);
    statistics.record(Histogram::BytesPerWrite, bytes);
    statistics.add(Ticker::NumberKeysWritten, u64::from(batch.count()));
    statistics.add(Ticker::BytesWritten, bytes);
    if !options.disable_wal {
        statistics.add(Ticker::WriteWithWal, 1);
        statistics.add(Ticker::WalFileBytes, bytes);
    }
    if !options.sync {
        statistics.add(Ticker::WriteDoneBySelf, 1); // the sync counts synced writes
    }
}

#[cfg(test)]
mod tests;
