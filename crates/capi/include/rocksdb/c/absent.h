/* What RocksDB has and Spillway has not, so that programs which can do without it link. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_ABSENT_H_
#define SPILLWAY_ROCKSDB_C_ABSENT_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* User-defined timestamps. */

ROCKSDB_LIBRARY_API void rocksdb_put_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_len, const char* timestamp, size_t timestamp_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_put_cf_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len, const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_len, const char* timestamp, size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_cf_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_singledelete_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_len, const char* timestamp, size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_singledelete_cf_with_ts(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_get_with_ts(rocksdb_t* database, const rocksdb_readoptions_t* options,
    const char* key, size_t key_len, size_t* len, char** timestamp, size_t* timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_get_cf_with_ts(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, size_t* len, char** timestamp,
    size_t* timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_increase_full_history_ts_low(rocksdb_t* database,
    rocksdb_column_family_handle_t* family, const char* timestamp, size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_get_full_history_ts_low(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    size_t* timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_and_trim_history(const rocksdb_options_t* options, const char* name,
    int count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, char* timestamp, size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_put_with_ts(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_len, const char* timestamp, size_t timestamp_len, const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_delete_with_ts(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_len, const char* timestamp, size_t timestamp_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_multi_get_with_ts(rocksdb_t* database, const rocksdb_readoptions_t* options,
    size_t count, const char* const* keys, const size_t* key_lens, char** values, size_t* lens, char** timestamps,
    size_t* timestamp_lens, char** errors);
ROCKSDB_LIBRARY_API void rocksdb_multi_get_cf_with_ts(rocksdb_t* database, const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* families, size_t count, const char* const* keys,
    const size_t* key_lens, char** values, size_t* lens, char** timestamps, size_t* timestamp_lens, char** errors);
/* Writing the batch fails. */
ROCKSDB_LIBRARY_API void rocksdb_writebatch_put_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len, const char* value, size_t value_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_delete_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len);
ROCKSDB_LIBRARY_API void rocksdb_writebatch_singledelete_cf_with_ts(rocksdb_writebatch_t* batch,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* timestamp,
    size_t timestamp_len);
/* Reads with a timestamp fail; NULL is none. */
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_timestamp(rocksdb_readoptions_t* options, const char* timestamp,
    size_t timestamp_len);
ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_iter_start_ts(rocksdb_readoptions_t* options, const char* timestamp,
    size_t timestamp_len);
/* A compaction reports no error that could say so. */
ROCKSDB_LIBRARY_API void rocksdb_compactoptions_set_full_history_ts_low(rocksdb_compactoptions_t* options,
    char* timestamp, size_t timestamp_len);
/* Empty: no key has one. Not NULL, as in RocksDB: bindings make a slice of it. */
ROCKSDB_LIBRARY_API const char* rocksdb_iter_timestamp(const rocksdb_iterator_t* iterator, size_t* len);
ROCKSDB_LIBRARY_API rocksdb_slice_t rocksdb_iter_timestamp_slice(const rocksdb_iterator_t* iterator);

#ifdef __cplusplus
}
#endif

#endif
