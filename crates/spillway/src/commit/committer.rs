//! The commit path. Writes, large batches and ingests are each a [`Commit`]; all go through [`Committer::number`] and
//! [`Committer::apply`]:
//!
//! 1. Admission, off the locks: memtable room, latch permits, every fallible or blocking step (C4).
//! 2. Under the commit lock, O(1) (C3): check, then take sequence numbers, WAL space and a pipeline slot. A commit with
//!    flushables also holds the state lock and installs the views staged there (V1).
//! 3. Off the locks: append the record (C1, C2), insert the entries, publish in order (S2).
//!
//! A failed check under the locks names the [`Missing`] resource. The commit provides it off the locks and retries.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result, SeqNo};
use crossbeam_utils::Backoff;
use log::Reservation;
use memtable::Entry;
use smallvec::SmallVec;

use crate::commit::admission::{self, Part, Parts, Waiter};
use crate::commit::batch::{self, BatchReader, WriteBatch};
use crate::commit::counted::WriteCounts;
use crate::commit::flushables::NewFlushable;
use crate::commit::ingest_waits::IngestWaits;
use crate::commit::latch::{Clearance, KeyRange, LatchGuard};
use crate::commit::options::WriteOptions;
use crate::commit::pipeline::{KeyBounds, LogPosition, Ticket};
use crate::commit::record::Record;
use crate::commit::stall::StallCause;
use crate::commit::unfinished::Unfinished;
use crate::core::family::Family;
use crate::core::{CommitState, Core, FamilySet, State};
use crate::queue::Memtables;
use crate::queue::staged::{Seam, Staged};
use crate::wal::logs::ActiveLog;
use crate::wal::roll::Wal;
use crate::wal::value_logs::Logged;

/// An operation with sequence numbers: a write, a large batch or an ingest.
pub(crate) struct Commit<'a> {
    /// The WAL record; `None` if nothing is logged.
    pub record: Option<Record<'a>>,
    /// Count of sequence numbers.
    pub count: u64,
    /// Entries for mutable memtables; `None` if the commit brings flushables only.
    pub entries: Option<Entries<'a>>,
    /// Flushables to enqueue.
    pub flushables: Vec<NewFlushable>,
    /// Key bounds for the pipeline slot. Ingests look there for overlapping unfinished writes.
    pub bounds: SmallVec<[KeyBounds; 2]>,
    /// The separate WAL of a large batch; `record` names it.
    pub own_log: Option<&'a Arc<ActiveLog>>,
    pub waiter: Waiter,
    /// Checked before numbers are taken, with every touched key latched.
    pub conflicts: Option<&'a dyn ConflictCheck>,
    /// A latch over every touched key is held, here or by the caller. Overlapping commits wait for it.
    pub is_latched: bool,
    clearance: Clearance<'a>,
    /// Set if conflicts were checked.
    latch: Option<LatchGuard<'a>>,
    /// Queues and views to install; once the commit has numbers, the replaced ones. Dropping them may free memory.
    staged: Vec<Staged>,
    /// True if a family's ingests began to wait for their flush.
    begins_wait: bool,
    /// Ingests only.
    pub lock: LockTimes,
}

/// Validation of a commit, for transactions.
pub(crate) trait ConflictCheck {
    /// Called off every lock. Every touched key is latched until the commit is finished in the pipeline. Older writes
    /// to these keys are visible.
    ///
    /// # Errors
    /// `Conflict`: a dependency of the commit has changed.
    fn check(&self) -> Result<()>;
}

/// A batch and its parts by family. The parts pin the memtables with the reserved room.
pub(crate) struct Entries<'a> {
    pub batch: &'a WriteBatch,
    pub parts: Parts<'a>,
    pub options: &'a WriteOptions,
}

/// A commit with numbers and its flushables in the queues. If it is dropped before [`apply`](Committer::apply), the
/// database turns read-only (C4).
pub(crate) struct Numbered<'a> {
    pub given: Given,
    space: Option<InLog>,
    unfinished: Unfinished<'a>,
}

/// Result of a write.
pub(crate) struct Written {
    /// Last sequence number of the write.
    pub last: SeqNo,
    /// Families to flush before the write returns.
    pub to_flush: Vec<Arc<Family>>,
}

