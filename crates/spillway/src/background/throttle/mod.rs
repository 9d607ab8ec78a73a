//! The background throttle: limits the speed of table writes by flushes and compactions, and of paced file deletion.
//!
//! A [policy] computes the rate in bytes per second. A job pays for written bytes by waiting on its own thread, off
//! every lock. The wait ends early once a caller waits for the job. The WAL, the MANIFEST, ingests and callers pay
//! nothing.
//!
//! A [`RateLimiter`] carries the user's limit, for one database or for many. Without a limit the rate is automatic:
//! while callers sync the WAL, jobs run only as fast as needed to keep up, so syncs do not queue behind them at the
//! disk. Without syncs, or when jobs are behind, nothing waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::Result;
use base::metrics::{Statistics, Ticker, tick};
use parking_lot::Mutex;
use vfs::{AppendFile, IoClass, Vfs};

mod limiter;
mod policy;

pub use limiter::RateLimiter;
pub(crate) use policy::Work;
use policy::{Load, bytes_per_s};

/// A job pays after every 1/256 s worth of bytes at its rate, at least [`PIECE_BYTES_MIN`]. The last piece of an append
/// may be twice as large.
const PIECES_PER_S: u64 = 256;
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// Interval at which a waiting job checks whether it is still limited. Also the most idle time a job can make up for.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// The WAL counts as synced by callers for this long after a sync.
const LATELY: Duration = Duration::from_secs(1);

/// Throttle of one database's jobs, with its inputs.
pub struct Throttle {
    vfs: Arc<dyn Vfs>,
    statistics: Option<Arc<Statistics>>,
    limiter: RateLimiter,
    /// End of the last sync requested by a caller, in microseconds of the vfs's clock; 0 for never.
    synced_us: AtomicU64,
    filled: Mutex<Filled>,
    /// The bits of a float: see [`Load::debt`].
    debt: AtomicU64,
    /// Bytes of tables written by flushes, and by compactions.
    written: [AtomicU64; 2],
    /// Time that jobs have waited here.
    rested_us: AtomicU64,
    /// Callers waiting for flushes, and for compactions.
    flush_waiters: AtomicUsize,
    compaction_waiters: AtomicUsize,
}

/// The memtable filled last.
#[derive(Clone, Copy, Default)]
struct Filled {
    bytes: u64,
    took: Duration,
    at: Duration,
}

/// Guard: a caller waits for jobs of one kind.
pub struct Awaited<'a>(&'a AtomicUsize);

impl<'a> Awaited<'a> {
    pub fn new(waiters: &'a AtomicUsize) -> Self {
        waiters.fetch_add(1, Ordering::Relaxed);
        Awaited(waiters)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Throttle {
    pub fn new(vfs: Arc<dyn Vfs>, statistics: Option<Arc<Statistics>>, limiter: RateLimiter) -> Arc<Throttle> {
        Arc::new(Throttle {
            vfs,
            statistics,
            limiter,
            synced_us: AtomicU64::new(0),
            filled: Mutex::default(),
            debt: AtomicU64::new(0),
            written: Default::default(),
            rested_us: AtomicU64::new(0),
            flush_waiters: AtomicUsize::new(0),
            compaction_waiters: AtomicUsize::new(0),
        })
    }

    /// Notes the end of a WAL sync requested by a caller. One store.
    pub fn record_sync(&self) {
        self.synced_us.store(micros(self.vfs.now()), Ordering::Relaxed);
    }

    /// Notes the switch of a memtable holding `bytes`.
    pub fn record_filled(&self, bytes: usize) {
        let at = self.vfs.now();
        let mut filled = self.filled.lock();
        *filled = Filled { bytes: bytes as u64, took: at.saturating_sub(filled.at), at };
    }

    /// Sets how far jobs are behind: see [`Load::debt`].
    pub fn set_debt(&self, debt: f64) {
        self.debt.store(debt.to_bits(), Ordering::Relaxed);
    }

    /// Marks the caller as waiting for flushes until the guard drops. Running flushes stop waiting.
    pub fn await_flushes(&self) -> Awaited<'_> {
        Awaited::new(&self.flush_waiters)
    }

    /// As [`await_flushes`](Self::await_flushes), for compactions.
    pub fn await_compactions(&self) -> Awaited<'_> {
        Awaited::new(&self.compaction_waiters)
    }

    /// Whether `work` is limited at present.
    pub(crate) fn limits(&self, work: Work) -> bool {
        self.rate(work).is_some()
    }

