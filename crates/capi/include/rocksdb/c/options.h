/* Options of databases and families. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_OPTIONS_H_
#define SPILLWAY_ROCKSDB_C_OPTIONS_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rocksdb_options_t: RocksDB has one handle for the options of a database and of a family. */

ROCKSDB_LIBRARY_API rocksdb_options_t* rocksdb_options_create(void);
ROCKSDB_LIBRARY_API rocksdb_options_t* rocksdb_options_create_copy(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_destroy(rocksdb_options_t* options);

/* Not RocksDB's. By default opening a database fails where an option changes what is stored, kept or found and cannot be
 * honoured; the error names it. With this, such options are told of in the event log and have no effect. */
ROCKSDB_LIBRARY_API void spillway_options_set_ignore_unsupported_options(rocksdb_options_t* options,
    unsigned char value);

/* The options of a database, by RocksDB's C names and types; those of ours first. */

ROCKSDB_LIBRARY_API void rocksdb_options_set_create_if_missing(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_create_if_missing(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_create_missing_column_families(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_create_missing_column_families(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_error_if_exists(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_error_if_exists(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_paranoid_checks(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_paranoid_checks(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_open_files(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_open_files(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_background_jobs(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_background_jobs(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_subcompactions(rocksdb_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_options_get_max_subcompactions(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_total_wal_size(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_max_total_wal_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_wal_recovery_mode(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_wal_recovery_mode(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_bytes_per_sync(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_db_write_buffer_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_db_write_buffer_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_enforce_write_buffer_manager_during_recovery(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char
rocksdb_options_get_enforce_write_buffer_manager_during_recovery(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_manifest_file_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_max_manifest_file_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_avoid_flush_during_shutdown(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_avoid_flush_during_shutdown(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_allow_concurrent_memtable_write(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_allow_concurrent_memtable_write(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_allow_ingest_behind(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_allow_ingest_behind(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_stats_dump_period_sec(rocksdb_options_t* options, unsigned int value);
ROCKSDB_LIBRARY_API unsigned int rocksdb_options_get_stats_dump_period_sec(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_delayed_write_rate(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_delayed_write_rate(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_advise_random_on_open(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_advise_random_on_open(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_allow_mmap_reads(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_allow_mmap_reads(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_allow_mmap_writes(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_allow_mmap_writes(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_atomic_flush(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_atomic_flush(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_avoid_unnecessary_blocking_io(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_avoid_unnecessary_blocking_io(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_delete_obsolete_files_period_micros(rocksdb_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_delete_obsolete_files_period_micros(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_dump_malloc_stats(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_dump_malloc_stats(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_pipelined_write(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_enable_pipelined_write(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_write_thread_adaptive_yield(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_enable_write_thread_adaptive_yield(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_info_log_level(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_info_log_level(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_is_fd_close_on_exec(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_is_fd_close_on_exec(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_keep_log_file_num(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_keep_log_file_num(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_log_file_time_to_roll(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_log_file_time_to_roll(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_manifest_preallocation_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_manifest_preallocation_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_manual_wal_flush(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_manual_wal_flush(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_background_compactions(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_background_compactions(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_background_flushes(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_background_flushes(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_file_opening_threads(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_file_opening_threads(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_log_file_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_max_log_file_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_open_files_async(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_open_files_async(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_recycle_log_file_num(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_recycle_log_file_num(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_skip_stats_update_on_db_open(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_skip_stats_update_on_db_open(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_stats_persist_period_sec(rocksdb_options_t* options, unsigned int value);
ROCKSDB_LIBRARY_API unsigned int rocksdb_options_get_stats_persist_period_sec(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_table_cache_numshardbits(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_table_cache_numshardbits(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_track_and_verify_wals_in_manifest(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_track_and_verify_wals_in_manifest(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_unordered_write(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_unordered_write(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_use_adaptive_mutex(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_use_adaptive_mutex(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_use_direct_io_for_flush_and_compaction(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_use_direct_reads(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_use_direct_reads(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_use_fsync(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_use_fsync(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_wal_bytes_per_sync(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_wal_bytes_per_sync(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_wal_compression(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_wal_compression(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_WAL_size_limit_MB(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_WAL_size_limit_MB(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_WAL_ttl_seconds(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_WAL_ttl_seconds(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_writable_file_max_buffer_size(rocksdb_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_writable_file_max_buffer_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_write_dbid_to_manifest(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_write_dbid_to_manifest(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_write_identity_file(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_write_identity_file(rocksdb_options_t* options);

/* The options of a family, by RocksDB's C names and types; those of ours first. */

ROCKSDB_LIBRARY_API void rocksdb_options_set_write_buffer_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_write_buffer_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_write_buffer_number(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_max_write_buffer_number(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_min_write_buffer_number_to_merge(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_min_write_buffer_number_to_merge(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_prefix_bloom_size_ratio(rocksdb_options_t* options,
    double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_memtable_prefix_bloom_size_ratio(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_whole_key_filtering(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_memtable_whole_key_filtering(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_sequential_skip_in_iterations(rocksdb_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_max_sequential_skip_in_iterations(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_compression(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bottommost_compression(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_bottommost_compression(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compaction_style(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_compaction_style(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_num_levels(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_num_levels(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_level0_file_num_compaction_trigger(rocksdb_options_t* options,
    int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_level0_file_num_compaction_trigger(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_level0_slowdown_writes_trigger(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_level0_slowdown_writes_trigger(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_level0_stop_writes_trigger(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_level0_stop_writes_trigger(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_target_file_size_base(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_target_file_size_base(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_target_file_size_multiplier(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_target_file_size_multiplier(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_max_bytes_for_level_base(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_bytes_for_level_multiplier(rocksdb_options_t* options, double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_max_bytes_for_level_multiplier(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_level_compaction_dynamic_level_bytes(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_level_compaction_dynamic_level_bytes(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_read_triggered_compaction_threshold(rocksdb_options_t* options,
    double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_read_triggered_compaction_threshold(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_compaction_bytes(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_max_compaction_bytes(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_soft_pending_compaction_bytes_limit(rocksdb_options_t* options,
    size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_soft_pending_compaction_bytes_limit(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_hard_pending_compaction_bytes_limit(rocksdb_options_t* options,
    size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_hard_pending_compaction_bytes_limit(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_disable_auto_compactions(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_disable_auto_compactions(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_optimize_filters_for_hits(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_optimize_filters_for_hits(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_options_zstd_max_train_bytes(rocksdb_options_t* options,
    int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_compression_options_zstd_max_train_bytes(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_arena_block_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_arena_block_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_compaction_readahead_size(rocksdb_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_blob_compaction_readahead_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_compression_type(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_blob_compression_type(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_file_size(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_blob_file_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_file_starting_level(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_blob_file_starting_level(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_gc_age_cutoff(rocksdb_options_t* options, double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_blob_gc_age_cutoff(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_gc_force_threshold(rocksdb_options_t* options, double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_blob_gc_force_threshold(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bloom_locality(rocksdb_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_options_get_bloom_locality(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compaction_pri(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_compaction_pri(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_options_max_dict_buffer_bytes(rocksdb_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_options_parallel_threads(rocksdb_options_t* options,
    int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_compression_options_parallel_threads(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_options_use_zstd_dict_trainer(rocksdb_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_blob_files(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_enable_blob_files(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_blob_gc(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_enable_blob_gc(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_experimental_mempurge_threshold(rocksdb_options_t* options,
    double value);
ROCKSDB_LIBRARY_API double rocksdb_options_get_experimental_mempurge_threshold(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_inplace_update_num_locks(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_inplace_update_num_locks(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_inplace_update_support(rocksdb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_inplace_update_support(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_successive_merges(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_max_successive_merges(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_write_buffer_size_to_maintain(rocksdb_options_t* options,
    int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_options_get_max_write_buffer_size_to_maintain(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_avg_op_scan_flush_trigger(rocksdb_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_options_get_memtable_avg_op_scan_flush_trigger(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_huge_page_size(rocksdb_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_memtable_huge_page_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_op_scan_flush_trigger(rocksdb_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_options_get_memtable_op_scan_flush_trigger(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_min_blob_size(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_min_blob_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_min_tombstones_for_range_conversion(rocksdb_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_options_get_min_tombstones_for_range_conversion(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_periodic_compaction_seconds(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_periodic_compaction_seconds(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_prepopulate_blob_cache(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_options_get_prepopulate_blob_cache(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_report_bg_io_stats(rocksdb_options_t* options, int value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_report_bg_io_stats(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_ttl(rocksdb_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_get_ttl(rocksdb_options_t* options);

/* Options that are objects: comparators, operators, caches, and representations of memtables and tables. */

/* The comparator stays the caller's. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_comparator(rocksdb_options_t* options, rocksdb_comparator_t* comparator);
/* The options own the operator from now on. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_merge_operator(rocksdb_options_t* options,
    rocksdb_mergeoperator_t* merge_operator);
ROCKSDB_LIBRARY_API void rocksdb_options_set_uint64add_merge_operator(rocksdb_options_t* options);
/* The filter stays the caller's. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_compaction_filter(rocksdb_options_t* options,
    rocksdb_compactionfilter_t* filter);
/* The options own the factory from now on. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_compaction_filter_factory(rocksdb_options_t* options,
    rocksdb_compactionfilterfactory_t* factory);
/* The options own the extractor from now on. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_prefix_extractor(rocksdb_options_t* options,
    rocksdb_slicetransform_t* extractor);
ROCKSDB_LIBRARY_API void rocksdb_options_set_env(rocksdb_options_t* options, rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_options_set_write_buffer_manager(rocksdb_options_t* options,
    rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API void rocksdb_options_set_row_cache(rocksdb_options_t* options, rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_cache(rocksdb_options_t* options, rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API void rocksdb_options_set_ratelimiter(rocksdb_options_t* options, rocksdb_ratelimiter_t* limiter);
ROCKSDB_LIBRARY_API void rocksdb_options_set_info_log(rocksdb_options_t* options, rocksdb_logger_t* logger);
/* A handle of its own; NULL where none was set. */
ROCKSDB_LIBRARY_API rocksdb_logger_t* rocksdb_options_get_info_log(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_sst_file_manager(rocksdb_options_t* options,
    rocksdb_sst_file_manager_t* manager);
ROCKSDB_LIBRARY_API void rocksdb_options_set_wal_dir(rocksdb_options_t* options, const char* dir);
ROCKSDB_LIBRARY_API void rocksdb_options_set_db_log_dir(rocksdb_options_t* options, const char* dir);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_per_level(rocksdb_options_t* options, const int* levels,
    size_t count);
/* Levels from first on are compressed, those before it are not; negative for all. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_min_level_to_compress(rocksdb_options_t* options, int first);
ROCKSDB_LIBRARY_API void rocksdb_options_set_compression_options(rocksdb_options_t* options, int window_bits,
    int level, int strategy, int max_dict_bytes);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bottommost_compression_options(rocksdb_options_t* options,
    int window_bits, int level, int strategy, int max_dict_bytes, unsigned char enabled);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
    rocksdb_options_t* options, int bytes, unsigned char enabled);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* options, unsigned char use_trainer, unsigned char enabled);
/* Those of the other levels are trained too, where they have any. */
ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(
    rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
    rocksdb_options_t* options, uint64_t bytes, unsigned char enabled);
ROCKSDB_LIBRARY_API void rocksdb_options_set_sst_partitioner_factory(rocksdb_options_t* options,
    rocksdb_sst_partitioner_factory_t* factory);
ROCKSDB_LIBRARY_API void rocksdb_options_add_compact_on_deletion_collector_factory(rocksdb_options_t* options,
    size_t window_size, size_t deletions);
ROCKSDB_LIBRARY_API void rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
    rocksdb_options_t* options, size_t window_size, size_t deletions, double ratio);
ROCKSDB_LIBRARY_API void rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
    rocksdb_options_t* options, size_t window_size, size_t deletions, double ratio, uint64_t min_file_size);
/* Tables stay block-based here too. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_cuckoo_table_factory(rocksdb_options_t* options,
    rocksdb_cuckoo_table_options_t* cuckoo);
ROCKSDB_LIBRARY_API void rocksdb_options_set_memtable_vector_rep(rocksdb_options_t* options);
/* Height and branching factor are those of RocksDB's lists in buckets; ours have none. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_hash_skip_list_rep(rocksdb_options_t* options, size_t bucket_count,
    int32_t height, int32_t branching_factor);
ROCKSDB_LIBRARY_API void rocksdb_options_set_hash_link_list_rep(rocksdb_options_t* options, size_t bucket_count);
/* Speedb's: its sorted hash. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_hash_spdb_rep(rocksdb_options_t* options, size_t bucket_count);
/* Tables stay block-based: plain tables are not written. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_plain_table_factory(rocksdb_options_t* options, uint32_t user_key_len,
    int bloom_bits_per_key, double hash_table_ratio, size_t index_sparseness, size_t huge_page_tlb_size,
    char encoding_type, unsigned char full_scan_mode, unsigned char store_index_in_file);
ROCKSDB_LIBRARY_API void rocksdb_options_enable_statistics(rocksdb_options_t* options);
/* As in RocksDB a level is something that statistics have: without them nothing is set, and the level is 0. */
ROCKSDB_LIBRARY_API void rocksdb_options_set_statistics_level(rocksdb_options_t* options, int level);
ROCKSDB_LIBRARY_API int rocksdb_options_get_statistics_level(rocksdb_options_t* options);
/* NULL where statistics are off. All is 0 until a database is opened with them. */
ROCKSDB_LIBRARY_API char* rocksdb_options_statistics_get_string(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API uint64_t rocksdb_options_statistics_get_ticker_count(rocksdb_options_t* options, uint32_t ticker);
ROCKSDB_LIBRARY_API void rocksdb_options_statistics_get_histogram_data(rocksdb_options_t* options, uint32_t histogram,
    rocksdb_statistics_histogram_data_t* data);
/* Named without set in RocksDB too. */
ROCKSDB_LIBRARY_API void rocksdb_options_compaction_readahead_size(rocksdb_options_t* options, size_t bytes);
ROCKSDB_LIBRARY_API size_t rocksdb_options_get_compaction_readahead_size(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_max_bytes_for_level_multiplier_additional(rocksdb_options_t* options,
    int* levels, size_t count);

/* RocksDB's presets for a machine or a workload. */

ROCKSDB_LIBRARY_API void rocksdb_options_increase_parallelism(rocksdb_options_t* options, int threads);
ROCKSDB_LIBRARY_API void rocksdb_options_optimize_level_style_compaction(rocksdb_options_t* options,
    uint64_t memtable_memory_budget);
ROCKSDB_LIBRARY_API void rocksdb_options_optimize_universal_style_compaction(rocksdb_options_t* options,
    uint64_t memtable_memory_budget);
ROCKSDB_LIBRARY_API void rocksdb_options_optimize_for_point_lookup(rocksdb_options_t* options,
    uint64_t block_cache_mib);
ROCKSDB_LIBRARY_API void rocksdb_options_prepare_for_bulk_load(rocksdb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_options_set_universal_compaction_options(rocksdb_options_t* options,
    rocksdb_universal_compaction_options_t* universal);
ROCKSDB_LIBRARY_API void rocksdb_options_set_fifo_compaction_options(rocksdb_options_t* options,
    rocksdb_fifo_compaction_options_t* fifo);

/* rocksdb_dbpath_t: directories for tables. */

ROCKSDB_LIBRARY_API rocksdb_dbpath_t* rocksdb_dbpath_create(const char* dir, uint64_t target_size);
ROCKSDB_LIBRARY_API void rocksdb_dbpath_destroy(rocksdb_dbpath_t* dir);
ROCKSDB_LIBRARY_API void rocksdb_options_set_db_paths(rocksdb_options_t* options, const rocksdb_dbpath_t** paths,
    size_t count);
ROCKSDB_LIBRARY_API void rocksdb_options_set_cf_paths(rocksdb_options_t* options, const rocksdb_dbpath_t** paths,
    size_t count);

/* Options as text: RocksDB's option strings, which is also how Spillway's own options reach C. */

/* new_options becomes what base_options is, with what the string says. */
ROCKSDB_LIBRARY_API void rocksdb_get_options_from_string(const rocksdb_options_t* base_options, const char* text,
    rocksdb_options_t* new_options, char** errptr);

/* The options that a database was last opened with, from its OPTIONS file. */

/* Comparators, operators and extractors that are not built in must be set before the options are used. All
   four results are given back together. */
ROCKSDB_LIBRARY_API void rocksdb_load_latest_options(const char* dir, rocksdb_env_t* env, bool ignore_unknown_options,
    rocksdb_cache_t* cache, rocksdb_options_t** db_options, size_t* count, char*** names,
    rocksdb_options_t*** family_options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_load_latest_options_destroy(rocksdb_options_t* db_options, char** names,
    rocksdb_options_t** family_options, size_t len);

#ifdef __cplusplus
}
#endif

#endif
