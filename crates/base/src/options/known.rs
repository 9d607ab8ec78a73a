//! RocksDB options (7.8 to 11.9) without effect here, with RocksDB's defaults. A differing value is kept with a warning
//! if the option only changes how something is done. It is refused if the option changes the data stored, kept or
//! found.

use crate::error::{Error, Result};
use crate::options::string;
use crate::options::tree::{Content, Node};

/// A known option without effect.
#[derive(Debug)]
pub struct Unhonoured {
    /// RocksDB's name.
    pub name: &'static str,
    /// RocksDB's defaults across versions. Empty if the value only matters with another option, warned about there, or
    /// if the default depends on the machine.
    pub defaults: &'static [&'static str],
    /// What the option would change.
    pub changes: Changes,
}

/// An option's effect for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Only how something is done: speed, memory, checks, the layout of files.
    How,
    /// Nothing: a retired Spillway option. Read with a warning, never written.
    Nothing,
    /// The data stored, kept or found. The text names the missing feature and the alternative.
    What(&'static str),
}

/// With this option a caller accepts unsupported options without effect. Valid in option strings, in option groups of a
/// document, and as a field of `DbOptions`.
pub const IGNORE_UNSUPPORTED: &str = "ignore_unsupported_options";

impl Unhonoured {
    /// The error for a value with an unsupported effect.
    pub fn refusal(&self, text: &str, says: &str) -> Error {
        let option = format!("option `{}={text}`", self.name);
        Error::unsupported(format!(
            "{option} cannot be honoured: {says}. Leave it out, or set {IGNORE_UNSUPPORTED} \
             to go on without it"
        ))
    }

    /// True if `text` is a RocksDB default.
    pub fn is_default(&self, text: &str) -> bool {
        self.defaults.is_empty() || self.defaults.iter().any(|default| says_the_same(default, text))
    }
}

/// Compares numbers by value, and groups member by member: RocksDB versions write different members. Of a flag RocksDB takes
/// numbers, too, and of an object no name.
fn says_the_same(default: &str, text: &str) -> bool {
    let by_number = |text| match text {
        "true" => "1",
        "false" => "0",
        "" => "nullptr",
        text => text,
    };
    let (default, text) = (by_number(default), by_number(text.trim()));
    if let (Ok(a), Ok(b)) = (default.parse::<f64>(), text.parse::<f64>()) {
        return a == b;
    }
    let (true, Ok(known), Ok(given)) = (text.contains('='), string::pairs(default), string::pairs(text)) else {
        return default == text;
    };
    given.iter().all(|pair| known.contains(pair))
}

/// Refuses parameters of the class `title` outside `own` and `unhonoured`. Warns about `unhonoured` parameters with a
/// non-default value.
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

