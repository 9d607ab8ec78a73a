//! Ring of writes with sequence numbers, not yet visible. Numbers are allocated in order under the commit lock; writers
//! finish in any order. Visibility advances in order (S2): finishing the oldest write publishes it and every done write
//! directly after it.
//!
//! # Invariants
//! - Slots `[head, tail)` are in flight; only the holder of the commit lock moves `tail`.
//! - A slot's fields are written before its ticket is handed out, and not again before `head` has passed the slot.
//! - `head` passes a slot by its own writer's store if the slot is not marked done, else by any thread's exchange.
//!
//! # Key bounds
//! Ingests check the key bounds of writes in flight: these may not be in the memtables yet. Bounds are conservative,
//! and long keys are clipped, so a few stores move a write's bounds into its slot (C3), and readers take no lock.
//!
//! `loom_tests.rs` runs this code under every thread interleaving.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base::{Error, FamilyId, Result, SeqNo, UserOrder};
use crossbeam_utils::CachePadded;

use crate::order::sync::{AtomicBool, AtomicU64, Backoff, Condvar, Mutex, MutexGuard, fence};

/// Maximum writes in flight. If the ring is full, a writer waits before it takes a number. A thread has one write in
/// flight, and many only while one that took its number early does not run. Every database keeps the ring: 96 KiB.
pub const IN_FLIGHT_MAX: usize = if cfg!(loom) { 2 } else { 256 };

/// A position in the history of all WALs: bytes since the first WAL of this run, capacities of full WALs included.
pub type LogPosition = u64;

#[derive(Default)]
struct Slot {
    last_seq: AtomicU64,
    log_end: AtomicU64,
    /// `ticket + 1` once the write is done, unless its writer publishes it as the oldest; else an older value.
    done: AtomicU64,
    bounds: StoredBounds,
}

/// A pipeline slot, held until [`Pipeline::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a number that is never finished blocks every later one"]
pub struct Ticket(u64);

