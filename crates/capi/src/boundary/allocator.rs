//! The library's allocator is `malloc`: C can free a vector's memory without a copy.
//!
//! Rust's own default allocator is `malloc` for most requests on Linux too, but does not promise it.

use std::alloc::{GlobalAlloc, Layout};

/// Alignment of `malloc` on every supported 64-bit platform.
const MALLOC_ALIGN: usize = 16;

struct Malloc;

// SAFETY: each method forwards to its C function, which keeps `GlobalAlloc`'s contract: a block has the size and
// alignment asked for (`aligned_alloc` beyond `malloc`'s alignment), and `free` frees every block.
unsafe impl GlobalAlloc for Malloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a layout's size and alignment are valid arguments; `aligned_alloc` wants a multiple.
        unsafe {
            if layout.align() <= MALLOC_ALIGN {
                libc::malloc(layout.size()).cast()
            } else {
                libc::aligned_alloc(layout.align(), layout.pad_to_align().size()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: any size may be asked for.
            return unsafe { libc::calloc(layout.size(), 1).cast() };
        }
        // SAFETY: the caller's layout; the zeroed block has its size.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: a block of `alloc`, `alloc_zeroed` or `realloc`, all from the same heap.
        unsafe { libc::free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGN {
            // SAFETY: a block of this heap; `realloc` aligns as `malloc` does.
            return unsafe { libc::realloc(block.cast(), size).cast() };
        }
        // SAFETY: the caller's block and layout; the copy is no longer than either block.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                block.copy_to_nonoverlapping(moved, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[global_allocator]
static MALLOC: Malloc = Malloc;

/// The memory of a non-empty vector, to be freed with `free`.
pub fn release(bytes: Vec<u8>) -> *mut u8 {
    std::mem::ManuallyDrop::new(bytes).as_mut_ptr()
}
