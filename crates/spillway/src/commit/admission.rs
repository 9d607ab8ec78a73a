//! Admission: the fallible and blocking steps of a write before its sequence numbers (C4).

use std::sync::Arc;

use arc_swap::Guard;
use base::limits;
use base::{Error, ErrorKind, FamilyId, Result};
use smallvec::SmallVec;
use table::values::stored_value_bytes_max;

use crate::batch::options::WriteOptions;
use crate::batch::{BatchRecord, WriteBatch};
use crate::commit::committer::Committer;
use crate::core::family::{Family, FamilySet};
use crate::memtables::room::MemoryWanted;
use crate::order::latch::{KeyRange, LatchGuard, LatchPermit, LatchSpan, Reach};
use crate::order::pipeline::KeyBounds;
use crate::order::stall::{StallCause, stalled};
use crate::queue::flushable::QueuedMemtable;
use crate::queue::view::ReadView;

/// The part of a batch for one family.
pub(crate) struct Part<'a> {
    pub family: &'a Arc<Family>,
    /// Pins the memtable with the reserved room. `None` while the writer waits: the wait may be for memory of pinned
    /// memtables.
    view: Option<Guard<Arc<ReadView>>>,
    /// Id of the memtable with the reserved room; 0 if none yet.
    reserved_in: u64,
    /// Id of the memtable charged for the room; 0 if none yet.
    charged_in: u64,
    entries: usize,
    payload_bytes: usize,
    /// As `payload_bytes`, for a memtable with values left in the WAL.
    referring_bytes: usize,
    smallest: &'a [u8],
    largest: &'a [u8],
}

impl<'a> Part<'a> {
    /// The memtable to insert into. Room must be reserved.
    pub fn memtable(&self) -> &QueuedMemtable {
        let view = self.view.as_ref().expect("a part that was reserved has a view");
        &view.mutable
    }

    /// Asks for the memory that the insert of the smallest key reads first. It arrives while the record is appended.
    #[inline]
    pub fn prefetch(&self) {
        self.memtable().memtable().prefetch(self.smallest);
    }

    /// Takes a new view unless the held one has the mutable memtable.
    #[inline]
    fn refresh_view(&mut self) {
        let is_mutable = |view: &Guard<Arc<ReadView>>| view.mutable.id() == self.family.mutable_id();
        if !self.view.as_ref().is_some_and(is_mutable) {
            self.view = Some(self.family.view());
        }
    }

    /// Bounds of the touched keys, for the range latches.
    pub fn keys(&self) -> KeyRange<'a> {
        let (family, order) = (self.family.id(), &self.family.order().user);
        KeyRange { family, order, start: self.smallest, end: self.largest, end_is_exclusive: false }
    }

    /// The keys touched by one of the part's changes.
    pub fn keys_of<'k>(&'k self, record: &BatchRecord<'k>) -> KeyRange<'k> {
        let is_range = record.kind == base::ValueKind::RangeDeletion;
        let (start, end) = (record.key, if is_range { record.value } else { record.key });
        let (family, order) = (self.family.id(), &self.family.order().user);
        KeyRange { family, order, start, end, end_is_exclusive: is_range }
    }

    /// True while the reserved memtable is the mutable one. Called under the commit lock.
    pub fn is_current(&self) -> bool {
        self.family.mutable_id() == self.reserved_in
    }
}

/// How a commit waits for latches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub no_slowdown: bool,
    /// A write, not an ingest: its waits are counted.
    pub is_writer: bool,
}

impl Waiter {
    pub fn of_write(options: &WriteOptions) -> Self {
        Waiter { no_slowdown: options.no_slowdown, is_writer: true }
    }
}

/// Memtable switches before a write fails. Concurrent writers may fill a fresh memtable, but not this many in a row.
const SWITCHES_MAX: usize = 100;

pub(crate) type Parts<'a> = SmallVec<[Part<'a>; 2]>;

/// Missing resource of a part.
enum Lacking {
    /// A memtable with `need_bytes` of room; the memtable with id `full` lacks it.
    Memtable {
        full: u64,
        need_bytes: usize,
    },
    Memory(MemoryWanted),
}

/// Releases the views of the parts before a wait.
pub(crate) fn release_views(parts: &mut Parts<'_>) {
    parts.iter_mut().for_each(|part| part.view = None);
}

/// Splits a batch by family into `parts` and checks it.
///
/// # Errors
/// `InvalidArgument`: a range with its end before its start, a merge operand without a merge operator, an unknown
/// family. `Closed`: a dropped family.
pub(crate) fn summarise<'a>(
    batch: &'a WriteBatch,
    set: &'a FamilySet,
    options: &WriteOptions,
    parts: &mut Parts<'a>,
) -> Result<()> {
    for record in batch.iter() {
        let record = record?;
        match parts.iter_mut().find(|part| part.family.id() == record.family) {
            Some(part) => part.add(&record)?,
            None => match live_family(set, record.family) {
                Ok(family) => parts.push(Part::of(family, &record)?),
                Err(_) if options.ignore_missing_column_families => {}
                Err(e) => return Err(e),
            },
        }
    }
    Ok(())
}

