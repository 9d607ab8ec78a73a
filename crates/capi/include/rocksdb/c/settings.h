/* Options of tables, calls and jobs; caches, envs, memory, statistics. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_SETTINGS_H_
#define SPILLWAY_ROCKSDB_C_SETTINGS_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rocksdb_block_based_table_options_t, and what goes into it: filters and caches. */

ROCKSDB_LIBRARY_API rocksdb_block_based_table_options_t* rocksdb_block_based_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_destroy(rocksdb_block_based_table_options_t* options);
/* An older name of data_block_hash_table_util_ratio. */
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_data_block_hash_ratio(
    rocksdb_block_based_table_options_t* options, double ratio);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_top_level_index_pinning_tier(
    rocksdb_block_based_table_options_t* options, int tier);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_partition_pinning_tier(
    rocksdb_block_based_table_options_t* options, int tier);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_unpartitioned_pinning_tier(
    rocksdb_block_based_table_options_t* options, int tier);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t* options,
    rocksdb_filterpolicy_t* policy);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t* options,
    rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API void rocksdb_options_set_block_based_table_factory(rocksdb_options_t* options,
    rocksdb_block_based_table_options_t* table);
ROCKSDB_LIBRARY_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom(double bits_per_key);
ROCKSDB_LIBRARY_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_bloom_full(double bits_per_key);
/* Ribbon filters are read and not written: a bloom filter of the same rate of errors takes its place. */
ROCKSDB_LIBRARY_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon(double bloom_equivalent_bits_per_key);
ROCKSDB_LIBRARY_API rocksdb_filterpolicy_t* rocksdb_filterpolicy_create_ribbon_hybrid(
    double bloom_equivalent_bits_per_key, int bloom_before_level);
