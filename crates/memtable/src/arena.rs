//! The memory of one memtable: a zeroed region of fixed capacity, allocated from its low end and never freed, moved or
//! grown while the memtable lives. Places in it are named by 32-bit references, so that structures built in it hold no
//! addresses.
//!
//! Invariants, cited by the `SAFETY` comments of this crate:
//! - **A1** Ranges handed out by [`Arena::allocate`] lie inside the region and do not overlap.
//! - **A2** Every non-null reference stored in a memtable was made from such a range, and what it leads to was written
//!   whole before a release store or exchange published it.
//! - **A3** Bytes that are not atomic words (entries) are not written again after they were published.
//! - **A4** The region lives as long as the `Arena`, at one address.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use base::{Error, Result};
use vfs::{AnonymousMapping, PageHint};

/// The unit of allocation and of references.
pub(crate) const GRANULE_BYTES: usize = 8;

/// What 32-bit references to granules can reach: 32 GiB.
pub(crate) const CAPACITY_MAX_BYTES: usize = GRANULE_BYTES << 32;

/// Capacities from here up ask for huge pages: half of the cost of a descent through a large memtable is address
/// translation.
const HUGE_PAGES_MIN_BYTES: usize = 4 << 20;

/// A place in an arena, in granules from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref(u32);

impl Ref {
    /// No place: the region's first granule is never handed out.
    pub(crate) const NULL: Ref = Ref(0);

    #[inline]
    pub(crate) fn from_raw(raw: u32) -> Ref {
        Ref(raw)
    }

    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The place `granules` further on. It must lie in the same allocation.
    #[inline]
    pub(crate) fn forward(self, granules: usize) -> Ref {
        Ref(self.0.wrapping_add(granules as u32))
    }

    /// The place `granules` before. It must lie in the same allocation.
    #[inline]
    pub(crate) fn back(self, granules: usize) -> Ref {
        Ref(self.0.wrapping_sub(granules as u32))
    }

    #[inline]
    fn byte_offset(self) -> usize {
        self.0 as usize * GRANULE_BYTES
    }
}

/// A counter alone on its pair of cache lines: writers on all processors add to it.
#[repr(align(128))]
struct Lonely(AtomicUsize);

pub(crate) struct Arena {
    region: AnonymousMapping,
    capacity: usize,
    /// Bytes promised. At most `capacity`.
    reserved: Lonely,
    /// Bytes handed out. At most `reserved`.
    allocated: Lonely,
}

impl Arena {
    /// Maps a region of `capacity` bytes. No page is touched.
    ///
    /// # Errors
    /// `InvalidArgument` beyond what references can reach; whatever the mapping fails with.
    pub(crate) fn new(capacity: usize) -> Result<Arena> {
        if !(GRANULE_BYTES..=CAPACITY_MAX_BYTES).contains(&capacity) {
            return Err(Error::invalid_argument(format!(
                "a memtable of {capacity} bytes: the capacity must be {GRANULE_BYTES} to {CAPACITY_MAX_BYTES} bytes"
            )));
        }
        let capacity = capacity & !(GRANULE_BYTES - 1);
        let pages = if capacity >= HUGE_PAGES_MIN_BYTES { PageHint::Huge } else { PageHint::Default };
        let region = AnonymousMapping::with_page_hint(capacity, pages)?;
        // The null granule is spoken for.
        let (reserved, allocated) = (AtomicUsize::new(GRANULE_BYTES), AtomicUsize::new(GRANULE_BYTES));
        Ok(Arena { region, capacity, reserved: Lonely(reserved), allocated: Lonely(allocated) })
    }

    /// Promises `bytes`, rounded up to granules. False, and nothing promised, where they do not fit.
    pub(crate) fn try_reserve(&self, bytes: usize) -> bool {
        let Some(bytes) = bytes.checked_next_multiple_of(GRANULE_BYTES) else {
            return false;
        };
        let fits = |reserved: usize| reserved.checked_add(bytes).filter(|&sum| sum <= self.capacity);
        self.reserved.0.try_update(Relaxed, Relaxed, fits).is_ok()
    }

    pub(crate) fn reserved(&self) -> usize {
        self.reserved.0.load(Relaxed)
    }

    /// Bytes handed out, rounding included.
    #[inline]
    pub(crate) fn allocated(&self) -> usize {
        self.allocated.0.load(Relaxed)
    }

    /// Hands out `bytes`, rounded up to granules and aligned to one, zeroed. The bytes must have been reserved.
    ///
    /// This cannot fail: each caller reserved at least the rounded size of what it allocates, before it allocates.
    /// Reservations are whole granules and their sum is at most the capacity; allocations are whole granules, start on
    /// one (the sum of whole granules) and follow each other without gaps, so no alignment is ever lost and, in whatever
    /// order threads come, the sum of what was allocated is at most the sum of what was reserved. The single
    /// `fetch_add` gives each thread a range of its own (A1) and needs no ordering: nothing is read through the counter.
    /// The assertion holds A1 even where a caller breaks its side.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> Ref {
        let size = bytes.next_multiple_of(GRANULE_BYTES);
        let start = self.allocated.0.fetch_add(size, Relaxed);
        let end = start.checked_add(size);
        assert!(end.is_some_and(|end| end <= self.capacity), "allocation of {bytes} bytes without a reservation (C4)");
        Ref((start / GRANULE_BYTES) as u32)
    }

    /// The address of `at`.
    ///
    /// # Safety
    /// `at` must come from [`allocate`](Arena::allocate) on this arena, or lie within such an allocation (A2).
    #[inline]
    pub(crate) unsafe fn address(&self, at: Ref) -> *mut u8 {
        debug_assert!(!at.is_null() && at.byte_offset() < self.allocated());
        // SAFETY: by the caller and A1 the offset lies inside the region, which is one allocation (A4).
        unsafe { self.region.as_ptr().add(at.byte_offset()) }
    }

    /// The atomic word at `at`.
    ///
    /// # Safety
    /// As for [`address`](Arena::address); and the granule must be used as an atomic word by everyone, always.
    #[inline]
    pub(crate) unsafe fn word(&self, at: Ref) -> &AtomicU64 {
        // SAFETY: the address is inside the region, which outlives `self`'s borrow (A4), and granules are aligned to 8
        // bytes in a region aligned to a page. By the caller nobody accesses the granule other than atomically.
        unsafe { AtomicU64::from_ptr(self.address(at).cast()) }
    }

    /// Asks for the cache line of `at`. Any reference will do: a hint reads nothing.
    #[inline]
    pub(crate) fn prefetch(&self, at: Ref) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let address = self.region.as_ptr().wrapping_add(at.byte_offset());
            // SAFETY: prefetching has no effect but on caches, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast_const().cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_end_at_the_capacity_and_round_up() {
        let arena = Arena::new(64).expect("maps");
        assert!(arena.try_reserve(49), "56 of the 56 bytes behind the null granule");
        assert!(!arena.try_reserve(1));
        assert!(!arena.try_reserve(usize::MAX));
        assert!(arena.try_reserve(0));
        let refs: Vec<u32> = (0..7).map(|_| arena.allocate(1).raw()).collect();
        assert_eq!(refs, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((arena.allocated(), arena.reserved()), (64, 64));
    }

    #[test]
    #[should_panic(expected = "without a reservation")]
    fn allocating_past_the_capacity_stops() {
        Arena::new(64).expect("maps").allocate(64);
    }

    #[test]
    fn capacities_out_of_reach_are_refused() {
        assert!(Arena::new(0).is_err());
        assert!(Arena::new(CAPACITY_MAX_BYTES + 1).is_err());
    }
}