fn live_family(set: &FamilySet, id: FamilyId) -> Result<&Arc<Family>> {
    let what = "Invalid column family specified in write batch";
    let missing = || Error::invalid_argument(format!("{what}: {} is not open", id.0));
    let family = set.get(id).ok_or_else(missing)?;
    family.check_live()?;
    Ok(family)
}

#[cold]
fn inverted_range(family: &Family, start: &[u8], end: &[u8]) -> Error {
    let (name, start, end) = (family.name(), limits::shown(start), limits::shown(end));
    Error::invalid_argument(format!(
        "end key comes before start key: column family \"{name}\": the start {start} comes after the end {end}"
    ))
}

/// Refused at the write: no read could apply the operand.
#[cold]
fn no_operator(family: &Family) -> Error {
    Error::invalid_argument(format!("column family \"{}\" has no merge operator", family.name()))
}

impl<'a> Part<'a> {
    fn of(family: &'a Arc<Family>, record: &BatchRecord<'a>) -> Result<Self> {
        let mut part = Part {
            family,
            view: Some(family.view()),
            reserved_in: 0,
            charged_in: 0,
            entries: 0,
            payload_bytes: 0,
            referring_bytes: 0,
            smallest: record.key,
            largest: record.key,
        };
        part.add(record)?;
        Ok(part)
    }

    fn add(&mut self, record: &BatchRecord<'a>) -> Result<()> {
        self.entries += 1;
        self.payload_bytes += record.key.len() + record.value.len();
        self.referring_bytes += record.key.len() + stored_value_bytes_max(record.kind, record.value.len());
        let order = &self.family.order().user;
        let mut end = record.key;
        if record.kind == base::ValueKind::RangeDeletion {
            end = record.value;
            if order.compare(record.key, end).is_gt() {
                return Err(inverted_range(self.family, record.key, end));
            }
        }
        if record.kind == base::ValueKind::Merge && self.family.read_context().merge_operator.is_none() {
            return Err(no_operator(self.family));
        }
        // The first key of a part is its own bound. Skip the compare: it may call a C function.
        if !std::ptr::eq(record.key, self.smallest) && order.compare(record.key, self.smallest).is_lt() {
            self.smallest = record.key;
        }
        if !std::ptr::eq(end, self.largest) && order.compare(end, self.largest).is_gt() {
            self.largest = end;
        }
        Ok(())
    }

    /// Worst-case bytes of the part in a memtable of its own.
    pub fn room_alone(&self, memtable: &dyn memtable::Memtable) -> usize {
        memtable.worst_case_bytes(self.entries, self.payload_bytes)
    }

    /// Worst-case bytes of the part in the family's memtable.
    fn room_in(&self, queued: &QueuedMemtable, is_in_record: bool) -> usize {
        if is_in_record && queued.leaves_values() {
            return queued.memtable().worst_case_bytes(self.entries, self.referring_bytes);
        }
        queued.room_for(self.entries, self.payload_bytes)
    }

    /// The part's family and key bounds, in the pipeline's form.
    pub fn bounds(&self) -> KeyBounds {
        KeyBounds::new(self.family.id(), &self.family.order().user, self.smallest, self.largest)
    }
}

impl Committer {
    /// Delays the write while compactions are behind. On a full disk, refuses all writes but those that free space.
    pub(crate) fn wait_for_debt(
        &self,
        bytes: usize,
        options: &WriteOptions,
        frees_space: impl Fn() -> bool,
    ) -> Result<()> {
        if self.core.stall.is_free() {
            return Ok(());
        }
        if self.core.reserve.is_spent() {
            if frees_space() {
                return Ok(()); // compactions may wait for the space
            }
            self.core.check_room()?;
        }
        if options.no_slowdown {
            return Err(stalled());
        }
        if self.core.context.vfs.runs_inline() {
            self.core.drive();
        } else {
            self.core.stall.wait_while_stopped();
            self.core.stall.delay(bytes);
        }
        self.core.check_writable()
    }

