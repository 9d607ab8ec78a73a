//! `spillway load`: a file's records into a family.

mod tables;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use spillway::vfs::RealVfs;
use spillway::{Db, Family, WriteBatch, WriteOptions};

use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::input::{Input, InputArgs, Record};
use crate::make::MakeArgs;
use crate::progress::Reading;

/// Records of a batch.
const BATCH_RECORDS: u64 = 1000;

/// Bytes of a batch at which it is written, however few records it has.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Loads a file's records. A key that is there already is overwritten.
///
/// csv: fields between commas (--delimiter), quoted where they need it; the first row names the columns unless
/// --no-header is given. The key is the columns of --key, the value is the whole row as csv, or the columns of --value.
///
/// tsv: the same with tabs and without quotes.
///
/// ndjson: a JSON object on each line. The key is the fields of --key, the value is the line. A number in a key is
/// the text that stands there: 1e3 is not 1000.
///
/// kv: on each line the key, a tab and the value, as `scan` prints them with --hex.
///
/// By puts, what is loaded survives a kill of the process at once, batch by batch, and a power loss when the command ends
/// (with --sync, at once). With --via ingest, which is the fast way for many records, all of them appear at once in the
/// end, or none: they are sorted into tables first (see `spillway table build`), and those are taken in as they are.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  spillway load people.csv --db /tmp/people --format csv --key surname,name
  spillway load UnicodeData.txt --db /tmp/unicode --format csv --delimiter ';' --no-header --key 1
  zcat events.json.gz | spillway load - --db /tmp/events --format ndjson --key time,id --key-separator :
  spillway load big.tsv --db /tmp/big --format tsv --via ingest --memory 4G
  spillway scan --hex --db /tmp/a | spillway load - --db /tmp/b --format kv --hex"
)]
pub struct Args {
    /// The file; - for standard input.
    file: PathBuf,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Fails where there is no database, instead of making it.
    #[arg(long)]
    no_create: bool,
    /// Makes the database where there is none. So it is without this, too.
    #[arg(long, conflicts_with = "no_create")]
    create: bool,
    /// The way into the database.
    #[arg(long, value_enum, default_value_t = Via::Puts)]
    via: Via,
    /// Records written together: after a crash all of them are there, or none. 1000 if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: Option<u64>,
    /// Makes every batch survive power loss before the next one is written.
    #[arg(long)]
    sync: bool,
    /// Prints `acknowledged N` after each batch: N records are in the database whatever happens now.
    #[arg(long)]
    acks: bool,
    #[command(flatten)]
    adopt: AdoptArgs,
    #[command(flatten, next_help_heading = "With --via ingest")]
    make: MakeArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    /// Batch by batch, through the log and the memtables.
    Puts,
    /// As sorted tables, all at once.
    Ingest,
}

impl Args {
    /// What of the arguments does not go together.
    fn check(&self) -> Outcome {
        let of_puts = [("--batch", self.batch.is_some()), ("--sync", self.sync), ("--acks", self.acks)];
        let of_puts = of_puts.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name);
        let (wrong, via) = match self.via {
            Via::Puts => (self.make.given(), "ingest"),
            Via::Ingest => (of_puts, "puts"),
        };
        match wrong {
            Some(name) => Err(Failure::refused(format!("{name} goes with --via {via} only"))),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Tally {
    /// In the database.
    records: u64,
    payload_bytes: u64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    args.check()?;
    let mut input = Input::open(&args.input, std::slice::from_ref(&args.file))?;
    let db = args.database.open(Access::Write { adopt: args.adopt.adopt, create: !args.no_create })?;
    let family = args.family.of(&db)?;
    if args.via == Via::Ingest {
        return tables::load(args, db, family, input, out);
    }
    let progress = Reading::begin(input.total_bytes(), input.counter());
    let vfs = RealVfs::new();
    let start = vfs.now();
    let mut tally = Tally::default();
    let loaded = load(args, &db, &family, &mut input, &mut Reporter { out, progress: &progress, tally: &mut tally });
    drop(progress);
    loaded?;
    db.close()?;
    summary(&tally, input.skipped(), vfs.now().saturating_sub(start), out)
}

fn summary(tally: &Tally, skipped: u64, time: Duration, out: &mut dyn Write) -> Outcome {
    let Tally { records, payload_bytes } = *tally;
    writeln!(
        out,
        "loaded {} ({}) in {}: {} records/s, {}/s",
        human::counted(records, "record", "records"),
        human::bytes(payload_bytes),
        human::seconds(time),
        human::count(human::per_second(records, time)),
        human::bytes(human::per_second(payload_bytes, time)),
    )?;
    if skipped > 0 {
        writeln!(out, "passed over {}", human::counted(skipped, "malformed record", "malformed records"))?;
    }
    Ok(())
}

/// Where a load's progress is told.
struct Reporter<'a> {
    out: &'a mut dyn Write,
    progress: &'a Reading,
    tally: &'a mut Tally,
}

fn load(args: &Args, db: &Db, family: &Family, input: &mut Input<'_>, reporter: &mut Reporter<'_>) -> Outcome {
    let mut batch = WriteBatch::new();
    let mut record = Record::default();
    loop {
        match input.next(&mut record)? {
            Ok(true) => batch.put(family.id(), &record.key, &record.value),
            Ok(false) => return write(args, db, &mut batch, reporter),
            Err(malformed) => {
                write(args, db, &mut batch, reporter)?;
                let before = human::count(reporter.tally.records);
                return Err(malformed.failure(&format!("the {before} records before it are loaded")));
            }
        }
        if u64::from(batch.count()) >= args.batch.unwrap_or(BATCH_RECORDS) || batch.len() >= BATCH_BYTES_MAX {
            write(args, db, &mut batch, reporter)?;
        }
    }
}

fn write(args: &Args, db: &Db, batch: &mut WriteBatch, reporter: &mut Reporter<'_>) -> Outcome {
    if batch.is_empty() {
        return Ok(());
    }
    db.write(batch, &WriteOptions { sync: args.sync, ..WriteOptions::default() })?;
    let tally = &mut *reporter.tally;
    tally.records += u64::from(batch.count());
    tally.payload_bytes +=
        batch.iter().flatten().map(|record| record.key.len() + record.value.len()).sum::<usize>() as u64;
    batch.clear();
    if args.acks {
        writeln!(reporter.out, "acknowledged {}", tally.records)?;
        reporter.out.flush()?;
    }
    reporter.progress.advance(tally.records);
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use spillway::vfs::{IfExists, IoClass};

    use super::*;
    use crate::progress::screen::Screen;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_terminal_shows_how_many_records_are_loaded() {
        let (screen, dir) = (Screen::of_this_thread(), tempfile::tempdir().unwrap());
        let [file, db] = ["in", "db"].map(|name| dir.path().join(name).display().to_string());
        let lines: String = (0..2 * BATCH_RECORDS).map(|i| format!("{i:05}\tvalue\n")).collect();
        let mut input = RealVfs::new().create(file.as_ref(), IfExists::Fail).unwrap();
        input.append(lines.as_bytes(), IoClass::Other).unwrap();
        let line = Line::parse_from(["load", &file, "--format", "kv", "--db", &db]);
        assert!(run(&line.args, &mut std::io::sink()).is_ok());
        let has_advanced = |line: &str| line.contains("1,000 records") && !line.contains("%  0 B/");
        assert!(screen.showed(has_advanced), "{screen:?}");
        assert!(screen.is_clear(), "{screen:?}");
    }
}
