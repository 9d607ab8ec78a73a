//! Back-pressure: while compactions are behind, each writer is delayed before it takes a number (C3, C4). The delay is
//! a smooth function of the debt. Writers stop only at the stop triggers. Every wait is counted by its cause, while it lasts and when it ends; waits for ingests
//! also in `IngestWaits`: at the gate in modes `blocking` and `flush-first`, at a latch in mode `direct`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use base::metrics::{Histogram, Statistics, Ticker};
use base::options::{CompactionStyle, FamilyOptions};
use base::{Error, ErrorKind};
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::{Vfs, ticks};

use crate::version::version::Version;

/// Why a writer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
#[non_exhaustive]
pub enum StallCause {
    /// All write buffers are full and none is flushed yet.
    Memtables,
    /// All memtables together are at the memory limit.
    Memory,
    /// Level 0 has too many tables.
    Level0,
    /// Compactions are too many bytes behind.
    PendingCompaction,
    /// The next memtable was not made ahead in time.
    MemtableSwitch,
    /// The next WAL was not made ahead in time.
    LogSwitch,
    /// Too many writes are in flight.
    Pipeline,
    /// An overlapping ingest holds a latch or the gate.
    Ingest,
}

impl StallCause {
    /// All causes, in the order of reports.
    pub const ALL: [StallCause; 8] = [
        StallCause::Memtables,
        StallCause::Memory,
        StallCause::Level0,
        StallCause::PendingCompaction,
        StallCause::MemtableSwitch,
        StallCause::LogSwitch,
        StallCause::Pipeline,
        StallCause::Ingest,
    ];

    /// The name in events, properties and messages.
    pub fn name(self) -> &'static str {
        match self {
            StallCause::Memtables => "memtable-limit",
            StallCause::Memory => "memory-limit",
            StallCause::Level0 => "l0-file-count",
            StallCause::PendingCompaction => "pending-compaction-bytes",
            StallCause::MemtableSwitch => "memtable-switch",
            StallCause::LogSwitch => "log-switch",
            StallCause::Pipeline => "pipeline-full",
            StallCause::Ingest => "ingest-latch",
        }
    }

    fn ticker(self) -> Ticker {
        match self {
            StallCause::Memtables => Ticker::StallMemtablesMicros,
            StallCause::Memory => Ticker::StallMemoryMicros,
            StallCause::Level0 => Ticker::StallL0Micros,
            StallCause::PendingCompaction => Ticker::StallPendingCompactionMicros,
            StallCause::MemtableSwitch | StallCause::LogSwitch => Ticker::StallSpareMicros,
            StallCause::Pipeline => Ticker::StallPipelineMicros,
            StallCause::Ingest => Ticker::StallIngestMicros,
        }
    }
}

/// How far behind compactions are: 0 before the slow-down trigger, 1 at the stop trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Debt {
    /// From 0 to 1.
    pub level: f64,
    /// The cause.
    pub cause: StallCause,
}

impl Debt {
    /// No debt.
    pub const NONE: Debt = Debt { level: 0.0, cause: StallCause::Level0 };

    /// The debt of one family.
    pub fn of(version: &Version, pending_bytes: u64, options: &FamilyOptions) -> Debt {
        if options.disable_auto_compactions {
            return Debt::NONE;
        }
        let files = match options.compaction_style {
            CompactionStyle::Universal => version.sorted_runs() as f64,
            CompactionStyle::Fifo => 0.0,
            _ => version.level(0).len() as f64,
        };
        let level0 = Debt {
            level: between(
                files,
                f64::from(options.level0_slowdown_writes_trigger),
                f64::from(options.level0_stop_writes_trigger),
            ),
            cause: StallCause::Level0,
        };
        let pending = Debt {
            level: between(
                pending_bytes as f64,
                limit(options.soft_pending_compaction_bytes_limit),
                limit(options.hard_pending_compaction_bytes_limit),
            ),
            cause: StallCause::PendingCompaction,
        };
        level0.max(pending)
    }

    /// The larger debt.
    pub fn max(self, other: Debt) -> Debt {
        if other.level > self.level { other } else { self }
    }
}

/// A trigger of 0 bytes means never.
fn limit(bytes: u64) -> f64 {
    if bytes == 0 { -1.0 } else { bytes as f64 }
}

