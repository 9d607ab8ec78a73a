//! Writers beside ingests in every mode, in Spillway's own engine: one run without ingests and one for each mode, by turns.

mod entries;
mod flags;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use serde::{Deserialize, Serialize};
use spillway::{DEFAULT_FAMILY, Db, Family, IngestMode, IngestOptions, OpenOptions, ReadOptions, WriteOptions};
use vfs::Vfs;

use self::entries::{Entries, Table, family_options, is_value_of};
pub use self::flags::IngestFlags;
use crate::beside::{Done, Plan};
use crate::flags::choices::Named;
use crate::machine::{Occasion, Setting};
use crate::report::{Figure, Spec, drawn};
use crate::sinks::{JsonLine, json_of, value_of, with_sinks, write_text};

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "ingest";

/// The mode of the run without ingests.
const NONE: &str = "none";

/// One write in so many is looked for in the end.
const CHECKED_ONE_IN: u64 = 64;

/// A line of JSON: a run of writers, in microseconds from when each write should have begun.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WritersRecord {
    /// `none`: the same writers without ingests.
    pub mode: String,
    pub sync: bool,
    pub writers: u64,
    /// Writes a second, of all writers together.
    pub rate: u64,
    /// That were done while they wrote.
    pub ingests: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    pub max_us: f64,
    /// The longest that a writer was stopped for an ingest.
    pub ingest_wait_max_us: f64,
    /// Of the calls that ingested, from the call to its return.
    pub ingest_p50_us: f64,
    pub round: u32,
    /// Writes that were recorded.
    pub writes: u64,
    #[serde(flatten)]
    pub setting: Setting,
}

impl WritersRecord {
    /// The line for whoever watches.
    fn text(&self) -> String {
        format!(
            "{:<11}  round {:>2}  p50 {:>7.1}  p99 {:>8.1}  p99.9 {:>8.1}  p99.99 {:>8.1}  max {:>8.1} us  {:>3} ingests (p50 {:>8.1} us), \
             longest wait for one {:>7.1} us",
            self.mode,
            self.round,
            self.p50_us,
            self.p99_us,
            self.p999_us,
            self.p9999_us,
            self.max_us,
            self.ingests,
            self.ingest_p50_us,
            self.ingest_wait_max_us
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

/// Runs what the flags ask for; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_modes`].
pub fn run(flags: &IngestFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_modes(flags, vfs, text, json))
}

/// Makes the runs: a line of text and one of JSON for each, a table of medians at the end. Who goes first changes from round to
/// round.
///
/// # Errors
/// `InvalidArgument`: the writers cannot keep up with their rate. `Corruption`: something that was written or ingested is
/// not there. Otherwise the first failure of an operation.
pub fn run_modes(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, text: &mut dyn Write, json: &mut JsonLine<'_>) -> Result<()> {
    let made_in = Path::new(&flags.db).join("tables");
    vfs.create_dir_all(&made_in)?;
    let setting = Setting::new(KIND, &Occasion::now(vfs.as_ref(), Path::new(&flags.db)), flags.conditions());
    let tables = Table::all(flags, &made_in, vfs)?;
    let modes: Vec<Option<IngestMode>> = std::iter::once(None).chain(flags.mode.0.iter().copied().map(Some)).collect();
    let mut records = Vec::new();
    for round in 0..flags.rounds {
        for turn in 0..modes.len() {
            let Some(&mode) = modes.get((turn + round as usize) % modes.len()) else { continue };
            let run = Run { flags, tables: &tables, mode };
            let keep = flags.keep && round + 1 == flags.rounds;
            let mut record = run.measure(vfs, keep).map_err(|e| e.context(run.name()))?;
            (record.round, record.setting) = (round, setting.clone());
            write_text(text, &record.text())?;
            json(&json_of(&record)?)?;
            records.push(value_of(&record)?);
        }
    }
    if flags.tables.0.is_empty() {
        tables.iter().try_for_each(|table| vfs.remove_file(&table.path))?;
    }
    vfs.remove_dir(&made_in)?;
    write_text(text, &drawn(&summary(), &records)?)
}

/// One run.
struct Run<'a> {
    flags: &'a IngestFlags,
    tables: &'a [Table],
    mode: Option<IngestMode>,
}

impl Run<'_> {
    fn name(&self) -> &'static str {
        self.mode.map_or(NONE, Named::name)
    }

    /// The database's folder stays with `keep`.
    fn measure(&self, vfs: &Arc<dyn Vfs>, keep: bool) -> Result<WritersRecord> {
        let path: PathBuf = Path::new(&self.flags.db).join(self.name());
        let family = family_options(self.flags.write_buffer_size);
        let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
        options.vfs = vfs.clone();
        let db = Db::open(&path, &options)?;
        let family = db.default_family();
        let plan = self.flags.plan();
        let done = self.drive(&plan, vfs.as_ref(), &db, &family)?;
        let waited = db.ingest_waits().longest;
        self.check(&plan, &db, &family, done.ingests.count())?;
        db.close()?;
        if !keep {
            drop((family, db));
            Db::destroy(&path, None, vfs)?;
        }
        Ok(self.record(&done, waited))
    }

    fn drive(&self, plan: &Plan, vfs: &dyn Vfs, db: &Db, family: &Arc<Family>) -> Result<Done> {
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
        let options = IngestOptions {
            mode: self.mode.unwrap_or(IngestMode::Flushable),
            link_files: true,
            ..IngestOptions::default()
        };
        let ingest = |nth: u64| {
            let table = self.tables.iter().cycle().nth(nth as usize);
            table.map_or(Ok(()), |table| db.ingest(family, std::slice::from_ref(&table.path), &options).map(drop))
        };
        plan.run(vfs, writer, self.mode.is_some().then_some(&ingest))
    }

    /// Looks for some of what was written, which is drawn once more, and for some of every table.
    fn check(&self, plan: &Plan, db: &Db, family: &Arc<Family>, ingests: u64) -> Result<()> {
        let mut finder = Entries::new(self.flags, 0);
        let mut is_there = |number: u64| -> Result<()> {
            let value = db.get(family, finder.entry(number).0, &ReadOptions::default())?;
            match value {
                Some(value) if is_value_of(&value, number) => Ok(()),
                _ => Err(Error::corruption(format!("number {number} was written or ingested and is not there"))),
            }
        };
        for first in 0..plan.writers {
            let mut entries = Entries::new(self.flags, first);
            for nth in (first..plan.writes()).step_by(plan.writers as usize) {
                let number = entries.draw(nth, self.flags.key_range);
                if (nth / plan.writers).is_multiple_of(CHECKED_ONE_IN) {
                    is_there(number)?;
                }
            }
        }
        let tables = self.tables.iter().take(ingests as usize);
        tables.flat_map(|table| &table.numbers).try_for_each(|number| is_there(*number))
    }

    fn record(&self, done: &Done, waited: Duration) -> WritersRecord {
        WritersRecord {
            mode: self.name().to_owned(),
            sync: self.flags.sync,
            writers: self.flags.writers,
            rate: self.flags.rate,
            ingests: done.ingests.count(),
            p50_us: done.writes.percentile_us(50.0),
            p99_us: done.writes.percentile_us(99.0),
            p999_us: done.writes.percentile_us(99.9),
            p9999_us: done.writes.percentile_us(99.99),
            max_us: done.writes.max_us(),
            ingest_wait_max_us: waited.as_secs_f64() * 1e6,
            ingest_p50_us: done.ingests.percentile_us(50.0),
            writes: done.writes.count(),
            ..WritersRecord::default()
        }
    }
}

#[cfg(test)]
mod tests;
