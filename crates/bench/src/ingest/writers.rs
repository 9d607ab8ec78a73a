//! What writers see of ingests: the same writers at the same fixed rate, without ingests and with them in every mode, by
//! turns on new databases. What was written and ingested is looked for in the end.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Error, Result};
use rustix::thread::set_current_timer_slack;
use spillway::{DEFAULT_FAMILY, Db, Family, IngestMode, IngestOptions, OpenOptions, ReadOptions, WriteOptions};
use vfs::{IfExists, IoClass, Vfs};

use super::flags::{Bring, IngestFlags, Tables};
use super::record::{NONE, WritersRecord};
use super::tables::{Entries, KEY_BYTES, TableSet, family_options, is_value_of};
use crate::flags::choices::Named;
use crate::harness::processor_time;
use crate::latency::Latencies;
use crate::machine::{Setting, stolen_time};
use crate::open_loop::{Patience, Schedule, Turns, drive};
use crate::work::threads::join;
use crate::workload::KeyBuffer;

/// From when the threads start to the first write.
const LEAD: Duration = Duration::from_millis(20);

/// One write in so many is looked for in the end.
const CHECKED_ONE_IN: u64 = 64;

const SECOND: Duration = Duration::from_secs(1);

/// How often a run is made again at the most.
const REPEATS_MAX: u32 = 10;

/// So many seconds at the most a run waits for one in which the host takes nothing.
const QUIET_WAITS_MAX: u32 = 60;

/// What goes on beside the writers.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    /// Each table is copied into a file, which is synced, and its folder; no database has to do with it. More
    /// writing than an ingest that links needs: it tells what the disk makes of writing.
    Copies,
    Ingests(IngestMode),
}

/// The name of [`Beside::Copies`] among those of modes.
const COPY: &str = "copy alone";

/// One run.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    flags: &'a IngestFlags,
    set: &'a TableSet,
    tables: Tables,
    sync: bool,
    beside: Beside,
    round: u32,
}

/// Makes the runs of every load: in each round each mode and the run without ingests take a turn, and who is first changes.
/// `told` is called with each result.
///
/// # Errors
/// `InvalidArgument`: the writers cannot keep up with their rate. `Corruption`: something that was written or ingested is
/// not there. Otherwise the first failure of an operation.
pub fn run(
    flags: &IngestFlags,
    vfs: &Arc<dyn Vfs>,
    setting: &Setting,
    told: &mut dyn FnMut(WritersRecord) -> Result<()>,
) -> Result<()> {
    let made_in = Path::new(&flags.db).join("tables");
    vfs.create_dir_all(&made_in)?;
    let modes = flags.mode.0.iter().copied().map(Beside::Ingests);
    let copies = flags.copy.then_some(Beside::Copies);
    let modes: Vec<Beside> = std::iter::once(Beside::Nothing).chain(copies).chain(modes).collect();
    for &tables in &flags.loads.0 {
        let set = TableSet::make(flags, tables, &made_in, vfs)?;
        for round in 0..flags.rounds {
            for &sync in &flags.sync.0 {
                for turn in 0..modes.len() {
                    let Some(&beside) = modes.get((turn + round as usize) % modes.len()) else { continue };
                    let run = Run { flags, set: &set, tables, sync, beside, round };
                    told(run.measure_undisturbed(vfs, setting).map_err(|e| e.context(run.name()))?)?;
                }
            }
        }
        if tables != Tables::Given {
            set.tables.iter().try_for_each(|table| vfs.remove_file(&table.path))?;
        }
    }
    vfs.remove_dir(&made_in)
}

/// What a run's threads did.
struct Done {
    writes: Latencies,
    ingests: Latencies,
    /// The longest from an ingest's commit lock until it was in the log.
    held_up: Duration,
    /// Some of the numbers that were written.
    written: Vec<u64>,
    cpu_percent: f64,
    stolen_percent: f64,
}