    /// Latches keys for a commit; waits for overlapping latches and passes. Later overlapping writes wait for this
    /// latch.
    ///
    /// # Errors
    /// `Busy`: the latch is not free and `no_slowdown` is set. `Closed`, `ReadOnly`.
    pub(crate) fn latch_keys<'k>(
        &self,
        keys: impl Iterator<Item = KeyRange<'k>>,
        waiter: Waiter,
    ) -> Result<LatchGuard<'_>> {
        let reach = Reach::of(keys.map(|keys| LatchSpan::of(&keys)).collect());
        self.latch(reach, waiter.no_slowdown, "it would have to wait for an ingest")
    }

    /// As [`latch_keys`](Self::latch_keys). `busy` is the error without its reason.
    pub(crate) fn latch(&self, reach: Reach, no_slowdown: bool, busy: &str) -> Result<LatchGuard<'_>> {
        let barrier = || drop(self.core.commit.lock());
        if no_slowdown {
            let busy = || Error::new(ErrorKind::Busy, format!("{busy} (no_slowdown was asked for)"));
            return self.core.latches.try_acquire(reach, barrier).ok_or_else(busy);
        }
        self.core.latches.acquire(reach, &|| self.core.check_writable(), barrier)
    }

    /// Returns a permit for `keys`; waits while an overlapping latch is granted.
    #[cold]
    pub(crate) fn clear_of_latches(&self, keys: &[KeyRange<'_>], waiter: Waiter) -> Result<LatchPermit<'_>> {
        if let Some(permit) = self.core.latches.look(keys) {
            return Ok(permit);
        }
        if waiter.no_slowdown {
            return Err(latched());
        }
        let wait = waiter.is_writer.then(|| self.core.stall.wait(StallCause::Ingest));
        let permit = self.core.latches.wait(keys, &|| self.core.check_writable());
        if let Some(wait) = wait {
            self.ingest_waits.count_stop(wait.age());
        }
        permit
    }

    /// Reserves memtable room and memory for every part. Switches full memtables. Gives the pass back before any
    /// wait. `is_in_record`: values may be left in the commit's record.
    pub(crate) fn reserve_memtables(
        &self,
        parts: &mut Parts<'_>,
        permit: &mut LatchPermit<'_>,
        options: &WriteOptions,
        is_in_record: bool,
    ) -> Result<()> {
        let (mut turn, mut switches) = (None, 0);
        loop {
            let Some((family, lacking)) = self.reserve_all(parts, turn.is_some(), is_in_record)? else {
                return Ok(());
            };
            release_views(parts);
            permit.give_back();
            match lacking {
                Lacking::Memtable { full, need_bytes } if switches < SWITCHES_MAX => {
                    switches += 1;
                    self.wal.roll_with_memtable()?;
                    if self.memtables.has_full_queue(family) {
                        turn = None; // writers of other databases do not wait for this one's flushes
                    }
                    self.memtables.wait_for_queue_room(family, Some(full), options)?;
                    self.memtables.replace_memtable(family, full, need_bytes)?;
                }
                Lacking::Memtable { need_bytes, .. } => {
                    let what =
                        format!("the batch needs a memtable of {need_bytes} bytes, and none that is made has them");
                    return Err(Error::invalid_argument(what));
                }
                Lacking::Memory(wanted) => {
                    let memtable = wanted.memtable();
                    if self.memtables.wait_for_memory(family, wanted, options, &mut turn)?
                        && let Some(part) = parts.iter_mut().find(|part| part.reserved_in == memtable)
                    {
                        part.charged_in = memtable;
                    }
                }
            }
        }
    }

    /// Reserves for each part in order. Returns the first part with a missing resource; `None` if all are reserved.
    fn reserve_all<'b>(
        &self,
        parts: &mut Parts<'b>,
        has_turn: bool,
        is_in_record: bool,
    ) -> Result<Option<(&'b Arc<Family>, Lacking)>> {
        for part in parts {
            if let Some(lacking) = self.reserve(part, has_turn, is_in_record)? {
                return Ok(Some((part.family, lacking)));
            }
        }
        Ok(None)
    }

    /// Reserves room and memory for a part without waiting. Returns the missing resource.
    fn reserve(&self, part: &mut Part<'_>, has_turn: bool, is_in_record: bool) -> Result<Option<Lacking>> {
        part.family.check_live()?;
        part.refresh_view();
        let queued = part.memtable();
        let id = queued.id();
        if part.charged_in == id {
            return Ok(None);
        }
        if part.reserved_in != id {
            let need_bytes = part.room_in(queued, is_in_record);
            // Charge before reserving: an unpaid reservation would block earlier waiters for memory.
            let is_charged =
                queued.is_charged_for(need_bytes) || self.memtables.raise_charge(queued, need_bytes, has_turn);
            if !is_charged {
                return Ok(Some(Lacking::Memory(MemoryWanted::of(queued, need_bytes))));
            }
            let Some(is_look_due) = queued.try_reserve(need_bytes) else {
                return Ok(Some(Lacking::Memtable { full: id, need_bytes }));
            };
            if is_look_due {
                self.memtables.look_at([part.family.id()]);
                self.core.upkeep.raise_soon(); // to make the spare and prefault memory
            }
        }
        // Concurrent writers may have reserved on the same charge meanwhile.
        let charged = queued.is_charged_for(0) || self.memtables.raise_charge(queued, 0, has_turn);
        let lacking = (!charged).then(|| Lacking::Memory(MemoryWanted::of(queued, 0)));
        part.reserved_in = id;
        if charged {
            part.charged_in = id;
        }
        Ok(lacking)
    }
}

/// Families to flush at the end of a write: all with `flush_after`, else only families with eager flush.
#[inline]
pub(super) fn flushed_eagerly(parts: &[Part<'_>], options: &WriteOptions) -> Vec<Arc<Family>> {
    let is_asked_for = |part: &&Part<'_>| options.flush_after || part.family.flushes_eagerly();
    parts.iter().filter(is_asked_for).map(|part| part.family.clone()).collect()
}

/// Error of a `no_slowdown` commit with latched keys.
fn latched() -> Error {
    Error::new(ErrorKind::Busy, "it would have to wait for an ingest or a transaction (no_slowdown was asked for)")
}
