//! Writers beside ingests in every mode, in Spillway's own engine: one run without ingests and one for each mode, by turns.

mod entries;
mod flags;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use serde::{Deserialize, Serialize};
use spillway::internal::{DEFAULT_FAMILY, Database, Family, IngestOptions, OpenOptions, ReadOptions, WriteOptions};
use vfs::Vfs;

use self::entries::{Entries, Table, family_options, is_value_of};
pub use self::flags::IngestFlags;
use self::flags::Mode;
use crate::beside::{Done, Plan};
use crate::latency::Distribution;
use crate::machine::Setting;
use crate::report::{Figure, Spec};
use crate::sinks::Output;

/// The value of `kind` in these lines.
pub const KIND: &str = "ingest";

/// One write in so many is looked up at the end.
const CHECKED_ONE_IN: u64 = 64;

/// A line of JSON: a run of writers. Latencies in microseconds count from the time at which a write was due.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WritersRecord {
    /// `none`: the same writers without ingests.
    pub mode: String,
    pub sync: bool,
    pub writers: u64,
    /// Writes a second, of all writers together.
    pub rate: u64,
    /// Ingests done beside the writers.
    pub ingests: u64,
    /// Of the recorded writes.
    #[serde(flatten)]
    pub latency: Distribution,
    /// The longest wait of a writer for an ingest.
    pub ingest_wait_max_us: f64,
    /// Of ingest calls, from the call to its return.
    pub ingest_p50_us: f64,
    pub round: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

impl WritersRecord {
    /// The line printed for people.
    fn text(&self) -> String {
        let Distribution { p50_us, p99_us, p999_us, p9999_us, max_us, .. } = self.latency;
        format!(
            "{:<11}  round {:>2}  p50 {p50_us:>7.1}  p99 {p99_us:>8.1}  p99.9 {p999_us:>8.1}  p99.99 {p9999_us:>8.1}  max {max_us:>8.1} us  \
             {:>3} ingests (p50 {:>8.1} us), longest wait for one {:>7.1} us",
            self.mode, self.round, self.ingests, self.ingest_p50_us, self.ingest_wait_max_us
        )
    }
}

/// Medians by mode.
fn summary() -> Spec {
    let percentiles = [("p50_us", "p50"), ("p99_us", "p99"), ("p999_us", "p99.9"), ("p9999_us", "p99.99")];
    let calls = [("ingest_p50_us", "ingest"), ("ingest_wait_max_us", "longest wait")];
    let figures = percentiles.iter().chain(&calls).map(|(field, name)| Figure::new(field, name, 1));
    Spec { rows: vec!["mode".to_owned()], figures: figures.collect(), ..Spec::default() }
}

/// Makes the runs: a line for each, a table of medians at the end. The first mode changes from round to round.
///
/// # Errors
/// `InvalidArgument`: a flag's value is not allowed, or the writers cannot keep up with their rate. `Corruption`: a written or
/// ingested key is missing. Otherwise the first failure of an operation.
pub fn run(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, out: &mut Output<'_>) -> Result<()> {
    flags.check()?;
    let made_in = flags.db.join("tables");
    vfs.create_dir_all(&made_in)?;
    let setting = Setting::now(KIND, flags.conditions(), vfs.as_ref(), &flags.db);
    let tables = Table::all(flags, &made_in, vfs)?;
    let mut modes = flags.modes();
    for round in 0..flags.rounds {
        for mode in &modes {
            let run = Run { flags, tables: &tables, mode: *mode };
            let keep = flags.keep && round + 1 == flags.rounds;
            let mut record = run.measure(vfs, keep).map_err(|e| e.context(mode.name()))?;
            (record.round, record.setting) = (round, setting.clone());
            out.keep(&record.text(), &record)?;
        }
        modes.rotate_left(1);
    }
    if flags.tables.is_empty() {
        tables.iter().try_for_each(|table| vfs.remove_file(&table.path))?;
    }
    vfs.remove_dir(&made_in)?;
    out.show(&summary())
}

