//! macOS. Without mapped logs: APFS copies on write, so a store to an allocated extent can fail with a signal.

use std::num::NonZeroU64;
use std::path::Path;

use base::{Error, ErrorKind, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::FlockOperation;
use rustix::io::{Errno, retry_on_intr};

use super::{Advice, WriteBack};
use crate::Remains;
use crate::real::os_error;

/// `fsync` leaves the drive's own cache: only `F_FULLFSYNC` is durable (D1).
pub(crate) fn sync_data(fd: &OwnedFd) -> Result<(), Errno> {
    match rustix::fs::fcntl_fullfsync(fd) {
        // Network file systems have no such call.
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL) => rustix::fs::fsync(fd),
        result => result,
    }
}

/// Reserves space at the file's end, and extends the file. Space inside the file cannot be asked for.
pub(crate) fn allocate(fd: &OwnedFd, offset: u64, len: u64) -> Result<(), Errno> {
    let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
    let now = u64::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0);
    let Some(more) = end.checked_sub(now).filter(|more| *more > 0) else { return Ok(()) };
    let more = libc::off_t::try_from(more).map_err(|_| Errno::FBIG)?;
    let store = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: more,
        fst_bytesalloc: 0,
    };
    // SAFETY: the descriptor is open, and the struct outlives the call.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_PREALLOCATE, &raw const store) } == -1 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    retry_on_intr(|| rustix::fs::ftruncate(fd, end))
}

/// A hint.
pub(crate) fn prefetch(fd: &OwnedFd, offset: u64, len: NonZeroU64) {
    let _ = rustix::fs::fcntl_rdadvise(fd, offset, len.get());
}

/// No such hint.
pub(crate) fn expect_random(_fd: &OwnedFd) {}

/// No call tells the page cache from the disk.
pub(crate) fn read_cached(_fd: &OwnedFd, _offset: u64, _buf: &mut [u8]) -> usize {
    0
}

/// The system has no such call.
pub(crate) fn write_back(_fd: &OwnedFd, _offset: i64, _len: i64, _what: WriteBack) -> Result<(), Errno> {
    Ok(())
}

/// Takes the lock of the open file, without waiting. A record lock of `fcntl` would go with any descriptor of the file
/// that the process closes. Both kinds conflict with each other here, so RocksDB's lock is respected.
pub(crate) fn lock(fd: &OwnedFd) -> std::io::Result<()> {
    Ok(rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive)?)
}

pub(crate) fn unlock(fd: &OwnedFd) {
    let _ = rustix::fs::flock(fd, FlockOperation::Unlock); // cannot fail; if it did, closing remains
}

/// Mounts have no ID that is never used again.
pub(crate) fn page_cache_id(_path: &Path) -> Option<String> {
    None
}

pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the buffer has the eight bytes.
    let result = unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) };
    assert_eq!(result, 0, "the kernel gives eight random bytes at once");
    u64::from_ne_bytes(bytes)
}

/// The nice value is the process's.
pub(crate) fn lower_cpu_priority() -> bool {
    false
}

/// # Errors
/// `Errno::INVAL`: the kernel knows none of this advice.
///
/// # Safety
/// As on Linux, though nothing is done.
pub(crate) unsafe fn advise(_start: *mut u8, _len: usize, _advice: Advice) -> Result<(), Errno> {
    Err(Errno::INVAL)
}

pub(crate) fn check_mappable(_fd: &OwnedFd, path: &Path) -> Result<()> {
    Err(Error::new(ErrorKind::Unsupported, "mapped files need Linux").at_path(path))
}

/// The kernel frees the space: it tells nobody who else has the file open.
pub(crate) fn remove_in_steps(path: &Path) -> Result<Option<Box<dyn Remains>>> {
    rustix::fs::unlink(path).map_err(|e| os_error("remove", path, e))?;
    Ok(None)
}