impl Run<'_> {
    fn name(&self) -> String {
        let sync = if self.sync { "-sync" } else { "" };
        format!("{}-{}{sync}", self.tables.name(), self.mode_name().replace(' ', "-"))
    }

    fn mode_name(&self) -> &'static str {
        match self.beside {
            Beside::Nothing => NONE,
            Beside::Copies => COPY,
            Beside::Ingests(mode) => mode.name(),
        }
    }

    fn rate(&self) -> u64 {
        if self.sync { self.flags.sync_rate } else { self.flags.rate }
    }

    /// Makes the run, again and again while the host takes more than it may: whatever the latencies were, so that nothing is
    /// chosen by them.
    fn measure_undisturbed(&self, vfs: &Arc<dyn Vfs>, setting: &Setting) -> Result<WritersRecord> {
        let stolen_max = self.flags.stolen_max;
        for repeats in 0.. {
            if stolen_max < 100.0 {
                wait_until_quiet(vfs.as_ref());
            }
            let record = self.measure(vfs, setting)?;
            let counts = record.stolen_percent <= stolen_max || repeats == REPEATS_MAX;
            if !counts || !self.flags.keep || self.round + 1 < self.flags.rounds {
                Db::destroy(self.path(), None, vfs)?;
            }
            if counts {
                return Ok(WritersRecord { repeats, ..record });
            }
        }
        unreachable!("the loop ends by a return")
    }

    fn path(&self) -> PathBuf {
        Path::new(&self.flags.db).join(self.name())
    }

    /// Leaves the database where [`path`](Self::path) says.
    fn measure(&self, vfs: &Arc<dyn Vfs>, setting: &Setting) -> Result<WritersRecord> {
        let db = self.open(&self.path(), vfs)?;
        let family = db.default_family();
        let done = self.drive(vfs.as_ref(), &db, &family)?;
        let waited = db.ingest_waits().longest;
        self.check(&db, &family, &done)?;
        db.close()?;
        Ok(self.record(&done, waited, setting))
    }

    fn open(&self, path: &Path, vfs: &Arc<dyn Vfs>) -> Result<Db> {
        let family = family_options(self.flags.write_buffer_size);
        let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
        options.vfs = vfs.clone();
        Db::open(path, &options)
    }

    /// Runs the writers, and the thread that ingests.
    fn drive(&self, vfs: &dyn Vfs, db: &Db, family: &Arc<Family>) -> Result<Done> {
        let flags = self.flags;
        let start = vfs.now() + LEAD;
        let (cpu_before, stolen_before) = (processor_time(), stolen_time(vfs));
        let (mut writes, mut written) = (Latencies::new()?, Vec::new());
        let held_up = AtomicU64::new(0);
        let ingests = std::thread::scope(|scope| -> Result<Latencies> {
            let writer = |first| scope.spawn(move || self.write(vfs, db, family, first, start));
            let writers: Vec<_> = (0..flags.writers).map(writer).collect();
            let ingester = match self.beside {
                Beside::Nothing => None,
                Beside::Copies => Some(scope.spawn(move || self.copy(vfs, start))),
                Beside::Ingests(mode) => {
                    let held_up = &held_up;
                    Some(scope.spawn(move || self.ingest(vfs, (db, family), mode, (start, held_up))))
                }
            };
            // All have ended before the first failure is passed on.
            let wrote: Vec<_> = writers.into_iter().map(join).collect();
            let ingested = ingester.map(join);
            for one in wrote {
                let (times, numbers) = one?;
                writes.add(&times)?;
                written.extend(numbers);
            }
            ingested.unwrap_or_else(Latencies::new)
        })?;
        let wall = (vfs.now() + LEAD).saturating_sub(start);
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let cpu = processor_time().saturating_sub(cpu_before);
        let percent = |time: Duration| 100.0 * time.as_secs_f64() / wall.as_secs_f64() / cores;
        let stolen_percent = percent(stolen_time(vfs).saturating_sub(stolen_before));
        let held_up = Duration::from_nanos(held_up.into_inner());
        Ok(Done { writes, ingests, held_up, written, cpu_percent: percent(cpu), stolen_percent })
    }

    /// One writer: every so many'th write of the schedule. Returns times, and some of the numbers that it wrote.
    fn write(
        &self,
        vfs: &dyn Vfs,
        db: &Db,
        family: &Arc<Family>,
        first: u64,
        start: Duration,
    ) -> Result<(Latencies, Vec<u64>)> {
        wake_in_time();
        let flags = self.flags;
        let schedule = Schedule { start, rate: self.rate(), period: SECOND };
        let turns = Turns {
            first,
            step: flags.writers,
            end: schedule.count_within(self.warmup() + self.measured()),
            recorded_from: schedule.count_within(self.warmup()),
        };
        let patience = Patience { spin: Duration::from_micros(flags.spin_us), late_max: self.measured().max(SECOND) };
        let options = WriteOptions { sync: self.sync, ..WriteOptions::default() };
        let mut entries = Entries::new(flags, first);
        let mut written = Vec::new();
        let times = drive(vfs, &schedule, turns, patience, |nth| {
            let number = entries.draw(nth, self.set.range);
            let (key, value) = entries.entry(number);
            db.put(family, key, value, &options)?;
            if (nth / flags.writers).is_multiple_of(CHECKED_ONE_IN) {
                written.push(number);
            }
            Ok(())
        })?;
        Ok((times, written))
    }

    /// Ingests while the writers write.
    fn ingest(
        &self,
        vfs: &dyn Vfs,
        (db, family): (&Db, &Arc<Family>),
        mode: IngestMode,
        (start, held_up): (Duration, &AtomicU64),
    ) -> Result<Latencies> {
        let options = IngestOptions {
            mode,
            link_files: self.flags.bring == Bring::Link,
            verify_checksums_before_ingest: self.flags.verify,
            ..IngestOptions::default()
        };
        self.at_even_distances(vfs, start, |table| {
            let report = db.ingest(family, std::slice::from_ref(table), &options)?;
            held_up.fetch_max(report.held_up_for.as_nanos() as u64, Ordering::Relaxed);
            Ok(())
        })
    }

    fn copy(&self, vfs: &dyn Vfs, start: Duration) -> Result<Latencies> {
        let dir = Path::new(&self.flags.db).join(self.name() + "-copies");
        vfs.create_dir_all(&dir)?;
        let times = self.at_even_distances(vfs, start, |table| copy_durably(vfs, table, &dir))?;
        vfs.remove_dir(&dir)?;
        Ok(times)
    }

    /// Calls `take` with one table after the other. The times are those of the calls themselves.
    fn at_even_distances(
        &self,
        vfs: &dyn Vfs,
        start: Duration,
        take: impl Fn(&PathBuf) -> Result<()>,
    ) -> Result<Latencies> {
        let flags = self.flags;
        let period = flags.interval(self.tables);
        let first = start + self.warmup();
        let end = first + self.measured();
        let schedule = Schedule { start: first + period / 2, rate: 1, period };
        let turns = Turns { first: 0, step: 1, end: flags.ingests_of_a_run(self.tables), recorded_from: u64::MAX };
        let patience = Patience { spin: Duration::ZERO, late_max: Duration::MAX };
        let mut calls = Latencies::new()?;
        drive(vfs, &schedule, turns, patience, |nth| {
            let called = vfs.now();
            // What the writers would not meet says nothing. One there is always.
            if let Some(table) = self.set.nth(nth).filter(|_| called < end || nth == 0) {
                take(&table.path)?;
                calls.record(vfs.now() - called);
            }
            Ok(())
        })?;
        Ok(calls)
    }

    fn warmup(&self) -> Duration {
        Duration::from_secs_f64(self.flags.warmup)
    }

    fn measured(&self) -> Duration {
        Duration::from_secs_f64(self.flags.seconds)
    }

    /// Looks for some of what was written, and some of every table.
    fn check(&self, db: &Db, family: &Arc<Family>, done: &Done) -> Result<()> {
        let is_there = |key: &[u8], number| -> Result<bool> {
            let value = db.get(family, key, &ReadOptions::default())?;
            Ok(value.is_some_and(|value| is_value_of(&value, number)))
        };
        let mut entries = Entries::new(self.flags, 0);
        for &number in &done.written {
            if !is_there(entries.entry(number).0, number)? {
                return Err(Error::corruption(format!("number {number} was written and is not there")));
            }
        }
        let mut key = KeyBuffer::new(KEY_BYTES);
        let ingested = if matches!(self.beside, Beside::Ingests(_)) { done.ingests.count() } else { 0 };
        for table in self.set.tables.iter().take(ingested as usize) {
            for &number in &table.sample {
                if !is_there(key.set(number), number)? {
                    let message = format!("number {number} of this table was ingested and is not there");
                    return Err(Error::corruption(message).at_path(&table.path));
                }
            }
        }
        Ok(())
    }

    fn record(&self, done: &Done, waited: Duration, setting: &Setting) -> WritersRecord {
        WritersRecord {
            mode: self.mode_name().to_owned(),
            sync: self.sync,
            writers: self.flags.writers,
            rate: self.rate(),
            ingests: done.ingests.count(),
            p50_us: done.writes.percentile_us(50.0),
            p99_us: done.writes.percentile_us(99.0),
            p999_us: done.writes.percentile_us(99.9),
            p9999_us: done.writes.percentile_us(99.99),
            max_us: done.writes.max_us(),
            ingest_wait_max_us: waited.as_secs_f64() * 1e6,
            ingest_window_max_us: done.held_up.as_secs_f64() * 1e6,
            ingest_p50_us: done.ingests.percentile_us(50.0),
            ingest_max_us: done.ingests.max_us(),
            tables: self.tables.name().to_owned(),
            tables_bytes: self.set.bytes(),
            round: self.round,
            writes: done.writes.count(),
            cpu_percent: done.cpu_percent,
            stolen_percent: done.stolen_percent,
            repeats: 0,
            setting: setting.clone(),
        }
    }
}

/// Returns after a second in which the machine's host took next to nothing.
fn wait_until_quiet(vfs: &dyn Vfs) {
    for _ in 0..QUIET_WAITS_MAX {
        let before = stolen_time(vfs);
        vfs.sleep(SECOND);
        if stolen_time(vfs).saturating_sub(before) <= Duration::from_millis(20) {
            return;
        }
    }
}

/// Copies a table into `dir`, and deletes the copy once a power loss could not have.
fn copy_durably(vfs: &dyn Vfs, table: &Path, dir: &Path) -> Result<()> {
    let bytes = vfs.map_read(table)?;
    let path = dir.join("copy");
    let mut file = vfs.create(&path, IfExists::Truncate)?;
    file.append((*bytes).as_ref(), IoClass::Other)?;
    file.sync(IoClass::Other)?;
    vfs.sync_dir(dir)?;
    vfs.remove_file(&path)
}

/// Has this thread's sleeps end when they should, not up to 50 microseconds later. Where the kernel does not allow that, the
/// latencies without ingests show it.
fn wake_in_time() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}
