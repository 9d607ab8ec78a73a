//! A bloom filter over whole user keys without timestamps, filled and read concurrently. Lookups of absent keys cost
//! one cache line: all bits of a key lie in one line of 512.

use std::sync::atomic::Ordering::Relaxed;

use base::{Error, Result, UserOrder};
use xxhash_rust::xxh3::xxh3_64;

use crate::arena::{Arena, GRANULE_BYTES, Ref};

const LINE_BYTES: usize = 64;
const LINE_WORDS: usize = LINE_BYTES / GRANULE_BYTES;

/// Bits set for a key. Six probes in one line give about 1 false answer in 50 at 10 bits a key.
const PROBES: u32 = 6;

/// The filter's largest share of a memtable, as in RocksDB.
const RATIO_MAX: f64 = 0.25;

pub(crate) struct Bloom {
    order: UserOrder,
    bits: Ref,
    /// Above zero and at most 2^32.
    lines: u64,
}

impl Bloom {
    /// A filter of `ratio` of `capacity_bytes`, allocated from `arena`. `None` if the ratio is too small for one line,
    /// or if equal keys can differ in their bytes and so in their hashes.
    ///
    /// # Errors
    /// `InvalidArgument`: a ratio outside 0 to 0.25, or the arena is too small.
    pub(crate) fn new(arena: &Arena, order: &UserOrder, capacity_bytes: usize, ratio: f64) -> Result<Option<Bloom>> {
        if !(0.0..=RATIO_MAX).contains(&ratio) {
            return Err(Error::invalid_argument(format!(
                "memtable bloom ratio {ratio} is not between 0 and {RATIO_MAX}"
            )));
        }
        let lines = (capacity_bytes as f64 * ratio) as usize / LINE_BYTES;
        if lines == 0 || order.equal_keys_can_differ() {
            return Ok(None);
        }
        // One line more: the arena aligns only to granules, and lines must be cache lines.
        let bytes = (lines + 1) * LINE_BYTES;
        if !arena.try_reserve(bytes) {
            return Err(Error::invalid_argument(format!(
                "no room for a bloom filter of {bytes} bytes in the memtable"
            )));
        }
        let start = arena.allocate(bytes);
        let bits = Ref::from_raw(start.raw().next_multiple_of(LINE_WORDS as u32));
        Ok(Some(Bloom { order: order.clone(), bits, lines: lines as u64 }))
    }

    /// Adds a key. Relaxed is enough: publishing the entry publishes the bits.
    pub(crate) fn add<const IMAGE: bool>(&self, arena: &Arena<IMAGE>, user_key: &[u8]) {
        let hash = self.hash(user_key);
        for (word, mask) in self.probes(hash) {
            // SAFETY: probes lie in the filter's allocation (A1), whose granules are atomic words to everyone.
            let word = unsafe { arena.word(word) };
            if word.load(Relaxed) & mask == 0 {
                word.fetch_or(mask, Relaxed);
            }
        }
    }

    pub(crate) fn may_contain<const IMAGE: bool>(&self, arena: &Arena<IMAGE>, user_key: &[u8]) -> bool {
        let hash = self.hash(user_key);
        self.probes(hash).all(|(word, mask)| {
            // SAFETY: as in `add`.
            unsafe { arena.word(word) }.load(Relaxed) & mask != 0
        })
    }

    fn hash(&self, user_key: &[u8]) -> u64 {
        xxh3_64(self.order.strip_timestamp(user_key))
    }

    /// The line from the upper half of the hash; nine bits a probe from the lower, spread by a multiplication.
    fn probes(&self, hash: u64) -> impl Iterator<Item = (Ref, u64)> {
        let line = ((hash >> 32) * self.lines) >> 32;
        let start = self.bits.forward(line as usize * LINE_WORDS);
        let spread = u64::from(hash as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (0..PROBES).map(move |probe| {
            let bit = (spread >> (64 - 9 * (probe + 1))) & 511;
            (start.forward((bit / 64) as usize), 1 << (bit % 64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_forgotten_and_few_are_invented() {
        let arena = Arena::new(1 << 20).expect("maps");
        let bloom = Bloom::new(&arena, &UserOrder::Bytewise, 1 << 20, 0.0125).expect("fits").expect("asked for");
        let keys = 10_000u32; // about 10 bits each
        for key in 0..keys {
            bloom.add(&arena, &key.to_be_bytes());
        }
        assert!((0..keys).all(|key| bloom.may_contain(&arena, &key.to_be_bytes())));
        let invented = (keys..2 * keys).filter(|key| bloom.may_contain(&arena, &key.to_be_bytes())).count();
        assert!(invented < keys as usize / 25, "{invented} false answers");
    }

    #[test]
    fn ratios_that_make_no_sense_are_refused() {
        let arena = Arena::new(1 << 20).expect("maps");
        for ratio in [-0.1, 0.3, f64::NAN] {
            assert!(Bloom::new(&arena, &UserOrder::Bytewise, 1 << 20, ratio).is_err());
        }
        assert!(Bloom::new(&arena, &UserOrder::Bytewise, 1 << 20, 0.0).expect("valid").is_none());
        assert!(Bloom::new(&arena, &UserOrder::Bytewise, 1 << 30, 0.25).is_err(), "more than the arena has");
    }
}
