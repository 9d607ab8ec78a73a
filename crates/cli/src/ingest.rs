//! `spillway ingest`.

mod flags;
mod readable;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use spillway::internal::vfs::{RealVfs, Vfs};
use spillway::internal::{
    Database, Family, IngestMode, IngestOptions, IngestProgress, IngestReport, IngestRequest, IngestWay,
};

use self::readable::{DamagedFile, Readable};
use crate::bytes::Notation;
use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::{Failure, Outcome, found_damage, note};
use crate::human;
use crate::interrupt::Interrupt;
use crate::progress::Step;
use crate::staging::first_of_a_part;
use crate::threads::Job;

const NOTHING_INGESTED: &str = "nothing was ingested";

/// Interval of progress updates and Ctrl-C checks.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Adds tables to a database, atomically: tables of `spillway table build`, or of RocksDB's SstFileWriter.
///
/// The tables' entries are newer than everything in the database (see --behind). If two tables overlap, the one named later
/// is newer.
///
/// If the family's values carry times (a ttl), `table build --for` gives them to the tables. Tables without times are copied, and
/// their values get the time of the ingest. --ttl says that values of the tables have times, too.
///
/// Ctrl-C before the commit ends the command with nothing ingested and exit status 130. After the commit has begun it may
/// come too late: everything is ingested, and the status is 0. A second Ctrl-C ends the command at once, with either
/// everything or nothing ingested; the next open deletes leftover copies.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway ingest tables/*.sst --db /tmp/people --create
  spillway ingest march.sst --db /tmp/events --replace 2024-03-..2024-04- --move
  spillway ingest --replace 2023-..2024- --db /tmp/events    # only removes keys
  spillway ingest new.sst --db /tmp/people --mode blocking --verify --json")]
pub struct Args {
    /// Table files (.sst).
    #[arg(required_unless_present = "replace")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Creates the database if it does not exist.
    #[arg(long, requires = "files")]
    create: bool,
    /// Also removes all present keys from FROM up to TO, exclusive, in the same atomic step. Write keys with two dots in them
    /// by --hex.
    #[arg(long, value_name = "FROM..TO")]
    replace: Option<String>,
    /// Treatment of overlapping memtables and writers.
    #[arg(long, value_enum, default_value_t = Mode::Flushable, conflicts_with = "behind")]
    mode: Mode,
    /// Links the files into the database, and removes their old names at the end. Copies them if links are not possible.
    #[arg(long = "move")]
    move_files: bool,
    /// Links the files into the database and keeps their old names; never change the files afterwards. Copies them if links
    /// are not possible.
    #[arg(long, conflicts_with = "move_files")]
    link: bool,
    /// With --move or --link: fails if files cannot be linked, instead of copying them.
    #[arg(long)]
    no_copy: bool,
    /// Does not read every block first, to check checksums, order and counts. Only footer, index, properties and the first and
    /// last key are checked then, and damage is taken in unnoticed.
    #[arg(long)]
    no_verify: bool,
    /// The default, and for scripts that name it.
    #[arg(long, hide = true, conflicts_with = "no_verify")]
    verify: bool,
    /// Takes what can be read of damaged tables, copied into new ones; lists the rest, and exits with status 1. With --move
    /// damaged files stay where they are.
    #[arg(long, conflicts_with = "no_verify", requires = "files")]
    skip_damaged: bool,
    /// Also accepts table files taken from a database's directory, and rewrites them (allow_db_generated_files).
    #[arg(long)]
    any_table: bool,
    /// Adds the tables as the oldest data: existing keys keep their values (ingest_behind). Needs the database's option
    /// allow_ingest_behind.
    #[arg(long)]
    behind: bool,
    /// Fails if a table cannot go to the last level (fail_if_not_bottommost_level).
    #[arg(long)]
    bottommost_only: bool,
    /// Modes blocking, flush-first and direct: fails if writers would have to wait for a flush (allow_blocking_flush).
    #[arg(long)]
    no_blocking_flush: bool,
    /// Prints the report as one line of JSON, described in docs/cli.md.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    notation: Notation,
    #[command(flatten)]
    adopt: AdoptArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Queues the tables beside the memtables until a flush gives them a level. No writer waits.
    Flushable,
    /// Stops all writers while overlapping memtables are flushed, as RocksDB does.
    Blocking,
    /// Flushes overlapping memtables while writers go on, then stops all writers for the commit.
    FlushFirst,
    /// Only writers to the tables' range wait, while overlapping memtables are flushed. TiKV's allow_write.
    #[value(alias = "allow_write")]
    Direct,
}

