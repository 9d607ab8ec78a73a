//! What a write does before it takes a number: everything that can fail or wait (C4).

use std::sync::Arc;

use arc_swap::Guard;
use base::limits;
use base::{Error, ErrorKind, FamilyId, Result};
use smallvec::SmallVec;

use crate::commit::batch::{BatchRecord, WriteBatch};
use crate::commit::committer::Committer;
use crate::commit::latch::{Clearance, KeyRange, LatchGuard, LatchSpan};
use crate::commit::options::WriteOptions;
use crate::commit::pipeline::KeyBounds;
use crate::commit::stall::StallCause;
use crate::core::FamilySet;
use crate::core::family::Family;
use crate::queue::flushable::QueuedMemtable;
use crate::queue::room::MemoryWanted;
use crate::queue::view::ReadView;
use crate::wal::value_logs::stored_value_bytes_max;

/// A batch's share in one family.
pub(crate) struct Part<'a> {
    pub family: &'a Arc<Family>,
    /// Holds the memtable that the entries are reserved in. `None` while the writer waits: the memtables that a view holds
    /// would not be freed, and that may be what it waits for.
    view: Option<Guard<Arc<ReadView>>>,
    /// The id of the memtable that room was reserved in; 0 for none yet.
    reserved_in: u64,
    /// The id of the memtable that was charged for that; 0 for none yet.
    charged_in: u64,
    entries: usize,
    payload_bytes: usize,
    /// What of that a memtable takes which leaves values in the log.
    referring_bytes: usize,
    smallest: &'a [u8],
    largest: &'a [u8],
}

impl<'a> Part<'a> {
    /// The memtable to insert into, once room was reserved.
    pub fn memtable(&self) -> &QueuedMemtable {
        let view = self.view.as_ref().expect("a part that was reserved has a view");
        &view.mutable
    }

    /// Takes a view whose memtable is the mutable one, as far as is known.
    fn refresh_view(&mut self) {
        let is_mutable = |view: &Guard<Arc<ReadView>>| view.mutable.id() == self.family.mutable_id();
        if !self.view.as_ref().is_some_and(is_mutable) {
            self.view = Some(self.family.view());
        }
    }

    /// The bounds of the keys touched, for the range latches.
    pub fn keys(&self) -> KeyRange<'a> {
        let (family, order) = (self.family.id(), &self.family.order().user);
        KeyRange { family, order, start: self.smallest, end: self.largest, end_is_exclusive: false }
    }

    /// True while the reserved memtable is the one that writes go to. Asked under the commit lock.
    pub fn is_current(&self) -> bool {
        self.family.mutable_id() == self.reserved_in
    }
}

/// Who waits for an ingest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub no_slowdown: bool,
    /// Not another ingest: the wait is counted.
    pub is_writer: bool,
}

impl Waiter {
    pub fn of_write(options: &WriteOptions) -> Self {
        Waiter { no_slowdown: options.no_slowdown, is_writer: true }
    }
}

/// Memtables that a write switches before it gives up: the first may have been filled by others meanwhile, but not this
/// many.
const SWITCHES_MAX: usize = 100;

pub(crate) type Parts<'a> = SmallVec<[Part<'a>; 2]>;

/// What a part still needs before the batch can take numbers.
enum Lacking {
    /// A memtable other than this one, which has no room for so many bytes.
    Memtable {
        full: u64,
        need_bytes: usize,
    },
    Memory(MemoryWanted),
}

/// Lets go of what the parts hold, before a wait.
pub(crate) fn release_views(parts: &mut Parts<'_>) {
    parts.iter_mut().for_each(|part| part.view = None);
}

/// Takes a batch apart by family into `parts`, and checks it.
///
/// # Errors
/// `InvalidArgument`: a range that ends before it starts, an operand for a family without a merge operator, an unknown family.
/// `Closed`: a dropped one.
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
    let missing = || Error::invalid_argument(format!("the batch writes to column family {}, which is not open", id.0));
    let family = set.get(id).ok_or_else(missing)?;
    family.check_live()?;
    Ok(family)
}

#[cold]
fn inverted_range(family: &Family, start: &[u8], end: &[u8]) -> Error {
    let (name, start, end) = (family.name(), limits::shown(start), limits::shown(end));
    Error::invalid_argument(format!(
        "delete_range in column family \"{name}\": the start {start} comes after the end {end}"
    ))
}

/// An operand that no read could apply.
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
        // A part's first key is its bounds already: a comparator that is a function of C is not asked for nothing.
        if !std::ptr::eq(record.key, self.smallest) && order.compare(record.key, self.smallest).is_lt() {
            self.smallest = record.key;
        }
        if !std::ptr::eq(end, self.largest) && order.compare(end, self.largest).is_gt() {
            self.largest = end;
        }
        Ok(())
    }

    /// What the part takes in a memtable of its own, at the worst.
    pub fn room_alone(&self, memtable: &dyn memtable::Memtable) -> usize {
        memtable.worst_case_bytes(self.entries, self.payload_bytes)
    }

    /// What the part takes in a family's memtable, at the worst.
    fn room_in(&self, queued: &QueuedMemtable, is_logged: bool) -> usize {
        if is_logged && queued.leaves_values() {
            return queued.memtable().worst_case_bytes(self.entries, self.referring_bytes);
        }
        queued.room_for(self.entries, self.payload_bytes)
    }

    /// The family and the bounds of the keys touched in it, as the pipeline keeps them.
    pub fn bounds(&self) -> KeyBounds {
        KeyBounds::new(self.family.id(), &self.family.order().user, self.smallest, self.largest)
    }
}

