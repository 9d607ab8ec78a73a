//! Large batches. Copying a batch above `large_batch_bytes` would delay every other writer's publication. So the batch
//! is written to a WAL of its own and indexed as a flushable *before* it takes numbers. A small record in the current
//! WAL names the batch's file and commits the batch. Keeps C3, C4, D3.

use std::sync::Arc;

use base::coding::{Reader, put_u32, put_u64, put_varint32};
use base::metrics::{Ticker, tick};
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use log::RecordKind;
use smallvec::smallvec;

use crate::commit::Written;
use crate::commit::admission::flushed_eagerly;
use crate::commit::admission::{self, Part, Parts, Waiter};
use crate::commit::batch::{self, WriteBatch};
use crate::commit::committer::Committer;
use crate::commit::flushables::NewFlushable;
use crate::commit::options::WriteOptions;
use crate::commit::{Commit, Committed, entries_of};
use crate::commit::{MadeRecord, Record};
use crate::core::family::FamilySet;
use crate::queue::flushable::HeldMemtable;
use crate::queue::rebased::RebasedMemtable;
use crate::wal::logs::ActiveLog;

/// Commit record of a large batch, in the current WAL. Format: docs/format/log.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeBatchRecord {
    /// The first number of the batch.
    pub first: SeqNo,
    pub count: u32,
    /// File of the batch: a WAL with the batch as its only record.
    pub file: FileNumber,
    /// Families of the batch. Once all of them have flushed through it, the file may be gone.
    pub families: Vec<FamilyId>,
}

impl LargeBatchRecord {
    /// The length does not depend on the first number.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.first.0);
        put_u32(&mut bytes, self.count);
        put_u64(&mut bytes, self.file.0);
        self.families.iter().for_each(|family| put_varint32(&mut bytes, family.0));
        bytes
    }

    /// # Errors
    /// `Corruption`: a malformed record.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let first = SeqNo(reader.u64("a large batch's first number")?);
        let count = reader.u32("a large batch's count")?;
        let file = FileNumber(reader.u64("a large batch's file")?);
        let mut families = Vec::new();
        while !reader.is_empty() {
            families.push(FamilyId(reader.varint32("a large batch's family")?));
        }
        if count == 0 || first.checked_add(u64::from(count) - 1).is_none() {
            return Err(Error::corruption("a large batch's record is malformed"));
        }
        Ok(LargeBatchRecord { first, count, file, families })
    }

    /// The last number of the batch.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + u64::from(self.count) - 1)
    }
}

impl Committer {
    /// Applies a large batch; as [`write`](Self::write).
    pub(crate) fn write_large(&self, batch: &WriteBatch, set: &FamilySet, options: &WriteOptions) -> Result<Written> {
        let mut parts = Parts::new();
        admission::summarise(batch, set, options, &mut parts)?;
        let room_bytes = parts.iter().map(|part| part.room_alone(&**part.memtable().memtable())).sum();
        admission::release_views(&mut parts);
        for part in &parts {
            self.memtables.wait_for_queue_room(part.family, options)?;
            if options.disable_wal {
                part.family.note_unlogged();
            }
        }
        let memtables = self.memtables_of(&parts, room_bytes, options)?;
        let file = if options.disable_wal { None } else { Some(self.log_of_its_own(batch)?) };
        let mut commit = self.large_commit(batch, &parts, (memtables, file.as_ref()), options);
        let numbered = commit.as_mut().map_err(|error| error.clone()).and_then(|commit| self.number(commit));
        if let (Err(_), Some(file)) = (&numbered, &file) {
            self.core.logs.discard(file); // no record names it
        }
        let Committed { given, .. } = self.apply(&mut commit?, numbered?)?;
        let last = given.last;
        self.core.note_joined(parts.iter().map(|part| part.family.id()));
        if file.is_some() && self.wal.are_logs_over_limit() {
            self.wal.flush_for_log_limit(0); // the current WAL may fill slowly
        }
        if options.sync {
            self.wal.sync_write(given.log_end)?;
        }
        tick(&self.core.context.statistics, Ticker::LargeBatches, 1);
        self.core.state_changed.notify_all();
        self.core.upkeep.raise();
        Ok(Written { last, to_flush: flushed_eagerly(&parts, options) })
    }