/// A row for an option of [`Changes::How`].
pub const fn how(name: &'static str, defaults: &'static [&'static str]) -> Unhonoured {
    Unhonoured { name, defaults, changes: Changes::How }
}

/// A row for an option of [`Changes::What`].
const fn what(name: &'static str, defaults: &'static [&'static str], says: &'static str) -> Unhonoured {
    Unhonoured { name, defaults, changes: Changes::What(says) }
}

/// A row for a retired Spillway option.
const fn retired(name: &'static str, defaults: &'static [&'static str]) -> Unhonoured {
    Unhonoured { name, defaults, changes: Changes::Nothing }
}

const COMPRESSION_OPTS: &str = "checksum=false;max_dict_buffer_bytes=0;enabled=false;max_dict_bytes=0;\
    max_compressed_bytes_per_kb=896;parallel_threads=1;zstd_max_train_bytes=0;level=32767;use_zstd_dict_trainer=true;\
    strategy=0;window_bits=-14;";

const METADATA_CACHE_OPTIONS: &str =
    "unpartitioned_pinning=kFallback;partition_pinning=kFallback;top_level_index_pinning=kFallback;";

/// Of `DBOptions`.
pub static DB: &[Unhonoured] = &[
    how("access_hint_on_compaction_start", &["NORMAL"]),
    how("advise_random_on_open", &["true"]),
    how("allow_2pc", &["false"]),
    how("allow_data_in_errors", &["false"]),
    how("allow_fallocate", &["true"]),
    how("allow_mmap_writes", &["false"]),
    how("allow_os_buffer", &["true"]),
    how("async_wal_precreate", &["false"]),
    how("avoid_flush_during_recovery", &["false"]),
    how("avoid_unnecessary_blocking_io", &["false"]),
    how("background_close_inactive_wals", &["false"]),
    how("base_background_compactions", &["-1"]),
    how("bgerror_resume_retry_interval", &["1000000"]),
    how("compaction_readahead_size", &["0", "2097152"]),
    how("compaction_verify_record_count", &["true"]),
    how("concurrent_prepare", &["false"]),
    how("daily_offpeak_time_utc", &[""]),
    how("db_host_id", &[]),
    how("delete_obsolete_files_period_micros", &["21600000000"]),
    how("disable_data_sync", &["false"]),
    how("dump_malloc_stats", &["false"]),
    how("enable_pipelined_write", &["false"]),
    how("enable_thread_tracking", &["false"]),
    how("enable_write_thread_adaptive_yield", &["true"]),
    how("enforce_single_del_contracts", &["true"]),
    how("experimental_allow_mempurge", &["false"]),
    how("experimental_mempurge_policy", &["kAlternate"]),
    how("fail_if_options_file_error", &["false"]),
    how("fast_sst_open", &["false"]),
    what("file_checksum_gen_factory", &["nullptr"], "no checksums of whole files are stored; blocks have theirs"),
    how("flush_verify_memtable_count", &["true"]),
    how("follower_catchup_retry_count", &["10"]),
    how("follower_catchup_retry_wait_ms", &["100"]),
    how("follower_refresh_catchup_period_ms", &["10000"]),
    how("is_fd_close_on_exec", &["true"]),
    how("listeners", &["", "{}"]),
    how("log_readahead_size", &["0"]),
    how("lowest_used_cache_tier", &["kNonVolatileBlockTier"]),
    how("manifest_preallocation_size", &["4194304"]),
    how("manual_wal_flush", &["false"]),
    how("max_background_compactions", &["-1"]),
    how("max_background_flushes", &["-1"]),
    how("max_bgerror_resume_count", &["2147483647"]),
    how("max_compaction_trigger_wakeup_seconds", &["43200"]),
    how("max_file_opening_threads", &["16"]),
    how("max_manifest_space_amp_pct", &["500"]),
    how("max_write_batch_group_size_bytes", &["1048576"]),
    how("metadata_write_temperature", &["kUnknown"]),
    how("new_table_reader_for_compaction_inputs", &["false"]),
    how("open_files_async", &["false"]),
    how("optimize_manifest_for_recovery", &["false"]),
    retired("pace_background_writes", &["true"]),
    what("persist_stats_to_disk", &["false"], "statistics are not stored; read them while the database is open"),
    how("prefix_seek_opt_in_only", &["false"]),
    what("preserve_deletes", &["false"], "compactions drop deletions that no snapshot sees; hold a snapshot"),
    how("random_access_max_buffer_size", &["1048576"]),
    how("rate_limiter", &["nullptr"]),
    how("read_io_executor_threads", &["1"]),
    how("recycle_log_file_num", &["0"]),
    how("reuse_manifest_on_open", &["false"]),
    how("row_cache", &["nullptr"]),
    how("seq_per_batch", &["false"]),
    how("skip_checking_sst_file_sizes_on_db_open", &["false"]),
    how("skip_log_error_on_recovery", &["false"]),
    how("skip_stats_update_on_db_open", &["false"]),
    how("stats_history_buffer_size", &["1048576"]),
    how("stats_persist_period_sec", &["600"]),
    how("strict_bytes_per_sync", &["false"]),
    how("table_cache_numshardbits", &[]),
    how("track_and_verify_wals", &["false"]),
    how("track_and_verify_wals_in_manifest", &["false"]),
    how("two_write_queues", &["false"]),
    how("unordered_write", &["false"]),
    how("use_adaptive_mutex", &["false"]),
    how("use_direct_io_for_compaction_reads", &["false"]),
    how("use_direct_io_for_flush_and_compaction", &["false"]),
    how("use_direct_reads", &["false"]),
    how("use_direct_writes", &["false"]),
    how("use_fsync", &["false"]),
    how("verify_manifest_content_on_close", &["false"]),
    how("verify_sst_unique_id_in_manifest", &["true"]),
    how("wal_compression", &["kNoCompression"]),
    what("wal_filter", &["nullptr"], "recovery takes all that the log holds"),
    how("wal_write_temperature", &["kUnknown"]),
    how("writable_file_max_buffer_size", &["1048576"]),
    how("write_dbid_to_manifest", &["false", "true"]),
    how("write_identity_file", &["true"]),
    how("write_thread_max_yield_usec", &["100"]),
    how("write_thread_slow_yield_usec", &["3"]),
];

/// Of `CFOptions`.
pub static FAMILY: &[Unhonoured] = &[
    how("arena_block_size", &["0", "1048576"]),
    how("blob_cache", &["nullptr"]),
    how("blob_compaction_readahead_size", &["0"]),
    how("blob_compression_opts", &[COMPRESSION_OPTS]),
    how("blob_compression_type", &["kNoCompression"]),
    how("blob_direct_write_partitions", &["1"]),
    how("blob_file_size", &["268435456"]),
    how("blob_file_starting_level", &["0"]),
    how("blob_garbage_collection_age_cutoff", &["0.250000"]),
    how("blob_garbage_collection_force_threshold", &["1.000000"]),
    how("block_protection_bytes_per_key", &["0"]),
    how("bloom_locality", &["0"]),
    how("bottommost_compression_opts", &[COMPRESSION_OPTS]),
    how("bottommost_file_compaction_delay", &["0"]),
    how("bottommost_temperature", &["kUnknown"]),
    how("check_flush_compaction_key_order", &["true"]),
    what(
        "compaction_filter",
        &["nullptr"],
        "no such filter was supplied, so that compactions keep what it drops; supply it before options are read",
    ),
    what(
        "compaction_filter_factory",
        &["nullptr"],
        "no such factory was supplied, so that compactions keep what its filters drop; supply it before options are read",
    ),
    how("compaction_measure_io_stats", &["false"]),
    how("compression_manager", &["nullptr"]),
    how("default_temperature", &["kUnknown"]),
    how("default_write_temperature", &["kUnknown"]),
    what("disallow_memtable_writes", &["false"], "writes to the family are taken; do not write to it"),
    how("enable_blob_direct_write", &["false"]),
    what("enable_blob_files", &["false"], "there are no blob files, and values lie in tables"),
    how("enable_blob_garbage_collection", &["false"]),
    how("expanded_compaction_factor", &["25"]),
    how("experimental_mempurge_threshold", &["0.000000"]),
    how("filter_deletes", &["false"]),
    how("force_consistency_checks", &["true"]),
    how("hard_rate_limit", &["0"]),
    how("ignore_max_compaction_bytes_for_input", &["true"]),
    how("inplace_update_num_locks", &["10000"]),
    what(
        "inplace_update_support",
        &["false"],
        "values are not overwritten in memtables; each write is a version that snapshots see",
    ),
    how("last_level_temperature", &["kUnknown"]),
    how("level_compaction_dynamic_file_size", &["true"]),
    how("max_bytes_for_level_multiplier_additional", &["1:1:1:1:1:1:1"]),
    how("max_grandparent_overlap_factor", &["10"]),
    how("max_mem_compaction_level", &["0"]),
    how("max_write_buffer_number_to_maintain", &["0"]),
    how("max_write_buffer_size_to_maintain", &["0"]),
    how("memtable_avg_op_scan_flush_trigger", &["0"]),
    how("memtable_batch_lookup_optimization", &["false"]),
    how("memtable_huge_page_size", &["0"]),
    how("memtable_insert_with_hint_prefix_extractor", &["nullptr"]),
    how("memtable_max_range_deletions", &["0"]),
    how("memtable_op_scan_flush_trigger", &["0"]),
    how("memtable_prefix_bloom_bits", &["0"]),
    how("memtable_prefix_bloom_huge_page_tlb_size", &["0"]),
    how("memtable_prefix_bloom_probes", &["6"]),
    how("memtable_protection_bytes_per_key", &["0"]),
    // As RocksDB 10.10 spells it.
    how("memtable_veirfy_per_key_checksum_on_seek", &["false"]),
    how("memtable_verify_per_key_checksum_on_seek", &["false"]),
    how("min_blob_size", &["0"]),
    how("min_partial_merge_operands", &["2"]),
    how("min_tombstones_for_range_conversion", &["0"]),
    how("optimize_range_deletion", &["false"]),
    how("paranoid_memory_checks", &["false"]),
    what("persist_user_defined_timestamps", &["true"], "there are no user-defined timestamps"),
    how("preclude_last_level_data_seconds", &["0"]),
    how("prepopulate_blob_cache", &["kDisable"]),
    what("preserve_internal_time_seconds", &["0"], "the times of writes are not stored"),
    how("purge_redundant_kvs_while_flush", &["true"]),
    how("rate_limit_delay_max_milliseconds", &["100"]),
    how("report_bg_io_stats", &["false"]),
    how("sample_for_compression", &["0"]),
    how("snap_refresh_nanos", &["0"]),
    how("soft_rate_limit", &["0"]),
    how("source_compaction_factor", &["1"]),
    how("max_successive_merges", &["0"]),
    how("strict_max_successive_merges", &["false"]),
    how("table_properties_collector_factories", &["nullptr"]),
    how("target_file_size_is_upper_bound", &["false"]),
    how("uncache_aggressiveness", &["0"]),
    how("verify_checksums_in_compaction", &["true"]),
    how("verify_output_flags", &["0"]),
];

/// Of `BlockBasedTableOptions`.
pub static TABLE: &[Unhonoured] = &[
    how("block_align", &["false"]),
    how("block_cache_compressed", &["nullptr"]),
    how("cache_index_and_filter_blocks_with_high_priority", &["true"]),
    how("decouple_partitioned_filters", &["true"]),
    how("detect_filter_construct_corruption", &["false"]),
    how("fail_if_no_udi_on_open", &["false"]),
    how("flush_block_policy_factory", &["FlushBlockBySizePolicyFactory"]),
    how("hash_index_allow_collision", &["true"]),
    how("index_block_search_type", &["kBinary"]),
    how("index_per_partition", &["false"]),
    how("index_shortening", &["kShortenSeparators"]),
    how("initial_auto_readahead_size", &["8192"]),
    how("max_auto_readahead_size", &["262144"]),
    how("metadata_cache_options", &[METADATA_CACHE_OPTIONS]),
    how("num_file_reads_for_auto_readahead", &["2"]),
    how("optimize_filters_for_memory", &["false", "true"]),
    how("persistent_cache", &["nullptr"]),
    how("pin_top_level_index_and_filter", &["true"]),
    how("prepopulate_block_cache", &["kDisable"]),
    how("read_amp_bytes_per_bit", &["0"]),
    how("reserve_table_builder_memory", &["false"]),
    how("reserve_table_reader_memory", &["false"]),
    how("separate_key_value_in_data_block", &["false"]),
    how("skip_table_builder_flush", &["false"]),
    how("super_block_alignment_size", &["0"]),
    how("super_block_alignment_space_overhead_ratio", &["128"]),
    how("uniform_cv_threshold", &["-1.000000"]),
    how("use_delta_encoding", &["true"]),
    how("use_udi_as_primary_index", &["false"]),
    how("user_defined_index_factory", &["nullptr"]),
];

/// Of `compression_opts`.
pub static COMPRESSION: &[Unhonoured] = &[
    how("strategy", &["0"]),
    how("parallel_threads", &["1"]),
    // Only affects bottommost_compression_opts; compression_opts always count.
    how("enabled", &["false", "true"]),
    how("max_dict_buffer_bytes", &["0"]),
    how("use_zstd_dict_trainer", &["true"]),
    how("checksum", &["false"]),
    how("max_compressed_bytes_per_kb", &["896"]),
];

/// Of `compaction_options_universal`.
pub static UNIVERSAL: &[Unhonoured] = &[how("incremental", &["false"]), how("reduce_file_locking", &["true"])];

/// Of `compaction_options_fifo`.
pub static FIFO: &[Unhonoured] = &[
    how("age_for_warm", &["0"]),
    how("allow_trivial_copy_when_change_temperature", &["false"]),
    how("file_temperature_age_thresholds", &[""]),
    how("ttl", &["0"]),
    how("trivial_copy_buffer_size", &["4096"]),
    how("use_kv_ratio_compaction", &["false"]),
];

/// Of ToplingDB's `DispatcherTable`.
pub static DISPATCHER: &[Unhonoured] = &[
    how("allow_trivial_move", &["true"]),
    how("auto_compaction_max_wamp", &["0"]),
    how("ignoreInputCompressionMatchesOutput", &["false"]),
    how("mark_for_compaction_max_wamp", &["0"]),
    how("measure_builder_stats", &["false"]),
    how("trivial_move_always_max_output_level", &["0"]),
    how("trivial_move_max_file_size_multiplier", &["0"]),
];

/// Of ToplingDB's `CSPPMemTabTable`.
pub static CONVERTED_TABLE: &[Unhonoured] = &[
    // Names the memtable for the tables' statistics.
    how("sst_reader", &[]),
];

/// Of ToplingDB's `SingleFastTable`.
pub static FAST_TABLE: &[Unhonoured] = &[
    how("accurateKeyAnchorsSize", &["true"]),
    how("collectPropertiesMinLevel", &["0"]),
    how("debugLevel", &["0"]),
    how("fileWriteBufferSize", &[]),
    how("indexType", &["MainPatricia"]),
    how("keyAnchorSizeUnit", &[]),
    how("keyPrefixLen", &["0"]),
    how("maxPreadLen", &[]),
    how("minPreadLen", &["-1"]),
    how("minPreadLevel", &[]),
    how("needCompactOnOmitPropsCollector", &["true", "false"]),
    how("useFilter", &["false"]),
    how("warmupLevel", &["kNone", "kIndex"]),
    how("writeMethod", &[]),
];

/// Of ToplingDB's `ToplingZipTable`.
pub static ZIP_TABLE: &[Unhonoured] = &[
    how("acceptCompressionRatio", &["0.8"]),
    how("cacheCapacityBytes", &["0"]),
    how("cacheShards", &[]),
    how("checksumLevel", &[]),
    how("compressGlobalDict", &["false"]),
    how("debugLevel", &["0"]),
    how("enableEntropyStore", &["false"]),
    how("enableFixedLenHoleIndex", &[]),
    how("enableStatistics", &["false"]),
    how("enableUintIndex", &[]),
    how("entropyAlgo", &["kNoEntropy"]),
    how("estimateCompressionRatio", &[]),
    how("fileWriteBufferSize", &[]),
    how("forceLegacyZvType", &["false"]),
    how("hardZipWorkingMemLimit", &[]),
    how("indexCacheRatio", &["0"]),
    how("indexMemAsHugePage", &["false"]),
    how("indexMemAsResident", &["false"]),
    how("indexNestLevel", &[]),
    how("indexNestScale", &[]),
    how("indexTempLevel", &[]),
    how("indexType", &[]),
    how("keyPrefixLen", &["0"]),
    how("keyRankCacheRatio", &[]),
    how("minDictZipValueSize", &["15", "30"]),
    how("minPreadLen", &["-1"]),
    how("minPrefetchPages", &[]),
    how("needCompactMaxLevel", &[]),
    how("nltAcceptCompressionRatio", &[]),
    how("offsetArrayBlockUnits", &[]),
    how("optimizeCpuL3Cache", &[]),
    how("sampleRatio", &["0.01", "0.03"]),
    how("smallTaskMemory", &[]),
    how("softZipWorkingMemLimit", &[]),
    how("useSuffixArrayLocalMatch", &["false"]),
    how("warmupLevel", &["kNone", "kIndex"]),
];

/// Of ToplingDB's `VecAutoSortTable`.
pub static AUTO_SORT_TABLE: &[Unhonoured] = &[
    how("collectProperties", &["true"]),
    how("debugLevel", &["0"]),
    how("fileWriteBufferSize", &[]),
    how("forceNeedCompact", &["false"]),
    how("minUserKeyLen", &["0"]),
];
