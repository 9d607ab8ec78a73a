//! `spillway delete`.

use spillway::internal::WriteOptions;

use crate::bytes::Notation;
use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::Outcome;

/// Deletes one key, or a range of keys. Missing keys are no error.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway delete colour --db /tmp/things
  spillway delete 2023- --until 2024- --db /tmp/events")]
pub struct Args {
    /// Key, or first key of the range.
    key: String,
    /// End of the range, exclusive: deletes all keys from KEY up to this one.
    #[arg(long, value_name = "KEY")]
    until: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    notation: Notation,
    #[command(flatten)]
    adopt: AdoptArgs,
}

pub fn run(args: &Args) -> Outcome {
    let key = args.notation.parse(&args.key)?;
    let until = args.until.as_deref().map(|until| args.notation.parse(until)).transpose()?;
    let access = Access::Write { adopt: args.adopt.adopt, create: false };
    let (db, family) = args.database.open_family(access, &args.family)?;
    match until {
        Some(until) => db.delete_range(&family, &key, &until, &WriteOptions::synced())?,
        None => db.delete(&family, &key, &WriteOptions::synced())?,
    }
    Ok(db.close()?)
}
