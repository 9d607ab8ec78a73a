//! Counts and latencies of one thread of a benchmark.

use std::time::Duration;

use base::Result;
use vfs::Vfs;

use crate::latency::Latencies;

/// Without `--histogram`, one operation in so many is timed: two clock readings (25-40 ns each) beside every operation would
/// cost a tenth of an iterator's step.
pub const SAMPLED_ONE_IN: u32 = 32;

/// Kinds of operation, each with its own latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Read,
    Write,
    Seek,
}

impl Operation {
    const ALL: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Seek];

    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Seek => "seek",
        }
    }
}

/// Counts of one thread; added up when all have ended.
pub struct Tally<'a> {
    vfs: &'a dyn Vfs,
    /// One operation in so many is timed.
    stride: u32,
    /// Operations left to pass before the next timed one.
    skip: u32,
    /// When the timed operation began.
    mark: Duration,
    pub started: Duration,
    pub ended: Duration,
    pub done: u64,
    pub bytes: u64,
    /// Keys found, of `looked_up`.
    pub found: u64,
    pub looked_up: u64,
    /// Processor time of the process during the benchmark, set at the end.
    pub cpu: Duration,
    /// Writes of the writer beside the threads, set at the end.
    pub background_writes: Option<u64>,
    latencies: [Option<Latencies>; Operation::ALL.len()],
}

impl<'a> Tally<'a> {
    pub fn new(vfs: &'a dyn Vfs, time_every_operation: bool) -> Self {
        let now = vfs.now();
        Tally {
            vfs,
            stride: if time_every_operation { 1 } else { SAMPLED_ONE_IN },
            skip: 0,
            mark: now,
            started: now,
            ended: now,
            done: 0,
            bytes: 0,
            found: 0,
            looked_up: 0,
            cpu: Duration::ZERO,
            background_writes: None,
            latencies: [None, None, None],
        }
    }

    /// Called right before an operation. If every operation is timed, it counts from the end of the one before, as in db_bench: one
    /// clock reading an operation.
    #[inline]
    pub fn begin(&mut self) {
        if self.skip == 0 && self.stride > 1 {
            self.mark = self.vfs.now();
        }
    }

    /// Called after work that belongs to no operation, so that it is not timed with the next one.
    pub fn resume(&mut self) {
        self.mark = self.vfs.now();
    }

    /// Called right after an operation on `keys` keys.
    #[inline]
    pub fn finish(&mut self, operation: Operation, keys: u64) -> Result<()> {
        self.done += keys;
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        self.skip = self.stride - 1;
        let now = self.vfs.now();
        let taken = now.saturating_sub(self.mark);
        self.mark = now;
        self.of(operation)?.record(taken);
        Ok(())
    }

    /// Counts lookups, `found` of them successful.
    #[inline]
    pub fn lookups(&mut self, looked_up: u64, found: u64) {
        self.looked_up += looked_up;
        self.found += found;
    }

    #[inline]
    fn of(&mut self, operation: Operation) -> Result<&mut Latencies> {
        let [read, write, seek] = &mut self.latencies;
        let slot = match operation {
            Operation::Read => read,
            Operation::Write => write,
            Operation::Seek => seek,
        };
        match slot {
            Some(latencies) => Ok(latencies),
            None => Ok(slot.insert(Latencies::new()?)),
        }
    }

    pub fn end(&mut self) {
        self.ended = self.vfs.now();
    }

    /// Adds the counts of a second thread. The time runs from the first start to the last end.
    pub fn merge(&mut self, other: &Tally<'_>) -> Result<()> {
        self.started = self.started.min(other.started);
        self.ended = self.ended.max(other.ended);
        self.done += other.done;
        self.bytes += other.bytes;
        self.found += other.found;
        self.looked_up += other.looked_up;
        for (operation, latencies) in other.latencies() {
            self.of(operation)?.add(latencies)?;
        }
        Ok(())
    }

    /// The kinds of operation there were, with their times.
    pub fn latencies(&self) -> impl Iterator<Item = (Operation, &Latencies)> {
        Operation::ALL
            .into_iter()
            .zip(&self.latencies)
            .filter_map(|(operation, slot)| Some((operation, slot.as_ref()?)))
    }
}