impl Mode {
    fn of_engine(self) -> IngestMode {
        match self {
            Mode::Flushable => IngestMode::Flushable,
            Mode::Blocking => IngestMode::Blocking,
            Mode::FlushFirst => IngestMode::FlushFirst,
            Mode::Direct => IngestMode::Direct,
        }
    }
}

/// Report of a committed ingest, and the duration of its first half.
pub struct Ingested {
    report: IngestReport,
    prepared_in: Duration,
    /// Whether queued tables got their levels: a failure undoes nothing.
    pub placed: Outcome,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    if args.no_copy && !args.move_files && !args.link {
        return Err(Failure::refused("--no-copy goes with --move or --link: without them files are copied"));
    }
    if args.no_blocking_flush && matches!(args.mode, Mode::Flushable) && !args.bottommost_only {
        return Err(Failure::refused(
            "--no-blocking-flush goes with --mode blocking, flush-first or direct: no writer waits for a flush without them",
        ));
    }
    if let Some(file) = first_of_a_part(&*RealVfs::new(), &args.files) {
        return Err(Failure::refused(format!(
            "{} is one of the tables of a build that has not named all of them: wait until it has, or, if it was interrupted, \
             build again, which removes these first",
            file.display()
        )));
    }
    let span = args.replace.as_deref().map(|text| span(text, args.notation)).transpose()?;
    let options = IngestOptions {
        mode: args.mode.of_engine(),
        move_files: args.move_files,
        link_files: args.link,
        failed_move_fall_back_to_copy: !args.no_copy,
        verify_checksums_before_ingest: !args.no_verify,
        allow_db_generated_files: args.any_table,
        ingest_behind: args.behind,
        value_times: args.family.ttl,
        fail_if_not_bottommost_level: args.bottommost_only,
        allow_blocking_flush: !args.no_blocking_flush,
        ..IngestOptions::default()
    };
    if args.create {
        // A missing file must not leave a new database.
        args.files.iter().try_for_each(|file| RealVfs::new().metadata(file).map(drop))?;
    }
    let access = Access::Write { adopt: args.adopt.adopt, create: args.create };
    let (db, family) = args.database.open_family(access, &args.family)?;
    let interrupt = Interrupt::default();
    interrupt.listen()?;
    let readable = match args.skip_damaged {
        true => Readable::find(&args.files, &db, &family, &interrupt),
        false => Ok(Readable::all(args.files.clone())),
    };
    let mut readable = interrupt.explain(readable, NOTHING_INGESTED)?;
    let ingested = ingest(&db, &family, readable.files.clone(), span, &options, &interrupt);
    let ingested = interrupt.explain(ingested, NOTHING_INGESTED).map_err(flags::name_flags);
    readable.remove_copies();
    let ingested = ingested?;
    drop(family);
    let closed = db.close();
    if !readable.damaged.is_empty() || ingested.placed.is_err() || closed.is_err() {
        found_damage(); // also where the reader of the output goes away
    }
    match args.json {
        true => show_json(&ingested, &readable.damaged, out)?,
        false => {
            show(&ingested, args.replace.as_deref(), out)?;
            show_damaged(&readable.damaged, args.replace.is_some(), out)?;
        }
    }
    ingested.placed?;
    closed?;
    if readable.damaged.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// Lists what was left out, and says what the database has in its place.
fn show_damaged(damaged: &[DamagedFile], replaces: bool, out: &mut dyn Write) -> Outcome {
    damaged.iter().try_for_each(|damaged| damaged.show(out))?;
    if damaged.iter().any(DamagedFile::lacks_entries) {
        let gone = if replaces { ", and nothing where --replace removed them" } else { "" };
        writeln!(out, "keys that were left out have what the database had of them before{gone}")?;
    }
    Ok(())
}

/// Parses `FROM..TO`. Keys in the range are removed, so an ambiguous text is refused.
fn span(text: &str, notation: Notation) -> Outcome<(Vec<u8>, Vec<u8>)> {
    let refused = |what: &str| Err(Failure::refused(format!("--replace {text:?}: {what}")));
    let Some((from, to)) = text.split_once("..") else {
        return refused("say FROM..TO, the first key and the one to end before");
    };
    // Overlapping ones count too: `a...b` can be `a.` and `b`, or `a` and `.b`.
    if text.as_bytes().windows(2).filter(|pair| pair == b"..").count() > 1 {
        return refused("there is more than one .. in it; write the keys as hexadecimal digits, with --hex");
    }
    let (from, to) = (notation.parse(from)?, notation.parse(to)?);
    if to.is_empty() {
        return refused("the key to end before is missing; the end is exclusive, and there is no span without one");
    }
    Ok((from, to))
}

/// Ingests tables into a family, with progress on the terminal. Ctrl-C ends it unless it comes too late.
///
/// # Errors
/// Nothing was ingested. `Closed`: by Ctrl-C. Otherwise errors of `prepare_ingest` and `commit_ingest`.
pub fn ingest(
    db: &Database,
    family: &Arc<Family>,
    files: Vec<PathBuf>,
    excise: Option<(Vec<u8>, Vec<u8>)>,
    options: &IngestOptions,
    interrupt: &Interrupt,
) -> Outcome<Ingested> {
    let vfs = RealVfs::new();
    let start = vfs.now();
    let progress = Arc::<IngestProgress>::default();
    let watch = Watch::begin(&*vfs, progress.clone(), interrupt.clone());
    let request = IngestRequest { excise, ..IngestRequest::new(family.clone(), files) };
    let prepared = db.prepare_ingest(&[request], options, &progress)?;
    interrupt.check()?;
    let prepared_in = vfs.now().saturating_sub(start);
    // The watch continues: a waiting commit can still be cancelled.
    let committed = db.commit_ingest(prepared);
    drop(watch);
    let report = committed?;
    let placed = if report.way == IngestWay::Queued { place(db, family) } else { Ok(()) };
    Ok(Ingested { report, prepared_in, placed })
}

/// Waits until the ingested tables have their levels. Without one they depend on the log alone.
fn place(db: &Database, family: &Arc<Family>) -> Outcome {
    let step = Step::begin("placing the tables", None);
    let placed = db.flush(&[family]);
    step.end();
    placed.map_err(|error| {
        Failure::from(error)
            .with("the tables are ingested, and safe in the log; the next open for writing gives them levels")
    })
}

/// Thread that polls an ingest: shows progress, cancels at Ctrl-C.
struct Watch {
    /// Never sent to. Dropping it ends the thread; it is dropped before the job is joined.
    _end: mpsc::Sender<()>,
    /// `None` where no thread can be had: the ingest goes on, and Ctrl-C ends it between its halves alone.
    _job: Option<Job<()>>,
}

impl Watch {
    fn begin(vfs: &dyn Vfs, progress: Arc<IngestProgress>, interrupt: Interrupt) -> Watch {
        let (end, ended) = mpsc::channel();
        let step = Step::begin("preparing", Some(0));
        let job = Job::start(vfs, "progress", move || {
            while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let ((files, files_done), (bytes, bytes_done)) = (progress.files(), progress.bytes());
                let (files_done, files) = (human::count(files_done), human::counted(files, "table", "tables"));
                step.reach(bytes_done, Some(bytes), format!("prepared {files_done} of {files}"));
                if interrupt.is_asked() {
                    progress.cancel();
                }
            }
            step.end();
        });
        if let Err(error) = &job {
            note(&format!("no progress is shown: {error}"));
        }
        Watch { _end: end, _job: job.ok() }
    }
}

