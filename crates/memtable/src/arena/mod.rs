//! The memory of one memtable: a zeroed region of fixed capacity, allocated upwards and never freed, moved or grown
//! while the memtable lives. Structures in it use 32-bit references instead of addresses. So the region can be a file,
//! and is then the memtable's image at any instant.
//!
//! Invariants, cited by the `SAFETY` comments of this crate:
//! - **A1** Ranges returned by [`Arena::allocate`] lie inside the region and do not overlap.
//! - **A2** Every non-null reference stored in a memtable was made from such a range. Its target was written whole
//!   before a release store or exchange published it.
//! - **A3** Bytes other than atomic words (entries) are not written again after their publication.
//! - **A4** The region lives as long as the `Arena`, at one address.
//! - **A5** An `Arena<true>`, an *image*, lies over a read-only mapping of a complete file ([`vfs::ReadMapping`]). The
//!   file was checked as a whole ([`crate::image`], B1) and is not written any more, so A1 to A3 hold for its content.
//!   Nothing is allocated from it or stored in it. Its words are read as plain memory: an atomic access is not defined
//!   on read-only memory.
//!
//! Everything fallible fails before sequence allocation (C4): [`Arena::try_reserve`] obtains disk and memory for
//! reserved bytes, under no lock, so no store meets a full disk.

mod reference;
mod region;
#[cfg(test)]
mod tests;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use base::Result;
use base::note;
use vfs::ReadMapping;

use self::region::Region;
use crate::ImageFile;

pub(crate) use self::reference::Ref;
pub use self::region::SealedFile;

/// The unit of allocation and of references.
pub(crate) const GRANULE_BYTES: usize = 8;

/// Reach of 32-bit references to granules: 32 GiB.
pub(crate) const CAPACITY_MAX_BYTES: usize = GRANULE_BYTES << 32;

/// The image header: the start of a file, or of memory to be written to one. Nothing is allocated from it; it describes
/// the image (see [`crate::image`]). A page, so that writing it dirties nothing else.
pub(crate) const IMAGE_HEADER_BYTES: usize = 4096;

/// Source of memory without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The allocator. The whole capacity counts as held.
    Heap,
    /// An anonymous mapping: pages are committed on first touch.
    Mapping,
}

/// Configuration of an arena.
#[derive(Clone)]
pub(crate) struct ArenaConfig<'a> {
    /// Bytes to allocate, without the header.
    pub(crate) capacity: usize,
    pub(crate) source: Source,
    /// Huge pages for any capacity; else from 4 MiB up. For mappings without a file.
    pub(crate) huge_pages: bool,
    /// `try_reserve` prefaults pages in steps, and fails if there is no memory for them. Else pages fault in on first
    /// touch, and a lack of memory is a signal. For mappings.
    pub(crate) commits_ahead: bool,
    /// [`Arena::held_bytes`] asks the kernel.
    pub(crate) exact_accounting: bool,
    /// Memory without a file gets a header too, so that its bytes are a whole image.
    pub(crate) keeps_header: bool,
    /// The file to map.
    pub(crate) image: Option<&'a ImageFile>,
}

impl ArenaConfig<'_> {
    pub(crate) fn new(capacity: usize) -> Self {
        ArenaConfig {
            capacity,
            source: Source::Mapping,
            huge_pages: false,
            commits_ahead: false,
            exact_accounting: false,
            keeps_header: false,
            image: None,
        }
    }
}

/// A counter on its own pair of cache lines: writers on all processors add to it.
#[repr(align(128))]
struct Lonely(AtomicUsize);

/// Memory to allocate from; with `IMAGE`, the memory left by another arena (A5).
pub(crate) struct Arena<const IMAGE: bool = false> {
    /// Start of `region`.
    base: NonNull<u8>,
    /// End of the reservable bytes, from the region's start: header included.
    capacity: usize,
    /// Bytes of the image header, or 0.
    header: usize,
    /// Bytes from the start safe to touch. At least `reserved`, at most the region's capacity.
    ready: AtomicUsize,
    /// Bytes from the start known to be present, touched or not.
    held: AtomicUsize,
    /// Bytes from the start made present before, or while, they were stored to. Written by
    /// [`prefault`](Arena::prefault) and `extend`.
    present: AtomicUsize,
    exact_accounting: bool,
    /// A failure to extend the region was logged.
    told: AtomicBool,
    region: Region,
    /// Bytes reserved. At most `capacity`.
    reserved: Lonely,
    /// Bytes allocated. At most `reserved`.
    allocated: Lonely,
}

