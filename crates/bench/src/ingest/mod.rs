//! Ingests in every mode: what a call costs over memtables that it overlaps, what writers see of ingests beside them, and
//! what loading by ingesting is worth. Everything is measured in one engine, by turns.

mod flags;
mod load;
mod overlap;
mod record;
mod tables;
mod writers;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use vfs::{IfExists, IoClass, Vfs};

pub use flags::IngestFlags;
pub use record::{IngestRecord, KIND, LoadRecord, NONE, OverlapRecord, WritersRecord};

use self::flags::Part;
use crate::machine::{Occasion, Setting};
use crate::report::ingests;
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};

/// Runs what the flags ask for; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_parts`].
pub fn run(flags: &IngestFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_parts(flags, vfs, text, json))
}

/// Runs the parts that the flags name: a line of text and one of JSON for each result, tables at the end.
///
/// # Errors
/// Those of the parts; the plot's file cannot be written.
pub fn run_parts(flags: &IngestFlags, vfs: &Arc<dyn Vfs>, text: &mut dyn Write, json: &mut JsonLine<'_>) -> Result<()> {
    vfs.create_dir_all(Path::new(&flags.db))?;
    let occasion = Occasion::now(vfs.as_ref(), Path::new(&flags.db));
    let mut records = Vec::new();
    for &part in &flags.part.0 {
        let setting = Setting::new(KIND, &occasion, flags.conditions(part));
        let mut tell = |record: IngestRecord, text: &mut dyn Write| -> Result<()> {
            write_text(text, &record.text())?;
            json(&json_of(&record)?)?;
            records.push(record);
            Ok(())
        };
        match part {
            Part::Overlap => {
                for record in overlap::run(flags, vfs, &setting)? {
                    tell(IngestRecord::Overlap(record), text)?;
                }
            }
            Part::Writers => {
                writers::run(flags, vfs, &setting, &mut |record| tell(IngestRecord::Writers(record), text))?;
            }
            Part::Load => {
                load::missing(flags).iter().try_for_each(|line| write_text(text, line))?;
                load::run(flags, vfs, &setting, &mut |record| tell(IngestRecord::Load(record), text))?;
            }
        }
    }
    write_text(text, &ingests::tables(&records))?;
    if flags.plot.is_empty() {
        return Ok(());
    }
    let plot = ingests::plot(&records).ok_or_else(|| Error::invalid_argument("--plot, and --part without writers"))?;
    vfs.create(Path::new(&flags.plot), IfExists::Truncate)?.append(plot.svg().as_bytes(), IoClass::Other)
}

#[cfg(test)]
mod tests;
