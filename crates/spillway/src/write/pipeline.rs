//! The ring of writes that have numbers and are not yet visible. Numbers are given in order under the commit lock;
//! writers finish in any order; visibility advances in order (S2) by whoever finishes the oldest.
//!
//! # Invariants
//! - Slots `[head, tail)` are in flight; only the holder of the commit lock moves `tail`.
//! - A slot's fields are written before it is handed out, and read only until `head` has passed it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Error, FamilyId, Result, SeqNo};
use crossbeam_utils::{Backoff, CachePadded};
use parking_lot::{Condvar, Mutex};

/// Writes in flight at the most. A writer that finds the ring full waits before it takes a number.
pub const IN_FLIGHT_MAX: usize = 1024;

/// A position in the history of all logs: bytes since the first log of this run, capacities of full logs included.
pub type LogPosition = u64;

/// The user keys that a batch touches in one family, inclusive on both sides. What an ingest or a transaction must know
/// of writers that have numbers and are not in the memtable yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    pub family: FamilyId,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
}

#[derive(Default)]
struct Slot {
    last_seq: AtomicU64,
    log_end: AtomicU64,
    /// `ticket + 1` once the writer is done; what it held before otherwise.
    done: AtomicU64,
    bounds: Mutex<Vec<KeyBounds>>,
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
    /// The largest log position handed in so far; published once every ticket is.
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

    /// Hands out the next place, to a write whose numbers end at `last_seq` and whose log record ends at `log_end`.
    /// Called under the commit lock, after [`has_room`](Self::has_room).
    pub fn enter(&self, last_seq: SeqNo, log_end: LogPosition, bounds: &[(FamilyId, &[u8], &[u8])]) -> Ticket {
        let ticket = self.tail.load(Ordering::Relaxed);
        let slot = self.slot(ticket);
        assert!(self.has_room(), "the pipeline's ring overflowed");
        slot.last_seq.store(last_seq.0, Ordering::Relaxed);
        slot.log_end.store(log_end, Ordering::Relaxed);
        store_bounds(&mut slot.bounds.lock(), bounds);
        self.entered_log.fetch_max(log_end, Ordering::Release);
        self.tail.store(ticket + 1, Ordering::Release);
        Ticket(ticket)
    }

    /// Shows the key bounds of every write that has numbers and is not visible yet, oldest first. A write may become
    /// visible while it is shown. Never waits for a writer.
    pub fn for_each_in_flight(&self, mut visit: impl FnMut(&KeyBounds)) {
        let head = self.head.load(Ordering::Acquire);
        for ticket in head..self.tail.load(Ordering::Acquire) {
            self.slot(ticket).bounds.lock().iter().for_each(&mut visit);
        }
    }

