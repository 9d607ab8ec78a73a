//! Writers at a fixed rate, and beside them tables that are ingested over the keys that they write. Times run from when each write
//! should have begun, so that a wait is charged to every write that it delayed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use bench::latency::Latencies;
use bench::open_loop::{Patience, Schedule, Turns, drive};
use bench::sides::{Ingested, SideRecord, Unit, Window};
use bench::store::Store;
use bench::work::threads::join;
use bench::workload::{KeyBuffer, Rng, Values};
use vfs::Vfs;

use crate::child::Run;
use crate::library::{Database, Options, TableFile};
use crate::measure::Meter;

/// Entries of a table that is ingested, spread over all keys.
const TABLE_ENTRIES: u64 = 1000;

/// Writes that should have begun within this are one point of the picture.
const WINDOW: Duration = Duration::from_millis(100);

/// From when the threads start to the first write.
const LEAD: Duration = Duration::from_millis(50);

const PATIENCE: Patience = Patience { spin: Duration::from_micros(60), late_max: Duration::from_secs(30) };

/// Tries of an ingest that may not flush, each after a flush: writers may fill the memtable again in between.
const TRIES_MAX: u32 = 1000;

/// What one writer saw.
struct Written {
    all: Latencies,
    windows: Vec<Latencies>,
}

/// A run's threads share this.
struct Loop<'a> {
    run: &'a Run<'a>,
    database: &'a Database,
    schedule: Schedule,
    writes: u64,
    windows: u64,
}

pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let tables = if run.spec.mode == "none" { Vec::new() } else { make_tables(run, &options)? };
    let database = run.open(&options, &run.flags)?;
    let vfs = run.vfs.as_ref();
    let asked = run.spec.ingest;
    let meter = Meter::start(vfs);
    let schedule = Schedule { start: vfs.now() + LEAD, rate: asked.rate, period: Duration::from_secs(1) };
    let whole = Duration::from_secs(asked.seconds);
    let windows = whole.as_nanos().div_ceil(WINDOW.as_nanos()) as u64;
    let shared = Loop { run, database: &database, schedule, writes: schedule.count_within(whole), windows };
    let writers = run.flags.threads as u64;
    let (written, ingests) = std::thread::scope(|scope| -> Result<_> {
        let shared = &shared;
        let writing: Vec<_> = (0..writers).map(|nth| scope.spawn(move || shared.write(nth))).collect();
        let ingesting = scope.spawn(|| shared.ingest(&tables));
        // All have ended before the first failure is passed on.
        let written: Vec<_> = writing.into_iter().map(join).collect();
        let ingests = join(ingesting)?;
        Ok((written.into_iter().collect::<Result<Vec<Written>>>()?, ingests))
    })?;
    let used = meter.read();
    let mut record = shared.record(&written)?;
    record.ingests = ingests;
    let record = meter.finish(record, used, Some(&database))?;
    tables.iter().try_for_each(|path| vfs.remove_file(path))?;
    Ok(record)
}

