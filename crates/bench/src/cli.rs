//! The command line: `db`, `memtable`, `ingest`, `report`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};
use clap::Subcommand;
use clap::error::ErrorKind;
use vfs::Vfs;

use crate::flags::{self, Flags};
use crate::ingest::{self, IngestFlags};
use crate::memtable::{self, MemtableFlags};
use crate::sinks::Output;
use crate::{harness, report};

/// Arguments of `spillway bench`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const INGEST_EXAMPLE: &str = "\
Example:
  spillway bench ingest --db /path/on/the/disk --mode flushable,blocking --rate 50000";

/// Flags as gflags takes them.
#[derive(clap::Args, Debug)]
struct GFlags {
    /// `--flag=value` or `-flag=value`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs benchmarks on a database, with db_bench's names and flags; `--help` lists both.
    #[command(disable_help_flag = true)]
    Db(GFlags),
    /// Runs benchmarks on memtables alone, with memtablerep_bench's names and flags; `--help` lists both.
    #[command(disable_help_flag = true)]
    Memtable(GFlags),
    /// Measures the latency of writes during ingests, in every ingest mode and without ingests.
    ///
    /// Each round runs every mode once, the first one changing from round to round. A latency counts from the time at which the
    /// write was due. A table of medians follows the results.
    #[command(rename_all = "snake_case", after_help = INGEST_EXAMPLE)]
    Ingest(IngestFlags),
    /// Draws the tables of docs/benchmarks.md from the results under bench/results.
    Report {
        /// Folder with the results, as files of JSON lines.
        #[arg(long, default_value = "bench/results")]
        results: PathBuf,
        /// Document to rewrite between its markers.
        #[arg(long, default_value = "docs/benchmarks.md")]
        document: PathBuf,
        /// Changes nothing, and fails if the document differs from the results.
        #[arg(long)]
        check: bool,
    },
}

/// Runs the command; text goes to `out`.
///
/// # Errors
/// `InvalidArgument`: a flag is unknown or its value not allowed. Otherwise the first failure of a benchmark.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let vfs: Arc<dyn Vfs> = vfs::RealVfs::new();
    match &args.command {
        Command::Db(given) => given.read(&harness::help(), out, |flags: Flags, out| {
            with_output(out, &vfs, flags.json.as_deref(), |out| harness::run(&flags, &vfs, out))
        }),
        Command::Memtable(given) => given.read(&memtable::help(), out, |flags: MemtableFlags, out| {
            with_output(out, &vfs, flags.json.as_deref(), |out| memtable::run(&flags, &vfs, out))
        }),
        Command::Ingest(flags) => with_output(out, &vfs, flags.json.as_deref(), |out| ingest::run(flags, &vfs, out)),
        Command::Report { results, document, check } => report::run(&vfs, results, document, *check),
    }
}

fn with_output(
    out: &mut dyn Write,
    vfs: &Arc<dyn Vfs>,
    json: Option<&Path>,
    run: impl FnOnce(&mut Output<'_>) -> Result<()>,
) -> Result<()> {
    run(&mut Output::new(out, vfs.as_ref(), json)?)
}

impl GFlags {
    /// Parses the flags and calls `run`. With `--help`, prints the help and the list of `benchmarks` instead.
    fn read<F: clap::Parser>(
        &self,
        benchmarks: &str,
        out: &mut dyn Write,
        run: impl FnOnce(F, &mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let given: Vec<String> = self.flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
        match flags::parse(&given) {
            Ok(flags) => run(flags, out),
            Err(help) if help.kind() == ErrorKind::DisplayHelp => {
                let written = writeln!(out, "{help}\nBenchmarks:\n{benchmarks}");
                written.map_err(|e| Error::io("write", Path::new("standard output"), e))
            }
            Err(error) => Err(flags::refusal::<F>(&error)),
        }
    }
}