fn show(ingested: &Ingested, replaced: Option<&str>, out: &mut dyn Write) -> Outcome {
    let Ingested { report, prepared_in, .. } = ingested;
    if report.tables == 0 && replaced.is_none() {
        return Ok(writeln!(out, "ingested nothing: the tables have no entries")?);
    }
    if let Some(span) = replaced {
        writeln!(out, "removed what was in {span}")?;
    }
    if report.tables > 0 {
        let tables = human::counted(report.tables as u64, "table", "tables");
        let time = human::seconds(*prepared_in + report.committed_in);
        writeln!(out, "ingested {tables} ({}) in {time}", human::bytes(report.bytes))?;
    }
    let [prepared, committed] = [*prepared_in, report.committed_in].map(human::short_time);
    writeln!(out, "prepared in {prepared}, committed in {committed}; {}", waits(report))?;
    let place = match (report.under, report.above) {
        (1.., _) => ", under the memtable: it has none of these keys",
        (_, 1..) => ", above the memtable, which has some of these keys and was sealed",
        _ => "",
    };
    if report.last.0 == 0 {
        return Ok(()); // ingested behind, without a number
    }
    let (first, last) = (human::count(report.first.0), human::count(report.last.0));
    let numbers = if first == last { format!("number {first}") } else { format!("numbers {first} to {last}") };
    Ok(writeln!(out, "sequence {numbers}{place}")?)
}

