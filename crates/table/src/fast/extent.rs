//! Which extents' checksums were compared since the table was opened. One bit each: a read that finds it set pays a load.

use std::sync::atomic::{AtomicU64, Ordering};

use base::{Result, coding};

use super::FastTable;
use super::footer::EXTENT_BYTES;
use crate::extents;

const WORD_BITS: usize = u64::BITS as usize;

/// A bit for each extent, set once its checksum was found right. Relaxed: a reader that misses a bit compares again.
pub(super) struct CheckedExtents(Box<[AtomicU64]>);

impl CheckedExtents {
    pub(super) fn new(covered_bytes: u64) -> Self {
        let extents = (covered_bytes as usize).div_ceil(EXTENT_BYTES);
        CheckedExtents((0..extents.div_ceil(WORD_BITS)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn is_checked(&self, extent: usize) -> bool {
        let bit = 1 << (extent % WORD_BITS);
        self.0.get(extent / WORD_BITS).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn set_checked(&self, extent: usize) {
        if let Some(word) = self.0.get(extent / WORD_BITS) {
            word.fetch_or(1 << (extent % WORD_BITS), Ordering::Relaxed);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.len() * size_of::<AtomicU64>()
    }
}

impl FastTable {
    /// Compares the checksums of the extents that `start .. end` touches, each once. The first comes first: where it is
    /// right, so is a length that was read there.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub(super) fn check_extents(&self, start: usize, end: usize) -> Result<()> {
        let unchecked = (start / EXTENT_BYTES..end.div_ceil(EXTENT_BYTES)).find(|at| !self.extents.is_checked(*at));
        match unchecked {
            None => Ok(()),
            Some(first) => self.compare_from(first, end),
        }
    }

    #[cold]
    fn compare_from(&self, first: usize, end: usize) -> Result<()> {
        for extent in (first..end.div_ceil(EXTENT_BYTES)).filter(|at| !self.extents.is_checked(*at)) {
            self.compare_extent(extent)?;
            self.extents.set_checked(extent);
        }
        Ok(())
    }

    /// Compares an extent's checksum, whatever was found before.
    pub(super) fn compare_extent(&self, extent: usize) -> Result<()> {
        let covered_end = self.footer.checksums_at() as usize;
        let at = extent * EXTENT_BYTES;
        let bytes = self.bytes().get(at..covered_end.min(at + EXTENT_BYTES));
        let stored = self.bytes().get(covered_end + 4 * extent..).and_then(coding::decode_u32);
        let (Some(bytes), Some(stored)) = (bytes, stored) else { return Err(self.damaged("an extent", at)) };
        extents::check(bytes, at as u64, stored).map_err(|e| e.at_path(&self.path))
    }
}
