//! Files mapped into memory.
//!
//! Invariants, cited by the `unsafe` blocks:
//! - **M3** From construction to drop, the mapping covers `len` (or `capacity`) bytes at one address.
//! - **M4** Bytes below `allocated` lie in extents of the file and may be touched; nothing in this process shortens the
//!   file below them before it is unmapped. `allocated` only grows, until [`RwMapping::cut`] fixes it for good.
//! - **M5** Every access by this module to a writable mapping is an aligned atomic word. Users of the address
//!   ([`RwMapping::memory`]) are responsible for their own accesses.

use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Error, Result};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{advice, create_fd, file, os, os_error};
use crate::page::{self, PAGE_BYTES};
use crate::{IoClass, MappedMemory, ReadMapping, RwMapping};

/// An address range of the process, unmapped on drop.
pub(crate) struct Region {
    pub(crate) base: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length; M3 holds on whichever thread they are used.
unsafe impl Send for Region {}
// SAFETY: as for Send; a `Region` itself never accesses the bytes.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `len` bytes of a file, `MAP_SHARED`.
    pub(crate) fn map(fd: &OwnedFd, path: &Path, len: usize, protection: ProtFlags) -> Result<Self> {
        // SAFETY: a fresh mapping at an address the kernel chooses aliases no memory of this process.
        let base = unsafe { mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) };
        let base = base.map_err(|e| os_error("map", path, e))?;
        Ok(Region { base: NonNull::new(base.cast()).expect("mmap never returns the null address"), len })
    }
}

impl Region {
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: M3 ends here: mapped by `map` with this length, and unmapped once.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "munmap of a mapping that this value owns");
    }
}

/// A whole file, mapped for reading. An empty file has no region, since zero bytes cannot be mapped.
pub(super) struct RealReadMapping(Option<Region>);

impl RealReadMapping {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fd = file::open_regular(path)?;
        let len = file::len_of(&fd, path)?;
        let len =
            usize::try_from(len).map_err(|e| Error::unsupported("too large to map").at_path(path).with_source(e))?;
        match len {
            0 => Ok(RealReadMapping(None)),
            _ => Ok(RealReadMapping(Some(Region::map(&fd, path, len, ProtFlags::READ)?))),
        }
    }
}

impl AsRef<[u8]> for RealReadMapping {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            // SAFETY: M3; the range is readable. By the contract of `ReadMapping` only complete files are mapped, so
            // nothing changes their bytes while the slice lives.
            Some(region) => unsafe { std::slice::from_raw_parts(region.base.as_ptr(), region.len) },
            None => &[],
        }
    }
}

impl ReadMapping for RealReadMapping {}

/// A file mapped over `capacity` bytes of address space; see M3 to M5.
pub(super) struct RealRwMapping {
    /// Unmapped by `drop` before the file is cut.
    region: Option<Region>,
    base: NonNull<AtomicU64>,
    capacity: u64,
    fd: OwnedFd,
    path: PathBuf,
    /// Stored by `ensure` after the extents exist (M4).
    allocated: AtomicU64,
    /// Held to grow or cut the file. True after a cut: the file never grows again.
    is_cut: Mutex<bool>,
    /// `u64::MAX` for none.
    cut_at: AtomicU64,
}

// SAFETY: `base` is the address of `region`, which is Send; every access through it is atomic (M5).
unsafe impl Send for RealRwMapping {}
// SAFETY: as for Send.
unsafe impl Sync for RealRwMapping {}

impl RealRwMapping {
    pub(super) fn create(path: &Path, capacity: u64, mode: Mode) -> Result<Self> {
        let capacity = mappable_capacity(path, capacity)?;
        let fd = create_fd("create", path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)?;
        let mapping = Self::over(fd, path, capacity);
        if mapping.is_err() {
            // Best effort: the cause is returned, and matters more than an empty file.
            let _ = rustix::fs::unlink(path);
        }
        mapping
    }

    fn over(fd: OwnedFd, path: &Path, capacity: usize) -> Result<Self> {
        os::check_mappable(&fd, path)?;
        let region = Region::map(&fd, path, capacity, ProtFlags::READ | ProtFlags::WRITE)?;
        // SAFETY: the range is the mapping's (M3), and the advice changes no contents.
        unsafe { advice::do_not_read_ahead(region.base.as_ptr(), region.len) };
        Ok(RealRwMapping {
            base: region.base.cast(),
            region: Some(region),
            capacity: capacity as u64,
            fd,
            path: path.to_owned(),
            allocated: AtomicU64::new(0),
            is_cut: Mutex::new(false),
            cut_at: AtomicU64::new(u64::MAX),
        })
    }

    /// The words `first .. first + count`.
    ///
    /// # Panics
    /// If the range is not below `allocated()`.
    #[inline]
    fn words(&self, first: u64, count: usize) -> &[AtomicU64] {
        let end = first.checked_add(count as u64).and_then(|end| end.checked_mul(8));
        let allocated = self.allocated.load(Ordering::Acquire);
        assert!(end.is_some_and(|end| end <= allocated), "mapped file touched beyond its allocated {allocated} bytes");
        // SAFETY: the assertion keeps the range below `allocated`, so within the mapping and in extents (M3, M4); the
        // address is aligned, as `base` is a page's; every access is atomic (M5), so sharing is sound.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(first as usize), count) }
    }
}