/// Position of `x` between two triggers, 0 to 1. A negative trigger means never.
fn between(x: f64, slow: f64, stop: f64) -> f64 {
    let never = f64::INFINITY;
    let slow = if slow < 0.0 { never } else { slow };
    let stop = if stop < 0.0 { never } else { stop };
    if x >= stop {
        return 1.0;
    }
    if x < slow {
        return 0.0;
    }
    if stop.is_infinite() {
        return SLOWED_MIN;
    }
    // At the slow-down trigger the debt is small and positive; it reaches 1 only at the stop trigger.
    SLOWED_MIN + (1.0 - 2.0 * SLOWED_MIN) * (x - slow) / (stop - slow).max(1.0)
}

/// The least debt level with a delay.
const SLOWED_MIN: f64 = 0.01;

/// Rate at the slow-down trigger if `delayed_write_rate` is 0.
const DELAYED_BYTES_PER_SECOND: f64 = (16 << 20) as f64;

/// Share of the rate left just before the stop trigger.
const RATE_LEFT_MIN: f64 = 0.05;

#[derive(Default)]
struct Counter {
    waits: AtomicU64,
    /// Waits of stopped writers, included in `waits`.
    stops: AtomicU64,
    micros: AtomicU64,
    /// Waits under way by their starts, each with an id. Waits are rare and long: a lock, and a tree for the oldest one.
    under_way: Mutex<BTreeSet<(Duration, u64)>>,
}

/// A wait of a writer under way. It is counted when it is dropped, also if it ends by an error.
pub(crate) struct Wait<'a> {
    stall: &'a Stall,
    cause: StallCause,
    start: Duration,
    id: u64,
}

impl Wait<'_> {
    /// Since its begin.
    pub fn age(&self) -> Duration {
        self.stall.vfs.now().saturating_sub(self.start)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(counter) = self.stall.counters.get(self.cause as usize) {
            counter.under_way.lock().remove(&(self.start, self.id));
        }
        self.stall.count(self.cause, self.age().as_micros() as u64);
    }
}

/// Gate for every writer: one atomic load while nothing is behind.
pub(crate) struct Stall {
    vfs: Arc<dyn Vfs>,
    statistics: Option<Arc<Statistics>>,
    /// Debt of the family furthest behind, in millionths, `STOPPED` at the stop trigger; and the bit `SCARCE`.
    debt: AtomicU32,
    cause: AtomicU32,
    /// Bytes per second at the slow-down trigger; 0 for the default.
    rate: AtomicU64,
    /// When the next delayed write may go, in microseconds of the vfs's clock. Each delayed writer advances it by its
    /// own bytes, so all writers together keep the rate.
    next_us: AtomicU64,
    counters: [Counter; StallCause::ALL.len()],
    waits_begun: AtomicU64,
    ended: AtomicBool,
    sleep: Mutex<()>,
    changed: Condvar,
}

const STOPPED: u32 = 1_000_000;

/// A bit of `debt`: the disk is full, and only deletions are written.
const SCARCE: u32 = 1 << 31;

