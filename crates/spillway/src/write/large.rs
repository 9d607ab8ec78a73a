//! Large batches: above `large_batch_bytes` a batch would hold up every other writer's publication while it is copied.
//! So it is written to a log of its own and indexed as a flushable of its own *before* it takes numbers; then a small
//! record in the current log names its file, and that commits it. Keeps C3, C4, D3.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::coding::{Reader, put_u32, put_u64, put_varint32};
use base::metrics::{Ticker, tick};
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use crossbeam_utils::Backoff;
use log::{RecordKind, Reservation};

use crate::core::{Core, FamilySet};
use crate::family::Family;
use crate::flush::flushable::QueuedMemtable;
use crate::flush::held::HeldMemtable;
use crate::flush::rebased::RebasedMemtable;
use crate::write::admission::{self, Part};
use crate::write::batch::{self, WriteBatch};
use crate::write::commit::{Unfinished, entries_of};
use crate::write::logs::ActiveLog;
use crate::write::options::WriteOptions;
use crate::write::pipeline::Ticket;

/// What the record in the current log says. Format: docs/format/log.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeBatchRecord {
    /// The first number of the batch.
    pub first: SeqNo,
    pub count: u32,
    /// The file that holds the batch, as the only record of a log.
    pub file: FileNumber,
    /// The families that it writes to: once all of them have flushed through it, the file may be gone.
    pub families: Vec<FamilyId>,
}

impl LargeBatchRecord {
    /// As long whatever the first number is.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u64(&mut bytes, self.first.0);
        put_u32(&mut bytes, self.count);
        put_u64(&mut bytes, self.file.0);
        self.families.iter().for_each(|family| put_varint32(&mut bytes, family.0));
        bytes
    }

    /// # Errors
    /// `Corruption`: not such a record.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let first = SeqNo(reader.u64("a large batch's first number")?);
        let count = reader.u32("a large batch's count")?;
        let file = FileNumber(reader.u64("a large batch's file")?);
        let mut families = Vec::new();
        while !reader.is_empty() {
            families.push(FamilyId(reader.varint32("a large batch's family")?));
        }
        if count == 0 || first.checked_add(u64::from(count)).is_none() {
            return Err(Error::corruption("a large batch's record is malformed"));
        }
        Ok(LargeBatchRecord { first, count, file, families })
    }

    /// The last number of the batch.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + u64::from(self.count) - 1)
    }
}

/// A batch that is written and indexed, and has no numbers yet.
struct Prepared<'a> {
    parts: Vec<(&'a Arc<Family>, Arc<RebasedMemtable>)>,
    /// The mutable memtables that will take over in the touched families.
    fresh: BTreeMap<FamilyId, HeldMemtable>,
    file: Option<Arc<ActiveLog>>,
}

struct Committed {
    ticket: Ticket,
    last: SeqNo,
    record: Option<(Arc<ActiveLog>, Reservation, LargeBatchRecord)>,
}

impl Core {
    /// Applies a large batch; as [`Core::write`].
    pub(crate) fn write_large(&self, batch: &WriteBatch, set: &FamilySet, options: &WriteOptions) -> Result<SeqNo> {
        let mut parts = admission::summarise(batch, set, options)?;
        let room_bytes = parts.iter().map(|part| part.room_in(&**part.memtable().memtable())).sum();
        admission::release_views(&mut parts);
        for part in &parts {
            self.wait_for_queue_room(part.family, options)?;
            if options.disable_wal {
                part.family.note_unlogged();
            }
        }
        let memtables = self.memtables_of(&parts, room_bytes, options)?;
        let file = if options.disable_wal { None } else { Some(self.log_of_its_own(batch)?) };
        let prepared = self.prepare_large(batch, &parts, memtables, file.clone());
        let committed = prepared.and_then(|prepared| self.commit_large(batch, &parts, prepared));
        if let (Err(_), Some(file)) = (&committed, &file) {
            self.logs.discard(file); // no record names it
        }
        let committed = committed?;
        let unfinished = Unfinished::new(self, committed.ticket);
        if let Some((log, reservation, record)) = &committed.record {
            log.note_published(self.pipeline.published_log());
            let logged = self.logs.append(log, reservation, RecordKind::LargeBatch, &[&record.encode()]);
            logged.inspect_err(|e| self.fail(e))?;
        }
        unfinished.finish();
        self.pipeline.wait_visible(committed.last)?;
        self.flush_written(&parts, committed.last, options)?;
        if let Some((log, reservation, _)) = committed.record.filter(|_| options.sync) {
            self.sync_write(log.position(&reservation))?;
        }
        tick(&self.context.statistics, Ticker::LargeBatches, 1);
        self.state_changed.notify_all();
        self.upkeep.raise();
        self.drive_if_inline();
        Ok(committed.last)
    }

