//! Properties computed from several tables.

use std::cmp::Ordering;
use std::sync::Arc;

use base::UserOrder;
use base::note;
use table::Properties;

use super::properties::Reported;
use super::stats::short_bytes;
use crate::version::table_file::TableFile;
use base::metrics::{Distribution, Histogram};
use std::fmt::Write;
use table::CacheContents;

/// Bytes of a maximal set of disjoint tables, deepest first: roughly the data left after a full compaction. The less
/// was compacted, the lower the estimate. As RocksDB's.
pub(super) fn live_bytes(source: &Reported<'_>) -> u64 {
    let version = &source.view.version;
    let order = &version.order().user;
    let mut taken: Vec<&Arc<TableFile>> = Vec::new();
    for level in (0..version.num_levels()).rev() {
        let mut more: Vec<&Arc<TableFile>> = Vec::new();
        for file in version.level(level) {
            let others = if level == 0 { &mut taken } else { &mut more };
            if level == 0 {
                if let Some(place) = place_between(order, others, file) {
                    others.insert(place, file);
                }
            } else if place_between(order, &taken, file).is_some() {
                more.push(file); // tables of one level do not overlap
            }
        }
        taken.extend(more);
        taken.sort_by(|a, b| order.compare(a.smallest_user_key(), b.smallest_user_key()));
    }
    taken.iter().map(|file| file.meta.file_bytes).sum()
}

/// The place of a table among sorted ones; `None` if it overlaps one of them.
fn place_between(order: &UserOrder, sorted: &[&Arc<TableFile>], file: &TableFile) -> Option<usize> {
    let ends_before =
        |other: &&Arc<TableFile>| order.compare(other.largest_user_key(), file.smallest_user_key()) == Ordering::Less;
    let place = sorted.partition_point(ends_before);
    let next = sorted.get(place);
    let is_free = next.is_none_or(|next| order.compare(file.largest_user_key(), next.smallest_user_key()).is_lt());
    is_free.then_some(place)
}

/// The properties of tables, added up.
fn added_up<'a>(files: impl Iterator<Item = &'a Arc<TableFile>>) -> String {
    let mut tables: Vec<Properties> = Vec::new();
    for file in files {
        match file.with(|table| Ok(table.properties().clone())) {
            Ok(properties) => tables.push(properties),
            Err(error) => note::warn!(%error, "a table's properties are not counted"),
        }
    }
    let sum = |of: fn(&Properties) -> u64| tables.iter().map(of).sum::<u64>();
    let entries = sum(|table| table.entries);
    let (raw_key_bytes, raw_value_bytes) = (sum(|table| table.raw_key_bytes), sum(|table| table.raw_value_bytes));
    let (data_bytes, index_bytes) = (sum(|table| table.data_bytes), sum(|table| table.index_bytes));
    let (index_partitions, filter_bytes) = (sum(|table| table.index_partitions), sum(|table| table.filter_bytes));
    let user_key_indexes = sum(|table| u64::from(table.index_key_is_user_key));
    let delta_indexes = sum(|table| u64::from(table.index_value_is_delta));
    let average = |bytes: u64| if entries == 0 { 0.0 } else { bytes as f64 / entries as f64 };
    let index = format!("index block size (user-key? {user_key_indexes}, delta-value? {delta_indexes})");
    let mut pairs = vec![
        ("# data blocks", sum(|table| table.data_blocks).to_string()),
        ("# entries", entries.to_string()),
        ("# deletions", sum(|table| table.deletions).to_string()),
        ("# merge operands", sum(|table| table.merge_operands).to_string()),
        ("# range deletions", sum(|table| table.range_deletions).to_string()),
        ("raw key size", raw_key_bytes.to_string()),
        ("raw average key size", format!("{:.6}", average(raw_key_bytes))),
        ("raw value size", raw_value_bytes.to_string()),
        ("raw average value size", format!("{:.6}", average(raw_value_bytes))),
        ("data block size", data_bytes.to_string()),
        (&index, index_bytes.to_string()),
    ];
    if index_partitions > 0 {
        pairs.push(("# index partitions", index_partitions.to_string()));
        pairs.push(("top-level index size", sum(|table| table.top_level_index_bytes).to_string()));
    }
    pairs.push(("filter block size", filter_bytes.to_string()));
    pairs.push(("# entries for filter", sum(|table| table.filter_entries).to_string()));
    pairs.push(("(estimated) table size", (data_bytes + index_bytes + filter_bytes).to_string()));
    pairs.into_iter().map(|(name, value)| format!("{name}={value}; ")).collect()
}

pub(super) fn aggregated(source: &Reported<'_>) -> String {
    added_up(source.view.tables())
}

pub(super) fn aggregated_at(source: &Reported<'_>, level: usize) -> String {
    added_up(source.view.version.level(level).iter())
}

/// Blocks by role. Walks the whole cache.
pub(super) fn cache_entries(source: &Reported<'_>) -> String {
    let cache = &source.core.block_cache;
    let CacheContents { data, index, filter } = table::contents(cache);
    let capacity = cache.capacity() as u64;
    let count = data.entries + index.entries + filter.entries;
    let mut text = format!(
        "Block cache S3FIFOCache@{:p} capacity: {} usage: {} occupancy: {count}\nBlock cache entry stats(count,size,portion):",
        &raw const **cache,
        short_bytes(capacity),
        short_bytes(cache.usage() as u64),
    );
    for (name, blocks) in [("DataBlock", data), ("FilterBlock", filter), ("IndexBlock", index)] {
        if blocks.entries > 0 {
            let percent = 100.0 * blocks.bytes as f64 / (capacity as f64).max(1.0);
            let _ = write!(text, " {name}({},{},{percent}%)", blocks.entries, short_bytes(blocks.bytes));
        }
    }
    text + "\n"
}

/// Table reads of the whole database, timed if statistics are on; not split by level here.
pub(super) fn read_times(source: &Reported<'_>) -> String {
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
