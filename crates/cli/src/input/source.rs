//! Decompressed text of an input, read as far as a parser needs it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memchr;
use spillway::internal::Error;

use super::content::{self, Refusal};
use super::file::Counted;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::interrupt::Interrupt;

/// Initial buffer size in bytes. The buffer grows for longer records.
const BUFFER_BYTES: usize = 256 << 10;

/// Least room in the buffer worth a read, in bytes.
const ROOM_BYTES_MIN: usize = 64 << 10;

pub struct Source {
    bytes: Box<dyn Read>,
    compression: Option<&'static str>,
    name: String,
    interrupt: Interrupt,
    buffer: Vec<u8>,
    /// Unconsumed text in the buffer.
    start: usize,
    end: usize,
    is_whole: bool,
    /// First line of the unconsumed text, from 1.
    line: u64,
    record_bytes_max: usize,
}

/// Result of reading a line.
pub enum Line {
    /// Without its line end.
    Whole,
    /// Longer than a record may be; skipped.
    TooLong,
    /// The text is at its end.
    End,
}

impl Source {
    /// Opens a file, or standard input for `-`. Bytes read are added to `read_bytes`. Reading fails after an interrupt.
    pub fn open(
        path: &Path,
        read_bytes: Arc<AtomicU64>,
        interrupt: Interrupt,
        record_bytes_max: usize,
    ) -> Outcome<Source> {
        let file = Counted::open(path, read_bytes, interrupt.clone())?;
        let name = path.display().to_string();
        let mut source = Source {
            bytes: Box::new(std::io::empty()),
            compression: None,
            name,
            interrupt,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            is_whole: false,
            line: 1,
            record_bytes_max,
        };
        match content::open(&source.name, file) {
            Ok(content) => (source.bytes, source.compression) = (content.bytes, content.compression),
            Err(Refusal::Other(failure)) => return Err(failure),
            Err(Refusal::Io(error, compression)) => {
                source.compression = compression;
                return Err(source.unreadable(error));
            }
        }
        Ok(source)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// First line of the unconsumed text, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Record limit: bytes as they stand in the input.
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// Unconsumed text. Empty before the first read.
    pub fn text(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Size of the buffer.
    #[cfg(test)]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether no text follows.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The first line of the text that is not empty, as far as a record may go. Consumes nothing.
    pub fn peek_line(&mut self) -> Outcome<&[u8]> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let (from, to) = loop {
            let text = self.text();
            let from = text.iter().position(|byte| !is_end(byte)).unwrap_or(text.len());
            let end = text.get(from..).and_then(|rest| rest.iter().position(is_end));
            if end.is_some() || self.is_whole || text.len() - from > self.record_bytes_max {
                break (from, end.map_or(text.len(), |end| from + end));
            }
            self.read()?;
        };
        Ok(self.text().get(from..to).unwrap_or_default())
    }

    /// Reads more text, or finds the end.
    pub fn read(&mut self) -> Outcome {
        self.interrupt.check()?;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < ROOM_BYTES_MIN {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.bytes.read(room) {
            Ok(0) => self.is_whole = true,
            Ok(read) => self.end += read,
            Err(error) => return Err(self.unreadable(error)),
        }
        Ok(())
    }

    /// Consumes `bytes` of the text, in which `lines` lines end.
    pub fn consume(&mut self, bytes: usize, lines: u64) {
        self.start += bytes;
        self.line += lines;
    }

    /// Reads a line into `line`, without its end, and consumes it.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Outcome<Line> {
        line.clear();
        let mut seen = 0;
        let end = loop {
            match memchr(b'\n', self.text().get(seen..).unwrap_or_default()) {
                Some(at) => break seen + at,
                None if self.is_whole && self.text().is_empty() => return Ok(Line::End),
                None if self.is_whole => break self.text().len(),
                None => seen = self.text().len(),
            }
            if seen > self.record_bytes_max {
                self.skip_line()?;
                return Ok(Line::TooLong);
            }
            self.read()?;
        };
        let whole = self.text().get(..end).unwrap_or_default();
        if whole.len() > self.record_bytes_max {
            self.skip_line()?;
            return Ok(Line::TooLong);
        }
        let has_end = end < self.text().len();
        line.extend_from_slice(whole.strip_suffix(b"\r").filter(|_| has_end).unwrap_or(whole));
        self.consume(end + usize::from(has_end), 1);
        Ok(Line::Whole)
    }

    /// Consumes the rest of a line of any length.
    pub fn skip_line(&mut self) -> Outcome {
        loop {
            let text = self.text();
            match memchr(b'\n', text) {
                Some(end) => {
                    self.consume(end + 1, 1);
                    return Ok(());
                }
                None => self.consume(text.len(), 0),
            }
            if self.is_whole {
                self.line += 1;
                return Ok(());
            }
            self.read()?;
        }
    }

    /// Error message for a record beyond the limit.
    pub fn too_long(&self, what: &str) -> String {
        let most = human::bytes(self.record_bytes_max as u64);
        format!("the {what} is longer than {most} (--max-record BYTES allows longer ones)")
    }

    /// Separates damaged compressed data from I/O errors of the file.
    fn unreadable(&self, error: std::io::Error) -> Failure {
        if let Err(interrupted) = self.interrupt.check() {
            return interrupted.into();
        }
        let Source { name, line, .. } = self;
        let (Some(compression), None) = (self.compression, error.raw_os_error()) else {
            return Error::io("read", Path::new(name), error).into();
        };
        let what = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "ends too early: the file is cut off".to_owned(),
            _ => format!("is damaged, here or before: {error}"),
        };
        Failure::refused(format!("{name}, line {line}: the {compression} data {what}; get the file again"))
    }
}
