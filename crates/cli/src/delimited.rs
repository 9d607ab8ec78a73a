//! Rows of fields with a delimiter between: csv by RFC 4180, and tsv, which has no quotes. Bytes, not text: a field can hold
//! any byte, csv's within quotes.
//!
//! The scanner is here, and not a crate's, because its caller is told where a quote was opened, and whether it was closed
//! as a writer of csv closes one: that is how an unclosed quote is found, and rows are read again behind it.

use memchr::{memchr, memchr2, memchr3};

/// How fields are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub delimiter: u8,
    pub quotes: bool,
}

impl Layout {
    pub const CSV: Layout = Layout { delimiter: b',', quotes: true };

    /// Appends fields as a row, without its end; quoted where they need it.
    pub fn append<'a>(self, out: &mut Vec<u8>, fields: impl Iterator<Item = &'a [u8]>) {
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

/// The fields of a row, without quotes.
#[derive(Clone, Debug, Default)]
pub struct Row {
    bytes: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
}

impl Row {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let from = match place.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(from..*self.ends.get(place)?)
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    fn end_field(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the beginning of a field.
    Field,
    /// Behind it, outside of quotes: a quote is a character here.
    Plain,
    Quoted,
    /// Behind a quote within quotes: the end, or half of a quote in the field.
    Quote,
}

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// A row of so many bytes, its end included.
    Row(usize),
    /// More of the text is needed.
    Part,
    /// The text ends within quotes.
    Unclosed,
}

/// Finds the end of a row and its fields. It goes on where it was when more of the text is there.
#[derive(Debug)]
pub struct Scanner {
    layout: Layout,
    state: State,
    /// How far the row is read.
    at: usize,
    /// Where the last quoted field began.
    quote_at: usize,
    /// The last quoted field has an end of a line in it.
    spans_lines: bool,
    /// Of the row: a field has.
    has_lines: bool,
    /// Where the first quoted field over several lines began, behind whose quotes neither delimiter nor end stands.
    stray_at: Option<usize>,
}

impl Scanner {
    pub fn new(layout: Layout) -> Scanner {
        Scanner {
            layout,
            state: State::Field,
            at: 0,
            quote_at: 0,
            spans_lines: false,
            has_lines: false,
            stray_at: None,
        }
    }

    /// Reads on in `text`, which begins where the row does and is never empty. `is_whole`: nothing follows it. The row is complete with
    /// [`Scanned::Row`], and the scanner ready for the next one then.
    pub fn scan(&mut self, text: &[u8], is_whole: bool, row: &mut Row) -> Scanned {
        if self.at == 0 {
            row.clear();
            (self.has_lines, self.stray_at) = (false, None);
        }
        while let Some(rest) = text.get(self.at..).filter(|rest| !rest.is_empty()) {
            if self.step(rest, row) {
                return self.end(self.at);
            }
        }
        match self.state {
            _ if !is_whole => Scanned::Part,
            State::Quoted => Scanned::Unclosed,
            _ => {
                row.end_field();
                self.end(text.len())
            }
        }
    }

    fn end(&mut self, len: usize) -> Scanned {
        (self.state, self.at) = (State::Field, 0);
        Scanned::Row(len)
    }

    /// Gives the row up: the next scan begins another one.
    pub fn reset(&mut self) {
        (self.state, self.at) = (State::Field, 0);
    }

    /// Whether the row, as far as it is read, ends within quotes.
    pub fn is_in_quotes(&self) -> bool {
        self.state == State::Quoted
    }

    /// Where in the row the last quoted field began.
    pub fn quote_at(&self) -> usize {
        self.quote_at
    }

    /// Of the last row: whether it has ends of lines within quotes.
    pub fn has_lines(&self) -> bool {
        self.has_lines
    }

    /// Of the last row: where a field over several lines began that cannot be meant. Behind its quotes neither a delimiter
    /// nor the end of the row stands: its first quote is one without an end, and the last one another field's first.
    pub fn stray_at(&self) -> Option<usize> {
        self.stray_at
    }

    /// Goes over a part of `rest`, which is not empty; true at the end of the row.
    #[inline]
    fn step(&mut self, rest: &[u8], row: &mut Row) -> bool {
        let delimiter = self.layout.delimiter;
        let first = rest.first().copied().unwrap_or_default();
        match self.state {
            State::Field if self.layout.quotes && first == b'"' => {
                (self.state, self.quote_at, self.spans_lines) = (State::Quoted, self.at, false);
                self.at += 1;
            }
            State::Field | State::Plain => {
                let end = memchr3(delimiter, b'\n', b'\r', rest);
                let (field, after) = rest.split_at(end.unwrap_or(rest.len()));
                row.bytes.extend_from_slice(field);
                self.at += field.len();
                let Some(&end) = after.first() else {
                    self.state = State::Plain;
                    return false;
                };
                row.end_field();
                self.state = State::Field;
                self.at += 1;
                return end != delimiter;
            }
            State::Quoted => {
                let end = memchr(b'"', rest);
                let field = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                row.bytes.extend_from_slice(field);
                self.spans_lines |= memchr2(b'\n', b'\r', field).is_some();
                self.has_lines |= self.spans_lines;
                self.at += field.len();
                if end.is_some() {
                    (self.state, self.at) = (State::Quote, self.at + 1);
                }
            }
            State::Quote if first == b'"' => {
                row.bytes.push(b'"');
                (self.state, self.at) = (State::Quoted, self.at + 1);
            }
            State::Quote => {
                if self.spans_lines && first != delimiter && !matches!(first, b'\n' | b'\r') {
                    self.stray_at.get_or_insert(self.quote_at);
                }
                self.state = State::Plain;
            }
        }
        false
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(row: &Row) -> Vec<Vec<u8>> {
        row.iter().map(<[u8]>::to_vec).collect()
    }

    /// The rows of a text that comes in pieces, but for empty ones; and whether it ends within quotes.
    fn rows(text: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, bool) {
        let (mut scanner, mut row, mut rows) = (Scanner::new(Layout::CSV), Row::default(), Vec::new());
        let (mut from, mut seen) = (0, 0);
        loop {
            if seen > from && matches!(text[from], b'\n' | b'\r') {
                from += 1;
                continue;
            }
            if seen == from && seen == text.len() {
                return (rows, false);
            }
            if seen > from {
                match scanner.scan(&text[from..seen], seen == text.len(), &mut row) {
                    Scanned::Row(len) => {
                        rows.push(fields(&row));
                        from += len;
                        continue;
                    }
                    Scanned::Unclosed => return (rows, true),
                    Scanned::Part => {}
                }
            }
            seen = (seen + piece).min(text.len());
        }
    }

    proptest! {
        /// What is no row for us is none for the crate `csv` either: it reads on to the end.
        #[test]
        fn rows_are_those_of_the_csv_crate(text in "[ab,\"\r\n]{0,30}", piece in 1usize..8) {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let theirs: Vec<Vec<Vec<u8>>> =
                reader.byte_records().map(|row| row.unwrap().iter().map(<[u8]>::to_vec).collect()).collect();
            let (ours, is_open) = rows(text.as_bytes(), piece);
            prop_assert_eq!(&ours[..], &theirs[..ours.len()]);
            prop_assert!(is_open || ours.len() == theirs.len());
        }

        #[test]
        fn rows_that_are_written_are_read(row in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 1..4)) {
            let mut text = Vec::new();
            Layout::CSV.append(&mut text, row.iter().map(Vec::as_slice));
            prop_assume!(!text.is_empty());
            text.push(b'\n');
            prop_assert_eq!(rows(&text, 3), (vec![row], false));
        }
    }

    #[test]
    fn a_quote_closed_by_the_next_fields_is_told() {
        let mut row = Row::default();
        let stray = |text: &str, row: &mut Row| {
            let mut scanner = Scanner::new(Layout::CSV);
            assert!(matches!(scanner.scan(text.as_bytes(), true, row), Scanned::Row(_)), "{text}");
            scanner.stray_at()
        };
        assert_eq!(stray("1,\"b\n2,\"c\"\n", &mut row), Some(2));
        assert_eq!(stray("1,\"b\n\",\"c\"x\n", &mut row), None, "on one line it is a matter of taste");
        assert_eq!(stray("1,\"b\n2,\"\"c\"\n", &mut row), None);
    }
}
