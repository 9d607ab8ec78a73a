//! Checksums as RocksDB stores them: masked crc32c in WALs, and the five kinds for table blocks.

use xxhash_rust::{xxh3::xxh3_64, xxh32::xxh32, xxh64::xxh64};

use crate::options::ChecksumKind;

/// crc32c, unmasked.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// Extends a crc32c over further bytes.
#[inline]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

const MASK_DELTA: u32 = 0xa282_ead8;

/// A crc stored beside the bytes it covers is masked: a crc over both would degenerate.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Undoes [`mask`].
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

impl ChecksumKind {
    /// The stored checksum of `bytes` followed by the one byte `last` (a block and its compression type).
    pub fn of_block(self, bytes: &[u8], last: u8) -> u32 {
        match self {
            ChecksumKind::None => 0,
            ChecksumKind::Crc32c => mask(crc32c_append(crc32c(bytes), &[last])),
            ChecksumKind::XxHash32 => {
                let mut state = xxhash_rust::xxh32::Xxh32::new(0);
                state.update(bytes);
                state.update(&[last]);
                state.digest()
            }
            ChecksumKind::XxHash64 => {
                let mut state = xxhash_rust::xxh64::Xxh64::new(0);
                state.update(bytes);
                state.update(&[last]);
                state.digest() as u32
            }
            ChecksumKind::Xxh3 => xxh3_modified(bytes, last),
        }
    }

    /// The stored checksum of one contiguous buffer; its last byte stands for the compression type.
    pub fn of_buffer(self, bytes: &[u8]) -> u32 {
        match (self, bytes.split_last()) {
            (ChecksumKind::None, _) => 0,
            (ChecksumKind::Crc32c, _) => mask(crc32c(bytes)),
            (ChecksumKind::XxHash32, _) => xxh32(bytes, 0),
            (ChecksumKind::XxHash64, _) => xxh64(bytes, 0) as u32,
            (ChecksumKind::Xxh3, Some((&last, rest))) => xxh3_modified(rest, last),
            (ChecksumKind::Xxh3, None) => 0,
        }
    }
}

/// RocksDB mixes the last byte in without hashing it.
fn xxh3_modified(bytes: &[u8], last: u8) -> u32 {
    const RANDOM_PRIME: u32 = 0x6b90_83d9;
    (xxh3_64(bytes) as u32) ^ u32::from(last).wrapping_mul(RANDOM_PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_matches_the_published_vectors() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa); // RFC 3720, B.4
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let crc = crc32c(b"foo");
        assert_ne!(mask(crc), crc);
        assert_eq!(unmask(mask(crc)), crc);
    }

    #[test]
    fn a_buffer_is_a_block_whose_type_is_its_last_byte() {
        for kind in [ChecksumKind::Crc32c, ChecksumKind::XxHash32, ChecksumKind::XxHash64, ChecksumKind::Xxh3] {
            assert_eq!(kind.of_buffer(b"block\x04"), kind.of_block(b"block", 4), "{kind:?}");
        }
    }
}
