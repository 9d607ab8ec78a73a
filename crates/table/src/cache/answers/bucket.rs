//! A bucket of the index: counts of lookups, and positions of answers. One cache line.
//!
//! The counts are four entries, each a fingerprint and a count. A lookup counts its key's entry up. A key without
//! an entry takes one with count 0, or else counts one down. So a key keeps its entry while it comes more often than
//! the keys beside it, and keys met once displace nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts go up to this number.
const COUNT_MAX: u64 = 15;
/// Earlier lookups that make a key hot.
const HOT_COUNT: u64 = 4;
/// The lowest bit of each entry: 4 bits of count below 12 bits of fingerprint.
const ONES: u64 = 0x0001_0001_0001_0001;
const TOPS: u64 = ONES << 15;
const PRINTS: u64 = ONES * 0xfff0;
const COUNTS: u64 = ONES * COUNT_MAX;

/// A slot is a tag of 16 bits over a position. 0 is an empty one.
const POSITION_BITS: u32 = 48;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
/// Positions end there: after 2 PiB of answers no more are kept.
pub(super) const POSITION_MAX: u64 = POSITION;

#[derive(Default)]
#[repr(align(64))]
pub(super) struct Bucket {
    /// As many entries as answers fit the bucket's part of the log: keys that are hot together find room together.
    counts: AtomicU64,
    slots: [AtomicU64; 7],
}

impl Bucket {
    /// Counts a lookup of the key with this hash. True if the key is hot. A count lost between two threads only delays
    /// a decision.
    #[inline]
    pub(super) fn count(&self, hash: u64) -> bool {
        let before = self.counts.load(Ordering::Relaxed);
        let print = (hash >> 48) & 0xfff0;
        let differ = (before & PRINTS) ^ (print * ONES);
        let equal = differ.wrapping_sub(ONES) & !differ & TOPS;
        if equal != 0 {
            let at = equal.trailing_zeros() & !15;
            let count = (before >> at) & COUNT_MAX;
            if count < COUNT_MAX {
                self.counts.store(before + (1 << at), Ordering::Relaxed);
            }
            return count >= HOT_COUNT;
        }
        let counts = before & COUNTS;
        let free = counts.wrapping_sub(ONES) & !counts & TOPS;
        let after = if free == 0 {
            before - (1 << (((hash >> 44) & 3) * 16))
        } else {
            let at = free.trailing_zeros() & !15;
            (before & !(0xffff << at)) | ((print | 1) << at)
        };
        self.counts.store(after, Ordering::Relaxed);
        false
    }

    /// Positions where the answer may be.
    #[inline]
    pub(super) fn positions(&self, hash: u64) -> impl Iterator<Item = u64> {
        let slots = self.slots.iter().map(|slot| slot.load(Ordering::Acquire));
        slots.filter(move |slot| slot >> POSITION_BITS == tag(hash)).map(|slot| slot & POSITION)
    }

    /// Notes the position of an answer, in place of an answer with the same tag, or of the oldest one.
    pub(super) fn place(&self, hash: u64, at: u64) {
        let age = |slot: &&AtomicU64| {
            let slot = slot.load(Ordering::Relaxed);
            (slot >> POSITION_BITS != tag(hash) || slot & POSITION == 0, slot & POSITION)
        };
        if let Some(oldest) = self.slots.iter().min_by_key(age) {
            oldest.store((tag(hash) << POSITION_BITS) | at, Ordering::Release);
        }
    }
}

/// Bits of the hash beside those of the bucket's number and of the fingerprint.
fn tag(hash: u64) -> u64 {
    (hash >> 32) & 0xffff
}
