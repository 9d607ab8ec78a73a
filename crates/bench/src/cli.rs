//! The command line: `db`, `memtable`, `ingest`, `report`.

use std::ffi::OsString;
use std::path::PathBuf;

use base::Result;
use clap::Subcommand;

use crate::flags::{FlagSet, Flags, asks_for_help};
use crate::ingest::{self, IngestFlags};
use crate::memtable::{self, MemtableFlags};
use crate::{harness, report};

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
    /// Runs benchmarks of memtables by themselves under memtablerep_bench's names and flags; `--help` lists them.
    #[command(disable_help_flag = true)]
    Memtable {
        /// `--flag=value` or `-flag=value`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
    /// Times writers beside ingests, in every mode; `--help` lists the flags.
    #[command(disable_help_flag = true)]
    Ingest {
        /// `--flag=value` or `-flag=value`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<OsString>,
    },
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
    let vfs = vfs::RealVfs::new();
    match &args.command {
        Command::Db { flags } => {
            let given = texts(flags);
            if asks_for_help(&given) {
                println!("{}\nBenchmarks:\n{}", Flags::help(), harness::help());
                return Ok(());
            }
            harness::run(&Flags::parse(&given)?, &vfs)
        }
        Command::Memtable { flags } => {
            let given = texts(flags);
            if asks_for_help(&given) {
                println!("{}\nBenchmarks:\n{}", MemtableFlags::help(), memtable::help());
                return Ok(());
            }
            memtable::run(&MemtableFlags::parse(&given)?, &vfs)
        }
        Command::Ingest { flags } => {
            let given = texts(flags);
            if asks_for_help(&given) {
                println!("{}", IngestFlags::help());
                return Ok(());
            }
            ingest::run(&IngestFlags::parse(&given)?, &vfs)
        }
        Command::Report { results, document, check } => report::run(&vfs, results, document, *check),
    }
}

fn texts(flags: &[OsString]) -> Vec<String> {
    flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect()
}
