//! The workloads of redb's benchmark, in its order and form: keys of 24 random bytes, a bulk load in one transaction where the engine
//! has room for one, single durable writes, batches, reads with one read transaction a thread, removals of half, sizes.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Error, Result};
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::tally::{Operation, Tally};
use bench::work::threads::join;
use bench::workload::Rng;

use crate::child::{Run, Step};
use crate::entries::{Entries, KEY_BYTES, Puts, Removals, key_of, scattered, stamp};
use crate::peers::{Peer, Reader};
use crate::progress::Progress;

/// Entries of a batch.
const BATCH: u64 = 100;

/// Batches.
const BATCHES: u64 = 100;

/// Single writes without a sync; redb's benchmark has as many.
const UNSYNCED_MAX: u64 = 50_000;

/// Entries of a range read.
const STEPS: u64 = 10;

/// A range read takes the time of some reads.
const READS_PER_RANGE: u64 = 4;

/// Threads of reads.
const THREADS: [usize; 2] = [1, 2];

/// A run on its way.
struct Suite<'a, P> {
    run: &'a Run<'a>,
    peer: P,
    entries: Entries,
    /// Entries written, with the numbers from 0 on.
    written: u64,
}

pub fn run<P: Peer>(run: &Run<'_>, peer: P) -> Result<()> {
    let entries = Entries::new(run.spec.seed, run.spec.value_bytes);
    let mut suite = Suite { run, peer, entries, written: 0 };
    let (num, writes) = (run.spec.num, run.spec.writes);
    let unsynced = UNSYNCED_MAX.min(num / 20).max(1);
    suite.write(&Write {
        name: "bulk load",
        durable: true,
        commits: num.div_ceil(P::BULK_MAX),
        of: P::BULK_MAX,
        entries: num,
    })?;
    suite.write(&Write { name: "single writes", durable: true, commits: writes, of: 1, entries: writes })?;
    suite.write(&Write {
        name: "batch writes",
        durable: true,
        commits: BATCHES,
        of: BATCH,
        entries: BATCHES * BATCH,
    })?;
    suite.write(&Write {
        name: "single writes, no sync",
        durable: false,
        commits: unsynced,
        of: 1,
        entries: unsynced,
    })?;
    let batches = (unsynced / BATCH).max(1);
    suite.write(&Write {
        name: "batch writes, no sync",
        durable: false,
        commits: batches,
        of: BATCH,
        entries: batches * BATCH,
    })?;
    suite.count()?;
    for threads in THREADS {
        suite.reads(threads)?;
    }
    for threads in THREADS {
        suite.ranges(threads)?;
    }
    suite.removals()?;
    suite.sizes()
}

/// A step that writes new entries.
struct Write {
    name: &'static str,
    durable: bool,
    commits: u64,
    /// Entries of a commit.
    of: u64,
    entries: u64,
}

