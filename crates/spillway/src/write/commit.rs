//! The life of a write: admitted, numbered, logged, inserted, published. Keeps S1-S3, C1-C4, D1.

use std::sync::Arc;

use base::{Error, Result, SeqNo};
use crossbeam_utils::Backoff;
use log::RecordKind;
use memtable::Entry;
use smallvec::SmallVec;

use crate::core::{Core, FamilySet};
use crate::family::Family;
use crate::ingest::latch::{Clearance, KeyRange};
use crate::write::admission::{self, Part, Parts, Waiter};
use crate::write::batch::{self, BatchReader, WriteBatch};
use crate::write::numbers::{Full, Taken};
use crate::write::options::WriteOptions;
use crate::write::pipeline::{KeyBounds, Ticket};
use crate::write::stall::StallCause;
use crate::write::value_logs::Logged;

/// Why a write could not be numbered just now; what it waits for is off the lock.
enum Retry {
    /// A memtable that room was reserved in is no longer mutable.
    MemtableSwitched,
    Full(Full),
    /// There are range latches of which the write is not known to be clear.
    Latched,
}

impl Core {
    /// Applies a batch: atomically, and visibly to every read that starts after the return. Returns the last number it
    /// took.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`: nothing was written. `Busy`: it would have had to wait. `ReadOnly`: the database does
    /// not take writes. `Io`, `NoSpace`: the write failed; whether it is there after a reopen is not known if it had
    /// reached the log.
    pub(crate) fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        self.check_takes_writes()?;
        if options.sync && options.disable_wal {
            return Err(Error::invalid_argument(
                "a write cannot be synced (sync) and not logged (disable_wal) at once",
            ));
        }
        batch.check_size()?;
        let set = self.families.load();
        if batch.is_empty() {
            return self.write_nothing(&set, options);
        }
        self.wait_for_debt(batch.len(), options)?;
        if batch.len() as u64 > self.context.options.large_batch_bytes {
            return self.write_large(batch, &set, options);
        }
        let mut parts = admission::summarise(batch, &set, options)?;
        let mut unfinished = Unfinished::new(self);
        let taken = self.number(batch, &mut parts, options)?;
        unfinished.hold(taken.ticket);
        let (first, last) = (taken.first(), taken.given.last);
        let Taken { given, space, .. } = &taken;
        if let Some((log, reservation)) = space {
            let header = batch::header(first, batch.count());
            log.note_published(self.pipeline.published_log());
            let logged = self.logs.append(log, reservation, RecordKind::Batch, &[&header, batch.body()]);
            logged.inspect_err(|e| self.fail(e))?;
        }
        if options.disable_wal {
            parts.iter().for_each(|part| part.family.note_unlogged());
        }
        let logged = space.as_ref().map(|(log, at)| Logged {
            log,
            offset: at.payload_offset() + batch::HEADER_BYTES as u64,
            body: batch.body(),
        });
        insert(batch, &parts, first, logged);
        unfinished.finish();
        self.pipeline.wait_visible(last)?;
        if let Some((log, at)) = space {
            self.mark_if_due(last, given.log_end, || log.position_behind(at));
        }
        self.flush_written(&parts, last, options)?;
        if options.sync {
            self.sync_write(given.log_end)?;
        }
        self.drive_if_inline();
        Ok(last)
    }

    /// What a batch without changes does: with `sync` all that was written before it survives power loss from then on, as
    /// after [`sync_log`](crate::Db::sync_log); with `flush_after` it is in tables, whatever family it went to.
    #[cold]
    fn write_nothing(&self, set: &FamilySet, options: &WriteOptions) -> Result<SeqNo> {
        let last = self.pipeline.visible();
        if options.flush_after {
            let families: Vec<&Arc<Family>> = set.iter().filter(|family| !family.is_dropped()).collect();
            self.flush_families(&families)?;
        }
        if options.sync {
            self.sync_write(self.pipeline.published_log())?;
        }
        self.drive_if_inline();
        Ok(last)
    }

    /// Reserves memtable room and takes numbers, going back to admission as long as something is missing.
    fn number(&self, batch: &WriteBatch, parts: &mut Parts<'_>, options: &WriteOptions) -> Result<Taken> {
        let backoff = Backoff::new();
        let mut clearance = Clearance::default();
        loop {
            self.reserve_memtables(parts, &mut clearance, options)?;
            match self.try_number((batch, options), parts, &clearance)? {
                Ok(taken) => return Ok(taken),
                Err(Retry::MemtableSwitched) => {}
                Err(Retry::Latched) => {
                    admission::release_views(parts);
                    let keys: SmallVec<[KeyRange<'_>; 2]> = parts.iter().map(Part::keys).collect();
                    clearance = self.clear_of_latches(&keys, Waiter::of_write(options))?;
                }
                Err(Retry::Full(Full::Log(log))) => {
                    clearance.give_back_pass();
                    self.roll_log(&log, batch.len() as u64)?;
                }
                Err(Retry::Full(Full::Pipeline)) => {
                    clearance.give_back_pass();
                    let start = self.context.vfs.now();
                    backoff.snooze();
                    self.stall.count_since(StallCause::Pipeline, start);
                    self.check_writable()?;
                }
            }
        }
    }

    /// The whole of the commit lock: O(1) in everything but the number of families in the batch (C3).
    fn try_number(
        &self,
        (batch, options): (&WriteBatch, &WriteOptions),
        parts: &Parts<'_>,
        clearance: &Clearance<'_>,
    ) -> Result<Result<Taken, Retry>> {
        // Made before the lock is taken: under it they are only stored.
        let bounds: SmallVec<[KeyBounds; 2]> = parts.iter().map(Part::bounds).collect();
        let mut commit = self.lock_commit();
        if !self.latches.lets_pass(clearance) {
            return Ok(Err(Retry::Latched));
        }
        if !parts.iter().all(Part::is_current) {
            return Ok(Err(Retry::MemtableSwitched));
        }
        let record_bytes = (!options.disable_wal).then(|| batch.len());
        let taken = self.take_numbers(&mut commit, u64::from(batch.count()), record_bytes, &bounds)?;
        Ok(taken.map_err(Retry::Full))
    }
}

