//! The operating system's files, mappings, clock and threads.
//!
//! Linux and macOS; what differs is in `os`. Interrupted calls are retried, except file syncs (D4). Every descriptor is closed on `exec`.
#![allow(clippy::disallowed_methods, reason = "this is where the clock and the file system are called")]

pub(crate) mod advice;
#[cfg(not(miri))]
mod anonymous;
mod directory;
mod file;
mod guarded;
mod heap;
mod lock;
pub(crate) mod mapping;
pub(crate) mod os;
#[cfg(target_os = "linux")]
mod remains;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, ErrorKind, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

#[cfg(not(miri))]
pub use anonymous::AnonymousMapping;
pub use heap::HeapMemory;
#[cfg(miri)]
pub use heap::HeapMemory as AnonymousMapping;
pub(crate) use lock::watch_forks;

use crate::{
    AppendFile, GuardedMapping, IfExists, JoinHandle, LocalListener, LockGuard, Metadata, RandomFile, ReadMapping,
    Remains, RwMapping, SharedFile, Task, Vfs, std_calls,
};

/// The owner's alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The operating system.
#[derive(Debug)]
pub struct RealVfs {
    start: Instant,
    /// Of new files.
    mode: Mode,
}

impl RealVfs {
    /// The operating system's files.
    #[expect(clippy::new_ret_no_self, reason = "the engine only ever holds a Vfs behind its trait")]
    pub fn new() -> Arc<dyn Vfs> {
        Arc::new(RealVfs { start: Instant::now(), mode: FILE_MODE })
    }
}

impl Vfs for RealVfs {
    fn with_file_mode(&self, mode: u32) -> Option<Arc<dyn Vfs>> {
        Some(Arc::new(RealVfs { start: self.start, mode: Mode::from_raw_mode(mode) }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        Ok(Arc::new(file::RealFile::open(path)?))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        let flags = match if_exists {
            IfExists::Fail => OFlags::EXCL,
            IfExists::Truncate => OFlags::TRUNC,
        };
        let fd = create_fd("create", path, OFlags::WRONLY | OFlags::CREATE | flags, self.mode)?;
        Ok(Box::new(file::RealAppendFile::new(fd, path, 0)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let fd = open_fd("open for appending", path, OFlags::WRONLY)?;
        let len = file::len_of(&fd, path)?;
        Ok(Box::new(file::RealAppendFile::new(fd, path, len)))
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        Ok(Arc::new(file::RealFile::create(path, self.mode)?))
    }

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        Ok(Arc::new(mapping::RealReadMapping::open(path)?))
    }

    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        Ok(Arc::new(guarded::RealGuardedMapping::open(path)?))
    }

    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>> {
        Ok(Arc::new(mapping::RealRwMapping::create(path, capacity, self.mode)?))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        directory::metadata(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        std_calls::read_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        directory::create_dir_all(path, self.mode)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        directory::sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        rustix::fs::unlink(path).map_err(|e| os_error("remove", path, e))
    }

    fn remove_in_steps(&self, path: &Path) -> Result<Option<Box<dyn Remains>>> {
        os::remove_in_steps(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        rustix::fs::rmdir(path).map_err(|e| os_error("remove directory", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        rustix::fs::rename(from, to).map_err(|e| os_error("rename", from, e).context(format!("to {}", to.display())))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        directory::hard_link(from, to)
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        std::fs::canonicalize(path).map_err(|e| Error::io("resolve", path, e))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        Ok(Box::new(lock::FileLock::acquire(path, self.mode)?))
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        let stat = retry_on_intr(|| rustix::fs::statvfs(path)).ok()?;
        stat.f_bavail.checked_mul(stat.f_frsize)
    }

    fn page_cache_id(&self, path: &Path) -> Option<String> {
        os::page_cache_id(path)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time_us(&self) -> u64 {
        std_calls::unix_time_us()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn random_u64(&self) -> u64 {
        os::random_u64()
    }

    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        std_calls::spawn_thread(name, task)
    }

    fn listen(&self, path: &Path) -> Result<LocalListener> {
        LocalListener::bind(path)
    }

    fn lower_cpu_priority(&self) -> bool {
        os::lower_cpu_priority()
    }
}

/// Opens with the flags common to all our files.
fn open_fd(doing: &str, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    create_fd(doing, path, flags, Mode::empty())
}

/// As [`open_fd`], with the permissions of a file that is made.
fn create_fd(doing: &str, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| rustix::fs::open(path, flags, mode));
    opened.and_then(above_standard).map_err(|e| os_error(doing, path, e))
}

/// Keeps files off the numbers of standard input, output and error: where a program has closed them, its own prints, and
/// ours, would go into a table or a MANIFEST.
fn above_standard(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    const FIRST_OTHER: i32 = 3;
    if fd.as_raw_fd() >= FIRST_OTHER { Ok(fd) } else { rustix::io::fcntl_dupfd_cloexec(&fd, FIRST_OTHER) }
}

/// Converts an errno to the kind of error the caller can act on.
fn os_error(doing: &str, path: &Path, errno: Errno) -> Error {
    let source = std::io::Error::from(errno);
    let kind = match errno {
        Errno::EXIST => ErrorKind::InvalidArgument,
        Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS => ErrorKind::Unsupported,
        _ => return Error::io(doing, path, source),
    };
    Error::new(kind, format!("cannot {doing}")).at_path(path).with_source(source)
}
