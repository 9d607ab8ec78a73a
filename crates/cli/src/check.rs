//! `spillway check`.

use std::io::Write;
use std::path::Path;

use base::name;
use spillway::internal::Error;
use spillway::internal::check::{self, CheckOptions, CheckReport, Problem};
use spillway::internal::version::backup_dirs;
use spillway::internal::version::file_name::{self, FileType};
use spillway::internal::vfs::RealVfs;
use spillway::internal::{ErrorKind, shell};

use crate::database::{PlaceArgs, unfinished_beside};
use crate::failure::{Failure, Outcome, found_damage};
use crate::long::{Long, Reached, Teller};
use crate::settings::Settings;
use crate::{human, json};

/// Reads every file of a database; checks all checksums, the order of keys and references between files. Changes nothing.
///
/// Lists each problem with file and offset, and exits with status 1 if there is any. A different process may have the
/// database open; if it writes during the check, the check reports the change.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  spillway check --db /tmp/people")]
pub struct Args {
    #[command(flatten)]
    place: PlaceArgs,
    /// Prints JSON: one line, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let database = args.place.database();
    let located = database.locate()?;
    let (dir, vfs) = (&located.dir, RealVfs::new());
    let settings = located.configure(Settings::load(&vfs, dir, database.options.as_deref())?);
    let log_dir = Some(settings.db.wal_dir).filter(|dir| !dir.is_empty()).map(|dir| name::path(&dir));
    let teller = Teller::default();
    let long = watch(&teller)?;
    let report = check::check(dir, &CheckOptions { vfs, orders: Vec::new(), log_dir }, &mut |step| {
        let name = step.path.file_name().unwrap_or_default();
        let what = format!("checking {}", name.to_string_lossy());
        teller.tell(Reached { bytes: step.bytes_done, total_bytes: Some(step.bytes_total), what });
    });
    drop(long);
    let report = report.map_err(|error| no_database(error, dir))?;
    if !report.is_whole() {
        found_damage();
    }
    if args.json { json::print(&json::check(&report), out) } else { show(&report, dir, out) }
}

/// Names what a cut-off copy left beside a directory that is no database.
fn no_database(error: Error, dir: &Path) -> Failure {
    let vfs = RealVfs::new();
    let beside =
        if vfs.exists(&dir.join("CURRENT")).unwrap_or(true) { String::new() } else { unfinished_beside(&*vfs, dir) };
    if beside.is_empty() { error.into() } else { Failure::refused(format!("{error}{beside}")) }
}

fn watch(teller: &Teller) -> Outcome<Long> {
    let (reached, done) = (teller.clone(), teller.clone());
    Long::begin(
        move || reached.told(),
        move || {
            let Reached { bytes, total_bytes, .. } = done.told();
            let (done, of) = (human::bytes(bytes), human::bytes(total_bytes.unwrap_or_default()));
            format!("{done} of {of} were read, and nothing was changed; a check begins from the start again")
        },
    )
}

fn show(report: &CheckReport, dir: &Path, out: &mut dyn Write) -> Outcome {
    if report.manifest.0 != 0 {
        show_counts(report, out)?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    if !report.superfluous.is_empty() {
        let files = human::counted(report.superfluous.len() as u64, "file", "files");
        writeln!(out, "note: {files} that nothing refers to; the next open for writing deletes them")?;
    }
    if report.is_whole() {
        return Ok(writeln!(out, "{}", report.claim())?);
    }
    let (unsupported, damage): (Vec<_>, Vec<_>) = report.problems.iter().partition(|problem| problem.is_unsupported());
    for problem in &damage {
        writeln!(out, "problem: {problem}")?;
    }
    for problem in &unsupported {
        writeln!(out, "unsupported: {problem}")?;
    }
    let found = damage.len() as u64 + report.problems_left_out;
    if found == 0 {
        let count = human::counted(unsupported.len() as u64, "thing", "things");
        return Ok(writeln!(out, "{count} not readable by this version, and no damage in the rest")?);
    }
    writeln!(out, "{} found", human::counted(found, "problem", "problems"))?;
    Ok(writeln!(out, "{}", advice(report, dir))?)
}

/// Advice about damage.
fn advice(report: &CheckReport, dir: &Path) -> String {
    if let Some(backups) = backup_dirs::around(&*RealVfs::new(), dir) {
        let (verify, way_out) = (shell::word(&backups), backup_dirs::way_out(&backups));
        return format!(
            "It belongs to the backups in {}: `spillway backup verify --dir {verify}` checks them, and {way_out}.",
            backups.display()
        );
    }
    let place = shell::word(dir);
    if report.repair_has_not_ended {
        return format!(
            "If a repair is running, check again when it has ended. If it was cut off, repeat it (`spillway repair {place}`), or \
             restore the database from a backup."
        );
    }
    if report.changed_meanwhile {
        let what = "The database was changed during the check: another process writes to it. Check it again when that is \
                    closed, or check a checkpoint of it.";
        return what.to_owned();
    }
    if report.problems.iter().all(is_denied) {
        return format!(
            "Nothing is known to be damaged: make the files readable, and check again (`spillway check --db {place}`)."
        );
    }
    let scan = match report.problems.iter().any(keeps_from_reading) {
        true => String::new(),
        false => format!("; `spillway scan --skip-damaged --db {place}` prints what can be read, and changes nothing"),
    };
    format!(
        "Restore it from a backup or checkpoint, if there is one (`spillway backup restore --dir BACKUPS --to {place}`). Else \
         `spillway repair {place}` keeps what can be read and lists what is lost{scan}."
    )
}

/// Whether a file could not be read, for a reason that says nothing of its content: a permission, a limit of open files.
fn is_denied(problem: &Problem) -> bool {
    problem.0.kind() == ErrorKind::Io && !problem.0.is_read_failure() && !problem.0.is_not_found()
}

/// Whether not even a scan that skips damage opens the database: CURRENT or the MANIFEST is lost or damaged.
fn keeps_from_reading(problem: &Problem) -> bool {
    let name = problem.0.path().and_then(Path::file_name).and_then(|name| name.to_str());
    match name.and_then(file_name::parse) {
        Some((kind, _)) => matches!(kind, FileType::Current | FileType::Manifest),
        None => problem.0.kind() == ErrorKind::Corruption, // of the directory: CURRENT is missing
    }
}

fn show_counts(report: &CheckReport, out: &mut dyn Write) -> Outcome {
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
    Ok(writeln!(out, "{logs} read: {}, {batches} with {changes}", human::bytes(report.log_bytes))?)
}
