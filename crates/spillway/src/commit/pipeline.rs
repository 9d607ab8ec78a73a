//! Ring of writes with sequence numbers, not yet visible. Numbers are allocated in order under the commit lock; writers
//! finish in any order. Visibility advances in order (S2): finishing the oldest write publishes it and every done write
//! directly after it.
//!
//! # Invariants
//! - Slots `[head, tail)` are in flight; only the holder of the commit lock moves `tail`.
//! - A slot's fields are written before its ticket is handed out, and not again before `head` has passed the slot.
//! - `head` passes a slot by its own writer's store if the slot is not marked done, else by any thread's exchange.
//!
//! `loom_tests.rs` runs this code under every thread interleaving.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base::{Error, Result, SeqNo};
use crossbeam_utils::CachePadded;

pub use crate::commit::bounds::{KeyBounds, Touched};

use crate::commit::bounds::StoredBounds;
use crate::commit::sync::{AtomicBool, AtomicU64, Backoff, Condvar, Mutex, MutexGuard, fence};

/// Maximum writes in flight. If the ring is full, a writer waits before it takes a number.
pub const IN_FLIGHT_MAX: usize = if cfg!(loom) { 2 } else { 1024 };

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

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
