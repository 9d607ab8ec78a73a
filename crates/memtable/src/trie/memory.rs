//! The memory interface of the trie: atomic words, bytes, blocks. The arena implements it; tests run the same code in
//! memory watched by a model checker. An image is read-only memory: writes to it panic.

use std::sync::atomic::{AtomicU32, Ordering};

use super::layout::{HEAD_BYTES, LAYOUT_VERSION, Offset, TOMBSTONES_AT, VERSION_AT, unit_bytes};
use crate::arena::{Arena, GRANULE_BYTES, Ref};

/// Memory of atomic words and write-once bytes. Allocated blocks do not overlap, stay in place and are zeroed (A1, A4).
pub(crate) trait Memory: Send + Sync + 'static {
    /// Left shift from a link to an offset.
    const SHIFT: u32;

    /// Offset of the head.
    fn head(&self) -> Offset;

    /// The word at `at`.
    ///
    /// # Safety
    /// `at` must be a multiple of four inside an allocated block. All threads must use the word atomically once it is
    /// published (A2).
    unsafe fn load(&self, at: Offset, order: Ordering) -> u32;

    /// Stores to the word at `at`.
    ///
    /// # Safety
    /// As for [`load`](Memory::load).
    unsafe fn store(&self, at: Offset, word: u32, order: Ordering);

    /// Replaces the word at `at` if it is `current`. `order` applies to success; a failure is relaxed.
    ///
    /// # Safety
    /// As for [`load`](Memory::load).
    unsafe fn exchange(&self, at: Offset, current: u32, new: u32, order: Ordering) -> bool;

    /// Writes bytes.
    ///
    /// # Safety
    /// They must lie inside one unpublished block (A3).
    unsafe fn write(&self, at: Offset, bytes: &[u8]);

    /// Reads bytes written before.
    ///
    /// # Safety
    /// They must lie inside one block published to this thread, and contain no atomic words (A2, A3).
    unsafe fn read(&self, at: Offset, len: usize) -> &[u8];

    /// Prefetches the cache line of `at`; any offset is allowed.
    fn prefetch(&self, at: Offset);

    /// Backs off before the `nth` retry of an attempt that lost to another writer.
    fn pause(&self, nth: u32);

    /// Bytes that can be reserved.
    fn capacity(&self) -> usize;

    /// Reserves `bytes`, a multiple of eight.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Releases a reservation.
    fn give_back(&self, bytes: usize);

    /// Allocates a block of reserved bytes, aligned to a unit; `bytes` must be a multiple of the unit.
    fn allocate(&self, bytes: usize) -> Offset;
}

/// Most bytes the head takes of an arena's capacity: itself, the null granule, and alignment padding.
pub(super) const HEAD_BYTES_MAX: usize = 2 * HEAD_BYTES + GRANULE_BYTES;

/// An arena with the trie's head in it.
pub(crate) struct ArenaMemory<const SHIFT: u32, const IMAGE: bool = false> {
    arena: Arena<IMAGE>,
    head: Offset,
}

impl<const SHIFT: u32> ArenaMemory<SHIFT> {
    /// Writes an empty trie's head; `None` if the arena has no room for it. The arena must serve nothing else from now
    /// on: blocks are aligned because all are multiples of a unit.
    pub(super) fn new(arena: Arena) -> Option<Self> {
        const { assert!(HEAD_BYTES.is_multiple_of(unit_bytes(SHIFT))) };
        if !arena.try_reserve(HEAD_BYTES_MAX) {
            return None;
        }
        // Only an allocation reveals the arena's frontier.
        let after_probe = byte_offset(arena.allocate(GRANULE_BYTES)) + GRANULE_BYTES as u64;
        let head = after_probe.next_multiple_of(HEAD_BYTES as u64);
        let padding = (head - after_probe) as usize;
        arena.allocate(padding + HEAD_BYTES);
        arena.give_back(HEAD_BYTES_MAX - GRANULE_BYTES - padding - HEAD_BYTES);
        let memory = ArenaMemory { arena, head };
        // SAFETY: the word lies in the head, which nobody else knows yet.
        unsafe { memory.store(memory.head + VERSION_AT, LAYOUT_VERSION, Ordering::Relaxed) };
        Some(memory)
    }
}