impl<P: Peer> Suite<'_, P> {
    fn write(&mut self, write: &Write) -> Result<()> {
        let run = self.run;
        self.peer.set_durable(write.durable)?;
        let progress = Progress::new(run.vfs, write.name, write.entries);
        let (meter, mut tally) = (run.meter(), Tally::new(run.vfs, true));
        let end = self.written + write.entries;
        for _ in 0..write.commits {
            let numbers = self.written..end.min(self.written.saturating_add(write.of));
            let count = numbers.end - numbers.start;
            tally.begin();
            let scattered = numbers.map(|number| {
                if number.is_multiple_of(1024) {
                    progress.add(1024);
                }
                scattered(number)
            });
            self.peer.commit(&mut Puts { entries: &mut self.entries, scattered })?;
            tally.finish(Operation::Write, count)?;
            self.written += count;
        }
        tally.end();
        let (used, user_bytes) = (meter.read(), write.entries * run.entry_bytes());
        let waited = Some(run.settled(&mut self.peer)?);
        let step = Step { workload: write.name, unit: "entries/s", threads: 1, user_bytes, waited, ..Step::default() };
        run.keep(run.rate(step, &tally, &meter, used))
    }

    /// The number of entries, by the engine's cheapest call.
    fn count(&self) -> Result<()> {
        let (run, meter) = (self.run, self.run.meter());
        let found = self.peer.count()?;
        let used = meter.read();
        if found != self.written {
            return Err(Error::corruption(format!("{} entries were written, and {found} counted", self.written)));
        }
        let record = SideRecord {
            workload: "count".to_owned(),
            figure: used.wall.as_secs_f64() * 1e3,
            unit: "ms".to_owned(),
            threads: 1,
            ops: 1,
            found: Some(found),
            ..SideRecord::default()
        };
        run.keep(meter.finish(record, used, None))
    }

    fn reads(&self, threads: usize) -> Result<()> {
        let name = "random reads";
        if threads == 1 {
            // Warms the caches.
            self.in_threads(name, 1, self.run.spec.ops / 2, 1, &self.read_one())?;
        }
        self.timed_reads(name, threads, self.run.spec.ops, &self.read_one())
    }

    fn read_one(&self) -> impl Fn(&mut P::Reader<'_>, u64, &mut Tally<'_>) -> Result<u64> + Sync {
        |reader, number, tally| {
            let (key, mut sum) = (key_of(scattered(number)), 0);
            let found = reader.get(&key, &mut |value| stamp(&key, value).map(|stamp| sum = stamp))?;
            if !found {
                return Err(Error::corruption(format!("entry {number} was written, and is not found")));
            }
            tally.lookups(1, 1);
            tally.finish(Operation::Read, 1)?;
            Ok(sum)
        }
    }

    fn ranges(&self, threads: usize) -> Result<()> {
        let ranges = (self.run.spec.ops / READS_PER_RANGE).max(1);
        self.timed_reads(
            "range reads",
            threads,
            ranges,
            &|reader: &mut P::Reader<'_>, number, tally: &mut Tally<'_>| {
                let mut sum = 0u64;
                let seen = reader.scan(&key_of(scattered(number)), STEPS, &mut |key, value| {
                    sum = sum.wrapping_add(stamp(key, value)?);
                    Ok(())
                })?;
                tally.lookups(STEPS, seen);
                tally.finish(Operation::Seek, 1)?;
                Ok(sum)
            },
        )
    }

    fn timed_reads<F>(&self, name: &'static str, threads: usize, ops: u64, read: &F) -> Result<()>
    where
        F: Fn(&mut P::Reader<'_>, u64, &mut Tally<'_>) -> Result<u64> + Sync,
    {
        let (run, meter) = (self.run, self.run.meter());
        let (tally, sum) = self.in_threads(name, threads, ops, 2, read)?;
        let used = meter.read();
        let mode = format!("{threads} threads");
        let mode = if threads == 1 { "" } else { &mode };
        let step = Step { workload: name, mode, unit: "ops/s", threads, checksum: Some(sum), ..Step::default() };
        run.keep(run.rate(step, &tally, &meter, used))
    }

    /// Reads random entries in threads, each with one reader. Returns the sum of all stamps.
    fn in_threads<F>(&self, name: &str, threads: usize, ops: u64, seed: u64, read: &F) -> Result<(Tally<'_>, u64)>
    where
        F: Fn(&mut P::Reader<'_>, u64, &mut Tally<'_>) -> Result<u64> + Sync,
    {
        let (run, written, peer) = (self.run, self.written, &self.peer);
        let (progress, all) = (Progress::new(run.vfs, name, ops), AtomicU64::new(0));
        let one = |thread: u64| -> Result<Tally<'_>> {
            let mut rng = Rng::new(run.spec.seed ^ (seed << 32) ^ thread);
            let (mut reader, mut tally, mut sum) = (peer.reader()?, Tally::new(run.vfs, false), 0u64);
            for nth in 0..ops / threads as u64 {
                tally.begin();
                sum = sum.wrapping_add(read(&mut reader, rng.below(written), &mut tally)?);
                if nth % 1024 == 1023 {
                    progress.add(1024);
                }
            }
            tally.end();
            all.fetch_add(sum, Ordering::Relaxed);
            Ok(tally)
        };
        let total = together(threads, &one)?;
        Ok((total, all.into_inner()))
    }

    /// Removes the first half of the entries, in transactions as of the bulk load.
    fn removals(&mut self) -> Result<()> {
        let (run, removed) = (self.run, self.written / 2);
        self.peer.set_durable(true)?;
        let progress = Progress::new(run.vfs, "removals", removed);
        let (meter, mut tally) = (run.meter(), Tally::new(run.vfs, true));
        let mut next = 0;
        while next < removed {
            let numbers = next..removed.min(next.saturating_add(P::BULK_MAX));
            let count = numbers.end - numbers.start;
            tally.begin();
            let scattered = numbers.map(|number| {
                if number.is_multiple_of(1024) {
                    progress.add(1024);
                }
                scattered(number)
            });
            self.peer.commit(&mut Removals { key: [0; KEY_BYTES], scattered })?;
            tally.finish(Operation::Write, count)?;
            next += count;
        }
        tally.end();
        let (used, user_bytes) = (meter.read(), removed * KEY_BYTES as u64);
        let waited = Some(run.settled(&mut self.peer)?);
        let left = self.peer.count()?;
        if left != self.written - removed {
            return Err(Error::corruption(format!("{removed} of {} were removed, {left} are left", self.written)));
        }
        let step = Step { workload: "removals", unit: "entries/s", threads: 1, user_bytes, waited, ..Step::default() };
        run.keep(run.rate(step, &tally, &meter, used))
    }

    /// The size of the files, as they are, and compacted and closed: an open engine may hold on to old ones.
    fn sizes(mut self) -> Result<()> {
        let run = self.run;
        size(run, "", run.meter())?;
        let meter = run.meter();
        self.peer.compact()?;
        drop(self);
        size(run, "compacted", meter)
    }
}

/// Records the size of the files.
fn size(run: &Run<'_>, mode: &str, meter: Meter<'_>) -> Result<()> {
    let (used, bytes) = (meter.read(), run.disk_bytes()?);
    let record = SideRecord {
        workload: "size".to_owned(),
        mode: mode.to_owned(),
        figure: bytes as f64 / 1e6,
        unit: "MB on disk".to_owned(),
        threads: 1,
        ops: 1,
        disk_bytes: Some(bytes),
        ..SideRecord::default()
    };
    run.keep(meter.finish(record, used, None))
}

/// Runs threads by number, and adds up their counts.
pub fn together<'a>(threads: usize, one: &(impl Fn(u64) -> Result<Tally<'a>> + Sync)) -> Result<Tally<'a>> {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads as u64).map(|thread| scope.spawn(move || one(thread))).collect();
        let mut ended = started.into_iter().map(join);
        let mut total = ended.next().ok_or_else(|| Error::invalid_argument("--threads=0"))?;
        for tally in ended {
            match (&mut total, tally) {
                (Ok(total), Ok(tally)) => total.merge(&tally)?,
                (Ok(_), Err(error)) => total = Err(error),
                (Err(_), _) => {}
            }
        }
        total
    })
}
