//! An open loop: writers at a fixed rate, beside one thread ingesting at even intervals. Operations begin at fixed times, however
//! late earlier ones are. A write's latency runs from its scheduled begin, so a stall is charged to every write it delayed.

use std::num::NonZeroU64;
use std::time::Duration;

use base::{Error, Result};
use rustix::thread::set_current_timer_slack;
use serde::{Deserialize, Serialize};
use vfs::Vfs;

use crate::latency::Latencies;
use crate::work::threads::join;

/// From when the threads start to the first write.
const LEAD: Duration = Duration::from_millis(50);

/// The last part of the wait for a write's time spins, because sleeps end late.
const SPIN: Duration = Duration::from_micros(25);

const SECOND: Duration = Duration::from_secs(1);

/// Lateness allowed to a write, unless the run is longer. Beyond it the rate counts as unreachable.
const LATE_MAX: Duration = Duration::from_secs(30);

/// The load of a run.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Plan {
    pub writers: u64,
    /// Writes a second, all writers together.
    pub rate: u64,
    /// Writes begun in this time are not recorded, and nothing is ingested.
    pub warmup: Duration,
    pub measured: Duration,
    /// From one ingest to the next.
    pub interval: Duration,
}

/// Latencies of a run.
pub struct Done {
    pub writes: Latencies,
    /// Of ingest calls, from the call to its return.
    pub ingests: Latencies,
}

impl Plan {
    /// Writes of the whole run.
    pub fn writes(&self) -> u64 {
        self.schedule(Duration::ZERO).count_within(self.warmup + self.measured)
    }

    /// The largest number of ingests begun within a run.
    pub fn ingests(&self) -> u64 {
        ((self.measured.as_secs_f64() / self.interval.as_secs_f64()).floor() as u64).max(1)
    }

    fn schedule(&self, start: Duration) -> Schedule {
        Schedule { start, rate: self.rate, period: SECOND }
    }

    /// Runs the writers and, beside them, `ingest`. `writer` makes a closure per writer. The closures get the number of the write,
    /// `ingest` the number of the ingest.
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
            // Linux delays the end of a sleep by up to 50 us by default; the latencies without ingests would show it.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            self.drive(vfs, start, first, writer(first)?)
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

    /// Does the writes of one writer: `first`, then every `writers`-th after it. Each begins at its time, or at once if late.
    fn drive(
        &self,
        vfs: &dyn Vfs,
        start: Duration,
        first: u64,
        mut write: impl FnMut(u64) -> Result<()>,
    ) -> Result<Latencies> {
        let schedule = self.schedule(start);
        let (recorded_from, late_max) = (schedule.count_within(self.warmup), self.measured.max(LATE_MAX));
        let mut latencies = Latencies::new()?;
        for nth in (first..self.writes()).step_by(self.writers.max(1) as usize) {
            let begins = schedule.begins(nth);
            wait_until(vfs, begins, SPIN);
            write(nth)?;
            let taken = vfs.now().saturating_sub(begins);
            if taken > late_max {
                let late = taken.as_secs_f64();
                return Err(Error::invalid_argument(format!(
                    "writes are {late:.1} s late: the rate is more than can be done"
                )));
            }
            if nth >= recorded_from {
                latencies.record(taken);
            }
        }
        Ok(latencies)
    }

    fn ingest(&self, vfs: &dyn Vfs, start: Duration, ingest: impl Fn(u64) -> Result<()>) -> Result<Latencies> {
        let first = start + self.warmup;
        let schedule = Schedule { start: first + self.interval / 2, rate: 1, period: self.interval };
        let mut calls = Latencies::new()?;
        for nth in 0..self.ingests() {
            wait_until(vfs, schedule.begins(nth), Duration::ZERO);
            let called = vfs.now();
            // An ingest after the writers' end would measure nothing. One is always done.
            if called < first + self.measured || nth == 0 {
                ingest(nth)?;
                calls.record(vfs.now() - called);
            }
        }
        Ok(calls)
    }
}

/// When operations begin: the first at `start`, the rest at even intervals.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: Duration,
    /// Operations in `period`.
    rate: u64,
    period: Duration,
}

impl Schedule {
    /// When operation `nth`, counted from 0, begins. Exact at any number: rounding does not add up.
    fn begins(&self, nth: u64) -> Duration {
        let nanos = u128::from(nth) * self.period.as_nanos() / u128::from(self.rate.max(1));
        self.start + Duration::from_nanos(nanos as u64)
    }