    /// A memtable for each part, with its room reserved and charged. `room_bytes` is about what they need together.
    fn memtables_of(&self, parts: &[Part<'_>], room_bytes: usize, options: &WriteOptions) -> Result<Vec<HeldMemtable>> {
        let ahead = self.charge_ahead(room_bytes, options)?;
        let memtables = parts.iter().map(with_room).collect::<Result<Vec<_>>>()?;
        memtables.iter().for_each(|held| ahead.hand_over(held.charge(), held.memtable().reserved_bytes()));
        Ok(memtables)
    }

    /// What takes long besides the batch's own log: its memtables, filled.
    fn prepare_large<'a>(
        &self,
        batch: &WriteBatch,
        parts: &[Part<'a>],
        memtables: Vec<HeldMemtable>,
        file: Option<Arc<ActiveLog>>,
    ) -> Result<Prepared<'a>> {
        let mut prepared = Prepared { parts: Vec::with_capacity(parts.len()), fresh: BTreeMap::new(), file };
        for (part, held) in parts.iter().zip(memtables) {
            let memtable = held.memtable();
            let of_family = |(family, entry)| (family == part.family.id()).then_some(entry);
            memtable.insert_all(&mut entries_of(batch.iter(), SeqNo(1)).filter_map(of_family));
            memtable.seal();
            prepared.parts.push((part.family, RebasedMemtable::new(held)));
            prepared.fresh.insert(part.family.id(), part.family.create_memtable(0)?);
        }
        Ok(prepared)
    }

    /// Writes the batch as the only record of a log, durable before the record that commits it can be.
    fn log_of_its_own(&self, batch: &WriteBatch) -> Result<Arc<ActiveLog>> {
        let log = self.logs.create_for_batch(self.context.numbers.take(), batch.len() as u64)?;
        let too_long = || Error::invalid_argument("a batch is longer than 4 GiB");
        let reservation = log.file.try_reserve(batch.len()).ok_or_else(too_long)?;
        let header = batch::header(SeqNo::ZERO, batch.count());
        log.file.append(&reservation, RecordKind::Batch, &[&header, batch.body()])?;
        if let Some(end) = log.file.seal() {
            log.file.append(&end, RecordKind::End, &[])?;
            log.file.publish(end.end());
        }
        log.file.sync()?;
        Ok(log)
    }

    /// Takes numbers, and puts the batch's memtables on top of each family's queue, fresh mutable ones above them, before
    /// anything can be published that needs them (V1).
    fn commit_large(&self, batch: &WriteBatch, parts: &[Part<'_>], mut prepared: Prepared<'_>) -> Result<Committed> {
        let families: Vec<FamilyId> = parts.iter().map(|part| part.family.id()).collect();
        let record = prepared.file.as_ref().map(|file| LargeBatchRecord {
            first: SeqNo::ZERO,
            count: batch.count(),
            file: file.number(),
            families,
        });
        let record_bytes = record.as_ref().map_or(0, |record| record.encode().len());
        let backoff = Backoff::new();
        loop {
            let mut state = self.state.lock();
            for (family, _) in &prepared.parts {
                self.family_state(&mut state, family.id())?;
            }
            let mut commit = self.commit.lock();
            let log = commit.log.clone().ok_or_else(|| Error::closed("the database has no log: it is closed"))?;
            if !self.pipeline.has_room() {
                drop((commit, state));
                backoff.snooze();
                self.check_writable()?;
                continue;
            }
            let exhausted = || Error::read_only("the database has used up its 2^56 sequence numbers");
            let base = commit.last_seq;
            let last = base.checked_add(u64::from(batch.count())).ok_or_else(exhausted)?;
            // The last step that can fail: space that is reserved is filled.
            let reservation = match &prepared.file {
                None => None,
                Some(_) => match log.file.try_reserve(record_bytes) {
                    Some(reservation) => Some(reservation),
                    None => {
                        drop(commit);
                        drop(state);
                        self.roll_log(&log, record_bytes as u64)?;
                        continue;
                    }
                },
            };
            commit.last_seq = last;
            if let Some(file) = &prepared.file {
                self.logs.note_large(file, last);
            }
            let record = reservation.zip(record.clone()).map(|(reservation, mut record)| {
                record.first = SeqNo(base.0 + 1);
                (log, reservation, record)
            });
            let log_end = record.as_ref().map_or(0, |(log, reservation, _)| log.position(reservation));
            let bounds: Vec<_> = parts.iter().map(Part::bounds).collect();
            let ticket = self.pipeline.enter(last, log_end, &bounds);
            let logged = self.pipeline.entered_log();
            let mut old_views = Vec::with_capacity(prepared.parts.len());
            for (family, memtable) in &prepared.parts {
                memtable.set_numbers(base, last, log_end);
                let touched = self.family_state(&mut state, family.id())?;
                let made = prepared.fresh.remove(&family.id()).expect("one for each family of the batch");
                let next: Arc<QueuedMemtable> = self.context.queue_memtable(made, last);
                let old = std::mem::replace(&mut touched.mutable, next);
                old.seal_at(base, logged);
                touched.queue.insert(0, old);
                touched.queue.insert(0, memtable.clone());
                touched.family.set_mutable(&touched.mutable);
                old_views.push(touched.publish_view());
            }
            drop(commit);
            drop(state);
            drop(old_views);
            return Ok(Committed { ticket, last, record });
        }
    }
}

/// A memtable with room for a part reserved, however much that is.
fn with_room(part: &Part<'_>) -> Result<HeldMemtable> {
    let held = part.family.create_memtable(0)?;
    let room = part.room_in(&**held.memtable());
    if held.memtable().try_reserve(room) {
        return Ok(held);
    }
    let held = part.family.create_memtable(room)?;
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
