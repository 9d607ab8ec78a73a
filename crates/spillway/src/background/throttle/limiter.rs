//! A limit on bytes per second; databases may share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use vfs::{RealVfs, Vfs};

use super::WAIT_MAX;
use super::policy::{Allowed, Work};

/// A limit on the bytes per second written by flushes and compactions. Clones are the same limiter: databases opened
/// with it share the limit.
///
/// Jobs awaited by a caller ignore the limit. The WAL, the MANIFEST, ingests and reads are not limited.
#[derive(Clone)]
pub struct RateLimiter(Arc<Shared>);

struct Shared {
    /// Common clock of all databases.
    clock: Arc<dyn Vfs>,
    /// 0 for no limit.
    bytes_per_s: AtomicU64,
    /// The limit is a maximum of an automatic rate.
    is_maximum: bool,
    /// Time at which all charges are paid for.
    paid_at: Mutex<Duration>,
    /// The same of freed bytes under a fixed limit, which is on bytes written.
    freed_at: Mutex<Duration>,
    /// Bytes that passed, limited or not.
    bytes: AtomicU64,
    requests: AtomicU64,
}

impl RateLimiter {
    /// A fixed limit. 0: automatic, without a maximum: while callers sync the WAL, jobs run only as fast as needed to
    /// keep up; otherwise they are not limited.
    pub fn new(bytes_per_second: u64) -> RateLimiter {
        RateLimiter::with(RealVfs::new(), bytes_per_second)
    }

    /// A fixed maximum. While callers sync the WAL, jobs also run only as fast as needed to keep up.
    pub fn automatic(bytes_per_second_max: u64) -> RateLimiter {
        RateLimiter::make(RealVfs::new(), bytes_per_second_max, true)
    }

    /// As [`new`](Self::new), with a given clock.
    pub(crate) fn with(clock: Arc<dyn Vfs>, bytes_per_s: u64) -> RateLimiter {
        RateLimiter::make(clock, bytes_per_s, false)
    }

    fn make(clock: Arc<dyn Vfs>, bytes_per_s: u64, is_maximum: bool) -> RateLimiter {
        let bytes_per_s = AtomicU64::new(bytes_per_s);
        let (bytes, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let (paid_at, freed_at) = Default::default();
        RateLimiter(Arc::new(Shared { clock, bytes_per_s, is_maximum, paid_at, freed_at, bytes, requests }))
    }

    /// 0 for an automatic rate without a maximum.
    pub fn bytes_per_second(&self) -> u64 {
        self.0.bytes_per_s.load(Ordering::Relaxed)
    }

    /// Changes the limit, for what is written from now on. 0: as of [`new`](Self::new).
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.0.bytes_per_s.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Bytes that passed so far, of all databases.
    pub fn total_bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Writes that passed so far.
    pub fn total_requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Lets `bytes` of the caller's own pass, and waits as long as the limit says.
    pub fn request(&self, bytes: u64) {
        self.note(bytes);
        let bytes_per_s = self.bytes_per_second();
        if bytes_per_s > 0 {
            let until = self.charge(Work::Compaction, bytes, bytes_per_s);
            self.0.clock.sleep(until.saturating_sub(self.0.clock.now()));
        }
    }

    /// Counts what passes.
    pub(super) fn note(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn allowed(&self) -> Allowed {
        let bytes_per_s = Some(self.bytes_per_second()).filter(|limit| *limit > 0);
        Allowed { bytes_per_s, is_automatic: self.0.is_maximum || bytes_per_s.is_none() }
    }

    /// The clock of [`charge`](Self::charge).
    pub(super) fn clock(&self) -> &dyn Vfs {
        &*self.0.clock
    }

    /// Charges `bytes` and returns the time at which all charges are paid for. Charges of all jobs queue up. An automatic
    /// rate is of the disk's work, which freeing is too; of a fixed limit it takes nothing.
    pub(super) fn charge(&self, work: Work, bytes: u64, bytes_per_s: u64) -> Duration {
        let cost = Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64);
        let is_apart = work == Work::Deletion && !self.allowed().is_automatic;
        let mut paid_at = if is_apart { self.0.freed_at.lock() } else { self.0.paid_at.lock() };
        // Credit for unused time, such as sleeping too long.
        *paid_at = (*paid_at).max(self.0.clock.now().saturating_sub(WAIT_MAX)) + cost;
        *paid_at
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("bytes_per_second", &self.bytes_per_second()).finish_non_exhaustive()
    }
}