impl RwMapping for RealRwMapping {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    fn ensure(&self, end: u64) -> Result<()> {
        if end <= self.allocated() {
            return Ok(());
        }
        if end > self.capacity {
            let message = format!("{end} bytes asked of a mapped file of at most {}", self.capacity);
            return Err(Error::invalid_argument(message).at_path(&self.path));
        }
        let is_cut = self.is_cut.lock();
        if *is_cut {
            return Err(Error::invalid_argument("a mapped file that was cut grows no more").at_path(&self.path));
        }
        let from = self.allocated();
        // The capacity is whole pages, so rounding up stays below it.
        let end = end.next_multiple_of(PAGE_BYTES as u64);
        if end > from {
            file::allocate(&self.fd, from, end - from)
                .map_err(|e| os_error("allocate", &self.path, e).at_offset(from))?;
            self.allocated.store(end, Ordering::Release);
        }
        Ok(())
    }

    fn populate(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (usize::try_from(offset), usize::try_from(len)) else { return };
        let Some((start, len)) = page::covering(offset, len, self.allocated() as usize) else { return };
        // SAFETY: `covering` cuts the range at `allocated` (M3, M4) and starts it at a page, as the mapping starts.
        let _ = unsafe { advice::commit(self.base.as_ptr().byte_add(start).cast(), len) };
    }

    fn release(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (usize::try_from(offset), usize::try_from(len)) else { return };
        let Some((start, len)) = page::within(offset, len, self.allocated() as usize) else { return };
        // SAFETY: `within` keeps the range below `allocated` (M3, M4) and to whole pages, of a shared mapping.
        unsafe { advice::unmap_shared(self.base.as_ptr().byte_add(start).cast(), len) };
    }

    fn use_huge_pages(&self, offset: u64) {
        let (Ok(offset), capacity) = (usize::try_from(offset), self.capacity as usize) else { return };
        let Some((start, len)) = page::within(offset, capacity, capacity) else { return };
        // SAFETY: `within` keeps the range inside the mapping (M3) and to whole pages.
        unsafe { advice::prefer_huge(self.base.as_ptr().byte_add(start).cast(), len) };
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset.is_multiple_of(8), "stores to a mapped file start at a word");
        let words = self.words(offset / 8, bytes.len().div_ceil(8));
        let (whole, tail) = bytes.as_chunks::<8>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if let (false, Some(last)) = (tail.is_empty(), words.last()) {
            let mut padded = [0; 8];
            copy_start(&mut padded, tail);
            last.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
    }

    fn read(&self, offset: u64, buf: &mut [u8]) {
        let skip = (offset % 8) as usize;
        let words = self.words(offset / 8, (skip + buf.len()).div_ceil(8));
        let mut words = words.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        // The head is the part of the first word from the offset on. After it the words and `buf` are in step.
        let head_len = if skip == 0 { 0 } else { (8 - skip).min(buf.len()) };
        let (head, rest) = buf.split_at_mut(head_len);
        if !head.is_empty() {
            copy_start(head, words.next().unwrap_or_default().get(skip..).unwrap_or_default());
        }
        let (whole, tail) = rest.as_chunks_mut::<8>();
        for (to, word) in whole.iter_mut().zip(words.by_ref()) {
            *to = word;
        }
        if !tail.is_empty() {
            copy_start(tail, &words.next().unwrap_or_default());
        }
    }

    fn read_file(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        file::read_at(&self.fd, &self.path, offset, buf)
    }

    fn memory(self: Arc<Self>) -> Result<MappedMemory> {
        let base = self.base.cast();
        let capacity = self.capacity as usize;
        // SAFETY: M3, for as long as the mapping lives; the result keeps the mapping alive.
        Ok(unsafe { MappedMemory::new(base, capacity, self) })
    }

    fn sync(&self, _class: IoClass) -> Result<()> {
        // The kernel writes back pages dirtied through a shared mapping.
        file::sync_data(&self.fd, &self.path)
    }

    fn start_writeback(&self, offset: u64, len: u64, _class: IoClass) -> Result<()> {
        file::start_writeback(&self.fd, &self.path, offset, len)
    }

    fn truncate_on_drop(&self, len: u64) {
        self.cut_at.store(len, Ordering::Relaxed);
    }

    fn cut(&self, len: u64) -> Result<()> {
        let mut is_cut = self.is_cut.lock();
        *is_cut = true;
        // Nothing is allocated past the capacity.
        let end = len.min(self.capacity).next_multiple_of(PAGE_BYTES as u64);
        if end >= self.allocated() {
            return Ok(());
        }
        self.allocated.store(end, Ordering::Release);
        retry_on_intr(|| rustix::fs::ftruncate(&self.fd, end)).map_err(|e| os_error("truncate", &self.path, e))
    }
}

impl Drop for RealRwMapping {
    fn drop(&mut self) {
        drop(self.region.take());
        let len = *self.cut_at.get_mut();
        if len < *self.allocated.get_mut() {
            // A failure leaves unused extents: lost space, no lost data.
            let _ = retry_on_intr(|| rustix::fs::ftruncate(&self.fd, len));
        }
    }
}

/// Copies the common length.
#[inline]
fn copy_start(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

fn mappable_capacity(path: &Path, capacity: u64) -> Result<usize> {
    let rounded = capacity.checked_next_multiple_of(PAGE_BYTES as u64).and_then(|bytes| usize::try_from(bytes).ok());
    rounded
        .filter(|&bytes| bytes > 0 && bytes <= isize::MAX as usize)
        .ok_or_else(|| Error::invalid_argument(format!("cannot map {capacity} bytes")).at_path(path))
}
