//! Statistics: counters and distributions, recorded by many threads at once.
//!
//! Each metric has one copy per shard, and a thread records in one shard: a relaxed add on a cache line with few
//! writers. Reads sum the shards. Users hold `Option<Arc<Statistics>>`; with `None` nothing is counted or timed. No
//! clock here: callers measure.

mod counters;
mod histogram;
mod sample;
mod ticker;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

pub use counters::Counters;
pub use histogram::Distribution;
pub use sample::{RareDistribution, SAMPLED_ONE_IN, is_sampled};
pub use ticker::{Histogram, Ticker};

use histogram::Buckets;

/// A power of two. Each shard takes about 20 KiB.
const SHARDS: usize = 16;

/// Aligned to two cache lines: processors fetch lines in pairs.
#[repr(align(128))]
struct Shard {
    tickers: [AtomicU64; Ticker::COUNT],
    histograms: [Buckets; Histogram::COUNT],
}

impl Default for Shard {
    fn default() -> Self {
        Shard {
            tickers: [const { AtomicU64::new(0) }; Ticker::COUNT],
            histograms: std::array::from_fn(|_| Buckets::default()),
        }
    }
}

thread_local! {
    /// This thread's shard, in every `Statistics`; `usize::MAX` before its first record.
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Assigns shards to threads round-robin.
static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

fn this_threads_shard() -> usize {
    // During thread teardown the cell is gone; any shard will do.
    SHARD
        .try_with(|cell| {
            let shard = cell.get();
            if shard != usize::MAX {
                return shard;
            }
            let shard = NEXT_SHARD.fetch_add(1, Relaxed) % SHARDS;
            cell.set(shard);
            shard
        })
        .unwrap_or(0)
}

/// All metrics of a database, since it was opened or [`reset`](Self::reset). `Display` prints them in RocksDB's layout.
///
/// Reading sums 16 parts of each metric: some hundred nanoseconds a counter, microseconds a distribution.
pub struct Statistics {
    shards: Box<[Shard]>,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }
}

impl Statistics {
    /// Everything is zero.
    #[doc(hidden)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds to a counter.
    #[doc(hidden)]
    #[inline]
    pub fn add(&self, ticker: Ticker, amount: u64) {
        let shard = self.shards.get(this_threads_shard());
        if let Some(counter) = shard.and_then(|shard| shard.tickers.get(ticker as usize)) {
            counter.fetch_add(amount, Relaxed);
        }
    }

    /// Adds a record to a distribution.
    #[doc(hidden)]
    #[inline]
    pub fn record(&self, histogram: Histogram, value: u64) {
        let shard = self.shards.get(this_threads_shard());
        if let Some(buckets) = shard.and_then(|shard| shard.histograms.get(histogram as usize)) {
            buckets.record(value);
        }
    }

    /// The value of a counter.
    pub fn count(&self, ticker: Ticker) -> u64 {
        let counters = self.shards.iter().filter_map(|shard| shard.tickers.get(ticker as usize));
        counters.fold(0, |sum, counter| sum.wrapping_add(counter.load(Relaxed)))
    }

    /// The value of a counter, which is zero then. Concurrent additions are kept.
    pub fn take(&self, ticker: Ticker) -> u64 {
        let counters = self.shards.iter().filter_map(|shard| shard.tickers.get(ticker as usize));
        counters.fold(0, |sum, counter| sum.wrapping_add(counter.swap(0, Relaxed)))
    }

    /// A copy of a distribution.
    pub fn distribution(&self, histogram: Histogram) -> Distribution {
        let mut total = Distribution::default();
        for buckets in self.shards.iter().filter_map(|shard| shard.histograms.get(histogram as usize)) {
            buckets.add_to(&mut total);
        }
        total
    }

    /// Sets everything to zero. Concurrent records may be kept or lost.
    pub fn reset(&self) {
        for shard in &self.shards {
            shard.tickers.iter().for_each(|counter| counter.store(0, Relaxed));
            shard.histograms.iter().for_each(Buckets::clear);
        }
    }
}

/// RocksDB's layout: one line per ticker, then one per histogram.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &ticker in Ticker::ALL {
            writeln!(f, "{} COUNT : {}", ticker.name(), self.count(ticker))?;
        }
        for &histogram in Histogram::ALL {
            let values = self.distribution(histogram);
            let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| values.percentile(percent));
            let (max, count, sum) = (values.max() as f64, values.count(), values.sum());
            let name = histogram.name();
            writeln!(
                f,
                "{name} P50 : {p50:.6} P95 : {p95:.6} P99 : {p99:.6} P100 : {max:.6} COUNT : {count} SUM : {sum}"
            )?;
        }
        Ok(())
    }
}

