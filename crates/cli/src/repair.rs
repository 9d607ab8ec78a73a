//! `spillway repair`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{OpenOptions, OtherFamilies};

use crate::database::{AdoptArgs, PlaceArgs};
use crate::failure::{Outcome, found_damage};
use crate::long::Long;
use crate::settings::{Settings, is_file_name};
use crate::{human, json};

/// Repairs a damaged database: afterwards it opens, with all entries still readable.
///
/// Reads every table and log. If the MANIFEST is damaged or lost, makes a new one from tables and logs. Salvages the readable
/// part of damaged tables. Deletes nothing: unusable files move to lost/ in the database's directory, with a report. Exits
/// with status 1 if anything was lost. Copy the directory first if there is room.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway repair /tmp/people")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    adopt: AdoptArgs,
    /// Prints the report as one line of JSON, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let located = database.locate()?;
    let dir = located.dir.clone();
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let (stored, used, skipped) = Settings::salvaged(&vfs, &dir)?;
    let given = database.options.as_deref();
    if given.is_none() {
        Settings::warn_if_none(&vfs, &dir)?;
    }
    let Settings { mut db, families, others, .. } = located.configure(stored.with(&vfs, Some(&dir), given)?);
    db.error_if_exists = false;
    let options = OpenOptions {
        db,
        families,
        other_families: OtherFamilies::OpenWith(Box::new(others)),
        adopt_rocksdb: args.adopt.adopt,
        vfs,
        ..OpenOptions::default()
    };
    let long = Long::writing("repairing", || {
        "nothing was deleted, and moved files are in lost/; the same command starts again".to_owned()
    })?;
    let report = spillway::internal::repair(&dir, &options);
    drop(long);
    let mut report = report?;
    if report.lost_options.is_empty() {
        report.lost_options = skipped; // the device read it the next time
    }
    let lost_nothing = report.lost_nothing();
    let used = (!report.lost_options.is_empty()).then(|| options_used(given, used.as_deref()));
    if !lost_nothing {
        found_damage();
    }
    if args.json {
        return json::print(&json::repair(&dir, &report, used.as_deref()), out);
    }
    write!(out, "{report}")?;
    if let Some(used) = &used {
        writeln!(out, "options: {used} are stored now")?;
    }
    let (dir, last) = (dir.display(), human::count(report.last_seq.0));
    let holds = match report.is_last_seq_unseen {
        false => format!("holds writes through number {last}"),
        true => format!("continues from number {last}, which is the MANIFEST's, and which no table and no log shows"),
    };
    if lost_nothing {
        let but = if report.notes.is_empty() { "" } else { " but what the notes above leave out" };
        return Ok(writeln!(out, "{dir} opens, and {holds}; {claim}{but}", claim = report.claim())?);
    }
    if let Some(earlier) = report.earlier.as_ref().filter(|_| report.found_nothing()) {
        return Ok(writeln!(
            out,
            "{dir} opens, and {holds}. An earlier repair lost or doubted something: move its report \
             away once that is dealt with: {}",
            earlier.display()
        )?);
    }
    if report.lost_no_key() {
        let earlier = report.earlier_options.as_ref().map(|earlier| earlier.display());
        let moved = earlier.map(|path| format!("; once they are given again, move the earlier report away: {path}"));
        let moved = moved.unwrap_or_default();
        return Ok(writeln!(out, "{dir} opens, and {holds}; of its options see above{moved}")?);
    }
    let beneath = "In lost key ranges, older values may appear in place of newer ones, and deleted keys may reappear.";
    Ok(writeln!(out, "{dir} opens, and {holds}, except for the losses listed above. {beneath}")?)
}

/// The options that a repair stored.
fn options_used(given: Option<&str>, stored: Option<&Path>) -> String {
    let stored = match stored {
        Some(path) => format!("those of {}", path.display()),
        None => "the defaults".to_owned(),
    };
    match given {
        None => stored,
        Some(given) if is_file_name(given) => format!("those of `--options {given}`"),
        Some(given) => format!("{stored}, with `--options {given}` over them,"),
    }
}
