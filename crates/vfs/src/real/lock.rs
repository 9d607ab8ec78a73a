//! The database lock: one opener at a time.
//!
//! Two parts. A set of the files locked in this process, by device and inode, detects a second path to the same file. A
//! kernel lock, owned by the open file, excludes other processes. It conflicts with RocksDB's record lock on the same
//! file, so the two engines exclude each other.

use std::collections::BTreeMap;
use std::path::Path;

use base::{Error, Result};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{open_fd, os, os_error};
use crate::{LockGuard, std_calls};

/// Device and inode.
type FileId = (i128, i128);

static HELD_HERE: Mutex<BTreeMap<FileId, Holder>> = Mutex::new(BTreeMap::new());

/// Who took a lock, for the error of the next one.
struct Holder {
    /// Seconds since the epoch.
    since_s: u64,
    thread: String,
}

impl Holder {
    fn here() -> Holder {
        let thread = format!("{:?}", std::thread::current().id());
        Holder {
            since_s: std_calls::unix_time_us() / 1_000_000,
            thread: thread.chars().filter(char::is_ascii_digit).collect(),
        }
    }

    /// Begins with RocksDB's words, which the caller ends with the path.
    fn refusal(&self) -> Error {
        let Holder { since_s, thread } = self;
        Error::busy(format!(
            "lock hold by current process, acquire time {since_s} acquiring thread {thread}; another handle in this process \
             has the database open: share that handle, or close it first"
        ))
    }
}

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
        let id = (i128::from(stat.st_dev), i128::from(stat.st_ino)); // their types differ between systems
        let mut held = HELD_HERE.lock();
        if let Some(holder) = held.get(&id) {
            return Err(holder.refusal().at_path(path));
        }
        lock_against_processes(&fd, path)?;
        held.insert(id, Holder::here());
        Ok(FileLock { id, fd: Some(fd) })
    }
}

impl LockGuard for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = HELD_HERE.lock();
        if let Some(fd) = self.fd.take() {
            // Closing alone does not unlock while a process being started still has the descriptor.
            os::unlock(&fd);
        }
        held.remove(&self.id);
    }
}

fn lock_against_processes(fd: &OwnedFd, path: &Path) -> Result<()> {
    let Err(cause) = os::lock(fd) else { return Ok(()) };
    match Errno::from_io_error(&cause) {
        Some(Errno::AGAIN | Errno::ACCESS) => {
            Err(Error::busy("another process has the database open: close it there first").at_path(path))
        }
        _ => Err(Error::io("lock", path, cause)),
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
