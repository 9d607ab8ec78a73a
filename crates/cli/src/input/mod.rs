//! Files of records, in the formats that commands take in.

mod json;
mod lines;
mod rows;
mod source;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::ValueEnum;

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;

use self::source::Source;

const KEY_SEPARATOR: &str = "/";

/// What the records are made of.
#[derive(clap::Args, Debug)]
pub struct InputArgs {
    #[arg(long)]
    format: Format,
    /// The columns (csv, tsv: by name, or by number from 1) or fields (ndjson) that make the key. The first column if
    /// not given.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    key: Vec<String>,
    /// What stands between the parts of a key that is made of several; / if not given.
    #[arg(long, value_name = "TEXT")]
    key_separator: Option<String>,
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
pub struct Record {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
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

/// A record that is none, where none was to be passed over.
pub struct Malformed {
    file: PathBuf,
    line: u64,
    what: String,
}

impl Malformed {
    /// The failure of a command; `so` says what became of the records before.
    pub fn failure(&self, so: &str) -> Failure {
        let Malformed { file, line, what } = self;
        let file = file.display();
        Failure::refused(format!("{file}, line {line}: {what}; {so} (--skip-bad passes over such lines)"))
    }
}

/// The records of one file after the other.
pub struct Input<'a> {
    args: &'a InputArgs,
    /// Those that are not open yet.
    files: VecDeque<PathBuf>,
    open: Option<(PathBuf, Box<dyn Parser>)>,
    read_bytes: Arc<AtomicU64>,
    total_bytes: Option<u64>,
    skipped: u64,
    interrupt: Interrupt,
}

impl<'a> Input<'a> {
    /// Opens the first file, and makes sure that the others are there.
    pub fn open(args: &'a InputArgs, files: &[PathBuf]) -> Outcome<Input<'a>> {
        args.check()?;
        check_files(files)?;
        let sizes = files.iter().map(|path| source::total_bytes(path)).collect::<Outcome<Vec<_>>>()?;
        let total_bytes = sizes.into_iter().sum();
        let (files, read_bytes) = (files.iter().cloned().collect(), Arc::default());
        let mut input =
            Input { args, files, open: None, read_bytes, total_bytes, skipped: 0, interrupt: Interrupt::default() };
        input.open_next()?;
        Ok(input)
    }

    /// From now on Ctrl-C is only noted, and ends the wait for more of a pipe.
    pub fn listen(&self) -> Outcome<Interrupt> {
        self.interrupt.listen()?;
        Ok(self.interrupt.clone())
    }

    /// False where there is no other file.
    fn open_next(&mut self) -> Outcome<bool> {
        let Some(path) = self.files.pop_front() else { return Ok(false) };
        let source = Source::open(&path, self.read_bytes.clone(), self.interrupt.clone())?;
        self.open = Some((path, self.args.parser(source)?));
        Ok(true)
    }

    /// Reads a record into `record`; false at the end of the last file. The inner error is one of the input's contents.
    pub fn next(&mut self, record: &mut Record) -> Outcome<Result<bool, Malformed>> {
        while let Some((path, parser)) = &mut self.open {
            match parser.next(record)? {
                Next::Record => return Ok(Ok(true)),
                Next::Malformed { .. } if self.args.skip_bad => self.skipped += 1,
                Next::Malformed { line, what } => return Ok(Err(Malformed { file: path.clone(), line, what })),
                Next::End => {
                    if !self.open_next()? {
                        self.open = None;
                    }
                }
            }
        }
        Ok(Ok(false))
    }

    /// Bytes of all files; `None` where one is a pipe.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Bytes read so far; goes on counting.
    pub fn counter(&self) -> Arc<AtomicU64> {
        self.read_bytes.clone()
    }

    /// Malformed records that were passed over.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl InputArgs {
    /// What of the arguments does not go together.
    fn check(&self) -> Outcome {
        let refused = |what: &str| {
            Err(Failure::refused(format!("{what} does not go with --format {:?}", self.format).to_lowercase()))
        };
        let by_columns = matches!(self.format, Format::Csv | Format::Tsv);
        let is_kv = self.format == Format::Kv;
        let given = [
            ("--value", !self.value.is_empty(), by_columns),
            ("--header", self.header, by_columns),
            ("--no-header", self.no_header, by_columns),
            ("--delimiter", self.delimiter.is_some(), self.format == Format::Csv),
            ("--hex", self.hex, is_kv),
            ("--key", !self.key.is_empty(), !is_kv),
            ("--key-separator", self.key_separator.is_some(), !is_kv),
        ];
        if let Some((name, ..)) = given.into_iter().find(|(_, is_given, is_known)| *is_given && !is_known) {
            return refused(name);
        }
        if self.format == Format::Ndjson && self.key.is_empty() {
            return Err(Failure::refused("--format ndjson needs --key with the names of the fields that make the key"));
        }
        Ok(())
    }

    fn key_separator(&self) -> &str {
        self.key_separator.as_deref().unwrap_or(KEY_SEPARATOR)
    }

    fn parser(&self, source: Source) -> Outcome<Box<dyn Parser>> {
        Ok(match self.format {
            Format::Csv | Format::Tsv => Box::new(rows::Rows::new(self, source)?),
            Format::Ndjson => Box::new(json::Objects::new(source, &self.key, self.key_separator())),
            Format::Kv => Box::new(lines::Pairs::new(source, self.hex)),
        })
    }
}

/// Standard input can be read once: a second time it would be at its end, and count as a file without records.
fn check_files(files: &[PathBuf]) -> Outcome {
    if files.iter().filter(|path| source::is_standard_input(path)).count() > 1 {
        return Err(Failure::refused("- is named twice, and standard input can be read only once; name it once"));
    }
    Ok(())
}