impl Stall {
    pub fn new(vfs: Arc<dyn Vfs>, statistics: Option<Arc<Statistics>>, delayed_write_rate: u64) -> Self {
        Stall {
            vfs,
            statistics,
            debt: AtomicU32::new(0),
            cause: AtomicU32::new(0),
            rate: AtomicU64::new(delayed_write_rate),
            next_us: AtomicU64::new(0),
            counters: Default::default(),
            waits_begun: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            sleep: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Sets the debt and wakes stopped writers. Returns the debt before.
    pub fn set_debt(&self, debt: Debt) -> Debt {
        let before = self.debt();
        self.cause.store(debt.cause as u32, Ordering::Relaxed);
        let level = (debt.level * f64::from(STOPPED)) as u32;
        let _ = self.debt.fetch_update(Ordering::AcqRel, Ordering::Acquire, |debt| Some(debt & SCARCE | level));
        drop(self.sleep.lock());
        self.changed.notify_all();
        before
    }

    /// Sends every write through the checks for a full disk, or no longer.
    pub fn set_scarce(&self, is_scarce: bool) {
        let bit = if is_scarce { SCARCE } else { 0 };
        let _ = self.debt.fetch_update(Ordering::AcqRel, Ordering::Acquire, |debt| Some(debt & !SCARCE | bit));
    }

    pub fn debt(&self) -> Debt {
        let level = f64::from(self.level()) / f64::from(STOPPED);
        let cause = StallCause::ALL.get(self.cause.load(Ordering::Relaxed) as usize);
        Debt { level, cause: cause.copied().unwrap_or(StallCause::Level0) }
    }

    fn level(&self) -> u32 {
        self.debt.load(Ordering::Acquire) & !SCARCE
    }

    /// Whether writes go without delay and without checks for a full disk.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.debt.load(Ordering::Acquire) == 0
    }

    pub fn is_stopped(&self) -> bool {
        self.level() >= STOPPED
    }

    /// Rate of all writers together. `None` if writers are not delayed, or are stopped.
    pub fn delayed_bytes_per_second(&self) -> Option<u64> {
        let level = self.debt().level;
        (level > 0.0 && !self.is_stopped()).then(|| self.rate_at(level) as u64)
    }

    /// Changes `delayed_write_rate`.
    pub fn set_rate(&self, delayed_write_rate: u64) {
        self.rate.store(delayed_write_rate, Ordering::Relaxed);
    }

    fn rate_at(&self, debt: f64) -> f64 {
        let rate = match self.rate.load(Ordering::Relaxed) {
            0 => DELAYED_BYTES_PER_SECOND,
            rate => rate as f64,
        };
        rate * (1.0 - debt).max(RATE_LEFT_MIN)
    }

    /// Releases every waiting writer: the database closes or became read-only.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        drop(self.sleep.lock());
        self.changed.notify_all();
    }

    /// Undoes [`end`](Self::end).
    pub fn begin(&self) {
        self.ended.store(false, Ordering::Release);
    }

    /// Delays a write of `bytes` according to the debt.
    pub fn delay(&self, bytes: usize) {
        let debt = self.debt();
        if debt.level <= 0.0 || self.is_stopped() {
            return;
        }
        let rate = self.rate_at(debt.level);
        let cost_us = (bytes as f64 * 1e6 / rate).ceil() as u64;
        let now_us = self.vfs.now().as_micros() as u64;
        let mut free_us = now_us;
        let _ = self.next_us.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            free_us = next.max(now_us);
            Some(free_us + cost_us)
        });
        let wait_us = free_us.saturating_sub(now_us);
        // A shorter sleep costs more than it delays. A later writer sleeps for it.
        const SLEEP_MIN_US: u64 = 500;
        if wait_us >= SLEEP_MIN_US {
            let _wait = self.wait(debt.cause);
            self.sleep_while_behind(Duration::from_micros(wait_us));
        }
    }

    /// Sleeps in steps, so a long sleep ends soon after the debt is gone or the database closes.
    fn sleep_while_behind(&self, mut left: Duration) {
        const STEP_MAX: Duration = Duration::from_millis(20);
        while !left.is_zero() && !self.ended.load(Ordering::Acquire) && self.debt().level > 0.0 {
            let step = left.min(STEP_MAX);
            self.vfs.sleep(step);
            left -= step;
        }
    }

    /// Waits while writers are stopped.
    pub fn wait_while_stopped(&self) {
        if !self.is_stopped() {
            return;
        }
        let cause = self.debt().cause;
        let _wait = self.wait(cause);
        let mut guard = self.sleep.lock();
        while self.is_stopped() && !self.ended.load(Ordering::Acquire) {
            self.changed.wait(&mut guard);
        }
        drop(guard);
        if let Some(counter) = self.counters.get(cause as usize) {
            counter.stops.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a wait.
    pub fn wait(&self, cause: StallCause) -> Wait<'_> {
        let (start, id) = (self.vfs.now(), self.waits_begun.fetch_add(1, Ordering::Relaxed));
        if let Some(counter) = self.counters.get(cause as usize) {
            counter.under_way.lock().insert((start, id));
        }
        Wait { stall: self, cause, start, id }
    }

    /// Writers that wait for a cause now, and how long the first of them has.
    pub fn under_way(&self, cause: StallCause, now: Duration) -> (u64, Duration) {
        let Some(counter) = self.counters.get(cause as usize) else { return (0, Duration::ZERO) };
        let waits = counter.under_way.lock();
        let longest = waits.first().map_or(Duration::ZERO, |(start, _)| now.saturating_sub(*start));
        (waits.len() as u64, longest)
    }

    fn count(&self, cause: StallCause, micros: u64) {
        count_wait(cause, micros);
        if let Some(counter) = self.counters.get(cause as usize) {
            counter.waits.fetch_add(1, Ordering::Relaxed);
            counter.micros.fetch_add(micros, Ordering::Relaxed);
        }
        if let Some(statistics) = &self.statistics {
            statistics.add(Ticker::StallMicros, micros);
            statistics.add(cause.ticker(), micros);
            statistics.record(Histogram::WriteStall, micros);
        }
    }

    /// Counts of delays and of stops for a cause. Only compaction debt delays writers; every other wait counts as a
    /// stop.
    pub fn delays_and_stops(&self, cause: StallCause) -> (u64, u64) {
        let Some(counter) = self.counters.get(cause as usize) else { return (0, 0) };
        let waits = counter.waits.load(Ordering::Relaxed);
        match cause {
            StallCause::Level0 | StallCause::PendingCompaction => {
                let stops = counter.stops.load(Ordering::Relaxed).min(waits);
                (waits - stops, stops)
            }
            _ => (0, waits),
        }
    }

    /// Waits and microseconds waited, by cause, since the database was opened.
    pub fn counts(&self) -> Vec<(StallCause, u64, u64)> {
        let read = |(cause, counter): (StallCause, &Counter)| {
            (cause, counter.waits.load(Ordering::Relaxed), counter.micros.load(Ordering::Relaxed))
        };
        StallCause::ALL.into_iter().zip(&self.counters).map(read).collect()
    }
}

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
    pub fn lock<'a, T>(&self, commit: &'a Mutex<T>) -> MutexGuard<'a, T> {
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

