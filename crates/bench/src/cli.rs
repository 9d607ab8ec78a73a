//! The command line: `db`, `compare`, `report`.

use std::ffi::OsString;
use std::path::PathBuf;

use base::Result;
use clap::Subcommand;

use crate::compare::{self, Comparison};
use crate::flags::{self, Flags};
use crate::harness;
use crate::report;

/// What `bench` takes.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs benchmarks under db_bench's names and flags; `--help` lists them.
    #[command(disable_help_flag = true)]
    Db {
        /// `--flag=value` or `-flag=value`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Runs db_bench and this program in turns on the same flags, and keeps the figures as JSON lines.
    Compare(Comparison),
    /// Draws the tables of docs/benchmarks.md from the kept figures.
    Report {
        /// The folder of JSON lines that `compare` wrote.
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
    let vfs = vfs::RealVfs::new();
    match &args.command {
        Command::Db { flags } => {
            let given: Vec<String> = flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
            if given.iter().any(|flag| flag.trim_start_matches('-') == "help") {
                println!("{}\nBenchmarks:\n{}", flags::help(), harness::help());
                return Ok(());
            }
            harness::run(&Flags::parse(&given)?, &vfs)
        }
        Command::Compare(comparison) => compare::run(comparison, &vfs),
        Command::Report { results, document, check } => report::run(&vfs, results, document, *check),
    }
}
