//! A child process: one library, one run.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use bench::Flags;
use bench::sides::SideRecord;
use bench::work::threads::{base_of, run_threads};
use bench::work::{BENCHMARKS, Benchmark, Ground};
use serde::Serialize;
use vfs::Vfs;

use crate::library::{Database, Functions, Habits, Options, version, wait_until_idle};
use crate::spec::{Role, Spec};
use crate::suite::{Task, WORKLOADS};
use crate::tasks;

/// A run, with its library.
pub struct Run<'a> {
    pub spec: &'a Spec,
    pub functions: &'static Functions,
    pub flags: Flags,
    pub vfs: &'a Arc<dyn Vfs>,
}

/// Does the work of a [`Spec`] and prints the answer.
///
/// # Errors
/// The first failure of an operation.
pub fn run(spec: &str, vfs: &Arc<dyn Vfs>) -> Result<()> {
    let spec: Spec = serde_json::from_str(spec).map_err(|e| Error::invalid_argument(e.to_string()))?;
    let functions = Functions::load(&spec.library)?;
    let flags = Flags::parse(&spec.flags)?;
    let run = Run { spec: &spec, functions, flags, vfs };
    match spec.role {
        Role::Probe => say(&run.probe()?),
        Role::Fill => say(&run.fill()?),
        Role::FillLog => {
            say(&tasks::restart::fill_log(&run)?)?;
            // Waits to be killed, or for the end of its input if the parent is gone.
            let waited = std::io::stdin().read_to_end(&mut Vec::new());
            // Closes nothing, as after a kill.
            waited.map(|_| std::process::exit(1)).map_err(|e| Error::io("read", Path::new("standard input"), e))
        }
        Role::Measure => say(&run.measure()?),
    }
}

fn say(answer: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout();
    let line = serde_json::to_string(answer).map_err(|e| Error::invalid_argument(e.to_string()))?;
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|e| Error::io("write", Path::new("standard output"), e))
}

impl Run<'_> {
    pub fn options(&self) -> Result<Options> {
        Options::from_texts(self.functions, &self.spec.options)
    }

    /// Bytes of a key and its value.
    pub fn entry_bytes(&self) -> u64 {
        (self.flags.key_size + self.flags.value_size) as u64
    }

    /// Opens the database of the spec.
    pub fn open(&self, options: &Options, flags: &Flags) -> Result<Database> {
        let habits = Habits { sync: flags.sync, verify_checksums: flags.verify_checksum };
        Database::open(options, &self.spec.db, habits)
    }

    /// The library's name and version.
    fn probe(&self) -> Result<String> {
        let options = self.options()?;
        let database = self.open(&options, &self.flags)?;
        version(self.vfs.as_ref(), &database, &self.spec.db)
    }

    /// Writes all entries under random keys, flushes, compacts if wanted, and waits until the database is idle. Returns the number
    /// of entries written.
    fn fill(&self) -> Result<u64> {
        let options = self.options()?;
        let database = self.open(&options, &self.flags)?;
        let done = self.fill_random(&database, "fillrandom")?;
        database.flush()?;
        if self.spec.compacted {
            database.compact();
        }
        wait_until_idle(self.vfs.as_ref(), &database)?;
        Ok(done)
    }

    /// Writes `--num` entries under random keys. Different `purpose`s make different keys.
    pub fn fill_random(&self, database: &Database, purpose: &str) -> Result<u64> {
        let benchmark = named("overwrite")?;
        let ground = Ground { flags: &self.flags, vfs: self.vfs.as_ref() };
        Ok(run_threads(benchmark, database, &ground, self.flags.seed ^ base_of(purpose))?.done)
    }

    fn measure(&self) -> Result<SideRecord> {
        let workload = WORKLOADS.iter().find(|workload| workload.name == self.spec.workload);
        let workload = workload.ok_or_else(|| Error::invalid_argument("unknown workload"))?;
        let record = match workload.task {
            Task::Benchmark(name) => tasks::benchmark(self, named(name)?, workload.start)?,
            Task::Compact => tasks::compact(self)?,
            Task::Ingest => tasks::ingest::beside_writers(self)?,
            Task::Overlap(ground) => tasks::overlap::over_memtables(self, ground)?,
            Task::IngestAndFlush(ground) => tasks::overlap::with_flush(self, ground)?,
            Task::Disk => tasks::overlap::disk(self)?,
            Task::Batches => tasks::batches::run(self)?,
            Task::Flush => tasks::restart::flush(self)?,
            Task::Queue => tasks::queue::run(self)?,
            Task::Load => tasks::load::run(self)?,
            Task::Restart => tasks::restart::run(self)?,
            Task::Space => tasks::space(self)?,
            Task::Transactions => tasks::transactions::run(self)?,
            Task::Indexed => tasks::transactions::indexed(self)?,
        };
        Ok(SideRecord { workload: workload.name.to_owned(), mode: self.spec.mode.clone(), ..record })
    }
}

fn named(name: &str) -> Result<&'static Benchmark> {
    let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    benchmark.ok_or_else(|| Error::invalid_argument(format!("unknown benchmark {name:?}")))
}
