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

/* Levels of what a thread counts. */
enum {
    rocksdb_uninitialized = 0,
    rocksdb_disable = 1,
    rocksdb_enable_count = 2,
    rocksdb_enable_time_except_for_mutex = 3,
    rocksdb_enable_time = 4,
    rocksdb_out_of_bounds = 5
};

/* What a thread counts: compat.md lists those that are not 0. */
enum {
    rocksdb_user_key_comparison_count = 0,
    rocksdb_block_cache_hit_count = 1,
    rocksdb_block_read_count = 2,
    rocksdb_block_read_byte = 3,
    rocksdb_block_read_time = 4,
    rocksdb_block_checksum_time = 5,
    rocksdb_block_decompress_time = 6,
    rocksdb_get_read_bytes = 7,
    rocksdb_multiget_read_bytes = 8,
    rocksdb_iter_read_bytes = 9,
    rocksdb_internal_key_skipped_count = 10,
    rocksdb_internal_delete_skipped_count = 11,
    rocksdb_internal_recent_skipped_count = 12,
    rocksdb_internal_merge_count = 13,
    rocksdb_get_snapshot_time = 14,
    rocksdb_get_from_memtable_time = 15,
    rocksdb_get_from_memtable_count = 16,
    rocksdb_get_post_process_time = 17,
    rocksdb_get_from_output_files_time = 18,
    rocksdb_seek_on_memtable_time = 19,
    rocksdb_seek_on_memtable_count = 20,
    rocksdb_next_on_memtable_count = 21,
    rocksdb_prev_on_memtable_count = 22,
    rocksdb_seek_child_seek_time = 23,
    rocksdb_seek_child_seek_count = 24,
    rocksdb_seek_min_heap_time = 25,
    rocksdb_seek_max_heap_time = 26,
    rocksdb_seek_internal_seek_time = 27,
    rocksdb_find_next_user_entry_time = 28,
    rocksdb_write_wal_time = 29,
    rocksdb_write_memtable_time = 30,
    rocksdb_write_delay_time = 31,
    rocksdb_write_pre_and_post_process_time = 32,
    rocksdb_db_mutex_lock_nanos = 33,
    rocksdb_db_condition_wait_nanos = 34,
    rocksdb_merge_operator_time_nanos = 35,
    rocksdb_read_index_block_nanos = 36,
    rocksdb_read_filter_block_nanos = 37,
    rocksdb_new_table_block_iter_nanos = 38,
    rocksdb_new_table_iterator_nanos = 39,
    rocksdb_block_seek_nanos = 40,
    rocksdb_find_table_nanos = 41,
    rocksdb_bloom_memtable_hit_count = 42,
    rocksdb_bloom_memtable_miss_count = 43,
    rocksdb_bloom_sst_hit_count = 44,
    rocksdb_bloom_sst_miss_count = 45,
    rocksdb_key_lock_wait_time = 46,
    rocksdb_key_lock_wait_count = 47,
    rocksdb_env_new_sequential_file_nanos = 48,
    rocksdb_env_new_random_access_file_nanos = 49,
    rocksdb_env_new_writable_file_nanos = 50,
    rocksdb_env_reuse_writable_file_nanos = 51,
    rocksdb_env_new_random_rw_file_nanos = 52,
    rocksdb_env_new_directory_nanos = 53,
    rocksdb_env_file_exists_nanos = 54,
    rocksdb_env_get_children_nanos = 55,
    rocksdb_env_get_children_file_attributes_nanos = 56,
    rocksdb_env_delete_file_nanos = 57,
    rocksdb_env_create_dir_nanos = 58,
    rocksdb_env_create_dir_if_missing_nanos = 59,
    rocksdb_env_delete_dir_nanos = 60,
    rocksdb_env_get_file_size_nanos = 61,
    rocksdb_env_get_file_modification_time_nanos = 62,
    rocksdb_env_rename_file_nanos = 63,
    rocksdb_env_link_file_nanos = 64,
    rocksdb_env_lock_file_nanos = 65,
    rocksdb_env_unlock_file_nanos = 66,
    rocksdb_env_new_logger_nanos = 67,
    rocksdb_number_async_seek = 68,
    rocksdb_blob_cache_hit_count = 69,
    rocksdb_blob_read_count = 70,
    rocksdb_blob_read_byte = 71,
    rocksdb_blob_read_time = 72,
    rocksdb_blob_checksum_time = 73,
    rocksdb_blob_decompress_time = 74,
    rocksdb_internal_range_del_reseek_count = 75,
    rocksdb_block_read_cpu_time = 76,
    rocksdb_internal_merge_point_lookup_count = 77,
    rocksdb_total_metric_count = 78
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
