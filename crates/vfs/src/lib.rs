//! Every outside effect: files, mappings, directories, the clock, randomness and threads. Nothing above this crate
//! touches the world any other way, so that a test can script faults, crash at any call, and replay a run from one seed.
//!
//! Three backings: [`real`] (the operating system), [`memory`] (a file system that can be cloned as it would be after a
//! crash) and [`fault`] (a wrapper that fails the calls it is told to).

pub mod fault;
pub mod memory;
pub mod real;

#[cfg(test)]
mod conformance;
mod mapped_memory;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Result;

pub use fault::{Fault, FaultCode, FaultVfs, Operation, Rule, RuleId};
pub use mapped_memory::MappedMemory;
pub use memory::{CrashPolicy, MemoryVfs};
pub use real::{AnonymousMapping, HeapMemory, RealVfs};

/// Why a call is made: for statistics, rate limits, and for choosing which calls to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoClass {
    Log,
    Manifest,
    Flush,
    Compaction,
    Ingest,
    Foreground,
    Other,
}

/// How [`Vfs::create`] treats a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// An error of kind `InvalidArgument`.
    Fail,
    Truncate,
}

/// A file read at positions. Shared freely between threads.
pub trait RandomFile: Send + Sync {
    /// Reads up to `buf.len()` bytes at `offset`; fewer only where the file ends. Interrupted and short reads of the
    /// operating system are taken up again inside.
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize>;

    fn len(&self) -> Result<u64>;

    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Hints that a range will be read soon. May do nothing.
    fn prefetch(&self, _offset: u64, _len: u64) {}
}

/// A file that is only appended to, by one owner.
pub trait AppendFile: Send {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()>;

    /// Bytes appended so far (and found in the file when it was opened).
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes everything appended so far survive a power loss. After an error nothing is known of what was not synced,
    /// and the call must not be tried again (D4).
    fn sync(&mut self, class: IoClass) -> Result<()>;

    /// Starts writing out what was appended since the last such call, and waits until what that one started is written: so
    /// that no more than two such pieces are on their way to the disk, and the syncs of other files do not stand behind a
    /// whole file. Without a promise; may do nothing.
    fn start_writeback(&mut self, _class: IoClass) {}

    /// Writes out what was appended so far, and waits for that, so that nothing of it stands before what others give the
    /// disk next. Without a promise, and no sync; may do nothing.
    fn write_back(&mut self, _class: IoClass) {}
}

/// A file written at positions by many threads at once, each in a range of its own.
pub trait SharedFile: Send + Sync {
    fn write_at(&self, offset: u64, bytes: &[u8], class: IoClass) -> Result<()>;

    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize>;

    /// As [`AppendFile::sync`]; covers every write that returned before the call.
    fn sync(&self, class: IoClass) -> Result<()>;

    /// Allocates blocks for `offset .. offset + len`, the file growing to their end. A full disk is `NoSpace` here and
    /// not later.
    fn allocate(&self, offset: u64, len: u64, class: IoClass) -> Result<()>;

    fn len(&self) -> Result<u64>;

    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    fn truncate(&self, len: u64) -> Result<()>;
}

/// A read-only mapping of a whole file. The file must not be truncated while it lives: that is outside what this
/// crate can defend against (SIGBUS), and only files that are complete are mapped.
pub trait ReadMapping: Send + Sync + AsRef<[u8]> {}

/// A file mapped for reading and writing, at a fixed address for its whole life, up to a capacity given at creation.
///
/// Stores are atomic 8-byte words, relaxed, so that writers in disjoint ranges and readers of what was published need no
/// lock. Only ranges that [`ensure`](RwMapping::ensure) has allocated may be touched: a full disk is then an error of
/// `ensure` and never a signal.
pub trait RwMapping: Send + Sync {
    /// Address space reserved, in bytes: what was asked for, in whole pages.
    fn capacity(&self) -> u64;

    /// Bytes from the start that are allocated on disk and may be read and written.
    fn allocated(&self) -> u64;

    /// Allocates extents so that `allocated() >= end`. `NoSpace` on a full disk, `InvalidArgument` past the capacity.
    fn ensure(&self, end: u64) -> Result<()>;

    /// Makes the pages of a range present and writable ahead of use. A hint.
    fn populate(&self, offset: u64, len: u64);

    /// Takes the whole pages of a range off the address space; their contents stay, and the next access maps them again.
    /// For ranges that are not touched again soon: syncing a mapped page stops every thread for a moment. A hint.
    fn release(&self, _offset: u64, _len: u64) {}

    /// Asks for pages of 2 MiB from `offset` on, before the file grows: they come 512 at a time, take one translation, and are written back
    /// as one. Not for a file that is synced while it is written: a page is written whole, however little of it changed.
    /// File systems without them (ext4 before Linux 6.16, for one) go on with small ones. A hint.
    fn use_huge_pages(&self, _offset: u64) {}

    /// Copies `bytes` to `offset`, which must be a multiple of 8; the last word is padded with zeros. The range must
    /// lie below `allocated()`, and no other writer may touch its words; both are asserted or harmless, never undefined.
    fn write(&self, offset: u64, bytes: &[u8]);

    /// Copies bytes out; any offset. Reading what another thread is writing yields some mixture of old and new.
    fn read(&self, offset: u64, buf: &mut [u8]);

