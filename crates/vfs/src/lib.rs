//! All outside effects: files, mappings, directories, the clock, randomness and threads. Code above this crate has no
//! other access to the system. So a test can script faults, crash at any call, and replay a run from one seed.
//!
//! Three backings: [`real`] (the operating system), [`memory`] (in memory, with a clone of the state after a crash) and
//! [`fault`] (a wrapper that fails selected calls).
//!
//! An internal part of the package `spillway-db`, published because that needs it. It may change in any release.
#![deny(missing_docs)]

pub mod fault;
mod heap;
pub mod memory;
#[cfg_attr(windows, path = "windows/mod.rs")]
pub mod real;

#[cfg(test)]
mod conformance;
#[cfg_attr(not(unix), path = "no_socket.rs")]
mod local_socket;
mod mapped_memory;
mod origin;
mod page;
pub mod perf;
mod prefetch;
mod read_many;
mod standard_output;
mod std_calls;
mod ticks;
mod unreadable;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::{Error, Result};

pub use fault::{Fault, FaultCode, FaultVfs, Operation, Rule, RuleId};
pub use heap::share_heap;
pub use local_socket::{LocalListener, LocalStream};
pub use mapped_memory::MappedMemory;
pub use memory::{CrashPolicy, MemoryVfs};
pub use origin::Origin;
pub use prefetch::prefetch;
pub use read_many::{ReadRequest, read_many};
pub use real::{AnonymousMapping, HeapMemory, RealVfs};
pub use standard_output::standard_output_takes_nothing;
pub use ticks::ticks;
pub use unreadable::UnreadableVfs;

/// Purpose of a call: for statistics, rate limits and fault selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoClass {
    /// The log.
    Log,
    /// The MANIFEST and what stands beside it.
    Manifest,
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// An ingest.
    Ingest,
    /// A caller's own reads and writes.
    Foreground,
    /// Anything else.
    #[default]
    Other,
}

/// How [`Vfs::create`] treats an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// An error of kind `InvalidArgument`.
    Fail,
    /// The file is emptied.
    Truncate,
}

/// A file read at positions. Shared freely between threads.
pub trait RandomFile: Send + Sync {
    /// Reads up to `buf.len()` bytes at `offset`; fewer only at the file's end. Retries interrupted and short reads of
    /// the operating system.
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize>;

    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// True if the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Hints at an upcoming read of a range. May do nothing.
    fn prefetch(&self, _offset: u64, _len: u64) {}

    /// Hints that reads come in no order: the system then reads what it is asked for, or [hinted](RandomFile::prefetch),
    /// and nothing more. May do nothing.
    fn expect_random(&self) {}

    /// Reads as [`read_at`](RandomFile::read_at) without waiting for a device: only bytes in the page cache, up to the
    /// first that is not there. May return fewer, even none.
    fn read_cached(&self, _offset: u64, _buf: &mut [u8], _class: IoClass) -> usize {
        0
    }
}

/// An append-only file with one owner.
pub trait AppendFile: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()>;

    /// Bytes appended so far, plus the file's length when opened.
    fn len(&self) -> u64;

    /// True if nothing was appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes everything appended so far durable. After an error the state of the unsynced bytes is unknown, and the
    /// call must not be retried (D4).
    fn sync(&mut self, class: IoClass) -> Result<()>;

    /// Starts writeback of the bytes appended since the previous call, and waits for the writeback started by the
    /// previous call. At most two pieces are in flight, so syncs of other files do not queue behind a whole file. Not a
    /// sync; may do nothing.
    fn start_writeback(&mut self, _class: IoClass) {}

    /// Writes back everything appended so far, and waits. Later writes to the disk then do not queue behind it. Not a
    /// sync; may do nothing.
    fn write_back(&mut self, _class: IoClass) {}
}

/// A file written at positions by many threads concurrently, in disjoint ranges.
pub trait SharedFile: Send + Sync {
    /// Writes bytes at an offset.
    fn write_at(&self, offset: u64, bytes: &[u8], class: IoClass) -> Result<()>;

