//! RocksDB's cache-local Bloom filter: every key sets its bits within one 64-byte line. Layout: the lines, then the
//! metadata: `ff`, sub-implementation `00`, number of probes (low five bits), two zero bytes.

use super::METADATA_BYTES;
use super::xxph3::xxph3_64;

/// First metadata byte, as signed -1.
pub(super) const MARKER: u8 = 0xff;
const LINE_BYTES: usize = 64;
/// The size stays below 4 GiB, in whole lines: line numbers are picked with 32-bit arithmetic.
const FILTER_BYTES_MAX: u64 = 0xffff_ffc0;
/// Steps from one probe to the next.
const PROBE_FACTOR: u32 = 0x9e37_79b9;

/// Collects keys, then writes their filter. Size, probe count and bits equal RocksDB's for the same keys (without its
/// `optimize_filters_for_memory`).
#[derive(Debug)]
pub struct BloomBuilder {
    millibits_per_key: u64,
    hashes: Vec<u64>,
}

impl BloomBuilder {
    /// `bits_per_key` is clamped to 1 to 100, with three decimals. RocksDB takes less than 0.5 as "no filter"; the
    /// caller handles this case.
    pub fn new(bits_per_key: f64) -> Self {
        let bits = if bits_per_key.is_nan() { 100.0 } else { bits_per_key.clamp(1.0, 100.0) };
        // Nudged upwards, so three-decimal numbers give the same result on every machine.
        let millibits_per_key = (bits * 1000.0 + 0.500_001) as u64;
        BloomBuilder { millibits_per_key, hashes: Vec::new() }
    }

    /// Adds a key or a prefix. Repeats in a row count once.
    pub fn add(&mut self, key: &[u8]) {
        let hash = xxph3_64(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Keys added since the last `finish`.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Size of the result of `finish`, in bytes.
    pub fn filter_bytes(&self) -> usize {
        let bits = (self.hashes.len() as u64).saturating_mul(self.millibits_per_key).div_ceil(1000);
        let bytes = bits.div_ceil(8).min(FILTER_BYTES_MAX);
        (bytes as usize).next_multiple_of(LINE_BYTES) + METADATA_BYTES
    }

    /// The filter of the keys added so far. Empties the builder.
    pub fn finish(&mut self) -> Vec<u8> {
        let probes = probes_for(self.millibits_per_key);
        let mut filter = vec![0; self.filter_bytes()];
        let (lines, _) = filter.as_chunks_mut::<LINE_BYTES>();
        let count = lines.len() as u32;
        for &hash in &self.hashes {
            let Some(line) = lines.get_mut(line_of(hash, count)) else { break };
            set_bits(line, (hash >> 32) as u32, probes);
        }
        self.hashes.clear();
        if let Some(metadata) = filter.last_chunk_mut::<METADATA_BYTES>() {
            *metadata = [MARKER, 0, probes, 0, 0];
        }
        filter
    }
}

/// Parameters to probe a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bloom {
    lines: u32,
    probes: u8,
}

impl Bloom {
    /// `metadata`: the bytes after the marker. `bits_bytes`: the length of the lines.
    pub(super) fn parse(metadata: [u8; 4], bits_bytes: usize) -> Option<Bloom> {
        let [0, block_and_probes, 0, 0] = metadata else { return None };
        let lines = u32::try_from(bits_bytes / LINE_BYTES).ok()?;
        let whole = bits_bytes.is_multiple_of(LINE_BYTES);
        // The top three bits, if set, announce larger lines; no version ever wrote them.
        ((1..=30).contains(&block_and_probes) && whole && lines > 0)
            .then_some(Bloom { lines, probes: block_and_probes })
    }

    #[inline]
    pub(super) fn foresee(self, filter: &[u8], hash: u64) {
        let start = line_of(hash, self.lines) * LINE_BYTES;
        vfs::prefetch(filter, start, start + 1);
    }

    #[inline]
    pub(super) fn may_match(self, filter: &[u8], hash: u64) -> bool {
        let line = filter.as_chunks().0.get(line_of(hash, self.lines));
        line.is_none_or(|line| has_bits(line, (hash >> 32) as u32, self.probes))
    }
}

/// The low half of the hash, scaled to the number of lines.
#[inline]
fn line_of(hash: u64, lines: u32) -> usize {
    (((hash & 0xffff_ffff) * u64::from(lines)) >> 32) as usize
}

#[expect(clippy::indexing_slicing, reason = "a u32 shifted right by 26 is below 64")]
fn set_bits(line: &mut [u8; LINE_BYTES], mut hash: u32, probes: u8) {
    for _ in 0..probes {
        line[(hash >> 26) as usize] |= 1 << ((hash >> 23) & 7);
        hash = hash.wrapping_mul(PROBE_FACTOR);
    }
}

/// Without branches: a probe costs less than a mispredicted early exit.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a u32 shifted right by 26 is below 64")]
fn has_bits(line: &[u8; LINE_BYTES], mut hash: u32, probes: u8) -> bool {
    let mut all = 1;
    for _ in 0..probes {
        all &= line[(hash >> 26) as usize] >> ((hash >> 23) & 7);
        hash = hash.wrapping_mul(PROBE_FACTOR);
    }
    all & 1 != 0
}

/// RocksDB's best probe count for a number of bits: fewer than in theory, because line load varies.
fn probes_for(millibits_per_key: u64) -> u8 {
    /// Largest millibits a key for 1, 2, 3... probes.
    const LIMITS: [u64; 12] = [2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501];
    if let Some(i) = LIMITS.iter().position(|&limit| millibits_per_key <= limit) {
        return i as u8 + 1;
    }
    if millibits_per_key > 50_000 { 24 } else { ((millibits_per_key - 1) / 2000 - 1) as u8 }
}
