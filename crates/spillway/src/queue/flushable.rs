//! Entries of a family's queue: memtables, large batches and ingests behind one trait. Reads search the young end
//! first; flushes take the old end (Q1, Q2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use base::tombstone::FragmentedTombstones;
use base::{Cursor, FileNumber, LookupKey, Result, SeqNo, ValueKind};
use memtable::{Background, Conversion, Entry, Memtable};
use parking_lot::Mutex;
use table::values::{Following, FollowingCursor};
use table::{TableReadOptions, TableValue, Visit};
use vfs::Origin;
use wal::Position;

use crate::log_files::pace::MemtablePace;
use crate::log_files::value_logs::{Logged, ValueLogs};
use crate::order::SeqRange;
use crate::order::pipeline::LogPosition;
use crate::queue::images::ImageNames;
use crate::queue::ingest::QueuedIngest;
use crate::queue::memory::{Charge, MemoryBudget};
use crate::queue::watermark;

/// An entry of a family's queue. Reads use it exactly like a table.
pub trait Flushable: Send + Sync {
    /// Shows the point entries of the lookup's user key at or below its sequence number, newest first.
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()>;

    /// The number of the key's newest point entry at or below the lookup's. Reads no value from a log.
    fn newest(&self, key: &LookupKey, options: &TableReadOptions) -> Result<Option<SeqNo>> {
        let mut newest = None;
        self.get(key, options, &mut |seq, _, _| {
            newest = Some(seq);
            false
        })?;
        Ok(newest)
    }

    /// Looks up many keys. `visit` gets the key's index first.
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

    /// The range tombstones. An ingest's may have to be read first.
    fn tombstones(&self, options: &TableReadOptions) -> Result<Option<Arc<FragmentedTombstones>>>;

    /// Every write in the entry is above this number.
    fn created_at(&self) -> SeqNo;

    /// Every write in the entry is at or below this number. `None` while the entry is mutable; final once it is sealed.
    fn largest_seq(&self) -> Option<SeqNo>;

    /// WAL position behind every write of the entry that is in a WAL of this process. Set when the entry is sealed.
    fn logged_through(&self) -> LogPosition;

    fn memory_bytes(&self) -> usize;

    /// The memory charge; `None` if the entry is not in memory.
    fn charge(&self) -> Option<&Arc<Charge>> {
        None
    }

    /// The memtable, if the entry is one under the sequence numbers that readers see. A large batch is not: inside, it
    /// has its own.
    fn as_memtable(&self) -> Option<&Arc<dyn Memtable>> {
        None
    }

    /// How the memtable is converted into a table; `None` if a flush writes its entries into one.
    fn conversion(&self) -> Option<Conversion> {
        None
    }

    /// Called after a failed conversion: from now on flushes write the entries into a table.
    fn give_up_conversion(&self) {}

    /// WALs with values kept out of the memtable; `None` if all values are in it.
    fn value_logs(&self) -> Option<&Arc<ValueLogs>> {
        None
    }

    /// Marks the file of a sealed memtable complete, if its largest number is at or below `visible`.
    fn mark_complete(&self, _visible: SeqNo) {}

    /// Number of the image, if the entry is a memtable of an earlier process read from its file.
    fn image_number(&self) -> Option<FileNumber> {
        None
    }

    /// Called once a durable edit has made the entry superfluous (V3).
    fn mark_flushed(&self) {}

    /// The ingest, if the entry is one. Its flush links tables into levels, and may merge those that overlap a memtable.
    fn as_ingest(&self) -> Option<&QueuedIngest> {
        None
    }
}

/// A queue entry numbered when it is enqueued.
pub(crate) trait Enqueue: Flushable {
    /// Called once, under the commit lock, before any reader can find the entry.
    fn set_numbers(&self, given: &SeqRange);
}

