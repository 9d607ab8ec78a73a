//! Files behind a descriptor, accessed at positions or appended to. No buffering: every call here is a system call.

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::os::{self, WriteBack};
use super::{create_fd, open_fd, os_error};
use crate::{AppendFile, IoClass, RandomFile, SharedFile};

/// A file accessed at positions, read-only or read-write.
pub(super) struct RealFile {
    fd: OwnedFd,
    path: PathBuf,
}

impl RealFile {
    /// # Errors
    /// `InvalidArgument` unless `path` is a regular file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(RealFile { fd: open_regular(path)?, path: path.to_owned() })
    }

    pub(super) fn create(path: &Path, mode: Mode) -> Result<Self> {
        let fd = create_fd("create", path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)?;
        Ok(RealFile { fd, path: path.to_owned() })
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        read_at(&self.fd, &self.path, offset, buf)
    }
}

/// Reads until `buf` is full or the file ends. Returns the bytes read.
pub(super) fn read_at(fd: &OwnedFd, path: &Path, offset: u64, buf: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buf.get_mut(filled..)
        && !rest.is_empty()
    {
        let at = offset + filled as u64;
        let read = retry_on_intr(|| rustix::io::pread(fd, &mut *rest, at));
        match read.map_err(|e| os_error("read", path, e).at_offset(at))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

impl RandomFile for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf)
    }

    fn len(&self) -> Result<u64> {
        len_of(&self.fd, &self.path)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        // A hint; a length of zero would mean the whole rest of the file.
        if let Some(len) = std::num::NonZeroU64::new(len) {
            os::prefetch(&self.fd, offset, len);
        }
    }

    fn expect_random(&self) {
        os::expect_random(&self.fd);
    }

    fn read_cached(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> usize {
        os::read_cached(&self.fd, offset, buf)
    }
}

impl SharedFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8], _class: IoClass) -> Result<()> {
        write_all(&self.fd, offset, bytes).map_err(|(e, at)| os_error("write", &self.path, e).at_offset(at))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf)
    }

    fn sync(&self, _class: IoClass) -> Result<()> {
        sync_data(&self.fd, &self.path)
    }

    fn start_writeback(&self, offset: u64, len: u64, _class: IoClass) -> Result<()> {
        start_writeback(&self.fd, &self.path, offset, len)
    }

    fn allocate(&self, offset: u64, len: u64, _class: IoClass) -> Result<()> {
        allocate(&self.fd, offset, len).map_err(|e| os_error("allocate", &self.path, e).at_offset(offset))
    }

    fn len(&self) -> Result<u64> {
        len_of(&self.fd, &self.path)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        retry_on_intr(|| rustix::fs::ftruncate(&self.fd, len)).map_err(|e| os_error("truncate", &self.path, e))
    }
}

/// An append-only file with one writer.
pub(super) struct RealAppendFile {
    fd: OwnedFd,
    path: PathBuf,
    /// Offset of the next byte. Includes the written part of a failed append.
    len: u64,
    /// `[started, next]`: writeback of `started .. next` was started and not waited for. `next .. len` follows.
    writeback: [u64; 2],
    /// A failed wait for writeback. The kernel reports the error once per descriptor, so the sync would miss it (D4).
    failed: Option<Errno>,
}

impl RealAppendFile {
    pub(super) fn new(fd: OwnedFd, path: &Path, len: u64) -> Self {
        RealAppendFile { fd, path: path.to_owned(), len, writeback: [len; 2], failed: None }
    }
}

impl AppendFile for RealAppendFile {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        match write_all(&self.fd, self.len, bytes) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err((errno, reached)) => {
                self.len = reached;
                Err(os_error("append", &self.path, errno).at_offset(reached))
            }
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        match self.failed {
            None => sync_data(&self.fd, &self.path),
            Some(errno) => Err(os_error("write back", &self.path, errno)),
        }
    }

    fn start_writeback(&mut self, _class: IoClass) {
        let [started, next] = self.writeback;
        if next < self.len {
            self.sync_range(started, next, WriteBack::Wait);
            self.sync_range(next, self.len, WriteBack::Start);
            self.writeback = [next, self.len];
        }
    }

    fn write_back(&mut self, _class: IoClass) {
        let [started, _] = self.writeback;
        self.sync_range(started, self.len, WriteBack::StartAndWait);
        self.writeback = [self.len; 2];
    }
}

impl RealAppendFile {
    fn sync_range(&mut self, from: u64, to: u64, what: WriteBack) {
        let (Ok(offset), Ok(len)) = (i64::try_from(from), i64::try_from(to - from)) else { return };
        // A length of zero would mean the whole rest of the file.
        if len == 0 {
            return;
        }
        if let Err(errno) = os::write_back(&self.fd, offset, len, what) {
            self.failed = self.failed.or(Some(errno));
        }
    }
}

/// Opens a regular file for reading, without blocking: a plain open of a FIFO waits for a writer.
pub(super) fn open_regular(path: &Path) -> Result<OwnedFd> {
    let fd = open_fd("open", path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| os_error("examine", path, e))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(fd),
        _ => Err(Error::new(ErrorKind::InvalidArgument, "not a regular file").at_path(path)),
    }
}

pub(super) fn len_of(fd: &OwnedFd, path: &Path) -> Result<u64> {
    let stat = rustix::fs::fstat(fd).map_err(|e| os_error("examine", path, e))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

pub(super) fn start_writeback(fd: &OwnedFd, path: &Path, offset: u64, len: u64) -> Result<()> {
    let (Ok(from), Ok(bytes)) = (i64::try_from(offset), i64::try_from(len)) else { return Ok(()) };
    // A length of zero would mean the whole rest of the file.
    if bytes == 0 {
        return Ok(());
    }
    os::write_back(fd, from, bytes, WriteBack::Start).map_err(|e| os_error("write back", path, e).at_offset(offset))
}

pub(super) fn sync_data(fd: &OwnedFd, path: &Path) -> Result<()> {
    os::sync_data(fd).map_err(|e| os_error("sync", path, e))
}

/// Allocates blocks, and extends the file to their end.
pub(super) fn allocate(fd: &OwnedFd, offset: u64, len: u64) -> Result<(), Errno> {
    if len == 0 {
        return Ok(());
    }
    os::allocate(fd, offset, len)
}

/// Writes everything. An error carries the offset reached.
fn write_all(fd: &OwnedFd, offset: u64, bytes: &[u8]) -> Result<(), (Errno, u64)> {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = retry_on_intr(|| rustix::io::pwrite(fd, rest, at)).map_err(|e| (e, at))?;
        if written == 0 {
            return Err((Errno::IO, at));
        }
        at += written as u64;
        rest = rest.get(written..).expect("a write takes no more than it was given");
    }
    Ok(())
}
