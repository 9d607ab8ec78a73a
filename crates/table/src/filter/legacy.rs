//! The Bloom filter of tables below format version 5: 32-bit hashes, bits within one line of the writer's cache. Read
//! only. Layout: the lines, then the number of probes (1-127) and the number of lines (u32).

use super::hash::rocks_hash;

const SEED: u32 = 0xbc9f_1d34;

/// Parameters to probe a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct LegacyBloom {
    lines: u32,
    probes: u8,
    /// A power of two: the writer's cache line size may differ from ours.
    line_bytes: usize,
}

impl LegacyBloom {
    /// `bits_bytes`: the length of the lines.
    pub(super) fn parse(probes: u8, lines: [u8; 4], bits_bytes: usize) -> Option<LegacyBloom> {
        let lines = u32::from_le_bytes(lines);
        let line_bytes = bits_bytes.checked_div(lines as usize)?;
        let fits = line_bytes.is_power_of_two() && bits_bytes.is_multiple_of(lines as usize);
        ((1..=127).contains(&probes) && fits).then_some(LegacyBloom { lines, probes, line_bytes })
    }

    pub(super) fn may_match(self, filter: &[u8], key: &[u8]) -> bool {
        let mut hash = rocks_hash(key, SEED);
        let step = hash.rotate_left(15);
        let start = (hash % self.lines) as usize * self.line_bytes;
        let Some(line) = filter.get(start..start + self.line_bytes) else { return true };
        let mask = self.line_bytes * 8 - 1;
        for _ in 0..self.probes {
            let bit = hash as usize & mask;
            if line.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 0) {
                return false;
            }
            hash = hash.wrapping_add(step);
        }
        true
    }
}
