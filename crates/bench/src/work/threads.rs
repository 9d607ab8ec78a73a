//! The threads of a benchmark: started together, added up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};

use base::{Error, ErrorKind, Result};

use super::{Benchmark, Ground, Thread, Work};
use crate::machine::processor_time;
use crate::store::Store;
use crate::tally::Tally;
use crate::workload::{Rng, Values};

/// Runs a benchmark's threads and its writer, if any. The writer goes on until the threads have ended.
///
/// # Errors
/// `InvalidArgument`: zero threads. Otherwise the first failure of a thread.
pub fn run_threads<'a, S: Store>(
    benchmark: &Benchmark,
    store: &S,
    ground: &Ground<'a>,
    seed: u64,
) -> Result<Tally<'a>> {
    let threads = ground.flags.threads;
    let all = threads + usize::from(benchmark.beside_a_writer);
    check_threads(all)?;
    let start = Barrier::new(all);
    let over = AtomicBool::new(false);
    let run_one = |work: Work, index: usize| -> Result<Tally<'a>> {
        let mut rng = Rng::new(seed ^ (index as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let values = Values::new(&mut rng, ground.flags.value_size, ground.flags.compression_ratio);
        start.wait();
        let tally = Tally::new(ground.vfs, ground.flags.histogram);
        let mut thread = Thread { ground, store, rng, values, tally, over: &over };
        work.run(&mut thread)?;
        thread.tally.end();
        Ok(thread.tally)
    };
    let cpu_before = processor_time();
    std::thread::scope(|scope| {
        let run_one = &run_one;
        let workers: Vec<_> = (0..threads).map(|index| scope.spawn(move || run_one(benchmark.work, index))).collect();
        let beside = benchmark.beside_a_writer.then_some(Work::WriteUntilOver);
        let writer = beside.map(|work| scope.spawn(move || run_one(work, threads)));
        let ended: Vec<_> = workers.into_iter().map(join).collect();
        over.store(true, Ordering::Relaxed);
        let background_writes = writer.map(join).transpose()?.map(|tally| tally.done);
        let mut ended = ended.into_iter();
        let mut total = ended.next().ok_or_else(|| Error::invalid_argument("--threads=0"))??;
        for tally in ended {
            total.merge(&tally?)?;
        }
        total.cpu = processor_time().saturating_sub(cpu_before);
        total.background_writes = background_writes;
        Ok(total)
    })
}

/// Starts so many threads beside each other, and ends them: those of a benchmark wait for each other.
///
/// # Errors
/// `Io`: no more threads can be had.
fn check_threads(count: usize) -> Result<()> {
    let held = Mutex::new(());
    std::thread::scope(|scope| {
        let _holding = held.lock();
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, || drop(held.lock())).map(drop);
        let failed =
            |error| Error::new(ErrorKind::Io, format!("cannot start the threads, {count} of them")).with_source(error);
        (0..count).try_for_each(start).map_err(failed)
    })
}

/// The result of a thread. A panic of the thread continues here.
pub fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Part of a seed, different for each benchmark: with equal seeds, reads would ask for keys in the order of their writes.
pub fn base_of(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| Rng::new(hash ^ u64::from(byte)).next())
}
