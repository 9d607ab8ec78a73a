//! The memory of one memtable: a zeroed region of fixed capacity, allocated from its low end and never freed, moved or
//! grown while the memtable lives. Places in it are named by 32-bit references, so that structures built in it hold no
//! addresses: the region can be a file, and is then the memtable's image at any instant.
//!
//! Invariants, cited by the `SAFETY` comments of this crate:
//! - **A1** Ranges handed out by [`Arena::allocate`] lie inside the region and do not overlap.
//! - **A2** Every non-null reference stored in a memtable was made from such a range, and what it leads to was written
//!   whole before a release store or exchange published it.
//! - **A3** Bytes that are not atomic words (entries) are not written again after they were published.
//! - **A4** The region lives as long as the `Arena`, at one address.
//! - **A5** An `Arena<true>`, an *image*, lies over a read-only mapping of a complete file ([`vfs::ReadMapping`]) that was
//!   checked as a whole ([`crate::image`], B1) and that nobody writes any more, so that A1 to A3 hold of what it says.
//!   Nothing is handed out of it or stored in it. Its words are read as plain memory: an atomic access is not defined on
//!   memory that cannot be written.
//!
//! Whatever can fail, fails before numbering (C4): disk and memory for what is reserved are found in
//! [`Arena::try_reserve`], under no lock, so that no store meets a full disk.

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

/// What 32-bit references to granules can reach: 32 GiB.
pub(crate) const CAPACITY_MAX_BYTES: usize = GRANULE_BYTES << 32;

/// The start of a file, or of memory that is to be written to one, of which nothing is handed out: what an image says of
/// itself (see [`crate::image`]). A page, so that writing it dirties nothing else.
pub(crate) const IMAGE_HEADER_BYTES: usize = 4096;

/// Where memory without a file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The allocator. All of it counts as held.
    Heap,
    /// An anonymous mapping: pages are taken when they are touched.
    Mapping,
}

/// How an arena is made.
#[derive(Clone)]
pub(crate) struct ArenaConfig<'a> {
    /// Bytes to hand out; a header lies beside them.
    pub(crate) capacity: usize,
    pub(crate) source: Source,
    /// Huge pages whatever the capacity; else from 4 MiB up. For mappings without a file.
    pub(crate) huge_pages: bool,
    /// Pages are made present in steps by `try_reserve`, which fails where there is no memory for them; else by faults,
    /// which cannot fail but by a signal. For mappings.
    pub(crate) commits_ahead: bool,
    /// [`Arena::held_bytes`] asks the kernel.
    pub(crate) exact_accounting: bool,
    /// Memory without a file has a header too, so that its bytes are a whole image.
    pub(crate) keeps_header: bool,
    /// A file to lie in.
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

/// A counter alone on its pair of cache lines: writers on all processors add to it.
#[repr(align(128))]
struct Lonely(AtomicUsize);

/// Memory to hand out; `IMAGE`, what another one has left (A5).
pub(crate) struct Arena<const IMAGE: bool = false> {
    /// Of `region`.
    base: NonNull<u8>,
    /// Bytes that may be promised, and those before them.
    capacity: usize,
    /// Bytes before them: an image's header, or none.
    header: usize,
    /// Bytes from the start that may be touched. At least `reserved`, at most what the region has.
    ready: AtomicUsize,
    /// Bytes known to be present, whether touched or not.
    held: AtomicUsize,
    /// Bytes from the start that were made present before, or while, they were stored to. Written by
    /// [`make_present`](Arena::make_present) and `extend`.
    present: AtomicUsize,
    exact_accounting: bool,
    /// It was told once that the region could not be extended.
    told: AtomicBool,
    region: Region,
    /// Bytes promised. At most `capacity`.
    reserved: Lonely,
    /// Bytes handed out. At most `reserved`.
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
    /// `InvalidArgument` beyond what references can reach; whatever the mapping fails with.
    pub(crate) fn new(capacity: usize) -> Result<Arena> {
        Self::with(&ArenaConfig::new(capacity))
    }

    /// An arena in a file, where one is asked for and the file system can map it, else in memory.
    ///
    /// # Errors
    /// As [`new`](Arena::new); `InvalidArgument` also where the file exists.
    pub(crate) fn with(config: &ArenaConfig<'_>) -> Result<Arena> {
        region::check_capacity(config)?;
        let region = Region::new(config)?;
        let header = if region.is_file() || config.keeps_header { IMAGE_HEADER_BYTES } else { 0 };
        let capacity = config.capacity + header;
        // The null granule is spoken for.
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
    /// The first `bytes`, whole granules, of a file that holds an image.
    ///
    /// # Safety
    /// They must have passed the check of [`crate::image`], and nobody may write to the file (A5).
    ///
    /// # Errors
    /// `Unsupported`: a mapping that is not aligned to granules.
    ///
    /// # Panics
    /// Where the mapping is shorter.
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
            // All of it, so that nothing is left to promise.
            reserved: Lonely(AtomicUsize::new(bytes)),
            allocated: Lonely(AtomicUsize::new(bytes)),
        })
    }
}

