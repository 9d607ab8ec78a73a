//! Lets writers, and syncs of the log, go before the tables that background jobs make.
//!
//! Beside a job that goes as fast as it can, a sync of 0.2 ms takes from 2 to 20: at the disk it stands behind what the job
//! wrote, and on a processor whoever waits for it, or wakes to write, stands behind the job until the kernel's next tick. So
//! beside writers jobs work in short bursts, in which they yield now and then, and rest for some times as long after each, and
//! their tables go to the disk in small pieces of which each is waited for. The less waits to be compacted beside what is being
//! compacted, the longer compactions rest: the share of the disk's time that they take is the share of syncs that meet them.
//!
//! Where flushes or compactions fall behind nothing rests, though it still yields: back-pressure would cost writers more than that. Nor does anything
//! beside writers that fill one memtable after the other and do not sync: they leave no processor idle, and will wait for
//! flushes. Nor does a job that somebody waits for ([`Pace::await_flushes`]), be it from the middle of it on: that may be a
//! writer at a full queue, or an ingest that keeps all writers out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::metrics::{Statistics, Ticker, tick};
use base::{Result, SeqNo};
use vfs::{AppendFile, IoClass, Vfs};

/// Work between two rests: a good deal less than a tick of the kernel, and a good deal more than a sleep costs.
const BURST: Duration = Duration::from_micros(300);

/// What the disk is given at once, but for the last, which may be twice as large: it takes about as long as a burst.
const PIECE_BYTES: usize = 64 << 10;

/// A compaction rests so many times as long as each burst took, where nothing else waits to be compacted; and where as much
/// waits as may while it rests at all.
const COMPACTION_RESTS_MOST: u32 = 8;
const COMPACTION_RESTS_LEAST: u32 = 2;

/// A flush, which frees memory, rests so many times as long.
const FLUSH_RESTS: u32 = 1;

/// No rest is longer, however long the burst before it took.
const REST_MAX: Duration = Duration::from_millis(10);

/// The log counts as being synced for so long after a sync of it.
const SYNCED_LATELY: Duration = Duration::from_millis(100);

/// There are writers for so long after upkeep saw that something was written: a slow one takes a while to use up what makes
/// upkeep look.
const WRITTEN_LATELY: Duration = Duration::from_secs(1);

/// Memtables fill up fast where two do in so short a time; from then on for as long.
const FILLS_FAST: Duration = Duration::from_secs(5);

/// Whether background jobs are to go gently.
pub struct Pace {
    vfs: Arc<dyn Vfs>,
    statistics: Option<Arc<Statistics>>,
    is_on: bool,
    /// When a sync of the log that a caller asked for ended last, in microseconds of the vfs's clock; 0 for never.
    log_synced_us: AtomicU64,
    /// The visible number that was noted last, and when it was another than before; likewise.
    seen: AtomicU64,
    written_us: AtomicU64,
    /// When a memtable was replaced last, be it full or to be flushed at once; likewise.
    replaced_us: AtomicU64,
    /// Until when memtables count as filling up fast.
    fills_fast_until_us: AtomicU64,
    is_behind: AtomicBool,
    /// How many times as long as it worked a compaction rests.
    compaction_rests: AtomicU32,
    /// Callers that wait for flushes, and for compactions.
    flush_waiters: AtomicUsize,
    compaction_waiters: AtomicUsize,
}

/// Somebody waits for jobs of a class as long as it lives.
pub struct Awaited<'a>(&'a AtomicUsize);

impl<'a> Awaited<'a> {
    fn new(waiters: &'a AtomicUsize) -> Self {
        waiters.fetch_add(1, Ordering::Relaxed);
        Awaited(waiters)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pace {
    pub fn new(vfs: Arc<dyn Vfs>, statistics: Option<Arc<Statistics>>, is_on: bool) -> Arc<Pace> {
        let is_on = is_on && !vfs.runs_inline();
        Arc::new(Pace {
            vfs,
            statistics,
            is_on,
            log_synced_us: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            written_us: AtomicU64::new(0),
            replaced_us: AtomicU64::new(0),
            fills_fast_until_us: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
            compaction_rests: AtomicU32::new(COMPACTION_RESTS_MOST),
            flush_waiters: AtomicUsize::new(0),
            compaction_waiters: AtomicUsize::new(0),
        })
    }

    /// Notes that a sync of the log ended which a caller asked for. One store.
    pub fn note_log_sync(&self, now: Duration) {
        self.log_synced_us.store(micros(now), Ordering::Relaxed);
    }

    /// Notes how far the database is written: where that is another number than the last time, there are writers.
    pub fn note_visible(&self, visible: SeqNo, now: Duration) {
        if self.seen.swap(visible.0, Ordering::Relaxed) != visible.0 {
            self.written_us.store(micros(now), Ordering::Relaxed);
        }
    }

    /// Notes that a memtable was replaced, other than by an ingest.
    pub fn note_replaced(&self, now: Duration) {
        let before_us = self.replaced_us.swap(micros(now), Ordering::Relaxed);
        if is_lately(before_us, micros(now), FILLS_FAST) {
            self.fills_fast_until_us.store(micros(now + FILLS_FAST), Ordering::Relaxed);
        }
    }

    /// Says whether flushes or compactions have fallen behind.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// Says how much waits to be compacted beside what is being compacted: from 0 on, 1 for as much as keeps compactions from
    /// resting longer than they must.
    pub fn set_backlog(&self, backlog: f64) {
        let longer = f64::from(COMPACTION_RESTS_MOST - COMPACTION_RESTS_LEAST) * (1.0 - backlog.clamp(0.0, 1.0));
        self.compaction_rests.store(COMPACTION_RESTS_LEAST + longer.round() as u32, Ordering::Relaxed);
    }

    /// Says that the caller waits for flushes. Those that run go on without a rest.
    pub fn await_flushes(&self) -> Awaited<'_> {
        Awaited::new(&self.flush_waiters)
    }

    /// As [`await_flushes`](Self::await_flushes), for compactions.
    pub fn await_compactions(&self) -> Awaited<'_> {
        Awaited::new(&self.compaction_waiters)
    }