    /// As [`read`](RwMapping::read), of a file whose sync failed: what the kernel has dropped, and the disk does not give back, is
    /// an error and not a signal. Returns the bytes read.
    ///
    /// # Errors
    /// `Io`.
    fn read_file(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf);
        Ok(buf.len())
    }

    /// The mapping's memory, for users who keep structures in it and synchronise access themselves. Only bytes below
    /// [`allocated`](RwMapping::allocated) may be touched: a store beyond can raise a signal. [`read`](RwMapping::read)
    /// and [`write`](RwMapping::write) see such stores and are seen by such loads; who mixes both on the same words must
    /// order them. [`truncate_on_drop`](RwMapping::truncate_on_drop) does not cut the file before the memory is dropped.
    ///
    /// # Errors
    /// `Unsupported` where the implementation must see each store, as wrappers that test something do.
    fn memory(self: Arc<Self>) -> Result<MappedMemory> {
        Err(base::Error::unsupported("this mapping must see each store, so it gives no address"))
    }

    /// Writes back and waits: everything stored before the call survives a power loss. As [`AppendFile::sync`] (D4).
    fn sync(&self, class: IoClass) -> Result<()>;

    /// Cuts the file to `len` bytes when the mapping is dropped, giving back extents that were allocated ahead.
    fn truncate_on_drop(&self, len: u64);

    /// Gives back now what was allocated behind `len`, rounded up to pages, and allocates nothing from then on, so that the
    /// file can be appended to. The caller answers for it that nobody touches what is cut off, then or later: that can raise
    /// a signal.
    ///
    /// # Errors
    /// What cutting the file yields; what was to be cut off may not be touched all the same.
    fn cut(&self, len: u64) -> Result<()>;
}

/// A file without a name, whose space is its owner's to give back. What is left of it goes when this is dropped.
pub trait Remains: Send {
    /// What is left.
    fn bytes(&self) -> u64;

    /// Gives so many bytes back, from the end. False where nothing is given back in steps any more, or none ever was because
    /// somebody has the file open: then it is to be dropped.
    fn cut(&mut self, bytes: u64) -> bool;
}

/// Held while a database is open; released when dropped.
pub trait LockGuard: Send + Sync {}

/// What a directory or a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    /// A symbolic link, FIFO, socket or device: nothing the engine reads.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub kind: FileKind,
    pub len: u64,
    /// Microseconds since the epoch.
    pub modified_us: u64,
    pub identity: FileIdentity,
}

/// Which file it is, whatever its name: two names of one file have the same. Given to another once the file is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileIdentity {
    pub device: u64,
    /// The file's number on the device.
    pub number: u64,
}

/// Runs until it returns; joined by whoever spawned it.
pub type Task = Box<dyn FnOnce() + Send>;

pub trait JoinHandle: Send {
    /// Waits for the thread's end. A panic inside it is passed on.
    fn join(self: Box<Self>);
}

/// The world. Paths are whole; nothing is relative to a current directory unless the caller says so. Files are created
/// with mode 0600, directories with 0700.
pub trait Vfs: Send + Sync {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>>;

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>>;

    /// Opens a file for appending to what is there.
    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Creates a file for positional writes. Fails where it exists.
    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>>;

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>>;

    /// Creates a file and maps `capacity` bytes of address space over it, none of them allocated yet. `Unsupported` where
    /// the file system gives no guarantee that allocated extents can be stored to without failing: allocating is tried,
    /// and the file system must be one known to keep what it allocated.
    /// Fails where the file exists.
    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>>;

    fn metadata(&self, path: &Path) -> Result<Metadata>;

    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// File names in a directory, sorted; neither `.` nor `..`.
    fn read_dir(&self, path: &Path) -> Result<Vec<String>>;

    /// Each new directory survives a power loss only once its parent is synced.
    fn create_dir_all(&self, path: &Path) -> Result<()>;

    /// Makes creations, renames and removals in the directory survive a power loss.
    fn sync_dir(&self, path: &Path) -> Result<()>;

    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes a file's name, and leaves it to the caller to give its space back step by step. `None` where that is done
    /// already, or is not for the caller to do.
    fn remove_in_steps(&self, path: &Path) -> Result<Option<Box<dyn Remains>>> {
        self.remove_file(path).map(|()| None)
    }

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Moves a file, replacing one that is there, atomically.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// A second name for the same file. `Unsupported` across file systems.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()>;

    /// The path with links resolved.
    fn canonicalize(&self, path: &Path) -> Result<PathBuf>;

    /// Takes the lock that `path` stands for, creating the file if needed. `Busy` where any process, this one included,
    /// holds it already. Never waits.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>>;

    /// Bytes free for new files where `path` lies; `None` where that is not known.
    fn free_bytes(&self, path: &Path) -> Option<u64>;

    /// Identifies the page cache over the file system at `path`: this boot of the machine and this mount. Pages that a crashed
    /// process dirtied survive as long as it stays the same. `None` where one of the two cannot be told: only what was synced
    /// is then known to be there. Another mount of the same file system has another, which costs no more than time.
    fn page_cache_id(&self, path: &Path) -> Option<String>;

    /// Time that only grows, from an arbitrary start.
    fn now(&self) -> Duration;

    /// Microseconds since the epoch.
    fn unix_time_us(&self) -> u64;

    fn sleep(&self, time: Duration);

    fn random_u64(&self) -> u64;

    /// Starts a thread. Only where [`runs_inline`](Vfs::runs_inline) is false.
    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>>;

    /// Has the calling thread, and those that it starts, give way to others where processors are short: for good, since only
    /// the privileged can take it back. False where that cannot be had.
    fn lower_cpu_priority(&self) -> bool {
        false
    }

    /// True where background jobs are to run on the thread that would schedule them, so that a run is deterministic.
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
