//! Large batches. Copying a batch above `large_batch_bytes` would delay every other writer's publication. So the batch
//! is written to a WAL of its own and indexed as a flushable *before* it takes numbers. A small record in the current
//! WAL names the batch's file and commits the batch, alone or with an ingest. Keeps C3, C4, D3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::metrics::{Ticker, tick};
use base::{Error, FamilyId, Result, SeqNo};
use smallvec::smallvec;
use wal::RecordKind;

use crate::batch::options::WriteOptions;
use crate::batch::{self, WriteBatch};
use crate::commit::admission::{self, Part, Parts, Waiter, flushed_eagerly};
use crate::commit::committer::Committer;
use crate::commit::flushables::NewFlushable;
use crate::commit::slow::{Step, StepTimes};
use crate::commit::{Commit, Committed, ConflictCheck, MadeRecord, Record, Written, entries_of};
use crate::core::family::FamilySet;
use crate::log_files::logs::{ActiveLog, WalFiles};
use crate::queue::flushable::HeldMemtable;
use crate::queue::rebased::RebasedMemtable;
use crate::records::record::LargeBatchRecord;

/// The log of a large batch: written and synced before the commit takes numbers. Deleted if it takes none.
pub(crate) struct OwnLog {
    logs: Arc<WalFiles>,
    log: Arc<ActiveLog>,
    /// Names the log in the commit's record; without its number.
    pub record: LargeBatchRecord,
    is_committed: AtomicBool,
}

impl OwnLog {
    /// The commit took its last number. Called under the commit lock: O(1) (C3).
    pub fn commit(&self, last_seq: SeqNo) {
        self.is_committed.store(true, Ordering::Relaxed);
        self.logs.record_large(&self.log, last_seq);
    }
}

impl Drop for OwnLog {
    fn drop(&mut self) {
        if !self.is_committed.load(Ordering::Relaxed) {
            self.logs.discard(&self.log); // no record names it
        }
    }
}

impl Committer {
    /// Applies a large batch; as [`write`](Self::write).
    pub(crate) fn write_large(
        &self,
        batch: &WriteBatch,
        set: &FamilySet,
        options: &WriteOptions,
        conflicts: Option<&dyn ConflictCheck>,
        times: Option<&StepTimes>,
    ) -> Result<Written> {
        let mark = |step| times.into_iter().for_each(|times| times.mark(step));
        let (parts, memtables) = self.take_apart(batch, set, options)?;
        if options.disable_wal {
            parts.iter().for_each(|part| part.family.record_unlogged());
        }
        let families = parts.iter().map(|part| part.family.id()).collect();
        let own_log = if options.disable_wal { None } else { Some(self.log_of_its_own(batch, families)?) };
        mark(Step::InOwnLog);
        let flushables = self.large_flushables(batch, &parts, memtables)?;
        mark(Step::Indexed);
        let record = own_log.as_ref().map(|own| Record::Made(record_of(&own.record)));
        let waiter = Waiter::of_write(options);
        let mut commit = Commit::of_flushables(record, u64::from(batch.count()), flushables, waiter);
        commit.bounds = parts.iter().map(Part::bounds).collect();
        commit.own_log = own_log.as_ref();
        (commit.conflicts, commit.times) = (conflicts, times);
        let numbered = self.number(&mut commit)?;
        let Committed { given, .. } = self.apply(&mut commit, numbered)?;
        let last = given.last;
        self.core.record_joined(parts.iter().map(|part| part.family.id()));
        if own_log.is_some() {
            self.flush_for_log_limit();
        }
        if options.sync {
            self.wal.sync_write(given.log_end)?;
            mark(Step::Synced);
        }
        tick(&self.core.context.statistics, Ticker::LargeBatches, 1);
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        Ok(Written { last, to_flush: flushed_eagerly(&parts, options) })
    }