    /// Reads from an offset; returns how many bytes there were.
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize>;

    /// As [`AppendFile::sync`]; covers every write that returned before the call.
    fn sync(&self, class: IoClass) -> Result<()>;

    /// Starts writeback of a written range, without waiting for it. Not a sync; may do nothing.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: bytes of the range may be lost, as after a failed sync (D4).
    fn start_writeback(&self, _offset: u64, _len: u64, _class: IoClass) -> Result<()> {
        Ok(())
    }

    /// Allocates blocks for `offset .. offset + len`, and extends the file to their end. A full disk is `NoSpace` here,
    /// not at a later write.
    fn allocate(&self, offset: u64, len: u64, class: IoClass) -> Result<()>;

    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// True if the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file to this length.
    fn truncate(&self, len: u64) -> Result<()>;
}

/// A read-only mapping of a whole file. The file must not be truncated while the mapping lives: this crate cannot
/// defend against SIGBUS. Only complete files are mapped.
pub trait ReadMapping: Send + Sync + AsRef<[u8]> {}

/// A read-only mapping of a whole file. An access to a page that cannot be read, or that a shortened file no longer has,
/// raises no signal: it finds zeros, and [`check`](Self::check) fails from then on.
///
/// Read the bytes, copy what is needed, check, then use the copy: pages are read again whenever the system has dropped
/// them, so a check says nothing of later reads.
pub trait GuardedMapping: Send + Sync + AsRef<[u8]> {
    /// Whether everything read so far was the file's.
    ///
    /// # Errors
    /// `Io`: a page failed since the file was mapped.
    fn check(&self) -> Result<()>;
}

/// A file mapped for reading and writing at one fixed address, up to a capacity set at creation.
///
/// Stores are relaxed atomic 8-byte words, so writers of disjoint ranges and readers of published bytes need no lock.
/// Only ranges allocated by [`ensure`](RwMapping::ensure) may be accessed. A full disk is then an error of `ensure`,
/// never a signal.
pub trait RwMapping: Send + Sync {
    /// Reserved address space in bytes: the requested capacity in whole pages.
    fn capacity(&self) -> u64;

    /// Bytes from the start, allocated on disk. They may be read and written.
    fn allocated(&self) -> u64;

    /// Allocates extents so that `allocated() >= end`. `NoSpace` on a full disk, `InvalidArgument` past the capacity.
    fn ensure(&self, end: u64) -> Result<()>;

    /// Prefaults the pages of a range, writable. A hint.
    fn populate(&self, offset: u64, len: u64);

    /// Unmaps the whole pages of a range. Contents stay, and the next access maps the pages again. For ranges not
    /// accessed again soon: syncing a mapped page interrupts every thread. A hint.
    fn release(&self, _offset: u64, _len: u64) {}

    /// Asks for 2 MiB pages from `offset` on, before the file grows. One fault, one TLB entry and one writeback then
    /// cover 512 small pages. Not for a file synced while it is written: any change writes back the whole page. File
    /// systems without large pages (ext4 before Linux 6.16, for one) use small pages. A hint.
    fn use_huge_pages(&self, _offset: u64) {}

    /// Copies `bytes` to `offset`, a multiple of 8. Zeros pad the last word. The range must be below `allocated()`
    /// (asserted). No concurrent writer may touch its words; an overlap is harmless, never undefined.
    fn write(&self, offset: u64, bytes: &[u8]);

    /// Copies bytes to `buf`, from any offset. A read concurrent with a write returns a mixture of old and new bytes.
    fn read(&self, offset: u64, buf: &mut [u8]);