/// Result of a commit.
pub(crate) struct Committed {
    pub given: Given,
    /// Number of families with flushables under the mutable memtable.
    pub under: usize,
    /// True if a family's ingests began to wait for their flush.
    pub begins_wait: bool,
    /// WAL and place of the record; `None` if nothing was logged.
    pub log: Option<InLog>,
}

/// Commit lock times of an ingest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LockTimes {
    /// When the successful attempt took the lock.
    pub locked_at: Duration,
    /// Time under the lock, over all attempts.
    pub locked_for: Duration,
    /// When the ingest was logged and finished.
    pub published_at: Duration,
}

/// Sequence numbers of a commit, and the end of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// Last number before the commit.
    pub before: SeqNo,
    pub last: SeqNo,
    /// End of the record in the WAL; 0 without a record.
    pub log_end: LogPosition,
}

/// A WAL and the space reserved in it.
pub(crate) type InLog = (Arc<ActiveLog>, Reservation);

/// Resources taken under the commit lock.
struct Taken {
    given: Given,
    ticket: Ticket,
    space: Option<InLog>,
}

/// Why a commit took no numbers. Every case but `Failed` is provided off the locks.
pub(super) enum Missing {
    /// A memtable with reserved room is no longer mutable.
    Memtable,
    /// Space in this WAL, the current one; `None` before the first WAL.
    Wal(Option<Arc<ActiveLog>>),
    /// A pipeline slot.
    Slot,
    /// Latches are granted, and the clearance does not cover them.
    Latch,
    /// A successor memtable for the flushable at this index.
    Successor(usize),
    Failed(Error),
}

impl From<Error> for Missing {
    fn from(error: Error) -> Self {
        Missing::Failed(error)
    }
}

impl<'a> Commit<'a> {
    /// A batch for mutable memtables. [`take_apart`](Self::take_apart) fills in the parts later, in place to avoid a
    /// move.
    #[inline]
    pub(super) fn of_batch(batch: &'a WriteBatch, options: &'a WriteOptions) -> Self {
        let record = (!options.disable_wal).then_some(Record::Batch(batch));
        let entries = Entries { batch, parts: Parts::new(), options };
        Commit::new(record, u64::from(batch.count()), Some(entries), Vec::new(), Waiter::of_write(options))
    }

    /// Splits the batch by family and checks it.
    ///
    /// # Errors
    /// As [`summarise`](admission::summarise).
    #[inline]
    pub(super) fn take_apart(&mut self, set: &'a FamilySet) -> Result<()> {
        if let Some(Entries { batch, parts, options }) = &mut self.entries {
            admission::summarise(batch, set, options, parts)?;
            parts.iter().for_each(|part| self.bounds.push(part.bounds()));
        }
        Ok(())
    }

    /// A commit of flushables, without memtable entries.
    #[inline]
    pub fn of_flushables(
        record: Option<Record<'a>>,
        count: u64,
        flushables: Vec<NewFlushable>,
        waiter: Waiter,
    ) -> Self {
        Commit::new(record, count, None, flushables, waiter)
    }

    #[inline]
    fn new(
        record: Option<Record<'a>>,
        count: u64,
        entries: Option<Entries<'a>>,
        flushables: Vec<NewFlushable>,
        waiter: Waiter,
    ) -> Self {
        Commit {
            record,
            count,
            entries,
            flushables,
            bounds: SmallVec::new(),
            own_log: None,
            waiter,
            conflicts: None,
            is_latched: false,
            clearance: Clearance::default(),
            latch: None,
            staged: Vec::new(),
            begins_wait: false,
            lock: LockTimes::default(),
        }
    }

    fn record_bytes(&self) -> Option<usize> {
        self.record.as_ref().map(Record::len)
    }

    /// Touched keys, for the range latches.
    fn keys(&self) -> SmallVec<[KeyRange<'_>; 2]> {
        let of_entries = self.entries.iter().flat_map(|entries| entries.parts.iter().map(Part::keys));
        of_entries.chain(self.flushables.iter().flat_map(NewFlushable::keys)).collect()
    }
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