    /// Splits a batch by family and makes a memtable for each part, with room reserved and charged.
    ///
    /// # Errors
    /// As the admission of a write with these options.
    fn take_apart<'a>(
        &self,
        batch: &'a WriteBatch,
        set: &'a FamilySet,
        options: &WriteOptions,
    ) -> Result<(Parts<'a>, Vec<HeldMemtable>)> {
        let mut parts = Parts::new();
        admission::summarise(batch, set, options, &mut parts)?;
        let room_bytes = parts.iter().map(|part| part.room_alone(&**part.memtable().memtable())).sum();
        admission::release_views(&mut parts);
        parts.iter().try_for_each(|part| self.memtables.wait_for_queue_room(part.family, None, options))?;
        let ahead = self.memtables.charge_ahead(room_bytes, options)?;
        let memtables = parts.iter().map(with_room).collect::<Result<Vec<_>>>()?;
        memtables.iter().for_each(|held| ahead.hand_over(held.charge(), held.memtable().reserved_bytes()));
        Ok((parts, memtables))
    }

    /// Fills the memtables, a long step, and makes their successors.
    fn large_flushables(
        &self,
        batch: &WriteBatch,
        parts: &[Part<'_>],
        memtables: Vec<HeldMemtable>,
    ) -> Result<Vec<NewFlushable>> {
        let of_part = |(part, held): (&Part<'_>, HeldMemtable)| {
            let mut flushable = NewFlushable::of_batch(part, indexed(batch, part.family.id(), held, 0));
            flushable.successor = Some(self.memtables.make_memtable(part.family, 0)?);
            Ok(flushable)
        };
        parts.iter().zip(memtables).map(of_part).collect()
    }

    /// Called after the commit of a large batch: the current WAL may fill slowly.
    pub(crate) fn flush_for_log_limit(&self) {
        if self.wal.are_logs_over_limit() {
            self.wal.flush_for_log_limit(0);
        }
    }

    /// Indexes a batch committed together with other entries, such as ingested tables; they take `numbers_before`
    /// numbers first.
    ///
    /// # Errors
    /// As the admission of a write with these options.
    pub(crate) fn index_batch(
        &self,
        batch: &WriteBatch,
        numbers_before: u64,
        options: &WriteOptions,
    ) -> Result<Vec<NewFlushable>> {
        let set = self.core.families.load();
        let (parts, memtables) = self.take_apart(batch, &set, options)?;
        let of_part = |(part, held): (&Part<'_>, HeldMemtable)| {
            NewFlushable::of_batch(part, indexed(batch, part.family.id(), held, numbers_before))
        };
        Ok(parts.iter().zip(memtables).map(of_part).collect())
    }

    /// Whether the batch goes to a log of its own.
    #[inline]
    pub(crate) fn is_large(&self, batch: &WriteBatch) -> bool {
        batch.len() as u64 > self.core.context.options.large_batch_bytes
    }

    /// Writes the batch as the only record of a new WAL, durable before the commit record.
    pub(crate) fn log_of_its_own(&self, batch: &WriteBatch, families: Vec<FamilyId>) -> Result<OwnLog> {
        let create = || self.core.logs.create_for_batch(batch.len() as u64);
        let log = self.core.with_reserve(|| batch.only_deletes(), || self.core.removals.with_all_space(create))?;
        let record = LargeBatchRecord { first: SeqNo::ZERO, count: batch.count(), file: log.number(), families };
        let own = OwnLog { logs: self.core.logs.clone(), log, record, is_committed: AtomicBool::new(false) };
        fill(&own.log, batch)?;
        Ok(own)
    }
}

/// Appends the batch to its own WAL, seals the WAL and syncs it.
fn fill(log: &ActiveLog, batch: &WriteBatch) -> Result<()> {
    let too_long = || Error::invalid_argument("a batch is longer than 4 GiB");
    let reservation = log.file.try_reserve(batch.len()).ok_or_else(too_long)?;
    let header = batch::header(SeqNo::ZERO, batch.count());
    log.file.append(&reservation, RecordKind::Batch, &[&header, batch.body()])?;
    if let Some(end) = log.file.seal() {
        log.file.append(&end, RecordKind::End, &[])?;
        log.file.publish(end.end());
    }
    log.file.sync().map(drop)
}

/// The commit record of a batch, without its number.
fn record_of(large: &LargeBatchRecord) -> MadeRecord {
    // The payload begins with the first number.
    MadeRecord { kind: RecordKind::LargeBatch, payload: large.encode(), numbers: smallvec![(0, 1)] }
}

/// Fills the memtable with the batch's part in a family.
fn indexed(batch: &WriteBatch, family: FamilyId, held: HeldMemtable, numbers_before: u64) -> Arc<RebasedMemtable> {
    let of_family = |(of, entry)| (of == family).then_some(entry);
    let memtable = held.memtable();
    memtable.insert_all(&mut entries_of(batch.iter(), SeqNo(1)).filter_map(of_family));
    memtable.seal();
    RebasedMemtable::new(held, numbers_before)
}

/// Makes a memtable with room reserved for a part of any size.
fn with_room(part: &Part<'_>) -> Result<HeldMemtable> {
    let held = part.family.create_batch_memtable(0)?;
    let room = part.room_alone(&**held.memtable());
    if held.memtable().try_reserve(room) {
        return Ok(held);
    }
    let held = part.family.create_batch_memtable(room)?;
    if !held.memtable().try_reserve(room) {
        return Err(Error::invalid_argument(format!("a batch needs a memtable of {room} bytes, which cannot be made")));
    }
    Ok(held)
}
