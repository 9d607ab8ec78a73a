//! The input: a file, a pipe or standard input, counted as it is read.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spillway::Error;

use crate::failure::Outcome;

/// The longest line that is read, in bytes: what no key or value can be is not kept in memory either.
const LINE_BYTES_MAX: u64 = 1 << 30;

const BUFFER_BYTES: usize = 256 << 10;

pub struct Source {
    reader: BufReader<Counted>,
    name: String,
    line: u64,
}

struct Counted {
    inner: Box<dyn Read>,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Source {
    /// Opens a file, or standard input for `-`. What is read of it is added to `read_bytes`, wherever it is read.
    pub fn open(path: &Path, read_bytes: Arc<AtomicU64>) -> Outcome<Source> {
        let inner: Box<dyn Read> = if path == Path::new("-") { Box::new(io::stdin()) } else { open_file(path)? };
        let reader = BufReader::with_capacity(BUFFER_BYTES, Counted { inner, read_bytes });
        Ok(Source { reader, name: path.display().to_string(), line: 0 })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a line into `line`, without its end; false at the end of the input.
    pub fn read_line(&mut self, line: &mut Vec<u8>) -> Outcome<bool> {
        line.clear();
        let mut limited = (&mut self.reader).take(LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', line).map_err(|e| Error::io("read", Path::new(&self.name), e))?;
        self.line += u64::from(read > 0);
        if read as u64 == LINE_BYTES_MAX {
            let what = format!("line {} is longer than {LINE_BYTES_MAX} bytes", self.line);
            return Err(Error::invalid_argument(what).at_path(&self.name).into());
        }
        if line.ends_with(b"\n") {
            line.pop();
            if line.ends_with(b"\r") {
                line.pop();
            }
        }
        Ok(read > 0)
    }

    /// The number of the line read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The rest of the input, to be read by another parser.
    pub fn into_reader(self) -> impl Read {
        self.reader
    }
}

#[expect(clippy::disallowed_types, reason = "the input is no file of a database, and can be a pipe")]
fn open_file(path: &Path) -> Outcome<Box<dyn Read>> {
    let file = std::fs::File::open(path).map_err(|e| Error::io("open for reading", path, e))?;
    let metadata = file.metadata().map_err(|e| Error::io("read the size", path, e))?;
    size(path, &metadata)?;
    Ok(Box::new(file))
}

/// The size of an input, where it has one; opening a pipe to ask would start and end it.
pub fn total_bytes(path: &Path) -> Outcome<Option<u64>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let metadata = path.metadata().map_err(|e| Error::io("open for reading", path, e))?;
    size(path, &metadata)
}

fn size(path: &Path, metadata: &Metadata) -> Outcome<Option<u64>> {
    if metadata.is_dir() {
        return Err(Error::invalid_argument("is a directory, not a file of records").at_path(path).into());
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}
