//! Commands among the benchmarks that wait for the database or tell of its state.

use std::io::Write;

use base::{Error, Result};
use spillway::Db;
use spillway::compaction::CompactRangeOptions;

use crate::harness::processor_time;
use crate::outcome::{Circumstances, Outcome};
use crate::sinks::write_text;
use crate::tally::{Operation, Tally};
use crate::work::Ground;

/// The commands and what they do.
pub const COMMANDS: &[(&str, &str)] = &[
    ("compact", "compacts the whole database"),
    ("flush", "writes the memtables to tables"),
    ("waitforcompaction", "waits until flushes and compactions have nothing to do"),
    ("levelstats", "prints the tables and bytes of each level"),
    ("stats", "prints what the database tells of itself"),
];

pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|(command, _)| *command == name)
}

/// Runs a command. What takes time has an outcome, as of one operation.
///
/// # Errors
/// `InvalidArgument`: the database does not know the property. Otherwise what the command failed with.
pub fn run(name: &str, db: &Db, ground: &Ground<'_>, text: &mut dyn Write) -> Result<Option<Outcome>> {
    match name {
        "compact" => timed(name, ground, text, || {
            db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default())
        })
        .map(Some),
        "flush" => timed(name, ground, text, || db.flush(&[&db.default_family()])).map(Some),
        "waitforcompaction" => {
            write_text(text, &format!("waitforcompaction({}): started", ground.flags.db))?;
            let outcome = timed(name, ground, &mut std::io::sink(), || db.wait_for_compaction())?;
            write_text(text, &format!("waitforcompaction({}): finished", ground.flags.db))?;
            Ok(Some(outcome))
        }
        "levelstats" => print(db, "rocksdb.levelstats", text).map(|()| None),
        _ => print(db, "rocksdb.stats", text).map(|()| None),
    }
}

fn timed(
    name: &str,
    ground: &Ground<'_>,
    text: &mut dyn Write,
    command: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    let cpu_before = processor_time();
    let mut tally = Tally::new(ground.vfs, true);
    command()?;
    tally.finish(Operation::Write, 1)?;
    tally.end();
    let cpu = processor_time().saturating_sub(cpu_before);
    let memtable = ground.flags.memtablerep.as_str();
    let about = Circumstances { bench: name, memtable, threads: 1, cpu, background_writes: None };
    let outcome = Outcome::new(&about, &tally)?;
    write_text(text, &outcome.text(0))?;
    Ok(outcome)
}

/// Prints a property.
///
/// # Errors
/// `InvalidArgument`: the database does not know it.
pub fn print(db: &Db, name: &str, text: &mut dyn Write) -> Result<()> {
    let property = db.property(&db.default_family(), name);
    let property = property.ok_or_else(|| Error::invalid_argument(format!("the database has no property {name}")))?;
    write_text(text, &property)
}
