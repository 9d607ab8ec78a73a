//! YCSB's workloads A to F: Zipf's distribution with 0.99, keys scattered. A read or a scan has a transaction of its own, a write too.
//! The engines keep their caches from one workload to the next. The order is YCSB's: D and E, which insert, come last.
//! Paper: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Error, Result};
use bench::tally::{Operation, Tally};
use bench::workload::Rng;

use crate::child::{Run, Step};
use crate::entries::{Entries, Puts, key_of, scattered, stamp};
use crate::peers::{Change, Changes, Peer, Reader};
use crate::progress::Progress;
use crate::suite::together;
use crate::zipf::Zipf;

/// Entries of a scan, at most.
const SCAN_MAX: u64 = 100;

/// A scan takes the time of some reads.
const OPS_PER_SCAN: u64 = 10;

/// Operations between two looks at the clock.
const LOOK_EVERY: u64 = 64;

/// The operation of a workload beside its usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    None,
    Update,
    Insert,
    /// A read and an update of the same entry.
    Modify,
}

struct Mix {
    name: &'static str,
    /// Of a hundred operations.
    writes: u64,
    write: Write,
    scans: bool,
    /// New entries are read most.
    latest: bool,
}

const fn mix(name: &'static str, writes: u64, write: Write) -> Mix {
    Mix { name, writes, write, scans: false, latest: false }
}

const MIXES: [Mix; 6] = [
    mix("ycsb-a", 50, Write::Update),
    mix("ycsb-b", 5, Write::Update),
    mix("ycsb-c", 0, Write::None),
    mix("ycsb-f", 50, Write::Modify),
    Mix { latest: true, ..mix("ycsb-d", 5, Write::Insert) },
    Mix { scans: true, ..mix("ycsb-e", 5, Write::Insert) },
];

struct Ycsb<'a, P> {
    run: &'a Run<'a>,
    peer: P,
    zipf: Zipf,
    mode: String,
}

fn mode(run: &Run<'_>) -> String {
    let durable = if run.spec.durable { ", durable" } else { "" };
    format!("{} B{durable}", run.spec.value_bytes)
}

/// Loads all entries in the order of their keys.
pub fn load<P: Peer>(run: &Run<'_>, mut peer: P) -> Result<()> {
    let (num, mode) = (run.spec.num, mode(run));
    let mut numbers: Vec<u64> = (0..num).map(scattered).collect();
    numbers.sort_unstable();
    let mut entries = Entries::new(run.spec.seed, run.spec.value_bytes);
    let progress = Progress::new(run.vfs, "ycsb-load", num);
    let (meter, mut tally) = (run.meter(), Tally::new(run.vfs, true));
    let scattered = numbers.into_iter().enumerate().map(|(nth, number)| {
        if nth % 1024 == 1023 {
            progress.add(1024);
        }
        number
    });
    peer.set_durable(false)?;
    peer.load(&mut Puts { entries: &mut entries, scattered })?;
    // As much as the engines have to do before everything is on the disk.
    peer.settle()?;
    tally.finish(Operation::Write, num)?;
    tally.end();
    let (used, user_bytes) = (meter.read(), num * run.entry_bytes());
    let step =
        Step { workload: "ycsb-load", mode: &mode, unit: "entries/s", threads: 1, user_bytes, ..Step::default() };
    let record = run.rate(step, &tally, &meter, used);
    run.keep(bench::sides::SideRecord { disk_bytes: Some(run.disk_bytes()?), ..record })
}

/// The workloads on a loaded database.
pub fn run<P: Peer>(run: &Run<'_>, peer: P) -> Result<()> {
    let mut ycsb = Ycsb { run, peer, zipf: Zipf::new(run.spec.num), mode: mode(run) };
    ycsb.peer.set_durable(run.spec.durable)?;
    ycsb.warm()?;
    for (nth, mix) in MIXES.iter().enumerate() {
        ycsb.measure(mix, nth as u64)?;
    }
    Ok(())
}

/// The stamps that the threads have read.
#[derive(Default)]
struct Sum(AtomicU64);

impl<'a, P: Peer> Ycsb<'a, P> {
    /// Reads half as many entries as a workload does, unmeasured.
    fn warm(&self) -> Result<()> {
        let mix = mix("warm", 0, Write::None);
        self.threads(&mix, MIXES.len() as u64, self.run.spec.ops / 2, &Sum::default()).map(drop)
    }

    fn measure(&mut self, mix: &Mix, nth: u64) -> Result<()> {
        let (run, meter, sum) = (self.run, self.run.meter(), Sum::default());
        let ops = run.spec.ops / if mix.scans { OPS_PER_SCAN } else { 1 };
        let tally = self.threads(mix, nth, ops, &sum)?;
        let used = meter.read();
        let writes = tally.latencies().filter(|(operation, _)| *operation == Operation::Write);
        let user_bytes = writes.map(|(_, times)| times.count()).sum::<u64>() * run.entry_bytes();
        // All engines have read the same entries if none was stopped by the clock.
        let is_complete = tally.done == (ops / run.spec.threads as u64) * run.spec.threads as u64;
        let checksum = (is_complete && !mix.scans).then(|| sum.0.into_inner());
        let waited = if mix.writes > 0 { Some(run.settled(&mut self.peer)?) } else { None };
        let threads = run.spec.threads;
        let step = Step { workload: mix.name, mode: &self.mode, unit: "ops/s", threads, user_bytes, checksum, waited };
        let record = run.rate(step, &tally, &meter, used);
        run.keep(bench::sides::SideRecord { disk_bytes: Some(run.disk_bytes()?), ..record })
    }

