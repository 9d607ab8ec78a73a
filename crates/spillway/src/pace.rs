//! Lets syncs of the log go before the tables that background jobs make.
//!
//! Beside a job that goes as fast as it can, a sync of 0.2 ms takes from 2 to 20: at the disk it stands behind what the job
//! wrote, and on a processor whoever waits for it stands behind the job until the kernel's next tick. So while the log is
//! being synced, jobs work in short bursts and rest for some times as long after each, and their tables go to the disk in
//! small pieces of which each is waited for. Where flushes or compactions fall behind nothing rests: back-pressure would
//! cost writers more than that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::Result;
use base::metrics::{Statistics, Ticker, tick};
use vfs::{AppendFile, IoClass, Vfs};

/// Work between two rests: a good deal less than a tick of the kernel, and a good deal more than a sleep costs.
const BURST: Duration = Duration::from_micros(300);

/// What the disk is given at once, but for the last, which may be twice as large: it takes about as long as a burst.
const PIECE_BYTES: usize = 64 << 10;

/// No rest is longer, however long the burst before it took.
const REST_MAX: Duration = Duration::from_millis(10);

/// The log counts as being synced for so long after a sync of it.
const SYNCED_LATELY: Duration = Duration::from_millis(100);

/// Whether background jobs are to go gently.
pub struct Pace {
    vfs: Arc<dyn Vfs>,
    statistics: Option<Arc<Statistics>>,
    is_on: bool,
    /// When a sync of the log ended last, in microseconds of the vfs's clock; 0 for never.
    log_synced_us: AtomicU64,
    is_behind: AtomicBool,
}

impl Pace {
    pub fn new(vfs: Arc<dyn Vfs>, statistics: Option<Arc<Statistics>>, is_on: bool) -> Arc<Pace> {
        let is_on = is_on && !vfs.runs_inline();
        let (log_synced_us, is_behind) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Pace { vfs, statistics, is_on, log_synced_us, is_behind })
    }

    /// Notes that a sync of the log ended. One store.
    pub fn note_log_sync(&self, now: Duration) {
        self.log_synced_us.store(micros(now), Ordering::Relaxed);
    }

    /// Says whether flushes or compactions have fallen behind.
    pub fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Ordering::Relaxed);
    }

    /// For a job of that class, which somebody may be waiting for.
    pub fn pacer(self: &Arc<Self>, class: IoClass, is_waited_for: bool) -> Arc<Pacer> {
        let rests_per_burst = match class {
            _ if is_waited_for || !self.is_on => 0,
            IoClass::Compaction => 2,
            // Memory is freed by it.
            _ => 1,
        };
        Arc::new(Pacer { pace: self.clone(), rests_per_burst, rested_us: AtomicU64::new(micros(self.vfs.now())) })
    }

    fn is_wanted(&self, now_us: u64) -> bool {
        let synced_us = self.log_synced_us.load(Ordering::Relaxed);
        let is_lately = synced_us > 0 && now_us.saturating_sub(synced_us) < micros(SYNCED_LATELY);
        is_lately && !self.is_behind.load(Ordering::Relaxed)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// One thread's part in a job.
pub struct Pacer {
    pace: Arc<Pace>,
    /// A rest is so many times as long as the burst before it.
    rests_per_burst: u32,
    /// When the last rest ended.
    rested_us: AtomicU64,
}

impl Pacer {
    /// Rests where a burst is over. To be called more often than that; the price is a look at the clock.
    pub fn breathe(&self) {
        if self.rests_per_burst > 0 {
            self.rest_after(BURST);
        }
    }

    /// Has what is appended to the file keep the pace.
    pub fn keep(self: &Arc<Self>, file: Box<dyn AppendFile>) -> Box<dyn AppendFile> {
        match self.rests_per_burst {
            0 => file,
            _ => Box::new(PacedFile { file, pacer: self.clone() }),
        }
    }

    fn rest_after(&self, burst: Duration) {
        let vfs = &self.pace.vfs;
        let now_us = micros(vfs.now());
        let worked_us = now_us.saturating_sub(self.rested_us.load(Ordering::Relaxed));
        if worked_us < micros(burst) {
            return;
        }
        let mut rested_us = now_us;
        if self.pace.is_wanted(now_us) {
            vfs.sleep((Duration::from_micros(worked_us) * self.rests_per_burst).min(REST_MAX));
            rested_us = micros(vfs.now());
            tick(&self.pace.statistics, Ticker::BackgroundRestMicros, rested_us.saturating_sub(now_us));
        }
        self.rested_us.store(rested_us, Ordering::Relaxed);
    }
}

struct PacedFile {
    file: Box<dyn AppendFile>,
    pacer: Arc<Pacer>,
}

impl AppendFile for PacedFile {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()> {
        let pace = self.pacer.pace.clone();
        let mut rest = bytes;
        while !rest.is_empty() {
            if !pace.is_wanted(micros(pace.vfs.now())) {
                return self.file.append(rest, class);
            }
            let len = if rest.len() < 2 * PIECE_BYTES { rest.len() } else { PIECE_BYTES };
            let (piece, after) = rest.split_at(len);
            self.file.append(piece, class)?;
            self.file.write_back(class);
            self.pacer.rest_after(Duration::ZERO);
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
