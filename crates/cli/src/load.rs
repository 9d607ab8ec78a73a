//! `spillway load`: a file's records into a family.

mod json;
mod lines;
mod progress;
mod rows;
mod source;

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use spillway::vfs::RealVfs;
use spillway::{Db, Family, WriteBatch, WriteOptions};

use crate::database::{Access, AdoptArgs, DatabaseArgs, FamilyArgs};
use crate::failure::{Failure, Outcome};
use crate::human;

use self::progress::Progress;
use self::source::Source;

/// Bytes of a batch at which it is written, however few records it has.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Loads a file's records. A key that is there already is overwritten.
///
/// csv: fields between commas (--delimiter), quoted where they need it; the first row names the columns unless
/// --no-header is given. The key is the columns of --key, the value is the whole row as csv, or the columns of --value.
///
/// tsv: the same with tabs and without quotes.
///
/// ndjson: a JSON object on each line. The key is the fields of --key, the value is the line.
///
/// kv: on each line the key, a tab and the value, as `scan` prints them with --hex.
///
/// What is loaded survives a kill of the process at once, batch by batch, and a power loss when the command ends (with
/// --sync, at once).
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  spillway load people.csv --db /tmp/people --format csv --key surname,name
  spillway load UnicodeData.txt --db /tmp/unicode --format csv --delimiter ';' --no-header --key 1
  zcat events.json.gz | spillway load - --db /tmp/events --format ndjson --key time,id --key-separator :
  spillway scan --hex --db /tmp/a | spillway load - --db /tmp/b --format kv --hex"
)]
pub struct Args {
    /// The file; - for standard input.
    file: PathBuf,
    #[arg(long)]
    format: Format,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// The columns (csv, tsv: by name, or by number from 1) or fields (ndjson) that make the key. The first column if
    /// not given.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    key: Vec<String>,
    /// What stands between the parts of a key that is made of several.
    #[arg(long, value_name = "TEXT", default_value = "/")]
    key_separator: String,
    /// csv, tsv: the columns that make the value, if not all. A single one is stored as it is, without quotes.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    value: Vec<String>,
    /// csv: what stands between fields.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<char>,
    /// csv, tsv: the first row is a record, not the columns' names.
    #[arg(long)]
    no_header: bool,
    /// csv, tsv: the first row names the columns. So it is without this, too.
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// kv: keys and values are hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// Passes over malformed records and counts them, instead of ending at the first one.
    #[arg(long)]
    skip_bad: bool,
    /// Fails where there is no database, instead of making it.
    #[arg(long)]
    no_create: bool,
    /// Makes the database where there is none. So it is without this, too.
    #[arg(long, conflicts_with = "no_create")]
    create: bool,
    /// Records written together: after a crash all of them are there, or none.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: u64,
    /// Makes every batch survive power loss before the next one is written.
    #[arg(long)]
    sync: bool,
    /// Prints `acknowledged N` after each batch: N records are in the database whatever happens now.
    #[arg(long)]
    acks: bool,
    #[command(flatten)]
    adopt: AdoptArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Tsv,
    Ndjson,
    Kv,
}

/// A key and a value, in memory that is used again.
#[derive(Default)]
struct Record {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What a parser found next.
enum Next {
    Record,
    End,
    /// A record that is none; the next one can be read.
    Malformed {
        line: u64,
        what: String,
    },
}

/// Reads records of one format.
trait Parser {
    fn next(&mut self, record: &mut Record) -> Outcome<Next>;
}

#[derive(Default)]
struct Tally {
    /// In the database.
    records: u64,
    payload_bytes: u64,
    skipped: u64,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Outcome {
    let source = Source::open(&args.file)?;
    let progress = Progress::begin(&source);
    let mut parser = parser(args, source)?;
    let db = args.database.open(Access::Write { adopt: args.adopt.adopt, create: !args.no_create })?;
    let family = args.family.of(&db)?;
    let vfs = RealVfs::new();
    let start = vfs.now();
    let mut tally = Tally::default();
    let loaded = load(args, &db, &family, &mut *parser, &mut Reporter { out, progress: &progress, tally: &mut tally });
    progress.end();
    loaded?;
    db.close()?;
    let time = vfs.now().saturating_sub(start);
    let Tally { records, payload_bytes, skipped } = tally;
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

fn parser(args: &Args, source: Source) -> Outcome<Box<dyn Parser>> {
    let refused = |what: &str| {
        Err(Failure::refused(format!("{what} does not go with --format {:?}", args.format).to_lowercase()))
    };
    let by_columns = matches!(args.format, Format::Csv | Format::Tsv);
    if !by_columns && !args.value.is_empty() {
        return refused("--value");
    }
    if args.format != Format::Csv && args.delimiter.is_some() {
        return refused("--delimiter");
    }
    if args.format != Format::Kv && args.hex {
        return refused("--hex");
    }
    Ok(match args.format {
        Format::Csv | Format::Tsv => Box::new(rows::Rows::new(args, source)?),
        Format::Ndjson if args.key.is_empty() => {
            return Err(Failure::refused("--format ndjson needs --key with the names of the fields that make the key"));
        }
        Format::Ndjson => Box::new(json::Objects::new(source, &args.key, &args.key_separator)),
        Format::Kv if !args.key.is_empty() => return refused("--key"),
        Format::Kv => Box::new(lines::Pairs::new(source, args.hex)),
    })
}

/// Where a load's progress is told.
struct Reporter<'a> {
    out: &'a mut dyn Write,
    progress: &'a Progress,
    tally: &'a mut Tally,
}

fn load(args: &Args, db: &Db, family: &Family, parser: &mut dyn Parser, reporter: &mut Reporter<'_>) -> Outcome {
    let mut batch = WriteBatch::new();
    let mut record = Record::default();
    loop {
        match parser.next(&mut record)? {
            Next::Record => batch.put(family.id(), &record.key, &record.value),
            Next::End => return write(args, db, &mut batch, reporter),
            Next::Malformed { .. } if args.skip_bad => reporter.tally.skipped += 1,
            Next::Malformed { line, what } => {
                write(args, db, &mut batch, reporter)?;
                let (file, before) = (args.file.display(), human::count(reporter.tally.records));
                return Err(Failure::refused(format!(
                    "{file}, line {line}: {what}; the {before} records before it are loaded (--skip-bad passes over such \
                     lines)"
                )));
            }
        }
        if u64::from(batch.count()) >= args.batch || batch.len() >= BATCH_BYTES_MAX {
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
