//! The database lock: one opener at a time.
//!
//! Two parts. A set of the files locked in this process, by device and inode, detects a second path to the same file. A
//! kernel record lock, owned by the open file, excludes other processes. It conflicts with RocksDB's record lock on the
//! same file, so the two engines exclude each other.

use std::collections::BTreeSet;
use std::path::Path;

use base::{Error, Result};
use parking_lot::Mutex;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{open_fd, os_error};
use crate::LockGuard;

/// Device and inode.
type FileId = (u64, u64);

static HELD_HERE: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

/// Released by drop.
pub(super) struct FileLock {
    id: FileId,
    /// Closed before the entry leaves `HELD_HERE`, so the next opener in this process finds the kernel lock free.
    fd: Option<OwnedFd>,
}

impl FileLock {
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let fd = open_fd("open the lock file", path, OFlags::RDWR | OFlags::CREATE)?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| os_error("examine the lock file", path, e))?;
        let id = (stat.st_dev, stat.st_ino);
        let mut held = HELD_HERE.lock();
        if held.contains(&id) {
            return Err(Error::busy(
                "another handle in this process has the database open: share that handle, or close it first",
            )
            .at_path(path));
        }
        lock_against_processes(&fd, path)?;
        held.insert(id);
        Ok(FileLock { id, fd: Some(fd) })
    }
}

impl LockGuard for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = HELD_HERE.lock();
        if let Some(fd) = self.fd.take() {
            // Closing alone does not unlock while a process being started still has the descriptor.
            let _ = set_lock(&fd, libc::F_UNLCK); // cannot fail; if it did, closing remains
        }
        held.remove(&self.id);
    }
}

fn lock_against_processes(fd: &OwnedFd, path: &Path) -> Result<()> {
    let Err(cause) = set_lock(fd, libc::F_WRLCK) else { return Ok(()) };
    match Errno::from_io_error(&cause) {
        Some(Errno::AGAIN | Errno::ACCESS) => {
            Err(Error::busy("another process has the database open: close it there first").at_path(path))
        }
        _ => Err(Error::io("lock", path, cause)),
    }
}

/// Sets the record lock of the whole file to `kind`, without waiting.
fn set_lock(fd: &OwnedFd, kind: libc::c_int) -> std::io::Result<()> {
    // SAFETY: `flock` is plain integers, and zero is a valid value of each.
    let mut whole_file: libc::flock = unsafe { std::mem::zeroed() };
    whole_file.l_type = kind as libc::c_short;
    whole_file.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open, and the kernel only reads the struct, which outlives the call.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole_file) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is for a moment whenever the program starts another.
    #[test]
    fn a_lock_is_free_once_dropped_though_its_descriptor_was_inherited() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("LOCK");
        let held = FileLock::acquire(&path).unwrap();
        let inherited = held.fd.as_ref().map(|fd| fd.try_clone().unwrap());
        assert_eq!(FileLock::acquire(&path).err().unwrap().kind(), base::ErrorKind::Busy);
        drop(held);
        let again = FileLock::acquire(&path).unwrap();
        drop((again, inherited));
    }
}