/// A memtable in the queue, mutable or sealed.
pub struct QueuedMemtable {
    id: u64,
    held: HeldMemtable,
    /// Arena bytes reserved by an empty memtable of this kind.
    empty_bytes: usize,
    /// Reserved bytes at which the memtable counts as half full.
    half_bytes: usize,
    /// Reserved bytes at which upkeep looks at the memtable next.
    look_at: AtomicUsize,
    pace: MemtablePace,
    created_at: AtomicU64,
    /// The largest number allocated before the switch, or `MUTABLE`.
    largest_seq: AtomicU64,
    logged_through: AtomicU64,
    /// Where replay begins that has this memtable (see `MemtableBoundary`), packed. 0 while mutable, or if it is unknown.
    replay_from: AtomicU64,
    /// Held while inserting; `None` if writers may insert concurrently.
    inserting: Option<Mutex<()>>,
    /// WALs with values kept out of the memtable; `None` if all values are in it.
    value_logs: Option<Arc<ValueLogs>>,
}

const MUTABLE: u64 = u64::MAX;

impl QueuedMemtable {
    /// `id` is never reused in a process. `concurrent` lets writers insert at the same time.
    pub fn new(id: u64, held: HeldMemtable, concurrent: bool, value_logs: Option<ValueLogs>) -> Arc<Self> {
        Arc::new(QueuedMemtable {
            id,
            half_bytes: held.capacity_bytes() / 2,
            empty_bytes: held.memtable().reserved_bytes(),
            look_at: AtomicUsize::new(0),
            pace: MemtablePace::default(),
            held,
            created_at: AtomicU64::new(0),
            largest_seq: AtomicU64::new(MUTABLE),
            logged_through: AtomicU64::new(0),
            replay_from: AtomicU64::new(0),
            inserting: (!concurrent).then(Mutex::default),
            value_logs: value_logs.map(Arc::new),
        })
    }

    /// Called when the memtable becomes mutable, before its first write: it holds no write at or below `created_at`,
    /// the last allocated number. A repeated call may come late.
    pub fn begin_after(&self, created_at: SeqNo) {
        self.created_at.fetch_max(created_at.0, Ordering::AcqRel);
        self.memtable().begin_after(created_at);
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    /// Inserts entries with room already reserved. `logged` is the place of their batch in the WAL. Never fails (C4).
    pub(crate) fn insert_all<'a>(&self, entries: &mut dyn Iterator<Item = Entry<'a>>, logged: Option<Logged<'_>>) {
        let _alone = self.inserting.as_ref().map(Mutex::lock);
        match &self.value_logs {
            None => self.memtable().insert_all(entries),
            Some(logs) => logs.store(entries, logged, &mut |entries| self.memtable().insert_all(entries)),
        }
    }

    /// Whether values of logged writes stay in the WAL.
    pub fn leaves_values(&self) -> bool {
        self.value_logs.is_some()
    }

    /// Worst-case bytes of the entries, with every value in the memtable.
    pub fn room_for(&self, entries: usize, payload_bytes: usize) -> usize {
        let tag_bytes = if self.value_logs.is_some() { entries } else { 0 };
        self.memtable().worst_case_bytes(entries, payload_bytes + tag_bytes)
    }

    /// True if no room was reserved. Room is reserved before a number is allocated (C4): under the commit lock, no
    /// write at or below the last number goes to an unused memtable. A write with a later number may be under way.
    pub fn is_unused(&self) -> bool {
        self.memtable().reserved_bytes() == self.empty_bytes
    }

    /// Whether the charge covers the reserved bytes and `more_bytes`.
    #[inline]
    pub(crate) fn is_charged_for(&self, more_bytes: usize) -> bool {
        self.memtable_charge().covers(self.memtable().reserved_bytes().saturating_add(more_bytes))
    }

    /// Ensures that the charge covers `more_bytes` more; false if the limit on all memtables forbids it.
    pub(crate) fn charge_for(&self, more_bytes: usize) -> bool {
        let reserved = self.memtable().reserved_bytes();
        self.is_charged_for(more_bytes) || self.memtable_charge().try_raise_a_step(reserved.saturating_add(more_bytes))
    }

    /// Charges the reserved bytes and `more_bytes`, whatever the limit.
    pub(crate) fn charge_whole(&self, more_bytes: usize) {
        self.memtable_charge().raise(self.memtable().reserved_bytes().saturating_add(more_bytes));
    }

