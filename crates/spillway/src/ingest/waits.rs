//! How long writers waited because of ingests: in mode `blocking` and `flush-first` at the gate, in mode `direct` at a
//! latch, and in every mode, at the most, from when the ingest took the commit lock until it was in the log: whoever is
//! numbered behind it is not visible before.
//!
//! Not counted: the state lock, which a writer takes where it replaces a full memtable, and the ingest that joins the queues
//! a little longer than the commit lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What writers waited for ingests, since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestWaitReport {
    /// Writes that an ingest stopped: at a latch or the gate. Those behind its numbers are not counted here.
    pub waits: u64,
    /// How long those waited together.
    pub total: Duration,
    /// The longest that any writer can have waited because of one ingest, behind its numbers or at the commit lock included.
    pub longest: Duration,
}

/// The counters behind it.
#[derive(Default)]
pub(crate) struct IngestWaits {
    waits: AtomicU64,
    total_nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl IngestWaits {
    /// A writer waited so long.
    pub fn count(&self, wait: Duration) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.total_nanos.fetch_add(nanos(wait), Ordering::Relaxed);
        self.bound(wait);
    }

    /// Writers may have waited as long as that, and no longer: the commit lock was held, or numbers were not visible.
    pub fn bound(&self, wait: Duration) {
        self.longest_nanos.fetch_max(nanos(wait), Ordering::Relaxed);
    }

    pub fn report(&self) -> IngestWaitReport {
        IngestWaitReport {
            waits: self.waits.load(Ordering::Relaxed),
            total: Duration::from_nanos(self.total_nanos.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(self.longest_nanos.load(Ordering::Relaxed)),
        }
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}