impl<const SHIFT: u32> ArenaMemory<SHIFT, true> {
    /// The trie of an image.
    ///
    /// # Safety
    /// The image must have been checked to be a trie of this shift, with its head at `head` (T1, A5).
    pub(super) unsafe fn of_image(arena: Arena<true>, head: Offset) -> Self {
        ArenaMemory { arena, head }
    }
}

impl<const SHIFT: u32, const IMAGE: bool> ArenaMemory<SHIFT, IMAGE> {
    pub(super) fn arena(&self) -> &Arena<IMAGE> {
        &self.arena
    }

    /// The head's granule that points to the newest range deletion.
    pub(super) fn tombstones_head(&self) -> Ref {
        Ref::from_raw(((self.head + TOMBSTONES_AT) / GRANULE_BYTES as u64) as u32)
    }

    #[inline]
    fn address(&self, at: Offset) -> *mut u8 {
        let (granule, rest) = (at / GRANULE_BYTES as u64, at % GRANULE_BYTES as u64);
        // SAFETY: callers name bytes inside blocks that were handed out (see `Memory`), so granule and rest lie inside
        // the region (A1).
        unsafe { self.arena.address(Ref::from_raw(granule as u32)).add(rest as usize) }
    }

    #[inline]
    fn word(&self, at: Offset) -> &AtomicU32 {
        assert!(!IMAGE, "an atomic word in an image (A5)");
        // SAFETY: the address is inside the region, which lives as long as `self` (A4), a multiple of four, and the word
        // is used atomically by all (see `Memory::load`).
        unsafe { AtomicU32::from_ptr(self.address(at).cast()) }
    }
}

fn byte_offset(at: Ref) -> Offset {
    u64::from(at.raw()) * GRANULE_BYTES as u64
}

impl<const SHIFT: u32, const IMAGE: bool> Memory for ArenaMemory<SHIFT, IMAGE> {
    const SHIFT: u32 = SHIFT;

    #[inline]
    fn head(&self) -> Offset {
        self.head
    }

    #[inline]
    unsafe fn load(&self, at: Offset, order: Ordering) -> u32 {
        if IMAGE {
            // SAFETY: by the caller the word lies inside the region, aligned; nobody writes it (A5).
            return unsafe { self.address(at).cast::<u32>().read() };
        }
        self.word(at).load(order)
    }

    #[inline]
    unsafe fn store(&self, at: Offset, word: u32, order: Ordering) {
        self.word(at).store(word, order);
    }

    #[inline]
    unsafe fn exchange(&self, at: Offset, current: u32, new: u32, order: Ordering) -> bool {
        self.word(at).compare_exchange(current, new, order, Ordering::Relaxed).is_ok()
    }

    #[inline]
    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        assert!(!IMAGE, "a write to an image (A5)");
        // SAFETY: by the caller the bytes lie in a block of this thread's own (A1, A3).
        unsafe { self.address(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    #[inline]
    unsafe fn read(&self, at: Offset, len: usize) -> &[u8] {
        // SAFETY: by the caller the bytes were written before they were published and are not written again (A2, A3);
        // the region lives as long as `self` (A4).
        unsafe { std::slice::from_raw_parts(self.address(at).cast_const(), len) }
    }

    #[inline]
    fn prefetch(&self, at: Offset) {
        self.arena.prefetch(Ref::from_raw((at / GRANULE_BYTES as u64) as u32));
    }

    /// A lock is held for about ten stores, unless the holder was descheduled.
    fn pause(&self, nth: u32) {
        const SPINS: u32 = 32;
        if nth < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }

    fn capacity(&self) -> usize {
        self.arena.capacity()
    }

    fn try_reserve(&self, bytes: usize) -> bool {
        self.arena.try_reserve(bytes)
    }

    fn give_back(&self, bytes: usize) {
        self.arena.give_back(bytes);
    }

    fn allocate(&self, bytes: usize) -> Offset {
        debug_assert!(bytes.is_multiple_of(unit_bytes(SHIFT)));
        let at = byte_offset(self.arena.allocate(bytes));
        debug_assert!(at.is_multiple_of(unit_bytes(SHIFT) as u64));
        at
    }
}
