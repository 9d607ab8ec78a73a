//! Everything that can be flushed is one kind of thing: it stands in its family's queue, is read there, and leaves it
//! at the old end (Q1, Q2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, Result, SeqNo};
use memtable::{Conversion, Entry, Memtable};
use parking_lot::Mutex;
use table::{TableReadOptions, TableValue, Visit};

use crate::flush::held::HeldMemtable;
use crate::ingest::queued::QueuedIngest;
use crate::write::memory::Charge;
use crate::write::pipeline::LogPosition;

/// An entry of a family's queue. Reads see it exactly as they see a table.
pub trait Flushable: Send + Sync {
    /// Shows the point entries of the lookup's user key at or below its sequence number, newest first.
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()>;

    /// A cursor over point entries; it keeps the entry alive.
    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Result<Box<dyn Cursor>>;

    fn tombstones(&self) -> Result<Option<Arc<FragmentedTombstones>>>;

    /// No write at or below this number is in here.
    fn created_at(&self) -> SeqNo;

    /// No write above this number is in here. Final once the entry is sealed; `None` while it is mutable.
    fn largest_seq(&self) -> Option<SeqNo>;

    /// Every write in here is in the logs before this position, if it is in a log of this process at all. Set when the
    /// entry is sealed.
    fn logged_through(&self) -> LogPosition;

    fn memory_bytes(&self) -> usize;

    /// What the entry is charged; `None` where it is not in memory.
    fn charge(&self) -> Option<&Arc<Charge>>;

    /// The memtable, where this is one.
    fn as_memtable(&self) -> Option<&Arc<dyn Memtable>>;

    /// How the memtable is to become a table; `None` where its entries are to be written into one.
    fn conversion(&self) -> Option<Conversion> {
        None
    }

    /// The ingest, where this is one: its flush gives its tables levels, and writes nothing.
    fn as_ingest(&self) -> Option<&QueuedIngest> {
        None
    }
}

/// A memtable in the queue: the mutable one, or one that is sealed.
pub struct QueuedMemtable {
    id: u64,
    held: HeldMemtable,
    /// Arena bytes that an empty memtable of this kind has reserved.
    empty_bytes: usize,
    /// Reserved bytes at which the memtable counts as half full.
    half_bytes: usize,
    created_at: AtomicU64,
    /// The largest number given to a write before the switch, or `MUTABLE`.
    largest_seq: AtomicU64,
    logged_through: AtomicU64,
    /// Held while inserting, where the representation takes one writer at a time.
    inserting: Option<Mutex<()>>,
}

const MUTABLE: u64 = u64::MAX;

impl QueuedMemtable {
    /// `id` is never used twice in a process; `created_at` is the last number given out before the memtable became
    /// mutable; `concurrent` lets writers insert at the same time, where the representation can.
    pub fn new(id: u64, held: HeldMemtable, created_at: SeqNo, concurrent: bool) -> Arc<Self> {
        let one_by_one = !concurrent || !held.memtable().concurrent_insert();
        Arc::new(QueuedMemtable {
            id,
            half_bytes: held.capacity_bytes() / 2,
            empty_bytes: held.memtable().reserved_bytes(),
            held,
            created_at: AtomicU64::new(created_at.0),
            largest_seq: AtomicU64::new(MUTABLE),
            logged_through: AtomicU64::new(0),
            inserting: one_by_one.then(Mutex::default),
        })
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Inserts entries whose bytes were reserved. Never fails (C4).
    pub fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        let _alone = self.inserting.as_ref().map(Mutex::lock);
        self.memtable().insert_all(entries);
    }

    /// True where no room was reserved. Under the commit lock that means that no write at or below the last number was
    /// noted to it: room is reserved before a number is taken (C4). One with a later number may be on its way.
    pub fn is_unused(&self) -> bool {
        self.memtable().reserved_bytes() == self.empty_bytes
    }

    /// Raises the charge for a reservation of so many bytes, where the limit on all memtables lets it.
    pub(crate) fn charge_for(&self, more_bytes: usize) -> bool {
        let (charge, reserved) = (self.memtable_charge(), self.memtable().reserved_bytes());
        charge.covers(reserved.saturating_add(more_bytes))
            || charge.try_raise_a_step(reserved.saturating_add(more_bytes))
    }

    pub fn is_half_full(&self) -> bool {
        self.memtable().reserved_bytes() >= self.half_bytes
    }

    /// Reserves room for a write; `None` where there is none left. The answer is true for the one write that makes the
    /// memtable half full: a spare will be needed.
    #[inline]
    pub fn try_reserve(&self, bytes: usize) -> Option<bool> {
        let memtable = self.memtable();
        if !memtable.try_reserve(bytes) {
            return None;
        }
        let reserved = memtable.reserved_bytes();
        Some(reserved >= self.half_bytes && reserved.saturating_sub(bytes) < self.half_bytes)
    }

    /// Raises the number below which nothing is in here to the last one given out (F3). Called under the commit lock, for
    /// a memtable that was found unused under it.
    pub fn advance_empty_to(&self, seq: SeqNo) {
        self.created_at.fetch_max(seq.0, Ordering::AcqRel);
    }

    #[inline]
    pub fn memtable(&self) -> &Arc<dyn Memtable> {
        self.held.memtable()
    }

    #[inline]
    pub fn memtable_charge(&self) -> &Arc<Charge> {
        self.held.charge()
    }

    /// Says that no write above `largest` will be noted to this memtable. Those at or below may still be inserting;
    /// they are done when the visible number has reached `largest`. `logged_through` is where the logs end now.
    pub fn seal_at(&self, largest: SeqNo, logged_through: LogPosition) {
        self.logged_through.store(logged_through, Ordering::Release);
        let before = self.largest_seq.swap(largest.0, Ordering::AcqRel);
        assert_eq!(before, MUTABLE, "a memtable is sealed once");
    }
}

impl Flushable for QueuedMemtable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.memtable().get(key, &mut |seq, kind, bytes| visit(seq, kind, TableValue { bytes, owner: None }));
        Ok(())
    }

    fn cursor(self: Arc<Self>, _options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        Ok(self.memtable().clone().cursor())
    }

    fn tombstones(&self) -> Result<Option<Arc<FragmentedTombstones>>> {
        Ok(self.memtable().tombstones())
    }

    fn created_at(&self) -> SeqNo {
        SeqNo(self.created_at.load(Ordering::Acquire))
    }

    fn largest_seq(&self) -> Option<SeqNo> {
        match self.largest_seq.load(Ordering::Acquire) {
            MUTABLE => None,
            seq => Some(SeqNo(seq)),
        }
    }

    fn logged_through(&self) -> LogPosition {
        self.logged_through.load(Ordering::Acquire)
    }

    fn memory_bytes(&self) -> usize {
        self.memtable().memory_bytes()
    }

    fn charge(&self) -> Option<&Arc<Charge>> {
        Some(self.held.charge())
    }

    fn as_memtable(&self) -> Option<&Arc<dyn Memtable>> {
        Some(self.memtable())
    }

    fn conversion(&self) -> Option<Conversion> {
        self.held.conversion()
    }
}
