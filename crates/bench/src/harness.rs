//! Runs benchmarks one after the other: opens the database each wants, starts its threads together, adds up what they
//! did, prints it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use memtable::factory_from_option_string;
use rustix::time::{ClockId, clock_gettime};
use spillway::Db;
use vfs::Vfs;

use crate::flags::Flags;
use crate::options::open_options;
use crate::outcome::{Circumstances, Outcome};
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};
use crate::state;
use crate::store::Direct;
use crate::work::threads::{base_of, run_threads};
use crate::work::{BENCHMARKS, Benchmark, Ground};
use crate::workload::Rng;

/// Stands between the header and the benchmarks, as in db_bench's output.
const HEADER_END: &str = "------------------------------------------------";

/// A line for each benchmark.
pub fn help() -> String {
    let lines = BENCHMARKS.iter().map(|benchmark| (benchmark.name, benchmark.about));
    lines.chain(state::COMMANDS.iter().copied()).map(|(name, about)| format!("  {name:<22}  {about}\n")).collect()
}

/// Runs the benchmarks that the flags name; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_benchmarks`].
pub fn run(flags: &Flags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_benchmarks(flags, vfs, text, json))
}

/// Runs the benchmarks that the flags name, writing text to `text` and each outcome's JSON to `json`.
///
/// # Errors
/// `InvalidArgument`: a benchmark or a memtable that does not exist. Otherwise the first failure of an operation.
pub fn run_benchmarks(flags: &Flags, vfs: &Arc<dyn Vfs>, text: &mut dyn Write, json: &mut JsonLine<'_>) -> Result<()> {
    let names: Vec<&str> = flags.benchmarks.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let unknown = |name: &&&str| !BENCHMARKS.iter().any(|b| b.name == **name) && !state::is_command(name);
    if let Some(name) = names.iter().find(unknown) {
        return Err(Error::invalid_argument(format!("unknown benchmark {name:?}; --help lists them")));
    }
    factory_from_option_string(&flags.memtablerep)?;
    let seed = if flags.seed == 0 { vfs.unix_time_us() } else { flags.seed };
    let mut session = Session { flags, vfs: vfs.clone(), db: None, rng: Rng::new(seed) };
    write_text(text, &header(flags))?;
    for name in names {
        if let Some(outcome) = session.run_named(name, text)? {
            json(&json_of(&outcome)?)?;
        }
    }
    if let Some(db) = session.db.as_ref().filter(|_| flags.statistics) {
        state::print(db, "rocksdb.options-statistics", text)?;
    }
    session.close()
}

fn header(flags: &Flags) -> String {
    let entry = flags.key_size + flags.value_size;
    format!(
        "Spillway:   version {}\nKeys:       {} bytes each\nValues:     {} bytes each\nEntries:    {}\n\
         RawSize:    {:.1} MB (estimated)\nCompression: {}\nMemtablerep: {}\nDB path: [{}]\n{HEADER_END}",
        env!("CARGO_PKG_VERSION"),
        flags.key_size,
        flags.value_size,
        flags.num,
        (flags.num * entry as u64) as f64 / f64::from(1 << 20),
        flags.compression_type,
        flags.memtablerep,
        flags.db,
    )
}

/// Processor time that the process has used so far, all threads together.
pub fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// A run: the database stays open from one benchmark to the next.
struct Session<'a> {
    flags: &'a Flags,
    vfs: Arc<dyn Vfs>,
    db: Option<Db>,
    /// Where the benchmarks' random numbers start: no two have the same, or a read would follow in a write's steps.
    rng: Rng,
}

impl<'a> Session<'a> {
    fn path(&self) -> &Path {
        Path::new(&self.flags.db)
    }

    /// The open database; a new one where `fresh`.
    fn open(&mut self, fresh: bool) -> Result<&Db> {
        if fresh {
            if self.flags.use_existing_db {
                return Err(Error::invalid_argument("--use_existing_db, and a benchmark that wants a new database"));
            }
            self.close()?;
            if self.vfs.exists(self.path())? {
                Db::destroy(self.path(), None, &self.vfs)?;
            }
        }
        if self.db.is_none() {
            let mut options = open_options(self.flags)?;
            options.vfs = self.vfs.clone();
            self.db = Some(Db::open(self.path(), &options)?);
        }
        self.db.as_ref().ok_or_else(|| Error::closed("the database was not opened"))
    }

    fn close(&mut self) -> Result<()> {
        self.db.take().map_or(Ok(()), |db| db.close())
    }

    /// Runs a benchmark or a command. Some commands have no outcome.
    fn run_named(&mut self, name: &str, text: &mut dyn Write) -> Result<Option<Outcome>> {
        match BENCHMARKS.iter().find(|benchmark| benchmark.name == name) {
            Some(benchmark) => self.run(benchmark, text).map(Some),
            None => {
                let (flags, vfs) = (self.flags, self.vfs.clone());
                let ground = Ground { flags, vfs: vfs.as_ref() };
                state::run(name, self.open(false)?, &ground, text)
            }
        }
    }

    fn run(&mut self, benchmark: &Benchmark, text: &mut dyn Write) -> Result<Outcome> {
        let mut flags = self.flags.clone();
        (benchmark.adjust)(&mut flags);
        let vfs = self.vfs.clone();
        let seed = self.rng.next() ^ base_of(benchmark.name);
        let db = self.open(benchmark.fresh)?;
        let ground = Ground { flags: &flags, vfs: vfs.as_ref() };
        let cpu_before = processor_time();
        let (total, background_writes) = run_threads(benchmark, &Direct::new(db, &flags), &ground, seed)?;
        let about = Circumstances {
            bench: benchmark.name,
            memtable: &flags.memtablerep,
            threads: flags.threads,
            cpu: processor_time().saturating_sub(cpu_before),
            background_writes,
        };
        let outcome = Outcome::new(&about, &total)?;
        write_text(text, &outcome.text(total.looked_up))?;
        if flags.histogram {
            for (operation, latencies) in total.latencies() {
                write_text(text, &latencies.text(operation.name()))?;
            }
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
