//! The commit path. A write, a large batch and an ingest are each a [`Commit`]; all go through [`Committer::number`] and
//! [`Committer::apply`]:
//!
//! 1. admission, off the locks: room in memtables, clearance from range latches; whatever can fail or wait (C4);
//! 2. under the commit lock, O(1) (C3): check, take numbers, log space and a place in the pipeline; a commit that brings
//!    flushables also holds the state lock, and installs the views that it staged there (V1);
//! 3. off the locks: append the record (C1, C2), insert the entries, publish in order (S2).
//!
//! Under the locks a commit either goes or names what is [`Missing`]; that is provided off the locks, and it tries again.

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

/// Everything that takes sequence numbers.
pub(crate) struct Commit<'a> {
    /// What goes to the log; `None` where nothing is logged.
    pub record: Option<Record<'a>>,
    /// Sequence numbers that it takes.
    pub count: u64,
    /// What goes entry by entry into mutable memtables; `None` where all joins the queues as a whole.
    pub entries: Option<Entries<'a>>,
    /// What joins the queues as a whole.
    pub flushables: Vec<NewFlushable>,
    /// Key bounds, for others that look for unfinished writes that they overlap.
    pub bounds: SmallVec<[KeyBounds; 2]>,
    /// The log of its own that holds a large batch, and that the record names.
    pub own_log: Option<&'a Arc<ActiveLog>>,
    pub waiter: Waiter,
    /// Asked before numbers are taken, with everything that the commit touches latched.
    pub conflicts: Option<&'a dyn ConflictCheck>,
    /// A latch over everything touched is held. All others wait for such latches.
    pub is_latched: bool,
    clearance: Clearance<'a>,
    /// Where conflicts were checked.
    latch: Option<LatchGuard<'a>>,
    /// What is to stand in the queues; once the commit has numbers, what stood there. Dropping it may free memory.
    staged: Vec<Staged>,
    /// A family's ingests began to wait for their flush.
    begins_wait: bool,
    /// Of an ingest.
    pub lock: LockTimes,
}

/// Whether a commit may still be made, as a transaction's validation says.
pub(crate) trait ConflictCheck {
    /// Called off every lock. Everything that the commit touches is latched until it is published, and older writes of it are
    /// visible.
    ///
    /// # Errors
    /// `Conflict`: something that the commit depends on has changed.
    fn check(&self) -> Result<()>;
}

/// A batch, with the memtables in which room is reserved for it.
pub(crate) struct Entries<'a> {
    pub batch: &'a WriteBatch,
    pub parts: Parts<'a>,
    pub options: &'a WriteOptions,
}

/// A commit that has numbers, and whose flushables stand in the queues. Dropped before it was [applied](Committer::apply), it turns
/// the database read-only (C4).
pub(crate) struct Numbered<'a> {
    pub given: Given,
    space: Option<InLog>,
    unfinished: Unfinished<'a>,
}

/// What a write did.
pub(crate) struct Written {
    /// The last number that it took.
    pub last: SeqNo,
    /// The write ends with a flush of these.
    pub to_flush: Vec<Arc<Family>>,
}

/// What came of a commit.
pub(crate) struct Committed {
    pub given: Given,
    /// Families in which flushables went under the mutable memtable.
    pub under: usize,
    /// A family's ingests began to wait for their flush.
    pub begins_wait: bool,
    /// Where its record is; `None` where nothing was logged.
    pub log: Option<InLog>,
}

/// How long an ingest had the commit lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LockTimes {
    /// When it took the lock under which it was numbered.
    pub locked_at: Duration,
    /// Under the lock, in all attempts.
    pub locked_for: Duration,
    /// When it was in the log and published.
    pub published_at: Duration,
}

/// The numbers of a commit, and the end of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The last number before it.
    pub before: SeqNo,
    pub last: SeqNo,
    /// 0 without a record.
    pub log_end: LogPosition,
}