    /// Bytes reserved since the memtable was empty.
    pub fn used_bytes(&self) -> usize {
        self.memtable().reserved_bytes().saturating_sub(self.empty_bytes)
    }

    /// Bytes left to reserve.
    pub fn unused_bytes(&self) -> usize {
        self.held.capacity_bytes().saturating_sub(self.memtable().reserved_bytes())
    }

    pub fn is_half_full(&self) -> bool {
        self.memtable().reserved_bytes() >= self.half_bytes
    }

    /// Reserves room for a write; `None` if there is none left. True if the caller must wake upkeep: on the first
    /// write, after each quarter of the prefault window, and when the memtable becomes half full.
    #[inline]
    pub fn try_reserve(&self, bytes: usize) -> Option<bool> {
        let memtable = self.memtable();
        if !memtable.try_reserve(bytes) {
            return None;
        }
        let reserved = memtable.reserved_bytes();
        Some(reserved >= self.look_at.load(Ordering::Relaxed) && self.takes_look(reserved))
    }

    pub(crate) fn pace(&self) -> &MemtablePace {
        &self.pace
    }

    /// Advances `look_at`. True for only one of several writes that passed it together.
    #[cold]
    fn takes_look(&self, reserved: usize) -> bool {
        let due = self.look_at.load(Ordering::Relaxed);
        let next = reserved.saturating_add(self.pace.look_after(self.used_bytes()));
        let next = if reserved < self.half_bytes { next.min(self.half_bytes) } else { next };
        reserved >= due && self.look_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Raises `created_at` to `seq`, the last allocated number (F3). Called under the commit lock, for a memtable found
    /// unused under it.
    pub fn advance_empty_to(&self, seq: SeqNo) {
        // Where the file begins stays: T may be noted as `seq`, or not yet. The file joins tables through each number between.
        self.memtable().advance_empty_to(seq);
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

    /// Seals the memtable at `largest`. Writes at or below may still be inserting, until the visible number reaches
    /// `largest`. `logged_through` is the present end of the WAL; a replay that has this memtable begins at
    /// `replay_from`. A repeated call must pass the same values.
    pub(crate) fn seal_at(&self, largest: SeqNo, logged_through: LogPosition, replay_from: Option<Position>) {
        self.replay_from.store(replay_from.and_then(watermark::pack).unwrap_or(0), Ordering::Relaxed);
        self.logged_through.store(logged_through, Ordering::Release);
        let before = self.largest_seq.swap(largest.0, Ordering::AcqRel);
        assert!(before == MUTABLE || before == largest.0, "a memtable is sealed once");
    }
}

impl Flushable for QueuedMemtable {
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        // No room, no entry: room is reserved before a number is allocated (C4). A read-mostly family's memtable is empty.
        if self.is_unused() {
            return Ok(());
        }
        let Some(logs) = &self.value_logs else {
            self.memtable().get(key, &mut |seq, kind, bytes| visit(seq, kind, in_place(bytes)));
            return Ok(());
        };
        let mut following = Following::new(&**logs);
        self.memtable().get(key, &mut |seq, kind, stored| following.show(seq, kind, stored, in_place, visit));
        following.end()
    }

    fn newest(&self, key: &LookupKey, _options: &TableReadOptions) -> Result<Option<SeqNo>> {
        let mut newest = None;
        if !self.is_unused() {
            self.memtable().get(key, &mut |seq, _, _| {
                newest = Some(seq);
                false
            });
        }
        Ok(newest)
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        _options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        if self.is_unused() {
            return Ok(());
        }
        let Some(logs) = &self.value_logs else {
            self.memtable().multi_get(keys, &mut |nth, seq, kind, bytes| visit(nth, seq, kind, in_place(bytes)));
            return Ok(());
        };
        let mut following = Following::new(&**logs);
        self.memtable().multi_get(keys, &mut |nth, seq, kind, stored| {
            following.show(seq, kind, stored, in_place, &mut |seq, kind, value| visit(nth, seq, kind, value))
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

    fn tombstones(&self, _options: &TableReadOptions) -> Result<Option<Arc<FragmentedTombstones>>> {
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
        let replay_from = self.replay_from.load(Ordering::Relaxed);
        if let Some(largest) = self.largest_seq().filter(|largest| *largest <= visible && replay_from != 0) {
            self.memtable().mark(largest, replay_from);
        }
    }
}

/// A value in a memtable: pinning it copies.
pub(crate) fn in_place(bytes: &[u8]) -> TableValue<'_> {
    TableValue { bytes, owner: None }
}

/// Resources for making memtables.
#[derive(Clone)]
pub struct MemtableMaking {
    pub background: Background,
    pub memory: Arc<MemoryBudget>,
    /// `None` if no memtable is converted into a table.
    pub images: Option<Arc<ImageNames>>,
}

impl MemtableMaking {
    /// No memory limit, no background thread.
    pub fn inline() -> Self {
        MemtableMaking { background: Background::inline(), memory: MemoryBudget::new(0), images: None }
    }
}

/// The owner of a memtable.
pub struct HeldMemtable {
    /// `None` only during drop.
    memtable: Option<Arc<dyn Memtable>>,
    charge: Arc<Charge>,
    capacity_bytes: usize,
    background: Background,
    origin: Origin,
    conversion: Option<Conversion>,
    /// The conversion failed; the file may have failed to sync (D4).
    is_given_up: AtomicBool,
}

impl HeldMemtable {
    /// `capacity_bytes` is the limit on the memtable's reserved bytes.
    pub fn new(memtable: Arc<dyn Memtable>, capacity_bytes: usize, making: &MemtableMaking) -> Self {
        let charge = Charge::new(&making.memory, memtable.memory_bytes());
        let background = making.background.clone();
        HeldMemtable {
            memtable: Some(memtable),
            charge,
            capacity_bytes,
            background,
            origin: Origin::here(),
            conversion: None,
            is_given_up: AtomicBool::new(false),
        }
    }

    /// Sets the conversion into a table.
    pub fn with_conversion(mut self, conversion: Option<Conversion>) -> Self {
        self.conversion = conversion;
        self
    }

    /// How the memtable is converted into a table; `None` if a flush writes its entries into one.
    pub fn conversion(&self) -> Option<Conversion> {
        self.conversion.filter(|_| !self.is_given_up.load(Ordering::Acquire))
    }

    /// From now on flushes write the entries into a table.
    pub fn give_up_conversion(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }

    #[inline]
    pub fn memtable(&self) -> &Arc<dyn Memtable> {
        self.memtable.as_ref().expect("it is taken only by drop")
    }

    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    #[inline]
    pub fn charge(&self) -> &Arc<Charge> {
        &self.charge
    }
}

impl Drop for HeldMemtable {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return std::mem::forget((self.memtable.take(), self.charge.clone())); // its file is the parent's
        }
        self.charge.owner_goes();
        if let Some(memtable) = self.memtable.take() {
            let freed = Freed { memtable: Some(memtable), charge: self.charge.clone() };
            self.background.run(Box::new(move || drop(freed)));
        }
    }
}

/// Frees a memtable and then its charge, whether its task runs or is dropped.
struct Freed {
    memtable: Option<Arc<dyn Memtable>>,
    charge: Arc<Charge>,
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.memtable = None;
        // After the memory: writers wait for it. Explicit, because the charge may have more owners.
        self.charge.release();
    }
}

#[cfg(test)]
mod tests {
    use base::{FamilyId, InternalOrder};
    use memtable::MemtableConfig;

    use super::*;

    #[test]
    fn the_charge_goes_with_the_memtable_though_a_waiting_writer_knows_it() {
        let making = MemtableMaking { memory: MemoryBudget::new(1 << 20), ..MemtableMaking::inline() };
        let factory = memtable::factory_from_option_string("skip_list").expect("known");
        let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, 1 << 16);
        let held = HeldMemtable::new(factory.create(&config).expect("memory"), 1 << 16, &making);
        let known = held.charge().clone();
        assert!(making.memory.charged_bytes() > 0);
        drop(held);
        assert_eq!(making.memory.charged_bytes(), 0);
        drop(known);
        assert_eq!(making.memory.charged_bytes(), 0);
    }
}
