//! Zeroed memory from the allocator, at a fixed address. Residency is up to the allocator: fresh memory becomes
//! resident page by page on first touch, and reused memory is resident at once.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use base::{Error, Result};

use super::advice;
use crate::page::{self, PAGE_BYTES};

/// Zeroed bytes, aligned to a page, until dropped. M1 and M2 of [`AnonymousMapping`](super::AnonymousMapping) hold here
/// too. The owner synchronises access.
#[derive(Debug)]
pub struct HeapMemory {
    base: NonNull<u8>,
    capacity: usize,
    /// The allocation. `base` is its first page boundary.
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: addresses and lengths; M1 holds on whichever thread they are used, and access to the bytes needs the owner's
// own `unsafe`.
unsafe impl Send for HeapMemory {}
// SAFETY: as for Send; no method stores to the bytes (M2).
unsafe impl Sync for HeapMemory {}

impl HeapMemory {
    /// # Errors
    /// `InvalidArgument` for a capacity of zero or beyond the address space, `Io` if the allocator has no more.
    pub fn new(capacity: usize) -> Result<Self> {
        if capacity == 0 {
            return Err(Error::invalid_argument("memory of zero bytes"));
        }
        // One page more, aligned here: allocators clear memory of a large alignment by hand, and so touch all of it.
        let layout = Layout::from_size_align(capacity.saturating_add(PAGE_BYTES), align_of::<u64>())
            .map_err(|e| Error::invalid_argument("memory larger than the address space").with_source(e))?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })
            .ok_or_else(|| Error::no_memory(format!("cannot allocate {capacity} bytes of memory")))?;
        // SAFETY: at most one page further on, and one page more than the capacity was allocated.
        let base = unsafe { start.add(start.align_offset(PAGE_BYTES)) };
        Ok(HeapMemory { base, capacity, start, layout })
    }

    /// The first byte; valid for `capacity()` bytes until the memory is dropped (M1).
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
    /// As [`AnonymousMapping::commit`](super::AnonymousMapping::commit).
    pub fn commit(&self, offset: usize, len: usize) -> Result<()> {
        let Some((start, len)) = page::covering(offset, len, self.capacity) else { return Ok(()) };
        // SAFETY: `covering` keeps the range inside the memory and starts it at a page, as the base is a page's (M1).
        // Bytes of the last page beyond the capacity are not changed either.
        let result = unsafe { advice::commit(self.as_ptr().add(start), len) };
        result.map_err(|e| advice::not_present(len, e))
    }

    /// Resident bytes, in whole pages, as counted by the kernel.
    pub fn resident_bytes(&self) -> usize {
        // SAFETY: M1, and the base is a page's.
        unsafe { advice::resident_bytes(self.as_ptr(), self.capacity) }
    }
}

impl Drop for HeapMemory {
    fn drop(&mut self) {
        // SAFETY: M1 ends here: allocated by `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The rest of a mapping's interface, for Miri and Windows. The heap replaces mappings there.
#[cfg(any(miri, windows))]
impl HeapMemory {
    /// Does nothing.
    pub fn use_huge_pages(&self, _offset: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_and_begins_at_a_page() {
        for capacity in [1, 100, PAGE_BYTES, 3 << 20] {
            let memory = HeapMemory::new(capacity).unwrap();
            memory.commit(0, capacity).unwrap();
            assert!(memory.as_ptr().addr().is_multiple_of(PAGE_BYTES) && memory.capacity() == capacity);
            assert!((1..=capacity.next_multiple_of(PAGE_BYTES)).contains(&memory.resident_bytes()));
            // SAFETY: both offsets lie below the capacity (M1), and only this thread uses the memory.
            unsafe {
                assert_eq!([*memory.as_ptr(), *memory.as_ptr().add(capacity - 1)], [0, 0]);
                *memory.as_ptr().add(capacity - 1) = 7;
            }
        }
    }

    #[test]
    fn what_cannot_be_allocated_is_an_error() {
        for capacity in [0, usize::MAX, usize::MAX / 2] {
            HeapMemory::new(capacity).unwrap_err();
        }
    }
}