ROCKSDB_LIBRARY_API void rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_t* policy);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_block_size(rocksdb_block_based_table_options_t* options,
    size_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_block_based_options_get_block_size(rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_block_size_deviation(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_block_size_deviation(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_block_restart_interval(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_block_restart_interval(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_index_block_restart_interval(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_index_block_restart_interval(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_metadata_block_size(
    rocksdb_block_based_table_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_block_based_options_get_metadata_block_size(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_index_type(rocksdb_block_based_table_options_t* options,
    int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_index_type(rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_data_block_index_type(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_data_block_index_type(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* options, double value);
ROCKSDB_LIBRARY_API double rocksdb_block_based_options_get_data_block_hash_table_util_ratio(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_checksum(rocksdb_block_based_table_options_t* options,
    char value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_checksum(rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_partition_filters(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_partition_filters(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_whole_key_filtering(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_whole_key_filtering(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_format_version(rocksdb_block_based_table_options_t* options,
    int value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_block_based_options_get_format_version(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_pin_l0_filter_and_index_blocks_in_cache(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_enable_index_compression(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_enable_index_compression(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_no_block_cache(rocksdb_block_based_table_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_no_block_cache(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_verify_compression(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_verify_compression(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_block_align(rocksdb_block_based_table_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_block_align(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_cache_index_and_filter_blocks_with_high_priority(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_decouple_partitioned_filters(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_detect_filter_construct_corruption(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_fail_if_no_udi_on_open(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_index_block_search_type(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_index_block_search_type(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_index_shortening(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_index_shortening(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_block_based_options_get_initial_auto_readahead_size(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_block_based_options_get_max_auto_readahead_size(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_block_based_options_get_num_file_reads_for_auto_readahead(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_optimize_filters_for_memory(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_pin_top_level_index_and_filter(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_block_based_options_get_prepopulate_block_cache(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_block_based_options_get_read_amp_bytes_per_bit(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_separate_key_value_in_data_block(
    rocksdb_block_based_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_block_based_options_set_use_delta_encoding(
    rocksdb_block_based_table_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_block_based_options_get_use_delta_encoding(
    rocksdb_block_based_table_options_t* options);

/* Options of compaction styles and tables that are not there, kept so that a caller gets what was set. */

ROCKSDB_LIBRARY_API rocksdb_cuckoo_table_options_t* rocksdb_cuckoo_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_destroy(rocksdb_cuckoo_table_options_t* options);
/* An older name of set_hash_table_ratio. */
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_hash_ratio(rocksdb_cuckoo_table_options_t* options, double ratio);
ROCKSDB_LIBRARY_API rocksdb_universal_compaction_options_t* rocksdb_universal_compaction_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_destroy(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_fifo_compaction_options_t* rocksdb_fifo_compaction_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_destroy(rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_size_ratio(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_size_ratio(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_min_merge_width(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_min_merge_width(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_max_merge_width(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_max_merge_width(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_max_size_amplification_percent(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_compression_size_percent(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_compression_size_percent(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_stop_style(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_stop_style(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_allow_trivial_move(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_universal_compaction_options_get_allow_trivial_move(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_max_read_amp(
    rocksdb_universal_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_universal_compaction_options_get_max_read_amp(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_incremental(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_universal_compaction_options_get_incremental(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_universal_compaction_options_set_reduce_file_locking(
    rocksdb_universal_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_universal_compaction_options_get_reduce_file_locking(
    rocksdb_universal_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_age_for_warm(
    rocksdb_fifo_compaction_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_fifo_compaction_options_get_age_for_warm(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_fifo_compaction_options_get_allow_trivial_copy_when_change_temperature(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_fifo_compaction_options_get_trivial_copy_buffer_size(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_fifo_compaction_options_get_max_table_files_size(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_allow_compaction(
    rocksdb_fifo_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_fifo_compaction_options_get_allow_compaction(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_max_data_files_size(
    rocksdb_fifo_compaction_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_fifo_compaction_options_get_max_data_files_size(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_fifo_compaction_options_set_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_fifo_compaction_options_get_use_kv_ratio_compaction(
    rocksdb_fifo_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_hash_table_ratio(rocksdb_cuckoo_table_options_t* options,
    double value);
ROCKSDB_LIBRARY_API double rocksdb_cuckoo_options_get_hash_table_ratio(rocksdb_cuckoo_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_max_search_depth(rocksdb_cuckoo_table_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_cuckoo_options_get_max_search_depth(rocksdb_cuckoo_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_cuckoo_block_size(rocksdb_cuckoo_table_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_cuckoo_options_get_cuckoo_block_size(rocksdb_cuckoo_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_identity_as_first_hash(rocksdb_cuckoo_table_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_cuckoo_options_get_identity_as_first_hash(
    rocksdb_cuckoo_table_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cuckoo_options_set_use_module_hash(rocksdb_cuckoo_table_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_cuckoo_options_get_use_module_hash(rocksdb_cuckoo_table_options_t* options);

/* rocksdb_cache_t: the block cache. RocksDB's kinds differ in locking and eviction; here there is one. */

ROCKSDB_LIBRARY_API rocksdb_cache_t* rocksdb_cache_create_lru(size_t capacity);
ROCKSDB_LIBRARY_API rocksdb_cache_t* rocksdb_cache_create_lru_with_strict_capacity_limit(size_t capacity);
ROCKSDB_LIBRARY_API rocksdb_cache_t* rocksdb_cache_create_lru_opts(const rocksdb_lru_cache_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_cache_t* rocksdb_cache_create_hyper_clock(size_t capacity, size_t estimated_entry_charge);
ROCKSDB_LIBRARY_API rocksdb_cache_t* rocksdb_cache_create_hyper_clock_opts(
    const rocksdb_hyper_clock_cache_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_cache_destroy(rocksdb_cache_t* cache);
/* In RocksDB this spares the process the work of freeing the cache at its end. Here nothing is to be spared:
   the last user frees it. */
ROCKSDB_LIBRARY_API void rocksdb_cache_disown_data(rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API void rocksdb_cache_set_capacity(rocksdb_cache_t* cache, size_t capacity);
ROCKSDB_LIBRARY_API size_t rocksdb_cache_get_capacity(const rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API size_t rocksdb_cache_get_usage(const rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API size_t rocksdb_cache_get_pinned_usage(const rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API size_t rocksdb_cache_get_occupancy_count(const rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API size_t rocksdb_cache_get_table_address_count(const rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API rocksdb_lru_cache_options_t* rocksdb_lru_cache_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_lru_cache_options_destroy(rocksdb_lru_cache_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_lru_cache_options_set_capacity(rocksdb_lru_cache_options_t* options,
    size_t capacity);
ROCKSDB_LIBRARY_API void rocksdb_lru_cache_options_set_num_shard_bits(rocksdb_lru_cache_options_t* options, int bits);
ROCKSDB_LIBRARY_API void rocksdb_lru_cache_options_set_memory_allocator(rocksdb_lru_cache_options_t* options,
    rocksdb_memory_allocator_t* allocator);
ROCKSDB_LIBRARY_API void rocksdb_hyper_clock_cache_options_set_memory_allocator(
    rocksdb_hyper_clock_cache_options_t* options, rocksdb_memory_allocator_t* allocator);
ROCKSDB_LIBRARY_API rocksdb_hyper_clock_cache_options_t* rocksdb_hyper_clock_cache_options_create(size_t capacity,
    size_t estimated_entry_charge);
ROCKSDB_LIBRARY_API void rocksdb_hyper_clock_cache_options_destroy(rocksdb_hyper_clock_cache_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_hyper_clock_cache_options_set_capacity(rocksdb_hyper_clock_cache_options_t* options,
    size_t capacity);
/* Our cache sizes its tables itself. */
ROCKSDB_LIBRARY_API void rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(
    rocksdb_hyper_clock_cache_options_t* options, size_t bytes);
ROCKSDB_LIBRARY_API void rocksdb_hyper_clock_cache_options_set_num_shard_bits(
    rocksdb_hyper_clock_cache_options_t* options, int bits);
ROCKSDB_LIBRARY_API rocksdb_memory_allocator_t* rocksdb_jemalloc_nodump_allocator_create(char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_memory_allocator_destroy(rocksdb_memory_allocator_t* memory_allocator);

/* rocksdb_env_t: where files and threads come from; and what RocksDB hangs beside it. */

ROCKSDB_LIBRARY_API rocksdb_env_t* rocksdb_create_default_env(void);
/* One directory: that which it lies in must be there. */
ROCKSDB_LIBRARY_API void rocksdb_create_dir_if_missing(rocksdb_env_t* env, const char* path, char** errptr);
/* Files in memory, which are gone with the env. */
ROCKSDB_LIBRARY_API rocksdb_env_t* rocksdb_create_mem_env(void);
ROCKSDB_LIBRARY_API void rocksdb_env_destroy(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_set_background_threads(rocksdb_env_t* env, int threads);
ROCKSDB_LIBRARY_API int rocksdb_env_get_background_threads(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_set_low_priority_background_threads(rocksdb_env_t* env, int threads);
ROCKSDB_LIBRARY_API int rocksdb_env_get_low_priority_background_threads(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_set_high_priority_background_threads(rocksdb_env_t* env, int threads);
ROCKSDB_LIBRARY_API int rocksdb_env_get_high_priority_background_threads(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_set_bottom_priority_background_threads(rocksdb_env_t* env, int threads);
ROCKSDB_LIBRARY_API int rocksdb_env_get_bottom_priority_background_threads(rocksdb_env_t* env);
/* The env has no threads whose priority could be lowered. */
ROCKSDB_LIBRARY_API void rocksdb_env_lower_thread_pool_io_priority(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_lower_high_priority_thread_pool_io_priority(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_lower_thread_pool_cpu_priority(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_env_lower_high_priority_thread_pool_cpu_priority(rocksdb_env_t* env);
/* The env has no threads: a database's own are joined when it is closed. */
ROCKSDB_LIBRARY_API void rocksdb_env_join_all_threads(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API rocksdb_envoptions_t* rocksdb_envoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_envoptions_destroy(rocksdb_envoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness);
ROCKSDB_LIBRARY_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_auto_tuned(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness);
ROCKSDB_LIBRARY_API rocksdb_ratelimiter_t* rocksdb_ratelimiter_create_with_mode(int64_t bytes_per_second,
    int64_t refill_period_us, int32_t fairness, int mode, bool auto_tuned);
ROCKSDB_LIBRARY_API void rocksdb_ratelimiter_destroy(rocksdb_ratelimiter_t* limiter);
ROCKSDB_LIBRARY_API rocksdb_logger_t* rocksdb_logger_create_stderr_logger(int level, const char* prefix);
/* The function is never called. */
ROCKSDB_LIBRARY_API rocksdb_logger_t* rocksdb_logger_create_callback_logger(int level,
    void (*log)(void*, unsigned lev, char*, size_t), void* state);
ROCKSDB_LIBRARY_API void rocksdb_logger_destroy(rocksdb_logger_t* logger);

/* Memory of databases and caches: limits on it, and how much there is. */

ROCKSDB_LIBRARY_API rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create(size_t buffer_size,
    bool allow_stall);
ROCKSDB_LIBRARY_API rocksdb_write_buffer_manager_t* rocksdb_write_buffer_manager_create_with_cache(
    size_t buffer_size, const rocksdb_cache_t* cache, bool allow_stall);
ROCKSDB_LIBRARY_API void rocksdb_write_buffer_manager_destroy(rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API bool rocksdb_write_buffer_manager_enabled(rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API bool rocksdb_write_buffer_manager_cost_to_cache(rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API size_t rocksdb_write_buffer_manager_buffer_size(rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API size_t rocksdb_write_buffer_manager_memory_usage(rocksdb_write_buffer_manager_t* manager);
/* Memory of memtables is not put on the cache's account. */
ROCKSDB_LIBRARY_API size_t rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(
    rocksdb_write_buffer_manager_t* manager);
ROCKSDB_LIBRARY_API size_t rocksdb_write_buffer_manager_mutable_memtable_memory_usage(
    rocksdb_write_buffer_manager_t* manager);
/* Databases opened from now on have the new limit. */
ROCKSDB_LIBRARY_API void rocksdb_write_buffer_manager_set_buffer_size(rocksdb_write_buffer_manager_t* manager,
    size_t buffer_size);
ROCKSDB_LIBRARY_API void rocksdb_write_buffer_manager_set_allow_stall(rocksdb_write_buffer_manager_t* manager,
    bool allow_stall);
ROCKSDB_LIBRARY_API rocksdb_memory_consumers_t* rocksdb_memory_consumers_create(void);
ROCKSDB_LIBRARY_API void rocksdb_memory_consumers_destroy(rocksdb_memory_consumers_t* consumers);
ROCKSDB_LIBRARY_API void rocksdb_memory_consumers_add_db(rocksdb_memory_consumers_t* consumers, rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_memory_consumers_add_cache(rocksdb_memory_consumers_t* consumers,
    rocksdb_cache_t* cache);
ROCKSDB_LIBRARY_API void rocksdb_approximate_memory_usage_destroy(rocksdb_memory_usage_t* usage);
ROCKSDB_LIBRARY_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_total(rocksdb_memory_usage_t* usage);
ROCKSDB_LIBRARY_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_unflushed(rocksdb_memory_usage_t* usage);
ROCKSDB_LIBRARY_API uint64_t rocksdb_approximate_memory_usage_get_mem_table_readers_total(
    rocksdb_memory_usage_t* usage);
ROCKSDB_LIBRARY_API uint64_t rocksdb_approximate_memory_usage_get_cache_total(rocksdb_memory_usage_t* usage);
ROCKSDB_LIBRARY_API rocksdb_memory_usage_t* rocksdb_approximate_memory_usage_create(
    rocksdb_memory_consumers_t* consumers, char** errptr);

/* rocksdb_sst_file_manager_t: how much the tables of some databases take. */

ROCKSDB_LIBRARY_API rocksdb_sst_file_manager_t* rocksdb_sst_file_manager_create(rocksdb_env_t* env);
ROCKSDB_LIBRARY_API void rocksdb_sst_file_manager_destroy(rocksdb_sst_file_manager_t* manager);
/* Writes go on when it is reached. */
ROCKSDB_LIBRARY_API void rocksdb_sst_file_manager_set_max_allowed_space_usage(rocksdb_sst_file_manager_t* manager,
    uint64_t bytes);
ROCKSDB_LIBRARY_API void rocksdb_sst_file_manager_set_compaction_buffer_size(rocksdb_sst_file_manager_t* manager,
    uint64_t bytes);
ROCKSDB_LIBRARY_API bool rocksdb_sst_file_manager_is_max_allowed_space_reached(rocksdb_sst_file_manager_t* manager);
/* What compactions have written so far is not part of it. */
ROCKSDB_LIBRARY_API bool rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
    rocksdb_sst_file_manager_t* manager);
ROCKSDB_LIBRARY_API uint64_t rocksdb_sst_file_manager_get_total_size(rocksdb_sst_file_manager_t* manager);
ROCKSDB_LIBRARY_API int64_t rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(
    rocksdb_sst_file_manager_t* manager);
ROCKSDB_LIBRARY_API void rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(
    rocksdb_sst_file_manager_t* manager, int64_t bytes);
ROCKSDB_LIBRARY_API double rocksdb_sst_file_manager_get_max_trash_db_ratio(rocksdb_sst_file_manager_t* manager);
ROCKSDB_LIBRARY_API void rocksdb_sst_file_manager_set_max_trash_db_ratio(rocksdb_sst_file_manager_t* manager,
    double ratio);
ROCKSDB_LIBRARY_API uint64_t rocksdb_sst_file_manager_get_total_trash_size(rocksdb_sst_file_manager_t* manager);

/* rocksdb_readoptions_t. */

ROCKSDB_LIBRARY_API rocksdb_readoptions_t* rocksdb_readoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_destroy(rocksdb_readoptions_t* options);
/* NULL for the state when the read begins. */
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_snapshot(rocksdb_readoptions_t* options,
    const rocksdb_snapshot_t* snapshot);
/* NULL for no bound. */
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_iterate_upper_bound(rocksdb_readoptions_t* options, const char* key,
    size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_iterate_lower_bound(rocksdb_readoptions_t* options, const char* key,
    size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_verify_checksums(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_verify_checksums(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_fill_cache(rocksdb_readoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_fill_cache(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_prefix_same_as_start(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_prefix_same_as_start(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_total_order_seek(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_total_order_seek(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_readahead_size(rocksdb_readoptions_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_readoptions_get_readahead_size(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_max_skippable_internal_keys(rocksdb_readoptions_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_readoptions_get_max_skippable_internal_keys(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_tailing(rocksdb_readoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_tailing(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_async_io(rocksdb_readoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_async_io(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_background_purge_on_iterator_cleanup(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_background_purge_on_iterator_cleanup(
    rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_auto_readahead_size(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_auto_readahead_size(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_deadline(rocksdb_readoptions_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_readoptions_get_deadline(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_ignore_range_deletions(rocksdb_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_ignore_range_deletions(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_io_timeout(rocksdb_readoptions_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_readoptions_get_io_timeout(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_pin_data(rocksdb_readoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_readoptions_get_pin_data(rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_read_tier(rocksdb_readoptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_readoptions_get_read_tier(rocksdb_readoptions_t* options);

/* rocksdb_writeoptions_t. */

ROCKSDB_LIBRARY_API rocksdb_writeoptions_t* rocksdb_writeoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_destroy(rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_disable_WAL(rocksdb_writeoptions_t* options, int disable);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_disable_WAL(rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_sync(rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_set_no_slowdown(rocksdb_writeoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_no_slowdown(rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_set_ignore_missing_column_families(rocksdb_writeoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_ignore_missing_column_families(
    rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_set_low_pri(rocksdb_writeoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_low_pri(rocksdb_writeoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writeoptions_set_memtable_insert_hint_per_batch(rocksdb_writeoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_writeoptions_get_memtable_insert_hint_per_batch(
    rocksdb_writeoptions_t* options);

/* Options of flushes, manual compactions, and waits for them. */

ROCKSDB_LIBRARY_API rocksdb_flushoptions_t* rocksdb_flushoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_flushoptions_destroy(rocksdb_flushoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_compactoptions_t* rocksdb_compactoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_destroy(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_compaction_options_t* rocksdb_compaction_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_destroy(rocksdb_compaction_options_t* options);
/* A flag that ends compactions of named tables. It may be destroyed before the options. */
ROCKSDB_LIBRARY_API unsigned char* rocksdb_compaction_options_canceled_create(void);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_canceled_destroy(unsigned char* canceled);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_canceled_set(unsigned char* canceled, unsigned char value);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_canceled(rocksdb_compaction_options_t* options,
    unsigned char* canceled);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_compression(rocksdb_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_compaction_options_get_compression(rocksdb_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_output_file_size_limit(rocksdb_compaction_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_compaction_options_get_output_file_size_limit(rocksdb_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_max_subcompactions(rocksdb_compaction_options_t* options,
    uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_compaction_options_get_max_subcompactions(rocksdb_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_allow_trivial_move(rocksdb_compaction_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compaction_options_get_allow_trivial_move(
    rocksdb_compaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compaction_options_set_output_temperature_override(
    rocksdb_compaction_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_compaction_options_get_output_temperature_override(
    rocksdb_compaction_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_wait_for_compact_options_t* rocksdb_wait_for_compact_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact_options_destroy(rocksdb_wait_for_compact_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_flushoptions_get_wait(rocksdb_flushoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_flushoptions_set_allow_write_stall(rocksdb_flushoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_flushoptions_get_allow_write_stall(rocksdb_flushoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_flushwaloptions_t* rocksdb_flushwaloptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_flushwaloptions_destroy(rocksdb_flushwaloptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_flushwaloptions_set_sync(rocksdb_flushwaloptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_flushwaloptions_get_sync(rocksdb_flushwaloptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_flushwaloptions_set_rate_limiter_priority(rocksdb_flushwaloptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_flushwaloptions_get_rate_limiter_priority(rocksdb_flushwaloptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_exclusive_manual_compaction(rocksdb_compactoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactoptions_get_exclusive_manual_compaction(
    rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_bottommost_level_compaction(rocksdb_compactoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactoptions_get_bottommost_level_compaction(
    rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_change_level(rocksdb_compactoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactoptions_get_change_level(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_target_level(rocksdb_compactoptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_compactoptions_get_target_level(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_max_subcompactions(rocksdb_compactoptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_compactoptions_get_max_subcompactions(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_allow_write_stall(rocksdb_compactoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_compactoptions_get_allow_write_stall(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_target_path_id(rocksdb_compactoptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_compactoptions_get_target_path_id(rocksdb_compactoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact_options_set_flush(rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_wait_for_compact_options_get_flush(
    rocksdb_wait_for_compact_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact_options_set_close_db(rocksdb_wait_for_compact_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_wait_for_compact_options_get_close_db(
    rocksdb_wait_for_compact_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact_options_set_abort_on_pause(
    rocksdb_wait_for_compact_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_wait_for_compact_options_get_abort_on_pause(
    rocksdb_wait_for_compact_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact_options_set_timeout(rocksdb_wait_for_compact_options_t* options,
    uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_wait_for_compact_options_get_timeout(
    rocksdb_wait_for_compact_options_t* options);

/* Statistics by RocksDB's numbers: the places of its enums Tickers and Histograms, version 11. */

ROCKSDB_LIBRARY_API rocksdb_statistics_histogram_data_t* rocksdb_statistics_histogram_data_create(void);
ROCKSDB_LIBRARY_API void rocksdb_statistics_histogram_data_destroy(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_median(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_p95(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_p99(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_average(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_std_dev(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_max(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API uint64_t rocksdb_statistics_histogram_data_get_count(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API uint64_t rocksdb_statistics_histogram_data_get_sum(rocksdb_statistics_histogram_data_t* data);
ROCKSDB_LIBRARY_API double rocksdb_statistics_histogram_data_get_min(rocksdb_statistics_histogram_data_t* data);

/* rocksdb_perfcontext_t: what one thread's calls cost. */

ROCKSDB_LIBRARY_API void rocksdb_set_perf_level(int level);
ROCKSDB_LIBRARY_API rocksdb_perfcontext_t* rocksdb_perfcontext_create(void);
ROCKSDB_LIBRARY_API void rocksdb_perfcontext_destroy(rocksdb_perfcontext_t* context);
ROCKSDB_LIBRARY_API void rocksdb_perfcontext_reset(rocksdb_perfcontext_t* context);
/* "name = value, name = value", of the calling thread. */
ROCKSDB_LIBRARY_API char* rocksdb_perfcontext_report(rocksdb_perfcontext_t* context,
    unsigned char exclude_zero_counters);
ROCKSDB_LIBRARY_API uint64_t rocksdb_perfcontext_metric(rocksdb_perfcontext_t* context, int metric);

#ifdef __cplusplus
}
#endif

#endif
