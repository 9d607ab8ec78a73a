//! A limit on bytes per second, which databases may share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use vfs::{RealVfs, Vfs};

use super::WAIT_MAX;
use super::policy::Allowed;

/// A limit on the bytes per second that flushes and compactions write. Clones are the same limiter: databases that are opened
/// with it share the limit.
///
/// A job that somebody waits for passes the limit by. The log, the MANIFEST, ingests and reads are not limited.
#[derive(Clone)]
pub struct RateLimiter(Arc<Shared>);

struct Shared {
    /// Of all databases.
    clock: Arc<dyn Vfs>,
    /// 0 for none.
    bytes_per_s: AtomicU64,
    is_automatic: bool,
    /// When all that was charged is paid for.
    paid_at: Mutex<Duration>,
}

impl RateLimiter {
    /// 0: no limit but beside callers that sync the log, where jobs go as fast as they must to keep up.
    pub fn new(bytes_per_second: u64) -> RateLimiter {
        RateLimiter::with(RealVfs::new(), bytes_per_second)
    }

    /// Never faster than this, and beside callers that sync no faster than jobs must go to keep up.
    pub fn automatic(bytes_per_second_max: u64) -> RateLimiter {
        RateLimiter::make(RealVfs::new(), bytes_per_second_max, true)
    }

    /// As [`new`](Self::new), by a clock.
    pub(crate) fn with(clock: Arc<dyn Vfs>, bytes_per_s: u64) -> RateLimiter {
        RateLimiter::make(clock, bytes_per_s, bytes_per_s == 0)
    }

    fn make(clock: Arc<dyn Vfs>, bytes_per_s: u64, is_automatic: bool) -> RateLimiter {
        let bytes_per_s = AtomicU64::new(bytes_per_s);
        RateLimiter(Arc::new(Shared { clock, bytes_per_s, is_automatic, paid_at: Mutex::default() }))
    }

    /// 0 for no limit.
    pub fn bytes_per_second(&self) -> u64 {
        self.0.bytes_per_s.load(Ordering::Relaxed)
    }

    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.0.bytes_per_s.store(bytes_per_second, Ordering::Relaxed);
    }

    pub(super) fn allowed(&self) -> Allowed {
        let bytes_per_s = self.bytes_per_second();
        Allowed { bytes_per_s: (bytes_per_s > 0).then_some(bytes_per_s), is_automatic: self.0.is_automatic }
    }

    /// The clock by which [`charge`](Self::charge) tells the time.
    pub(super) fn clock(&self) -> &dyn Vfs {
        &*self.0.clock
    }

    /// When all that was charged is paid for, these bytes included. Charges of all jobs stand in one row.
    pub(super) fn charge(&self, bytes: u64, bytes_per_s: u64) -> Duration {
        let cost = Duration::from_secs_f64(bytes as f64 / bytes_per_s.max(1) as f64);
        let mut paid_at = self.0.paid_at.lock();
        // What a sleep took too long is made up for.
        *paid_at = (*paid_at).max(self.0.clock.now().saturating_sub(WAIT_MAX)) + cost;
        *paid_at
    }
}

impl std::fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimiter").field("bytes_per_second", &self.bytes_per_second()).finish_non_exhaustive()
    }
}
