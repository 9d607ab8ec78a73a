//! `spillway log`.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use spillway::internal::dump;
use spillway::internal::vfs::RealVfs;

use crate::failure::Outcome;
use crate::table::show;

/// Shows log files, of Spillway (.splog, .spbatch) and of RocksDB (.log).
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway log dump /tmp/people/000007.splog")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Prints a line for each record, beginning with its offset, and a line for each change in it, with its sequence number.
    Dump {
        /// Log file.
        file: PathBuf,
    },
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let Action::Dump { file } = &args.action;
    show(out, |line| dump::dump_log(&*RealVfs::new(), file, line))
}