    /// As [`read`](RwMapping::read), after a failed sync. Pages lost by the kernel and unreadable on disk are an error,
    /// not a signal. Returns the bytes read.
    ///
    /// # Errors
    /// `Io`.
    fn read_file(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf);
        Ok(buf.len())
    }

    /// The mapping's memory, for structures with their own synchronisation. Only bytes below
    /// [`allocated`](RwMapping::allocated) may be accessed: a store beyond can raise a signal.
    /// [`read`](RwMapping::read) and [`write`](RwMapping::write) are coherent with access by address. Mixed use on the
    /// same words must be ordered by the user. [`truncate_on_drop`](RwMapping::truncate_on_drop) cuts the file only
    /// after the memory is dropped.
    ///
    /// # Errors
    /// `Unsupported` if the implementation must see every store, as some test wrappers must.
    fn memory(self: Arc<Self>) -> Result<MappedMemory> {
        Err(base::Error::unsupported("this mapping must see each store, so it gives no address"))
    }

    /// Writes back and waits: everything stored before the call is durable. As [`AppendFile::sync`] (D4).
    fn sync(&self, class: IoClass) -> Result<()>;

    /// As [`SharedFile::start_writeback`]. A page still mapped interrupts its writers: [release](RwMapping::release) the
    /// range first.
    fn start_writeback(&self, _offset: u64, _len: u64, _class: IoClass) -> Result<()> {
        Ok(())
    }

    /// Cuts the file to `len` bytes when the mapping is dropped, and so frees extents allocated ahead.
    fn truncate_on_drop(&self, len: u64);

    /// Frees the space behind `len`, rounded up to pages, and ends allocation, so the file can be appended to. The
    /// caller guarantees no access to the removed range, then or later: an access can raise a signal.
    ///
    /// # Errors
    /// The error of the truncation. The range may not be accessed even after an error.
    fn cut(&self, len: u64) -> Result<()>;
}

/// A file without a name. Its owner frees its space in steps, and dropping it frees the rest.
pub trait Remains: Send {
    /// Bytes left.
    fn bytes(&self) -> u64;

    /// Frees `bytes` bytes from the end. False if no further step is possible, or none ever was because the file is
    /// open elsewhere. Drop the file then.
    fn cut(&mut self, bytes: u64) -> bool;
}

/// Held while a database is open; released when dropped.
pub trait LockGuard: Send + Sync {
    /// Sets `ended` in each child that is forked from this process while the lock is held. The lock stays this process's.
    fn end_in_children(&self, ended: Arc<AtomicBool>) {
        let _ = ended;
    }
}

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, FIFO, socket or device. The engine reads none of them.
    Other,
}

/// What the file system knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// File or directory.
    pub kind: FileKind,
    /// Length in bytes.
    pub len: u64,
    /// Microseconds since the epoch.
    pub modified_us: u64,
    /// Which file it is, whatever its name.
    pub identity: FileIdentity,
}

/// Identity of a file, independent of its name: equal for all its links. Reused after the file is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    /// Number of the device.
    pub device: u64,
    /// The inode number.
    pub number: u64,
}

/// Work of a thread; the spawner joins it.
pub type Task = Box<dyn FnOnce() + Send>;

/// A thread that was started.
pub trait JoinHandle: Send {
    /// Waits for the thread's end, and resumes its panic, if any.
    fn join(self: Box<Self>);
}

/// Access to the system. Paths are absolute, unless the caller chooses a relative one. Files are created with mode
/// 0600, directories with 0700.
pub trait Vfs: Send + Sync {
    /// The same files, of which new ones have these permissions; `None` where files have none.
    fn with_file_mode(&self, _mode: u32) -> Option<Arc<dyn Vfs>> {
        None
    }

    /// Opens a file to read.
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>>;

    /// Creates a file to append to.
    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>>;

    /// Opens an existing file for appending.
    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Creates a file for positional writes. Fails if the file exists.
    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>>;

    /// Maps a file to read.
    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>>;

