//! The input: a file, a pipe or standard input, counted as it is read.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use spillway::Error;

use crate::failure::Outcome;
use crate::interrupt::Interrupt;

/// The longest line that is read, in bytes: what no key or value can be is not kept in memory either.
pub const LINE_BYTES_MAX: u64 = 1 << 30;

/// Between two looks at Ctrl-C while nothing comes: its signal need not have gone to the thread that waits.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

const BUFFER_BYTES: usize = 256 << 10;

pub struct Source {
    reader: BufReader<Counted>,
    name: String,
    line: u64,
}

#[expect(clippy::disallowed_types, reason = "the input is no file of a database, and can be a pipe")]
type File = std::fs::File;

struct Counted {
    file: File,
    /// It has no size: what it has next may be long in coming.
    is_pipe: bool,
    read_bytes: Arc<AtomicU64>,
    interrupt: Interrupt,
}

impl Counted {
    /// Returns when there is something to read, or its end. A read would wait on after a signal.
    fn wait(&self) -> io::Result<()> {
        loop {
            self.interrupt.check().map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&WAIT)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.is_pipe {
            self.wait()?;
        }
        let read = self.file.read(buf)?;
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Source {
    /// Opens a file, or standard input for `-`. What is read of it is added to `read_bytes`, wherever it is read. Where
    /// `interrupt` is asked, waiting for more of a pipe fails.
    pub fn open(path: &Path, read_bytes: Arc<AtomicU64>, interrupt: Interrupt) -> Outcome<Source> {
        let failed = |error| Error::io("open for reading", path, error);
        let file = match is_standard_input(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
            false => File::open(path).map_err(failed)?,
        };
        let metadata = file.metadata().map_err(|e| Error::io("read the size", path, e))?;
        let is_pipe = size(path, &metadata)?.is_none();
        let reader = BufReader::with_capacity(BUFFER_BYTES, Counted { file, is_pipe, read_bytes, interrupt });
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

pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The size of an input, where it has one; opening a pipe to ask would start and end it.
pub fn total_bytes(path: &Path) -> Outcome<Option<u64>> {
    if is_standard_input(path) {
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
