//! Writers at a fixed rate, and a thread that ingests beside them at even distances. A write's time runs from when it should
//! have begun: a wait is charged to every write that it delayed.

use std::num::NonZeroU64;
use std::time::Duration;

use base::Result;
use rustix::thread::set_current_timer_slack;
use vfs::Vfs;

use crate::latency::Latencies;
use crate::open_loop::{Patience, Schedule, Turns, drive};
use crate::work::threads::join;

/// From when the threads start to the first write.
const LEAD: Duration = Duration::from_millis(50);

/// How long before its time a write is waited for awake.
const SPIN: Duration = Duration::from_micros(25);

const SECOND: Duration = Duration::from_secs(1);

/// Of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub writers: u64,
    /// Writes a second, all writers together.
    pub rate: u64,
    /// Writes of this time are not recorded, and nothing is ingested.
    pub warmup: Duration,
    pub measured: Duration,
    /// From one ingest to the next.
    pub interval: Duration,
}

/// What a run's threads saw.
pub struct Done {
    pub writes: Latencies,
    /// Of the calls that ingested, from the call to its return.
    pub ingests: Latencies,
}

impl Plan {
    /// Writes of the whole run.
    pub fn writes(&self) -> u64 {
        self.schedule(Duration::ZERO).count_within(self.warmup + self.measured)
    }

    /// Ingests that begin within a run, at most.
    pub fn ingests(&self) -> u64 {
        ((self.measured.as_secs_f64() / self.interval.as_secs_f64()).floor() as u64).max(1)
    }

    fn schedule(&self, start: Duration) -> Schedule {
        Schedule { start, rate: self.rate, period: SECOND }
    }

    /// Runs the writers, each a closure that `writer` makes and that gets the number of each of its writes; and beside them
    /// `ingest`, which gets the number of each ingest.
    ///
    /// # Errors
    /// `InvalidArgument`: the writers cannot keep up. Otherwise the first failure of an operation.
    pub fn run<W: FnMut(u64) -> Result<()>>(
        &self,
        vfs: &dyn Vfs,
        writer: impl Fn(u64) -> Result<W> + Sync,
        ingest: Option<&(dyn Fn(u64) -> Result<()> + Sync)>,
    ) -> Result<Done> {
        let start = vfs.now() + LEAD;
        let write = |first: u64| {
            // Sleeps end when they should, not up to 50 microseconds later. Without it, the latencies without ingests show that.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let schedule = self.schedule(start);
            let recorded_from = schedule.count_within(self.warmup);
            let turns = Turns { first, step: self.writers, end: self.writes(), recorded_from };
            let patience = Patience { spin: SPIN, late_max: self.measured.max(30 * SECOND) };
            drive(vfs, &schedule, turns, patience, writer(first)?)
        };
        std::thread::scope(|scope| {
            let write = &write;
            let writing: Vec<_> = (0..self.writers).map(|first| scope.spawn(move || write(first))).collect();
            let ingesting = ingest.map(|ingest| scope.spawn(move || self.ingest(vfs, start, ingest)));
            // All have ended before the first failure is passed on.
            let written: Vec<Result<Latencies>> = writing.into_iter().map(join).collect();
            let ingests = ingesting.map_or_else(Latencies::new, join)?;
            let mut writes = Latencies::new()?;
            written.into_iter().try_for_each(|times| writes.add(&times?))?;
            Ok(Done { writes, ingests })
        })
    }

    fn ingest(&self, vfs: &dyn Vfs, start: Duration, ingest: impl Fn(u64) -> Result<()>) -> Result<Latencies> {
        let first = start + self.warmup;
        let schedule = Schedule { start: first + self.interval / 2, rate: 1, period: self.interval };
        let turns = Turns { first: 0, step: 1, end: self.ingests(), recorded_from: u64::MAX };
        let patience = Patience { spin: Duration::ZERO, late_max: Duration::MAX };
        let mut calls = Latencies::new()?;
        drive(vfs, &schedule, turns, patience, |nth| {
            let called = vfs.now();
            // An ingest that the writers would not meet says nothing. One is always done.
            if called < first + self.measured || nth == 0 {
                ingest(nth)?;
                calls.record(vfs.now() - called);
            }
            Ok(())
        })?;
        Ok(calls)
    }
}