/// Space for a record.
pub(crate) type InLog = (Arc<ActiveLog>, Reservation);

/// What a commit took under the commit lock.
struct Taken {
    given: Given,
    ticket: Ticket,
    space: Option<InLog>,
}

/// Why a commit took no numbers. All but the last are provided off the locks.
pub(super) enum Missing {
    /// A memtable with room reserved is no longer mutable.
    Memtable,
    /// Space in this log, the current one; `None` before the first log.
    Wal(Option<Arc<ActiveLog>>),
    /// A place in the pipeline.
    Slot,
    /// There are range latches, and the commit is not known to be clear of them.
    Latch,
    /// The memtable above the flushable at this place.
    Successor(usize),
    Failed(Error),
}

impl From<Error> for Missing {
    fn from(error: Error) -> Self {
        Missing::Failed(error)
    }
}

impl<'a> Commit<'a> {
    /// A batch whose entries go into mutable memtables. Its parts are [still to be told](Self::take_apart), so that they are
    /// made where they stay.
    #[inline]
    pub(super) fn of_batch(batch: &'a WriteBatch, options: &'a WriteOptions) -> Self {
        let record = (!options.disable_wal).then_some(Record::Batch(batch));
        let entries = Entries { batch, parts: Parts::new(), options };
        Commit::new(record, u64::from(batch.count()), Some(entries), Vec::new(), Waiter::of_write(options))
    }

    /// Takes a batch apart by family and checks it.
    ///
    /// # Errors
    /// As of [`summarise`](admission::summarise).
    #[inline]
    pub(super) fn take_apart(&mut self, set: &'a FamilySet) -> Result<()> {
        if let Some(Entries { batch, parts, options }) = &mut self.entries {
            admission::summarise(batch, set, options, parts)?;
            parts.iter().for_each(|part| self.bounds.push(part.bounds()));
        }
        Ok(())
    }

    /// What joins the queues as a whole.
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

    /// The keys touched, for the range latches.
    fn keys(&self) -> SmallVec<[KeyRange<'_>; 2]> {
        let of_entries = self.entries.iter().flat_map(|entries| entries.parts.iter().map(Part::keys));
        of_entries.chain(self.flushables.iter().flat_map(NewFlushable::keys)).collect()
    }
}

