//! An input file, pipe or standard input, as bytes that are counted as they are read.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use spillway::Error;

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;

/// Between two looks at Ctrl-C while nothing comes: its signal need not have gone to the thread that waits.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

#[expect(clippy::disallowed_types, reason = "the input is no file of a database, and can be a pipe")]
type File = std::fs::File;

pub struct Counted {
    file: File,
    /// It has no size: what it has next may be long in coming.
    is_pipe: bool,
    read_bytes: Arc<AtomicU64>,
    interrupt: Interrupt,
}

impl Counted {
    /// Opens a file, or standard input for `-`. Where `interrupt` is asked, waiting for more of a pipe fails.
    pub fn open(path: &Path, read_bytes: Arc<AtomicU64>, interrupt: Interrupt) -> Outcome<Counted> {
        let failed = |error: io::Error| Error::io("open for reading", path, error);
        let file = match is_standard_input(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?),
            // A pipe without a writer yet is waited for where Ctrl-C is looked at.
            false => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?)
            }
        };
        let metadata = file.metadata().map_err(|e| Error::io("read the size", path, e))?;
        let is_pipe = size(path, &metadata)?.is_none();
        Ok(Counted { file, is_pipe, read_bytes, interrupt })
    }

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
        loop {
            if self.is_pipe {
                self.wait()?;
            }
            match self.file.read(buf) {
                // Another reader of the pipe was faster, or a signal came.
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
        let dir = path.display();
        let what = format!("{dir} is a directory, not a file of records; name the files in it, as in {dir}/*.csv");
        return Err(Failure::refused(what));
    }
    Ok(metadata.is_file().then_some(metadata.len()))
}