    /// Whether what keeps the disk from syncs of the log is to come in small pieces.
    pub fn spares_the_disk(&self) -> bool {
        self.is_on && self.is_beside_syncs(micros(self.vfs.now()))
    }

    /// Lets a writer that woke on this processor go first; for whoever has been at work for some time. The price is a look at
    /// the clock, and beside writers a call of the kernel.
    pub fn let_writers_go_first(&self) {
        if self.is_on && self.is_beside_writers(micros(self.vfs.now())) {
            self.vfs.yield_now();
        }
    }

    /// For a job of that class.
    pub fn pacer(self: &Arc<Self>, class: IoClass) -> Arc<Pacer> {
        Arc::new(Pacer { pace: self.clone(), class, rested_us: AtomicU64::new(micros(self.vfs.now())) })
    }

    /// A rest of a job of that class is so many times as long as the burst before it.
    fn rests_per_burst(&self, class: IoClass) -> u32 {
        match class {
            IoClass::Compaction => self.compaction_rests.load(Ordering::Relaxed),
            _ => FLUSH_RESTS,
        }
    }

    fn is_wanted(&self, class: IoClass, now_us: u64) -> bool {
        let waiters = match class {
            IoClass::Compaction => &self.compaction_waiters,
            _ => &self.flush_waiters,
        };
        self.is_beside_writers(now_us)
            && !self.is_behind.load(Ordering::Relaxed)
            && waiters.load(Ordering::Relaxed) == 0
    }

    fn is_beside_writers(&self, now_us: u64) -> bool {
        self.is_beside_syncs(now_us) || self.is_beside_slow_writers(now_us)
    }

    fn is_beside_syncs(&self, now_us: u64) -> bool {
        is_lately(self.log_synced_us.load(Ordering::Relaxed), now_us, SYNCED_LATELY)
    }

    fn is_beside_slow_writers(&self, now_us: u64) -> bool {
        is_lately(self.written_us.load(Ordering::Relaxed), now_us, WRITTEN_LATELY)
            && now_us >= self.fills_fast_until_us.load(Ordering::Relaxed)
    }
}

/// Whether what happened at `then_us`, 0 for never, is no longer ago than that.
fn is_lately(then_us: u64, now_us: u64, lately: Duration) -> bool {
    then_us > 0 && now_us.saturating_sub(then_us) < micros(lately)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// One thread's part in a job.
pub struct Pacer {
    pace: Arc<Pace>,
    class: IoClass,
    /// When the last rest ended.
    rested_us: AtomicU64,
}

impl Pacer {
    /// Rests where a burst is over, and else lets whoever woke on this processor go first: what is behind, too, since that
    /// takes no more time than others have work for. To be called more often than bursts end; the price is a look at the
    /// clock, and beside writers a call of the kernel.
    pub fn breathe(&self) {
        if self.pace.is_on && !self.rest_after(BURST) {
            self.pace.let_writers_go_first();
        }
    }

    /// Has what is appended to the file keep the pace.
    pub fn keep(self: &Arc<Self>, file: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        match self.pace.is_on {
            false => file,
            true => Box::new(PacedFile { file, pacer: self.clone() }),
        }
    }

    /// Rests where so much work is done, if a rest is wanted. False where there was none.
    fn rest_after(&self, burst: Duration) -> bool {
        let vfs = &self.pace.vfs;
        let now_us = micros(vfs.now());
        let worked_us = now_us.saturating_sub(self.rested_us.load(Ordering::Relaxed));
        if worked_us < micros(burst) {
            return false;
        }
        let mut rested_us = now_us;
        let is_wanted = self.pace.is_wanted(self.class, now_us);
        if is_wanted {
            let rests = self.pace.rests_per_burst(self.class);
            vfs.sleep((Duration::from_micros(worked_us) * rests).min(REST_MAX));
            rested_us = micros(vfs.now());
            tick(&self.pace.statistics, Ticker::BackgroundRestMicros, rested_us.saturating_sub(now_us));
        }
        self.rested_us.store(rested_us, Ordering::Relaxed);
        is_wanted
    }
}

struct PacedFile {
    file: Box<dyn AppendFile>,
    pacer: Arc<Pacer>,
}

impl AppendFile for PacedFile {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()> {
        let pacer = self.pacer.clone();
        let mut rest = bytes;
        while !rest.is_empty() {
            if !pacer.pace.is_wanted(pacer.class, micros(pacer.pace.vfs.now())) {
                return self.file.append(rest, class);
            }
            let len = if rest.len() < 2 * PIECE_BYTES { rest.len() } else { PIECE_BYTES };
            let (piece, after) = rest.split_at(len);
            self.file.append(piece, class)?;
            self.file.write_back(class);
            pacer.rest_after(Duration::ZERO);
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
