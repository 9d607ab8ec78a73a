/* Databases: opening, reading, writing, looking after them. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_DATABASE_H_
#define SPILLWAY_ROCKSDB_C_DATABASE_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opening and closing; databases that are not open: destroyed, repaired, their families listed. */

/* Ends the database's threads and lets go of its directory. What other handles hold stays readable to them. */
ROCKSDB_LIBRARY_API void rocksdb_close(rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_list_column_families_destroy(char** list, size_t len);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open(const rocksdb_options_t* options, const char* name, char** errptr);
/* Logs are read either way; with the flag, one that holds anything is an error in RocksDB. Ours are part of
   the database. */
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_for_read_only(const rocksdb_options_t* options, const char* name,
    unsigned char error_if_wal_file_exists, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_column_families(const rocksdb_options_t* options, const char* name,
    int count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_for_read_only_column_families(const rocksdb_options_t* options,
    const char* name, int count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, unsigned char error_if_wal_file_exists, char** errptr);
/* Values older than ttl seconds are dropped by compactions; 0 or less for never. */
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_with_ttl(const rocksdb_options_t* options, const char* name, int ttl,
    char** errptr);
/* As many times to live as families. */
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_column_families_with_ttl(const rocksdb_options_t* options,
    const char* name, int count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, const int* ttls, char** errptr);
ROCKSDB_LIBRARY_API char** rocksdb_list_column_families(const rocksdb_options_t* options, const char* name,
    size_t* len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_destroy_db(const rocksdb_options_t* options, const char* name, char** errptr);
/* Makes a damaged database openable, with all that can be read of its tables and logs; a damaged or lost MANIFEST is
   made anew. Unusable files move to lost/ in the directory, with a report of what is lost or in doubt: lost/REPORT.
   As in RocksDB, losses are no error. Refused: an unfinished restore or another copy in the making (make it again). */
ROCKSDB_LIBRARY_API void rocksdb_repair_db(const rocksdb_options_t* options, const char* name, char** errptr);
/* Spillway's own: repairs as rocksdb_repair_db, and returns the report, to be freed with rocksdb_free. `lost_nothing` gets 1
   if every key has its last value, and 0 if the report names a loss or a doubt, stored options included. NULL and 0 after an
   error. */
ROCKSDB_LIBRARY_API char* spillway_repair_db(const rocksdb_options_t* options, const char* name,
    unsigned char* lost_nothing, char** errptr);

/* Column families. */

ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t* rocksdb_create_column_family(rocksdb_t* database,
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t* rocksdb_create_column_family_with_ttl(rocksdb_t* database,
    const rocksdb_options_t* options, const char* name, int ttl, char** errptr);
/* After an error those made before it stay, without handles. */
ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t** rocksdb_create_column_families(rocksdb_t* database,
    const rocksdb_options_t* options, int count, const char* const* names, size_t* len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_drop_column_family(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    char** errptr);
/* Frees the list; its handles are the caller's. */
ROCKSDB_LIBRARY_API void rocksdb_create_column_families_destroy(rocksdb_column_family_handle_t** list);
ROCKSDB_LIBRARY_API void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t* rocksdb_get_default_column_family_handle(rocksdb_t* database);
ROCKSDB_LIBRARY_API uint32_t rocksdb_column_family_handle_get_id(rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API char* rocksdb_column_family_handle_get_name(rocksdb_column_family_handle_t* family, size_t* len);

/* Writing: one change, or a batch. */

ROCKSDB_LIBRARY_API void rocksdb_put(rocksdb_t* database, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_len, const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_put_cf(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete(rocksdb_t* database, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_cf(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_singledelete(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_singledelete_cf(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_range_cf(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* start, size_t start_len, const char* end, size_t end_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_merge(rocksdb_t* database, const rocksdb_writeoptions_t* options, const char* key,
    size_t key_len, const char* operand, size_t operand_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_merge_cf(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* operand, size_t operand_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_write(rocksdb_t* database, const rocksdb_writeoptions_t* options,
    rocksdb_writebatch_t* batch, char** errptr);

/* Point lookups: copied, pinned, and many at once. */

ROCKSDB_LIBRARY_API char* rocksdb_get(rocksdb_t* database, const rocksdb_readoptions_t* options, const char* key,
    size_t key_len, size_t* len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_get_cf(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, size_t* len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_get_pinned(rocksdb_t* database,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_get_pinned_cf(rocksdb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnable_handle_t* rocksdb_get_pinned_v2(rocksdb_t* database,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnable_handle_t* rocksdb_get_pinned_cf_v2(rocksdb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char** errptr);
/* 1 where the value was copied; else found tells whether there is one, and len how long it is. */
ROCKSDB_LIBRARY_API unsigned char rocksdb_get_into_buffer(rocksdb_t* database, const rocksdb_readoptions_t* options,
    const char* key, size_t key_len, char* buffer, size_t buffer_size, size_t* len, unsigned char* found,
    char** errptr);
ROCKSDB_LIBRARY_API unsigned char rocksdb_get_into_buffer_cf(rocksdb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char* buffer, size_t buffer_size, size_t* len, unsigned char* found, char** errptr);
/* Absent keys have neither value nor error. */
ROCKSDB_LIBRARY_API void rocksdb_multi_get(rocksdb_t* database, const rocksdb_readoptions_t* options, size_t count,
    const char* const* keys, const size_t* key_lens, char** values, size_t* lens, char** errors);
ROCKSDB_LIBRARY_API void rocksdb_multi_get_cf(rocksdb_t* database, const rocksdb_readoptions_t* options,
    const rocksdb_column_family_handle_t* const* families, size_t count, const char* const* keys,
    const size_t* key_lens, char** values, size_t* lens, char** errors);
ROCKSDB_LIBRARY_API void rocksdb_batched_multi_get_cf(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, size_t count, const char* const* keys, const size_t* key_lens,
    rocksdb_pinnableslice_t** values, char** errors, bool sorted_input);
ROCKSDB_LIBRARY_API void rocksdb_batched_multi_get_cf_slice(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, size_t count, const rocksdb_slice_t* keys,
    rocksdb_pinnableslice_t** values, char** errors, bool sorted_input);
/* Spillway's own: looks up keys without waiting for a disk. done is called once, with a value, an error or neither for each
 * key: before the call returns if memory has all answers, else on a thread of the library. It owns values and errors, and
 * should be brief: to wake an event loop it writes to an event file descriptor or a pipe. Keys are copied. A close in
 * between makes errors of lookups that have not begun. */
ROCKSDB_LIBRARY_API void spillway_multi_get_async(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, size_t count, const char* const* keys, const size_t* key_lens, void* state,
    void (*done)(void* state, size_t count, rocksdb_pinnableslice_t** values, char** errors));
/* False means that the key does not exist. The answer is exact here; in RocksDB it may be a false yes. Where value_found is
 * given, 1 says that the answer is sure, and *value then is to be freed: an empty value of an absent key. */
ROCKSDB_LIBRARY_API unsigned char rocksdb_key_may_exist(rocksdb_t* database, const rocksdb_readoptions_t* options,
    const char* key, size_t key_len, char** value, size_t* value_len, const char* timestamp, size_t timestamp_len,
    unsigned char* value_found);
ROCKSDB_LIBRARY_API unsigned char rocksdb_key_may_exist_cf(rocksdb_t* database, const rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, char** value, size_t* value_len,
    const char* timestamp, size_t timestamp_len, unsigned char* value_found);
ROCKSDB_LIBRARY_API void rocksdb_pinnableslice_destroy(rocksdb_pinnableslice_t* value);
/* NULL of no value. */
ROCKSDB_LIBRARY_API const char* rocksdb_pinnableslice_value(const rocksdb_pinnableslice_t* value, size_t* len);
ROCKSDB_LIBRARY_API void rocksdb_pinnable_handle_destroy(rocksdb_pinnable_handle_t* value);
ROCKSDB_LIBRARY_API const char* rocksdb_pinnable_handle_get_value(const rocksdb_pinnable_handle_t* value,
    size_t* len);

/* rocksdb_snapshot_t. */

ROCKSDB_LIBRARY_API const rocksdb_snapshot_t* rocksdb_create_snapshot(rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_release_snapshot(rocksdb_t* database, const rocksdb_snapshot_t* snapshot);
ROCKSDB_LIBRARY_API uint64_t rocksdb_snapshot_get_sequence_number(const rocksdb_snapshot_t* snapshot);

/* rocksdb_iterator_t. */

ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_create_iterator(rocksdb_t* database,
    const rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_create_iterator_cf(rocksdb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API void rocksdb_iter_destroy(rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API unsigned char rocksdb_iter_valid(const rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API void rocksdb_iter_seek_to_first(rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API void rocksdb_iter_seek_to_last(rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API void rocksdb_iter_seek(rocksdb_iterator_t* iterator, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_iter_seek_for_prev(rocksdb_iterator_t* iterator, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_iter_next(rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API void rocksdb_iter_prev(rocksdb_iterator_t* iterator);
/* Valid until the iterator moves. */
ROCKSDB_LIBRARY_API const char* rocksdb_iter_key(const rocksdb_iterator_t* iterator, size_t* len);
ROCKSDB_LIBRARY_API const char* rocksdb_iter_value(const rocksdb_iterator_t* iterator, size_t* len);
ROCKSDB_LIBRARY_API rocksdb_slice_t rocksdb_iter_key_slice(const rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API rocksdb_slice_t rocksdb_iter_value_slice(const rocksdb_iterator_t* iterator);
ROCKSDB_LIBRARY_API void rocksdb_iter_get_error(const rocksdb_iterator_t* iterator, char** errptr);
/* Shows the database as it is now, whatever snapshot the iterator was made with; stands on nothing. */
ROCKSDB_LIBRARY_API void rocksdb_iter_refresh(const rocksdb_iterator_t* iterator, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_create_iterators(rocksdb_t* database, rocksdb_readoptions_t* options,
    rocksdb_column_family_handle_t** families, rocksdb_iterator_t** iterators, size_t count, char** errptr);

/* What a database tells about itself: properties and sizes. */

/* NULL of a name that is not a property's. */
ROCKSDB_LIBRARY_API char* rocksdb_property_value(rocksdb_t* database, const char* name);
ROCKSDB_LIBRARY_API char* rocksdb_property_value_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* name);
ROCKSDB_LIBRARY_API int rocksdb_property_int(rocksdb_t* database, const char* name, uint64_t* value);
ROCKSDB_LIBRARY_API int rocksdb_property_int_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* name, uint64_t* value);
ROCKSDB_LIBRARY_API char* rocksdb_get_db_identity(rocksdb_t* database, size_t* len);
ROCKSDB_LIBRARY_API uint64_t rocksdb_get_latest_sequence_number(rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_approximate_sizes(rocksdb_t* database, int count, const char* const* starts,
    const size_t* start_lens, const char* const* limits, const size_t* limit_lens, uint64_t* sizes, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_approximate_sizes_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    int count, const char* const* starts, const size_t* start_lens, const char* const* limits,
    const size_t* limit_lens, uint64_t* sizes, char** errptr);
enum {
    rocksdb_size_approximation_flags_none = 0,
    rocksdb_size_approximation_flags_include_memtable = 1 << 0,
    rocksdb_size_approximation_flags_include_files = 1 << 1,
    rocksdb_size_approximation_flags_include_blob_files = 1 << 2
};
ROCKSDB_LIBRARY_API void rocksdb_approximate_sizes_cf_with_flags(rocksdb_t* database,
    rocksdb_column_family_handle_t* family, int count, const char* const* starts, const size_t* start_lens,
    const char* const* limits, const size_t* limit_lens, uint8_t include_flags, uint64_t* sizes, char** errptr);

/* Flushes, compactions, files, and options of an open database. */

ROCKSDB_LIBRARY_API void rocksdb_flush(rocksdb_t* database, const rocksdb_flushoptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_flush_cf(rocksdb_t* database, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t* family, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_flush_cfs(rocksdb_t* database, const rocksdb_flushoptions_t* options,
    rocksdb_column_family_handle_t** families, int count, char** errptr);
/* What is logged is in the file when a write returns: only a sync is left to do. */
ROCKSDB_LIBRARY_API void rocksdb_flush_wal(rocksdb_t* database, unsigned char sync, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_flush_wal_with_options(rocksdb_t* database, const rocksdb_flushwaloptions_t* options,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_wait_for_compact(rocksdb_t* database, rocksdb_wait_for_compact_options_t* options,
    char** errptr);
/* Spillway's own: a reading of the database as OpenMetrics text, for Prometheus. `len` gets its length, and a zero follows it.
   To be freed with rocksdb_free. */
ROCKSDB_LIBRARY_API char* spillway_metrics(rocksdb_t* database, size_t* len);
/* Spillway's own, as C++'s DB::Resume. What lacked disk space goes on by itself when there is some; this tries at once, and
   says how that ended. */
ROCKSDB_LIBRARY_API void spillway_resume(rocksdb_t* database, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_set_options(rocksdb_t* database, int count, const char* const* names,
    const char* const* values, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_set_options_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    int count, const char* const* names, const char* const* values, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_set_db_options(rocksdb_t* database, int count, const char* const* names,
    const char* const* values, char** errptr);
/* As in RocksDB 11, each call is undone by one of rocksdb_enable_file_deletions. */
ROCKSDB_LIBRARY_API void rocksdb_disable_file_deletions(rocksdb_t* database, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_enable_file_deletions(rocksdb_t* database, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_file_in_range(rocksdb_t* database, const char* start, size_t start_len,
    const char* limit, size_t limit_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_delete_file_in_range_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* start, size_t start_len, const char* limit, size_t limit_len, char** errptr);
/* Has the range's tables compacted one level down in the background, unless automatic compactions are off. */
ROCKSDB_LIBRARY_API void rocksdb_suggest_compact_range(rocksdb_t* database, const char* start, size_t start_len,
    const char* limit, size_t limit_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_suggest_compact_range_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* start, size_t start_len, const char* limit, size_t limit_len, char** errptr);
/* Each call is undone by one of rocksdb_enable_manual_compaction, be it made before or after. Running ones give up;
 * returns when none is running any more. */
ROCKSDB_LIBRARY_API void rocksdb_disable_manual_compaction(rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_enable_manual_compaction(rocksdb_t* database);
/* No compaction begins any more; memtables are still flushed, so that writes go on. wait for those that run. */
ROCKSDB_LIBRARY_API void rocksdb_cancel_all_background_work(rocksdb_t* database, unsigned char wait);
/* NULL is the end of the key space. */
ROCKSDB_LIBRARY_API void rocksdb_compact_range(rocksdb_t* database, const char* start, size_t start_len,
    const char* limit, size_t limit_len);
ROCKSDB_LIBRARY_API void rocksdb_compact_range_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* start, size_t start_len, const char* limit, size_t limit_len);
ROCKSDB_LIBRARY_API void rocksdb_compact_range_opt(rocksdb_t* database, rocksdb_compactoptions_t* options,
    const char* start, size_t start_len, const char* limit, size_t limit_len);
ROCKSDB_LIBRARY_API void rocksdb_compact_range_cf_opt(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    rocksdb_compactoptions_t* options, const char* start, size_t start_len, const char* limit, size_t limit_len);

/* Compacts the named tables into a level, on the caller's thread, with what lies between. A negative path is 0; there is no
 * report of the compaction: compaction_job_info must be NULL. */
ROCKSDB_LIBRARY_API void rocksdb_compact_files(rocksdb_t* database, const rocksdb_compaction_options_t* options,
    const char* const* names, size_t count, int output_level, int output_path_id, char*** made, size_t* made_count,
    rocksdb_compactionjobinfo_t* compaction_job_info, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_compact_files_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const rocksdb_compaction_options_t* options, const char* const* names, size_t count, int output_level,
    int output_path_id, char*** made, size_t* made_count, rocksdb_compactionjobinfo_t* compaction_job_info, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_compact_files_output_file_names_destroy(char** names, size_t count);

/* rocksdb_free: for callers that do not share this library's C library. */

ROCKSDB_LIBRARY_API void rocksdb_free(void* memory);

/* rocksdb_wal_iterator_t: changes out of the log, in their order. */

ROCKSDB_LIBRARY_API rocksdb_wal_readoptions_t* rocksdb_wal_readoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_wal_readoptions_destroy(rocksdb_wal_readoptions_t* options);
/* Checksums are always verified. */
ROCKSDB_LIBRARY_API void rocksdb_wal_readoptions_set_verify_checksums(rocksdb_wal_readoptions_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_wal_readoptions_get_verify_checksums(rocksdb_wal_readoptions_t* options);
/* At the batch with the number; if its log is gone, at the first one left. NotFound: it was not written yet. */
ROCKSDB_LIBRARY_API rocksdb_wal_iterator_t* rocksdb_get_updates_since(rocksdb_t* database, uint64_t sequence_number,
    const rocksdb_wal_readoptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_wal_iter_destroy(const rocksdb_wal_iterator_t* iter);
/* A copy, to be destroyed. */
ROCKSDB_LIBRARY_API rocksdb_writebatch_t* rocksdb_wal_iter_get_batch(const rocksdb_wal_iterator_t* iter,
    uint64_t* seq);
/* At the end, looks for what was written since. */
ROCKSDB_LIBRARY_API void rocksdb_wal_iter_next(rocksdb_wal_iterator_t* iter);
/* NotFound: changes that follow are in no log. */
ROCKSDB_LIBRARY_API void rocksdb_wal_iter_status(const rocksdb_wal_iterator_t* iter, char** errptr);
ROCKSDB_LIBRARY_API unsigned char rocksdb_wal_iter_valid(const rocksdb_wal_iterator_t* wal_iterator);

/* rocksdb_wal_file_t: a log. Large batches lie in files of their own, which are not shown: a checkpoint copies them too. */

enum {
    rocksdb_wal_file_type_archived_log = 0,
    rocksdb_wal_file_type_alive_log = 1
};

/* Logs with records, by number, those in the archive included. */
ROCKSDB_LIBRARY_API rocksdb_wal_files_t* rocksdb_get_sorted_wal_files(rocksdb_t* database, char** errptr);
/* Without its start sequence. NotFound: nothing was logged since the open. */
ROCKSDB_LIBRARY_API rocksdb_wal_file_t* rocksdb_get_current_wal_file(rocksdb_t* database, char** errptr);
ROCKSDB_LIBRARY_API size_t rocksdb_wal_files_count(const rocksdb_wal_files_t* files);
/* The list's, not to be destroyed. NULL beyond the last one. */
ROCKSDB_LIBRARY_API const rocksdb_wal_file_t* rocksdb_wal_files_get_wal_file(const rocksdb_wal_files_t* files,
    size_t index);
ROCKSDB_LIBRARY_API void rocksdb_wal_files_destroy(rocksdb_wal_files_t* files);
/* As "/000012.splog" or "/archive/000012.splog", below the directory of the logs; the file's. */
ROCKSDB_LIBRARY_API const char* rocksdb_wal_file_path_name(const rocksdb_wal_file_t* file);
ROCKSDB_LIBRARY_API uint64_t rocksdb_wal_file_log_number(const rocksdb_wal_file_t* file);
ROCKSDB_LIBRARY_API int rocksdb_wal_file_type(const rocksdb_wal_file_t* file);
ROCKSDB_LIBRARY_API uint64_t rocksdb_wal_file_start_sequence(const rocksdb_wal_file_t* file);
/* Of the file, room for what comes included. */
ROCKSDB_LIBRARY_API uint64_t rocksdb_wal_file_size_file_bytes(const rocksdb_wal_file_t* file);
ROCKSDB_LIBRARY_API void rocksdb_wal_file_destroy(rocksdb_wal_file_t* file);

/* Secondary instances: readers that follow a database which another process, or this one, writes. */

ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_as_secondary(const rocksdb_options_t* options, const char* name,
    const char* secondary_path, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_open_as_secondary_column_families(const rocksdb_options_t* options,
    const char* name, const char* secondary_path, int count, const char* const* names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles, char** errptr);
/* Shows what the primary has logged by now. */
ROCKSDB_LIBRARY_API void rocksdb_try_catch_up_with_primary(rocksdb_t* database, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
