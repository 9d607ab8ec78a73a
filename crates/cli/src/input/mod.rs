//! Input files of records, in all formats of the commands.

mod content;
mod file;
mod json;
mod lines;
mod recognise;
mod rows;
mod skipped;
mod source;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::ValueEnum;
use spillway::internal::{ValueKind, limits};

use crate::bytes::text;
use crate::delimited::Row;
use crate::failure::{Failure, Outcome, note};
use crate::human;
use crate::interrupt::Interrupt;

pub use self::skipped::Skipped;
use self::source::Source;

const KEY_SEPARATOR: &str = "/";

/// Default record limit, in bytes of the input. Reading takes about twice as much memory.
const RECORD_BYTES_DEFAULT: u64 = 64 << 20;

/// More than any entry of a table can have.
const RECORD_BYTES_MAX: u64 = 4 << 30;

/// Format of records, and the parts of a record for key and value.
#[derive(clap::Args, Debug)]
pub struct InputArgs {
    /// Format of the files. Default: as their names end (.csv, .tsv, .ndjson, .jsonl, .json, .kv, .gz or .zst behind it), or as
    /// the first line looks; a note tells it.
    #[arg(long)]
    format: Option<Format>,
    /// Columns (csv, tsv: names, or numbers from 1) or fields (ndjson) of the key, separated by commas. Default: the first
    /// column.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    key: Vec<String>,
    /// Text between the parts of a key with several columns. Default: /. Parts with this text in them are malformed, but the
    /// last: another record could have the same key. An empty text joins parts as they are, for those of a fixed length.
    #[arg(long, value_name = "TEXT")]
    key_separator: Option<String>,
    /// Columns (csv, tsv) or field (ndjson) of the value. Default: the whole record. A single column is stored without quotes.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    value: Vec<String>,
    /// csv: character between fields. Default: comma; or semicolon, tab or | if the first row has no comma.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<char>,
    /// csv, tsv: reads the first row of each file as a record, not as names of columns.
    #[arg(long)]
    no_header: bool,
    /// csv, tsv: reads the first row of each file as names of columns. This is the default, but for files whose format is
    /// recognised and whose first row begins with a number.
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// kv, and csv and tsv with one column as --value: reads keys and values as hexadecimal digits.
    #[arg(long)]
    hex: bool,
    /// kv: reads backslashes as they are, not as escapes.
    #[arg(long, conflicts_with = "hex")]
    raw: bool,
    /// Skips and counts malformed records, instead of ending at the first one.
    #[arg(long)]
    skip_bad: bool,
    /// Limit of a record, in bytes or with a suffix K, M or G. In csv, a quote not closed within the limit is malformed; reading
    /// goes on with the next line. Default: 64M.
    #[arg(long, value_name = "BYTES", value_parser = human::parse_bytes)]
    max_record: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Fields between commas, in quotes if needed.
    Csv,
    /// Fields between tabs, without quotes.
    Tsv,
    /// A JSON object on each line.
    Ndjson,
    /// Key, tab and value on each line.
    Kv,
}

/// The form of the files, given or recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    format: Format,
    /// Between fields of csv and tsv.
    delimiter: char,
    no_header: bool,
    /// Told, so that a wrong guess is seen.
    is_guessed: bool,
}

/// A key and a value, in reused memory.
#[derive(Default)]
pub struct Record {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Result of a parser's step.
enum Next {
    Record,
    End,
    /// A malformed record; the next one can be read.
    Malformed {
        line: u64,
        what: String,
    },
}

impl Next {
    /// What was parsed at a line. A record that no table can hold is malformed, too.
    fn of(parsed: Result<(), String>, line: u64, record: &Record) -> Next {
        let storable = || limits::check_change(ValueKind::Value, &record.key, &record.value);
        match parsed.and_then(|()| storable().map_err(|error| error.message().to_owned())) {
            Ok(()) => Next::Record,
            Err(what) => Next::Malformed { line, what },
        }
    }
}

/// Reads records of one format.
trait Parser {
    /// Reads the next record into `record`.
    fn next(&mut self, record: &mut Record) -> Outcome<Next>;