pub struct Pipeline {
    slots: Box<[CachePadded<Slot>]>,
    /// Tickets published.
    head: CachePadded<AtomicU64>,
    /// Tickets handed out.
    tail: CachePadded<AtomicU64>,
    visible: CachePadded<AtomicU64>,
    published_log: AtomicU64,
    /// Largest WAL position entered so far; published once every ticket is. Written under the commit lock.
    entered_log: AtomicU64,
    /// Set when a numbered write failed: no later write will ever be visible.
    broken: AtomicBool,
    sleepers: AtomicU64,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl Pipeline {
    /// A pipeline with everything up to `visible` readable.
    pub fn new(visible: SeqNo) -> Self {
        let slots = (0..IN_FLIGHT_MAX).map(|_| CachePadded::default()).collect();
        Pipeline {
            slots,
            head: CachePadded::default(),
            tail: CachePadded::default(),
            visible: CachePadded::new(AtomicU64::new(visible.0)),
            published_log: AtomicU64::new(0),
            entered_log: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicU64::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Newest visible number: every write at or below it is readable.
    #[inline]
    pub fn visible(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Acquire))
    }

    /// Makes everything up to `seq` visible, on a secondary, where nothing is committed.
    pub fn follow_to(&self, seq: SeqNo) {
        self.visible.fetch_max(seq.0, Ordering::AcqRel);
    }

    /// Everything in the WALs before this position belongs to visible writes.
    #[inline]
    pub fn published_log(&self) -> LogPosition {
        self.published_log.load(Ordering::Acquire)
    }

    /// End of the WAL records of all numbered writes. Exact under the commit lock.
    pub fn entered_log(&self) -> LogPosition {
        self.entered_log.load(Ordering::Acquire)
    }

    pub fn has_room(&self) -> bool {
        let in_flight = self.tail.load(Ordering::Relaxed) - self.head.load(Ordering::Acquire);
        in_flight < IN_FLIGHT_MAX as u64
    }

    /// Hands out the next slot. `last_seq` is the write's last number; `log_end` is the end of its WAL record, 0
    /// without one. Called under the commit lock, after [`has_room`](Self::has_room); neither waits nor allocates.
    #[inline]
    pub fn enter(&self, last_seq: SeqNo, log_end: LogPosition, bounds: &[KeyBounds]) -> Ticket {
        let ticket = self.tail.load(Ordering::Relaxed);
        let slot = self.slot(ticket);
        assert!(self.has_room(), "the pipeline's ring overflowed");
        // A reader of any store below also sees `head` past the slot's previous write.
        fence(Ordering::Release);
        slot.last_seq.store(last_seq.0, Ordering::Relaxed);
        slot.log_end.store(log_end, Ordering::Relaxed);
        slot.bounds.store(bounds);
        if log_end > self.entered_log.load(Ordering::Relaxed) {
            self.entered_log.store(log_end, Ordering::Release);
        }
        self.tail.store(ticket + 1, Ordering::Release);
        Ticket(ticket)
    }

    /// Visits the key bounds of every write numbered before the call, oldest first. Omitted writes are in the
    /// memtables. Exact under the commit lock, since no number is allocated meanwhile. Does not wait.
    pub fn for_each_in_flight(&self, mut visit: impl FnMut(&Touched)) {
        let head = self.head.load(Ordering::Acquire);
        for ticket in head..self.tail.load(Ordering::Acquire) {
            let touched = self.slot(ticket).bounds.load();
            fence(Ordering::Acquire);
            // Otherwise the write is published, and a later look at the memtables finds it. The bounds read may then be
            // a later write's, or a mixture.
            if self.head.load(Ordering::Acquire) <= ticket {
                touched.iter().flatten().for_each(&mut visit);
            }
        }
    }

    /// Marks the write as logged and inserted, and publishes every write with no unfinished predecessor.
    #[inline]
    pub fn finish(&self, ticket: Ticket) {
        let slot = self.slot(ticket.0);
        let is_oldest = self.head.load(Ordering::Acquire) == ticket.0;
        if is_oldest {
            self.publish_as_oldest(ticket.0, slot);
        } else {
            slot.done.store(ticket.0 + 1, Ordering::Release);
        }
        self.publish_all_done(is_oldest);
    }

    /// Publishes done writes from the oldest on. Wakes waiters if any was published, here or before (`advanced`).
    fn publish_all_done(&self, mut advanced: bool) {
        loop {
            // If one writer moves `head` while a second marks its slot, at least one sees the store of the other. The
            // same holds for a publisher and a sleeper.
            fence(Ordering::SeqCst);
            match self.publish_done() {
                Progress::Published => advanced = true,
                Progress::ByAnother => {}
                Progress::None => break,
            }
        }
        if advanced && self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_all();
        }
    }

    /// Publishes the oldest write in flight. Called by its writer, instead of a mark as done. No other thread can
    /// publish this write or a younger one, so no compare is needed.
    fn publish_as_oldest(&self, ticket: u64, slot: &Slot) {
        let (seq, log_end) = (slot.last_seq.load(Ordering::Relaxed), slot.log_end.load(Ordering::Relaxed));
        if log_end > 0 {
            let before = self.published_log.swap(log_end, Ordering::AcqRel);
            assert!(before <= log_end, "the published position only grows (S3)");
        }
        let before = self.visible.swap(seq, Ordering::AcqRel);
        assert!(before <= seq, "the visible number only grows (S1, S3)");
        self.head.store(ticket + 1, Ordering::Release);
    }

    /// Publishes the oldest write in flight if it is marked done.
    fn publish_done(&self) -> Progress {
        let head = self.head.load(Ordering::Acquire);
        let slot = self.slot(head);
        if slot.done.load(Ordering::Acquire) != head + 1 {
            return Progress::None;
        }
        // Read before the exchange: once `head` has passed, the slot may be reused.
        let (seq, log_end) = (slot.last_seq.load(Ordering::Relaxed), slot.log_end.load(Ordering::Relaxed));
        if self.head.compare_exchange(head, head + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Progress::ByAnother;
        }
        // Keep the larger: of two threads moving `head`, the later may come here first (S1).
        self.published_log.fetch_max(log_end, Ordering::AcqRel);
        self.visible.fetch_max(seq, Ordering::AcqRel);
        Progress::Published
    }

    /// Waits until everything up to `seq` is visible.
    ///
    /// # Errors
    /// `ReadOnly`: an older write failed after it was numbered, so `seq` will never be visible.
    #[inline]
    pub fn wait_visible(&self, seq: SeqNo) -> Result<()> {
        self.wait_for(|| self.visible() >= seq)
    }

