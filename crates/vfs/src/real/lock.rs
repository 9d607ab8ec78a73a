//! The database lock: one opener at a time.
//!
//! Two parts. A list of the files locked in this process, by device and inode, detects a second path to the same file. A
//! kernel lock, owned by the open file, excludes other processes. It conflicts with RocksDB's record lock on the same
//! file, so the two engines exclude each other.
//!
//! A forked child shares the open file, and with it the kernel lock. So it closes its descriptors at the fork: the lock
//! stays the parent's, and ends with it.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use base::{Error, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{create_fd, os, os_error};
use crate::{LockGuard, std_calls};

/// Device and inode.
type FileId = (i128, i128);

/// The locks of this process. Of the standard library: it is unlocked in a forked child, where a `parking_lot` mutex might
/// look for waiting threads, under locks that they held.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

struct Held {
    number: u64,
    id: FileId,
    fd: OwnedFd,
    /// When it was taken, in seconds since the epoch, and by which thread, for the error of the next one.
    since_s: u64,
    thread: String,
    /// Set in forked children.
    ended: Option<Arc<AtomicBool>>,
}

impl Held {
    fn new(id: FileId, fd: OwnedFd) -> Held {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let thread = format!("{:?}", std::thread::current().id());
        Held {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            id,
            fd,
            since_s: std_calls::unix_time_us() / 1_000_000,
            thread: thread.chars().filter(char::is_ascii_digit).collect(),
            ended: None,
        }
    }

    /// Begins with RocksDB's words, which the caller ends with the path.
    fn refusal(&self) -> Error {
        let Held { since_s, thread, .. } = self;
        Error::busy(format!(
            "lock hold by current process, acquire time {since_s} acquiring thread {thread}; another handle in this process \
             has the database open: share that handle, or close it first"
        ))
    }
}

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Released by drop.
pub(super) struct FileLock {
    /// In `HELD`, unless the lock is of the process that this one was forked from.
    number: u64,
}

impl FileLock {
    pub(super) fn acquire(path: &Path, mode: Mode) -> Result<Self> {
        watch_forks();
        let mut held = held(); // first: a fork in between would leave the descriptor with the child
        let fd = create_fd("open the lock file", path, OFlags::RDWR | OFlags::CREATE, mode)?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| os_error("examine the lock file", path, e))?;
        let id = (i128::from(stat.st_dev), i128::from(stat.st_ino)); // their types differ between systems
        if let Some(holder) = held.iter().find(|other| other.id == id) {
            return Err(holder.refusal().at_path(path));
        }
        lock_against_processes(&fd, path)?;
        let lock = Held::new(id, fd);
        let number = lock.number;
        held.push(lock);
        Ok(FileLock { number })
    }
}

impl LockGuard for FileLock {
    fn end_in_children(&self, ended: Arc<AtomicBool>) {
        let mut held = held();
        if let Some(lock) = held.iter_mut().find(|lock| lock.number == self.number) {
            lock.ended = Some(ended);
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut held = held();
        if let Some(at) = held.iter().position(|lock| lock.number == self.number) {
            // Closing alone does not unlock while a process being started still has the descriptor.
            os::unlock(&held.swap_remove(at).fd);
        }
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

/// From now on, forked children close their locks.
pub(crate) fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        if cfg!(miri) {
            return; // it has no fork
        }
        // SAFETY: the functions are called by `fork`, on its thread: before it, and after it in each process.
        let failed = unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
        assert_eq!(failed, 0, "no memory for three addresses");
    });
}

thread_local! {
    /// `HELD`, during a fork of this thread.
    static FORKING: Cell<Option<MutexGuard<'static, Vec<Held>>>> = const { Cell::new(None) };
}

extern "C" fn before_fork() {
    let _ = FORKING.try_with(|forking| forking.set(Some(held()))); // fails while the thread ends
}

extern "C" fn after_fork() {
    let _ = FORKING.try_with(Cell::take);
}

/// Waits for nothing: the other threads are not there.
extern "C" fn in_child() {
    crate::origin::count_fork();
    let mut locks = FORKING.try_with(Cell::take).ok().flatten().or_else(|| HELD.try_lock().ok());
    for lock in locks.iter_mut().flat_map(|locks| locks.drain(..)) {
        if let Some(ended) = &lock.ended {
            ended.store(true, Ordering::Release);
        }
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
        let lock = FileLock::acquire(&path, Mode::RUSR | Mode::WUSR).unwrap();
        let inherited = held().iter().find(|held| held.number == lock.number).unwrap().fd.try_clone().unwrap();
        assert_eq!(FileLock::acquire(&path, Mode::RUSR | Mode::WUSR).err().unwrap().kind(), base::ErrorKind::Busy);
        drop(lock);
        let again = FileLock::acquire(&path, Mode::RUSR | Mode::WUSR).unwrap();
        drop((again, inherited));
    }
}
