//! The text of an input, decompressed, of which a reader sees as much as it needs.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use memchr::memchr;
use spillway::Error;

use super::content::{self, Refusal};
use super::file::Counted;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::interrupt::Interrupt;

/// Bytes of the buffer at first: it grows where a record is longer.
const BUFFER_BYTES: usize = 256 << 10;

/// Less room than this in the buffer is not worth a read.
const ROOM_BYTES_MIN: usize = 64 << 10;

pub struct Source {
    bytes: Box<dyn Read>,
    compression: Option<&'static str>,
    name: String,
    interrupt: Interrupt,
    buffer: Vec<u8>,
    /// What is read and not consumed, in the buffer.
    start: usize,
    end: usize,
    is_whole: bool,
    /// The line that the unconsumed text begins on, from 1.
    line: u64,
    record_bytes_max: usize,
}

/// A line that was looked for.
pub enum Line {
    /// Without its end.
    Whole,
    /// It is longer than a record may be, and was passed over.
    TooLong,
    /// There is none: the text is at its end.
    End,
}

impl Source {
    /// Opens a file, or standard input for `-`. What is read of it is added to `read_bytes`. Where `interrupt` is asked,
    /// reading fails.
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

    /// The line that the unconsumed text begins on, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of a record at the most, as it stands in the input.
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// What is read and not consumed. Empty where nothing was asked for yet.
    pub fn text(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Memory that the text has.
    #[cfg(test)]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Nothing follows the text.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Reads more text behind what there is, or finds that there is no more.
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

    /// Goes over so much of the text, in which so many lines end.
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

    /// Consumes the rest of a line, however long it is.
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

    /// What is wrong with a record longer than it may be.
    pub fn too_long(&self, what: &str) -> String {
        let most = human::bytes(self.record_bytes_max as u64);
        format!("the {what} is longer than {most} (--max-record BYTES takes longer ones)")
    }

    /// Tells what is wrong with compressed data apart from what is wrong with its file.
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