    /// Maps a file to read, guarded against pages that cannot be read. The first one installs a handler for SIGBUS, which
    /// passes on all signals but those of guarded mappings.
    ///
    /// # Errors
    /// `Unsupported`: the system cannot guard mappings.
    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        let message = "mapped reads (allow_mmap_reads): this system cannot turn a page that fails into an error";
        Err(base::Error::unsupported(message).at_path(path))
    }

    /// Creates a file, and maps `capacity` bytes of address space over it, none allocated yet. Fails if the file
    /// exists. `Unsupported` unless stores to allocated extents cannot fail: a trial allocation must succeed, and the
    /// file system must be known to keep allocated extents.
    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>>;

    /// What the file system knows of a file.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// True if there is a file or directory.
    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// File names in a directory, sorted; neither `.` nor `..`.
    fn read_dir(&self, path: &Path) -> Result<Vec<String>>;

    /// Each new directory is durable only after its parent is synced.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes creations, renames and removals in the directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes a file's name, and returns its space for the caller to free in steps. `None` if the space is freed
    /// already, or not by the caller.
    fn remove_in_steps(&self, path: &Path) -> Result<Option<Box<dyn Remains>>> {
        self.remove_file(path).map(|()| None)
    }

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Renames a file atomically, replacing an existing one.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Creates a second name for the file. `Unsupported` across file systems.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// The path with symbolic links resolved.
    fn canonicalize(&self, path: &Path) -> Result<PathBuf>;

    /// Takes the lock file `path`, and creates it if needed. `Busy` if any process holds the lock, this process
    /// included. Never waits.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>>;

    /// Bytes available to new files on the file system of `path`; `None` if unknown.
    fn free_bytes(&self, path: &Path) -> Option<u64>;

    /// Identifies the page cache over the file system at `path`: this boot and this mount. While it is unchanged, pages
    /// dirtied by a crashed process survive. `None` if either is unknown: only synced data can then be relied on. A
    /// second mount of the same file system has a different id, at a cost in time only.
    fn page_cache_id(&self, path: &Path) -> Option<String>;

    /// The first failure of a read of the file, if its unreadable pages were filled: only [`UnreadableVfs`] fills them.
    fn read_failure(&self, _path: &Path) -> Option<Error> {
        None
    }

    /// Monotonic time from an arbitrary start.
    fn now(&self) -> Duration;

    /// Microseconds since the epoch.
    fn unix_time_us(&self) -> u64;

    /// Waits.
    fn sleep(&self, time: Duration);

    /// A random number.
    fn random_u64(&self) -> u64;

    /// Starts a thread. Only if [`runs_inline`](Vfs::runs_inline) is false.
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>>;

    /// Listens at a Unix socket `path`, in place of a socket that is there: see [`LocalListener::bind`].
    ///
    /// # Errors
    /// `Unsupported`: no such sockets here. `Io`.
    fn listen(&self, _path: &Path) -> Result<LocalListener> {
        Err(base::Error::unsupported("there are no Unix sockets here"))
    }

    /// Lowers the CPU priority of the calling thread and of threads it starts later. Permanent, since raising it takes
    /// privileges. False if not possible.
    fn lower_cpu_priority(&self) -> bool {
        false
    }

    /// True if background jobs run on the scheduling thread, for deterministic runs.
    fn runs_inline(&self) -> bool {
        false
    }
}

/// Reads a whole file of at most `max` bytes (B2).
pub fn read_all(vfs: &dyn Vfs, path: &Path, max: u64, class: IoClass) -> Result<Vec<u8>> {
    let file = vfs.open(path)?;
    let len = file.len()?;
    if len > max {
        return Err(
            base::Error::corruption(format!("file is {len} bytes, more than the {max} it may have")).at_path(path)
        );
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(0, &mut bytes, class)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a file of `bytes`, and syncs it.
pub fn write_all(vfs: &dyn Vfs, path: &Path, if_exists: IfExists, bytes: &[u8], class: IoClass) -> Result<()> {
    let mut file = vfs.create(path, if_exists)?;
    file.append(bytes, class)?;
    file.sync(class)
}
