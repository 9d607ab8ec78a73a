//! Writing: batches, admission, range latches, the commit pipeline, stalls.
//!
//! `committer.rs` runs every operation with sequence numbers: a batch, a large batch, an ingest. Each is a `Commit`.
//! Keeps S1-S3, C1-C4.

pub(crate) mod admission;
pub(crate) mod committer;
pub(crate) mod flushables;
pub(crate) mod large;
pub(crate) mod overlap;
pub(crate) mod slow;
pub(crate) mod two_phase;

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result, SeqNo, ValueKind};
use memtable::Entry;
use smallvec::SmallVec;
use wal::{RecordKind, Reservation};

use crate::batch::options::WriteOptions;
use crate::batch::{self, BatchReader, BatchRecord, WriteBatch};
use crate::commit::admission::{Part, Parts, Waiter};
use crate::commit::flushables::NewFlushable;
use crate::commit::large::OwnLog;
use crate::commit::slow::{Step, StepTimes};
use crate::core::family::{Family, FamilySet};
use crate::log_files::logs::ActiveLog;
use crate::log_files::value_logs::Logged;
use crate::memtables::staged::Staged;
use crate::order::SeqRange;
use crate::order::latch::{KeyRange, LatchGuard, LatchPermit, LatchSpan, Reach};
use crate::order::pipeline::KeyBounds;
use crate::records::two_phase_record::numbers_of;

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
    /// The log of a large batch; `record` names it.
    pub own_log: Option<&'a OwnLog>,
    pub waiter: Waiter,
    /// Checked before numbers are taken.
    pub conflicts: Option<&'a dyn ConflictCheck>,
    /// The last number when conflicts were checked without a latch. The check holds while it is the last.
    checked_at: Option<SeqNo>,
    /// Checks repeated since others took numbers.
    rechecks: u32,
    /// A latch over every touched key is held, here or by the caller. Overlapping commits wait for it.
    /// With flushables: nothing in memory overlaps them, and they are not compared with memtables any more.
    pub is_latched: bool,
    permit: LatchPermit<'a>,
    /// Set if conflicts were checked.
    latch: Option<LatchGuard<'a>>,
    /// Queues and views to install; once the commit has numbers, the replaced ones. Dropping them may free memory.
    staged: Vec<Staged>,
    /// True if a family's ingests began to wait for their flush.
    begins_wait: bool,
    /// Ingests only.
    pub lock: LockTimes,
    /// Set if slow writes are watched.
    pub times: Option<&'a StepTimes>,
}

/// Validation of a commit, for transactions.
pub(crate) trait ConflictCheck {
    /// Called off every lock, with a number that is visible. If other numbers were taken by the commit's, the check is repeated, at
    /// last under a latch: then each key of [`spans`](Self::spans) and of the batch is latched until the commit is finished in the
    /// pipeline.
    ///
    /// # Errors
    /// `Conflict`: a dependency of the commit has changed.
    fn check(&self, visible: SeqNo) -> Result<()>;

    /// The keys that the check looks at, each a span of its own.
    fn spans(&self) -> Vec<LatchSpan>;
}

/// A batch and its parts by family. The parts pin the memtables with the reserved room.
pub(crate) struct Entries<'a> {
    pub batch: &'a WriteBatch,
    pub parts: Parts<'a>,
    pub options: &'a WriteOptions,
    /// The commit's record has the batch, so memtables may refer to values in it.
    pub is_in_record: bool,
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
    pub given: SeqRange,
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

/// A WAL and the space reserved in it.
pub(crate) type InLog = (Arc<ActiveLog>, Reservation);

