//! Everything that can be flushed is one kind of thing: it stands in its family's queue, is read there, and leaves it
//! at the old end (Q1, Q2).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, LookupKey, Result, SeqNo, ValueKind};
use log::Position;
use memtable::{Conversion, Entry, Memtable};
use parking_lot::Mutex;
use table::values::{Following, FollowingCursor};
use table::{TableReadOptions, TableValue, Visit};

use crate::commit::pipeline::LogPosition;
use crate::queue::held::HeldMemtable;
use crate::queue::ingest::QueuedIngest;
use crate::queue::memory::Charge;
use crate::wal::marks;
use crate::wal::presence;
use crate::wal::value_logs::{Logged, ValueLogs};

/// An entry of a family's queue. Reads see it exactly as they see a table.
pub trait Flushable: Send + Sync {
    /// Shows the point entries of the lookup's user key at or below its sequence number, newest first.
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()>;

    /// Many lookups; `visit` is told which.
    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, options, &mut |seq, kind, value| visit(i, seq, kind, value))?;
        }
        Ok(())
    }

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

    /// Says that the memtable failed to become a table.
    fn give_up_conversion(&self) {}

    /// Where values are that are not in the memtable; `None` where all are.
    fn value_logs(&self) -> Option<&Arc<ValueLogs>> {
        None
    }

    /// Tells a sealed memtable's file that it is complete, if everything that went to it is at or below `visible`.
    fn mark_complete(&self, _visible: SeqNo) {}

    /// The file of an earlier process's memtable that the entry is read from.
    fn image_number(&self) -> Option<FileNumber> {
        None
    }

    /// Told when an edit is durable that makes the entry superfluous (V3).
    fn mark_flushed(&self) {}

    /// The ingest, where this is one: its flush gives its tables levels and writes nothing, unless it is merged.
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
    /// Reserved bytes at which upkeep is to look after it next.
    look_at: AtomicUsize,
    created_at: AtomicU64,
    /// The largest number given to a write before the switch, or `MUTABLE`.
    largest_seq: AtomicU64,
    logged_through: AtomicU64,
    /// Where in the logs what follows begins, packed; 0 until the memtable is sealed, and where that is not known.
    followed_at: AtomicU64,
    /// Held while inserting, where the representation takes one writer at a time.
    inserting: Option<Mutex<()>>,
    /// Where values are that are not in the memtable; `None` where all are.
    value_logs: Option<Arc<ValueLogs>>,
}

const MUTABLE: u64 = u64::MAX;

impl QueuedMemtable {
    /// `id` is never used twice in a process; `concurrent` lets writers insert at the same time, where the representation
    /// can.
    pub fn new(id: u64, held: HeldMemtable, concurrent: bool, value_logs: Option<ValueLogs>) -> Arc<Self> {
        let one_by_one = !concurrent || !held.memtable().concurrent_insert();
        Arc::new(QueuedMemtable {
            id,
            half_bytes: held.capacity_bytes() / 2,
            empty_bytes: held.memtable().reserved_bytes(),
            look_at: AtomicUsize::new(0),
            held,
            created_at: AtomicU64::new(0),
            largest_seq: AtomicU64::new(MUTABLE),
            logged_through: AtomicU64::new(0),
            followed_at: AtomicU64::new(0),
            inserting: one_by_one.then(Mutex::default),
            value_logs: value_logs.map(Arc::new),
        })
    }

    /// Says that the memtable becomes mutable: no write at or below `created_at`, the last number given out, is in it.
    /// Before any write is noted to it; who says so again comes late, and may.
    pub fn begin_after(&self, created_at: SeqNo) {
        self.created_at.fetch_max(created_at.0, Ordering::AcqRel);
        self.memtable().begin_after(created_at);
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Inserts entries whose bytes were reserved, of a batch that is in the log where `logged` says. Never fails (C4).
    pub(crate) fn insert_all<'a>(&self, entries: &mut dyn Iterator<Item = Entry<'a>>, logged: Option<Logged<'_>>) {
        let _alone = self.inserting.as_ref().map(Mutex::lock);
        match &self.value_logs {
            None => self.memtable().insert_all(entries),
            Some(logs) => logs.store(entries, logged, &mut |entries| self.memtable().insert_all(entries)),
        }
    }

    /// Whether values of writes that are logged stay in the log.
    pub fn leaves_values(&self) -> bool {
        self.value_logs.is_some()
    }