    /// Charges for completed work. Returns the wait before further work; `None` if the work is not limited.
    pub(crate) fn charge(&self, work: Work, bytes: u64) -> Option<Duration> {
        let until = self.limiter.charge(work, bytes, self.rate(work)?);
        Some(until.saturating_sub(self.limiter.clock().now()))
    }

    /// Charges for completed work, and waits.
    fn pay(&self, work: Work, bytes: u64) {
        let Some(mut left) = self.charge(work, bytes) else { return };
        let clock = self.limiter.clock();
        let start = clock.now();
        let until = start + left;
        while !left.is_zero() && self.limits(work) {
            clock.sleep(left.min(WAIT_MAX));
            left = until.saturating_sub(clock.now());
        }
        let rested_us = micros(clock.now().saturating_sub(start));
        self.rested_us.fetch_add(rested_us, Ordering::Relaxed);
        tick(&self.statistics, Ticker::BackgroundRestMicros, rested_us);
    }

    /// Bytes of tables written by flushes, and by compactions.
    pub fn written_bytes(&self) -> [u64; 2] {
        self.written.each_ref().map(|bytes| bytes.load(Ordering::Relaxed))
    }

    /// Time that jobs have waited for their rate, all jobs together.
    pub fn rested_us(&self) -> u64 {
        self.rested_us.load(Ordering::Relaxed)
    }

    /// The limit in bytes per second; `None` if there is none.
    pub fn limit_bytes_per_second(&self) -> Option<u64> {
        self.limiter.allowed().bytes_per_s
    }

    /// Changes the limit, for what is written from now on; 0: automatic.
    pub fn set_limit(&self, bytes_per_second: u64) {
        self.limiter.set_bytes_per_second(bytes_per_second);
    }

    /// Counts bytes before they are written.
    fn count_written(&self, work: Work, bytes: u64) {
        let [flushed, compacted] = &self.written;
        let written = if work == Work::Flush { flushed } else { compacted };
        written.fetch_add(bytes, Ordering::Relaxed);
        self.limiter.note(bytes);
    }

    fn rate(&self, work: Work) -> Option<u64> {
        if self.vfs.runs_inline() {
            return None;
        }
        let now = self.vfs.now();
        let waiters = match work {
            Work::Flush => &self.flush_waiters,
            Work::Compaction | Work::Deletion => &self.compaction_waiters,
        };
        let load = Load {
            has_syncs: self.has_syncs(now),
            fill_bytes_per_s: self.fill_bytes_per_s(now),
            debt: f64::from_bits(self.debt.load(Ordering::Relaxed)),
            is_awaited: waiters.load(Ordering::Relaxed) > 0,
        };
        bytes_per_s(work, self.limiter.allowed(), &load)
    }

    fn has_syncs(&self, now: Duration) -> bool {
        let synced_us = self.synced_us.load(Ordering::Relaxed);
        synced_us > 0 && micros(now).saturating_sub(synced_us) < micros(LATELY)
    }

    /// Fill rate of the last memtable; lower once the next one takes longer.
    fn fill_bytes_per_s(&self, now: Duration) -> u64 {
        let filled = *self.filled.lock();
        let took_us = micros(filled.took.max(now.saturating_sub(filled.at))).max(1);
        filled.bytes.saturating_mul(1_000_000) / took_us
    }

    /// Wraps a file so the writing job pays for its bytes.
    pub fn limit(self: &Arc<Self>, file: Box<dyn AppendFile>, class: IoClass) -> Box<dyn AppendFile> {
        let work = if class == IoClass::Flush { Work::Flush } else { Work::Compaction };
        Box::new(PaidFile { file, throttle: self.clone(), work })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A table written in pieces, each paid for.
struct PaidFile {
    file: Box<dyn AppendFile>,
    throttle: Arc<Throttle>,
    work: Work,
}

impl AppendFile for PaidFile {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()> {
        self.throttle.count_written(self.work, bytes.len() as u64);
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(rate) = self.throttle.rate(self.work) else { return self.file.append(rest, class) };
            let piece_bytes = usize::try_from((rate / PIECES_PER_S).max(PIECE_BYTES_MIN)).unwrap_or(usize::MAX);
            let len = if rest.len() / 2 < piece_bytes { rest.len() } else { piece_bytes };
            let (piece, after) = rest.split_at(len);
            self.file.append(piece, class)?;
            self.file.write_back(class);
            self.throttle.pay(self.work, len as u64);
            rest = after;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn sync(&mut self, class: IoClass) -> Result<()> {
        self.file.sync(class)
    }

    fn start_writeback(&mut self, class: IoClass) {
        self.file.start_writeback(class);
    }

    fn write_back(&mut self, class: IoClass) {
        self.file.write_back(class);
    }
}

#[cfg(test)]
mod tests;