    /// Operations begun within `time`.
    fn count_within(&self, time: Duration) -> u64 {
        (time.as_nanos() * u128::from(self.rate)).div_ceil(self.period.as_nanos().max(1)) as u64
    }
}

/// Sleeps until `spin` before a time, then waits awake.
fn wait_until(vfs: &dyn Vfs, time: Duration, spin: Duration) {
    loop {
        let left = time.saturating_sub(vfs.now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(spin) {
            Some(sleep) if !sleep.is_zero() => vfs.sleep(sleep),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn times_are_even_and_do_not_drift() {
        let schedule = Schedule { start: 5 * MS, rate: 3, period: Duration::from_secs(1) };
        assert_eq!(schedule.begins(0), 5 * MS);
        assert_eq!(schedule.begins(1), 5 * MS + Duration::from_nanos(333_333_333));
        assert_eq!(schedule.begins(3_000_000), 5 * MS + Duration::from_secs(1_000_000));
        assert_eq!(schedule.count_within(Duration::from_secs(2)), 6);
        assert_eq!(schedule.count_within(Duration::from_millis(1)), 1, "the first begins at once");
        let slow = Schedule { start: Duration::ZERO, rate: 1, period: 100 * MS };
        assert_eq!((slow.begins(7), slow.count_within(1000 * MS)), (700 * MS, 10));
    }

    /// One writer of 1000 writes a second.
    fn plan(measured: Duration) -> Plan {
        Plan { writers: 1, rate: 1000, warmup: Duration::ZERO, measured, interval: SECOND }
    }

    #[test]
    fn a_stall_is_charged_to_every_write_that_it_delayed() -> Result<()> {
        let vfs = vfs::MemoryVfs::new(1); // its clock: a call takes a microsecond, a sleep its time
        // One of a thousand writes stalls for 100 ms: with it, 100 are late.
        let times = plan(SECOND).drive(&*vfs, vfs.now() + MS, 0, |nth| {
            if nth == 500 {
                vfs.sleep(100 * MS);
            }
            Ok(())
        })?;
        assert_eq!(times.count(), 1000);
        assert!(times.percentile_us(89.0) < 10.0, "{}", times.percentile_us(89.0));
        assert!(times.percentile_us(90.5) > 3_000.0, "{}", times.percentile_us(90.5));
        assert!((times.percentile_us(95.0) - 50_000.0).abs() < 2_000.0, "{}", times.percentile_us(95.0));
        assert!((times.max_us() - 100_000.0).abs() < 1_500.0, "{}", times.max_us());
        Ok(())
    }

    #[test]
    fn writes_that_are_late_follow_at_once_and_none_is_left_out() -> Result<()> {
        let vfs = vfs::MemoryVfs::new(1); // its clock: a call takes a microsecond, a sleep its time
        let plan = Plan { writers: 2, warmup: 5 * MS, ..plan(7 * MS) };
        let (schedule, begun) = (plan.schedule(vfs.now()), RefCell::new(Vec::new()));
        let times = plan.drive(&*vfs, schedule.start, 1, |nth| {
            begun.borrow_mut().push((nth, vfs.now()));
            vfs.sleep(if nth == 1 { 6 * MS } else { Duration::ZERO });
            Ok(())
        })?;
        let begun = begun.into_inner();
        assert_eq!(begun.iter().map(|(nth, _)| *nth).collect::<Vec<_>>(), [1, 3, 5, 7, 9, 11]);
        assert_eq!(times.count(), 4, "those before the fifth are not recorded");
        let late = |at: usize| begun[at].1.saturating_sub(schedule.begins(begun[at].0));
        assert!(late(0) < MS && late(1) > 3 * MS && late(2) > MS && late(4) < MS, "{begun:?}");
        assert!(begun.iter().all(|(nth, at)| *at >= schedule.begins(*nth)), "none begins early");
        Ok(())
    }

    #[test]
    fn what_cannot_keep_up_ends() {
        let vfs = vfs::MemoryVfs::new(1); // its clock: a call takes a microsecond, a sleep its time
        let ended = plan(1000 * SECOND).drive(&*vfs, vfs.now(), 0, |_| {
            vfs.sleep(1000 * SECOND);
            Ok(())
        });
        assert!(ended.err().unwrap().to_string().contains("more than can be done"));
    }
}
