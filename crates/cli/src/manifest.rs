//! `spillway manifest`.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use spillway::internal::dump;
use spillway::internal::vfs::RealVfs;

use crate::failure::Outcome;
use crate::table::show;

/// Shows MANIFEST files, of Spillway and of RocksDB.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway manifest dump /tmp/people")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Prints a line for each edit, beginning with its offset.
    Dump {
        /// MANIFEST file, or directory of a database.
        #[arg(value_name = "FILE|DIR")]
        path: PathBuf,
    },
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let Action::Dump { path } = &args.action;
    show(out, |line| dump::dump_manifest(&*RealVfs::new(), path, line))
}