    /// Says that the write is in the log and in the memtables, and publishes all that can be.
    pub fn finish(&self, ticket: Ticket) {
        // SeqCst, here and at the load: of two writers that finish at once at least one sees the other's mark.
        self.slot(ticket.0).done.store(ticket.0 + 1, Ordering::SeqCst);
        let mut advanced = false;
        loop {
            let head = self.head.load(Ordering::SeqCst);
            let slot = self.slot(head);
            if slot.done.load(Ordering::SeqCst) != head + 1 {
                break;
            }
            // Read before the exchange: once head has passed, the slot may be handed out again.
            let (seq, log_end) = (slot.last_seq.load(Ordering::Relaxed), slot.log_end.load(Ordering::Relaxed));
            if self.head.compare_exchange(head, head + 1, Ordering::SeqCst, Ordering::Acquire).is_ok() {
                // fetch_max: of two threads that moved head, the later may store first (S1).
                self.published_log.fetch_max(log_end, Ordering::SeqCst);
                self.visible.fetch_max(seq, Ordering::SeqCst);
                advanced = true;
            }
        }
        if advanced && self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.sleep.lock());
            self.wake.notify_all();
        }
    }

    /// Waits until everything up to `seq` is visible.
    ///
    /// # Errors
    /// `ReadOnly`: an older write failed after it was numbered, so `seq` will never be visible.
    #[inline]
    pub fn wait_visible(&self, seq: SeqNo) -> Result<()> {
        self.wait_for(|| self.visible.load(Ordering::SeqCst) >= seq.0)
    }

    /// Waits until everything in the logs before `position` is published.
    ///
    /// # Errors
    /// As [`wait_visible`](Self::wait_visible).
    pub fn wait_published(&self, position: LogPosition) -> Result<()> {
        self.wait_for(|| self.published_log.load(Ordering::SeqCst) >= position)
    }

    #[inline]
    fn wait_for(&self, reached: impl Fn() -> bool) -> Result<()> {
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
        drop(self.sleep.lock());
        self.wake.notify_all();
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    fn sleep_unless(&self, reached: impl Fn() -> bool) {
        let mut guard = self.sleep.lock();
        // SeqCst on both sides: either the publisher sees the sleeper, or the sleeper sees what was published.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        if !reached() && !self.is_broken() {
            self.wake.wait(&mut guard);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn slot(&self, ticket: u64) -> &Slot {
        let slot = self.slots.get(ticket as usize % IN_FLIGHT_MAX);
        slot.expect("an index below the ring's size")
    }
}

/// Copies bounds into a slot's buffers, which keep their memory from one write to the next unless it is much.
fn store_bounds(stored: &mut Vec<KeyBounds>, bounds: &[(FamilyId, &[u8], &[u8])]) {
    const KEPT_BYTES_MAX: usize = 1 << 10;
    stored.resize_with(bounds.len(), KeyBounds::default);
    for bounds in stored.iter_mut().filter(|b| b.smallest.capacity().max(b.largest.capacity()) > KEPT_BYTES_MAX) {
        *bounds = KeyBounds::default();
    }
    for (to, (family, smallest, largest)) in stored.iter_mut().zip(bounds) {
        to.family = *family;
        to.smallest.clear();
        to.smallest.extend_from_slice(smallest);
        to.largest.clear();
        to.largest.extend_from_slice(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visibility_advances_in_order_whatever_the_order_of_finishing() {
        let pipeline = Pipeline::new(SeqNo(10));
        let tickets: Vec<Ticket> =
            (0..3).map(|i| pipeline.enter(SeqNo(11 + i), 100 * (i + 1), &[(FamilyId(1), b"a", b"b")])).collect();
        pipeline.finish(tickets[2]);
        pipeline.finish(tickets[1]);
        assert_eq!((pipeline.visible(), pipeline.published_log()), (SeqNo(10), 0));
        let mut seen = 0;
        pipeline.for_each_in_flight(|bounds| seen += usize::from(bounds.smallest == b"a"));
        assert_eq!(seen, 3);
        pipeline.finish(tickets[0]);
        assert_eq!((pipeline.visible(), pipeline.published_log()), (SeqNo(13), 300));
        pipeline.wait_visible(SeqNo(13)).expect("visible");
    }

    #[test]
    fn a_broken_pipeline_wakes_its_waiters() {
        let pipeline = Pipeline::new(SeqNo(0));
        let _never_finished = pipeline.enter(SeqNo(1), 0, &[]);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pipeline.wait_visible(SeqNo(1)));
            pipeline.break_down();
            waiter.join().expect("no panic").expect_err("never visible");
        });
    }

    #[test]
    fn many_writers_publish_everything() {
        let pipeline = Pipeline::new(SeqNo(0));
        let commit = Mutex::new(0u64);
        const EACH: u64 = 5_000;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let (ticket, seq) = loop {
                            let mut last = commit.lock();
                            if pipeline.has_room() {
                                *last += 1;
                                break (pipeline.enter(SeqNo(*last), *last, &[]), SeqNo(*last));
                            }
                        };
                        pipeline.finish(ticket);
                        pipeline.wait_visible(seq).expect("visible");
                    }
                });
            }
        });
        assert_eq!(pipeline.visible(), SeqNo(4 * EACH));
    }
}