    /// Runs the threads of a workload, each with a share of the operations, until the time is over.
    fn threads(&self, mix: &Mix, nth: u64, ops: u64, sum: &Sum) -> Result<Tally<'a>> {
        let (run, threads) = (self.run, self.run.spec.threads as u64);
        let progress = Progress::new(run.vfs, mix.name, ops);
        let limit = run.vfs.now() + Duration::from_secs(run.spec.seconds);
        let one = |thread: u64| -> Result<Tally<'a>> {
            let seed = run.spec.seed ^ (nth << 32) ^ (thread << 48);
            let mut worker = Worker {
                peer: &self.peer,
                mix,
                zipf: &self.zipf,
                loaded: run.spec.num,
                // Apart from what other threads and workloads insert.
                first: run.spec.num + (nth * threads + thread) * run.spec.ops,
                inserted: 0,
                rng: Rng::new(seed),
                entries: Entries::new(seed, run.spec.value_bytes),
                sum: 0,
            };
            let mut tally = Tally::new(run.vfs, true);
            for nth in 0..ops / threads {
                if nth % LOOK_EVERY == LOOK_EVERY - 1 {
                    progress.add(LOOK_EVERY);
                    if run.vfs.now() >= limit {
                        break;
                    }
                }
                worker.operate(&mut tally)?;
            }
            tally.end();
            sum.0.fetch_add(worker.sum, Ordering::Relaxed);
            Ok(tally)
        };
        together(run.spec.threads, &one)
    }
}

/// A thread of a workload.
struct Worker<'a, P> {
    peer: &'a P,
    mix: &'a Mix,
    zipf: &'a Zipf,
    loaded: u64,
    /// Number of the first entry that this thread inserts.
    first: u64,
    inserted: u64,
    rng: Rng,
    entries: Entries,
    sum: u64,
}

impl<P: Peer> Worker<'_, P> {
    fn operate(&mut self, tally: &mut Tally<'_>) -> Result<()> {
        let write = if self.rng.below(100) < self.mix.writes { self.mix.write } else { Write::None };
        let number = self.choose();
        let operation = match write {
            Write::None if self.mix.scans => self.scan(number, tally)?,
            Write::None => self.read(number, tally)?,
            Write::Update => self.put(number)?,
            Write::Modify => {
                self.read(number, tally)?;
                self.put(number)?
            }
            Write::Insert => {
                self.inserted += 1;
                self.put(self.first + self.inserted - 1)?
            }
        };
        tally.finish(operation, 1)
    }

    /// The number of the next entry. Of the latest, this thread's own come first: those of the others may not be there yet.
    fn choose(&mut self) -> u64 {
        let rank = self.zipf.draw(&mut self.rng);
        match (self.mix.latest, self.inserted.checked_sub(rank + 1)) {
            (false, _) => rank,
            (true, Some(nth)) => self.first + nth,
            (true, None) => self.loaded - 1 - (rank - self.inserted),
        }
    }

    fn read(&mut self, number: u64, tally: &mut Tally<'_>) -> Result<Operation> {
        let (key, mut sum) = (key_of(scattered(number)), 0);
        let found = self.peer.reader()?.get(&key, &mut |value| stamp(&key, value).map(|stamp| sum = stamp))?;
        if !found {
            return Err(Error::corruption(format!("{}: entry {number} is not found", self.mix.name)));
        }
        self.sum = self.sum.wrapping_add(sum);
        tally.lookups(1, 1);
        Ok(Operation::Read)
    }

    fn scan(&mut self, number: u64, tally: &mut Tally<'_>) -> Result<Operation> {
        let count = 1 + self.rng.below(SCAN_MAX);
        let seen = self
            .peer
            .reader()?
            .scan(&key_of(scattered(number)), count, &mut |key, value| stamp(key, value).map(drop))?;
        tally.lookups(count, seen);
        Ok(Operation::Seek)
    }

    fn put(&mut self, number: u64) -> Result<Operation> {
        let (key, value) = self.entries.entry(scattered(number));
        self.peer.commit(&mut One(Some(Change::Put { key, value })))?;
        Ok(Operation::Write)
    }
}

/// A single change.
struct One<'a>(Option<Change<'a>>);

impl Changes for One<'_> {
    fn next(&mut self) -> Option<Change<'_>> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixes_are_those_of_ycsb() {
        let shares: Vec<_> = MIXES.iter().map(|mix| (mix.name, mix.writes, mix.write)).collect();
        assert_eq!(shares[0], ("ycsb-a", 50, Write::Update));
        assert_eq!(shares[4], ("ycsb-d", 5, Write::Insert));
        assert!(MIXES[4].latest && MIXES[5].scans && MIXES.iter().filter(|mix| mix.latest || mix.scans).count() == 2);
    }
}
