//! Advice on memory: none is given.

use base::Error;

/// Prefaults nothing.
///
/// # Safety
/// As elsewhere: the range must be mapped readable and writable, and `start` aligned to a page.
pub(crate) unsafe fn commit(_start: *mut u8, _len: usize) -> Result<(), std::io::Error> {
    Ok(())
}

/// The error of a failed [`commit`] of `len` bytes.
pub(crate) fn not_present(len: usize, _error: std::io::Error) -> Error {
    Error::no_memory(format!("cannot make {len} bytes of memory present"))
}

/// All of it: the system is not asked.
///
/// # Safety
/// As elsewhere: the range must be mapped, and `start` aligned to a page.
pub(crate) unsafe fn resident_bytes(_start: *const u8, len: usize) -> usize {
    len
}
