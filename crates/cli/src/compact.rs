//! `spillway compact`.

use std::io::Write;

use spillway::internal::compaction::{BottommostLevelCompaction, CompactRangeOptions};
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Family};

use crate::bytes::Notation;
use crate::database::{Access, AdoptArgs, FamilyArgs, PlaceArgs};
use crate::failure::Outcome;
use crate::human;
use crate::long::Long;

/// Merges the tables of a column family: frees the space of deleted and overwritten entries, and speeds up reads.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway compact --db /tmp/people
  spillway compact --db /tmp/events --from 2023- --to 2024-")]
pub struct Args {
    /// First key of the range; the first of the family if not given.
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Last key of the range; the last of the family if not given.
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Rewrites tables of the last level too, for example after a change of compression.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    notation: Notation,
    #[command(flatten)]
    adopt: AdoptArgs,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let parse = |text: &Option<String>| text.as_deref().map(|text| args.notation.parse(text)).transpose();
    let (from, to) = (parse(&args.from)?, parse(&args.to)?);
    let access = Access::Write { adopt: args.adopt.adopt, create: false };
    let (db, family) = args.place.database().open_family(access, &args.family)?;
    let mut options = CompactRangeOptions::default();
    if args.force {
        options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    }
    let vfs = RealVfs::new();
    let (start, before) = (vfs.now(), table_bytes(&db, &family));
    let long = Long::writing("compacting", || {
        "finished compactions stay, and nothing is lost; the same command continues".to_owned()
    })?;
    let compacted = db.compact_range(&family, from.as_deref(), to.as_deref(), &options);
    drop(long);
    compacted?;
    let (time, after) = (vfs.now().saturating_sub(start), table_bytes(&db, &family));
    db.close()?;
    let (before, after, time) = (human::bytes(before), human::bytes(after), human::seconds(time));
    Ok(writeln!(out, "compacted in {time}: tables had {before}, have {after}")?)
}

fn table_bytes(db: &Database, family: &Family) -> u64 {
    db.levels(family).iter().map(|level| level.bytes).sum()
}
