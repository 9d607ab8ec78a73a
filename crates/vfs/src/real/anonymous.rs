//! Anonymous memory at a fixed address, its pages taken only when touched: what heap arenas are made of.
//!
//! Invariants, cited by the `unsafe` blocks here and by the arenas above:
//! - **M1** From construction to drop, `capacity` bytes at `as_ptr` are mapped readable and writable, at one address.
//! - **M2** The bytes are zero until the owner stores to them. Nothing in this crate writes to or through the range
//!   (a prefault only makes pages present).

use std::ptr::NonNull;

use base::{Error, Result};

/// Which pages the memory should be made of. A hint to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageHint {
    /// Whatever the system gives by default.
    Default,
    /// Transparent huge pages: fewer TLB misses in random access, memory taken 2 MiB at a time.
    Huge,
}

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
    /// Reserves `capacity` zeroed bytes, aligned to a page. No memory is taken before it is touched, so the capacity may
    /// exceed what the machine has.
    ///
    /// # Errors
    /// `InvalidArgument` for a capacity of zero, `NoSpace` where the address space or the memory limit is exhausted.
    pub fn new(capacity: usize) -> Result<Self> {
        Self::with_page_hint(capacity, PageHint::Default)
    }

    /// As [`new`](Self::new), with a wish for the kind of pages.
    pub fn with_page_hint(capacity: usize, hint: PageHint) -> Result<Self> {
        if capacity == 0 {
            return Err(Error::invalid_argument("a mapping of zero bytes"));
        }
        let mapping = AnonymousMapping { base: sys::reserve(capacity)?, capacity };
        if hint == PageHint::Huge {
            sys::advise_huge(&mapping);
        }
        Ok(mapping)
    }

    /// The first byte; valid for `capacity()` bytes until the mapping is dropped (M1).
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes the pages of a range present and writable ahead of use, their contents unchanged. A hint: what lies beyond
    /// the capacity is left out, and a failure is not reported.
    pub fn populate(&self, offset: usize, len: usize) {
        sys::populate(self, offset, len);
    }
}

impl Drop for AnonymousMapping {
    fn drop(&mut self) {
        sys::release(self);
    }
}

#[cfg(not(miri))]
mod sys {
    use std::ptr::{self, NonNull};

    use base::{Error, ErrorKind, Result};
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::super::page;
    use super::AnonymousMapping;

    pub(super) fn reserve(capacity: usize) -> Result<NonNull<u8>> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh private mapping at an address the kernel chooses aliases nothing.
        let address = unsafe { mmap_anonymous(ptr::null_mut(), capacity, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let address = address.map_err(|e| {
            Error::new(ErrorKind::NoSpace, format!("cannot reserve {capacity} bytes of memory"))
                .with_source(std::io::Error::from(e))
        })?;
        Ok(NonNull::new(address.cast()).expect("mmap never returns the null address"))
    }

    pub(super) fn advise_huge(mapping: &AnonymousMapping) {
        // SAFETY: M1; the advice changes no contents. A refusal leaves ordinary pages, which the hint permits.
        let _ = unsafe { madvise(mapping.as_ptr().cast(), mapping.capacity, Advice::LinuxHugepage) };
    }

    pub(super) fn populate(mapping: &AnonymousMapping, offset: usize, len: usize) {
        let Some((start, len)) = page::covering(offset, len, mapping.capacity) else { return };
        // SAFETY: `covering` keeps start below the capacity, so the address lies in the mapping (M1).
        let address = unsafe { mapping.as_ptr().add(start) };
        // SAFETY: M1; populating changes no contents (M2).
        let _ = unsafe { madvise(address.cast(), len, Advice::LinuxPopulateWrite) };
    }

    pub(super) fn release(mapping: &mut AnonymousMapping) {
        // SAFETY: M1 ends here: the range was mapped by `reserve` and is unmapped once, by drop.
        let result = unsafe { munmap(mapping.as_ptr().cast(), mapping.capacity) };
        debug_assert!(result.is_ok(), "munmap of a mapping that this value owns");
    }
}

/// Miri knows no anonymous mappings with advice: the heap serves instead.
#[cfg(miri)]
mod sys {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    use base::{Error, ErrorKind, Result};

    use super::super::page;
    use super::AnonymousMapping;

    fn layout(capacity: usize) -> Result<Layout> {
        Layout::from_size_align(capacity, page::PAGE_BYTES)
            .map_err(|e| Error::invalid_argument("a mapping larger than the address space").with_source(e))
    }

    pub(super) fn reserve(capacity: usize) -> Result<NonNull<u8>> {
        // SAFETY: `with_page_hint` refuses a capacity of zero.
        let address = unsafe { alloc_zeroed(layout(capacity)?) };
        NonNull::new(address)
            .ok_or_else(|| Error::new(ErrorKind::NoSpace, format!("cannot reserve {capacity} bytes of memory")))
    }

    pub(super) fn advise_huge(_mapping: &AnonymousMapping) {}

    pub(super) fn populate(_mapping: &AnonymousMapping, _offset: usize, _len: usize) {}

    pub(super) fn release(mapping: &mut AnonymousMapping) {
        let layout = layout(mapping.capacity).expect("the layout was valid when the memory was allocated");
        // SAFETY: M1 ends here: allocated by `reserve` with this layout and freed once, by drop.
        unsafe { dealloc(mapping.as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_until_stored_to_and_survives_a_prefault() {
        let mapping = AnonymousMapping::with_page_hint(3 << 20, PageHint::Huge).unwrap();
        assert_eq!(mapping.capacity(), 3 << 20);
        let last = (3 << 20) - 1;
        // SAFETY: both offsets lie below the capacity (M1), and only this thread uses the memory.
        unsafe {
            assert_eq!(*mapping.as_ptr(), 0);
            *mapping.as_ptr().add(last) = 7;
            mapping.populate(last, 100);
            mapping.populate(usize::MAX, 1);
            assert_eq!(*mapping.as_ptr().add(last), 7);
            assert_eq!(*mapping.as_ptr().add(last - 1), 0);
        }
    }

    #[test]
    fn what_cannot_be_reserved_is_an_error() {
        assert_eq!(AnonymousMapping::new(0).unwrap_err().kind(), base::ErrorKind::InvalidArgument);
        assert!(AnonymousMapping::new(usize::MAX / 2).is_err());
    }
}
