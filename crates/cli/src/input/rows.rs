//! Rows of fields: csv and tsv.

use std::io::{self, Read};
use std::path::Path;

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use spillway::Error;

use super::source::{LINE_BYTES_MAX, Source};
use super::{Format, InputArgs, Next, Parser, Record};
use crate::failure::{Failure, Outcome};

pub struct Rows {
    reader: csv::Reader<RowBytes<Box<dyn Read>>>,
    name: String,
    row: ByteRecord,
    /// Places of the columns that make the key; never empty.
    key: Vec<usize>,
    separator: String,
    /// Places of the columns that make the value; empty for the whole row.
    value: Vec<usize>,
    layout: Layout,
}

/// Lets through what there is to read, no more than so much of a row, and one end of a line more than there is. What is
/// read beyond that is within quotes: any other row has ended there.
struct RowBytes<R> {
    inner: R,
    /// Since the row began; up to a buffer of the reader above too little.
    row_bytes: u64,
    row_bytes_max: u64,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    /// The end of a line was handed out.
    Reached,
    Passed,
}

impl<R> RowBytes<R> {
    fn new(inner: R, row_bytes_max: u64) -> RowBytes<R> {
        RowBytes { inner, row_bytes: 0, row_bytes_max, end: End::Ahead }
    }

    fn is_too_much(&self) -> bool {
        self.row_bytes > self.row_bytes_max
    }
}

impl<R: Read> Read for RowBytes<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.end == End::Ahead {
            let read = self.inner.read(buf)?;
            self.row_bytes += read as u64;
            if self.is_too_much() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if read > 0 {
                return Ok(read);
            }
        }
        match buf.first_mut() {
            Some(byte) if self.end == End::Ahead => {
                *byte = b'\n';
                self.end = End::Reached;
                Ok(1)
            }
            _ => {
                self.end = End::Passed;
                Ok(0)
            }
        }
    }
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
            .from_reader(RowBytes::new(Box::new(source.into_reader()) as Box<dyn Read>, LINE_BYTES_MAX));
        let header = match args.no_header {
            true => None,
            false => {
                let header = reader.byte_headers().cloned();
                if !matches!(&header, Ok(header) if header.is_empty()) {
                    check_row(reader.get_ref(), &name, 1)?;
                }
                Some(header.map_err(|e| unreadable(&name, e))?)
            }
        };
        let places =
            |columns: &[String]| columns.iter().map(|c| place(c, header.as_ref())).collect::<Outcome<Vec<_>>>();
        let mut key = places(&args.key)?;
        if key.is_empty() {
            key.push(0);
        }
        let (value, separator) = (places(&args.value)?, args.key_separator().to_owned());
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
        self.reader.get_mut().row_bytes = 0;
        let line = self.reader.position().line();
        let read = self.reader.read_byte_record(&mut self.row);
        if !matches!(read, Ok(false)) {
            check_row(self.reader.get_ref(), &self.name, line)?;
        }
        match read {
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

/// Refuses the file whose row, begun at that line, is cut off: by the bound of its bytes, or by the end within quotes.
/// Where it goes on as rows again is not known.
fn check_row<R>(read: &RowBytes<R>, name: &str, line: u64) -> Outcome {
    let what = if read.is_too_much() {
        format!("is longer than {} bytes; is a quote missing?", read.row_bytes_max)
    } else if read.end == End::Passed {
        "has a quote without an end".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid_argument(format!("the row at line {line} {what}")).at_path(name).into())
}

fn unreadable(name: &str, error: csv::Error) -> Failure {
    match error.into_kind() {
        ErrorKind::Io(error) => Error::io("read", Path::new(name), error).into(),
        other => Error::invalid_argument(format!("{other:?}")).at_path(name).into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The rows that are read, and whether the last one was cut off.
    fn read(text: &[u8], row_bytes_max: u64) -> (usize, bool) {
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).from_reader(RowBytes::new(text, row_bytes_max));
        let mut row = ByteRecord::new();
        for rows in 0.. {
            reader.get_mut().row_bytes = 0;
            let read = reader.read_byte_record(&mut row);
            match read {
                Ok(false) => return (rows, false),
                _ if check_row(reader.get_ref(), "in", 1).is_err() => return (rows, true),
                read => assert!(read.unwrap()),
            }
        }
        unreachable!("a text has an end")
    }

    #[test]
    fn only_an_open_quote_is_cut_off_whatever_the_lengths() {
        for fields in [1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 200] {
            for bytes in [1, 2, 5, 31, 32, 63, 64, 127, 128, 513, 8191, 8192] {
                let row = vec!["x".repeat(bytes); fields].join(",");
                for end in ["", "\n", "\r\n", "\r", "\n\n"] {
                    assert_eq!(
                        read(format!("{row}{end}").as_bytes(), u64::MAX),
                        (1, false),
                        "{fields} {bytes} {end:?}"
                    );
                    let quoted = format!("a\n{row},\"q\n\"{end}");
                    assert_eq!(read(quoted.as_bytes(), u64::MAX), (2, false), "{fields} {bytes} {end:?}");
                    let open = format!("a\n{row},\"q{end}");
                    assert_eq!(read(open.as_bytes(), u64::MAX), (1, true), "{fields} {bytes} {end:?}");
                }
            }
        }
        assert_eq!(read(b"", u64::MAX), (0, false));
    }

    #[test]
    fn a_row_is_bounded_and_a_file_is_not() {
        let rows = "0123456789\n".repeat(20_000);
        assert_eq!(read(rows.as_bytes(), 64 << 10), (20_000, false));
        let open = format!("a\n\"{rows}\"\n");
        assert_eq!(read(open.as_bytes(), 64 << 10), (1, true));
    }
}
