//! The fast way to load: the records are sorted into tables, and those ingested at once.

use std::io::Write;
use std::sync::Arc;

use spillway::vfs::RealVfs;
use spillway::{Db, Family, IngestOptions};

use super::{Args, Tally, summary};
use crate::failure::Outcome;
use crate::human;
use crate::ingest::ingest;
use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::make::{self, Place};
use crate::staging::Staging;

/// A directory in that of the database, in which the tables are made: they can be linked from there. Whoever has the
/// database open for writing has it alone.
const STAGING: &str = "load.tmp";

pub fn load(args: &Args, db: Db, family: Arc<Family>, input: Input<'_>, out: &mut dyn Write) -> Outcome {
    let vfs = RealVfs::new();
    let interrupt = Interrupt::listen()?;
    let staging = Staging::owned(vfs.clone(), db.path().join(STAGING))?;
    let dir = staging.dir().to_owned();
    let place = Place { vfs: vfs.clone(), dir, family: family.options(), interrupt: interrupt.clone() };
    let start = vfs.now();
    let made = make::make(input, &args.make, &place)?;
    let tally = Tally { records: made.records, payload_bytes: made.payload_bytes };
    let files = made.tables.iter().map(|table| table.path.clone()).collect();
    let options = IngestOptions { move_files: true, ..IngestOptions::default() };
    ingest(&db, &family, files, None, &options, &interrupt)?;
    drop(staging);
    drop(family);
    db.close()?;
    summary(&tally, made.skipped, vfs.now().saturating_sub(start), out)?;
    let (tables, entries) = (human::counted(made.tables.len() as u64, "table", "tables"), human::count(made.entries()));
    let size = human::bytes(made.file_bytes());
    Ok(writeln!(out, "ingested {tables} ({size}) with {entries} different keys")?)
}