/// Why a commit took no numbers. Every case but `Failed` is provided off the locks.
pub(super) enum Missing {
    /// A memtable with reserved room is no longer mutable.
    Memtable,
    /// Space in this WAL, the current one; `None` before the first WAL.
    Wal(Option<Arc<ActiveLog>>),
    /// A pipeline slot.
    Slot,
    /// Latches are granted, and the permit does not cover them.
    Latch,
    /// A check of conflicts: numbers were taken since the last one.
    Check,
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
        let entries = Entries { batch, parts: Parts::new(), options, is_in_record: record.is_some() };
        Commit::new(record, u64::from(batch.count()), Some(entries), Vec::new(), Waiter::of_write(options))
    }

    /// As [`of_batch`](Self::of_batch), of a batch in an earlier record. The caller sets the record.
    pub(super) fn of_prepared(batch: &'a WriteBatch, options: &'a WriteOptions) -> Self {
        let entries = Entries { batch, parts: Parts::new(), options, is_in_record: false };
        Commit::new(None, numbers_of(batch.count()), Some(entries), Vec::new(), Waiter::of_write(options))
    }

    /// The parts of the batch.
    pub(super) fn parts(&self) -> &[Part<'a>] {
        self.entries.as_ref().map_or(&[], |entries| &entries.parts)
    }

    /// Splits the batch by family and checks it.
    ///
    /// # Errors
    /// As [`summarise`](admission::summarise).
    #[inline]
    pub(super) fn take_apart(&mut self, set: &'a FamilySet) -> Result<()> {
        if let Some(Entries { batch, parts, options, .. }) = &mut self.entries {
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
            checked_at: None,
            rechecks: 0,
            is_latched: false,
            permit: LatchPermit::default(),
            latch: None,
            staged: Vec::new(),
            begins_wait: false,
            lock: LockTimes::default(),
            times: None,
        }
    }

    /// Marks the end of a step, if the commit is watched.
    #[inline]
    pub(super) fn mark(&self, step: Step) {
        if let Some(times) = self.times {
            times.mark(step);
        }
    }

    /// Whether the commit only deletes. An excise does not count: everything below it must be flushed before.
    fn frees_space(&self) -> bool {
        self.flushables.is_empty() && self.entries.as_ref().is_some_and(|entries| entries.batch.only_deletes())
    }

    /// Each key of a commit with a conflict check: those checked, and those of its batch. So commits wait for each other
    /// by key, not by the range around their keys.
    fn checked_keys(&self, check: &dyn ConflictCheck) -> Reach {
        let mut spans = check.spans();
        let Some(Entries { batch, parts, .. }) = &self.entries else {
            spans.extend(self.keys().iter().map(LatchSpan::of));
            return Reach::of(spans);
        };
        for record in batch.iter().map_while(Result::ok) {
            let part = parts.iter().find(|part| part.family.id() == record.family);
            spans.extend(part.map(|part| LatchSpan::of(&part.keys_of(&record))));
        }
        Reach::of(spans)
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

const NUMBER_BYTES: usize = 8;

/// A WAL record without its numbers: encoded before the commit lock, filled in when it is appended.
pub(crate) enum Record<'a> {
    /// A batch as it is. It begins with its first number.
    Batch(&'a WriteBatch),
    Made(MadeRecord),
    /// A batch under a name. `head`: space for the number, then the name.
    Prepare {
        head: &'a [u8],
        batch: &'a WriteBatch,
    },
}

/// A payload encoded for a commit.
pub(crate) struct MadeRecord {
    pub kind: RecordKind,
    pub payload: Vec<u8>,
    /// Offsets of the numbers in the payload, ascending, and each number's distance from the last number before the
    /// commit.
    pub numbers: SmallVec<[(usize, u64); 2]>,
}

impl Record<'_> {
    /// Bytes of the payload.
    pub fn len(&self) -> usize {
        match self {
            Record::Batch(batch) => batch.len(),
            Record::Made(made) => made.payload.len(),
            Record::Prepare { head, batch } => head.len() + batch.len(),
        }
    }

    /// Calls `append` with the payload in pieces, numbers filled in. No copy is made while writers wait behind it.
    pub fn appended<R>(&self, given: &SeqRange, append: impl FnOnce(RecordKind, &[&[u8]]) -> R) -> R {
        match self {
            Record::Batch(batch) => {
                let header = batch::header(SeqNo(given.before.0 + 1), batch.count());
                append(RecordKind::Batch, &[&header, batch.body()])
            }
            Record::Made(made) => append(made.kind, &made.pieces(&made.numbers_of(given))),
            Record::Prepare { head, batch } => {
                let number = (given.before.0 + 1).to_le_bytes();
                let name = head.get(NUMBER_BYTES..).unwrap_or_default();
                let header = batch::header(SeqNo::ZERO, batch.count());
                append(RecordKind::Prepare, &[&number, name, &header, batch.body()])
            }
        }
    }
}

