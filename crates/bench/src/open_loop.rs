//! Operations that begin at fixed times whatever became of those before: an open loop. A time is taken from when an
//! operation should have begun, so that a wait is charged to every operation that it delayed, not to the one that met it.

use std::time::Duration;

use base::{Error, Result};
use vfs::Vfs;

use crate::latency::Latencies;

/// When the operations of a run begin: the first at the start, the others at even distances.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub start: Duration,
    /// Operations in `period`.
    pub rate: u64,
    pub period: Duration,
}

impl Schedule {
    /// When operation `nth`, counted from 0, begins. Exact at any number: rounding does not add up.
    pub fn begins(&self, nth: u64) -> Duration {
        let nanos = u128::from(nth) * self.period.as_nanos() / u128::from(self.rate.max(1));
        self.start + Duration::from_nanos(nanos as u64)
    }

    /// Operations that begin within `time`.
    pub fn count_within(&self, time: Duration) -> u64 {
        (time.as_nanos() * u128::from(self.rate)).div_ceil(self.period.as_nanos().max(1)) as u64
    }
}

/// One thread's part of a schedule: the operations `first`, `first + step` and so on, below `end`.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    pub first: u64,
    pub step: u64,
    pub end: u64,
    /// Operations before this one are not recorded.
    pub recorded_from: u64,
}

/// How a thread waits for an operation's time, and when it gives up.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long before that time the thread wakes: sleeping ends late, by as much as the kernel pleases.
    pub spin: Duration,
    /// How late operations may become: where they are later the rate is more than can be done.
    pub late_max: Duration,
}

/// Does each operation of a thread at its time, or at once where that is past.
///
/// # Errors
/// `InvalidArgument`: the operations cannot keep up. Otherwise the first failure of one.
pub fn drive(
    vfs: &dyn Vfs,
    schedule: &Schedule,
    turns: Turns,
    patience: Patience,
    mut operation: impl FnMut(u64) -> Result<()>,
) -> Result<Latencies> {
    let mut latencies = Latencies::new()?;
    for nth in (turns.first..turns.end).step_by(turns.step.max(1) as usize) {
        let begins = schedule.begins(nth);
        wait_until(vfs, begins, patience.spin);
        operation(nth)?;
        let taken = vfs.now().saturating_sub(begins);
        if taken > patience.late_max {
            let message =
                format!("operations are {:.1} s late: the rate is more than can be done", taken.as_secs_f64());
            return Err(Error::invalid_argument(message));
        }
        if nth >= turns.recorded_from {
            latencies.record(taken);
        }
    }
    Ok(latencies)
}

/// Sleeps until `spin` before a time, then waits awake.
pub fn wait_until(vfs: &dyn Vfs, time: Duration, spin: Duration) {
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

    fn patience() -> Patience {
        Patience { spin: Duration::from_micros(50), late_max: Duration::from_secs(1) }
    }

    /// The clock of a file system in memory: a call takes a microsecond, a sleep as long as it says.
    fn clock() -> std::sync::Arc<vfs::MemoryVfs> {
        vfs::MemoryVfs::new(1)
    }

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

    #[test]
    fn a_stall_is_charged_to_every_operation_that_it_delayed() -> Result<()> {
        let vfs = clock();
        let schedule = Schedule { start: vfs.now() + MS, rate: 1000, period: Duration::from_secs(1) };
        let turns = Turns { first: 0, step: 1, end: 1000, recorded_from: 0 };
        // One of a thousand operations stalls for 100 ms: with it, 100 are late.
        let times = drive(&*vfs, &schedule, turns, patience(), |nth| {
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
    fn operations_that_are_late_follow_at_once_and_none_is_left_out() -> Result<()> {
        let vfs = clock();
        let schedule = Schedule { start: vfs.now(), rate: 1000, period: Duration::from_secs(1) };
        let begun = RefCell::new(Vec::new());
        let turns = Turns { first: 1, step: 2, end: 12, recorded_from: 5 };
        let times = drive(&*vfs, &schedule, turns, patience(), |nth| {
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
        let vfs = clock();
        let schedule = Schedule { start: vfs.now(), rate: 1000, period: Duration::from_secs(1) };
        let turns = Turns { first: 0, step: 1, end: 1_000_000, recorded_from: 0 };
        let ended = drive(&*vfs, &schedule, turns, patience(), |_| {
            vfs.sleep(2 * MS);
            Ok(())
        });
        assert!(ended.err().unwrap().to_string().contains("more than can be done"));
    }
}
