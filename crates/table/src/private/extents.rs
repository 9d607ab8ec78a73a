//! Checksums of private tables: one per extent of the contents, and one for the tail with these checksums. All are
//! masked crc32c.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::{decode_u32, put_u32};
use base::{Error, Result};

pub(crate) fn checksum(extent: &[u8]) -> u32 {
    mask(crc32c(extent))
}

/// # Errors
/// `Corruption`, with the extent's offset: its checksum differs from `stored`.
pub(crate) fn check(extent: &[u8], at: u64, stored: u32) -> Result<()> {
    let computed = checksum(extent);
    if computed == stored {
        return Ok(());
    }
    let len = extent.len();
    let message = format!("{len} bytes have checksum {computed:#010x}, stored is {stored:#010x}");
    Err(Error::corruption(message).at_offset(at))
}

/// # Errors
/// `Corruption`: the checksum of `covered` differs from `stored`, the footer's.
pub(crate) fn check_tail(covered: &[u8], stored: u32) -> Result<()> {
    let computed = checksum(covered);
    if computed == stored {
        return Ok(());
    }
    Err(Error::corruption(format!("the table's tail has checksum {computed:#010x}, its footer says {stored:#010x}")))
}

/// Computes the extent checksums of bytes added piece by piece.
pub(crate) struct ExtentSums {
    extent_bytes: usize,
    /// Checksum of the current extent.
    crc: u32,
    filled: usize,
    /// In their stored form.
    sums: Vec<u8>,
}

impl ExtentSums {
    pub(crate) fn new(extent_bytes: usize) -> Self {
        ExtentSums { extent_bytes, crc: 0, filled: 0, sums: Vec::new() }
    }

    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(self.extent_bytes - self.filled));
            self.crc = crc32c_append(self.crc, piece);
            self.filled += piece.len();
            bytes = rest;
            if self.filled == self.extent_bytes {
                self.end_extent();
            }
        }
    }

    fn end_extent(&mut self) {
        put_u32(&mut self.sums, mask(self.crc));
        (self.crc, self.filled) = (0, 0);
    }

    /// All checksums, four bytes each.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_extent();
        }
        self.sums
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.sums.capacity()
    }
}

const WORD_BITS: usize = u64::BITS as usize;

/// Bitmap of the verified extents of an open table: reading a verified extent costs one load. Relaxed: a reader missing
/// a bit verifies again.
pub(crate) struct CheckedExtents {
    /// Extents have `1 << shift` bytes.
    shift: u32,
    /// Bytes covered by extents, from the start of the file; their checksums follow.
    covered_bytes: usize,
    words: Box<[AtomicU64]>,
}

impl CheckedExtents {
    pub(crate) fn new(extent_bytes: usize, covered_bytes: u64) -> Self {
        let covered_bytes = covered_bytes as usize;
        debug_assert!(extent_bytes.is_power_of_two(), "{extent_bytes}");
        let words = covered_bytes.div_ceil(extent_bytes).div_ceil(WORD_BITS);
        CheckedExtents {
            shift: extent_bytes.trailing_zeros(),
            covered_bytes,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    fn is_checked(&self, extent: usize) -> bool {
        let bit = 1 << (extent % WORD_BITS);
        self.words.get(extent / WORD_BITS).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Verifies the extents touched by `range`, each once. `file` is the whole file.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub(crate) fn check(&self, file: &[u8], range: Range<usize>) -> Result<()> {
        let end = self.extents_of(range.end);
        match (range.start >> self.shift..end).find(|extent| !self.is_checked(*extent)) {
            None => Ok(()),
            Some(first) => self.compare_from(file, first..end),
        }
    }

    #[cold]
    fn compare_from(&self, file: &[u8], extents: Range<usize>) -> Result<()> {
        for extent in extents.filter(|extent| !self.is_checked(*extent)) {
            self.compare(file, extent)?;
            if let Some(word) = self.words.get(extent / WORD_BITS) {
                word.fetch_or(1 << (extent % WORD_BITS), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Verifies all extents, even those verified before.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn compare_all(&self, file: &[u8]) -> Result<()> {
        (0..self.extents_of(self.covered_bytes)).try_for_each(|extent| self.compare(file, extent))
    }

    /// Number of extents in the first `bytes` bytes.
    #[inline]
    fn extents_of(&self, bytes: usize) -> usize {
        bytes.div_ceil(1 << self.shift)
    }

    fn compare(&self, file: &[u8], extent: usize) -> Result<()> {
        let at = extent << self.shift;
        let bytes = file.get(at..self.covered_bytes.min(at + (1 << self.shift)));
        let stored = file.get(self.covered_bytes + 4 * extent..).and_then(decode_u32);
        let (Some(bytes), Some(stored)) = (bytes, stored) else {
            return Err(Error::corruption("an extent without a checksum").at_offset(at as u64));
        };
        check(bytes, at as u64, stored)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.len() * size_of::<AtomicU64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_have_the_checksums_of_their_extents() {
        let bytes: Vec<u8> = (0..1000).map(|i| (i * 7) as u8).collect();
        for piece in [1, 3, 64, 100, 999, 1000] {
            for len in [0, 1, 63, 64, 65, 128, 1000] {
                let mut sums = ExtentSums::new(64);
                bytes[..len].chunks(piece).for_each(|piece| sums.add(piece));
                let expected: Vec<u8> = bytes[..len].chunks(64).flat_map(|e| checksum(e).to_le_bytes()).collect();
                assert_eq!(sums.finish(), expected, "{piece} {len}");
            }
        }
    }
}
