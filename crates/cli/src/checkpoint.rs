//! `spillway checkpoint`.

use std::io::Write;
use std::path::PathBuf;

use crate::database::{Access, AdoptArgs, DatabaseArgs};
use crate::failure::Outcome;
use crate::human;

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
    let last = db.checkpoint(&args.to)?;
    db.close()?;
    Ok(writeln!(out, "made {}, which holds every write through number {}", args.to.display(), human::count(last.0))?)
}
