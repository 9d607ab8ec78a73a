//! A few sums, kept even without statistics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{SHARDS, this_threads_shard};

/// Sums with many writers, sharded by thread like [`Statistics`](super::Statistics).
pub struct Counters<const N: usize> {
    shards: Box<[Shard<N>]>,
}

#[repr(align(128))]
struct Shard<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Counters { shards: (0..SHARDS).map(|_| Shard([const { AtomicU64::new(0) }; N])).collect() }
    }
}

impl<const N: usize> Counters<N> {
    /// Adds to each sum.
    #[inline]
    pub fn add(&self, amounts: [u64; N]) {
        if let Some(shard) = self.shards.get(this_threads_shard()) {
            for (sum, amount) in shard.0.iter().zip(amounts) {
                sum.fetch_add(amount, Relaxed);
            }
        }
    }

    /// The sums. Not a consistent snapshot.
    pub fn sums(&self) -> [u64; N] {
        let mut sums = [0u64; N];
        for shard in &self.shards {
            for (sum, part) in sums.iter_mut().zip(&shard.0) {
                *sum = sum.wrapping_add(part.load(Relaxed));
            }
        }
        sums
    }
}
