//! `spillway checkpoint`.

use std::io::Write;
use std::path::PathBuf;

use crate::database::{Access, AdoptArgs, DatabaseArgs};
use crate::export::nothing_at;
use crate::failure::Outcome;
use crate::human;
use crate::long::Long;

/// Makes a copy of the database in another directory, sharing tables by hard links where that is possible.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway checkpoint --db /tmp/people --to /tmp/people-monday")]
pub struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The directory to make.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    adopt: AdoptArgs,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let db = args.database.open(Access::Write { adopt: args.adopt.adopt, create: false })?;
    let long = Long::writing("making the checkpoint", nothing_at(&args.to))?;
    let last = db.checkpoint(&args.to);
    drop(long);
    let last = last?;
    db.close()?;
    Ok(writeln!(out, "made {}, which holds every write through number {}", args.to.display(), human::count(last.0))?)
}
