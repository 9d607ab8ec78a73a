//! Histograms with RocksDB's buckets and percentile interpolation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const BUCKETS: usize = 109;

/// Each bucket's largest value: 1, 2, then factors of 1.5 cut to two digits (3, 4, 6, 10, 15, ... 170, ...), up to 64
/// bits.
pub(super) static LIMITS: [u64; BUCKETS] = limits();

const fn limits() -> [u64; BUCKETS] {
    let mut limits = [1u64; BUCKETS];
    let (mut at, mut exact) = (1, 2.0f64);
    while at < BUCKETS {
        #[expect(clippy::indexing_slicing, reason = "at < BUCKETS, checked by the loop at compile time")]
        {
            limits[at] = two_digits(exact as u64);
        }
        exact *= 1.5;
        at += 1;
    }
    limits
}

/// Cuts a number above 109 to its two leading digits.
const fn two_digits(mut number: u64) -> u64 {
    let mut unit = 1;
    while number / 10 > 10 {
        number /= 10;
        unit *= 10;
    }
    number * unit
}

/// One shard's part of a distribution. The count is the buckets' sum.
pub(super) struct Buckets {
    counts: [AtomicU64; BUCKETS],
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets {
            counts: [const { AtomicU64::new(0) }; BUCKETS],
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }
}

impl Buckets {
    #[inline]
    pub(super) fn record(&self, value: u64) {
        let at = LIMITS.partition_point(|&limit| limit < value).min(BUCKETS - 1);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Relaxed);
        }
        self.sum.fetch_add(value, Relaxed);
        // Loads first: a new extreme is rare, and a load leaves the line shared.
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
        if value < self.min.load(Relaxed) {
            self.min.fetch_min(value, Relaxed);
        }
    }

    pub(super) fn clear(&self) {
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
        self.sum.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    pub(super) fn add_to(&self, total: &mut Distribution) {
        for (sum, count) in total.counts.iter_mut().zip(&self.counts) {
            *sum += count.load(Relaxed);
        }
        total.sum = total.sum.wrapping_add(self.sum.load(Relaxed));
        total.min = total.min.min(self.min.load(Relaxed));
        total.max = total.max.max(self.max.load(Relaxed));
    }
}

/// A copy of a distribution. With concurrent writers its parts can differ by a few records.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: [u64; BUCKETS],
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution { counts: [0; BUCKETS], sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Distribution {
    /// Number of records.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bucket's largest value and its number of records, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        LIMITS.iter().copied().zip(self.counts)
    }

    /// Sum of all records.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest record; 0 without records.
    pub fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min }
    }

    /// The largest record; 0 without records.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 without records.
    pub fn average(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// The `percent` percentile, interpolated linearly within its bucket.
    pub fn percentile(&self, percent: f64) -> f64 {
        let threshold = self.count() as f64 * percent / 100.0;
        let (mut below, mut left) = (0u64, 0u64);
        for (&count, &right) in self.counts.iter().zip(&LIMITS) {
            if count > 0 && (below + count) as f64 >= threshold {
                let part = (threshold - below as f64) / count as f64;
                let value = left as f64 + (right - left) as f64 * part;
                // Not `clamp`: it panics if a racing writer leaves min above max.
                return value.max(self.min() as f64).min(self.max as f64);
            }
            below += count;
            left = right;
        }
        self.max as f64
    }

    /// Estimated from the buckets' middles; 0 if all values are equal.
    pub fn standard_deviation(&self) -> f64 {
        if self.min() == self.max() {
            return 0.0;
        }
        let (count, average) = (self.count(), self.average());
        let mut left = 0u64;
        let mut squares = 0.0;
        for (&count, &right) in self.counts.iter().zip(&LIMITS) {
            let middle = (left as f64 + right as f64) / 2.0;
            squares += count as f64 * (middle - average).powi(2);
            left = right;
        }
        (squares / count as f64).sqrt()
    }
}
