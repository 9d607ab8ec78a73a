//! The memory of a mapped file, for access by address.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::real::advice;

/// Readable and writable bytes at one address, zero until stored to. The value keeps the mapping alive. See
/// [`RwMapping::memory`](crate::RwMapping::memory).
pub struct MappedMemory {
    base: NonNull<u8>,
    capacity: usize,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: an address, a length, and an owner that is Send and Sync; access to the bytes needs the user's own `unsafe`.
unsafe impl Send for MappedMemory {}
// SAFETY: as for Send; no method accesses the bytes.
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    /// # Safety
    /// While `owner` lives, `capacity` bytes at `base`, a page's address, must be mapped readable and writable.
    /// Accesses other than by users of the address must be by aligned atomic words.
    pub unsafe fn new(base: NonNull<u8>, capacity: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        MappedMemory { base, capacity, _owner: owner }
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes of address space.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Resident bytes, in whole pages, as counted by the kernel.
    pub fn resident_bytes(&self) -> usize {
        // SAFETY: by the contract of `new` the range is mapped and starts at a page.
        unsafe { advice::resident_bytes(self.as_ptr(), self.capacity) }
    }
}

impl fmt::Debug for MappedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedMemory({} bytes at {:p})", self.capacity, self.base)
    }
}