    /// Makes a memtable for each part, with room reserved and charged. `room_bytes` estimates the sum.
    fn memtables_of(&self, parts: &[Part<'_>], room_bytes: usize, options: &WriteOptions) -> Result<Vec<HeldMemtable>> {
        let ahead = self.memtables.charge_ahead(room_bytes, options)?;
        let memtables = parts.iter().map(with_room).collect::<Result<Vec<_>>>()?;
        memtables.iter().for_each(|held| ahead.hand_over(held.charge(), held.memtable().reserved_bytes()));
        Ok(memtables)
    }

    /// Fills the memtables, a long step, and makes their successors.
    fn large_commit<'a>(
        &self,
        batch: &'a WriteBatch,
        parts: &[Part<'_>],
        (memtables, file): (Vec<HeldMemtable>, Option<&'a Arc<ActiveLog>>),
        options: &WriteOptions,
    ) -> Result<Commit<'a>> {
        let of_part = |(part, held): (&Part<'_>, HeldMemtable)| {
            let mut flushable = NewFlushable::of_batch(part, indexed(batch, part.family.id(), held, 0));
            flushable.successor = Some(self.memtables.make_memtable(part.family, 0)?);
            Ok(flushable)
        };
        let flushables = parts.iter().zip(memtables).map(of_part).collect::<Result<_>>()?;
        let (count, waiter) = (u64::from(batch.count()), Waiter::of_write(options));
        let mut commit =
            Commit::of_flushables(file.map(|file| record_of(batch, parts, file)), count, flushables, waiter);
        commit.bounds = parts.iter().map(Part::bounds).collect();
        commit.own_log = file;
        Ok(commit)
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
        let mut parts = Parts::new();
        admission::summarise(batch, &set, options, &mut parts)?;
        let room_bytes = parts.iter().map(|part| part.room_alone(&**part.memtable().memtable())).sum();
        admission::release_views(&mut parts);
        for part in &parts {
            self.memtables.wait_for_queue_room(part.family, options)?;
        }
        let memtables = self.memtables_of(&parts, room_bytes, options)?;
        let of_part = |(part, held): (&Part<'_>, HeldMemtable)| {
            NewFlushable::of_batch(part, indexed(batch, part.family.id(), held, numbers_before))
        };
        Ok(parts.iter().zip(memtables).map(of_part).collect())
    }

    /// Writes the batch as the only record of a new WAL, durable before the commit record.
    fn log_of_its_own(&self, batch: &WriteBatch) -> Result<Arc<ActiveLog>> {
        let create = || self.core.logs.create_for_batch(batch.len() as u64);
        let log = self.core.removals.with_all_space(create)?;
        fill(&log, batch).inspect_err(|_| self.core.logs.discard(&log))?; // no record will name it
        Ok(log)
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
fn record_of(batch: &WriteBatch, parts: &[Part<'_>], file: &ActiveLog) -> Record<'static> {
    let families = parts.iter().map(|part| part.family.id()).collect();
    let record = LargeBatchRecord { first: SeqNo::ZERO, count: batch.count(), file: file.number(), families };
    // The payload begins with the first number.
    Record::Made(MadeRecord { kind: RecordKind::LargeBatch, payload: record.encode(), numbers: smallvec![(0, 1)] })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_and_nothing_else_passes() {
        let families = vec![FamilyId(0), FamilyId(300)];
        let record = LargeBatchRecord { first: SeqNo(7), count: 3, file: FileNumber(12), families };
        let bytes = record.encode();
        assert_eq!(LargeBatchRecord::decode(&bytes).expect("valid"), record);
        assert_eq!(record.last(), SeqNo(9));
        for len in 0..20 {
            LargeBatchRecord::decode(&bytes[..len]).expect_err("cut");
        }
        let past_the_end = LargeBatchRecord { first: SeqNo::MAX, ..record.clone() };
        LargeBatchRecord::decode(&past_the_end.encode()).expect_err("numbers end at 56 bits");
        let empty = LargeBatchRecord { count: 0, ..record };
        LargeBatchRecord::decode(&empty.encode()).expect_err("no change at all");
    }
}
