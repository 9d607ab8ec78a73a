//! What a write does before it takes a number: everything that can fail or wait (C4).

use std::sync::Arc;

use arc_swap::Guard;
use base::{Error, ErrorKind, FamilyId, Result};
use smallvec::SmallVec;

use crate::core::{Core, FamilySet};
use crate::family::Family;
use crate::flush::flushable::QueuedMemtable;
use crate::read::view::ReadView;
use crate::write::batch::{BatchRecord, WriteBatch};
use crate::write::options::WriteOptions;

/// A batch's share in one family.
pub(crate) struct Part<'a> {
    pub family: &'a Arc<Family>,
    /// Holds the memtable that the entries are reserved in.
    view: Guard<Arc<ReadView>>,
    /// The id of the memtable that room was reserved in; 0 for none yet.
    reserved_in: u64,
    entries: usize,
    payload_bytes: usize,
    smallest: &'a [u8],
    largest: &'a [u8],
}

impl Part<'_> {
    pub fn memtable(&self) -> &Arc<QueuedMemtable> {
        &self.view.mutable
    }

    /// True while the reserved memtable is the one that writes go to. Asked under the commit lock.
    pub fn is_current(&self) -> bool {
        self.family.mutable_id() == self.reserved_in
    }
}

/// Memtables that a write switches before it gives up: the first may have been filled by others meanwhile, but not this
/// many.
const SWITCHES_MAX: usize = 100;

pub(crate) type Parts<'a> = SmallVec<[Part<'a>; 2]>;

/// Takes a batch apart by family and checks it.
///
/// # Errors
/// `InvalidArgument`: a field too long, an unknown family. `Closed`: a dropped one.
pub(crate) fn summarise<'a>(batch: &'a WriteBatch, set: &'a FamilySet, options: &WriteOptions) -> Result<Parts<'a>> {
    if batch.is_oversized() {
        return Err(Error::invalid_argument("a key or a value of the batch is longer than 4 GiB less nine bytes"));
    }
    let mut parts: Parts<'a> = SmallVec::new();
    for record in batch.iter() {
        let record = record?;
        match parts.iter_mut().find(|part| part.family.id() == record.family) {
            Some(part) => part.add(&record),
            None => match live_family(set, record.family) {
                Ok(family) => parts.push(Part::of(family, &record)),
                Err(_) if options.ignore_missing_column_families => {}
                Err(e) => return Err(e),
            },
        }
    }
    Ok(parts)
}

fn live_family(set: &FamilySet, id: FamilyId) -> Result<&Arc<Family>> {
    let missing = || Error::invalid_argument(format!("the batch writes to column family {}, which is not open", id.0));
    let family = set.get(id).ok_or_else(missing)?;
    family.check_live()?;
    Ok(family)
}

impl<'a> Part<'a> {
    fn of(family: &'a Arc<Family>, record: &BatchRecord<'a>) -> Self {
        let mut part = Part {
            family,
            view: family.view(),
            reserved_in: 0,
            entries: 0,
            payload_bytes: 0,
            smallest: record.key,
            largest: record.key,
        };
        part.add(record);
        part
    }

    fn add(&mut self, record: &BatchRecord<'a>) {
        self.entries += 1;
        self.payload_bytes += record.key.len() + record.value.len();
        let order = &self.family.order().user;
        let end = if record.kind == base::ValueKind::RangeDeletion { record.value } else { record.key };
        if order.compare(record.key, self.smallest).is_lt() {
            self.smallest = record.key;
        }
        if order.compare(end, self.largest).is_gt() {
            self.largest = end;
        }
    }

    /// What the part takes in a memtable, at the worst.
    pub fn room_in(&self, memtable: &dyn memtable::Memtable) -> usize {
        memtable.worst_case_bytes(self.entries, self.payload_bytes)
    }

    /// The family and the bounds of the keys touched in it, as the pipeline keeps them.
    pub fn bounds(&self) -> (FamilyId, &[u8], &[u8]) {
        (self.family.id(), self.smallest, self.largest)
    }
}

impl Core {
    /// Holds the write up as long as compactions are behind.
    pub(crate) fn wait_for_debt(&self, bytes: usize, options: &WriteOptions) -> Result<()> {
        if self.stall.is_free() {
            return Ok(());
        }
        if options.no_slowdown {
            return Err(stalled());
        }
        if self.context.vfs.runs_inline() {
            self.drive();
        } else {
            self.stall.wait_while_stopped();
            self.stall.delay(bytes);
        }
        self.check_writable()
    }

    /// Reserves room for every part in its family's mutable memtable, switching those that have none.
    pub(crate) fn reserve_memtables(&self, parts: &mut Parts<'_>, options: &WriteOptions) -> Result<()> {
        for part in parts.iter_mut() {
            for attempt in 0.. {
                part.family.check_live()?;
                part.view = part.family.view();
                let queued = &part.view.mutable;
                if part.reserved_in == queued.id() {
                    break;
                }
                let memtable = queued.memtable();
                let need = part.room_in(&**memtable);
                if memtable.try_reserve(need) {
                    part.reserved_in = queued.id();
                    self.note_memtable_bytes(need);
                    break;
                }
                if attempt == SWITCHES_MAX {
                    let what = format!("the batch needs a memtable of {need} bytes, and none that is made has them");
                    return Err(Error::invalid_argument(what));
                }
                self.switch_full_memtable(part.family, queued.id(), need, options)?;
            }
        }
        Ok(())
    }
}

/// The error of a write that asked not to wait.
pub(crate) fn stalled() -> Error {
    Error::new(ErrorKind::Busy, "the write would have to wait for flushes or compactions (no_slowdown was asked for)")
}