impl MadeRecord {
    fn numbers_of(&self, given: &SeqRange) -> SmallVec<[[u8; NUMBER_BYTES]; 2]> {
        self.numbers.iter().map(|&(_, above)| (given.before.0 + above).to_le_bytes()).collect()
    }

    fn pieces<'a>(&'a self, numbers: &'a [[u8; NUMBER_BYTES]]) -> SmallVec<[&'a [u8]; 5]> {
        let mut pieces = SmallVec::new();
        let mut from = 0;
        for (&(at, _), number) in self.numbers.iter().zip(numbers) {
            pieces.push(self.payload.get(from..at).expect("places in the payload, in order"));
            pieces.push(&number[..]);
            from = at + NUMBER_BYTES;
        }
        pieces.push(self.payload.get(from..).expect("a place in the payload"));
        pieces
    }
}

impl Entries<'_> {
    /// Inserts the entries into the reserved memtable room. Cannot fail (C4).
    fn insert(&self, given: &SeqRange, space: Option<&InLog>) {
        let Entries { batch, parts, options, is_in_record } = self;
        if options.disable_wal {
            parts.iter().for_each(|part| part.family.record_unlogged());
        }
        let logged = space.filter(|_| *is_in_record).map(|(log, at)| Logged {
            log,
            offset: at.payload_offset() + batch::HEADER_BYTES as u64,
            body: batch.body(),
        });
        for part in parts {
            // A loop, and not adapters: whether those are inlined changes with what else is compiled.
            let of_part = || {
                let (mut records, mut seq, id) = (batch.iter(), given.before, part.family.id());
                std::iter::from_fn(move || {
                    loop {
                        let record = records.next()?.ok()?;
                        seq.0 += 1;
                        if record.family == id {
                            return Some(entry_of(&record, seq));
                        }
                    }
                })
            };
            if part.family.gaps().are_known() {
                let makes_live = |entry: &Entry<'_>| matches!(entry.kind, ValueKind::Value | ValueKind::Merge);
                part.family.gaps().cut_keys(of_part().filter(makes_live).map(|entry| entry.user_key));
            }
            part.memtable().insert_all(&mut of_part(), logged);
        }
    }
}

/// Entries of a checked batch, with their families and sequence numbers.
pub(crate) fn entries_of(records: BatchReader<'_>, first: SeqNo) -> impl Iterator<Item = (base::FamilyId, Entry<'_>)> {
    let numbered = records.map_while(Result::ok).enumerate();
    numbered.map(move |(i, record)| (record.family, entry_of(&record, SeqNo(first.0 + i as u64))))
}

#[inline]
fn entry_of<'a>(record: &BatchRecord<'a>, seq: SeqNo) -> Entry<'a> {
    Entry { user_key: record.key, seq, kind: record.kind, value: record.value }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;

    #[test]
    fn numbers_are_put_where_they_belong() {
        let payload = (0..30).collect();
        let record = MadeRecord { kind: RecordKind::Ingest, payload, numbers: smallvec![(0, 1), (17, 3)] };
        let given = SeqRange { before: SeqNo(0x100), last: SeqNo(0x103), log_end: 0 };
        let bytes = record.pieces(&record.numbers_of(&given)).concat();
        let expected =
            [&0x101u64.to_le_bytes()[..], &record.payload[8..17], &0x103u64.to_le_bytes(), &record.payload[25..]];
        assert_eq!(bytes, expected.concat());
    }
}
