//! Anonymous memory at a fixed address, with pages allocated on first touch. Arenas are built on it.
//!
//! Invariants, cited by the `unsafe` blocks here and by the arenas above:
//! - **M1** From construction to drop, `capacity` bytes at `as_ptr` are mapped readable and writable, at one address.
//! - **M2** The bytes are zero until the owner stores to them. Nothing in this crate writes to or through the range
//!   (a prefault only makes pages present).

use std::ptr::{self, NonNull};

use base::{Error, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::advice;
use crate::page::{self, PAGE_BYTES};

/// See the module's M1 and M2. The owner synchronises access to the bytes.
#[derive(Debug)]
pub struct AnonymousMapping {
    base: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the value is an address and a length; M1 holds on whichever thread it is used, and access to the bytes needs
// the owner's own `unsafe`.
unsafe impl Send for AnonymousMapping {}
// SAFETY: as for Send; no method stores to the bytes (M2).
unsafe impl Sync for AnonymousMapping {}

impl AnonymousMapping {
    /// Reserves `capacity` zeroed bytes, aligned to a page. Memory is allocated on first touch, so the capacity may
    /// exceed the machine's memory.
    ///
    /// # Errors
    /// `InvalidArgument` for a capacity of zero, `Io` if the address space or the memory limit is exhausted.
    pub fn new(capacity: usize) -> Result<Self> {
        if capacity == 0 {
            return Err(Error::invalid_argument("a mapping of zero bytes"));
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh private mapping at an address the kernel chooses aliases nothing.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), capacity, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let address = address.map_err(|_| Error::no_memory(format!("cannot reserve {capacity} bytes of memory")))?;
        let base = NonNull::new(address.cast()).expect("mmap never returns the null address");
        Ok(AnonymousMapping { base, capacity })
    }

    /// Asks for huge pages from `offset` on, and for small pages before it. A hint.
    pub fn use_huge_pages(&self, offset: usize) {
        let start = offset.next_multiple_of(PAGE_BYTES).min(self.capacity);
        // SAFETY: M1, and both parts start at a page, as the mapping does.
        unsafe {
            advice::prefer_small(self.as_ptr(), start);
            advice::prefer_huge(self.as_ptr().add(start), self.capacity - start);
        }
    }

    /// The first byte; valid for `capacity()` bytes until the mapping is dropped (M1).
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Prefaults the pages of a range, writable and with unchanged contents. The part beyond the capacity is ignored.
    ///
    /// # Errors
    /// `Io` if there is no memory for them. Kernels before 5.14 cannot prefault: nothing is done.
    pub fn commit(&self, offset: usize, len: usize) -> Result<()> {
        let Some((start, len)) = page::covering(offset, len, self.capacity) else { return Ok(()) };
        // SAFETY: `covering` keeps the range inside the mapping and starts it at a page, as the mapping starts (M1).
        let result = unsafe { advice::commit(self.as_ptr().add(start), len) };
        result.map_err(|e| advice::not_present(len, e))
    }

    /// Resident bytes, in whole pages, as counted by the kernel.
    pub fn resident_bytes(&self) -> usize {
        // SAFETY: M1, and the mapping starts at a page.
        unsafe { advice::resident_bytes(self.as_ptr(), self.capacity) }
    }
}

impl Drop for AnonymousMapping {
    fn drop(&mut self) {
        // SAFETY: M1 ends here: the range was mapped by `new` and is unmapped once.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.capacity) };
        debug_assert!(result.is_ok(), "munmap of a mapping that this value owns");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_until_stored_to_and_survives_a_prefault() {
        let mapping = AnonymousMapping::new(3 << 20).unwrap();
        mapping.use_huge_pages(1 << 20);
        assert_eq!(mapping.capacity(), 3 << 20);
        let last = (3 << 20) - 1;
        // SAFETY: both offsets lie below the capacity (M1), and only this thread uses the memory.
        unsafe {
            assert_eq!(*mapping.as_ptr(), 0);
            *mapping.as_ptr().add(last) = 7;
            mapping.commit(last, 100).unwrap();
            mapping.commit(usize::MAX, 1).unwrap();
            assert_eq!(*mapping.as_ptr().add(last), 7);
            assert_eq!(*mapping.as_ptr().add(last - 1), 0);
        }
        assert_eq!(mapping.resident_bytes() % 4096, 0);
        mapping.commit(0, 3 << 20).unwrap();
        assert_eq!(mapping.resident_bytes(), 3 << 20);
    }

    #[test]
    fn what_cannot_be_reserved_is_an_error() {
        assert_eq!(AnonymousMapping::new(0).unwrap_err().kind(), base::ErrorKind::InvalidArgument);
        assert!(AnonymousMapping::new(usize::MAX / 2).is_err());
    }
}