/// Error of a `no_slowdown` write under back-pressure.
pub(crate) fn stalled() -> Error {
    Error::new(ErrorKind::Busy, "the write would have to wait for flushes or compactions (no_slowdown was asked for)")
}

/// Waits of one write that are kept.
const WAITS_MAX: usize = 32;

thread_local! {
    /// The thread's latest waits: cause, microseconds, and the ticks at their end.
    static WAITS: RefCell<Vec<(StallCause, u64, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Notes a wait of this thread. Called at its end.
pub(crate) fn count_wait(cause: StallCause, micros: u64) {
    let _ = WAITS.try_with(|waits| {
        let mut waits = waits.borrow_mut();
        if waits.len() >= WAITS_MAX {
            waits.remove(0);
        }
        waits.push((cause, micros, ticks()));
    });
}

/// Waits of this thread that ended at `begun` or later, in ticks.
pub(crate) fn waits_since(begun: u64) -> Vec<(StallCause, u64, u64)> {
    let waits = WAITS.try_with(|waits| std::mem::take(&mut *waits.borrow_mut())).unwrap_or_default();
    waits.into_iter().filter(|(_, _, end)| *end >= begun).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seen_while_it_lasts_and_counted_when_it_ends() {
        let vfs = vfs::MemoryVfs::new(1);
        let stall = Stall::new(vfs.clone(), None, 0);
        let (first, second) = (stall.wait(StallCause::Memory), stall.wait(StallCause::Memory));
        let seen = || stall.under_way(StallCause::Memory, vfs.now());
        let (waiting, longest) = seen();
        assert!(waiting == 2 && longest >= Duration::from_micros(2), "{longest:?}");
        assert_eq!(stall.delays_and_stops(StallCause::Memory), (0, 0));
        let started = second.start;
        drop(first);
        let (waiting, age) = seen();
        assert!(waiting == 1 && age <= vfs.now() - started, "the oldest has gone: {age:?}");
        let failing = move || -> base::Result<()> {
            let _wait = second;
            Err(base::Error::closed("while it waited"))
        };
        assert!(failing().is_err());
        assert_eq!((seen(), stall.delays_and_stops(StallCause::Memory)), ((0, Duration::ZERO), (0, 2)));
    }

    #[test]
    fn the_debt_grows_smoothly_from_slow_down_to_stop() {
        assert_eq!(between(19.0, 20.0, 36.0), 0.0);
        let steps: Vec<f64> = (20..=36).map(|files| between(f64::from(files), 20.0, 36.0)).collect();
        assert!(steps[0] > 0.0 && steps[0] < 0.02);
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(steps[16], 1.0);
        assert!(steps[15] < 1.0);
        assert_eq!(between(1e9, -1.0, -1.0), 0.0, "negative triggers mean never");
    }
}
