//! Rows of fields: csv and tsv.

use memchr::{memchr2, memchr2_iter};

use super::source::Source;
use super::{Form, Format, InputArgs, Next, Parser, Record, separate};
use crate::bytes::{append_hex, text};
use crate::delimited::{Layout, Row, Scanned, Scanner};
use crate::failure::{Failure, Outcome};
use crate::human;

pub struct Rows {
    text: RowText,
    row: Row,
    columns: Columns,
    /// Fields of every row, as in the first one.
    fields: Option<usize>,
    layout: Layout,
    header: Option<Row>,
}

/// Columns of a record.
struct Columns {
    /// Places of the key's columns; never empty.
    key: Vec<usize>,
    separator: String,
    /// Places of the value's columns; empty for the whole row.
    value: Vec<usize>,
    hex: bool,
}

impl Rows {
    pub fn new(args: &InputArgs, form: Form, source: Source) -> Outcome<Rows> {
        let layout = layout(form)?;
        let mut text = RowText { source, scanner: Scanner::new(layout), ended_with_cr: false };
        let mut row = Row::default();
        let header = match form.no_header {
            true => None,
            false => Some(text.header(&mut row)?),
        };
        let name = text.source.name();
        let places = |columns: &[String]| {
            columns.iter().map(|column| place(name, column, header.as_ref())).collect::<Outcome<Vec<_>>>()
        };
        let mut key = places(&args.key)?;
        if key.is_empty() {
            key.push(0);
        }
        let (value, separator) = (places(&args.value)?, args.key_separator().to_owned());
        let columns = Columns { key, separator, value, hex: args.hex };
        Ok(Rows { text, row, columns, fields: header.as_ref().map(Row::len), layout, header })
    }
}

impl Parser for Rows {
    fn next(&mut self, record: &mut Record) -> Outcome<Next> {
        let (line, last_line) = match self.text.read(&mut self.row)? {
            Read::Row { line, last_line } => (line, last_line),
            Read::End => return Ok(Next::End),
            Read::Malformed { line, what } => return Ok(Next::Malformed { line, what }),
        };
        let (has, expected) = (self.row.len(), *self.fields.get_or_insert(self.row.len()));
        if has != expected {
            let to = if last_line > line { format!(", down to line {last_line},") } else { String::new() };
            let fields = human::counted(has as u64, "field", "fields");
            return Ok(Next::Malformed {
                line,
                what: format!("the row{to} has {fields}, the first one has {expected}"),
            });
        }
        let filled = self.columns.fill(&self.row, self.layout, record);
        Ok(Next::of(filled, line, record))
    }

    fn header(&self) -> Option<&Row> {
        self.header.as_ref()
    }
}

impl Columns {
    fn fill(&self, row: &Row, layout: Layout, record: &mut Record) -> Result<(), String> {
        let field = |place: usize| row.get(place).ok_or_else(|| no_column(place, row));
        record.key.clear();
        let mut from = 0;
        for (i, &place) in self.key.iter().enumerate() {
            if i > 0 {
                separate(&mut record.key, from, &self.separator)?;
                from = record.key.len();
            }
            record.key.extend_from_slice(field(place)?);
        }
        if record.key.is_empty() {
            return Err("the key is empty (--format kv takes empty keys)".to_owned());
        }
        record.value.clear();
        match self.value.as_slice() {
            [] => layout.append(&mut record.value, row.iter()),
            [only] => record.value.extend_from_slice(field(*only)?),
            several => {
                let fields = several.iter().map(|&place| field(place)).collect::<Result<Vec<_>, _>>()?;
                layout.append(&mut record.value, fields.into_iter());
            }
        }
        if self.hex {
            for bytes in [&mut record.key, &mut record.value] {
                let digits = std::mem::take(bytes);
                append_hex(&digits, bytes)?;
            }
        }
        Ok(())
    }
}

#[cold]
fn no_column(place: usize, row: &Row) -> String {
    format!("there is no column {}; the row has {}", place + 1, row.len())
}

/// Reader of rows.
struct RowText {
    source: Source,
    scanner: Scanner,
    /// The last row ended with a carriage return; a line feed right after it belongs to the same line end.
    ended_with_cr: bool,
}

/// Result of reading a row.
enum Read {
    /// First and last line of the row.
    Row {
        line: u64,
        last_line: u64,
    },
    End,
    Malformed {
        line: u64,
        what: String,
    },
}

impl RowText {
    /// Reads the header row.
    fn header(&mut self, row: &mut Row) -> Outcome<Row> {
        let read = self.read(row)?;
        let name = self.source.name();
        match read {
            Read::Row { .. } => Ok(row.clone()),
            Read::End => Err(Failure::refused(format!(
                "{name} is empty: there is no row that names the columns (--no-header takes files without one)"
            ))),
            Read::Malformed { line, what } => Err(Failure::refused(format!("{name}, line {line}: {what}"))),
        }
    }

