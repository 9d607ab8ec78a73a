//! What the block cache holds, and how long tables were read, in RocksDB's forms.

use std::fmt::Write;

use base::metrics::{Distribution, Histogram};
use table::CacheContents;

use super::properties::Source;
use super::stats::short_bytes;

/// Blocks by what they are for. Walks the whole cache.
pub(super) fn entries(source: &Source<'_>) -> String {
    let cache = &source.core.block_cache;
    let CacheContents { data, index, filter, reserved_bytes } = table::contents(cache);
    let capacity = cache.capacity() as u64;
    let count = data.entries + index.entries + filter.entries;
    let mut text = format!(
        "Block cache S3FIFOCache@{:p} capacity: {} usage: {} occupancy: {count}\nBlock cache entry stats(count,size,portion):",
        &raw const **cache,
        short_bytes(capacity),
        short_bytes(cache.usage() as u64),
    );
    let roles = [("DataBlock", data.entries, data.bytes), ("FilterBlock", filter.entries, filter.bytes)];
    let more = [("IndexBlock", index.entries, index.bytes), ("Misc", u64::from(reserved_bytes > 0), reserved_bytes)];
    for (name, count, bytes) in roles.into_iter().chain(more).filter(|(_, count, _)| *count > 0) {
        let percent = 100.0 * bytes as f64 / (capacity as f64).max(1.0);
        let _ = write!(text, " {name}({count},{},{percent}%)", short_bytes(bytes));
    }
    text + "\n"
}

/// Reads of tables of the whole database, which are timed where statistics are kept; not told apart by level here.
pub(super) fn read_times(source: &Source<'_>) -> String {
    let mut text = format!("\n** File Read Latency Histogram By Level [{}] **\n", source.family.name());
    if let Some(statistics) = &source.core.context.statistics {
        let times = statistics.distribution(Histogram::SstRead);
        if times.count() > 0 {
            let _ = writeln!(text, "** All levels read latency histogram (micros):\n{}", summary(&times));
        }
    }
    text
}

fn summary(times: &Distribution) -> String {
    let [p50, p75, p99, p999, p9999] = [50.0, 75.0, 99.0, 99.9, 99.99].map(|percent| times.percentile(percent));
    format!(
        "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {}  Median: {p50:.4}  Max: {}\n\
         Percentiles: P50: {p50:.2} P75: {p75:.2} P99: {p99:.2} P99.9: {p999:.2} P99.99: {p9999:.2}\n",
        times.count(),
        times.average(),
        times.standard_deviation(),
        times.min(),
        times.max()
    )
}