    /// Waits until everything in the WALs before `position` is published.
    ///
    /// # Errors
    /// As [`wait_visible`](Self::wait_visible).
    pub fn wait_published(&self, position: LogPosition) -> Result<()> {
        self.wait_for(|| self.published_log() >= position)
    }

    #[inline]
    fn wait_for(&self, reached: impl Fn() -> bool) -> Result<()> {
        if reached() { Ok(()) } else { self.wait_long(reached) }
    }

    #[cold]
    fn wait_long(&self, reached: impl Fn() -> bool) -> Result<()> {
        let backoff = Backoff::new();
        while !reached() {
            if self.is_broken() {
                return Err(Error::read_only("an earlier write failed after it was numbered; reopen the database"));
            }
            if backoff.is_completed() {
                self.sleep_unless(&reached);
            } else {
                backoff.snooze();
            }
        }
        Ok(())
    }

    /// Marks the pipeline broken after a numbered write failed, and wakes every waiter.
    pub fn break_down(&self) {
        self.broken.store(true, Ordering::Release);
        self.wake_all();
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// A waiter holds the lock from its check until it sleeps, so no wake-up is lost.
    fn wake_all(&self) {
        drop(self.lock_sleep());
        self.wake.notify_all();
    }

    fn sleep_unless(&self, reached: impl Fn() -> bool) {
        let mut guard = self.lock_sleep();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `publish_all_done`: the publisher sees the sleeper, or the sleeper sees the new
        // number.
        fence(Ordering::SeqCst);
        if !reached() && !self.is_broken() {
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
    }

    fn lock_sleep(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, ticket: u64) -> &Slot {
        let slot = self.slots.get(ticket as usize % IN_FLIGHT_MAX);
        slot.expect("an index below the ring's size")
    }
}

/// Result of an attempt to publish the oldest write.
enum Progress {
    Published,
    ByAnother,
    /// The oldest write is not done, or there is none.
    None,
}

/// Bytes kept of a key.
const PREFIX_BYTES: usize = 32;

/// Families with bounds in a slot. A batch over more families counts as touching everything.
pub(super) const FAMILIES_MAX: usize = 4;

/// A key, or its first `PREFIX_BYTES` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prefix {
    bytes: [u8; PREFIX_BYTES],
    len: u8,
}

impl Prefix {
    fn of(key: &[u8]) -> Self {
        let mut bytes = [0; PREFIX_BYTES];
        let (kept, _) = key.split_at(key.len().min(PREFIX_BYTES));
        if let Some(room) = bytes.get_mut(..kept.len()) {
            room.copy_from_slice(kept);
        }
        Prefix { bytes, len: kept.len() as u8 }
    }

    fn key(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

/// User keys touched by a batch in one family, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBounds {
    family: FamilyId,
    /// `None`: any key.
    keys: Option<(Prefix, Prefix)>,
}

impl KeyBounds {
    /// Bounds from `smallest` to `largest` in the family's order.
    pub fn new(family: FamilyId, order: &UserOrder, smallest: &[u8], largest: &[u8]) -> Self {
        // Only bytewise orders can compare a clipped key.
        let too_long = matches!(order, UserOrder::Custom(_)) && smallest.len().max(largest.len()) > PREFIX_BYTES;
        if too_long {
            return KeyBounds { family, keys: None };
        }
        let first = Prefix::of(smallest);
        // Both bounds of a single change are mostly the same key: copy it once.
        let last = if std::ptr::eq(smallest, largest) { first } else { Prefix::of(largest) };
        KeyBounds { family, keys: Some((first, last)) }
    }

