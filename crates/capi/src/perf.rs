//! `rocksdb_perfcontext_t`: costs of one thread's calls, RocksDB's perf context. A handle stands for the counters of the
//! thread that uses it.

use std::ffi::{c_char, c_int};
use std::fmt::Write;

use spillway::internal::vfs::perf::{self, Metric};

use crate::boundary::reply::Given;
use crate::boundary::{export, handles};

/// Names by RocksDB's numbers in C.
const NUMBERED: &[&str] = &[
    "user_key_comparison_count",
    "block_cache_hit_count",
    "block_read_count",
    "block_read_byte",
    "block_read_time",
    "block_checksum_time",
    "block_decompress_time",
    "get_read_bytes",
    "multiget_read_bytes",
    "iter_read_bytes",
    "internal_key_skipped_count",
    "internal_delete_skipped_count",
    "internal_recent_skipped_count",
    "internal_merge_count",
    "get_snapshot_time",
    "get_from_memtable_time",
    "get_from_memtable_count",
    "get_post_process_time",
    "get_from_output_files_time",
    "seek_on_memtable_time",
    "seek_on_memtable_count",
    "next_on_memtable_count",
    "prev_on_memtable_count",
    "seek_child_seek_time",
    "seek_child_seek_count",
    "seek_min_heap_time",
    "seek_max_heap_time",
    "seek_internal_seek_time",
    "find_next_user_entry_time",
    "write_wal_time",
    "write_memtable_time",
    "write_delay_time",
    "write_pre_and_post_process_time",
    "db_mutex_lock_nanos",
    "db_condition_wait_nanos",
    "merge_operator_time_nanos",
    "read_index_block_nanos",
    "read_filter_block_nanos",
    "new_table_block_iter_nanos",
    "new_table_iterator_nanos",
    "block_seek_nanos",
    "find_table_nanos",
    "bloom_memtable_hit_count",
    "bloom_memtable_miss_count",
    "bloom_sst_hit_count",
    "bloom_sst_miss_count",
    "key_lock_wait_time",
    "key_lock_wait_count",
    "env_new_sequential_file_nanos",
    "env_new_random_access_file_nanos",
    "env_new_writable_file_nanos",
    "env_reuse_writable_file_nanos",
    "env_new_random_rw_file_nanos",
    "env_new_directory_nanos",
    "env_file_exists_nanos",
    "env_get_children_nanos",
    "env_get_children_file_attributes_nanos",
    "env_delete_file_nanos",
    "env_create_dir_nanos",
    "env_create_dir_if_missing_nanos",
    "env_delete_dir_nanos",
    "env_get_file_size_nanos",
    "env_get_file_modification_time_nanos",
    "env_rename_file_nanos",
    "env_link_file_nanos",
    "env_lock_file_nanos",
    "env_unlock_file_nanos",
    "env_new_logger_nanos",
    "number_async_seek",
    "blob_cache_hit_count",
    "blob_read_count",
    "blob_read_byte",
    "blob_read_time",
    "blob_checksum_time",
    "blob_decompress_time",
    "internal_range_del_reseek_count",
    "block_read_cpu_time",
    "internal_merge_point_lookup_count",
];

/// Counted here, without a number in C.
const UNNUMBERED: [Metric; 3] =
    [Metric::BlockCacheIndexHitCount, Metric::BlockCacheFilterHitCount, Metric::GetCpuNanos];

/// The counters of the thread that uses it.
pub struct PerfContext;

handles!(PerfContext);

impl PerfContext {
    /// All metrics as RocksDB's text has them: `name = value, name = value`. Those that are not counted are 0.
    pub fn report(&self, exclude_zero: bool) -> String {
        let numbered = NUMBERED.iter().map(|name| (*name, total_of(name)));
        let all = numbered.chain(UNNUMBERED.map(|metric| (metric.name(), perf::total(metric))));
        let mut report = String::new();
        for (name, total) in all.filter(|(_, total)| *total > 0 || !exclude_zero) {
            let separator = if report.is_empty() { "" } else { ", " };
            let _ = write!(report, "{separator}{name} = {total}"); // a string takes everything
        }
        report
    }
}

/// 0 for a metric that is not counted.
fn total_of(name: &str) -> u64 {
    Metric::ALL.iter().find(|metric| metric.name() == name).map_or(0, |metric| perf::total(*metric))
}

/// Sets the thread's level, by RocksDB's number.
pub fn set_level(level: c_int) {
    perf::set_level(u8::try_from(level).unwrap_or(perf::DISABLED));
}

export! {
    fn rocksdb_set_perf_level(level: c_int) {
        set_level(level);
    }

    fn rocksdb_perfcontext_create() -> Box<PerfContext> {
        Box::new(PerfContext)
    }

    fn rocksdb_perfcontext_destroy(context: Option<Box<PerfContext>>) {
        drop(context);
    }

    fn rocksdb_perfcontext_reset(_context: &mut PerfContext) {
        perf::reset();
    }

    fn rocksdb_perfcontext_report(context: &PerfContext, exclude_zero_counters: bool) -> Given<c_char> {
        Given::text(context.report(exclude_zero_counters))
    }

    fn rocksdb_perfcontext_metric(_context: &PerfContext, metric: c_int) -> u64 {
        let name = usize::try_from(metric).ok().and_then(|number| NUMBERED.get(number));
        name.map_or(0, |name| total_of(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_report() {
        let report = PerfContext.report(false);
        for metric in Metric::ALL {
            let count = report.split(", ").filter(|part| *part == format!("{} = 0", metric.name())).count();
            assert_eq!(count, 1, "{}", metric.name());
        }
        assert_eq!(PerfContext.report(true), "");
    }
}
