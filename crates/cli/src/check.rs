//! `spillway check`.

use std::io::Write;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use spillway::check::{self, CheckOptions, CheckReport};
use spillway::vfs::RealVfs;

use crate::database::DatabaseArgs;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::settings::Settings;

/// Reads every file of a database and checks every checksum and every rule that its files keep. Changes nothing.
///
/// Exits with 1 where anything is wrong, and lists each problem with file and offset. The database may be open in another
/// process; if that one writes meanwhile, the check says so.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway check --db /tmp/people")]
pub struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let dir = &args.database.locate()?.dir;
    let vfs = RealVfs::new();
    let settings = Settings::load(&vfs, dir, args.database.options.as_deref())?;
    let log_dir = Some(settings.db.wal_dir).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let report = check::check(dir, &CheckOptions { vfs, orders: Vec::new(), log_dir }, &mut |step| {
        bar.set_length(step.bytes_total);
        bar.set_position(step.bytes_done);
        bar.set_message(step.path.display().to_string());
    })?;
    bar.finish_and_clear();
    show(&report, out)?;
    if report.is_whole() { Ok(()) } else { Err(Failure::Told) }
}

fn show(report: &CheckReport, out: &mut dyn Write) -> Outcome {
    let owner = if report.is_rocksdbs { "RocksDB's" } else { "Spillway's" };
    let families = human::counted(report.families as u64, "family", "families");
    writeln!(
        out,
        "MANIFEST-{}: {owner}, {families}, last write has number {}",
        report.manifest,
        human::count(report.last_seq.0)
    )?;
    let tables = human::counted(report.tables, "table", "tables");
    let entries = human::counted(report.table_entries, "entry", "entries");
    writeln!(out, "{tables} read: {}, {entries}", human::bytes(report.table_bytes))?;
    let logs = human::counted(report.logs, "log", "logs");
    let batches = human::counted(report.log_batches, "batch", "batches");
    let changes = human::counted(report.log_changes, "change", "changes");
    writeln!(out, "{logs} read: {}, {batches} with {changes}", human::bytes(report.log_bytes))?;
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    if !report.superfluous.is_empty() {
        let files = human::counted(report.superfluous.len() as u64, "file", "files");
        writeln!(out, "note: {files} that nothing refers to; the next open for writing deletes them")?;
    }
    if report.is_whole() {
        return Ok(writeln!(out, "the database is whole")?);
    }
    for problem in &report.problems {
        writeln!(out, "problem: {problem}")?;
    }
    let found = report.problems.len() as u64 + report.problems_left_out;
    writeln!(out, "{} found", human::counted(found, "problem", "problems"))?;
    let advice = if report.changed_meanwhile {
        "The database was changed during the check: another process writes to it. Check it again when that is closed, or \
         check a checkpoint of it."
    } else {
        "Restore the files named from a checkpoint or backup. Where only a log is damaged, opening the database with \
         --options wal_recovery_mode=kSkipAnyCorruptedRecords keeps everything else of it."
    };
    Ok(writeln!(out, "{advice}")?)
}
