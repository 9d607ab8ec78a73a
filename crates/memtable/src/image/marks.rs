//! The reached granules of an image. Every granule is part of one block at most (A1), so nothing is reached twice, and
//! every chain of references ends.

use base::Result;

use super::view::wrong;
use crate::arena::GRANULE_BYTES;

const GRANULE: u64 = GRANULE_BYTES as u64;

/// A bit for each granule of an image.
struct Bits(Vec<u64>);

impl Bits {
    fn new(granules: u64) -> Self {
        Bits(vec![0; granules.div_ceil(64) as usize])
    }

    /// Sets the bits from `first` up to `end`; false if one was set already, or lies beyond the image.
    fn set(&mut self, first: u64, end: u64) -> bool {
        let mut at = first;
        while at < end {
            let low = at % 64;
            let count = (64 - low).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << low;
            match self.0.get_mut((at / 64) as usize) {
                Some(word) if *word & mask == 0 => *word |= mask,
                _ => return false,
            }
            at += count;
        }
        true
    }

    fn has(&self, bit: u64) -> bool {
        self.0.get((bit / 64) as usize).is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }
}

pub(super) struct Marks {
    taken: Bits,
    leaves: Bits,
}

impl Marks {
    /// For an image of `bytes`. No reference may lead into its first `head_bytes`.
    pub(super) fn new(bytes: u64, head_bytes: u64) -> Result<Self> {
        let granules = bytes.div_ceil(GRANULE);
        let mut marks = Marks { taken: Bits::new(granules), leaves: Bits::new(granules) };
        marks.take(0, head_bytes, "the head")?;
        Ok(marks)
    }

    /// Marks the bytes from `at` to `end`, rounded up to granules, as `what`.
    ///
    /// # Errors
    /// `Corruption`: some of them are marked already, or `at` is not aligned to granules.
    pub(super) fn take(&mut self, at: u64, end: u64, what: &str) -> Result<()> {
        if !at.is_multiple_of(GRANULE) {
            return Err(wrong(at, format!("{what} is not aligned to {GRANULE} bytes")));
        }
        if !self.taken.set(at / GRANULE, end.div_ceil(GRANULE)) {
            return Err(wrong(at, format!("{what} overlaps what was reached before")));
        }
        Ok(())
    }

    /// Marks the start of a leaf.
    pub(super) fn record_leaf(&mut self, at: u64) {
        self.leaves.set(at / GRANULE, at / GRANULE + 1);
    }

    /// True if a reached leaf begins at `at`.
    pub(super) fn is_leaf(&self, at: u64) -> bool {
        at.is_multiple_of(GRANULE) && self.leaves.has(at / GRANULE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_cannot_be_taken_again() {
        for (first, end) in [(0u64, 8), (8, 520), (504, 512), (512, 520), (1000, 4000), (63 * 8, 65 * 8)] {
            let mut marks = Marks::new(4096, 0).expect("nothing taken");
            marks.take(first, end, "a block").expect("free");
            for at in (0..4096).step_by(8) {
                let overlaps = (first..end).contains(&at);
                assert_eq!(marks.taken.has(at / 8), overlaps, "{first} {end} {at}");
            }
            assert!(marks.take(first.saturating_sub(8), end, "another").is_err());
            assert!(marks.take(end - 8, 4096, "another").is_err());
        }
    }

    #[test]
    fn nothing_is_taken_beyond_the_image_or_between_granules() {
        let mut marks = Marks::new(64, 8).expect("fits");
        assert!(marks.take(0, 8, "the head again").is_err());
        assert!(marks.take(12, 20, "between").is_err());
        assert!(marks.take(4096, 4104, "beyond").is_err());
        marks.take(8, 13, "rounded").expect("free");
        assert!(marks.taken.has(1) && !marks.taken.has(2));
    }
}
