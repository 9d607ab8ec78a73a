//! `spillway load --via ingest`: sorts the records into tables and ingests all of them at once.

use std::io::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use spillway::internal::version::file_name::LOAD_DIR;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Family, IngestOptions};

use super::{Args, NOTHING_LOADED, Repeated, Tally, report, summary, tell_repeated};
use crate::failure::Outcome;
use crate::ingest::ingest;
use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::make::{self, Made, Place};
use crate::staging::Staging;
use crate::{human, json};

pub fn load(
    args: &Args,
    db: Database,
    family: Arc<Family>,
    input: Input<'_>,
    interrupt: &Interrupt,
    out: &mut dyn Write,
) -> Outcome {
    let vfs = RealVfs::new();
    let start = vfs.now();
    let key = input.key();
    let (made, placed) = interrupt.explain(take_in(args, &db, &family, input, interrupt), NOTHING_LOADED)?;
    let tally = Tally { records: made.records, payload_bytes: made.payload_bytes };
    let repeated = Repeated::Exactly(made.records - made.entries());
    drop(family);
    let closed = db.close();
    let time = vfs.now().saturating_sub(start);
    if args.json {
        let ingested = json!({ "tables": made.tables.len(), "bytes": made.file_bytes(), "keys": made.entries() });
        let mut report = report(&tally, repeated, &made.skipped, time);
        if let (Value::Object(report), Value::Object(ingested)) = (&mut report, ingested) {
            report.extend(ingested);
        }
        json::print(&report, out)?;
    } else {
        summary(&tally, &made.skipped, time, out)?;
        tell_repeated(repeated, &key, out)?;
        let tables = human::counted(made.tables.len() as u64, "table", "tables");
        let (entries, size) = (human::count(made.entries()), human::bytes(made.file_bytes()));
        writeln!(out, "ingested {tables} ({size}) with {entries} different keys")?;
    }
    placed?;
    Ok(closed?)
}

/// Returns the ingested tables, and whether they got their levels.
fn take_in(
    args: &Args,
    db: &Database,
    family: &Arc<Family>,
    input: Input<'_>,
    interrupt: &Interrupt,
) -> Outcome<(Made, Outcome)> {
    let vfs = RealVfs::new();
    // Tables can be linked from this directory. Only the process with the database open for writing uses it.
    let staging = Staging::owned(vfs.clone(), db.path().join(LOAD_DIR))?;
    let place = Place { vfs, dir: staging.dir().to_owned(), family: family.options(), interrupt: interrupt.clone() };
    let made = interrupt.explain(make::make(input, &args.make, &place), NOTHING_LOADED);
    let made = made.map_err(|failure| failure.with(NOTHING_LOADED))?;
    let files = made.tables.iter().map(|table| table.path.clone()).collect();
    let options = IngestOptions { move_files: true, ..IngestOptions::default() };
    let ingested = ingest(db, family, files, None, &options, interrupt)?;
    Ok((made, ingested.placed))
}
