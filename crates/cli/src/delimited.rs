//! Rows of delimited fields: CSV by RFC 4180, and TSV, which has no quotes. Bytes, not text: quoted CSV fields hold any
//! byte.
//!
//! The scanner is not a crate's because it reports where a quote was opened, and whether it was closed as a CSV writer
//! closes one. The caller uses both to find an unclosed quote and to read rows again behind it.

use memchr::{memchr, memchr2, memchr3};

/// Delimiter and quoting of a format.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub delimiter: u8,
    pub quotes: bool,
}

impl Layout {
    pub const CSV: Layout = Layout { delimiter: b',', quotes: true };

    /// Appends fields as a row without its line end. Fields are quoted if necessary.
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
    /// End of each field.
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
    /// At the start of a field.
    Field,
    /// Inside a field, outside quotes: a quote is a character here.
    Plain,
    Quoted,
    /// After a quote within quotes: the end of the quotes, or the first half of an escaped quote.
    Quote,
}

/// Result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// Bytes of a complete row, its end included.
    Row(usize),
    /// More text is needed.
    Part,
    /// The text ends within quotes.
    Unclosed,
}

/// Finds the end of a row and its fields. Resumes when more text is there.
#[derive(Debug)]
pub struct Scanner {
    layout: Layout,
    state: State,
    /// Bytes of the row scanned so far.
    at: usize,
    /// Start of the last quoted field.
    quote_at: usize,
    /// The last quoted field contains a line end.
    spans_lines: bool,
    /// A quoted field of the row contains a line end.
    has_lines: bool,
    /// Start of the first quoted multi-line field without a delimiter or row end right after its quotes.
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

    /// Continues in `text`, which begins at the row's start and is never empty. `is_whole`: no text follows. The row is
    /// complete with [`Scanned::Row`], and the scanner is then ready for the next one.
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

    /// Drops the row; the next scan begins a new one.
    pub fn reset(&mut self) {
        (self.state, self.at) = (State::Field, 0);
    }

    /// Whether the scanned part of the row ends within quotes.
    pub fn is_in_quotes(&self) -> bool {
        self.state == State::Quoted
    }

    /// Start of the last quoted field, from the row's start.
    pub fn quote_at(&self) -> usize {
        self.quote_at
    }

    /// Whether the last row has line ends within quotes.
    pub fn has_lines(&self) -> bool {
        self.has_lines
    }

    /// Start of a multi-line field of the last row whose first quote is unclosed: neither a delimiter nor the row end
    /// follows
    /// its quotes. Its last quote opens a later field.
    pub fn stray_at(&self) -> Option<usize> {
        self.stray_at
    }

    /// Scans a part of `rest`, which is not empty; true at the end of the row.
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
        /// Rows equal those of the `csv` crate. At an unclosed quote the crate reads on to the end.
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
