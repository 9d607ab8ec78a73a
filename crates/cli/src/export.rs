//! `spillway export`.

use std::io::Write;
use std::path::{Path, PathBuf};

use spillway::internal::export::ExportOptions;

use crate::database::{AdoptArgs, PlaceArgs};
use crate::failure::Outcome;
use crate::human;
use crate::long::Long;

/// Makes a copy of the database for RocksDB (7.8 and later), in a new directory.
///
/// Tables are hard-linked if possible, and never changed in place. A different process may have the database open and write
/// to it.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  spillway export --db /tmp/people --to /tmp/people-rocksdb\n  ldb --db=/tmp/people-rocksdb scan"
)]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Directory to create for the copy.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Copies tables instead of linking them.
    #[arg(long)]
    copy: bool,
    #[command(flatten)]
    adopt: AdoptArgs,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let source = args.place.database().open_to_copy(args.adopt.adopt, &args.to)?;
    let long = Long::writing("exporting", nothing_at(&args.to))?;
    let summary = source.db.export(&args.to, &ExportOptions { copy_tables: args.copy, ..ExportOptions::default() });
    drop(long);
    let summary = summary?;
    drop(source);
    let families = human::counted(summary.families as u64, "family", "families");
    let tables = human::counted(summary.tables as u64, "table", "tables");
    Ok(writeln!(out, "exported {families}, {tables}, {} to {}", human::bytes(summary.bytes), args.to.display())?)
}

/// Message at Ctrl-C for a directory being made.
pub fn nothing_at(dir: &Path) -> impl Fn() -> String + Send + 'static {
    let dir = dir.display().to_string();
    move || format!("nothing is at {dir}; the same command starts again, and removes {dir}.tmp")
}
