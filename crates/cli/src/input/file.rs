//! Byte-counting reader of an input file, a pipe or standard input.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use spillway::internal::Error;

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;

/// Interval of Ctrl-C checks while no data comes: the signal may go to a different thread.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

#[expect(clippy::disallowed_types, reason = "the input is no file of a database, and can be a pipe")]
type File = std::fs::File;

pub struct Counted {
    file: File,
    /// Has no size; data may be long in coming.
    is_pipe: bool,
    read_bytes: Arc<AtomicU64>,
    interrupt: Interrupt,
}

impl Counted {
    /// Opens a file, or standard input for `-`. After an interrupt, waiting for a pipe's data fails.
    pub fn open(path: &Path, read_bytes: Arc<AtomicU64>, interrupt: Interrupt) -> Outcome<Counted> {
        let failed = |error: io::Error| Error::io("open for reading", path, error);
        let file = match is_standard_input(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
            // Non-blocking: waiting for a pipe's writer must check for Ctrl-C.
            false => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?)
            }
        };
        let metadata = file.metadata().map_err(|e| Error::io("read the size", path, e))?;
        let is_pipe = size(path, &metadata)?.is_none();
        Ok(Counted { file, is_pipe, read_bytes, interrupt })
    }

    /// Returns at data or at the end. A blocking read would continue after a signal.
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
        loop {
            if self.is_pipe {
                self.wait()?;
            }
            match self.file.read(buf) {
                // A concurrent reader took the pipe's data, or a signal came.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                read => {
                    self.read_bytes.fetch_add(*read.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
                    return read;
                }
            }
        }
    }
}

pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Size of an input, if it has one. Pipes are not opened to ask: opening and closing would end them.
pub fn total_bytes(path: &Path) -> Outcome<Option<u64>> {
    if is_standard_input(path) {
        return Ok(None);
    }
    let metadata = path.metadata().map_err(|e| Error::io("open for reading", path, e))?;
    size(path, &metadata)
}

fn size(path: &Path, metadata: &Metadata) -> Outcome<Option<u64>> {
    if metadata.is_dir() {
        let dir = path.display();
        let what = format!("{dir} is a directory, not a file of records; name the files in it, as in {dir}/*.csv");
        return Err(Failure::refused(what));
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}
