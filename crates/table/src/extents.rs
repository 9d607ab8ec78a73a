//! The checksums of private tables: one for each extent of what a table holds, and one for the tail that they are in.
//! All are crc32c, masked.

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::put_u32;
use base::{Error, Result};

pub(crate) fn checksum(extent: &[u8]) -> u32 {
    mask(crc32c(extent))
}

/// # Errors
/// `Corruption`, with the extent's offset: its checksum is not the one stored.
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
/// `Corruption`: what a footer's checksum covers has another one than `stored`.
pub(crate) fn check_tail(covered: &[u8], stored: u32) -> Result<()> {
    let computed = checksum(covered);
    if computed == stored {
        return Ok(());
    }
    Err(Error::corruption(format!("the table's tail has checksum {computed:#010x}, its footer says {stored:#010x}")))
}

/// Makes the checksums of bytes that come piece by piece.
pub(crate) struct ExtentSums {
    extent_bytes: usize,
    /// Of the extent being filled.
    crc: u32,
    filled: usize,
    /// As they are stored.
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
