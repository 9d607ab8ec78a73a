//! Runs benchmarks one after the other: opens the database, starts the threads together, adds up and prints their results.

use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use memtable::factory_from_option_string;
use spillway::internal::Database;
use vfs::Vfs;

use crate::flags::Flags;
use crate::options::open_options;
use crate::outcome::Outcome;
use crate::sinks::Output;
use crate::state;
use crate::store::Direct;
use crate::work::threads::{base_of, run_threads};
use crate::work::{BENCHMARKS, Benchmark, Ground};
use crate::workload::Rng;

/// Between the header and the benchmarks, as in db_bench's output.
const HEADER_END: &str = "------------------------------------------------";

/// A line for each benchmark.
pub fn help() -> String {
    let lines = BENCHMARKS.iter().map(|benchmark| (benchmark.name, benchmark.about));
    lines.chain(state::COMMANDS.iter().copied()).map(|(name, about)| format!("  {name:<22}  {about}\n")).collect()
}

/// Runs the benchmarks named by the flags.
///
/// # Errors
/// `InvalidArgument`: a value is not allowed, or a benchmark or memtable unknown. Otherwise the first failure of an operation.
pub fn run(flags: &Flags, vfs: &Arc<dyn Vfs>, out: &mut Output<'_>) -> Result<()> {
    flags.check()?;
    let flags = &flags.with_folder();
    let names: Vec<&str> = flags.benchmarks.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let unknown = |name: &&&str| !BENCHMARKS.iter().any(|b| b.name == **name) && !state::is_command(name);
    if let Some(name) = names.iter().find(unknown) {
        return Err(Error::invalid_argument(format!("unknown benchmark {name:?}; --help lists them")));
    }
    factory_from_option_string(&flags.memtablerep)?;
    // Wrong options are refused before a database is destroyed.
    open_options(flags)?;
    let seed = if flags.seed == 0 { vfs.unix_time_us() } else { flags.seed };
    let mut session = Session { flags, vfs: vfs.clone(), db: None, rng: Rng::new(seed) };
    out.say(&header(flags))?;
    for name in names {
        session.run_named(name, out)?;
    }
    if let Some(db) = session.db.as_ref().filter(|_| flags.statistics) {
        state::print(db, "rocksdb.options-statistics", out)?;
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

/// A run: the database stays open from one benchmark to the next.
struct Session<'a> {
    flags: &'a Flags,
    vfs: Arc<dyn Vfs>,
    db: Option<Database>,
    /// Seeds of the benchmarks. No two share one, or reads would ask for keys in the order of their writes.
    rng: Rng,
}

impl Session<'_> {
    /// The open database; a new one if `fresh`.
    fn open(&mut self, fresh: bool) -> Result<&Database> {
        let path = Path::new(&self.flags.db);
        if fresh {
            if self.flags.use_existing_db {
                return Err(Error::invalid_argument(
                    "--use_existing_db does not go with a benchmark on a new database",
                ));
            }
            self.close()?;
            if self.vfs.exists(path)? {
                Database::destroy(path, None, &self.vfs)?;
            }
        }
        if self.db.is_none() {
            let mut options = open_options(self.flags)?;
            options.vfs = self.vfs.clone();
            self.db = Some(Database::open(path, &options)?);
        }
        self.db.as_ref().ok_or_else(|| Error::closed("the database was not opened"))
    }

    fn close(&mut self) -> Result<()> {
        self.db.take().map_or(Ok(()), |db| db.close())
    }

    fn run_named(&mut self, name: &str, out: &mut Output<'_>) -> Result<()> {
        match BENCHMARKS.iter().find(|benchmark| benchmark.name == name) {
            Some(benchmark) => self.run(benchmark, out),
            None => {
                let (flags, vfs) = (self.flags, self.vfs.clone());
                state::run(name, self.open(false)?, &Ground { flags, vfs: vfs.as_ref() }, out)
            }
        }
    }

    fn run(&mut self, benchmark: &Benchmark, out: &mut Output<'_>) -> Result<()> {
        let mut flags = self.flags.clone();
        (benchmark.adjust)(&mut flags);
        let vfs = self.vfs.clone();
        let seed = self.rng.next() ^ base_of(benchmark.name);
        let db = self.open(benchmark.fresh)?;
        let ground = Ground { flags: &flags, vfs: vfs.as_ref() };
        let total = run_threads(benchmark, &Direct::new(db, &flags), &ground, seed)?;
        let outcome = Outcome::new(benchmark.name, &flags, &total)?;
        out.keep(&outcome.text(total.looked_up), &outcome)?;
        if flags.histogram {
            for (operation, latencies) in total.latencies() {
                out.say(&latencies.text(operation.name()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