/// Adds to a counter if statistics are kept.
#[inline]
pub fn tick(statistics: &Option<Arc<Statistics>>, ticker: Ticker, amount: u64) {
    if let Some(statistics) = statistics {
        statistics.add(ticker, amount);
    }
}

/// Records a value if statistics are kept.
#[inline]
pub fn record(statistics: &Option<Arc<Statistics>>, histogram: Histogram, value: u64) {
    if let Some(statistics) = statistics {
        statistics.record(histogram, value);
    }
}

#[cfg(test)]
mod tests {
    use super::histogram::LIMITS;
    use super::*;

    #[test]
    fn buckets_are_rocksdbs() {
        assert_eq!(LIMITS[..16], [1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580]);
        assert_eq!(LIMITS.last(), Some(&13_000_000_000_000_000_000));
        assert!(LIMITS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn counts_add_up_over_threads() {
        let statistics = Statistics::new();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| (0..100).for_each(|_| statistics.add(Ticker::NumberKeysWritten, 3)));
            }
        });
        assert_eq!(statistics.count(Ticker::NumberKeysWritten), 2 * SHARDS as u64 * 300);
        assert_eq!(statistics.count(Ticker::NumberKeysRead), 0);
        assert_eq!(statistics.take(Ticker::NumberKeysWritten), 2 * SHARDS as u64 * 300);
        assert_eq!(statistics.count(Ticker::NumberKeysWritten), 0);
        statistics.add(Ticker::NumberKeysWritten, 1);
        statistics.reset();
        assert_eq!(statistics.count(Ticker::NumberKeysWritten), 0);
    }

    #[test]
    fn counters_add_up_over_threads() {
        let counters = Counters::<2>::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * SHARDS {
                scope.spawn(|| (0..100).for_each(|_| counters.add([1, 3])));
            }
        });
        assert_eq!(counters.sums(), [2 * SHARDS as u64 * 100, 2 * SHARDS as u64 * 300]);
    }

    #[test]
    fn percentiles_lie_within_their_bucket() {
        let statistics = Statistics::new();
        assert_eq!(statistics.distribution(Histogram::DbGet).percentile(99.0), 0.0);
        (1..=100).for_each(|value| statistics.record(Histogram::DbGet, value));
        let values = statistics.distribution(Histogram::DbGet);
        assert_eq!((values.count(), values.sum(), values.min(), values.max()), (100, 5050, 1, 100));
        assert_eq!(values.average(), 50.5);
        // 34 values lie at or below 34, and 17 in the bucket up to 51.
        assert!((values.percentile(50.0) - 50.0).abs() < 1e-9, "{}", values.percentile(50.0));
        assert_eq!(values.percentile(100.0), 100.0);
        assert!((20.0..40.0).contains(&values.standard_deviation()));
    }

    #[test]
    fn the_largest_value_has_a_bucket() {
        let statistics = Statistics::new();
        statistics.record(Histogram::BytesPerRead, u64::MAX);
        statistics.record(Histogram::BytesPerRead, 0);
        let values = statistics.distribution(Histogram::BytesPerRead);
        assert_eq!((values.count(), values.max(), values.min()), (2, u64::MAX, 0));
    }

    #[test]
    fn text_has_rocksdbs_layout() {
        let statistics = Arc::new(Statistics::new());
        let kept = Some(statistics.clone());
        tick(&kept, Ticker::BlockCacheMiss, 7);
        record(&kept, Histogram::DbGet, 2);
        tick(&None, Ticker::BlockCacheMiss, 1);
        let text = statistics.to_string();
        assert!(text.starts_with("rocksdb.block.cache.miss COUNT : 7\nrocksdb.block.cache.hit COUNT : 0\n"));
        let line =
            "rocksdb.db.get.micros P50 : 2.000000 P95 : 2.000000 P99 : 2.000000 P100 : 2.000000 COUNT : 1 SUM : 2";
        assert!(text.lines().any(|found| found == line), "{text}");
    }

    #[test]
    fn names_are_unique_and_found() {
        for &ticker in Ticker::ALL {
            assert_eq!(Ticker::by_name(ticker.name()), Some(ticker));
        }
        for &histogram in Histogram::ALL {
            assert_eq!(Histogram::by_name(histogram.name()), Some(histogram));
        }
    }
}