// SAFETY: `base` is the address of `region`, which is Send (A4); bytes are accessed through `address` and `word`, whose
// callers answer for it (A1 to A3).
unsafe impl<const IMAGE: bool> Send for Arena<IMAGE> {}
// SAFETY: as for Send.
unsafe impl<const IMAGE: bool> Sync for Arena<IMAGE> {}

impl Arena {
    /// An anonymous mapping of `capacity` bytes. No page is touched.
    ///
    /// # Errors
    /// `InvalidArgument`: the capacity exceeds the reach of references. Errors of the mapping.
    pub(crate) fn new(capacity: usize) -> Result<Arena> {
        Self::with(&ArenaConfig::new(capacity))
    }

    /// An arena in the configured file if the file system can map it, else in memory.
    ///
    /// # Errors
    /// As [`new`](Arena::new). `InvalidArgument` also if the file exists.
    pub(crate) fn with(config: &ArenaConfig<'_>) -> Result<Arena> {
        region::check_capacity(config)?;
        let region = Region::new(config)?;
        let header = if region.is_file() || config.keeps_header { IMAGE_HEADER_BYTES } else { 0 };
        let capacity = config.capacity + header;
        // The null granule is never allocated.
        let start = header.max(GRANULE_BYTES);
        Ok(Arena {
            base: region.base(),
            capacity: capacity & !(GRANULE_BYTES - 1),
            header,
            ready: AtomicUsize::new(region.ready_bytes()),
            held: AtomicUsize::new(region.held_at_start()),
            present: AtomicUsize::new(0),
            exact_accounting: config.exact_accounting,
            told: AtomicBool::new(false),
            region,
            reserved: Lonely(AtomicUsize::new(start)),
            allocated: Lonely(AtomicUsize::new(start)),
        })
    }
}

impl Arena<true> {
    /// An arena over the first `bytes`, whole granules, of an image file.
    ///
    /// # Safety
    /// The bytes must have passed the check of [`crate::image`], and the file must not be written any more (A5).
    ///
    /// # Errors
    /// `Unsupported`: a mapping that is not aligned to granules.
    ///
    /// # Panics
    /// If the mapping is shorter, or `bytes` are not whole granules.
    pub(crate) unsafe fn over_image(mapping: Arc<dyn ReadMapping>, bytes: usize) -> Result<Self> {
        assert!(bytes.is_multiple_of(GRANULE_BYTES) && bytes <= (*mapping).as_ref().len(), "an image that was checked");
        let region = Region::over_image(mapping)?;
        Ok(Arena {
            base: region.base(),
            capacity: bytes,
            header: IMAGE_HEADER_BYTES,
            ready: AtomicUsize::new(bytes),
            held: AtomicUsize::new(0),
            present: AtomicUsize::new(bytes),
            exact_accounting: false,
            told: AtomicBool::new(false),
            region,
            // Everything, so that nothing is left to reserve.
            reserved: Lonely(AtomicUsize::new(bytes)),
            allocated: Lonely(AtomicUsize::new(bytes)),
        })
    }
}

impl<const IMAGE: bool> Arena<IMAGE> {
    /// Reserves `bytes`, which must cover the rounding of what is allocated from them. False, with nothing reserved, if
    /// they do not fit or there is no disk or memory for them.
    pub(crate) fn try_reserve(&self, bytes: usize) -> bool {
        let mut reserved = self.reserved.0.load(Relaxed);
        loop {
            let Some(end) = reserved.checked_add(bytes).filter(|&end| end <= self.capacity) else {
                return false;
            };
            if !self.is_ready(end) {
                return false;
            }
            match self.reserved.0.compare_exchange_weak(reserved, end, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => reserved = now,
            }
        }
    }

