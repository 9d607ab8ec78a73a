//! Advice to the kernel about pages, and what it tells of them.

use base::{Error, ErrorKind};
use rustix::io::Errno;

use super::os::{Advice, advise};
use crate::page::PAGE_BYTES;

/// Unmaps pages of a file until the next access. The file keeps their contents. A hint.
///
/// # Safety
/// The range must be whole pages of a shared mapping of a file.
pub(crate) unsafe fn unmap_shared(start: *mut u8, len: usize) {
    if cfg!(miri) {
        return;
    }
    // SAFETY: by the caller the pages are a shared file mapping's, so the contents are the page cache's and stay.
    let _ = unsafe { advise(start, len, Advice::Unmap) };
}

/// Disables read-ahead, so a fault brings in one page. Read-ahead is megabytes on some disks. In a freshly allocated
/// file, the faulting thread would clear all of it. A hint.
///
/// # Safety
/// The range must be mapped, and `start` aligned to a page.
pub(crate) unsafe fn do_not_read_ahead(start: *mut u8, len: usize) {
    if cfg!(miri) {
        return;
    }
    // SAFETY: by the caller the range is mapped, and the advice changes no contents.
    let _ = unsafe { rustix::mm::madvise(start.cast(), len, rustix::mm::Advice::Random) };
}

/// Asks for huge pages, for files and anonymous memory. A hint.
///
/// # Safety
/// The range must be mapped, and `start` aligned to a page.
pub(crate) unsafe fn prefer_huge(start: *mut u8, len: usize) {
    if cfg!(miri) {
        return;
    }
    // SAFETY: by the caller the range is mapped, and the advice changes no contents. A refusal leaves ordinary pages.
    let _ = unsafe { advise(start, len, Advice::HugePages) };
}

/// Asks for small pages, even if the system defaults to huge pages. A hint.
///
/// # Safety
/// The range must be mapped, and `start` aligned to a page.
pub(crate) unsafe fn prefer_small(start: *mut u8, len: usize) {
    if cfg!(miri) {
        return;
    }
    // SAFETY: by the caller the range is mapped, and the advice changes no contents.
    let _ = unsafe { advise(start, len, Advice::SmallPages) };
}

/// Prefaults the pages of `start .. start + len`, writable and with unchanged contents.
///
/// # Safety
/// The range must be mapped readable and writable, and `start` aligned to a page.
pub(crate) unsafe fn commit(start: *mut u8, len: usize) -> Result<(), Errno> {
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: by the caller the range is mapped, and the advice changes no contents.
    match unsafe { advise(start, len, Advice::Populate) } {
        // Linux before 5.14 and macOS cannot prefault. Pages become present on first touch.
        Err(Errno::INVAL) => Ok(()),
        result => result,
    }
}

/// The error of a failed [`commit`] of `len` bytes.
pub(crate) fn not_present(len: usize, error: Errno) -> Error {
    let what = format!("cannot make {len} bytes of memory present");
    match error {
        Errno::NOMEM => Error::no_memory(what),
        error => Error::new(ErrorKind::Io, what).with_source(std::io::Error::from(error)),
    }
}

/// Resident bytes of the pages of `start .. start + len`; `len` if the kernel does not report them.
///
/// # Safety
/// The range must be mapped, and `start` aligned to a page.
pub(crate) unsafe fn resident_bytes(start: *const u8, len: usize) -> usize {
    /// Pages per call.
    const CHUNK_PAGES: usize = 4096;
    if cfg!(miri) {
        return len;
    }
    let mut present = [0u8; CHUNK_PAGES];
    let mut resident = 0;
    for offset in (0..len).step_by(CHUNK_PAGES * PAGE_BYTES) {
        let chunk_len = (len - offset).min(CHUNK_PAGES * PAGE_BYTES);
        // SAFETY: by the caller the range is mapped; `present` has a byte for each of its pages, and the call writes no
        // more.
        let result =
            unsafe { libc::mincore(start.add(offset).cast_mut().cast(), chunk_len, present.as_mut_ptr().cast()) };
        if result != 0 {
            return len;
        }
        let pages = present.iter().take(chunk_len.div_ceil(PAGE_BYTES));
        resident += pages.filter(|&&page| page & 1 != 0).count() * PAGE_BYTES;
    }
    resident
}