    /// Reads a row and skips empty lines. A malformed row is consumed; a row with an unclosed quote ends with the line
    /// of that quote.
    fn read(&mut self, row: &mut Row) -> Outcome<Read> {
        if !self.begin()? {
            return Ok(Read::End);
        }
        let (line, bytes_max) = (self.source.line(), self.source.record_bytes_max());
        loop {
            let (text, is_whole) = (self.source.text(), self.source.is_whole());
            match self.scanner.scan(text, is_whole, row) {
                Scanned::Row(bytes) if bytes <= bytes_max => {
                    if let Some(quote_at) = self.scanner.stray_at() {
                        return self.unclosed(quote_at, "but by a quote within another field");
                    }
                    let lines = if self.scanner.has_lines() { self.lines(bytes) } else { 1 };
                    self.consume(bytes, lines);
                    return Ok(Read::Row { line, last_line: line + lines - 1 });
                }
                Scanned::Unclosed => return self.unclosed(self.scanner.quote_at(), "before the end of the file"),
                Scanned::Part if text.len() > bytes_max && self.scanner.is_in_quotes() => {
                    let within = format!("within {} (--max-record BYTES)", human::bytes(bytes_max as u64));
                    return self.unclosed(self.scanner.quote_at(), &within);
                }
                Scanned::Part if text.len() <= bytes_max => self.source.read()?,
                Scanned::Part | Scanned::Row(_) => {
                    self.scanner.reset();
                    self.skip_line(text.len().min(bytes_max))?;
                    return Ok(Read::Malformed { line, what: self.source.too_long("row") });
                }
            }
        }
    }

    /// Skips empty lines; false at the end of the text.
    fn begin(&mut self) -> Outcome<bool> {
        loop {
            match self.source.text().first() {
                Some(b'\n') if self.ended_with_cr => self.consume(1, 0),
                Some(b'\n' | b'\r') => self.consume(1, 1),
                Some(_) => return Ok(true),
                None if self.source.is_whole() => return Ok(false),
                None => self.source.read()?,
            }
        }
    }

    /// Consumes everything up to the end of the line with the unclosed quote.
    fn unclosed(&mut self, quote_at: usize, so: &str) -> Outcome<Read> {
        self.scanner.reset();
        let line = self.source.line() + self.lines(quote_at);
        let text = self.source.text();
        let behind = text.get(quote_at..).unwrap_or_default();
        match memchr2(b'\n', b'\r', behind).map(|end| quote_at + end + 1) {
            Some(end) => self.consume(end, self.lines(end)),
            None => self.skip_line(text.len())?,
        }
        Ok(Read::Malformed { line, what: format!("the quote that is opened here is not closed {so}") })
    }

    /// Consumes `bytes` of the text, and the rest of the line they end in.
    fn skip_line(&mut self, bytes: usize) -> Outcome {
        self.consume(bytes, self.lines(bytes));
        self.ended_with_cr = false;
        self.source.skip_line()
    }

    fn consume(&mut self, bytes: usize, lines: u64) {
        let last = self.source.text().get(..bytes).and_then(<[u8]>::last);
        self.ended_with_cr = last == Some(&b'\r');
        self.source.consume(bytes, lines);
    }

    /// Line ends in the first `bytes` of the text.
    fn lines(&self, bytes: usize) -> u64 {
        let text = self.source.text();
        let is_end = |at: &usize| !(text.get(*at) == Some(&b'\n') && *at > 0 && text.get(*at - 1) == Some(&b'\r'));
        memchr2_iter(b'\n', b'\r', text.get(..bytes).unwrap_or(text)).filter(is_end).count() as u64
    }
}

fn layout(form: Form) -> Outcome<Layout> {
    if form.format == Format::Tsv {
        return Ok(Layout { delimiter: b'\t', quotes: false });
    }
    match form.delimiter {
        c if c.is_ascii() && !matches!(c, '"' | '\n' | '\r') => Ok(Layout { delimiter: c as u8, quotes: true }),
        c => Err(Failure::refused(format!("--delimiter {c:?} cannot stand between fields; it is one ASCII character"))),
    }
}

/// Place of a column, given by its name, or by its number from 1.
fn place(file: &str, column: &str, header: Option<&Row>) -> Outcome<usize> {
    let is_it = |at: &usize| header.is_some_and(|names| names.get(*at) == Some(column.as_bytes()));
    let named: Vec<usize> = (0..header.map_or(0, Row::len)).filter(is_it).collect();
    match named.as_slice() {
        [only] => return Ok(*only),
        [first, second, ..] => {
            let (first, second) = (first + 1, second + 1);
            return Err(Failure::refused(format!(
                "{file}: the columns {first} and {second} are both named \"{column}\"; say which one by its number"
            )));
        }
        [] => {}
    }
    match (column.parse::<usize>().ok().and_then(|number| number.checked_sub(1)), header) {
        (Some(place), Some(names)) if place < names.len() => Ok(place),
        (Some(place), None) => Ok(place),
        (_, Some(names)) => {
            let names: Vec<_> = names.iter().map(text).collect();
            let names = names.join(", ");
            Err(Failure::refused(format!("{file}: there is no column \"{column}\"; the first row names: {names}")))
        }
        (None, None) => {
            let what = format!("\"{column}\" is no number of a column; without a header they are 1, 2, ...");
            Err(Failure::refused(what))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spillway::internal::vfs::{IfExists, IoClass, RealVfs};

    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn a_quote_without_an_end_takes_no_more_memory_than_a_record_may() {
        const RECORD_BYTES_MAX: usize = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        let text = format!("1,\"a\n{}", "2,b\n".repeat(3 << 20));
        RealVfs::new().create(&path, IfExists::Fail).unwrap().append(text.as_bytes(), IoClass::Other).unwrap();
        let source = Source::open(&path, Arc::default(), Interrupt::default(), RECORD_BYTES_MAX).ok().unwrap();
        let mut text = RowText { source, scanner: Scanner::new(Layout::CSV), ended_with_cr: false };
        let mut row = Row::default();
        assert!(matches!(text.read(&mut row).ok().unwrap(), Read::Malformed { line: 1, .. }));
        assert!(text.source.buffer_bytes() <= 4 * RECORD_BYTES_MAX, "{}", text.source.buffer_bytes());
        for line in 2..1000 {
            assert!(matches!(text.read(&mut row).ok().unwrap(), Read::Row { line: found, .. } if found == line));
        }
    }
}
