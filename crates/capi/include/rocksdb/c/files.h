/* Tables made and ingested, checkpoints, backups, and what a database consists of. Included by rocksdb/c.h. */

#ifndef SPILLWAY_ROCKSDB_C_FILES_H_
#define SPILLWAY_ROCKSDB_C_FILES_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rocksdb_sstfilewriter_t: tables made outside of a database, to be ingested. */

ROCKSDB_LIBRARY_API rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create(const rocksdb_envoptions_t* env,
    const rocksdb_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_sstfilewriter_t* rocksdb_sstfilewriter_create_with_comparator(
    const rocksdb_envoptions_t* env, const rocksdb_options_t* options, const rocksdb_comparator_t* comparator);
/* A table that is not finished is removed. */
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_destroy(rocksdb_sstfilewriter_t* writer);
/* About the bytes of the table so far; of none open, those of the last one. */
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_file_size(rocksdb_sstfilewriter_t* writer, uint64_t* bytes);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_open(rocksdb_sstfilewriter_t* writer, const char* name, char** errptr);
/* An older name of put. */
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_add(rocksdb_sstfilewriter_t* writer, const char* key, size_t key_len,
    const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_put(rocksdb_sstfilewriter_t* writer, const char* key, size_t key_len,
    const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_merge(rocksdb_sstfilewriter_t* writer, const char* key, size_t key_len,
    const char* operand, size_t operand_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_delete(rocksdb_sstfilewriter_t* writer, const char* key,
    size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_delete_range(rocksdb_sstfilewriter_t* writer, const char* start,
    size_t start_len, const char* end, size_t end_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_sstfilewriter_finish(rocksdb_sstfilewriter_t* writer, char** errptr);

/* Ingesting tables, and rocksdb_ingestexternalfileoptions_t. */

ROCKSDB_LIBRARY_API rocksdb_ingestexternalfileoptions_t* rocksdb_ingestexternalfileoptions_create(void);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_destroy(rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingest_external_file(rocksdb_t* database, const char* const* files, size_t count,
    const rocksdb_ingestexternalfileoptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_ingest_external_file_cf(rocksdb_t* database, rocksdb_column_family_handle_t* family,
    const char* const* files, size_t count, const rocksdb_ingestexternalfileoptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_move_files(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_move_files(
    rocksdb_ingestexternalfileoptions_t* options);
/* Spillway's own: who waits for an ingest. "flushable" (nobody; the default), "blocking" (all writers: RocksDB's way),
   "flush-first" (the same, after a flush beside writers), "direct" or TiKV's "allow_write" (writers to the tables' range).
   Another name is an error, and changes nothing. */
ROCKSDB_LIBRARY_API void spillway_ingestexternalfileoptions_set_mode(rocksdb_ingestexternalfileoptions_t* options,
    const char* name, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_link_files(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_link_files(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_failed_move_fall_back_to_copy(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_snapshot_consistency(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_blocking_flush(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_ingest_behind(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_write_global_seqno(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_verify_checksums_before_ingest(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_verify_file_checksum(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_fail_if_not_bottommost_level(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_allow_db_generated_files(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_fill_cache(
    rocksdb_ingestexternalfileoptions_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_ingestexternalfileoptions_get_fill_cache(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_ingestexternalfileoptions_get_file_opening_threads(
    rocksdb_ingestexternalfileoptions_t* options);
ROCKSDB_LIBRARY_API void rocksdb_ingestexternalfileoptions_set_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options, size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_ingestexternalfileoptions_get_verify_checksums_readahead_size(
    rocksdb_ingestexternalfileoptions_t* options);

/* rocksdb_checkpoint_t. */

ROCKSDB_LIBRARY_API void rocksdb_checkpoint_object_destroy(rocksdb_checkpoint_t* checkpoint);
ROCKSDB_LIBRARY_API rocksdb_checkpoint_t* rocksdb_checkpoint_object_create(rocksdb_t* database, char** errptr);
/* Nothing need be flushed for a checkpoint, however long the log is: what the log holds is copied. */
ROCKSDB_LIBRARY_API void rocksdb_checkpoint_create(rocksdb_checkpoint_t* checkpoint, const char* dir,
    uint64_t log_size_for_flush, char** errptr);

/* rocksdb_livefiles_t: every table of every family. */

ROCKSDB_LIBRARY_API const rocksdb_livefiles_t* rocksdb_livefiles(rocksdb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_livefiles_destroy(const rocksdb_livefiles_t* files);
ROCKSDB_LIBRARY_API int rocksdb_livefiles_count(const rocksdb_livefiles_t* files);
ROCKSDB_LIBRARY_API const char* rocksdb_livefiles_column_family_name(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API const char* rocksdb_livefiles_name(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API const char* rocksdb_livefiles_directory(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API int rocksdb_livefiles_level(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API size_t rocksdb_livefiles_size(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API const char* rocksdb_livefiles_smallestkey(const rocksdb_livefiles_t* files, int index,
    size_t* len);
ROCKSDB_LIBRARY_API const char* rocksdb_livefiles_largestkey(const rocksdb_livefiles_t* files, int index,
    size_t* len);
ROCKSDB_LIBRARY_API uint64_t rocksdb_livefiles_entries(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API uint64_t rocksdb_livefiles_deletions(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API uint64_t rocksdb_livefiles_smallest_seqno(const rocksdb_livefiles_t* files, int index);
ROCKSDB_LIBRARY_API uint64_t rocksdb_livefiles_largest_seqno(const rocksdb_livefiles_t* files, int index);

/* rocksdb_column_family_metadata_t: a family, its levels, and their tables. */

ROCKSDB_LIBRARY_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata(rocksdb_t* database);
ROCKSDB_LIBRARY_API rocksdb_column_family_metadata_t* rocksdb_get_column_family_metadata_cf(rocksdb_t* database,
    rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API void rocksdb_column_family_metadata_destroy(rocksdb_column_family_metadata_t* metadata);
ROCKSDB_LIBRARY_API uint64_t rocksdb_column_family_metadata_get_size(rocksdb_column_family_metadata_t* metadata);
ROCKSDB_LIBRARY_API size_t rocksdb_column_family_metadata_get_file_count(rocksdb_column_family_metadata_t* metadata);
ROCKSDB_LIBRARY_API char* rocksdb_column_family_metadata_get_name(rocksdb_column_family_metadata_t* metadata);
ROCKSDB_LIBRARY_API size_t rocksdb_column_family_metadata_get_level_count(rocksdb_column_family_metadata_t* metadata);
/* NULL of a level that there is not. */
ROCKSDB_LIBRARY_API rocksdb_level_metadata_t* rocksdb_column_family_metadata_get_level_metadata(
    rocksdb_column_family_metadata_t* metadata, size_t level);
ROCKSDB_LIBRARY_API void rocksdb_level_metadata_destroy(rocksdb_level_metadata_t* level);
ROCKSDB_LIBRARY_API int rocksdb_level_metadata_get_level(rocksdb_level_metadata_t* level);
ROCKSDB_LIBRARY_API uint64_t rocksdb_level_metadata_get_size(rocksdb_level_metadata_t* level);
ROCKSDB_LIBRARY_API size_t rocksdb_level_metadata_get_file_count(rocksdb_level_metadata_t* level);
/* NULL of a table that there is not. */
ROCKSDB_LIBRARY_API rocksdb_sst_file_metadata_t* rocksdb_level_metadata_get_sst_file_metadata(
    rocksdb_level_metadata_t* level, size_t index);
ROCKSDB_LIBRARY_API void rocksdb_sst_file_metadata_destroy(rocksdb_sst_file_metadata_t* file);
ROCKSDB_LIBRARY_API char* rocksdb_sst_file_metadata_get_relative_filename(rocksdb_sst_file_metadata_t* file);
ROCKSDB_LIBRARY_API char* rocksdb_sst_file_metadata_get_directory(rocksdb_sst_file_metadata_t* file);
ROCKSDB_LIBRARY_API uint64_t rocksdb_sst_file_metadata_get_size(rocksdb_sst_file_metadata_t* file);
ROCKSDB_LIBRARY_API char* rocksdb_sst_file_metadata_get_smallestkey(rocksdb_sst_file_metadata_t* file, size_t* len);
ROCKSDB_LIBRARY_API char* rocksdb_sst_file_metadata_get_largestkey(rocksdb_sst_file_metadata_t* file, size_t* len);

/* A family's tables taken out of one database and into another: rocksdb_export_import_files_metadata_t. */

/* Flushes the family, and links its tables into a directory that is not there yet. */
ROCKSDB_LIBRARY_API rocksdb_export_import_files_metadata_t* rocksdb_checkpoint_export_column_family(
    rocksdb_checkpoint_t* checkpoint, rocksdb_column_family_handle_t* family, const char* dir, char** errptr);
/* The tables get new sequence numbers, in an order that keeps what is newer newer. */
ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t* rocksdb_create_column_family_with_import(rocksdb_t* database,
    rocksdb_options_t* options, const char* name, rocksdb_import_column_family_options_t* import_options,
    rocksdb_export_import_files_metadata_t* metadata, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_export_import_files_metadata_t* rocksdb_export_import_files_metadata_create(void);
ROCKSDB_LIBRARY_API void rocksdb_export_import_files_metadata_destroy(
    rocksdb_export_import_files_metadata_t* metadata);
ROCKSDB_LIBRARY_API char* rocksdb_export_import_files_metadata_get_db_comparator_name(
    rocksdb_export_import_files_metadata_t* metadata);
ROCKSDB_LIBRARY_API void rocksdb_export_import_files_metadata_set_db_comparator_name(
    rocksdb_export_import_files_metadata_t* metadata, const char* name);
/* A copy, which is the caller's. */
ROCKSDB_LIBRARY_API rocksdb_livefiles_t* rocksdb_export_import_files_metadata_get_files(
    rocksdb_export_import_files_metadata_t* metadata);
/* The files stay the caller's. */
ROCKSDB_LIBRARY_API void rocksdb_export_import_files_metadata_set_files(
    rocksdb_export_import_files_metadata_t* metadata, rocksdb_livefiles_t* files);
ROCKSDB_LIBRARY_API rocksdb_import_column_family_options_t* rocksdb_import_column_family_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_import_column_family_options_destroy(
    rocksdb_import_column_family_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_livefiles_t* rocksdb_livefiles_create(void);
/* A copy: the file stays the caller's. */
ROCKSDB_LIBRARY_API void rocksdb_livefiles_add(rocksdb_livefiles_t* files, rocksdb_livefile_t* file);
ROCKSDB_LIBRARY_API rocksdb_livefile_t* rocksdb_livefile_create(void);
ROCKSDB_LIBRARY_API void rocksdb_livefile_destroy(rocksdb_livefile_t* file);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_column_family_name(rocksdb_livefile_t* file, const char* name);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_level(rocksdb_livefile_t* file, int level);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_name(rocksdb_livefile_t* file, const char* name);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_directory(rocksdb_livefile_t* file, const char* directory);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_size(rocksdb_livefile_t* file, size_t bytes);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_smallest_key(rocksdb_livefile_t* file, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_largest_key(rocksdb_livefile_t* file, const char* key, size_t key_len);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_smallest_seqno(rocksdb_livefile_t* file, uint64_t number);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_largest_seqno(rocksdb_livefile_t* file, uint64_t number);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_num_entries(rocksdb_livefile_t* file, uint64_t entries);
ROCKSDB_LIBRARY_API void rocksdb_livefile_set_num_deletions(rocksdb_livefile_t* file, uint64_t deletions);
ROCKSDB_LIBRARY_API void rocksdb_import_column_family_options_set_move_files(
    rocksdb_import_column_family_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_import_column_family_options_get_move_files(
    rocksdb_import_column_family_options_t* options);

/* rocksdb_backup_engine_t: many copies of databases in one directory. */

ROCKSDB_LIBRARY_API void rocksdb_backup_engine_close(rocksdb_backup_engine_t* backups);
/* Empty where the directory cannot be read. */
ROCKSDB_LIBRARY_API const rocksdb_backup_engine_info_t* rocksdb_backup_engine_get_backup_info(
    rocksdb_backup_engine_t* backups);
ROCKSDB_LIBRARY_API int rocksdb_backup_engine_info_count(const rocksdb_backup_engine_info_t* list);
/* Seconds since the epoch. */
ROCKSDB_LIBRARY_API int64_t rocksdb_backup_engine_info_timestamp(const rocksdb_backup_engine_info_t* list, int index);
ROCKSDB_LIBRARY_API uint32_t rocksdb_backup_engine_info_backup_id(const rocksdb_backup_engine_info_t* list,
    int index);
ROCKSDB_LIBRARY_API uint64_t rocksdb_backup_engine_info_size(const rocksdb_backup_engine_info_t* list, int index);
ROCKSDB_LIBRARY_API uint32_t rocksdb_backup_engine_info_number_files(const rocksdb_backup_engine_info_t* list,
    int index);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_info_destroy(const rocksdb_backup_engine_info_t* list);
ROCKSDB_LIBRARY_API rocksdb_backup_engine_options_t* rocksdb_backup_engine_options_create(const char* dir);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_destroy(rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_backup_dir(rocksdb_backup_engine_options_t* options,
    const char* dir);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_env(rocksdb_backup_engine_options_t* options,
    rocksdb_env_t* env);
ROCKSDB_LIBRARY_API rocksdb_restore_options_t* rocksdb_restore_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_restore_options_destroy(rocksdb_restore_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_restore_options_set_keep_log_files(rocksdb_restore_options_t* options, int keep);
ROCKSDB_LIBRARY_API rocksdb_backup_engine_t* rocksdb_backup_engine_open(const rocksdb_options_t* options,
    const char* dir, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_backup_engine_t* rocksdb_backup_engine_open_opts(
    const rocksdb_backup_engine_options_t* options, rocksdb_env_t* env, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_create_new_backup(rocksdb_backup_engine_t* backups,
    rocksdb_t* database, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_create_new_backup_flush(rocksdb_backup_engine_t* backups,
    rocksdb_t* database, unsigned char flush, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_purge_old_backups(rocksdb_backup_engine_t* backups, uint32_t keep,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_verify_backup(rocksdb_backup_engine_t* backups, uint32_t id,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_restore_db_from_backup(rocksdb_backup_engine_t* backups,
    const char* db_dir, const char* wal_dir, const rocksdb_restore_options_t* options, uint32_t id, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_restore_db_from_latest_backup(rocksdb_backup_engine_t* backups,
    const char* db_dir, const char* wal_dir, const rocksdb_restore_options_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_share_table_files(
    rocksdb_backup_engine_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_backup_engine_options_get_share_table_files(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_sync(rocksdb_backup_engine_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_backup_engine_options_get_sync(rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_destroy_old_data(rocksdb_backup_engine_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_backup_engine_options_get_destroy_old_data(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_max_background_operations(
    rocksdb_backup_engine_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_backup_engine_options_get_max_background_operations(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_backup_log_files(rocksdb_backup_engine_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_backup_engine_options_get_backup_log_files(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_backup_rate_limit(
    rocksdb_backup_engine_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_backup_engine_options_get_backup_rate_limit(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_backup_engine_options_get_callback_trigger_interval_size(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_backup_engine_options_get_max_valid_backups_to_open(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_restore_rate_limit(
    rocksdb_backup_engine_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_backup_engine_options_get_restore_rate_limit(
    rocksdb_backup_engine_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_backup_engine_options_set_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_backup_engine_options_get_share_files_with_checksum_naming(
    rocksdb_backup_engine_options_t* options);

#ifdef __cplusplus
}
#endif

#endif
