//! The ring of writes that have numbers and are not yet visible. Numbers are given in order under the commit lock;
//! writers finish in any order; visibility advances in order (S2) by whoever finishes the oldest.
//!
//! # Invariants
//! - Slots `[head, tail)` are in flight; only the holder of the commit lock moves `tail`.
//! - A slot's fields are written before it is handed out, and not again before `head` has passed it.
//! - `head` passes a slot by its own writer's store while the slot is not marked done, by anyone's exchange once it is.
//!
//! `loom_tests.rs` runs this code through every order in which threads can meet.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base::{Error, Result, SeqNo};
use crossbeam_utils::CachePadded;

pub use crate::commit::bounds::{KeyBounds, Touched};

use crate::commit::bounds::StoredBounds;
use crate::commit::sync::{AtomicBool, AtomicU64, Backoff, Condvar, Mutex, MutexGuard, fence};

/// Writes in flight at the most. A writer that finds the ring full waits before it takes a number.
pub const IN_FLIGHT_MAX: usize = if cfg!(loom) { 2 } else { 1024 };

/// A position in the history of all logs: bytes since the first log of this run, capacities of full logs included.
pub type LogPosition = u64;

#[derive(Default)]
struct Slot {
    last_seq: AtomicU64,
    log_end: AtomicU64,
    /// `ticket + 1` once the write is done, where its writer does not publish it as the oldest; what it held before
    /// otherwise.
    done: AtomicU64,
    bounds: StoredBounds,
}

/// A place in the pipeline; what [`Pipeline::finish`] is told.
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
    /// The largest log position handed in so far; published once every ticket is. Written under the commit lock.
    entered_log: AtomicU64,
    /// Set when a write failed after it was numbered: nothing after it will ever be visible.
    broken: AtomicBool,
    sleepers: AtomicU64,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl Pipeline {
    /// A pipeline in which everything up to `visible` can be read.
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

    /// The newest number at or below which everything can be read.
    #[inline]
    pub fn visible(&self) -> SeqNo {
        SeqNo(self.visible.load(Ordering::Acquire))
    }

    /// Everything in the logs before this position belongs to visible writes.
    #[inline]
    pub fn published_log(&self) -> LogPosition {
        self.published_log.load(Ordering::Acquire)
    }

    /// Behind everything in the logs that belongs to writes which have numbers. Exact under the commit lock.
    pub fn entered_log(&self) -> LogPosition {
        self.entered_log.load(Ordering::Acquire)
    }

    pub fn has_room(&self) -> bool {
        let in_flight = self.tail.load(Ordering::Relaxed) - self.head.load(Ordering::Acquire);
        in_flight < IN_FLIGHT_MAX as u64
    }

    /// Hands out the next place, to a write whose numbers end at `last_seq` and whose log record ends at `log_end`, 0
    /// where it has none. Called under the commit lock, after [`has_room`](Self::has_room); neither waits nor allocates.
    pub fn enter(&self, last_seq: SeqNo, log_end: LogPosition, bounds: &[KeyBounds]) -> Ticket {
        let ticket = self.tail.load(Ordering::Relaxed);
        let slot = self.slot(ticket);
        assert!(self.has_room(), "the pipeline's ring overflowed");
        // Whoever reads any of what follows also sees that `head` has passed the slot's last write.
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

    /// Shows what every write that had numbers before the call may touch, oldest first, but for those that are in the
    /// memtables by now. Exact under the commit lock, where no number is given out meanwhile. Waits for nobody.
    pub fn for_each_in_flight(&self, mut visit: impl FnMut(&Touched)) {
        let head = self.head.load(Ordering::Acquire);
        for ticket in head..self.tail.load(Ordering::Acquire) {
            let touched = self.slot(ticket).bounds.load();
            fence(Ordering::Acquire);
            // Else it is published, in the memtables for whoever looks there next, and what was read may be a later
            // write's, or a mixture.
            if self.head.load(Ordering::Acquire) <= ticket {
                touched.iter().flatten().for_each(&mut visit);
            }
        }
    }

    /// Says that the write is in the log and in the memtables, and publishes all that can be.
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

    /// Publishes what can be, and wakes who waits for that, or for what was published before.
    fn publish_all_done(&self, mut advanced: bool) {
        loop {
            // Of two writers, one that moved `head` and one that marked its slot, at least one sees what the other did;
            // of a publisher and a sleeper likewise.
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

    /// Publishes the oldest write in flight. Called by its writer, which has not marked it as done: nobody else can
    /// publish it, nor anything younger, so that there is nothing to compare with.
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

    /// Publishes the oldest write in flight if it is marked as done.
    fn publish_done(&self) -> Progress {
        let head = self.head.load(Ordering::Acquire);
        let slot = self.slot(head);
        if slot.done.load(Ordering::Acquire) != head + 1 {
            return Progress::None;
        }
        // Read before the exchange: once head has passed, the slot may be handed out again.
        let (seq, log_end) = (slot.last_seq.load(Ordering::Relaxed), slot.log_end.load(Ordering::Relaxed));
        if self.head.compare_exchange(head, head + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Progress::ByAnother;
        }
        // The larger stands: of two threads that moved head, the later may come here first (S1).
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

    /// Waits until everything in the logs before `position` is published.
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

    /// Wakes every waiter for good: a numbered write failed.
    pub fn break_down(&self) {
        self.broken.store(true, Ordering::Release);
        self.wake_all();
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Whoever looked before the change holds the lock until it sleeps, so that nobody misses it.
    fn wake_all(&self) {
        drop(self.lock_sleep());
        self.wake.notify_all();
    }

    fn sleep_unless(&self, reached: impl Fn() -> bool) {
        let mut guard = self.lock_sleep();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // With that of `finish`: either the publisher sees the sleeper, or the sleeper sees what was published.
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

/// What came of trying to publish the oldest write.
enum Progress {
    Published,
    ByAnother,
    /// It is not done, or there is none.
    None,
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
