//! Names of RocksDB's options (7.8 to 11.9) that have no effect here, with RocksDB's defaults: a file that sets one to
//! something else is read with a warning.

use crate::error::Result;
use crate::options::string;
use crate::options::tree::{Content, Node};

/// An option that is known and not honoured.
#[derive(Debug)]
pub struct Unhonoured {
    pub name: &'static str,
    /// RocksDB's defaults over its versions. Empty where the value means nothing without another option that is warned
    /// about, or where the default depends on the machine.
    pub defaults: &'static [&'static str],
}

impl Unhonoured {
    /// True where `text` says what RocksDB does anyway.
    pub fn is_default(&self, text: &str) -> bool {
        self.defaults.is_empty() || self.defaults.iter().any(|default| says_the_same(default, text))
    }
}

/// Numbers are compared as numbers, and the members of a group one by one: versions differ in which they write.
fn says_the_same(default: &str, text: &str) -> bool {
    if let (Ok(a), Ok(b)) = (default.parse::<f64>(), text.parse::<f64>()) {
        return a == b;
    }
    let (true, Ok(known), Ok(given)) = (text.contains('='), string::pairs(default), string::pairs(text)) else {
        return default == text;
    };
    given.iter().all(|pair| known.contains(pair))
}

/// Refuses parameters of the class `title` that are neither in `own` nor in `unhonoured`, and warns of the latter where
/// they say something that is not done anyway.
///
/// # Errors
/// `InvalidArgument`, with the place.
pub fn check_params(
    title: &str,
    params: &[Node],
    own: &[&str],
    unhonoured: &[Unhonoured],
    warnings: &mut Vec<String>,
) -> Result<()> {
    for param in params.iter().filter(|param| !own.contains(&param.name())) {
        let Some(row) = unhonoured.iter().find(|row| row.name == param.name()) else {
            let names = own.iter().copied().chain(unhonoured.iter().map(|row| row.name));
            return Err(param.unknown(&format!("{title} has no parameter"), names));
        };
        let plain = !matches!(param.content, Content::List(_) | Content::Map(_));
        if !(plain && row.is_default(&param.text()?)) {
            warnings.push(param.remark("this has no effect here"));
        }
    }
    Ok(())
}