    /// Bytes that entries take at the worst, all of whose values are put into the memtable.
    pub fn room_for(&self, entries: usize, payload_bytes: usize) -> usize {
        let tag_bytes = if self.value_logs.is_some() { entries } else { 0 };
        self.memtable().worst_case_bytes(entries, payload_bytes + tag_bytes)
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

    /// Bytes reserved since the memtable was empty.
    pub fn used_bytes(&self) -> usize {
        self.memtable().reserved_bytes().saturating_sub(self.empty_bytes)
    }

    /// What can be reserved yet.
    pub fn unused_bytes(&self) -> usize {
        self.held.capacity_bytes().saturating_sub(self.memtable().reserved_bytes())
    }

    pub fn is_half_full(&self) -> bool {
        self.memtable().reserved_bytes() >= self.half_bytes
    }

    /// Reserves room for a write; `None` where there is none left. The answer is true for the one write after which upkeep is
    /// to look: the first, those that come near the end of what is present, and the one that makes the memtable half full.
    #[inline]
    pub fn try_reserve(&self, bytes: usize) -> Option<bool> {
        let memtable = self.memtable();
        if !memtable.try_reserve(bytes) {
            return None;
        }
        let reserved = memtable.reserved_bytes();
        Some(reserved >= self.look_at.load(Ordering::Relaxed) && self.takes_look(reserved))
    }

    /// True for the one of several writes that passed the mark together.
    #[cold]
    fn takes_look(&self, reserved: usize) -> bool {
        let due = self.look_at.load(Ordering::Relaxed);
        let next = reserved.saturating_add(presence::look_after(self.used_bytes()));
        let next = if reserved < self.half_bytes { next.min(self.half_bytes) } else { next };
        reserved >= due && self.look_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Raises the number below which nothing is in here to the last one given out (F3). Called under the commit lock, for
    /// a memtable that was found unused under it.
    pub fn advance_empty_to(&self, seq: SeqNo) {
        // What the memtable's file says it begins after stays: nothing of the family is in between.
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
    /// they are done when the visible number has reached `largest`. `logged_through` is where the logs end now, `next_record`
    /// where what follows begins in them. Said again, it has to be the same.
    pub(crate) fn seal_at(&self, largest: SeqNo, logged_through: LogPosition, next_record: Option<Position>) {
        self.followed_at.store(next_record.and_then(marks::pack).unwrap_or(0), Ordering::Relaxed);
        self.logged_through.store(logged_through, Ordering::Release);
        let before = self.largest_seq.swap(largest.0, Ordering::AcqRel);
        assert!(before == MUTABLE || before == largest.0, "a memtable is sealed once");
    }
}

impl Flushable for QueuedMemtable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let Some(logs) = &self.value_logs else {
            self.memtable().get(key, &mut |seq, kind, bytes| visit(seq, kind, in_place(bytes)));
            return Ok(());
        };
        let mut following = Following::new(&**logs);
        self.memtable().get(key, &mut |seq, kind, stored| following.show((seq, kind, stored), in_place, visit));
        following.end()
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        _options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let Some(logs) = &self.value_logs else {
            self.memtable().multi_get(keys, &mut |nth, seq, kind, bytes| visit(nth, seq, kind, in_place(bytes)));
            return Ok(());
        };
        let mut following = Following::new(&**logs);
        self.memtable().multi_get(keys, &mut |nth, seq, kind, stored| {
            following.show((seq, kind, stored), in_place, &mut |seq, kind, value| visit(nth, seq, kind, value))
        });
        following.end()
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Result<Box<dyn Cursor>> {
        let cursor = self.memtable().clone().cursor();
        match &self.value_logs {
            None => Ok(cursor),
            Some(logs) => Ok(FollowingCursor::new(cursor, logs.clone()).passing_over(options.skip_damaged.as_ref())),
        }
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

    fn give_up_conversion(&self) {
        self.held.give_up_conversion();
    }

    fn value_logs(&self) -> Option<&Arc<ValueLogs>> {
        self.value_logs.as_ref()
    }

    fn mark_complete(&self, visible: SeqNo) {
        let followed_at = self.followed_at.load(Ordering::Relaxed);
        if let Some(largest) = self.largest_seq().filter(|largest| *largest <= visible && followed_at != 0) {
            self.memtable().mark(largest, followed_at);
        }
    }
}

/// A value in a memtable: pinning it copies.
pub(crate) fn in_place(bytes: &[u8]) -> TableValue<'_> {
    TableValue { bytes, owner: None }
}
