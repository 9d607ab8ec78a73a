//! Windows, through the standard library and a few calls of `kernel32`.
//!
//! It builds, and is not tested. Not there: mapped files (logs are written at positions, mapped tables are read into
//! memory), durable directories (`sync_dir` does nothing: NTFS keeps a journal of names), the identity of the page
//! cache, hints on memory, priorities of threads.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "this is where the system is called")]

pub(crate) mod advice;
mod file;
#[path = "../real/heap.rs"]
mod heap;
mod kernel;

use std::fs::OpenOptions;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, ErrorKind, Result};

pub use heap::HeapMemory;
pub use heap::HeapMemory as AnonymousMapping;

use crate::{
    AppendFile, FileKind, IfExists, JoinHandle, LockGuard, Metadata, RandomFile, ReadMapping, RwMapping, SharedFile,
    Task, Vfs, std_calls,
};

/// The operating system.
#[derive(Debug)]
pub struct RealVfs {
    start: Instant,
}

impl RealVfs {
    /// The operating system's files.
    #[expect(clippy::new_ret_no_self, reason = "the engine only ever holds a Vfs behind its trait")]
    pub fn new() -> Arc<dyn Vfs> {
        Arc::new(RealVfs { start: Instant::now() })
    }
}

impl Vfs for RealVfs {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        Ok(Arc::new(file::RealFile::open(path)?))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        let mut options = OpenOptions::new();
        options.write(true);
        match if_exists {
            IfExists::Fail => options.create_new(true),
            IfExists::Truncate => options.create(true).truncate(true),
        };
        let file = options.open(path).map_err(|e| os_error("create", path, e))?;
        Ok(Box::new(file::RealAppendFile::new(file, path, 0)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = OpenOptions::new().write(true).open(path).map_err(|e| os_error("open for appending", path, e))?;
        let len = file.metadata().map_err(|e| os_error("examine", path, e))?.len();
        Ok(Box::new(file::RealAppendFile::new(file, path, len)))
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        Ok(Arc::new(file::RealFile::create(path)?))
    }

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        Ok(Arc::new(file::WholeFile::read(path)?))
    }

    fn create_mapped(&self, path: &Path, _capacity: u64) -> Result<Arc<dyn RwMapping>> {
        Err(Error::unsupported("mapped files need Linux").at_path(path))
    }

    /// Does not follow symbolic links.
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let found = std::fs::symlink_metadata(path).map_err(|e| os_error("examine", path, e))?;
        let kind = match found.file_type() {
            kind if kind.is_file() => FileKind::File,
            kind if kind.is_dir() => FileKind::Directory,
            _ => FileKind::Other,
        };
        let modified = found.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_us = modified.and_then(|time| u64::try_from(time.as_micros()).ok()).unwrap_or(0);
        let identity = kernel::identity(path).map_err(|e| os_error("examine", path, e))?;
        Ok(Metadata { kind, len: found.len(), modified_us, identity })
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        std_calls::read_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(path).map_err(|e| os_error("create directory", path, e))
    }

    fn sync_dir(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|e| os_error("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(|e| os_error("remove directory", path, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|e| os_error("rename", from, e).context(format!("to {}", to.display())))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::hard_link(from, to).map_err(|e| match e.kind() {
            std::io::ErrorKind::TooManyLinks => Error::unsupported("cannot link").at_path(from).with_source(e),
            _ => os_error("link", from, e).context(format!("to {}", to.display())),
        })
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        std::fs::canonicalize(path).map_err(|e| os_error("resolve", path, e))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        /// `ERROR_SHARING_VIOLATION`.
        const OPEN_ELSEWHERE: i32 = 32;
        let mut options = OpenOptions::new();
        // Shared with nobody, this process included.
        let opened = options.read(true).write(true).create(true).truncate(false).share_mode(0).open(path);
        opened.map(|file| Box::new(Locked { _file: file }) as _).map_err(|e| match e.raw_os_error() {
            Some(OPEN_ELSEWHERE) => {
                let message = "another handle or process has the database open: share that handle, or close it first";
                Error::busy(message).at_path(path)
            }
            _ => os_error("open the lock file", path, e),
        })
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        kernel::free_bytes(path)
    }

    fn page_cache_id(&self, _path: &Path) -> Option<String> {
        None
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
        kernel::random_u64()
    }

    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        std_calls::spawn_thread(name, task)
    }
}

struct Locked {
    _file: std::fs::File,
}

impl LockGuard for Locked {}

/// There is no fork.
pub(crate) fn watch_forks() {}

/// Converts an error to the kind that the caller can act on.
fn os_error(doing: &str, path: &Path, source: std::io::Error) -> Error {
    let kind = match source.kind() {
        std::io::ErrorKind::AlreadyExists => ErrorKind::InvalidArgument,
        std::io::ErrorKind::CrossesDevices | std::io::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => return Error::io(doing, path, source),
    };
    Error::new(kind, format!("cannot {doing}")).at_path(path).with_source(source)
}