/// Tables for the whole run, each of keys scattered over all of them.
fn make_tables(run: &Run<'_>, options: &Options) -> Result<Vec<PathBuf>> {
    let flags = &run.flags;
    let asked = run.spec.ingest;
    let count = (asked.seconds * 1000).saturating_sub(1) / asked.interval_ms;
    let mut rng = Rng::new(flags.seed ^ 0x1D6E);
    let mut values = Values::new(&mut rng, flags.value_size, flags.compression_ratio);
    let mut key = KeyBuffer::new(flags.key_size);
    let mut paths = Vec::new();
    for nth in 0..count {
        let mut numbers: Vec<u64> = (0..TABLE_ENTRIES).map(|_| rng.below(flags.num)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let path = run.spec.db.with_extension(format!("ingest-{nth}"));
        let mut table = TableFile::create(options, &path)?;
        for number in numbers {
            table.put(key.set(number), values.next())?;
        }
        table.finish()?;
        paths.push(path);
    }
    Ok(paths)
}

impl Loop<'_> {
    fn vfs(&self) -> &dyn Vfs {
        self.run.vfs.as_ref()
    }

    /// One writer: every so many'th write of the schedule, under random keys.
    fn write(&self, first: u64) -> Result<Written> {
        let flags = &self.run.flags;
        let mut rng = Rng::new(flags.seed ^ (first + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let mut values = Values::new(&mut rng, flags.value_size, flags.compression_ratio);
        let mut key = KeyBuffer::new(flags.key_size);
        let mut batch = self.database.new_batch()?;
        let mut windows = (0..self.windows).map(|_| Latencies::new()).collect::<Result<Vec<_>>>()?;
        let turns = Turns { first, step: flags.threads as u64, end: self.writes, recorded_from: 0 };
        let all = drive(self.vfs(), &self.schedule, turns, PATIENCE, |nth| {
            self.database.put(&mut batch, key.set(rng.below(flags.num)), values.next())?;
            let begins = self.schedule.begins(nth);
            let window = (begins.saturating_sub(self.schedule.start).as_nanos() / WINDOW.as_nanos()) as usize;
            if let Some(window) = windows.get_mut(window) {
                window.record(self.vfs().now().saturating_sub(begins));
            }
            Ok(())
        })?;
        Ok(Written { all, windows })
    }

    /// Ingests a table at every interval.
    fn ingest(&self, tables: &[PathBuf]) -> Result<Vec<Ingested>> {
        let period = Duration::from_millis(self.run.spec.ingest.interval_ms);
        let schedule = Schedule { start: self.schedule.start + period / 2, rate: 1, period };
        let turns = Turns { first: 0, step: 1, end: tables.len() as u64, recorded_from: u64::MAX };
        let mut done = Vec::new();
        drive(self.vfs(), &schedule, turns, Patience { late_max: Duration::MAX, ..PATIENCE }, |nth| {
            let Some(path) = tables.get(nth as usize) else { return Ok(()) };
            let called = self.vfs().now();
            self.ingest_one(path)?;
            done.push(Ingested {
                at_s: called.saturating_sub(self.schedule.start).as_secs_f64(),
                took_ms: self.vfs().now().saturating_sub(called).as_secs_f64() * 1e3,
            });
            Ok(())
        })?;
        Ok(done)
    }

    fn ingest_one(&self, path: &Path) -> Result<()> {
        if self.run.spec.mode != "flush-first" {
            return self.database.ingest(&[path], true);
        }
        for _ in 0..TRIES_MAX {
            self.database.flush()?;
            match self.database.ingest(&[path], false) {
                // What it says where a memtable holds keys of the table's range.
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
                done => return done,
            }
        }
        Err(Error::busy("the memtable has keys of the table's range again after every flush"))
    }

    fn record(&self, written: &[Written]) -> Result<SideRecord> {
        let flags = &self.run.flags;
        let mut all = Latencies::new()?;
        let mut by_window = (0..self.windows).map(|_| Latencies::new()).collect::<Result<Vec<_>>>()?;
        for one in written {
            all.add(&one.all)?;
            for (sum, window) in by_window.iter_mut().zip(&one.windows) {
                sum.add(window)?;
            }
        }
        let windows = by_window.iter().enumerate().map(|(nth, times)| Window {
            at_s: (WINDOW * nth as u32).as_secs_f64(),
            writes: times.count(),
            p50_us: times.percentile_us(50.0),
            p99_us: times.percentile_us(99.0),
            max_us: times.max_us(),
        });
        Ok(SideRecord {
            figure: all.percentile_us(99.9),
            unit: Unit::P999Us,
            threads: flags.threads,
            ops: all.count(),
            user_bytes: all.count() * (flags.key_size + flags.value_size) as u64,
            windows: windows.collect(),
            latency: [("write".to_owned(), all.distribution())].into(),
            ..SideRecord::default()
        })
    }
}
