//! Mappings for reading that survive pages that cannot be read.
//!
//! The kernel raises SIGBUS for a page it cannot read, and for a page behind the end of a shortened file. Without a
//! handler, the process ends. The handler here finds the guarded mapping of the address, marks it, puts a page of zeros
//! in place, and lets the access go on. The reader learns of the mark by [`GuardedMapping::check`]. Signals for other
//! addresses go to the handler installed before.
//!
//! Invariants, cited by the `unsafe` blocks, beside M3 of `mapping.rs`:
//! - **M6** A slot names a mapping from before its first read until it is unmapped. Slots are never freed.
//! - **M7** The handler touches atomics, `mmap` and `sigaction` only: all that a signal may interrupt stays intact.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustix::mm::{Advice, ProtFlags, madvise};

use super::file;
use super::mapping::Region;
use crate::GuardedMapping;

/// Slots of a chunk. Chunks are added as mappings need them.
const CHUNK_SLOTS: usize = 256;

/// A guarded mapping as the handler sees it.
struct Slot {
    /// Address; 0 in a free slot.
    base: AtomicUsize,
    len: AtomicUsize,
    failed: AtomicBool,
}

struct Chunk {
    slots: [Slot; CHUNK_SLOTS],
    next: Option<&'static Chunk>,
}

/// The newest chunk.
static CHUNKS: AtomicPtr<Chunk> = AtomicPtr::new(ptr::null_mut());
/// Held to take a slot.
static TAKING: Mutex<()> = Mutex::new(());
/// The handler before ours, and the bytes of a page; set once the handler is installed.
static BEFORE: OnceLock<Before> = OnceLock::new();

struct Before {
    action: libc::sigaction,
    page_bytes: usize,
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: chunks are leaked, so a pointer stored in `CHUNKS` stays valid (M6); null is `None`.
    let newest = unsafe { CHUNKS.load(Ordering::Acquire).as_ref() };
    std::iter::successors(newest, |chunk| chunk.next).flat_map(|chunk| &chunk.slots)
}

/// Takes a slot for a mapping.
fn take_slot(base: usize, len: usize) -> &'static Slot {
    let _taking = TAKING.lock();
    let free = slots().find(|slot| slot.base.load(Ordering::Relaxed) == 0);
    let slot = free.unwrap_or_else(|| &add_chunk().slots[0]);
    slot.failed.store(false, Ordering::Relaxed);
    slot.len.store(len, Ordering::Relaxed);
    slot.base.store(base, Ordering::Release);
    slot
}

fn add_chunk() -> &'static Chunk {
    let free = || Slot { base: AtomicUsize::new(0), len: AtomicUsize::new(0), failed: AtomicBool::new(false) };
    // SAFETY: as in `slots`.
    let next = unsafe { CHUNKS.load(Ordering::Acquire).as_ref() };
    let chunk: &'static Chunk = Box::leak(Box::new(Chunk { slots: std::array::from_fn(|_| free()), next }));
    CHUNKS.store(ptr::from_ref(chunk).cast_mut(), Ordering::Release);
    chunk
}

/// Installs the handler, once in a process.
fn install() -> Result<()> {
    let _taking = TAKING.lock();
    if BEFORE.get().is_some() {
        return Ok(());
    }
    let failed = || {
        Error::new(ErrorKind::Io, "cannot handle SIGBUS, as mapped reads need")
            .with_source(std::io::Error::last_os_error())
    };
    // SAFETY: zeros are a valid `sigaction`; both calls get pointers to live values.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 {
            return Err(failed());
        }
        // Set first: the handler reads it.
        let _ = BEFORE.set(Before { action: before, page_bytes: libc::sysconf(libc::_SC_PAGESIZE) as usize });
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_sigbus as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) != 0 {
            return Err(failed());
        }
    }
    Ok(())
}

extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    // SAFETY: the kernel passes a valid `siginfo_t`; `si_addr` is set for a SIGBUS of the kernel's own (code above 0).
    let address = unsafe { if (*info).si_code > 0 { (*info).si_addr() as usize } else { 0 } };
    let of = |slot: &&Slot| {
        let base = slot.base.load(Ordering::Acquire);
        base != 0 && address.checked_sub(base).is_some_and(|at| at < slot.len.load(Ordering::Relaxed))
    };
    if let Some(slot) = slots().find(of)
        && address != 0
    {
        // Marked before any thread can read a zero of the new page.
        slot.failed.store(true, Ordering::SeqCst);
        let page = address & !(before.page_bytes - 1);
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the page is part of a mapping that is being read (M6), so it is ours to replace; M7.
        let placed = unsafe { libc::mmap(page as *mut c_void, before.page_bytes, libc::PROT_READ, flags, -1, 0) };
        if placed != libc::MAP_FAILED {
            return;
        }
    }
    // SAFETY: the arguments are those the kernel passed.
    unsafe { pass_on(before, signal, info, context) }
}

/// Does what would have been done without our handler.
///
/// # Safety
/// Called by a signal handler with its own arguments.
unsafe fn pass_on(before: &Before, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let action = before.action.sa_sigaction;
    if action == libc::SIG_DFL || action == libc::SIG_IGN {
        // The access is made again and ends the process, as it would have.
        // SAFETY: zeros with SIG_DFL are a valid `sigaction`; M7.
        unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, ptr::null_mut());
        }
    } else if before.action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: an action with SA_SIGINFO is a function of these three arguments.
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { std::mem::transmute(action) };
        handler(signal, info, context);
    } else {
        // SAFETY: an action without SA_SIGINFO is a function of the signal's number.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(action) };
        handler(signal);
    }
}

/// A whole file, mapped for reading. An empty file has no region.
pub(super) struct RealGuardedMapping {
    path: PathBuf,
    mapped: Option<(Region, &'static Slot)>,
}

impl RealGuardedMapping {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fd = file::open_regular(path)?;
        let len = file::len_of(&fd, path)?;
        let len =
            usize::try_from(len).map_err(|e| Error::unsupported("too large to map").at_path(path).with_source(e))?;
        let path = path.to_owned();
        if len == 0 {
            return Ok(RealGuardedMapping { path, mapped: None });
        }
        install()?;
        let region = Region::map(&fd, &path, len, ProtFlags::READ)?;
        let base = region.base.as_ptr();
        // Lookups read here and there; cursors ask for what comes next themselves. A hint.
        // SAFETY: the range is the mapping's (M3), and the advice changes no contents.
        let _ = unsafe { madvise(base.cast(), len, Advice::Random) };
        let slot = take_slot(base as usize, len);
        Ok(RealGuardedMapping { path, mapped: Some((region, slot)) })
    }
}

impl Drop for RealGuardedMapping {
    fn drop(&mut self) {
        if let Some((_, slot)) = &self.mapped {
            slot.base.store(0, Ordering::Release); // before the region is unmapped (M6)
        }
    }
}

impl AsRef<[u8]> for RealGuardedMapping {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.mapped {
            // SAFETY: M3; the range is readable. Tables are complete and not written again. A page that fails turns
            // into zeros under the slice: `check` tells, and what was read before it is then discarded.
            Some((region, _)) => unsafe { std::slice::from_raw_parts(region.base.as_ptr(), region.len()) },
            None => &[],
        }
    }
}

impl GuardedMapping for RealGuardedMapping {
    #[inline]
    fn check(&self) -> Result<()> {
        fence(Ordering::Acquire); // the mark is read after the bytes
        match &self.mapped {
            Some((_, slot)) if slot.failed.load(Ordering::Relaxed) => Err(self.failed()),
            _ => Ok(()),
        }
    }
}

impl RealGuardedMapping {
    #[cold]
    fn failed(&self) -> Error {
        Error::new(
            ErrorKind::Io,
            "a page of the mapped file could not be read: the disk failed, or the file was shortened",
        )
        .at_path(&self.path)
    }
}
