//! The command line: `db`, `memtable`, `ingest`, `report`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Result;
use clap::Subcommand;
use clap::error::ErrorKind;
use vfs::Vfs;

use crate::flags::{self, Flags};
use crate::ingest::{self, IngestFlags};
use crate::memtable::{self, MemtableFlags};
use crate::sinks::Output;
use crate::{harness, report};

/// What `bench` takes.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// Flags in gflags' forms.
#[derive(clap::Args, Debug)]
struct GFlags {
    /// `--flag=value` or `-flag=value`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs benchmarks under db_bench's names and flags; `--help` lists them.
    #[command(disable_help_flag = true)]
    Db(GFlags),
    /// Runs benchmarks of memtables by themselves under memtablerep_bench's names and flags; `--help` lists them.
    #[command(disable_help_flag = true)]
    Memtable(GFlags),
    /// Times writers beside ingests, in every mode.
    #[command(rename_all = "snake_case")]
    Ingest(IngestFlags),
    /// Draws the tables of docs/benchmarks.md from the kept figures.
    Report {
        /// The folder of JSON lines.
        #[arg(long, default_value = "bench/results")]
        results: PathBuf,
        /// The document whose marked part is replaced.
        #[arg(long, default_value = "docs/benchmarks.md")]
        document: PathBuf,
        /// Fails, and changes nothing, where the document is not what the figures say.
        #[arg(long)]
        check: bool,
    },
}

/// Runs what was asked for; text goes to standard output.
///
/// # Errors
/// `InvalidArgument`: a flag that does not exist or does not fit. Otherwise the first failure of a benchmark.
pub fn run(args: &Args) -> Result<()> {
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    match &args.command {
        Command::Db(given) => given.read(&harness::help(), |flags: Flags| {
            with_output(&vfs, flags.json.as_deref(), |out| harness::run(&flags, &vfs, out))
        }),
        Command::Memtable(given) => given.read(&memtable::help(), |flags: MemtableFlags| {
            with_output(&vfs, flags.json.as_deref(), |out| memtable::run(&flags, &vfs, out))
        }),
        Command::Ingest(flags) => with_output(&vfs, flags.json.as_deref(), |out| ingest::run(flags, &vfs, out)),
        Command::Report { results, document, check } => report::run(&vfs, results, document, *check),
    }
}

fn with_output(vfs: &Arc<dyn Vfs>, json: Option<&Path>, run: impl FnOnce(&mut Output<'_>) -> Result<()>) -> Result<()> {
    run(&mut Output::new(&mut std::io::stdout(), vfs.as_ref(), json)?)
}

impl GFlags {
    /// Calls `run` with what was given. Prints the help instead, with the `benchmarks`, if that is asked for.
    fn read<F: clap::Parser>(&self, benchmarks: &str, run: impl FnOnce(F) -> Result<()>) -> Result<()> {
        let given: Vec<String> = self.flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
        match flags::parse(&given) {
            Ok(flags) => run(flags),
            Err(help) if help.kind() == ErrorKind::DisplayHelp => {
                println!("{help}\nBenchmarks:\n{benchmarks}");
                Ok(())
            }
            Err(error) => Err(flags::refusal(&error)),
        }
    }
}
