//! Runs one benchmark on one memtable: its keys made, its threads started together, what they did added up.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use base::{Error, Result};
use memtable::MemtableFactory;
use vfs::Vfs;

use super::filled::{Filled, Need, Pool};
use super::flags::MemtableFlags;
use super::keys::KeyList;
use super::record::MemtableRecord;
use super::work::{self, Benchmark, Body, Counts, Task, Work};
use crate::flags::FlagValue;
use crate::harness::processor_time;
use crate::workload::Rng;

/// A memtable that takes part.
pub struct Contender {
    option: String,
    factory: Arc<dyn MemtableFactory>,
    filled: Option<Filled>,
}

impl Contender {
    pub fn new(option: &str, factory: Arc<dyn MemtableFactory>) -> Self {
        Contender { option: option.to_owned(), factory, filled: None }
    }

    fn filled(&self) -> Result<&Filled> {
        self.filled.as_ref().ok_or_else(|| Error::invalid_argument("no benchmark made a memtable yet"))
    }
}

/// The keys of a benchmark, the same for every memtable.
pub struct Prepared {
    fill: KeyList,
    /// Each reading thread's part behind the other's.
    reads: KeyList,
}

pub struct Runner<'a> {
    flags: &'a MemtableFlags,
    vfs: &'a dyn Vfs,
    values: Pool,
}

/// What threads did together.
struct Measured {
    counts: Counts,
    wall: Duration,
    /// Processor time of the process meanwhile.
    cpu: Duration,
}

impl<'a> Runner<'a> {
    pub fn new(flags: &'a MemtableFlags, vfs: &'a dyn Vfs) -> Self {
        Runner { flags, vfs, values: Pool::new(flags.item_size) }
    }

    pub fn header(&self) -> String {
        let flags = self.flags;
        format!(
            "Spillway {}: {} {} keys, values of {} bytes; {}",
            env!("CARGO_PKG_VERSION"),
            flags.num_operations,
            flags.key_shape.show(),
            flags.item_size,
            flags.conditions()
        )
    }

    /// Threads that do a benchmark's operations.
    fn threads(&self, benchmark: &Benchmark) -> usize {
        match benchmark.work {
            Work::Fill { .. } => self.flags.fill_threads,
            Work::First => 1,
            Work::Read { .. } => self.flags.num_threads,
        }
    }

    /// Makes the keys of a benchmark, off the clock.
    pub fn prepare(&self, benchmark: &Benchmark) -> Prepared {
        let (count, shape) = (u64::from(self.flags.num_operations), self.flags.key_shape);
        let random = |thread: u64| Rng::new(u64::from(self.flags.seed) ^ thread.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let none = || KeyList::new(shape, []);
        let drawn = |thread: u64, draws: u64| {
            let mut random = random(thread);
            (0..draws).map(move |_| random.below(count))
        };
        let readers = self.threads(benchmark) as u64;
        let reads = || KeyList::new(shape, (1..=readers).flat_map(|t| drawn(t, self.flags.lookups() / readers)));
        let (fill, reads) = match benchmark.work {
            Work::Fill { shuffled: true } => (KeyList::new(shape, shuffled(count, random(0))), none()),
            Work::Fill { shuffled: false } => (KeyList::new(shape, 0..count), none()),
            Work::Read { draws: true, .. } => (none(), reads()),
            Work::Read { draws: false, .. } => (none(), none()),
            Work::First => (none(), KeyList::new(shape, drawn(1, 1))),
        };
        Prepared { fill, reads }
    }

    /// Runs a benchmark on a memtable.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no memtable to read, or it is too small for its entries.
    pub fn measure(
        &self,
        benchmark: &Benchmark,
        prepared: &Prepared,
        contender: &mut Contender,
    ) -> Result<MemtableRecord> {
        let mut record = MemtableRecord {
            bench: benchmark.name.to_owned(),
            memtable: contender.option.clone(),
            keys: self.flags.key_shape.show(),
            threads: self.threads(benchmark),
            ..MemtableRecord::default()
        };
        let measured = match benchmark.work {
            Work::Fill { .. } => {
                self.renew(contender, &prepared.fill)?;
                self.run(contender.filled()?, &prepared.fill, record.threads, work::fill)?
            }
            Work::Read { draws, body } => {
                let measured = self.run(contender.filled()?, &prepared.reads, record.threads, body)?;
                record.found = draws.then_some(measured.counts.found);
                measured
            }
            Work::First => self.run(contender.filled()?, &prepared.reads, 1, work::read_first)?,
        };
        let filled = contender.filled()?;
        measured.put_into(&mut record);
        record.entries = filled.memtable.entries();
        record.bytes_per_entry = filled.bytes_per_entry();
        Ok(record)
    }

    /// Gives the contender a new memtable with room for the keys.
    fn renew(&self, contender: &mut Contender, keys: &KeyList) -> Result<()> {
        contender.filled = None;
        let payload = keys.bytes_in(&(0..keys.len())) + keys.len() * self.values.value_bytes();
        let need = Need {
            // Each thread's last batch may be a short one.
            entries: keys.len() + self.flags.fill_threads * self.flags.batch_size,
            payload_bytes: payload,
            batch: self.flags.batch_size,
        };
        contender.filled = Some(Filled::empty(&*contender.factory, &need, self.flags.write_buffer_size)?);
        Ok(())
    }

    /// Runs `threads` threads, each on its part of the keys.
    fn run(&self, filled: &Filled, keys: &KeyList, threads: usize, body: Body) -> Result<Measured> {
        self.together(threads, |index| body(&self.task(filled, keys, index, threads)))
    }

    fn task<'t>(&'t self, filled: &'t Filled, keys: &'t KeyList, index: usize, threads: usize) -> Task<'t> {
        let part = |index: usize| index * keys.len() / threads;
        Task { flags: self.flags, filled, keys, places: part(index)..part(index + 1), values: &self.values }
    }

    /// Starts threads together and waits for them.
    fn together(&self, threads: usize, body: impl Fn(usize) -> Result<Counts> + Sync) -> Result<Measured> {
        let start = Barrier::new(threads);
        let run_one = |index: usize| -> Result<(Counts, Duration, Duration)> {
            start.wait();
            let started = self.vfs.now();
            let counts = body(index)?;
            Ok((counts, started, self.vfs.now()))
        };
        let run_one = &run_one;
        let cpu_before = processor_time();
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|index| scope.spawn(move || run_one(index))).collect();
            let mut counts = Counts::default();
            let (mut first, mut last) = (Duration::MAX, Duration::ZERO);
            for thread in running {
                let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let (done, started, ended) = ended?;
                counts.add(&done);
                (first, last) = (first.min(started), last.max(ended));
            }
            let cpu = processor_time().saturating_sub(cpu_before);
            Ok(Measured { counts, wall: last.saturating_sub(first), cpu })
        })
    }
}

impl Measured {
    fn put_into(&self, record: &mut MemtableRecord) {
        let seconds = self.wall.as_secs_f64().max(1e-9);
        let ops = self.counts.ops as f64;
        record.ops = self.counts.ops;
        record.wall_s = seconds;
        record.ops_per_s = ops / seconds;
        record.us_per_op = seconds * 1e6 * record.threads as f64 / ops.max(1.0);
        record.cpu_us_per_op = self.cpu.as_secs_f64() * 1e6 / ops.max(1.0);
        record.mb_per_s = self.counts.bytes as f64 / f64::from(1 << 20) / seconds;
    }
}

/// The numbers below `count` in a random order.
fn shuffled(count: u64, mut random: Rng) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.below(at as u64 + 1) as usize);
    }
    numbers
}
