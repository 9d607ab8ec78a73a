//! Commands among the benchmarks: they wait for the database, or print its state.

use base::{Error, Result};
use spillway::internal::Database;
use spillway::internal::compaction::CompactRangeOptions;

use crate::flags::Flags;
use crate::machine::processor_time;
use crate::outcome::Outcome;
use crate::sinks::Output;
use crate::tally::{Operation, Tally};
use crate::work::Ground;

/// The commands, with a line of help each.
pub const COMMANDS: &[(&str, &str)] = &[
    ("compact", "compacts the whole database"),
    ("flush", "writes the memtables to tables"),
    ("waitforcompaction", "waits until no flush or compaction is due or running"),
    ("levelstats", "prints the number of tables and the bytes of each level"),
    ("stats", "prints the property rocksdb.stats"),
];

pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|(command, _)| *command == name)
}

/// Runs a command. Except for printed properties, the outcome is one operation.
///
/// # Errors
/// `InvalidArgument`: the database does not know the property. Otherwise the failure of the command.
pub fn run(name: &str, db: &Database, ground: &Ground<'_>, out: &mut Output<'_>) -> Result<()> {
    let family = db.default_family();
    match name {
        "levelstats" => return print(db, "rocksdb.levelstats", out),
        "stats" => return print(db, "rocksdb.stats", out),
        "waitforcompaction" => out.say(&format!("waitforcompaction({}): started", ground.flags.db))?,
        _ => {}
    }
    let cpu_before = processor_time();
    let mut tally = Tally::new(ground.vfs, true);
    match name {
        "compact" => db.compact_range(&family, None, None, &CompactRangeOptions::default())?,
        "flush" => db.flush(&[&family])?,
        _ => db.wait_for_compaction()?,
    }
    tally.finish(Operation::Write, 1)?;
    tally.end();
    tally.cpu = processor_time().saturating_sub(cpu_before);
    let outcome = Outcome::new(name, &Flags { threads: 1, ..ground.flags.clone() }, &tally)?;
    match name {
        "waitforcompaction" => out.keep(&format!("waitforcompaction({}): finished", ground.flags.db), &outcome),
        _ => out.keep(&outcome.text(0), &outcome),
    }
}

/// Prints a property.
///
/// # Errors
/// `InvalidArgument`: the database does not know it.
pub fn print(db: &Database, name: &str, out: &mut Output<'_>) -> Result<()> {
    let property = db.property(&db.default_family(), name);
    let property = property.ok_or_else(|| Error::invalid_argument(format!("the database has no property {name}")))?;
    out.say(&property)
}
