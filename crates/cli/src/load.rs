//! `spillway load`: a file's records into a family.

mod seen;
mod tables;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use spillway::internal::ttl::Times;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Family, WriteBatch, WriteOptions};

use self::seen::{Repeated, Seen};
use self::watch::Watch;
use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, InputArgs, Record, Skipped};
use crate::interrupt::Interrupt;
use crate::make::MakeArgs;
use crate::progress::Reading;
use crate::{human, json};

/// Records of a batch.
const BATCH_RECORDS: u64 = 1000;

/// A batch of so many bytes is written, however few records it has.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Message if a load ends before the first batch, or before all of its tables are in.
const NOTHING_LOADED: &str = "nothing was loaded";

/// Loads records from files. Overwrites existing keys.
///
/// csv: fields between commas (--delimiter), in quotes if needed. The first row has the names of the columns, unless
/// --no-header is given. The key is the columns of --key; the value is the whole row as csv, or the columns of --value.
///
/// tsv: the same with tabs and without quotes.
///
/// ndjson: a JSON object on each line. The key is the fields of --key; the value is the line, or the field of --value. A
/// number in a key is used as written: 1e3 is not 1000. A field NAME may be given as NAME_hex, in hexadecimal digits.
///
/// kv: key, tab and value on each line, as `scan` prints them. \\, \t, \n, \r and \xNN are escapes, unless --raw is given;
/// with --hex every byte is two hexadecimal digits.
///
/// Without --format the format is recognised by the file's name, or by its first line, and told.
///
/// Files are UTF-8, plain or compressed by gzip or Zstandard; the compression is recognised by their first bytes.
///
/// --via puts writes batches. A batch survives a kill of the process as soon as it is written, and a power loss when the
/// command has ended, or at once with --sync. A load ended by Ctrl-C or an error keeps its records so far and prints their
/// number; --skip with this number continues it.
///
/// --via ingest is faster for many records: it sorts them into tables (see `spillway table build`), and adds the tables to
/// the database atomically, at the end. If the load ends early, nothing is loaded.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  spillway load people.csv --db /tmp/people --key surname,name
  spillway load UnicodeData.txt --db /tmp/unicode --format csv --delimiter ';' --no-header --key 1
  spillway load events-*.json.gz --db /tmp/events --format ndjson --key time,id --key-separator @
  spillway load big.tsv --db /tmp/big --format tsv --via ingest --memory 4G
  spillway load people.csv --db /tmp/people --format csv --skip-bad --skip 120000    # continues
  spillway scan --db /tmp/a | spillway load - --db /tmp/b --format kv")]
pub struct Args {
    /// Files, read one after the other; - for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Fails if the database does not exist, instead of creating it.
    #[arg(long)]
    no_create: bool,
    /// Creates the database if it does not exist. This is the default.
    #[arg(long, conflicts_with = "no_create")]
    create: bool,
    /// Way into the database.
    #[arg(long, value_enum, default_value_t = Via::Puts)]
    via: Via,
    /// Records of a batch. A batch is written atomically: after a crash, all of it or nothing. Default: 1000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: Option<u64>,
    /// Syncs the log after every batch, so that it survives a power loss before the next batch is written.
    #[arg(long)]
    sync: bool,
    /// Prints `acknowledged N` after each batch: the first N records are in the database, even if the load fails later.
    #[arg(long)]
    acks: bool,
    /// Skips the first N good records. An interrupted load prints the number to continue with.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    skip: u64,
    /// Prints the final report as JSON: one line, described in docs/cli.md.
    #[arg(long, conflicts_with = "acks")]
    pub json: bool,
    #[command(flatten)]
    adopt: AdoptArgs,
    #[command(flatten, next_help_heading = "With --via ingest")]
    make: MakeArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    /// In batches, through the log and the memtables.
    Puts,
    /// As sorted tables, atomically at the end.
    Ingest,
}

