/* The types and numbers of rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_TYPES_H_
#define SPILLWAY_ROCKSDB_C_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifndef __cplusplus
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
#include <stdbool.h>
#elif !defined(bool)
/* C89 has no bool; it is passed as a byte. */
#define bool unsigned char
#endif
#endif

#ifndef ROCKSDB_LIBRARY_API
#define ROCKSDB_LIBRARY_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_backup_engine_info_t rocksdb_backup_engine_info_t;
typedef struct rocksdb_backup_engine_options_t rocksdb_backup_engine_options_t;
typedef struct rocksdb_backup_engine_t rocksdb_backup_engine_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_checkpoint_t rocksdb_checkpoint_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_column_family_metadata_t rocksdb_column_family_metadata_t;
typedef struct rocksdb_compactionfilter_t rocksdb_compactionfilter_t;
typedef struct rocksdb_compactionfiltercontext_t rocksdb_compactionfiltercontext_t;
typedef struct rocksdb_compactionfilterfactory_t rocksdb_compactionfilterfactory_t;
typedef struct rocksdb_compactoptions_t rocksdb_compactoptions_t;
typedef struct rocksdb_comparator_t rocksdb_comparator_t;
typedef struct rocksdb_cuckoo_table_options_t rocksdb_cuckoo_table_options_t;
typedef struct rocksdb_dbpath_t rocksdb_dbpath_t;
typedef struct rocksdb_env_t rocksdb_env_t;
typedef struct rocksdb_envoptions_t rocksdb_envoptions_t;
typedef struct rocksdb_export_import_files_metadata_t rocksdb_export_import_files_metadata_t;
typedef struct rocksdb_fifo_compaction_options_t rocksdb_fifo_compaction_options_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_flushwaloptions_t rocksdb_flushwaloptions_t;
typedef struct rocksdb_hyper_clock_cache_options_t rocksdb_hyper_clock_cache_options_t;
typedef struct rocksdb_import_column_family_options_t rocksdb_import_column_family_options_t;
typedef struct rocksdb_ingestexternalfileoptions_t rocksdb_ingestexternalfileoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_level_metadata_t rocksdb_level_metadata_t;
typedef struct rocksdb_livefile_t rocksdb_livefile_t;
typedef struct rocksdb_livefiles_t rocksdb_livefiles_t;
typedef struct rocksdb_logger_t rocksdb_logger_t;
typedef struct rocksdb_lru_cache_options_t rocksdb_lru_cache_options_t;
typedef struct rocksdb_memory_allocator_t rocksdb_memory_allocator_t;
typedef struct rocksdb_memory_consumers_t rocksdb_memory_consumers_t;
typedef struct rocksdb_memory_usage_t rocksdb_memory_usage_t;
typedef struct rocksdb_mergeoperator_t rocksdb_mergeoperator_t;
typedef struct rocksdb_optimistictransaction_options_t rocksdb_optimistictransaction_options_t;
typedef struct rocksdb_optimistictransactiondb_lock_buckets_t rocksdb_optimistictransactiondb_lock_buckets_t;
typedef struct rocksdb_optimistictransactiondb_options_t rocksdb_optimistictransactiondb_options_t;
typedef struct rocksdb_optimistictransactiondb_t rocksdb_optimistictransactiondb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_perfcontext_t rocksdb_perfcontext_t;
typedef struct rocksdb_pinnable_handle_t rocksdb_pinnable_handle_t;
typedef struct rocksdb_pinnableslice_t rocksdb_pinnableslice_t;
typedef struct rocksdb_ratelimiter_t rocksdb_ratelimiter_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_restore_options_t rocksdb_restore_options_t;
typedef struct rocksdb_compaction_options_t rocksdb_compaction_options_t;
typedef struct rocksdb_compactionjobinfo_t rocksdb_compactionjobinfo_t;
typedef struct rocksdb_slicetransform_t rocksdb_slicetransform_t;
typedef struct rocksdb_sst_partitioner_factory_t rocksdb_sst_partitioner_factory_t;
typedef struct rocksdb_snapshot_t rocksdb_snapshot_t;
typedef struct rocksdb_sst_file_manager_t rocksdb_sst_file_manager_t;
typedef struct rocksdb_sst_file_metadata_t rocksdb_sst_file_metadata_t;
typedef struct rocksdb_sstfilewriter_t rocksdb_sstfilewriter_t;
typedef struct rocksdb_statistics_histogram_data_t rocksdb_statistics_histogram_data_t;
typedef struct rocksdb_transaction_options_t rocksdb_transaction_options_t;
typedef struct rocksdb_transaction_t rocksdb_transaction_t;
typedef struct rocksdb_transactiondb_options_t rocksdb_transactiondb_options_t;
typedef struct rocksdb_transactiondb_t rocksdb_transactiondb_t;
typedef struct rocksdb_universal_compaction_options_t rocksdb_universal_compaction_options_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;
typedef struct rocksdb_wal_file_t rocksdb_wal_file_t;
typedef struct rocksdb_wal_files_t rocksdb_wal_files_t;
typedef struct rocksdb_wal_iterator_t rocksdb_wal_iterator_t;
typedef struct rocksdb_wal_readoptions_t rocksdb_wal_readoptions_t;
typedef struct rocksdb_write_buffer_manager_t rocksdb_write_buffer_manager_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writebatch_wi_t rocksdb_writebatch_wi_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;

