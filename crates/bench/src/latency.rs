//! How long operations took: recorded in nanoseconds, printed in microseconds as db_bench prints them.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Error, Result};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest time recorded, in nanoseconds; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Significant digits: few enough for the counters in use to stay in the first-level cache.
const DIGITS: u8 = 2;

/// The distribution of one kind of operation's times, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Distribution {
    pub count: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    pub max_us: f64,
}

/// Distributions by operation: `read`, `write`, `seek`.
pub type Distributions = BTreeMap<String, Distribution>;

/// Times of one kind of operation.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// # Errors
    /// None with the bounds above; the histogram's own check is passed on.
    pub fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        histogram.map(Latencies).map_err(|e| Error::invalid_argument(format!("latency histogram: {e}")))
    }

    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(time.as_nanos() as u64);
    }

    /// # Errors
    /// As [`new`](Self::new); all histograms have the same bounds.
    pub fn add(&mut self, other: &Latencies) -> Result<()> {
        self.0.add(&other.0).map_err(|e| Error::invalid_argument(format!("latency histogram: {e}")))
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in microseconds at or below which `percent` of the operations lie.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1000.0
    }

    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1000.0
    }

    pub fn distribution(&self) -> Distribution {
        Distribution {
            count: self.count(),
            p50_us: self.percentile_us(50.0),
            p99_us: self.percentile_us(99.0),
            p999_us: self.percentile_us(99.9),
            p9999_us: self.percentile_us(99.99),
            max_us: self.max_us(),
        }
    }

    /// db_bench's lines, without its buckets.
    pub fn text(&self, operation: &str) -> String {
        let count = self.count();
        let us = |nanos: f64| nanos / 1000.0;
        let min = if count == 0 { 0 } else { self.0.min() };
        let percentiles = [50.0, 75.0, 99.0, 99.9, 99.99].map(|p| format!(" P{p}: {:.2}", self.percentile_us(p)));
        format!(
            "Microseconds per {operation}:\nCount: {count} Average: {:.4}  StdDev: {:.2}\n\
             Min: {:.2}  Median: {:.4}  Max: {:.2}\nPercentiles:{}\n",
            us(self.0.mean()),
            us(self.0.stdev()),
            us(min as f64),
            self.percentile_us(50.0),
            self.max_us(),
            percentiles.concat()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_recorded() -> Result<()> {
        let mut times = Latencies::new()?;
        (1..=1000).for_each(|us| times.record(Duration::from_micros(us)));
        times.record(Duration::from_secs(90_000));
        assert!((times.percentile_us(50.0) - 500.0).abs() < 6.0, "{}", times.percentile_us(50.0));
        assert!((times.max_us() - 3.6e9).abs() < 0.05e9);
        let text = times.text("write");
        assert!(text.starts_with("Microseconds per write:\nCount: 1001 Average: "), "{text}");
        assert!(text.contains("Percentiles: P50: 50") && text.contains(" P99.99: "), "{text}");
        Ok(())
    }
}