impl Args {
    /// Refuses incompatible arguments.
    fn check(&self) -> Outcome {
        let of_puts = [("--batch", self.batch.is_some()), ("--sync", self.sync), ("--acks", self.acks)];
        let of_puts = of_puts.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name);
        let (wrong, via) = match self.via {
            Via::Puts => (self.make.given(), "ingest"),
            Via::Ingest => (of_puts, "puts"),
        };
        match wrong {
            Some(name) => Err(Failure::refused(format!("{name} goes with --via {via} only"))),
            None => self.make.check(), // before the database is made
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
    let interrupt = Interrupt::default();
    interrupt.listen()?;
    let mut input = interrupt.explain(Input::open(&args.input, &args.files, &interrupt), NOTHING_LOADED)?;
    // Before the database is made: an input without a good record leaves none.
    let ahead = input.pass_over(args.skip).and_then(|()| input.look_ahead());
    if !interrupt.explain(ahead, NOTHING_LOADED).map_err(|failure| failure.with(NOTHING_LOADED))? {
        input.skipped().check(args.skip)?;
    }
    let access = Access::Write { adopt: args.adopt.adopt, create: !args.no_create };
    let (db, family) = args.database.open_family(access, &args.family)?;
    match args.via {
        Via::Puts => load(args, db, family, input, &interrupt, out),
        Via::Ingest => tables::load(args, db, family, input, &interrupt, out),
    }
}

fn load(
    args: &Args,
    db: Database,
    family: Arc<Family>,
    mut input: Input<'_>,
    interrupt: &Interrupt,
    out: &mut dyn Write,
) -> Outcome {
    let vfs = RealVfs::new();
    let start = vfs.now();
    let db = Arc::new(db);
    let watch = Watch::begin(db.clone(), family.clone(), interrupt.clone());
    let key = input.key();
    let mut loader = Loader {
        args,
        db: &db,
        times: Times::of(db.vfs(), &family.options()),
        family,
        batch: WriteBatch::new(),
        payload_bytes: 0,
        tally: Tally::default(),
        seen: Seen::default(),
        progress: Reading::begin(input.total_bytes(), input.counter()),
        out,
    };
    let loaded = loader.load(&mut input);
    let (so, tally) = (loader.so_far(input.skipped()), std::mem::take(&mut loader.tally));
    let repeated = loader.seen.repeated();
    drop(loader);
    // Loaded records must survive a power loss from here on, however the load ended.
    let (loaded, closed) = watch.close(loaded, &db);
    let loaded = interrupt.explain(loaded, &so).map_err(|failure| failure.with(&so));
    match (loaded, closed) {
        (Ok(()), closed) => closed?,
        (Err(failure), Ok(())) => return Err(failure),
        (Err(failure), Err(error)) => return Err(failure.with(&format!("to close the database failed, too: {error}"))),
    }
    input.skipped().check(tally.records + args.skip)?;
    let time = vfs.now().saturating_sub(start);
    match args.json {
        true => json::print(&report(&tally, repeated, input.skipped(), time), out),
        false => {
            summary(&tally, input.skipped(), time, out)?;
            tell_repeated(repeated, &key, out)
        }
    }
}

/// The final report of `--json`.
fn report(tally: &Tally, repeated: Repeated, skipped: &Skipped, time: Duration) -> Value {
    let (Repeated::Exactly(count) | Repeated::AtLeast(count)) = repeated;
    json!({
        "records": tally.records,
        "repeated": count,
        "payload_bytes": tally.payload_bytes,
        "malformed": skipped.records(),
        "seconds": time.as_secs_f64(),
        "records_per_s": human::per_second(tally.records, time),
        "payload_bytes_per_s": human::per_second(tally.payload_bytes, time),
    })
}

fn summary(tally: &Tally, skipped: &Skipped, time: Duration, out: &mut dyn Write) -> Outcome {
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
    skipped.show(out)
}

/// Says how many records replaced earlier ones of this load: a column that is no key shows here.
fn tell_repeated(repeated: Repeated, key: &str, out: &mut dyn Write) -> Outcome {
    let (about, count) = match repeated {
        Repeated::Exactly(0) | Repeated::AtLeast(0) => return Ok(()),
        Repeated::Exactly(count) => ("", count),
        Repeated::AtLeast(count) => ("at least ", count),
    };
    let records = human::counted(count, "record", "records");
    Ok(writeln!(out, "{about}{records} had the key of an earlier one, and replaced it; the key is {key}")?)
}

/// Writes records, batch by batch.
struct Loader<'a> {
    args: &'a Args,
    db: &'a Database,
    family: Arc<Family>,
    times: Option<Times>,
    batch: WriteBatch,
    /// Of the batch's keys and values.
    payload_bytes: u64,
    tally: Tally,
    seen: Seen,
    progress: Reading,
    out: &'a mut dyn Write,
}