impl<const IMAGE: bool> Arena<IMAGE> {
    /// Promises `bytes`, rounded up to granules. False, and nothing promised, where they do not fit, or where there is no
    /// disk or memory for them.
    pub(crate) fn try_reserve(&self, bytes: usize) -> bool {
        let Some(bytes) = bytes.checked_next_multiple_of(GRANULE_BYTES) else {
            return false;
        };
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

    /// Takes back a promise, or a part of it in whole granules, which nothing was allocated from and nothing will be.
    pub(crate) fn give_back(&self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(GRANULE_BYTES));
        let before = self.reserved.0.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes && before - bytes >= GRANULE_BYTES, "more given back than was promised");
    }

    /// True once the bytes up to `end` may be touched.
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

    /// Makes the next pages present of those that begin less than `ahead` bytes behind what is promised, so that no store
    /// waits for them; `may_hold` is asked first whether so many bytes more may be held. One step, small enough that whoever
    /// maps or unmaps meanwhile does not wait long. False where none is lacking, or can be had: whoever stores finds out.
    pub(crate) fn make_present(&self, ahead: usize, may_hold: &dyn Fn(usize) -> bool) -> bool {
        let from = self.present.load(Relaxed);
        let wanted = self.reserved.0.load(Relaxed).saturating_add(ahead).min(self.capacity);
        if from >= wanted {
            return false;
        }
        let to = self.region.step_end(from, wanted).min(self.capacity);
        if !may_hold(to.saturating_sub(self.held_bytes())) || self.region.make_present(from, to).is_err() {
            return false;
        }
        self.ready.fetch_max(to, Release);
        self.held.fetch_max(to, Relaxed);
        self.present.fetch_max(to, Relaxed);
        true
    }

    /// Bytes of memory held now. Asked for exactly, what the kernel counts; else what was handed out, or more where more
    /// is known to be present. That falls short by less than a page, 4 KiB or, where they are huge, 2 MiB: the rest of the
    /// last one touched. The kernel's own tables (8 bytes for a page) are not counted.
    ///
    /// An image holds none: its pages are the file's, and the kernel takes them when it needs them.
    pub(crate) fn held_bytes(&self) -> usize {
        if IMAGE {
            return 0;
        }
        if self.exact_accounting {
            return self.region.resident_bytes();
        }
        self.allocated().max(self.held.load(Relaxed))
    }

    /// True where the bytes from the region's start on are an image: where there is a header.
    pub(crate) fn has_header(&self) -> bool {
        self.header > 0
    }

    /// The file that the arena lies in, from which nothing is handed out any more.
    pub(crate) fn file(&self) -> Option<SealedFile<'_>> {
        self.region.file(self.allocated())
    }

    /// What was handed out, and all before it.
    ///
    /// # Safety
    /// Nothing may be stored in the arena as long as the result lives.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the region has these bytes, initialised, for the borrow (A4); by the caller, or for an image by A5, they
        // do not change.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast_const(), self.allocated()) }
    }

    /// Stores `bytes`, whole granules, in the header from `at` on, granule by granule; nothing where there is none.
    ///
    /// # Panics
    /// Where they do not lie in the header.
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

    /// The word of the header at `at`, a multiple of a granule; `None` without a header, beyond it, or in an image. It may be
    /// stored to only by those who keep the memtable from being sealed ([`crate::gate`]), and by who seals it.
    #[inline]
    pub(crate) fn header_word(&self, at: usize) -> Option<&AtomicU64> {
        if IMAGE || !at.is_multiple_of(GRANULE_BYTES) || at >= self.header {
            return None;
        }
        // SAFETY: the granule lies in the header, whole granules that the region begins with (A4) and of which nothing is
        // handed out (A1); it is used as an atomic word only, and only here.
        Some(unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) })
    }

    /// Bytes that can be promised, the header left out.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity - self.header
    }

    /// Bytes promised, the header left out.
    pub(crate) fn reserved(&self) -> usize {
        self.reserved.0.load(Relaxed) - self.header
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

    /// The word at `at`, acquired.
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

    /// Asks for the cache line of `at`. Any reference will do: a hint reads nothing.
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