/// Takes commits through the pipeline.
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

    /// As [`write`](Self::write), counted, and timed if statistics are kept.
    pub(crate) fn write_counted(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<Written> {
        let start = self.counts.start(&self.core.context);
        let written = self.write(batch, options)?;
        self.counts.add(batch, options, start.map(|start| self.core.context.vfs.now().saturating_sub(start)));
        Ok(written)
    }

    /// Applies a batch: atomically, and visibly to every read that starts after the return. The caller
    /// [ends](crate::flush::group::Flusher::end_write) the write.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`: nothing was written. `Busy`: it would have had to wait. `ReadOnly`: the database does
    /// not take writes. `Io`, `NoSpace`: the write failed; whether it is there after a reopen is not known if it had
    /// reached the log.
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

    /// What a batch without changes does: with `sync` all that was written before it survives power loss from then on, as
    /// after [`sync_log`](crate::Db::sync_log); with `flush_after` it is in tables, whatever family it went to.
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

    /// Takes numbers for a commit, and has its flushables join the queues.
    ///
    /// # Errors
    /// Nothing was done. Unused successors stay in the commit; the caller [gives them back](Self::give_back_successors).
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

    /// Provides what a commit lacks, or waits for that.
    #[cold]
    fn provide<'a>(&'a self, missing: Missing, commit: &mut Commit<'a>, backoff: &Backoff) -> Result<()> {
        match missing {
            Missing::Failed(error) => return Err(error),
            Missing::Memtable => {}
            Missing::Successor(at) => {
                commit.flushables.get_mut(at).map_or(Ok(()), |flushable| self.make_successor(flushable))?;
            }
            Missing::Latch => {
                self.hold_nothing(commit); // for others, as long as this waits
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

    /// Latches what a commit touches, and has its conflicts checked.
    #[cold]
    fn latch_and_check<'a>(&'a self, commit: &mut Commit<'a>, check: &dyn ConflictCheck) -> Result<()> {
        commit.latch = Some(self.latch_keys(commit.keys().into_iter(), commit.waiter)?);
        commit.is_latched = true;
        let numbered = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(numbered)?;
        check.check()
    }

    /// Both locks, of which a commit without flushables takes the second only. The state lock keeps the queues as they were
    /// staged; the commit lock makes the order of numbers the order in the queues (Q1).
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

    /// Checks that nothing is missing, and takes numbers, log space and a place in the pipeline. Under the commit lock: O(1)
    /// in everything but the number of families (C3).
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

    /// Takes a commit's numbers, space for its record and a place in the pipeline. O(1) (C3).
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
        // The last step that can fail: space that is reserved is filled.
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

    /// Gives flushables their numbers, and installs the views that were staged: readers find the flushables before any number
    /// is published that needs them (V1), and writers that take a number from now on go to the memtables above. Under the
    /// commit lock: O(1) for each family (C3). The record is not appended yet: a recovery never finds it beside an image that
    /// does not say that something else belongs to it.
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
            // No number above those before the commit goes to the memtable under it.
            let Given { before, last, .. } = *given;
            staged.install(&flushable.family, &Seam { before, last, logged_through, next_record: None });
        }
    }

    /// Has the families' state, by which jobs go, follow the views that were installed.
    fn follow_flushables(&self, commit: &mut Commit<'_>, state: &mut State) {
        for (flushable, staged) in commit.flushables.iter_mut().zip(&mut commit.staged) {
            let family = flushable.state_in(state);
            flushable.follow(staged, family);
            if self.core.flushes_can_wait() && flushable.brings_ingest() {
                commit.begins_wait |= family.note_ingest(commit.lock.locked_at);
            }
        }
    }

    /// Logs a commit that has numbers, inserts its entries and publishes it; returns once it is visible.
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

    /// What is left to do for flushables once they are published. Returns how many went under the mutable memtable.
    #[cold]
    fn end_flushables(&self, commit: &mut Commit<'_>) -> usize {
        if !commit.waiter.is_writer {
            commit.lock.published_at = self.core.context.vfs.now();
        }
        let under = commit.staged.iter().filter(|staged| staged.keeps_mutable()).count();
        self.exchange_views(&commit.flushables, &mut commit.staged);
        under
    }

    /// Lets go of what a commit holds of memtables, before a wait.
    fn hold_nothing(&self, commit: &mut Commit<'_>) {
        if let Some(entries) = &mut commit.entries {
            admission::release_views(&mut entries.parts);
        }
        self.give_back_successors(&mut commit.flushables);
    }
}

/// The families whose flush ends a write: it asks for that, or they do.
#[inline]
pub(super) fn flushed_eagerly(parts: &[Part<'_>], options: &WriteOptions) -> Vec<Arc<Family>> {
    let is_asked_for = |part: &&Part<'_>| options.flush_after || part.family.flushes_eagerly();
    parts.iter().filter(is_asked_for).map(|part| part.family.clone()).collect()
}

impl Entries<'_> {
    /// Inserts the entries into the memtables in which room is reserved for them. Cannot fail (C4).
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

/// The entries of a batch that was checked, with their numbers and families.
pub(crate) fn entries_of(records: BatchReader<'_>, first: SeqNo) -> impl Iterator<Item = (base::FamilyId, Entry<'_>)> {
    records.map_while(Result::ok).enumerate().map(move |(i, record)| {
        let seq = SeqNo(first.0 + i as u64);
        (record.family, Entry { user_key: record.key, seq, kind: record.kind, value: record.value })
    })
}

#[cfg(test)]
mod tests;