/// A place in the pipeline from when it is given out. Left unfinished, by an error or a panic, it ends the database's ability
/// to write and wakes everyone who waits for it (C4). Made before any lock: failing takes the state lock.
pub(crate) struct Unfinished<'a> {
    core: &'a Core,
    ticket: Option<Ticket>,
}

impl<'a> Unfinished<'a> {
    pub fn new(core: &'a Core) -> Self {
        Unfinished { core, ticket: None }
    }

    pub fn hold(&mut self, ticket: Ticket) {
        self.ticket = Some(ticket);
    }

    /// What has the number is in the log, and in the memtables or the queues.
    pub fn finish(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.core.pipeline.finish(ticket);
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.core.fail_numbered(&Error::read_only("a write failed after it was numbered"));
        }
    }
}

/// Inserts the batch's entries into the memtables that were reserved for them. Cannot fail (C4).
fn insert(batch: &WriteBatch, parts: &Parts<'_>, first: SeqNo, logged: Option<Logged<'_>>) {
    for part in parts {
        let mut entries =
            entries_of(batch.iter(), first).filter(|(family, _)| *family == part.family.id()).map(|e| e.1);
        part.memtable().insert_all(&mut entries, logged);
    }
}

/// The entries of a batch that was checked, with their numbers and families.
pub(crate) fn entries_of(records: BatchReader<'_>, first: SeqNo) -> impl Iterator<Item = (base::FamilyId, Entry<'_>)> {
    records.map_while(Result::ok).enumerate().map(move |(i, record)| {
        let seq = SeqNo(first.0 + i as u64);
        (record.family, Entry { user_key: record.key, seq, kind: record.kind, value: record.value })
    })
}