    /// The row of column names, if any.
    fn header(&self) -> Option<&Row> {
        None
    }
}

/// Records of all files, one file after the other.
pub struct Input<'a> {
    args: &'a InputArgs,
    /// Files not yet open.
    files: VecDeque<PathBuf>,
    open: Option<OpenFile>,
    /// By the first file.
    form: Option<Form>,
    /// A record that was read ahead.
    ahead: Option<Record>,
    /// Header of the first file, if any.
    header: Option<Row>,
    read_bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    skipped: Skipped,
    interrupt: Interrupt,
}

struct OpenFile {
    name: String,
    parser: Box<dyn Parser>,
}

impl<'a> Input<'a> {
    /// Opens the first file and checks that all files exist. After an interrupt, reading fails.
    pub fn open(args: &'a InputArgs, files: &[PathBuf], interrupt: &Interrupt) -> Outcome<Input<'a>> {
        args.check_limit()?;
        check_files(files)?;
        let sizes = files.iter().map(|path| file::total_bytes(path)).collect::<Outcome<Vec<_>>>()?;
        let mut input = Input {
            args,
            files: files.iter().cloned().collect(),
            open: None,
            form: None,
            ahead: None,
            header: None,
            read_bytes: Arc::default(),
            total_bytes: sizes.into_iter().sum(),
            skipped: Skipped::default(),
            interrupt: interrupt.clone(),
        };
        input.open_next()?;
        Ok(input)
    }

    /// Opens the next file; false if there is none.
    fn open_next(&mut self) -> Outcome<bool> {
        let Some(path) = self.files.pop_front() else { return Ok(false) };
        let mut source =
            Source::open(&path, self.read_bytes.clone(), self.interrupt.clone(), self.args.record_bytes_max())?;
        let name = source.name().to_owned();
        let form = match self.form {
            Some(first) if source.peek_line()?.is_empty() => first,
            Some(first) => self.args.form(&mut source)?.as_first(&name, first)?,
            None => self.args.form(&mut source)?,
        };
        if form.format == Format::Ndjson {
            recognise::check_objects(&mut source)?;
        }
        self.args.check(form.format)?;
        let parser = self.args.parser(form, source)?;
        if self.form.replace(form).is_none() && form.is_guessed {
            note(&format!("{name} is read as {}; the key is {}", form.describe(), self.args.key_of(parser.header())));
        }
        match (&self.header, parser.header()) {
            (None, header) => self.header = header.cloned(),
            (Some(first), Some(header)) => self.args.check_header(&name, first, header)?,
            _ => {}
        }
        self.open = Some(OpenFile { name, parser });
        Ok(true)
    }

    /// Reads a record into `record`; false at the end of the last file.
    ///
    /// # Errors
    /// `Malformed`: a record is malformed, and `--skip-bad` is not given.
    pub fn next(&mut self, record: &mut Record) -> Outcome<bool> {
        if let Some(ahead) = self.ahead.take() {
            *record = ahead;
            return Ok(true);
        }
        while let Some(OpenFile { name, parser }) = &mut self.open {
            match parser.next(record)? {
                Next::Record => return Ok(true),
                Next::Malformed { line, what } => {
                    let what = format!("{name}, line {line}: {what}");
                    if !self.args.skip_bad {
                        return Err(Failure::Malformed(what));
                    }
                    self.skipped.add(what);
                }
                Next::End => {
                    if !self.open_next()? {
                        self.open = None;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Reads the next record ahead, for callers that make nothing if there is no good one.
    ///
    /// # Errors
    /// As those of [`next`](Self::next).
    pub fn look_ahead(&mut self) -> Outcome<bool> {
        let mut record = Record::default();
        self.ahead = self.next(&mut record)?.then_some(record);
        Ok(self.ahead.is_some())
    }

    /// Skips the first records.
    ///
    /// # Errors
    /// The input has fewer.
    pub fn pass_over(&mut self, records: u64) -> Outcome {
        let mut record = Record::default();
        for passed in 0..records {
            if !self.next(&mut record)? {
                let there = human::counted(passed, "record", "records");
                return Err(Failure::refused(format!(
                    "--skip {records} passes over more than there is: the input has {there}"
                )));
            }
        }
        Ok(())
    }

    /// What the key is made of, in words.
    pub fn key(&self) -> String {
        self.args.key_of(self.header.as_ref())
    }

    /// Bytes of all files; `None` if one is a pipe.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Bytes read so far; the counter keeps counting.
    pub fn counter(&self) -> Arc<AtomicU64> {
        self.read_bytes.clone()
    }

    /// Skipped malformed records.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }
}

impl InputArgs {
    /// # Errors
    /// The limit of a record is out of bounds.
    fn check_limit(&self) -> Outcome {
        match self.max_record {
            Some(bytes) if !(1..=RECORD_BYTES_MAX).contains(&bytes) => {
                Err(Failure::refused("--max-record is 1 at the least and 4G at the most; no entry can be larger"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses arguments that do not go with a format.
    fn check(&self, format: Format) -> Outcome {
        let refused = |what: &str| Err(Failure::refused(format!("{what} does not go with --format {}", format.name())));
        let by_columns = matches!(format, Format::Csv | Format::Tsv);
        let is_kv = format == Format::Kv;
        let given = [
            ("--value", !self.value.is_empty(), !is_kv),
            ("--header", self.header, by_columns),
            ("--no-header", self.no_header, by_columns),
            ("--delimiter", self.delimiter.is_some(), format == Format::Csv),
            ("--hex", self.hex, is_kv || by_columns),
            ("--raw", self.raw, is_kv),
            ("--key", !self.key.is_empty(), !is_kv),
            ("--key-separator", self.key_separator.is_some(), !is_kv),
        ];
        if let Some((name, ..)) = given.into_iter().find(|(_, is_given, is_known)| *is_given && !is_known) {
            return refused(name);
        }
        let wrong = match format {
            Format::Ndjson if self.key.is_empty() => {
                "--format ndjson needs --key with the names of the fields that make the key"
            }
            Format::Ndjson if self.value.len() > 1 => "--value takes one field with --format ndjson",
            Format::Csv | Format::Tsv if self.hex && self.value.len() != 1 => "--hex needs one column as --value",
            _ => return Ok(()),
        };
        Err(Failure::refused(wrong))
    }

    /// The columns that are stored must have the same names in all files: whole rows, and columns by their numbers, could not be
    /// told apart.
    fn check_header(&self, name: &str, first: &Row, header: &Row) -> Outcome {
        let column = |row: &Row, column: &String| {
            let by_number = || column.parse::<usize>().ok().and_then(|number| row.get(number.checked_sub(1)?));
            let found = row.iter().find(|name| *name == column.as_bytes());
            found.or_else(by_number).map(text).unwrap_or_default()
        };
        let used = |row: &Row| match self.value.as_slice() {
            [] => row.iter().map(text).collect::<Vec<_>>(),
            _ => {
                let key = if self.key.is_empty() { &[String::from("1")] } else { self.key.as_slice() };
                key.iter().chain(&self.value).map(|one| column(row, one)).collect()
            }
        };
        let (header, first) = (used(header), used(first));
        if header == first {
            return Ok(());
        }
        let (header, first) = (header.join(", "), first.join(", "));
        let so = match self.value.is_empty() {
            true => "rows that are stored whole could not be told apart. Say --value with the columns to store",
            false => "columns by their numbers would be others. Say --key and --value with their names",
        };
        Err(Failure::refused(format!(
            "{name}, line 1: the first row names {header}; the first file's names {first}, and {so}, --no-header if the \
             first rows are records, or load it by itself"
        )))
    }

    /// What the key is made of, in words.
    fn key_of(&self, header: Option<&Row>) -> String {
        match (self.key.as_slice(), header.and_then(|names| names.get(0))) {
            ([], Some(first)) => format!("the column \"{}\"", text(first)),
            ([], None) => "what stands first".to_owned(),
            ([only], _) => format!("\"{only}\""),
            (several, _) => format!("\"{}\", with {:?} between", several.join("\", \""), self.key_separator()),
        }
    }

    fn key_separator(&self) -> &str {
        self.key_separator.as_deref().unwrap_or(KEY_SEPARATOR)
    }

    fn record_bytes_max(&self) -> usize {
        self.max_record.unwrap_or(RECORD_BYTES_DEFAULT) as usize
    }

    fn parser(&self, form: Form, source: Source) -> Outcome<Box<dyn Parser>> {
        Ok(match form.format {
            Format::Csv | Format::Tsv => Box::new(rows::Rows::new(self, form, source)?),
            Format::Ndjson => Box::new(json::Objects::new(source, &self.key, self.key_separator(), self.value.first())),
            Format::Kv => Box::new(lines::Pairs::new(source, self.notation())),
        })
    }

    fn notation(&self) -> lines::Notation {
        match (self.hex, self.raw) {
            (true, _) => lines::Notation::Hex,
            (false, true) => lines::Notation::Raw,
            (false, false) => lines::Notation::Escapes,
        }
    }
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Ndjson => "ndjson",
            Format::Kv => "kv",
        }
    }
}

impl Form {
    /// This form, of a later file, if it is that of the first one.
    fn as_first(self, name: &str, first: Form) -> Outcome<Form> {
        let row = |form: Form| if form.no_header { "is a record" } else { "names the columns" };
        let what = if self.format != first.format {
            let (format, first) = (self.format.name(), first.format.name());
            format!("looks like {format}, and the first file like {first}: say --format")
        } else if self.delimiter != first.delimiter {
            let (delimiter, first) = (self.delimiter, first.delimiter);
            format!("has {delimiter:?} between its fields, and the first file {first:?}: say --delimiter")
        } else if self.no_header != first.no_header {
            let (row, first) = (row(self), row(first));
            format!(
                "has a first row that {row}, as it looks, and that of the first file {first}: say --header or --no-header"
            )
        } else {
            return Ok(first);
        };
        Err(Failure::refused(format!("{name} {what} if it is the same in all files, or load it by itself")))
    }

    fn describe(self) -> String {
        let Form { format, delimiter, no_header, .. } = self;
        let first = match no_header {
            true => "the first row is a record (--header if it names the columns)",
            false => "the first row names the columns (--no-header if it is a record)",
        };
        match format {
            Format::Csv => format!("csv with {delimiter:?} between fields; {first}"),
            Format::Tsv => format!("tsv; {first}"),
            Format::Ndjson | Format::Kv => format.name().to_owned(),
        }
    }
}

/// Appends the separator behind a part of a key that begins at `from`.
///
/// # Errors
/// The separator is found before the part ends: another record could have the same key.
fn separate(key: &mut Vec<u8>, from: usize, separator: &str) -> Result<(), String> {
    let part_bytes = key.len() - from;
    key.extend_from_slice(separator.as_bytes());
    let found = memchr::memmem::find(key.get(from..).unwrap_or_default(), separator.as_bytes());
    if separator.is_empty() || found == Some(part_bytes) {
        return Ok(());
    }
    Err(format!(
        "a part of the key has {separator:?} in it, and another record could have the same key: say --key-separator TEXT \
         with a text that no part has"
    ))
}

/// Standard input can be read once: a second time it would look like a file without records.
fn check_files(files: &[PathBuf]) -> Outcome {
    if files.iter().filter(|path| file::is_standard_input(path)).count() > 1 {
        return Err(Failure::refused("- is named twice, and standard input can be read only once; name it once"));
    }
    Ok(())
}