    /// Releases a reservation or a part of it. Nothing may have been allocated from it, nor be later.
    pub(crate) fn give_back(&self, bytes: usize) {
        let allocated = self.allocated();
        let before = self.reserved.0.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes && before - bytes >= allocated, "more given back than was promised");
    }

    /// True if the bytes up to `end` may be touched.
    #[inline]
    fn is_ready(&self, end: usize) -> bool {
        let ready = self.ready.load(Acquire);
        end <= ready || self.extend(ready, end)
    }

    #[cold]
    fn extend(&self, ready: usize, end: usize) -> bool {
        match self.region.extend(ready, end) {
            Ok(reached) => {
                self.ready.fetch_max(reached, Release);
                if self.region.commits_ahead() {
                    self.held.fetch_max(reached, Relaxed);
                    self.present.fetch_max(reached, Relaxed);
                }
                true
            }
            Err(error) => {
                if !self.told.swap(true, Relaxed) {
                    note::warn!(%error, "no room for a memtable to grow; it counts as full");
                }
                false
            }
        }
    }

    /// Prefaults one step of the pages that begin less than `ahead` bytes after the reserved ones; stores there do not
    /// fault. Asks `may_hold` first whether so many more bytes may be held. The step is small, so concurrent mmap and
    /// munmap calls are not blocked long. False if no page is missing, or none can be had: later stores find out.
    pub(crate) fn prefault(&self, ahead: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        let from = self.present.load(Relaxed);
        let wanted = self.reserved.0.load(Relaxed).saturating_add(ahead).min(self.capacity);
        if from >= wanted {
            return false;
        }
        let to = self.region.step_end(from, wanted).min(self.capacity);
        if !may_hold(to.saturating_sub(self.held_bytes())) || self.region.prefault(from, to).is_err() {
            return false;
        }
        self.ready.fetch_max(to, Release);
        self.held.fetch_max(to, Relaxed);
        self.present.fetch_max(to, Relaxed);
        true
    }

    /// Bytes of memory held now. With exact accounting, the kernel's count. Else the bytes allocated, or more if more
    /// are known to be present; short by less than a page (4 KiB, or 2 MiB if huge), the rest of the last page touched.
    /// The kernel's page tables (8 bytes a page) are not counted.
    ///
    /// An image holds none: its pages are the file's, reclaimed by the kernel on demand.
    pub(crate) fn held_bytes(&self) -> usize {
        if IMAGE {
            return 0;
        }
        if self.exact_accounting {
            return self.region.resident_bytes();
        }
        self.allocated().max(self.held.load(Relaxed))
    }

    /// True if there is a header: the bytes from the region's start are an image.
    pub(crate) fn has_header(&self) -> bool {
        self.header > 0
    }

    /// The arena's file. Called when nothing is allocated from the arena any more.
    pub(crate) fn file(&self) -> Option<SealedFile<'_>> {
        self.region.file(self.allocated())
    }

    /// All bytes up to the end of the allocated ones.
    ///
    /// # Safety
    /// Nothing may be stored in the arena while the result lives.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the region has these bytes, initialised, for the borrow (A4); by the caller, or for an image by A5, they
        // do not change.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast_const(), self.allocated()) }
    }

    /// Stores `bytes`, whole granules, in the header from `at` on, granule by granule. Does nothing without a header.
    ///
    /// # Panics
    /// If they do not lie in the header, or in an image.
    pub(crate) fn store_header(&self, at: usize, bytes: &[u8]) {
        if self.header == 0 {
            return;
        }
        assert!(!IMAGE, "a store to an image");
        let (granules, rest) = bytes.as_chunks::<GRANULE_BYTES>();
        assert!(at.is_multiple_of(GRANULE_BYTES) && rest.is_empty() && at + bytes.len() <= self.header);
        for (granule, offset) in granules.iter().zip((at..).step_by(GRANULE_BYTES)) {
            if let Some(word) = self.header_word(offset) {
                word.store(u64::from_ne_bytes(*granule), Release);
            }
        }
    }

    /// The header word at `at`, a multiple of a granule; `None` without a header, beyond it, or in an image. Stored to
    /// only by threads that hold off sealing ([`crate::gate`]), and by the sealing thread.
    #[inline]
    pub(crate) fn header_word(&self, at: usize) -> Option<&AtomicU64> {
        if IMAGE || !at.is_multiple_of(GRANULE_BYTES) || at >= self.header {
            return None;
        }
        // SAFETY: the granule lies in the header, whole granules that the region begins with (A4) and of which nothing is
        // handed out (A1); it is used as an atomic word only, and only here.
        Some(unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) })
    }

    /// Bytes that can be reserved, without the header.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity - self.header
    }

    /// Bytes reserved, without the header.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.0.load(Relaxed) - self.header
    }

    /// Bytes allocated, header and rounding included.
    #[inline]
    pub(crate) fn allocated(&self) -> usize {
        self.allocated.0.load(Relaxed)
    }

    /// Allocates `bytes`, rounded up to granules and aligned to one, zeroed. The bytes must have been reserved.
    ///
    /// This cannot fail: each caller reserved at least the rounded size before it allocates, and the sum of reservations
    /// is at most the capacity. Allocations are whole granules, start on one (the sum of whole granules) and follow each
    /// other without gaps, so no alignment is ever lost. In any order of threads, the sum of allocations is at most the
    /// sum of reservations. The single `fetch_add` gives each thread its own range (A1) and needs no ordering: nothing is
    /// read through the counter. The assertion keeps A1 even if a caller breaks its side.
    #[inline]
    pub(crate) fn allocate(&self, bytes: usize) -> Ref {
        let size = bytes.next_multiple_of(GRANULE_BYTES);
        let start = self.allocated.0.fetch_add(size, Relaxed);
        let end = start.checked_add(size);
        assert!(end.is_some_and(|end| end <= self.capacity), "allocation of {bytes} bytes without a reservation (C4)");
        Ref::from_raw((start / GRANULE_BYTES) as u32)
    }

    /// The address of `at`.
    ///
    /// # Safety
    /// `at` must come from [`allocate`](Arena::allocate) on this arena, or lie within such an allocation (A2).
    #[inline]
    pub(crate) unsafe fn address(&self, at: Ref) -> *mut u8 {
        debug_assert!(!at.is_null() && at.byte_offset() < self.allocated());
        // SAFETY: by the caller and A1 the offset lies inside the region, which is one allocation (A4).
        unsafe { self.base.as_ptr().add(at.byte_offset()) }
    }

    /// The word at `at`, loaded with acquire.
    ///
    /// # Safety
    /// As for [`word`](Arena::word).
    #[inline]
    pub(crate) unsafe fn load(&self, at: Ref) -> u64 {
        if IMAGE {
            // SAFETY: by the caller the granule lies inside the region, which nobody writes (A5).
            return unsafe { self.address(at).cast::<u64>().read() };
        }
        // SAFETY: as the caller promises.
        unsafe { self.word(at) }.load(Acquire)
    }

    /// The atomic word at `at`.
    ///
    /// # Safety
    /// As for [`address`](Arena::address); and the granule must be used as an atomic word by everyone, always.
    ///
    /// # Panics
    /// In an image.
    #[inline]
    pub(crate) unsafe fn word(&self, at: Ref) -> &AtomicU64 {
        assert!(!IMAGE, "an atomic word in an image (A5)");
        // SAFETY: the address is inside the region, which outlives `self`'s borrow (A4), and granules are aligned to 8
        // bytes in a region aligned to a page. By the caller nobody accesses the granule other than atomically.
        unsafe { AtomicU64::from_ptr(self.address(at).cast()) }
    }

    /// Prefetches the cache line of `at`. Any reference is allowed: a hint reads nothing.
    #[inline]
    pub(crate) fn prefetch(&self, at: Ref) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let address = self.base.as_ptr().wrapping_add(at.byte_offset());
            // SAFETY: prefetching has no effect but on caches, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast_const().cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}