    /// False only if the write touches no key from `start` to `end`, both inclusive. `order` is the family's.
    pub fn may_overlap(&self, order: &UserOrder, start: &[u8], end: &[u8]) -> bool {
        let Some((smallest, largest)) = &self.keys else { return true };
        // In both bytewise orders clipping turns `a < b` into `a <= b` at worst. So ranges clipped on both sides
        // overlap whenever the whole keys do.
        let clip = |key| match order {
            UserOrder::Custom(_) => key,
            UserOrder::Bytewise | UserOrder::ReverseBytewise => <[u8]>::get(key, ..PREFIX_BYTES).unwrap_or(key),
        };
        order.compare(clip(start), largest.key()).is_le() && order.compare(smallest.key(), clip(end)).is_le()
    }
}

/// Keys touched by an unfinished write, in one family or anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Any key in any family.
    Anything,
    Keys(KeyBounds),
}

impl Touched {
    /// False only if the write touches no key of the family from `start` to `end`, both inclusive.
    pub fn may_overlap(&self, family: FamilyId, order: &UserOrder, start: &[u8], end: &[u8]) -> bool {
        match self {
            Touched::Anything => true,
            Touched::Keys(bounds) => bounds.family == family && bounds.may_overlap(order, start, end),
        }
    }
}

/// Bounds of one write, in words readable while the next write replaces them. The reader then checks the pipeline: if
/// the slot was reused, the result is worthless.
#[derive(Default)]
pub(super) struct StoredBounds {
    /// Families stored; more than `FAMILIES_MAX` means anything.
    count: AtomicU64,
    families: [StoredFamily; FAMILIES_MAX],
}

/// `summary`: the family in the low 32 bits, then two key lengths of 8 bits each, then `ANY_KEY`.
#[derive(Default)]
struct StoredFamily {
    summary: AtomicU64,
    smallest: [AtomicU64; PREFIX_BYTES / 8],
    largest: [AtomicU64; PREFIX_BYTES / 8],
}

const SMALLEST_LEN_SHIFT: u32 = 32;
const LARGEST_LEN_SHIFT: u32 = 40;
const ANY_KEY: u64 = 1 << 48;

impl StoredBounds {
    pub fn store(&self, bounds: &[KeyBounds]) {
        self.count.store(bounds.len() as u64, Ordering::Relaxed);
        for (stored, bounds) in self.families.iter().zip(bounds) {
            stored.store(bounds);
        }
    }

    /// Returns the stored bounds in the first of the `FAMILIES_MAX` places.
    pub fn load(&self) -> [Option<Touched>; FAMILIES_MAX] {
        let mut touched = [None; FAMILIES_MAX];
        let count = self.count.load(Ordering::Relaxed);
        if count > FAMILIES_MAX as u64 {
            touched = [Some(Touched::Anything), None, None, None];
        } else {
            for (to, stored) in touched.iter_mut().zip(&self.families).take(count as usize) {
                *to = Some(Touched::Keys(stored.load()));
            }
        }
        touched
    }
}

impl StoredFamily {
    fn store(&self, bounds: &KeyBounds) {
        let family = u64::from(bounds.family.0);
        let Some((smallest, largest)) = &bounds.keys else {
            return self.summary.store(family | ANY_KEY, Ordering::Relaxed);
        };
        let lengths = u64::from(smallest.len) << SMALLEST_LEN_SHIFT | u64::from(largest.len) << LARGEST_LEN_SHIFT;
        self.summary.store(family | lengths, Ordering::Relaxed);
        store_prefix(&self.smallest, smallest);
        store_prefix(&self.largest, largest);
    }

    fn load(&self) -> KeyBounds {
        let summary = self.summary.load(Ordering::Relaxed);
        let family = FamilyId(summary as u32);
        if summary & ANY_KEY != 0 {
            return KeyBounds { family, keys: None };
        }
        let smallest = load_prefix(&self.smallest, (summary >> SMALLEST_LEN_SHIFT) as u8);
        let largest = load_prefix(&self.largest, (summary >> LARGEST_LEN_SHIFT) as u8);
        KeyBounds { family, keys: Some((smallest, largest)) }
    }
}

/// Leaves words behind the key's end unchanged.
fn store_prefix(words: &[AtomicU64], prefix: &Prefix) {
    let used = usize::from(prefix.len).div_ceil(8);
    for (word, bytes) in words.iter().zip(prefix.bytes.as_chunks::<8>().0).take(used) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

fn load_prefix(words: &[AtomicU64], len: u8) -> Prefix {
    let mut bytes = [0; PREFIX_BYTES];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words).take(usize::from(len).div_ceil(8)) {
        *to = word.load(Ordering::Relaxed).to_le_bytes();
    }
    Prefix { bytes, len }
}

#[cfg(all(test, not(loom)))]
mod bounds_tests;
#[cfg(all(test, not(loom)))]
mod interleavings;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