impl Loader<'_> {
    /// Writes the records read so far, even after an error.
    fn load(&mut self, input: &mut Input<'_>) -> Outcome {
        let read = self.read(input);
        let written = self.write();
        read.and(written)
    }

    fn read(&mut self, input: &mut Input<'_>) -> Outcome {
        let mut record = Record::default();
        while input.next(&mut record)? {
            self.batch.put(self.family.id(), &record.key, &Times::stored(self.times.as_ref(), &record.value));
            self.payload_bytes += (record.key.len() + record.value.len()) as u64;
            self.seen.note(&record.key);
            let is_full = u64::from(self.batch.count()) >= self.args.batch.unwrap_or(BATCH_RECORDS);
            if is_full || self.batch.len() >= BATCH_BYTES_MAX {
                self.write()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Outcome {
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.db.write(&self.batch, &WriteOptions { sync: self.args.sync, ..WriteOptions::default() });
        let payload_bytes = std::mem::take(&mut self.payload_bytes);
        if written.is_ok() {
            self.tally.payload_bytes += payload_bytes;
            self.tally.records += u64::from(self.batch.count());
        }
        self.batch.clear();
        written?;
        if self.args.acks {
            writeln!(self.out, "acknowledged {}", self.args.skip + self.tally.records)?;
            self.out.flush()?;
        }
        self.progress.advance(self.tally.records);
        Ok(())
    }

    /// Describes the outcome of an interrupted load.
    fn so_far(&self, skipped: &Skipped) -> String {
        let records = self.tally.records;
        let mut so = match records {
            0 => NOTHING_LOADED.to_owned(),
            1 => "1 record is loaded".to_owned(),
            _ => format!("{} records are loaded", human::count(records)),
        };
        if skipped.records() > 0 {
            let malformed = human::counted(skipped.records(), "malformed record", "malformed records");
            so += &format!(", {malformed} passed over");
        }
        match records + self.args.skip {
            0 => so,
            behind => so + &format!("; --skip {behind} goes on from there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use spillway::internal::vfs::{Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Operation, Rule};
    use spillway::internal::{FamilyOptions, OpenOptions};

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

    #[test]
    fn a_full_disk_ends_a_load_with_what_is_loaded() {
        let (vfs, dir) = (FaultVfs::new(MemoryVfs::new(1)), tempfile::tempdir().unwrap());
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        // The first sync is of the new log.
        vfs.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Sync).path(".splog").nth(4).sticky());
        let file = dir.path().join("in").display().to_string();
        let lines: String = (0..100).map(|i| format!("{i:03}\tvalue\n")).collect();
        let mut input = RealVfs::new().create(file.as_ref(), IfExists::Fail).unwrap();
        input.append(lines.as_bytes(), IoClass::Other).unwrap();
        let line = ["load", &file, "--format", "kv", "--db", "/db", "--sync", "--batch", "10", "--skip", "5"];
        let args = Line::parse_from(line).args;
        let interrupt = Interrupt::default();
        let mut input = Input::open(&args.input, &args.files, &interrupt).ok().unwrap();
        input.pass_over(args.skip).ok().unwrap();
        let family = db.default_family();
        let failure = load(&args, db, family, input, &interrupt, &mut std::io::sink()).err().unwrap();
        let message = failure.message().unwrap();
        assert!(message.contains("\n20 records are loaded; --skip 25 goes on from there"), "{message}");
        assert_eq!(failure.status(), 1);
    }

    /// Where flushes find no space, writes wait for room once the memtables are full.
    #[test]
    fn a_load_does_not_wait_for_room_on_a_full_disk() {
        let (vfs, dir) = (FaultVfs::new(RealVfs::new()), tempfile::tempdir().unwrap());
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let small = FamilyOptions { write_buffer_size: 64 << 10, ..FamilyOptions::default() };
        options.families = vec![("default".to_owned(), small)];
        let db = Database::open(dir.path().join("db"), &options).unwrap();
        vfs.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(Operation::Write).path(".sst").sticky());
        let file = dir.path().join("in").display().to_string();
        let lines: String = (0..50_000).map(|i| format!("{i:05}\tvalue\n")).collect();
        let mut input = RealVfs::new().create(file.as_ref(), IfExists::Fail).unwrap();
        input.append(lines.as_bytes(), IoClass::Other).unwrap();
        let args = Line::parse_from(["load", &file, "--format", "kv", "--db", "/db"]).args;
        let interrupt = Interrupt::default();
        let input = Input::open(&args.input, &args.files, &interrupt).ok().unwrap();
        let family = db.default_family();
        let failure = load(&args, db, family, input, &interrupt, &mut std::io::sink()).err().unwrap();
        let message = failure.message().unwrap();
        assert!(message.contains("No space left on device"), "{message}");
        let loaded = message.split("; --skip ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
        let reopened = OpenOptions { read_only: true, ..OpenOptions::default() };
        let db = Database::open(dir.path().join("db"), &reopened).unwrap();
        assert_eq!(db.latest_sequence_number().0, loaded);
    }
}
