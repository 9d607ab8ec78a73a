//! `spillway checkpoint`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::internal::check::{self, CheckOptions};
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{Database, shell};

use crate::database::{AdoptArgs, PlaceArgs};
use crate::export::nothing_at;
use crate::failure::{Failure, Outcome, is_in_doubt};
use crate::human;
use crate::long::Long;

/// Makes a copy of the database in a new directory. Tables are hard-linked if possible.
///
/// A different process may have the database open and write to it: the copy has all writes logged so far.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway checkpoint --db /tmp/people --to /tmp/people-monday")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Directory to create for the copy.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Reads the whole copy, and deletes it if anything is damaged.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    adopt: AdoptArgs,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let long = Long::writing("making the checkpoint", nothing_at(&args.to))?;
    let last = database.checkpoint(args.adopt.adopt, &args.to);
    drop(long);
    let (last, is_reported) = last?;
    if args.verify {
        verify(&database.locate()?.dir, &args.to)?;
    }
    let (to, last) = (args.to.display(), human::count(last.0));
    let of = if is_reported || is_in_doubt() { "what was left of the writes" } else { "every write" };
    let read = if args.verify { "all of it was read" } else { "its tables were linked, and not read (--verify)" };
    Ok(writeln!(out, "made {to}, which holds {of} through number {last}; {read}")?)
}

/// # Errors
/// The copy is damaged; it is deleted.
fn verify(of: &Path, copy: &Path) -> Outcome {
    let report = check::check(copy, &CheckOptions::default(), &mut |_| {})?;
    let Some(problem) = report.problems.first() else { return Ok(()) };
    Database::destroy(copy, None, &(RealVfs::new() as Arc<dyn Vfs>))?;
    let of = shell::word(of);
    Err(Failure::refused(format!(
        "the database is damaged, and no checkpoint was made: {problem}; `spillway check --db {of}` lists all damage"
    )))
}
