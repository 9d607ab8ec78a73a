//! Options of a family by number: of `ColumnFamilyOptions` and `Options`.

use capi::boundary::settings::Row;
use capi::options::{Options, family_rows};

use crate::boundary::settings::{Compression, fields, kept, settings};

/// Without effect here, and without setters in C.
const WITHOUT_EFFECT: &[Row<Options>] = kept! { Options;
    "force_consistency_checks": bool = true;
    "max_write_buffer_number_to_maintain": i32 = 0;
    "memtable_max_range_deletions": i32 = 0;
};

const OWN: &[Row<Options>] = fields! { Options;
    "max_table_files_size_fifo" => family.compaction_options_fifo.max_table_files_size;
    "paranoid_file_checks" => family.paranoid_file_checks;
};

settings! { ["ColumnFamilyOptions", "Options"], Options, [family_rows::ROWS, WITHOUT_EFFECT, OWN];
    i64, set "setArenaBlockSize", get "arenaBlockSize" => "arena_block_size";
    i64, set "setBlobCompactionReadaheadSize", get "blobCompactionReadaheadSize" => "blob_compaction_readahead_size";
    Compression, set "setBlobCompressionType", get "blobCompressionType" => "blob_compression_type";
    i64, set "setBlobFileSize", get "blobFileSize" => "blob_file_size";
    i32, set "setBlobFileStartingLevel", get "blobFileStartingLevel" => "blob_file_starting_level";
    f64, set "setBlobGarbageCollectionAgeCutoff", get "blobGarbageCollectionAgeCutoff" => "blob_gc_age_cutoff";
    f64, set "setBlobGarbageCollectionForceThreshold", get "blobGarbageCollectionForceThreshold" => "blob_gc_force_threshold";
    i32, set "setBloomLocality", get "bloomLocality" => "bloom_locality";
    Compression, set "setBottommostCompressionType", get "bottommostCompressionType" => "bottommost_compression";
    i8, set "setCompactionPriority", get "compactionPriority" => "compaction_pri";
    i8, set "setCompactionStyle", get "compactionStyle" => "compaction_style";
    Compression, set "setCompressionType", get "compressionType" => "compression";
    bool, set "setDisableAutoCompactions", get "disableAutoCompactions" => "disable_auto_compactions";
    bool, set "setEnableBlobFiles", get "enableBlobFiles" => "enable_blob_files";
    bool, set "setEnableBlobGarbageCollection", get "enableBlobGarbageCollection" => "enable_blob_gc";
    f64, set "setExperimentalMempurgeThreshold", get "experimentalMempurgeThreshold" => "experimental_mempurge_threshold";
    bool, set "setForceConsistencyChecks", get "forceConsistencyChecks" => "force_consistency_checks";
    i64, set "setHardPendingCompactionBytesLimit", get "hardPendingCompactionBytesLimit" => "hard_pending_compaction_bytes_limit";
    i64, set "setInplaceUpdateNumLocks", get "inplaceUpdateNumLocks" => "inplace_update_num_locks";
    bool, set "setInplaceUpdateSupport", get "inplaceUpdateSupport" => "inplace_update_support";
    i32, set "setLevel0FileNumCompactionTrigger", get "level0FileNumCompactionTrigger" => "level0_file_num_compaction_trigger";
    i32, set "setLevel0SlowdownWritesTrigger", get "level0SlowdownWritesTrigger" => "level0_slowdown_writes_trigger";
    i32, set "setLevel0StopWritesTrigger", get "level0StopWritesTrigger" => "level0_stop_writes_trigger";
    bool, set "setLevelCompactionDynamicLevelBytes", get "levelCompactionDynamicLevelBytes" => "level_compaction_dynamic_level_bytes";
    i32, set "setLevelZeroFileNumCompactionTrigger", get "levelZeroFileNumCompactionTrigger" => "level0_file_num_compaction_trigger";
    i32, set "setLevelZeroSlowdownWritesTrigger", get "levelZeroSlowdownWritesTrigger" => "level0_slowdown_writes_trigger";
    i32, set "setLevelZeroStopWritesTrigger", get "levelZeroStopWritesTrigger" => "level0_stop_writes_trigger";
    i64, set "setMaxBytesForLevelBase", get "maxBytesForLevelBase" => "max_bytes_for_level_base";
    f64, set "setMaxBytesForLevelMultiplier", get "maxBytesForLevelMultiplier" => "max_bytes_for_level_multiplier";
    i64, set "setMaxCompactionBytes", get "maxCompactionBytes" => "max_compaction_bytes";
    i64, set "setMaxSequentialSkipInIterations", get "maxSequentialSkipInIterations" => "max_sequential_skip_in_iterations";
    i64, set "setMaxSuccessiveMerges", get "maxSuccessiveMerges" => "max_successive_merges";
    i64, set "setMaxTableFilesSizeFIFO", get "maxTableFilesSizeFIFO" => "max_table_files_size_fifo";
    i32, set "setMaxWriteBufferNumber", get "maxWriteBufferNumber" => "max_write_buffer_number";
    i32, set "setMaxWriteBufferNumberToMaintain", get "maxWriteBufferNumberToMaintain" => "max_write_buffer_number_to_maintain";
    i64, set "setMemtableHugePageSize", get "memtableHugePageSize" => "memtable_huge_page_size";
    i32, set "setMemtableMaxRangeDeletions", get "memtableMaxRangeDeletions" => "memtable_max_range_deletions";
    f64, set "setMemtablePrefixBloomSizeRatio", get "memtablePrefixBloomSizeRatio" => "memtable_prefix_bloom_size_ratio";
    bool, set "setMemtableWholeKeyFiltering", get "memtableWholeKeyFiltering" => "memtable_whole_key_filtering";
    i64, set "setMinBlobSize", get "minBlobSize" => "min_blob_size";
    i32, set "setMinTombstonesForRangeConversion", get "minTombstonesForRangeConversion" => "min_tombstones_for_range_conversion";
    i32, set "setMinWriteBufferNumberToMerge", get "minWriteBufferNumberToMerge" => "min_write_buffer_number_to_merge";
    i32, set "setNumLevels", get "numLevels" => "num_levels";
    bool, set "setOptimizeFiltersForHits", get "optimizeFiltersForHits" => "optimize_filters_for_hits";
    bool, set "setParanoidFileChecks", get "paranoidFileChecks" => "paranoid_file_checks";
    i64, set "setPeriodicCompactionSeconds", get "periodicCompactionSeconds" => "periodic_compaction_seconds";
    i8, set "setPrepopulateBlobCache", get "prepopulateBlobCache" => "prepopulate_blob_cache";
    f64, set "setReadTriggeredCompactionThreshold", get "readTriggeredCompactionThreshold" => "read_triggered_compaction_threshold";
    bool, set "setReportBgIoStats", get "reportBgIoStats" => "report_bg_io_stats";
    i64, set "setSoftPendingCompactionBytesLimit", get "softPendingCompactionBytesLimit" => "soft_pending_compaction_bytes_limit";
    i64, set "setTargetFileSizeBase", get "targetFileSizeBase" => "target_file_size_base";
    i32, set "setTargetFileSizeMultiplier", get "targetFileSizeMultiplier" => "target_file_size_multiplier";
    i64, set "setTtl", get "ttl" => "ttl";
    i64, set "setWriteBufferSize", get "writeBufferSize" => "write_buffer_size";
}
