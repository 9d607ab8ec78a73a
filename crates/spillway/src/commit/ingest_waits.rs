//! Writers' waits for ingests: at the gate in modes `blocking` and `flush-first`, at a latch in mode `direct`. Also the
//! time ingests held the commit lock, in every mode.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::MutexGuard;

use crate::core::CommitState;

/// Writers' waits for ingests since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestWaitReport {
    /// Writes stopped by an ingest, at a latch or the gate.
    pub waits: u64,
    /// Total time of these waits.
    pub total: Duration,
    /// The longest of these waits.
    pub longest: Duration,
    /// Total time ingests held the commit lock. No number is allocated meanwhile.
    pub lock_held: Duration,
    /// Commits delayed by an ingest's hold of the commit lock.
    pub lock_waits: u64,
}

/// Counters of an [`IngestWaitReport`].
#[derive(Default)]
pub(crate) struct IngestWaits {
    stops: AtomicU64,
    stopped_nanos: AtomicU64,
    longest_stop_nanos: AtomicU64,
    /// An ingest holds the commit lock. Changed under the lock.
    has_lock: AtomicBool,
    lock_held_nanos: AtomicU64,
    lock_waits: AtomicU64,
}

/// An ingest's hold of the commit lock. Dropped before the lock.
pub(crate) struct LockHeld<'a> {
    waits: &'a IngestWaits,
    pub since: Duration,
}

impl LockHeld<'_> {
    /// Ends the hold and returns its duration.
    pub fn end(self, now: Duration) -> Duration {
        let held_for = now.saturating_sub(self.since);
        self.waits.lock_held_nanos.fetch_add(nanos(held_for), Ordering::Relaxed);
        held_for
    }
}

impl Drop for LockHeld<'_> {
    fn drop(&mut self) {
        self.waits.has_lock.store(false, Ordering::Relaxed);
    }
}

impl IngestWaits {
    /// Counts a stop of a writer.
    pub fn count_stop(&self, wait: Duration) {
        self.stops.fetch_add(1, Ordering::Relaxed);
        self.stopped_nanos.fetch_add(nanos(wait), Ordering::Relaxed);
        self.longest_stop_nanos.fetch_max(nanos(wait), Ordering::Relaxed);
    }

    /// Called under the commit lock.
    pub fn hold_lock(&self, since: Duration) -> LockHeld<'_> {
        self.has_lock.store(true, Ordering::Relaxed);
        LockHeld { waits: self, since }
    }

    /// Takes the commit lock. Counts a wait behind an ingest.
    #[inline]
    pub fn lock<'a>(&self, commit: &'a parking_lot::Mutex<CommitState>) -> MutexGuard<'a, CommitState> {
        commit.try_lock().unwrap_or_else(|| {
            if self.has_lock.load(Ordering::Relaxed) {
                self.lock_waits.fetch_add(1, Ordering::Relaxed);
            }
            commit.lock()
        })
    }

    pub fn report(&self) -> IngestWaitReport {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(load(counter));
        IngestWaitReport {
            waits: load(&self.stops),
            total: time(&self.stopped_nanos),
            longest: time(&self.longest_stop_nanos),
            lock_held: time(&self.lock_held_nanos),
            lock_waits: load(&self.lock_waits),
        }
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}