impl Committer {
    /// Holds the write up as long as compactions are behind.
    pub(crate) fn wait_for_debt(&self, bytes: usize, options: &WriteOptions) -> Result<()> {
        if self.core.stall.is_free() {
            return Ok(());
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

    /// Latches keys for a commit, waiting for others' latches. Writes that come to the keys wait for this one.
    ///
    /// # Errors
    /// `Busy`: it would have to wait, and may not. `Closed`, `ReadOnly`.
    pub(crate) fn latch_keys<'k>(
        &self,
        keys: impl Iterator<Item = KeyRange<'k>>,
        waiter: Waiter,
    ) -> Result<LatchGuard<'_>> {
        let spans = keys.map(|keys| LatchSpan::of(&keys)).collect();
        let barrier = || drop(self.core.commit.lock());
        if waiter.no_slowdown {
            let busy =
                || Error::new(ErrorKind::Busy, "it would have to wait for an ingest (no_slowdown was asked for)");
            return self.core.latches.try_acquire(spans, barrier).ok_or_else(busy);
        }
        self.core.latches.acquire(spans, &|| self.core.check_writable(), barrier)
    }

    /// Finds out that no range latch is on any of the keys, waiting where one is.
    #[cold]
    pub(crate) fn clear_of_latches(&self, keys: &[KeyRange<'_>], waiter: Waiter) -> Result<Clearance<'_>> {
        if let Some(clearance) = self.core.latches.look(keys) {
            return Ok(clearance);
        }
        if waiter.no_slowdown {
            return Err(latched());
        }
        let start = self.core.context.vfs.now();
        let clearance = self.core.latches.wait(keys, &|| self.core.check_writable());
        if waiter.is_writer {
            self.core.stall.count_since(StallCause::Ingest, start);
            self.ingest_waits.count_stop(self.core.context.vfs.now().saturating_sub(start));
        }
        clearance
    }

    /// Reserves room for every part in its family's mutable memtable, and memory for that, switching memtables that have
    /// none. Before it waits for anybody it gives back the pass.
    pub(crate) fn reserve_memtables(
        &self,
        parts: &mut Parts<'_>,
        clearance: &mut Clearance<'_>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (mut turn, mut switches) = (None, 0);
        loop {
            let Some((family, lacking)) = self.reserve_all(parts, (turn.is_some(), !options.disable_wal))? else {
                return Ok(());
            };
            release_views(parts);
            clearance.give_back_pass();
            match lacking {
                Lacking::Memtable { full, need_bytes } if switches < SWITCHES_MAX => {
                    switches += 1;
                    self.wal.roll_with_memtable()?;
                    self.memtables.switch_full_memtable(family, full, need_bytes, options)?;
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

    /// Reserves what it can; tells of the first part that lacks something.
    fn reserve_all<'b>(&self, parts: &mut Parts<'b>, how: (bool, bool)) -> Result<Option<(&'b Arc<Family>, Lacking)>> {
        for part in parts {
            if let Some(lacking) = self.reserve(part, how)? {
                return Ok(Some((part.family, lacking)));
            }
        }
        Ok(None)
    }

    /// Reserves room for a part and memory for that, without waiting; tells what is lacking.
    fn reserve(&self, part: &mut Part<'_>, (has_turn, is_logged): (bool, bool)) -> Result<Option<Lacking>> {
        part.family.check_live()?;
        part.refresh_view();
        let queued = part.memtable();
        let id = queued.id();
        if part.charged_in == id {
            return Ok(None);
        }
        if part.reserved_in != id {
            let need_bytes = part.room_in(queued, is_logged);
            // Memory first: what is reserved and cannot be paid for would stand in the way of those who wait before.
            if !self.memtables.charge(queued, need_bytes, has_turn) {
                return Ok(Some(Lacking::Memory(MemoryWanted::of(queued, need_bytes))));
            }
            let Some(is_look_due) = queued.try_reserve(need_bytes) else {
                return Ok(Some(Lacking::Memtable { full: id, need_bytes }));
            };
            if is_look_due {
                self.core.upkeep.raise_soon(); // which sees to the spare, and to what is written next
            }
        }
        // Others may have reserved on the same charge meanwhile.
        let charged = self.memtables.charge(queued, 0, has_turn);
        let lacking = (!charged).then(|| Lacking::Memory(MemoryWanted::of(queued, 0)));
        part.reserved_in = id;
        if charged {
            part.charged_in = id;
        }
        Ok(lacking)
    }
}

/// The error of a commit that asked not to wait, where keys that it touches are latched.
fn latched() -> Error {
    Error::new(ErrorKind::Busy, "it would have to wait for an ingest or a transaction (no_slowdown was asked for)")
}

/// The error of a write that asked not to wait.
pub(crate) fn stalled() -> Error {
    Error::new(ErrorKind::Busy, "the write would have to wait for flushes or compactions (no_slowdown was asked for)")
}
