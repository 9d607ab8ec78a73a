//! `spillway put`.

use spillway::internal::WriteOptions;
use spillway::internal::ttl::Times;

use crate::bytes::Notation;
use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::Outcome;

/// Writes one key. The write is synced: it survives a power loss once the command has returned.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway put colour blue --db /tmp/things --create")]
pub struct Args {
    /// Key to write.
    key: String,
    /// Value of the key.
    value: String,
    /// Creates the database if it does not exist.
    #[arg(long)]
    create: bool,
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
    let (key, value) = (args.notation.parse(&args.key)?, args.notation.parse(&args.value)?);
    let access = Access::Write { adopt: args.adopt.adopt, create: args.create };
    let (db, family) = args.database.open_family(access, &args.family)?;
    let times = Times::of(db.vfs(), &family.options());
    db.put(&family, &key, &Times::stored(times.as_ref(), &value), &WriteOptions::synced())?;
    Ok(db.close()?)
}