    /// [`write`](Self::write), counted; timed if statistics are kept.
    pub(crate) fn write_counted(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<Written> {
        let start = self.counts.start(&self.core.context);
        let written = self.write(batch, options)?;
        self.counts.add(batch, options, start.map(|start| self.core.context.vfs.now().saturating_sub(start)));
        Ok(written)
    }

    /// Applies a batch atomically. Every read started after the return sees it. The caller
    /// [ends](crate::flush::group::Flusher::end_write) the write.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`: nothing was written. `Busy`: the write would have to wait. `ReadOnly`: the database
    /// takes no writes. `Io`, `NoSpace`: the write failed. If it had reached the WAL, a reopen may or may not find it.
    pub(crate) fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<Written> {
        self.core.check_takes_writes()?;
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument(
                "a write cannot be synced (sync) and not logged (disable_wal) at once",
            ));
        }
        batch.check_size()?;
        let set = self.core.families.load();
        if batch.is_empty() {
            return self.write_nothing(&set, options);
        }
        self.wait_for_debt(batch.len(), options)?;
        if batch.len() as u64 > self.core.context.options.large_batch_bytes {
            return self.write_large(batch, &set, options);
        }
        let mut commit = Commit::of_batch(batch, options);
        commit.take_apart(&set)?;
        let numbered = self.number(&mut commit)?;
        let Committed { given, log, .. } = self.apply(&mut commit, numbered)?;
        if let Some((log, at)) = &log {
            self.wal.mark_if_due(given.last, given.log_end, || log.position_behind(at));
        }
        if options.sync {
            self.wal.sync_write(given.log_end)?;
        }
        let to_flush =
            commit.entries.as_ref().map_or_else(Vec::new, |entries| flushed_eagerly(&entries.parts, options));
        Ok(Written { last: given.last, to_flush })
    }

    /// A batch without changes. `sync` makes every earlier write durable, as [`sync_log`](crate::Db::sync_log) does.
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
            self.latch_and_check(commit, check)?;
        }
        self.make_successors(commit)?;
        let backoff = Backoff::new();
        loop {
            if let Some(Entries { parts, options, .. }) = &mut commit.entries {
                self.reserve_memtables(parts, &mut commit.clearance, options)?;
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
        match missing {
            Missing::Failed(error) => return Err(error),
            Missing::Memtable => {}
            Missing::Successor(at) => {
                commit.flushables.get_mut(at).map_or(Ok(()), |flushable| self.make_successor(flushable))?;
            }
            Missing::Latch => {
                self.hold_nothing(commit); // a waiting commit must not pin memtables
                let clearance = self.clear_of_latches(&commit.keys(), commit.waiter)?;
                commit.clearance = clearance;
            }
            Missing::Wal(log) => {
                commit.clearance.give_back_pass();
                self.wal.roll_log(log.as_ref(), commit.record_bytes().unwrap_or(0) as u64)?;
            }
            Missing::Slot => {
                commit.clearance.give_back_pass();
                let start = self.core.context.vfs.now();
                backoff.snooze();
                self.core.stall.count_since(StallCause::Pipeline, start);
            }
        }
        self.core.check_writable()
    }

    /// Latches the touched keys, waits until older writes are visible, and checks conflicts.
    #[cold]
    fn latch_and_check<'a>(&'a self, commit: &mut Commit<'a>, check: &dyn ConflictCheck) -> Result<()> {
        // A latched commit is not compared with memtables, and here nothing was flushed first.
        let may_go_under = commit.flushables.iter().any(|flushable| flushable.coverage.is_some());
        assert!(!may_go_under, "conflicts are not checked for what may go under a memtable (Q1)");
        commit.latch = Some(self.latch_keys(commit.keys().into_iter(), commit.waiter)?);
        commit.is_latched = true;
        let numbered = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(numbered)?;
        check.check()
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
        let Taken { given, space, .. } = taken?;
        if let Some(mut state) = state {
            self.follow_flushables(commit, &mut state);
        }
        Ok(Numbered { given, space, unfinished })
    }

    /// Checks every precondition, then takes numbers, WAL space and a slot. Called under the commit lock: O(1) in
    /// everything but the number of families (C3).
    fn take(&self, commit: &mut Commit<'_>, end: &mut CommitState) -> Result<Taken, Missing> {
        if !commit.is_latched && !self.core.latches.lets_pass(&commit.clearance) {
            return Err(Missing::Latch);
        }
        if commit.entries.as_ref().is_some_and(|entries| !entries.parts.iter().all(Part::is_current)) {
            return Err(Missing::Memtable);
        }
        if !commit.is_latched
            && let Some(at) = self.overlapping(&mut commit.flushables, &commit.staged)
        {
            return Err(Missing::Successor(at));
        }
        self.take_numbers(commit, end)
    }

    /// Takes sequence numbers, WAL space for the record and a pipeline slot. O(1) (C3).
    fn take_numbers(&self, commit: &Commit<'_>, end: &mut CommitState) -> Result<Taken, Missing> {
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
        let ticket = self.core.pipeline.enter(last, log_end, &commit.bounds);
        Ok(Taken { given: Given { before, last, log_end }, ticket, space })
    }

    /// Numbers the flushables and installs the staged views. Readers find the flushables before any number in need of
    /// them is published (V1). Writes with later numbers use the successor memtables. Called under the commit lock:
    /// O(1) for each family (C3).
    ///
    /// `mark_foreign` precedes the append of the record. So a recovery with the record also finds the mark in the
    /// memtable's image.
    fn install_flushables(&self, commit: &mut Commit<'_>, given: &Given) {
        if let Some(log) = commit.own_log {
            self.core.logs.note_large(log, given.last);
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
            let Given { before, last, .. } = *given;
            staged.install(&flushable.family, &Seam { before, last, logged_through, next_record: None });
        }
    }

    /// Updates the families' state, used by jobs, to the installed views. Called under the state lock.
    fn follow_flushables(&self, commit: &mut Commit<'_>, state: &mut State) {
        for (flushable, staged) in commit.flushables.iter_mut().zip(&mut commit.staged) {
            let family = flushable.state_in(state);
            flushable.follow(staged, family);
            if self.core.flushes_can_wait() && flushable.brings_ingest() {
                commit.begins_wait |= family.note_ingest(commit.lock.locked_at);
            }
        }
    }

    /// Logs a numbered commit, inserts its entries and publishes it. Returns once it is visible.
    ///
    /// # Errors
    /// `Io`, sticky: the database takes no more writes.
    pub(crate) fn apply(&self, commit: &mut Commit<'_>, numbered: Numbered<'_>) -> Result<Committed> {
        let Numbered { given, space, mut unfinished } = numbered;
        if let (Some(record), Some((log, reservation))) = (&commit.record, &space) {
            log.note_published(self.core.pipeline.published_log());
            let append = |kind, pieces: &[&[u8]]| self.core.logs.append(log, reservation, kind, pieces);
            record.appended(&given, append).inspect_err(|error| self.core.fail(error))?;
        }
        if let Some(entries) = &commit.entries {
            entries.insert(&given, space.as_ref());
        }
        unfinished.finish();
        let mut under = 0;
        if !commit.staged.is_empty() {
            under = self.end_flushables(commit);
        }
        commit.latch = None;
        commit.clearance.give_back_pass();
        self.core.pipeline.wait_visible(given.last)?;
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

/// Families to flush at the end of a write: all with `flush_after`, else only families with eager flush.
#[inline]
pub(super) fn flushed_eagerly(parts: &[Part<'_>], options: &WriteOptions) -> Vec<Arc<Family>> {
    let is_asked_for = |part: &&Part<'_>| options.flush_after || part.family.flushes_eagerly();
    parts.iter().filter(is_asked_for).map(|part| part.family.clone()).collect()
}

impl Entries<'_> {
    /// Inserts the entries into the reserved memtable room. Cannot fail (C4).
    fn insert(&self, given: &Given, space: Option<&InLog>) {
        let Entries { batch, parts, options } = self;
        if options.disable_wal {
            parts.iter().for_each(|part| part.family.note_unlogged());
        }
        let logged = space.map(|(log, at)| Logged {
            log,
            offset: at.payload_offset() + batch::HEADER_BYTES as u64,
            body: batch.body(),
        });
        let first = SeqNo(given.before.0 + 1);
        for part in parts {
            let mut entries =
                entries_of(batch.iter(), first).filter(|(family, _)| *family == part.family.id()).map(|e| e.1);
            part.memtable().insert_all(&mut entries, logged);
        }
    }
}

/// Entries of a checked batch, with their families and sequence numbers.
pub(crate) fn entries_of(records: BatchReader<'_>, first: SeqNo) -> impl Iterator<Item = (base::FamilyId, Entry<'_>)> {
    records.map_while(Result::ok).enumerate().map(move |(i, record)| {
        let seq = SeqNo(first.0 + i as u64);
        (record.family, Entry { user_key: record.key, seq, kind: record.kind, value: record.value })
    })
}

#[cfg(test)]
mod tests;