/* Bytes of somebody else's. */
typedef struct rocksdb_slice_t {
    const char* data;
    size_t size;
} rocksdb_slice_t;

/* Indexes of block-based tables. */
enum {
    rocksdb_block_based_table_index_type_binary_search = 0,
    rocksdb_block_based_table_index_type_hash_search = 1,
    rocksdb_block_based_table_index_type_two_level_index_search = 2
};

/* Indexes of data blocks. */
enum {
    rocksdb_block_based_table_data_block_index_type_binary_search = 0,
    rocksdb_block_based_table_data_block_index_type_binary_search_and_hash = 1
};

/* Which index and filter blocks stay in the cache. */
enum {
    rocksdb_block_based_k_fallback_pinning_tier = 0,
    rocksdb_block_based_k_none_pinning_tier = 1,
    rocksdb_block_based_k_flush_and_similar_pinning_tier = 2,
    rocksdb_block_based_k_all_pinning_tier = 3
};

/* What is counted. */
enum {
    rocksdb_statistics_level_disable_all = 0,
    rocksdb_statistics_level_except_tickers = rocksdb_statistics_level_disable_all,
    rocksdb_statistics_level_except_histogram_or_timers = 1,
    rocksdb_statistics_level_except_timers = 2,
    rocksdb_statistics_level_except_detailed_timers = 3,
    rocksdb_statistics_level_except_time_for_mutex = 4,
    rocksdb_statistics_level_all = 5
};

/* Blobs put into their cache. */
enum {
    rocksdb_prepopulate_blob_disable = 0,
    rocksdb_prepopulate_blob_flush_only = 1
};

/* What becomes of damaged logs. */
enum {
    rocksdb_tolerate_corrupted_tail_records_recovery = 0,
    rocksdb_absolute_consistency_recovery = 1,
    rocksdb_point_in_time_recovery = 2,
    rocksdb_skip_any_corrupted_records_recovery = 3
};

/* Compressions. */
enum {
    rocksdb_no_compression = 0,
    rocksdb_snappy_compression = 1,
    rocksdb_zlib_compression = 2,
    rocksdb_bz2_compression = 3,
    rocksdb_lz4_compression = 4,
    rocksdb_lz4hc_compression = 5,
    rocksdb_xpress_compression = 6,
    rocksdb_zstd_compression = 7
};

/* Compaction styles. */
enum {
    rocksdb_level_compaction = 0,
    rocksdb_universal_compaction = 1,
    rocksdb_fifo_compaction = 2
};

/* Which table a compaction takes first. */
enum {
    rocksdb_k_by_compensated_size_compaction_pri = 0,
    rocksdb_k_oldest_largest_seq_first_compaction_pri = 1,
    rocksdb_k_oldest_smallest_seq_first_compaction_pri = 2,
    rocksdb_k_min_overlapping_ratio_compaction_pri = 3,
    rocksdb_k_round_robin_compaction_pri = 4
};

/* Universal compaction. */
enum {
    rocksdb_similar_size_compaction_stop_style = 0,
    rocksdb_total_size_compaction_stop_style = 1
};


#ifdef __cplusplus
}
#endif

#endif
