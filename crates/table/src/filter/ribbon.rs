//! RocksDB's Ribbon filter (Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and Xor"). Read only.
//! A key's hash gives a 128-bit coefficient row and an expected result. The key matches if the row times the stored
//! solution equals the result.
//!
//! Layout: 16-byte segments, then the metadata: `fe`, seed, number of blocks (u24). A block is 128 slots of the
//! solution, one segment per result bit. The first blocks have one bit less, so any number of segments fits.

/// First metadata byte, as signed -2.
pub(super) const MARKER: u8 = 0xfe;

const SEGMENT_BYTES: usize = 16;
/// Slots in a block, and coefficients in a row.
const BLOCK_SLOTS: u64 = 128;
/// Result bits of a key; segments beyond are unused.
const COLUMNS_MAX: u32 = 32;

const REHASH_FACTOR: u64 = 0x6193_d459_236a_3a0d;
const COEFFICIENT_FACTOR: u64 = 0xc28f_8282_2b65_0bed;
const COEFFICIENT_XOR: u64 = 0xc367_844a_6e52_731d;
const SEED_FACTOR: u64 = 0xc782_19a2_3eea_dd03;
const SEED_MASK: u64 = 0xf0f0_f0f0_f0f0_f0f0;

/// Parameters to probe a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ribbon {
    seed: u64,
    /// Slots at which a row may start.
    starts: u64,
    /// Segments per block from `upper_start` on; one fewer before.
    upper_columns: u32,
    upper_start: u32,
}

impl Ribbon {
    /// `metadata`: the bytes after the marker. `segment_bytes`: the length of the segments.
    pub(super) fn parse(metadata: [u8; 4], segment_bytes: usize) -> Option<Ribbon> {
        let [ordinal_seed, low, middle, high] = metadata;
        let blocks = u32::from_le_bytes([low, middle, high, 0]);
        let segments = u32::try_from(segment_bytes / SEGMENT_BYTES).ok()?;
        // Fewer than two blocks are never written: one start for all keys would not spread them.
        if blocks < 2 || segments == 0 {
            return None;
        }
        let (mut upper_columns, mut upper_start) = (segments.div_ceil(blocks), 0);
        if upper_columns > COLUMNS_MAX {
            upper_columns = COLUMNS_MAX;
        } else {
            upper_start = u32::try_from(u64::from(upper_columns) * u64::from(blocks) - u64::from(segments)).ok()?;
        }
        Some(Ribbon {
            seed: raw_seed(ordinal_seed),
            starts: (u64::from(blocks) - 1) * BLOCK_SLOTS + 1,
            upper_columns,
            upper_start,
        })
    }

    pub(super) fn may_match(self, filter: &[u8], hash: u64) -> bool {
        let hash = (hash ^ self.seed).wrapping_mul(REHASH_FACTOR);
        let start = ((u128::from(hash) * u128::from(self.starts)) >> 64) as u64;
        let block = (start / BLOCK_SLOTS) as u32;
        let shift = (start % BLOCK_SLOTS) as u32;
        let columns = (self.upper_columns - u32::from(block < self.upper_start)) as usize;
        let first = block as usize * self.upper_columns as usize - block.min(self.upper_start) as usize;

        let mixed = hash.wrapping_mul(COEFFICIENT_FACTOR);
        let row = (u128::from(mixed) << 64 | u128::from(mixed ^ COEFFICIENT_XOR)) | 1;
        // The row spans two blocks unless it starts with a block; then the part in the second is empty.
        let left = row << shift;
        let right = row.checked_shr(128 - shift).unwrap_or(0);
        let expected = mixed.swap_bytes() as u32;

        let (segments, _) = filter.as_chunks::<SEGMENT_BYTES>();
        for column in 0..columns {
            let Some(&near) = segments.get(first + column) else { return true };
            let mut product = u128::from_le_bytes(near) & left;
            if right != 0 {
                let Some(&far) = segments.get(first + columns + column) else { return true };
                product ^= u128::from_le_bytes(far) & right;
            }
            if product.count_ones() & 1 != (expected >> column) & 1 {
                return false;
            }
        }
        true
    }
}

/// Spreads a builder's ordinal seed, counted from 0, over the 32 bits kept.
fn raw_seed(ordinal: u8) -> u64 {
    let spread = u64::from(ordinal).wrapping_mul(SEED_FACTOR);
    (spread ^ ((spread & SEED_MASK) >> 4)) & 0xffff_ffff
}
