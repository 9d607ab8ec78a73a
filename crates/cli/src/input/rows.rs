//! Rows of fields: csv and tsv.

use std::io::Read;
use std::path::Path;

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use spillway::Error;

use super::source::Source;
use super::{Format, InputArgs, Next, Parser, Record};
use crate::failure::{Failure, Outcome};

pub struct Rows {
    reader: csv::Reader<Box<dyn Read>>,
    name: String,
    row: ByteRecord,
    /// Places of the columns that make the key; never empty.
    key: Vec<usize>,
    separator: String,
    /// Places of the columns that make the value; empty for the whole row.
    value: Vec<usize>,
    layout: Layout,
}

/// How a row is written as a value.
#[derive(Clone, Copy)]
struct Layout {
    delimiter: u8,
    quotes: bool,
}

impl Rows {
    pub fn new(args: &InputArgs, source: Source) -> Outcome<Rows> {
        let layout = layout(args)?;
        let name = source.name().to_owned();
        let mut reader = ReaderBuilder::new()
            .delimiter(layout.delimiter)
            .quoting(layout.quotes)
            .has_headers(!args.no_header)
            .from_reader(Box::new(source.into_reader()) as Box<dyn Read>);
        let header = match args.no_header {
            true => None,
            false => Some(reader.byte_headers().map_err(|e| unreadable(&name, e))?.clone()),
        };
        let places =
            |columns: &[String]| columns.iter().map(|c| place(c, header.as_ref())).collect::<Outcome<Vec<_>>>();
        let mut key = places(&args.key)?;
        if key.is_empty() {
            key.push(0);
        }
        let (value, separator) = (places(&args.value)?, args.key_separator.clone());
        Ok(Rows { reader, name, row: ByteRecord::new(), key, separator, value, layout })
    }

    fn fill(&self, record: &mut Record) -> Result<(), String> {
        let field = |place: usize| {
            self.row.get(place).ok_or_else(|| format!("no column {}; the row has {}", place + 1, self.row.len()))
        };
        record.key.clear();
        for (i, &place) in self.key.iter().enumerate() {
            if i > 0 {
                record.key.extend_from_slice(self.separator.as_bytes());
            }
            record.key.extend_from_slice(field(place)?);
        }
        if record.key.is_empty() {
            return Err("the key is empty".to_owned());
        }
        record.value.clear();
        match self.value.as_slice() {
            [] => self.layout.append(&mut record.value, self.row.iter()),
            [only] => record.value.extend_from_slice(field(*only)?),
            several => {
                let fields = several.iter().map(|&place| field(place)).collect::<Result<Vec<_>, _>>()?;
                self.layout.append(&mut record.value, fields.into_iter());
            }
        }
        Ok(())
    }
}

impl Parser for Rows {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        match self.reader.read_byte_record(&mut self.row) {
            Ok(false) => return Ok(Next::End),
            Ok(true) => {}
            Err(error) => match error.kind() {
                ErrorKind::UnequalLengths { pos, expected_len, len } => {
                    let line = pos.as_ref().map_or(0, |pos| pos.line());
                    let what = format!("the row has {len} fields, the first one has {expected_len}");
                    return Ok(Next::Malformed { line, what });
                }
                _ => return Err(unreadable(&self.name, error)),
            },
        }
        let line = self.row.position().map_or(0, |position| position.line());
        Ok(match self.fill(record) {
            Ok(()) => Next::Record,
            Err(what) => Next::Malformed { line, what },
        })
    }
}

impl Layout {
    fn append<'a>(self, out: &mut Vec<u8>, fields: impl Iterator<Item = &'a [u8]>) {
        for (i, field) in fields.enumerate() {
            if i > 0 {
                out.push(self.delimiter);
            }
            let special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
            if !self.quotes || !field.iter().any(special) {
                out.extend_from_slice(field);
                continue;
            }
            out.push(b'"');
            for &byte in field {
                if byte == b'"' {
                    out.push(byte);
                }
                out.push(byte);
            }
            out.push(b'"');
        }
    }
}

fn layout(args: &InputArgs) -> Outcome<Layout> {
    if args.format == Format::Tsv {
        return Ok(Layout { delimiter: b'\t', quotes: false });
    }
    match args.delimiter.unwrap_or(',') {
        c if c.is_ascii() && !matches!(c, '"' | '\n' | '\r') => Ok(Layout { delimiter: c as u8, quotes: true }),
        c => Err(Failure::refused(format!("--delimiter {c:?} cannot stand between fields; it is one ASCII character"))),
    }
}

/// The place of a column given by its name, or by its number from 1.
fn place(column: &str, header: Option<&ByteRecord>) -> Outcome<usize> {
    if let Some(place) = header.and_then(|names| names.iter().position(|name| name == column.as_bytes())) {
        return Ok(place);
    }
    if let Some(place) = column.parse::<usize>().ok().and_then(|number| number.checked_sub(1)) {
        return Ok(place);
    }
    Err(Failure::refused(match header {
        Some(names) => {
            let names: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
            format!("there is no column \"{column}\"; the first row names: {}", names.join(", "))
        }
        None => format!("\"{column}\" is no number of a column; without a header they are 1, 2, ..."),
    }))
}

fn unreadable(name: &str, error: csv::Error) -> Failure {
    match error.into_kind() {
        ErrorKind::Io(error) => Error::io("read", Path::new(name), error).into(),
        other => Error::invalid_argument(format!("{other:?}")).at_path(name).into(),
    }
}