/// One run.
struct Run<'a> {
    flags: &'a IngestFlags,
    tables: &'a [Table],
    mode: Mode,
}

impl Run<'_> {
    /// The database's folder stays with `keep`.
    fn measure(&self, vfs: &Arc<dyn Vfs>, keep: bool) -> Result<WritersRecord> {
        let path: PathBuf = self.flags.db.join(self.mode.name());
        let family = family_options(self.flags.write_buffer_size);
        let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
        options.vfs = vfs.clone();
        (options.db.statistics, options.db.observe_socket) = (self.flags.live, self.flags.live);
        let db = Database::open(&path, &options)?;
        let family = db.default_family();
        let plan = self.flags.plan();
        let done = self.drive(&plan, vfs.as_ref(), &db, &family)?;
        let waited = db.ingest_waits().longest;
        self.check(&plan, &db, &family, done.ingests.count())?;
        db.close()?;
        if !keep {
            drop((family, db));
            Database::destroy(&path, None, vfs)?;
        }
        Ok(self.record(&done, waited))
    }

    fn drive(&self, plan: &Plan, vfs: &dyn Vfs, db: &Database, family: &Arc<Family>) -> Result<Done> {
        let writes = WriteOptions { sync: self.flags.sync, ..WriteOptions::default() };
        let writes = &writes;
        let writer = |first: u64| {
            let mut entries = Entries::new(self.flags, first);
            Ok(move |nth: u64| {
                let number = entries.draw(nth, self.flags.key_range);
                let (key, value) = entries.entry(number);
                db.put(family, key, value, writes)
            })
        };
        let options = IngestOptions { mode: self.mode.of_engine(), link_files: true, ..IngestOptions::default() };
        let ingest = |nth: u64| {
            let table = self.tables.iter().cycle().nth(nth as usize);
            table.map_or(Ok(()), |table| db.ingest(family, std::slice::from_ref(&table.path), &options).map(drop))
        };
        plan.run(vfs, writer, (self.mode != Mode::None).then_some(&ingest))
    }

    /// Looks up a sample of the written keys, drawn once more from the same seeds, and all keys of the ingested tables.
    fn check(&self, plan: &Plan, db: &Database, family: &Arc<Family>, ingests: u64) -> Result<()> {
        let is_there = |entries: &mut Entries, number: u64| -> Result<()> {
            let value = db.get(family, entries.entry(number).0, &ReadOptions::default())?;
            match value {
                Some(value) if is_value_of(&value, number) => Ok(()),
                _ => Err(Error::corruption(format!(
                    "the key of number {number} was written or ingested, and is missing"
                ))),
            }
        };
        let mut finder = Entries::new(self.flags, 0);
        for first in 0..plan.writers {
            let mut entries = Entries::new(self.flags, first);
            for nth in (first..plan.writes()).step_by(plan.writers as usize) {
                let number = entries.draw(nth, self.flags.key_range);
                if (nth / plan.writers).is_multiple_of(CHECKED_ONE_IN) {
                    is_there(&mut finder, number)?;
                }
            }
        }
        let mut finder = Entries::of_tables(self.flags);
        let tables = self.tables.iter().take(ingests as usize);
        tables.flat_map(|table| &table.numbers).try_for_each(|number| is_there(&mut finder, *number))
    }

    fn record(&self, done: &Done, waited: Duration) -> WritersRecord {
        WritersRecord {
            mode: self.mode.name(),
            sync: self.flags.sync,
            writers: self.flags.writers,
            rate: self.flags.rate,
            ingests: done.ingests.count(),
            latency: done.writes.distribution(),
            ingest_wait_max_us: waited.as_secs_f64() * 1e6,
            ingest_p50_us: done.ingests.percentile_us(50.0),
            ..WritersRecord::default()
        }
    }
}

#[cfg(test)]
mod tests;
