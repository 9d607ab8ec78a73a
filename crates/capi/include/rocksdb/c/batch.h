/* Write batches. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_BATCH_H_
#define SPILLWAY_ROCKSDB_C_BATCH_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rocksdb_writebatch_t. */

ROCKSDB_LIBRARY_API rocksdb_writebatch_t* rocksdb_writebatch_create(void);
/* Batches grow as they need, and are not checked entry by entry in memory. */
ROCKSDB_LIBRARY_API rocksdb_writebatch_t* rocksdb_writebatch_create_with_params(size_t reserved_bytes,
    size_t max_bytes, size_t protection_bytes_per_key, size_t default_cf_ts_sz);
/* Of the bytes of another batch. Where they are none, writing the batch fails. */
ROCKSDB_LIBRARY_API rocksdb_writebatch_t* rocksdb_writebatch_create_from(const char* bytes, size_t len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_destroy(rocksdb_writebatch_t* batch);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_clear(rocksdb_writebatch_t* batch);
ROCKSDB_LIBRARY_API int rocksdb_writebatch_count(rocksdb_writebatch_t* batch);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_put(rocksdb_writebatch_t* batch, const char* key, size_t key_len,
    const char* value, size_t value_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_put_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* value, size_t value_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_merge(rocksdb_writebatch_t* batch, const char* key, size_t key_len,
    const char* operand, size_t operand_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_merge_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* operand, size_t operand_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete(rocksdb_writebatch_t* batch, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_singledelete(rocksdb_writebatch_t* batch, const char* key,
    size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_singledelete_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_range(rocksdb_writebatch_t* batch, const char* start,
    size_t start_len, const char* end, size_t end_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_range_cf(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* start, size_t start_len, const char* end, size_t end_len);
/* Keys and values that come in parts, joined in the batch. */
ROCKSDB_LIBRARY_API void rocksdb_writebatch_putv(rocksdb_writebatch_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens, int value_parts, const char* const* values,
    const size_t* value_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_mergev(rocksdb_writebatch_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens, int operand_parts, const char* const* operands,
    const size_t* operand_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_deletev(rocksdb_writebatch_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_rangev(rocksdb_writebatch_t* batch,
    int parts, const char* const* starts, const size_t* start_lens, const char* const* ends, const size_t* end_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_putv_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens, int value_parts, const char* const* values,
    const size_t* value_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_mergev_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens, int operand_parts, const char* const* operands,
    const size_t* operand_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_deletev_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_rangev_cf(rocksdb_writebatch_t* batch, rocksdb_column_family_handle_t* family,
    int parts, const char* const* starts, const size_t* start_lens, const char* const* ends, const size_t* end_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_put_log_data(rocksdb_writebatch_t* batch, const char* blob,
    size_t blob_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_set_save_point(rocksdb_writebatch_t* batch);
/* The encoded batch, until it changes. */
ROCKSDB_LIBRARY_API const char* rocksdb_writebatch_data(rocksdb_writebatch_t* batch, size_t* len);
/* Shows puts and deletions, whatever their family. */
ROCKSDB_LIBRARY_API void rocksdb_writebatch_iterate(rocksdb_writebatch_t* batch, void* state,
    void (*put)(void*, const char*, size_t, const char*, size_t), void (*deleted)(void*, const char*, size_t));
ROCKSDB_LIBRARY_API void rocksdb_writebatch_iterate_cf(rocksdb_writebatch_t* batch, void* state,
    void (*put)(void*, uint32_t, const char*, size_t, const char*, size_t),
    void (*deleted)(void*, uint32_t, const char*, size_t),
    void (*merge)(void*, uint32_t, const char*, size_t, const char*, size_t));
ROCKSDB_LIBRARY_API void rocksdb_writebatch_rollback_to_save_point(rocksdb_writebatch_t* batch, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_pop_save_point(rocksdb_writebatch_t* batch, char** errptr);

/* The functions of C. */

/* One entry is shown for each key, the newest, whether or not overwrite_keys. */
ROCKSDB_LIBRARY_API rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create(size_t reserved_bytes,
    unsigned char overwrite_keys);
/* The comparator is for families whose handle no call has shown. Batches grow as they need. */
ROCKSDB_LIBRARY_API rocksdb_writebatch_wi_t* rocksdb_writebatch_wi_create_with_params(
    rocksdb_comparator_t* comparator, size_t reserved_bytes, unsigned char overwrite_keys, size_t max_bytes,
    size_t protection_bytes_per_key);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_destroy(rocksdb_writebatch_wi_t* batch);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_clear(rocksdb_writebatch_wi_t* batch);
ROCKSDB_LIBRARY_API int rocksdb_writebatch_wi_count(rocksdb_writebatch_wi_t* batch);
/* The encoded batch, until it changes. */
ROCKSDB_LIBRARY_API const char* rocksdb_writebatch_wi_data(rocksdb_writebatch_wi_t* batch, size_t* len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_put_log_data(rocksdb_writebatch_wi_t* batch, const char* blob,
    size_t blob_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_set_save_point(rocksdb_writebatch_wi_t* batch);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_put(rocksdb_writebatch_wi_t* batch, const char* key, size_t key_len,
    const char* value, size_t value_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_put_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* value, size_t value_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_merge(rocksdb_writebatch_wi_t* batch, const char* key, size_t key_len,
    const char* operand, size_t operand_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_merge_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* operand, size_t operand_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete(rocksdb_writebatch_wi_t* batch, const char* key,
    size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_singledelete(rocksdb_writebatch_wi_t* batch, const char* key,
    size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_singledelete_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete_range(rocksdb_writebatch_wi_t* batch, const char* start,
    size_t start_len, const char* end, size_t end_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete_range_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_column_family_handle_t* family, const char* start, size_t start_len, const char* end, size_t end_len);
/* Keys and values that come in parts, joined in the batch. */
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_putv(rocksdb_writebatch_wi_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens, int value_parts, const char* const* values,
    const size_t* value_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_mergev(rocksdb_writebatch_wi_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens, int operand_parts, const char* const* operands,
    const size_t* operand_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_deletev(rocksdb_writebatch_wi_t* batch,
    int key_parts, const char* const* keys, const size_t* key_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete_rangev(rocksdb_writebatch_wi_t* batch,
    int parts, const char* const* starts, const size_t* start_lens, const char* const* ends, const size_t* end_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_putv_cf(rocksdb_writebatch_wi_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens, int value_parts, const char* const* values,
    const size_t* value_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_mergev_cf(rocksdb_writebatch_wi_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens, int operand_parts, const char* const* operands,
    const size_t* operand_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_deletev_cf(rocksdb_writebatch_wi_t* batch, rocksdb_column_family_handle_t* family,
    int key_parts, const char* const* keys, const size_t* key_lens);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_delete_rangev_cf(rocksdb_writebatch_wi_t* batch, rocksdb_column_family_handle_t* family,
    int parts, const char* const* starts, const size_t* start_lens, const char* const* ends, const size_t* end_lens);
/* Shows puts and deletions, whatever their family, in the order in which they came. */
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_iterate(rocksdb_writebatch_wi_t* batch, void* state,
    void (*put)(void*, const char*, size_t, const char*, size_t), void (*deleted)(void*, const char*, size_t));
/* The iterator takes below, and shows the batch as it is now. */
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* below);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* below, const rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* below, rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    rocksdb_writebatch_wi_t* batch, rocksdb_iterator_t* below, rocksdb_column_family_handle_t* family,
    const rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_wi_rollback_to_save_point(rocksdb_writebatch_wi_t* batch, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_write_writebatch_wi(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_wi_t* batch, char** errptr);
/* Of the batch alone; the options' merge operator is what applies operands. */
ROCKSDB_LIBRARY_API char* rocksdb_writebatch_wi_get_from_batch(rocksdb_writebatch_wi_t* batch,
    const rocksdb_options_t* options, const char* key, size_t key_len, size_t* len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_writebatch_wi_get_from_batch_cf(rocksdb_writebatch_wi_t* batch,
    const rocksdb_options_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    size_t* len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_writebatch_wi_get_from_batch_and_db(rocksdb_writebatch_wi_t* batch,
    rocksdb_t* database, const rocksdb_readoptions_t* options, const char* key, size_t key_len, size_t* len,
    char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_writebatch_wi_get_from_batch_and_db_cf(rocksdb_writebatch_wi_t* batch,
    rocksdb_t* database, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family,
    const char* key, size_t key_len, size_t* len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
    rocksdb_writebatch_wi_t* batch, rocksdb_t* database, const rocksdb_readoptions_t* options, const char* key,
    size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
    rocksdb_writebatch_wi_t* batch, rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