/// Describes the waits of writers: how many, how long.
fn waits(report: &IngestReport) -> String {
    let time = human::short_time;
    let (committed, waited) = (report.committed_in, report.waited_for);
    match report.way {
        IngestWay::FlushFirst if report.flushes > 0 => format!(
            "closed to all writers for {}, and for part of the {} of flushes before",
            time(committed.saturating_sub(waited)),
            time(waited)
        ),
        IngestWay::Blocking | IngestWay::FlushFirst => {
            format!("closed to all writers for {} at the most", time(committed))
        }
        // Writers continue as soon as the tables are in the queues.
        IngestWay::Direct => {
            let closed = committed.saturating_sub(report.synced_in + report.placed_in);
            format!("closed to writers of these keys for {} at the most", time(closed))
        }
        _ => {
            format!("other writers kept waiting for {} at the most", time(report.held_up_for))
        }
    }
}

fn way_name(way: IngestWay) -> &'static str {
    match way {
        IngestWay::Queued => "queued",
        IngestWay::Blocking => "blocking",
        IngestWay::FlushFirst => "flush-first",
        IngestWay::Direct => "direct",
        IngestWay::Behind => "behind",
        _ => "other",
    }
}

fn show_json(ingested: &Ingested, damaged: &[DamagedFile], out: &mut dyn Write) -> Outcome {
    let Ingested { report, prepared_in, .. } = ingested;
    let line = json!({
        "tables": report.tables,
        "bytes": report.bytes,
        "first_number": report.first.0,
        "last_number": report.last.0,
        "way": way_name(report.way),
        "families_under": report.under,
        "families_above": report.above,
        "flushes": report.flushes,
        "prepare_us": prepared_in.as_micros() as u64,
        "commit_us": report.committed_in.as_micros() as u64,
        "waited_us": report.waited_for.as_micros() as u64,
        "sync_us": report.synced_in.as_micros() as u64,
        "placed_us": report.placed_in.as_micros() as u64,
        "commit_lock_ns": report.locked_for.as_nanos() as u64,
        "held_up_ns": report.held_up_for.as_nanos() as u64,
        "damaged": damaged.iter().map(DamagedFile::json).collect::<Vec<_>>(),
    });
    Ok(writeln!(out, "{line}")?)
}

#[cfg(test)]
mod tests {
    use spillway::internal::vfs::MemoryVfs;
    use spillway::internal::{FamilyOptions, OpenOptions, TableWriter};

    use super::*;
    use crate::progress::screen::Screen;

    #[test]
    fn the_terminal_shows_how_many_tables_are_prepared() {
        let (screen, vfs) = (Screen::of_this_thread(), MemoryVfs::new(1));
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        let files = ["/a.sst", "/b.sst"].map(|file| {
            let file = PathBuf::from(file);
            let mut table = TableWriter::create(vfs.clone(), &file, &FamilyOptions::default()).unwrap();
            table.put(b"key", b"value").unwrap();
            table.finish().unwrap();
            file
        });
        let progress = Arc::<IngestProgress>::default();
        let watch = Watch::begin(&*RealVfs::new(), progress.clone(), Interrupt::default());
        let request = IngestRequest::new(db.default_family(), files.to_vec());
        drop(db.prepare_ingest(&[request], &IngestOptions::default(), &progress).unwrap());
        // The bytes may be drawn later than the tables: the screen is refreshed between the two.
        assert!(screen.comes_to_show(&["prepared 2 of 2 tables", "100%"]), "{screen:?}");
        drop(watch);
        assert!(screen.is_clear(), "{screen:?}");
    }
}
