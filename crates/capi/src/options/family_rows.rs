//! A family's options, by RocksDB's C names and types; Spillway's first.

use std::ffi::{c_double, c_int, c_uchar};

use super::Options;
use crate::boundary::settings::settings;

settings! { Options, "rocksdb_options_";
    write_buffer_size: usize => family.write_buffer_size;
    max_write_buffer_number: c_int => family.max_write_buffer_number;
    min_write_buffer_number_to_merge: c_int => family.min_write_buffer_number_to_merge;
    memtable_prefix_bloom_size_ratio: c_double => family.memtable_prefix_bloom_size_ratio;
    memtable_whole_key_filtering: c_uchar => family.memtable_whole_key_filtering;
    max_sequential_skip_in_iterations: u64 => family.max_sequential_skip_in_iterations;
    compression: c_int => family.compression;
    bottommost_compression: c_int => family.bottommost_compression;
    compaction_style: c_int => family.compaction_style;
    compaction_pri: c_int => family.compaction_pri;
    periodic_compaction_seconds: u64 => family.periodic_compaction_seconds;
    ttl: u64 => family.compaction_ttl_seconds;
    num_levels: c_int => family.num_levels;
    level0_file_num_compaction_trigger: c_int => family.level0_file_num_compaction_trigger;
    level0_slowdown_writes_trigger: c_int => family.level0_slowdown_writes_trigger;
    level0_stop_writes_trigger: c_int => family.level0_stop_writes_trigger;
    target_file_size_base: u64 => family.target_file_size_base;
    target_file_size_multiplier: c_int => family.target_file_size_multiplier;
    max_bytes_for_level_base: u64 => family.max_bytes_for_level_base;
    max_bytes_for_level_multiplier: c_double => family.max_bytes_for_level_multiplier;
    level_compaction_dynamic_level_bytes: c_uchar => family.level_compaction_dynamic_level_bytes;
    read_triggered_compaction_threshold: c_double => family.read_triggered_compaction_threshold;
    max_compaction_bytes: u64 => family.max_compaction_bytes;
    soft_pending_compaction_bytes_limit: usize => family.soft_pending_compaction_bytes_limit;
    hard_pending_compaction_bytes_limit: usize => family.hard_pending_compaction_bytes_limit;
    disable_auto_compactions: c_int | c_uchar => family.disable_auto_compactions;
    optimize_filters_for_hits: c_int | c_uchar => family.optimize_filters_for_hits;
    compression_options_zstd_max_train_bytes: c_int => family.compression_opts.zstd_max_train_bytes;

    arena_block_size: usize = 0;
    blob_compaction_readahead_size: u64 = 0;
    blob_compression_type: c_int = 0;
    blob_file_size: u64 = 256 << 20;
    blob_file_starting_level: c_int = 0;
    blob_gc_age_cutoff: c_double = 0.25;
    blob_gc_force_threshold: c_double = 1.0;
    bloom_locality: u32 = 0;
    compression_options_max_dict_buffer_bytes: u64 = 0;
    compression_options_parallel_threads: c_int = 1;
    compression_options_use_zstd_dict_trainer: c_uchar = 1;
    enable_blob_files: c_uchar = 0;
    enable_blob_gc: c_uchar = 0;
    experimental_mempurge_threshold: c_double = 0.0;
    inplace_update_num_locks: usize = 10_000;
    inplace_update_support: c_uchar = 0;
    max_successive_merges: usize = 0;
    max_write_buffer_size_to_maintain: i64 = 0;
    memtable_avg_op_scan_flush_trigger: u32 = 0;
    memtable_huge_page_size: usize = 0;
    memtable_op_scan_flush_trigger: u32 = 0;
    min_blob_size: u64 = 0;
    min_tombstones_for_range_conversion: u32 = 0;
    prepopulate_blob_cache: c_int = 0;
    report_bg_io_stats: c_int | c_uchar = 0;
}