const fn row(name: &'static str, defaults: &'static [&'static str]) -> Unhonoured {
    Unhonoured { name, defaults }
}

const COMPRESSION_OPTS: &str = "checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;\
    max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;\
    strategy=0;window_bits=-14;";

const METADATA_CACHE_OPTIONS: &str =
    "unpartitioned_pinning=kFallback;partition_pinning=kFallback;top_level_index_pinning=kFallback;";

/// Of `DBOptions`.
pub static DB: &[Unhonoured] = &[
    row("access_hint_on_compaction_start", &["NORMAL"]),
    row("advise_random_on_open", &["true"]),
    row("allow_2pc", &["false"]),
    row("allow_data_in_errors", &["false"]),
    row("allow_fallocate", &["true"]),
    row("allow_mmap_reads", &["false"]),
    row("allow_mmap_writes", &["false"]),
    row("async_wal_precreate", &["false"]),
    row("atomic_flush", &["false"]),
    row("avoid_flush_during_recovery", &["false"]),
    row("avoid_unnecessary_blocking_io", &["false"]),
    row("background_close_inactive_wals", &["false"]),
    row("base_background_compactions", &["-1"]),
    row("bgerror_resume_retry_interval", &["1000000"]),
    row("compaction_readahead_size", &["0", "2097152"]),
    row("compaction_verify_record_count", &["true"]),
    row("concurrent_prepare", &["false"]),
    row("daily_offpeak_time_utc", &[""]),
    row("db_host_id", &[]),
    row("db_log_dir", &[""]),
    row("delete_obsolete_files_period_micros", &["21600000000"]),
    row("dump_malloc_stats", &["false"]),
    row("enable_pipelined_write", &["false"]),
    row("enable_thread_tracking", &["false"]),
    row("enable_write_thread_adaptive_yield", &["true"]),
    row("enforce_single_del_contracts", &["true"]),
    row("enforce_write_buffer_manager_during_recovery", &["true"]),
    row("fail_if_options_file_error", &["false"]),
    row("fast_sst_open", &["false"]),
    row("file_checksum_gen_factory", &["nullptr"]),
    row("flush_verify_memtable_count", &["true"]),
    row("follower_catchup_retry_count", &["10"]),
    row("follower_catchup_retry_wait_ms", &["100"]),
    row("follower_refresh_catchup_period_ms", &["10000"]),
    row("info_log_level", &[]),
    row("is_fd_close_on_exec", &["true"]),
    row("keep_log_file_num", &["1000"]),
    row("log_file_time_to_roll", &["0"]),
    row("log_readahead_size", &["0"]),
    row("lowest_used_cache_tier", &["kNonVolatileBlockTier"]),
    row("manifest_preallocation_size", &["4194304"]),
    row("manual_wal_flush", &["false"]),
    row("max_background_compactions", &["-1"]),
    row("max_background_flushes", &["-1"]),
    row("max_bgerror_resume_count", &["2147483647"]),
    row("max_compaction_trigger_wakeup_seconds", &["43200"]),
    row("max_file_opening_threads", &["16"]),
    row("max_log_file_size", &["0"]),
    row("max_manifest_space_amp_pct", &["500"]),
    row("max_write_batch_group_size_bytes", &["1048576"]),
    row("metadata_write_temperature", &["kUnknown"]),
    row("new_table_reader_for_compaction_inputs", &["false"]),
    row("open_files_async", &["false"]),
    row("optimize_manifest_for_recovery", &["false"]),
    row("persist_stats_to_disk", &["false"]),
    row("prefix_seek_opt_in_only", &["false"]),
    row("preserve_deletes", &["false"]),
    row("random_access_max_buffer_size", &["1048576"]),
    row("rate_limiter_bytes_per_sec", &["0"]),
    row("read_io_executor_threads", &["1"]),
    row("recycle_log_file_num", &["0"]),
    row("reuse_manifest_on_open", &["false"]),
    row("row_cache", &["nullptr"]),
    row("skip_checking_sst_file_sizes_on_db_open", &["false"]),
    row("skip_log_error_on_recovery", &["false"]),
    row("skip_stats_update_on_db_open", &["false"]),
    row("stats_history_buffer_size", &["1048576"]),
    row("stats_persist_period_sec", &["600"]),
    row("strict_bytes_per_sync", &["false"]),
    row("table_cache_numshardbits", &[]),
    row("track_and_verify_wals", &["false"]),
    row("track_and_verify_wals_in_manifest", &["false"]),
    row("two_write_queues", &["false"]),
    row("unordered_write", &["false"]),
    row("use_adaptive_mutex", &["false"]),
    row("use_direct_io_for_compaction_reads", &["false"]),
    row("use_direct_io_for_flush_and_compaction", &["false"]),
    row("use_direct_reads", &["false"]),
    row("use_fsync", &["false"]),
    row("verify_manifest_content_on_close", &["false"]),
    row("verify_sst_unique_id_in_manifest", &["true"]),
    row("wal_bytes_per_sync", &["0"]),
    row("wal_compression", &["kNoCompression"]),
    row("wal_filter", &["nullptr"]),
    row("WAL_size_limit_MB", &["0"]),
    row("WAL_ttl_seconds", &["0"]),
    row("wal_write_temperature", &["kUnknown"]),
    row("writable_file_max_buffer_size", &["1048576"]),
    row("write_dbid_to_manifest", &["false", "true"]),
    row("write_identity_file", &["true"]),
    row("write_thread_max_yield_usec", &["100"]),
    row("write_thread_slow_yield_usec", &["3"]),
];

/// Of `CFOptions`.
pub static FAMILY: &[Unhonoured] = &[
    row("arena_block_size", &["0", "1048576"]),
    row("blob_cache", &["nullptr"]),
    row("blob_compaction_readahead_size", &["0"]),
    row("blob_compression_opts", &[COMPRESSION_OPTS]),
    row("blob_compression_type", &["kNoCompression"]),
    row("blob_direct_write_partitions", &["1"]),
    row("blob_file_size", &["268435456"]),
    row("blob_file_starting_level", &["0"]),
    row("blob_garbage_collection_age_cutoff", &["0.250000"]),
    row("blob_garbage_collection_force_threshold", &["1.000000"]),
    row("block_protection_bytes_per_key", &["0"]),
    row("bloom_locality", &["0"]),
    row("bottommost_compression_opts", &[COMPRESSION_OPTS]),
    row("bottommost_file_compaction_delay", &["0"]),
    row("check_flush_compaction_key_order", &["true"]),
    row("compaction_filter", &["nullptr"]),
    row("compaction_filter_factory", &["nullptr"]),
    row("compaction_options_fifo", &[]),
    row("compaction_options_universal", &[]),
    row("compaction_pri", &["kMinOverlappingRatio"]),
    row("compression_manager", &["nullptr"]),
    row("default_temperature", &["kUnknown"]),
    row("default_write_temperature", &["kUnknown"]),
    row("disallow_memtable_writes", &["false"]),
    row("enable_blob_direct_write", &["false"]),
    row("enable_blob_files", &["false"]),
    row("enable_blob_garbage_collection", &["false"]),
    row("expanded_compaction_factor", &["25"]),
    row("experimental_mempurge_threshold", &["0.000000"]),
    row("filter_deletes", &["false"]),
    row("force_consistency_checks", &["true"]),
    row("hard_rate_limit", &["0"]),
    row("ignore_max_compaction_bytes_for_input", &["true"]),
    row("inplace_update_num_locks", &["10000"]),
    row("inplace_update_support", &["false"]),
    row("last_level_temperature", &["kUnknown"]),
    row("level_compaction_dynamic_file_size", &["true"]),
    row("max_bytes_for_level_multiplier_additional", &["1:1:1:1:1:1:1"]),
    row("max_grandparent_overlap_factor", &["10"]),
    row("max_mem_compaction_level", &["0"]),
    row("max_write_buffer_number_to_maintain", &["0"]),
    row("max_write_buffer_size_to_maintain", &["0"]),
    row("memtable_avg_op_scan_flush_trigger", &["0"]),
    row("memtable_batch_lookup_optimization", &["false"]),
    row("memtable_huge_page_size", &["0"]),
    row("memtable_insert_with_hint_prefix_extractor", &["nullptr"]),
    row("memtable_max_range_deletions", &["0"]),
    row("memtable_op_scan_flush_trigger", &["0"]),
    row("memtable_prefix_bloom_bits", &["0"]),
    row("memtable_prefix_bloom_probes", &["6"]),
    row("memtable_protection_bytes_per_key", &["0"]),
    row("memtable_verify_per_key_checksum_on_seek", &["false"]),
    row("min_blob_size", &["0"]),
    row("min_partial_merge_operands", &["2"]),
    row("min_tombstones_for_range_conversion", &["0"]),
    row("optimize_range_deletion", &["false"]),
    row("paranoid_memory_checks", &["false"]),
    row("periodic_compaction_seconds", &["0"]),
    row("persist_user_defined_timestamps", &["true"]),
    row("preclude_last_level_data_seconds", &["0"]),
    row("prepopulate_blob_cache", &["kDisable"]),
    row("preserve_internal_time_seconds", &["0"]),
    row("purge_redundant_kvs_while_flush", &["true"]),
    row("rate_limit_delay_max_milliseconds", &["100"]),
    row("read_triggered_compaction_threshold", &["0.000000"]),
    row("report_bg_io_stats", &["false"]),
    row("sample_for_compression", &["0"]),
    row("snap_refresh_nanos", &["0"]),
    row("soft_rate_limit", &["0"]),
    row("source_compaction_factor", &["1"]),
    row("sst_partitioner_factory", &["nullptr"]),
    row("max_successive_merges", &["0"]),
    row("strict_max_successive_merges", &["false"]),
    row("target_file_size_is_upper_bound", &["false"]),
    row("ttl", &["2592000"]),
    row("uncache_aggressiveness", &["0"]),
    row("verify_checksums_in_compaction", &["true"]),
    row("verify_output_flags", &["0"]),
];

/// Of `BlockBasedTableOptions`.
pub static TABLE: &[Unhonoured] = &[
    row("block_cache_compressed", &["nullptr"]),
    row("cache_index_and_filter_blocks_with_high_priority", &["true"]),
    row("decouple_partitioned_filters", &["true"]),
    row("detect_filter_construct_corruption", &["false"]),
    row("fail_if_no_udi_on_open", &["false"]),
    row("flush_block_policy_factory", &["FlushBlockBySizePolicyFactory"]),
    row("hash_index_allow_collision", &["true"]),
    row("index_block_search_type", &["kBinary"]),
    row("index_shortening", &["kShortenSeparators"]),
    row("initial_auto_readahead_size", &["8192"]),
    row("max_auto_readahead_size", &["262144"]),
    row("metadata_cache_options", &[METADATA_CACHE_OPTIONS]),
    row("num_file_reads_for_auto_readahead", &["2"]),
    row("optimize_filters_for_memory", &["false", "true"]),
    row("persistent_cache", &["nullptr"]),
    row("pin_top_level_index_and_filter", &["true"]),
    row("prepopulate_block_cache", &["kDisable"]),
    row("read_amp_bytes_per_bit", &["0"]),
    row("separate_key_value_in_data_block", &["false"]),
    row("skip_table_builder_flush", &["false"]),
    row("super_block_alignment_size", &["0"]),
    row("super_block_alignment_space_overhead_ratio", &["128"]),
    row("uniform_cv_threshold", &["-1.000000"]),
    row("use_delta_encoding", &["true"]),
    row("use_udi_as_primary_index", &["false"]),
    row("user_defined_index_factory", &["nullptr"]),
];

/// Of `compression_opts`.
pub static COMPRESSION: &[Unhonoured] = &[
    row("strategy", &["0"]),
    row("parallel_threads", &["1"]),
    // Says whether bottommost_compression_opts count; compression_opts always do.
    row("enabled", &["false", "true"]),
    row("max_dict_buffer_bytes", &["0"]),
    row("use_zstd_dict_trainer", &["true"]),
    row("checksum", &["false"]),
    row("max_compressed_bytes_per_kb", &["896"]),
];

/// Of ToplingDB's `DispatcherTable`.
pub static DISPATCHER: &[Unhonoured] = &[
    row("allow_trivial_move", &["true"]),
    row("auto_compaction_max_wamp", &["0"]),
    row("ignoreInputCompressionMatchesOutput", &["false"]),
    row("mark_for_compaction_max_wamp", &["0"]),
    row("measure_builder_stats", &["false"]),
    row("trivial_move_always_max_output_level", &["0"]),
    row("trivial_move_max_file_size_multiplier", &["0"]),
];

/// Of ToplingDB's `CSPPMemTabTable`.
pub static CONVERTED_TABLE: &[Unhonoured] = &[
    // Names a memtable whose statistics tables count in.
    row("sst_reader", &[]),
];

/// Of ToplingDB's `SingleFastTable`.
pub static FAST_TABLE: &[Unhonoured] = &[
    row("accurateKeyAnchorsSize", &["true"]),
    row("collectPropertiesMinLevel", &["0"]),
    row("debugLevel", &["0"]),
    row("fileWriteBufferSize", &[]),
    row("indexType", &["MainPatricia"]),
    row("keyAnchorSizeUnit", &[]),
    row("keyPrefixLen", &["0"]),
    row("maxPreadLen", &[]),
    row("minPreadLen", &["-1"]),
    row("minPreadLevel", &[]),
    row("needCompactOnOmitPropsCollector", &["true", "false"]),
    row("useFilter", &["false"]),
    row("warmupLevel", &["kNone", "kIndex"]),
    row("writeMethod", &[]),
];

/// Of ToplingDB's `ToplingZipTable`.
pub static ZIP_TABLE: &[Unhonoured] = &[
    row("acceptCompressionRatio", &["0.8"]),
    row("cacheCapacityBytes", &["0"]),
    row("cacheShards", &[]),
    row("checksumLevel", &[]),
    row("compressGlobalDict", &["false"]),
    row("debugLevel", &["0"]),
    row("enableEntropyStore", &["false"]),
    row("enableFixedLenHoleIndex", &[]),
    row("enableStatistics", &["false"]),
    row("enableUintIndex", &[]),
    row("entropyAlgo", &["kNoEntropy"]),
    row("estimateCompressionRatio", &[]),
    row("fileWriteBufferSize", &[]),
    row("forceLegacyZvType", &["false"]),
    row("hardZipWorkingMemLimit", &[]),
    row("indexCacheRatio", &["0"]),
    row("indexMemAsHugePage", &["false"]),
    row("indexMemAsResident", &["false"]),
    row("indexNestLevel", &[]),
    row("indexNestScale", &[]),
    row("indexTempLevel", &[]),
    row("indexType", &[]),
    row("keyPrefixLen", &["0"]),
    row("keyRankCacheRatio", &[]),
    row("minDictZipValueSize", &["15", "30"]),
    row("minPreadLen", &["-1"]),
    row("minPrefetchPages", &[]),
    row("needCompactMaxLevel", &[]),
    row("nltAcceptCompressionRatio", &[]),
    row("offsetArrayBlockUnits", &[]),
    row("optimizeCpuL3Cache", &[]),
    row("sampleRatio", &["0.01", "0.03"]),
    row("smallTaskMemory", &[]),
    row("softZipWorkingMemLimit", &[]),
    row("useSuffixArrayLocalMatch", &["false"]),
    row("warmupLevel", &["kNone", "kIndex"]),
];

/// Of ToplingDB's `VecAutoSortTable`.
pub static AUTO_SORT_TABLE: &[Unhonoured] = &[
    row("collectProperties", &["true"]),
    row("debugLevel", &["0"]),
    row("fileWriteBufferSize", &[]),
    row("forceNeedCompact", &["false"]),
    row("minUserKeyLen", &["0"]),
];
