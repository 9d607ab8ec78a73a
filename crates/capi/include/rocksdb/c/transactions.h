/* Transactions; included by rocksdb/c.h. First optimistic ones, and the calls of both kinds. An optimistic commit fails with "Resource busy: " if a key that the transaction wrote, or read for an update,
   has changed meanwhile; it can be rolled back and tried again. */

#ifndef SPILLWAY_ROCKSDB_C_TRANSACTIONS_H_
#define SPILLWAY_ROCKSDB_C_TRANSACTIONS_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

ROCKSDB_LIBRARY_API rocksdb_optimistictransaction_options_t* rocksdb_optimistictransaction_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransaction_options_destroy(
    rocksdb_optimistictransaction_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open(
    const rocksdb_options_t* options, const char* name, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_column_families(
    const rocksdb_options_t* options, const char* name, int count, const char* const* names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_close(rocksdb_optimistictransactiondb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_close_base_db(rocksdb_t* base_db);
ROCKSDB_LIBRARY_API void rocksdb_transaction_destroy(rocksdb_transaction_t* transaction);
ROCKSDB_LIBRARY_API rocksdb_transaction_t* rocksdb_optimistictransaction_begin(
    rocksdb_optimistictransactiondb_t* database, const rocksdb_writeoptions_t* write_options,
    const rocksdb_optimistictransaction_options_t* otxn_options, rocksdb_transaction_t* old_txn);
ROCKSDB_LIBRARY_API rocksdb_checkpoint_t* rocksdb_optimistictransactiondb_checkpoint_object_create(
    rocksdb_optimistictransactiondb_t* database, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_optimistictransactiondb_get_base_db(
    rocksdb_optimistictransactiondb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_write(rocksdb_optimistictransactiondb_t* database,
    const rocksdb_writeoptions_t* options, rocksdb_writebatch_t* batch, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_commit(rocksdb_transaction_t* transaction, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_transaction_create_iterator(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_transaction_create_iterator_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API void rocksdb_transaction_delete(rocksdb_transaction_t* transaction, const char* key,
    size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_delete_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transaction_get(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, size_t* value_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transaction_get_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    size_t* value_len, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transaction_get_for_update(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, size_t* value_len, unsigned char exclusive,
    char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transaction_get_for_update_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    size_t* value_len, unsigned char exclusive, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transaction_get_name(rocksdb_transaction_t* transaction, size_t* name_len);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update(
    rocksdb_transaction_t* transaction, const rocksdb_readoptions_t* options, const char* key, size_t key_len,
    unsigned char exclusive, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transaction_get_pinned_for_update_cf(
    rocksdb_transaction_t* transaction, const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family,
    const char* key, size_t key_len, unsigned char exclusive, char** errptr);
ROCKSDB_LIBRARY_API const rocksdb_snapshot_t* rocksdb_transaction_get_snapshot(rocksdb_transaction_t* transaction);
ROCKSDB_LIBRARY_API rocksdb_writebatch_wi_t* rocksdb_transaction_get_writebatch_wi(
    rocksdb_transaction_t* transaction);
ROCKSDB_LIBRARY_API void rocksdb_transaction_merge(rocksdb_transaction_t* transaction, const char* key,
    size_t key_len, const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_merge_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_multi_get(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, size_t num_keys, const char* const* keys_list,
    const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes, char** errs);
ROCKSDB_LIBRARY_API void rocksdb_transaction_multi_get_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* column_families,
    size_t num_keys, const char* const* keys_list, const size_t* keys_list_sizes, char** values_list,
    size_t* values_list_sizes, char** errs);
ROCKSDB_LIBRARY_API void rocksdb_transaction_prepare(rocksdb_transaction_t* transaction, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_put(rocksdb_transaction_t* transaction, const char* key, size_t key_len,
    const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_put_cf(rocksdb_transaction_t* transaction,
    rocksdb_column_family_handle_t* family, const char* key, size_t key_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_rebuild_from_writebatch(rocksdb_transaction_t* transaction,
    rocksdb_writebatch_t* writebatch, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_rebuild_from_writebatch_wi(rocksdb_transaction_t* transaction,
    rocksdb_writebatch_wi_t* wi, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_rollback(rocksdb_transaction_t* transaction, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_rollback_to_savepoint(rocksdb_transaction_t* transaction, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_set_commit_timestamp(rocksdb_transaction_t* transaction,
    uint64_t commit_timestamp);
ROCKSDB_LIBRARY_API void rocksdb_transaction_set_name(rocksdb_transaction_t* transaction, const char* name,
    size_t name_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transaction_set_read_timestamp_for_validation(rocksdb_transaction_t* transaction,
    uint64_t read_timestamp);
ROCKSDB_LIBRARY_API void rocksdb_transaction_set_savepoint(rocksdb_transaction_t* transaction);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransaction_options_set_set_snapshot(
    rocksdb_optimistictransaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_optimistictransaction_options_get_set_snapshot(
    rocksdb_optimistictransaction_options_t* options);
ROCKSDB_LIBRARY_API int rocksdb_optimistictransactiondb_property_int(rocksdb_optimistictransactiondb_t* database,
    const char* name, uint64_t* value);
ROCKSDB_LIBRARY_API char* rocksdb_optimistictransactiondb_property_value(rocksdb_optimistictransactiondb_t* database,
    const char* name);
ROCKSDB_LIBRARY_API void rocksdb_transaction_put_log_data(rocksdb_transaction_t* transaction, const char* blob,
    size_t blob_len);
ROCKSDB_LIBRARY_API void rocksdb_transaction_multi_get_for_update(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, size_t num_keys, const char* const* keys_list,
    const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes, char** errs);
ROCKSDB_LIBRARY_API void rocksdb_transaction_multi_get_for_update_cf(rocksdb_transaction_t* transaction,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* column_families,
    size_t num_keys, const char* const* keys_list, const size_t* keys_list_sizes, char** values_list,
    size_t* values_list_sizes, char** errs);

/* Pessimistic transactions: keys are locked, and others that lock wait, up to lock_timeout ("Operation timed out: "). Writes of the base
   database do not look at locks. */

ROCKSDB_LIBRARY_API rocksdb_transactiondb_options_t* rocksdb_transactiondb_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_destroy(rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_transaction_options_t* rocksdb_transaction_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_destroy(rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API rocksdb_transactiondb_t* rocksdb_transactiondb_open(const rocksdb_options_t* options,
    const rocksdb_transactiondb_options_t* transaction_options, const char* name, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_transactiondb_t* rocksdb_transactiondb_open_column_families(
    const rocksdb_options_t* options, const rocksdb_transactiondb_options_t* transaction_options, const char* name,
    int count, const char* const* names, const rocksdb_options_t* const* family_options,
    rocksdb_column_family_handle_t** handles, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_close(rocksdb_transactiondb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_close_base_db(rocksdb_t* base_db);
ROCKSDB_LIBRARY_API rocksdb_transaction_t* rocksdb_transaction_begin(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* write_options, const rocksdb_transaction_options_t* txn_options,
    rocksdb_transaction_t* old_txn);
ROCKSDB_LIBRARY_API rocksdb_checkpoint_t* rocksdb_transactiondb_checkpoint_object_create(
    rocksdb_transactiondb_t* database, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_column_family_handle_t* rocksdb_transactiondb_create_column_family(
    rocksdb_transactiondb_t* database, const rocksdb_options_t* column_family_options, const char* column_family_name,
    char** errptr);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_transactiondb_create_iterator(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options);
ROCKSDB_LIBRARY_API rocksdb_iterator_t* rocksdb_transactiondb_create_iterator_cf(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family);
ROCKSDB_LIBRARY_API const rocksdb_snapshot_t* rocksdb_transactiondb_create_snapshot(
    rocksdb_transactiondb_t* database);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_delete(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_delete_cf(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_flush(rocksdb_transactiondb_t* database,
    const rocksdb_flushoptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_flush_cf(rocksdb_transactiondb_t* database,
    const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t* family, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_flush_cfs(rocksdb_transactiondb_t* database,
    const rocksdb_flushoptions_t* options, rocksdb_column_family_handle_t** column_families, int num_column_families,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_flush_wal(rocksdb_transactiondb_t* database, unsigned char sync,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_flush_wal_with_options(rocksdb_transactiondb_t* database,
    const rocksdb_flushwaloptions_t* options, char** errptr);
ROCKSDB_LIBRARY_API char* rocksdb_transactiondb_get(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, size_t* value_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_t* rocksdb_transactiondb_get_base_db(rocksdb_transactiondb_t* database);
ROCKSDB_LIBRARY_API char* rocksdb_transactiondb_get_cf(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    size_t* value_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, const char* key, size_t key_len, char** errptr);
ROCKSDB_LIBRARY_API rocksdb_pinnableslice_t* rocksdb_transactiondb_get_pinned_cf(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    char** errptr);
ROCKSDB_LIBRARY_API rocksdb_transaction_t** rocksdb_transactiondb_get_prepared_transactions(
    rocksdb_transactiondb_t* database, size_t* count);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_merge(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, const char* key, size_t key_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_merge_cf(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_multi_get(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, size_t num_keys, const char* const* keys_list,
    const size_t* keys_list_sizes, char** values_list, size_t* values_list_sizes, char** errs);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_multi_get_cf(rocksdb_transactiondb_t* database,
    const rocksdb_readoptions_t* options, const rocksdb_column_family_handle_t* const* column_families,
    size_t num_keys, const char* const* keys_list, const size_t* keys_list_sizes, char** values_list,
    size_t* values_list_sizes, char** errs);
ROCKSDB_LIBRARY_API int rocksdb_transactiondb_property_int(rocksdb_transactiondb_t* database, const char* name,
    uint64_t* value);
ROCKSDB_LIBRARY_API char* rocksdb_transactiondb_property_value(rocksdb_transactiondb_t* database, const char* name);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_put(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, const char* key, size_t key_len, const char* value, size_t value_len,
    char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_put_cf(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, rocksdb_column_family_handle_t* family, const char* key, size_t key_len,
    const char* value, size_t value_len, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_release_snapshot(rocksdb_transactiondb_t* database,
    const rocksdb_snapshot_t* snapshot);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_write(rocksdb_transactiondb_t* database,
    const rocksdb_writeoptions_t* options, rocksdb_writebatch_t* batch, char** errptr);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_default_lock_timeout(
    rocksdb_transactiondb_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transactiondb_options_get_default_lock_timeout(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_max_num_locks(rocksdb_transactiondb_options_t* options,
    int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transactiondb_options_get_max_num_locks(rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_num_stripes(rocksdb_transactiondb_options_t* options,
    size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_transactiondb_options_get_num_stripes(rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transactiondb_options_get_transaction_lock_timeout(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_deadlock_detect(rocksdb_transaction_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_deadlock_detect(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_deadlock_detect_depth(
    rocksdb_transaction_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transaction_options_get_deadlock_detect_depth(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_expiration(rocksdb_transaction_options_t* options,
    int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transaction_options_get_expiration(rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_lock_timeout(rocksdb_transaction_options_t* options,
    int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transaction_options_get_lock_timeout(rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_max_write_batch_size(rocksdb_transaction_options_t* options,
    size_t value);
ROCKSDB_LIBRARY_API size_t rocksdb_transaction_options_get_max_write_batch_size(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_set_snapshot(rocksdb_transaction_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_set_snapshot(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_skip_prepare(rocksdb_transaction_options_t* options,
    unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_skip_prepare(
    rocksdb_transaction_options_t* options);

ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transactiondb_options_get_default_write_batch_flush_threshold(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_enable_udt_validation(
    rocksdb_transactiondb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transactiondb_options_get_enable_udt_validation(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_max_num_deadlocks(
    rocksdb_transactiondb_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_transactiondb_options_get_max_num_deadlocks(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transactiondb_options_get_rollback_merge_operands(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_skip_concurrency_control(
    rocksdb_transactiondb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transactiondb_options_get_skip_concurrency_control(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_transactiondb_options_get_txn_commit_bypass_memtable_threshold(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transactiondb_options_get_use_per_key_point_lock_mgr(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transactiondb_options_set_write_policy(
    rocksdb_transactiondb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_transactiondb_options_get_write_policy(
    rocksdb_transactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_commit_bypass_memtable(
    rocksdb_transaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_commit_bypass_memtable(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_deadlock_timeout_us(
    rocksdb_transaction_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transaction_options_get_deadlock_timeout_us(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options, uint64_t value);
ROCKSDB_LIBRARY_API uint64_t rocksdb_transaction_options_get_large_txn_commit_optimize_byte_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_transaction_options_get_large_txn_commit_optimize_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_skip_concurrency_control(
    rocksdb_transaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_skip_concurrency_control(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_use_only_the_last_commit_time_batch_for_recovery(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options, int64_t value);
ROCKSDB_LIBRARY_API int64_t rocksdb_transaction_options_get_write_batch_flush_threshold(
    rocksdb_transaction_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_transaction_options_set_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options, unsigned char value);
ROCKSDB_LIBRARY_API unsigned char rocksdb_transaction_options_get_write_batch_track_timestamp_size(
    rocksdb_transaction_options_t* options);

/* Options of databases for optimistic transactions: kept, and without effect. */
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_options_t* rocksdb_optimistictransactiondb_options_create(void);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_options_destroy(rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_options_set_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options, uint32_t value);
ROCKSDB_LIBRARY_API uint32_t rocksdb_optimistictransactiondb_options_get_occ_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_options_set_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options, int value);
ROCKSDB_LIBRARY_API int rocksdb_optimistictransactiondb_options_get_validate_policy(
    rocksdb_optimistictransactiondb_options_t* options);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
    rocksdb_optimistictransactiondb_options_t* options, rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_lock_buckets_t* rocksdb_optimistictransactiondb_lock_buckets_create(
    size_t bucket_count, unsigned char cache_aligned);
ROCKSDB_LIBRARY_API void rocksdb_optimistictransactiondb_lock_buckets_destroy(rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_LIBRARY_API size_t rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
    rocksdb_optimistictransactiondb_lock_buckets_t* lock_buckets);
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_t* rocksdb_optimistictransactiondb_open_with_otxn_db_options(
    const rocksdb_options_t* options, const rocksdb_optimistictransactiondb_options_t* otxn_db_options, const char* name,
    char** errptr);
ROCKSDB_LIBRARY_API rocksdb_optimistictransactiondb_t*
rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(const rocksdb_options_t* options,
    const rocksdb_optimistictransactiondb_options_t* otxn_db_options, const char* name, int count, const char* const* names,
    const rocksdb_options_t* const* family_options, rocksdb_column_family_handle_t** handles, char** errptr);

#ifdef __cplusplus
}
#endif

#endif
