//! The functions of RocksDB's C API that [`super`] calls, beside those of [`Functions`](super::super::Functions).

use std::ffi::{c_char, c_int};

use crate::library::table::{Bytes, Failure, Flag, Handle, Text, functions};

/// `compare` of a comparator.
pub type Compare = extern "C" fn(*mut Handle, Bytes, usize, Bytes, usize) -> c_int;
/// `name` of an object.
pub type Name = extern "C" fn(*mut Handle) -> Text;
/// `destructor` of an object.
pub type End = extern "C" fn(*mut Handle);
/// `full_merge` of a merge operator.
pub type FullMerge = extern "C" fn(
    *mut Handle,
    Bytes,
    usize,
    Bytes,
    usize,
    *const Bytes,
    *const usize,
    c_int,
    *mut Flag,
    *mut usize,
) -> *mut c_char;
/// `partial_merge` of a merge operator.
pub type PartialMerge =
    extern "C" fn(*mut Handle, Bytes, usize, *const Bytes, *const usize, c_int, *mut Flag, *mut usize) -> *mut c_char;
/// `delete_value` of a merge operator.
pub type DeleteValue = extern "C" fn(*mut Handle, Bytes, usize);

functions! {
    Calls:
    comparator_create(*mut Handle, End, Compare, Name) -> *mut Handle;
    comparator_destroy(*mut Handle);
    mergeoperator_create(*mut Handle, End, FullMerge, PartialMerge, DeleteValue, Name) -> *mut Handle;
    options_set_comparator(*mut Handle, *mut Handle);
    options_set_merge_operator(*mut Handle, *mut Handle);

    list_column_families(*const Handle, Text, *mut usize, Failure) -> *mut *mut c_char;
    list_column_families_destroy(*mut *mut c_char, usize);
    open_for_read_only_column_families(
        *const Handle, Text, c_int, *const Text, *const *const Handle, *mut *mut Handle, Flag, Failure
    ) -> *mut Handle;
    transactiondb_options_create() -> *mut Handle;
    transactiondb_options_destroy(*mut Handle);
    transactiondb_options_set_default_lock_timeout(*mut Handle, i64);
    transactiondb_options_set_transaction_lock_timeout(*mut Handle, i64);
    transactiondb_open_column_families(
        *const Handle, *const Handle, Text, c_int, *const Text, *const *const Handle, *mut *mut Handle, Failure
    ) -> *mut Handle;
    transactiondb_close(*mut Handle);
    transactiondb_get_base_db(*mut Handle) -> *mut Handle;
    transactiondb_close_base_db(*mut Handle);
    optimistictransactiondb_open_column_families(
        *const Handle, Text, c_int, *const Text, *const *const Handle, *mut *mut Handle, Failure
    ) -> *mut Handle;
    optimistictransactiondb_close(*mut Handle);
    optimistictransactiondb_get_base_db(*mut Handle) -> *mut Handle;
    optimistictransactiondb_close_base_db(*mut Handle);

    create_column_family(*mut Handle, *const Handle, Text, Failure) -> *mut Handle;
    transactiondb_create_column_family(*mut Handle, *const Handle, Text, Failure) -> *mut Handle;
    drop_column_family(*mut Handle, *mut Handle, Failure);
    flush_cf(*mut Handle, *const Handle, *mut Handle, Failure);
    compactoptions_create() -> *mut Handle;
    compactoptions_destroy(*mut Handle);
    compactoptions_set_exclusive_manual_compaction(*mut Handle, Flag);
    compactoptions_set_bottommost_level_compaction(*mut Handle, Flag);
    compactoptions_set_change_level(*mut Handle, Flag);
    compactoptions_set_target_level(*mut Handle, c_int);
    compact_range_cf_opt(*mut Handle, *mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    checkpoint_object_create(*mut Handle, Failure) -> *mut Handle;
    transactiondb_checkpoint_object_create(*mut Handle, Failure) -> *mut Handle;
    checkpoint_object_destroy(*mut Handle);
    checkpoint_create(*mut Handle, Text, u64, Failure);
    ingest_external_file_cf(*mut Handle, *mut Handle, *const Text, usize, *const Handle, Failure);
    ingestexternalfileoptions_set_snapshot_consistency(*mut Handle, Flag);
    ingestexternalfileoptions_set_write_global_seqno(*mut Handle, Flag);
    sstfilewriter_merge(*mut Handle, Bytes, usize, Bytes, usize, Failure);
    sstfilewriter_delete(*mut Handle, Bytes, usize, Failure);
    sstfilewriter_delete_range(*mut Handle, Bytes, usize, Bytes, usize, Failure);

    writeoptions_disable_WAL(*mut Handle, c_int);
    put_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    delete_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Failure);
    singledelete_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Failure);
    merge_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    delete_range_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    transactiondb_put_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    transactiondb_delete_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Failure);
    transactiondb_merge_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    transactiondb_write(*mut Handle, *const Handle, *mut Handle, Failure);
    optimistictransactiondb_write(*mut Handle, *const Handle, *mut Handle, Failure);
    write_writebatch_wi(*mut Handle, *const Handle, *mut Handle, Failure);

    create_snapshot(*mut Handle) -> *const Handle;
    release_snapshot(*mut Handle, *const Handle);
    readoptions_set_snapshot(*mut Handle, *const Handle);
    readoptions_set_iterate_upper_bound(*mut Handle, Bytes, usize);
    readoptions_set_iterate_lower_bound(*mut Handle, Bytes, usize);
    readoptions_set_total_order_seek(*mut Handle, Flag);
    readoptions_set_prefix_same_as_start(*mut Handle, Flag);
    readoptions_set_readahead_size(*mut Handle, usize);
    readoptions_set_pin_data(*mut Handle, Flag);
    get_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    get_pinned_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Failure) -> *mut Handle;
    multi_get_cf(
        *mut Handle, *const Handle, *const *const Handle, usize, *const Bytes, *const usize, *mut *mut c_char,
        *mut usize, *mut *mut c_char
    );
    transactiondb_get_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    create_iterator_cf(*mut Handle, *const Handle, *mut Handle) -> *mut Handle;
    iter_seek_for_prev(*mut Handle, Bytes, usize);
    iter_refresh(*mut Handle, Failure);

    writebatch_create_from(Bytes, usize) -> *mut Handle;
    writebatch_count(*mut Handle) -> c_int;
    writebatch_data(*mut Handle, *mut usize) -> Bytes;
    writebatch_put_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    writebatch_delete_cf(*mut Handle, *mut Handle, Bytes, usize);
    writebatch_merge_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    writebatch_delete_range_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    writebatch_set_save_point(*mut Handle);
    writebatch_rollback_to_save_point(*mut Handle, Failure);
    writebatch_pop_save_point(*mut Handle, Failure);
    writebatch_wi_create(usize, Flag) -> *mut Handle;
    writebatch_wi_create_with_params(*mut Handle, usize, Flag, usize, usize) -> *mut Handle;
    writebatch_wi_destroy(*mut Handle);
    writebatch_wi_clear(*mut Handle);
    writebatch_wi_count(*mut Handle) -> c_int;
    writebatch_wi_data(*mut Handle, *mut usize) -> Bytes;
    writebatch_wi_put_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    writebatch_wi_delete_cf(*mut Handle, *mut Handle, Bytes, usize);
    writebatch_wi_merge_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize);
    writebatch_wi_set_save_point(*mut Handle);
    writebatch_wi_rollback_to_save_point(*mut Handle, Failure);
    writebatch_wi_get_from_batch_cf(
        *mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Failure
    ) -> *mut c_char;
    writebatch_wi_get_from_batch_and_db_cf(
        *mut Handle, *mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Failure
    ) -> *mut c_char;
    writebatch_wi_create_iterator_with_base_cf_readopts(
        *mut Handle, *mut Handle, *mut Handle, *const Handle
    ) -> *mut Handle;

    transaction_options_create() -> *mut Handle;
    transaction_options_destroy(*mut Handle);
    transaction_options_set_set_snapshot(*mut Handle, Flag);
    transaction_options_set_deadlock_detect(*mut Handle, Flag);
    transaction_options_set_lock_timeout(*mut Handle, i64);
    optimistictransaction_options_create() -> *mut Handle;
    optimistictransaction_options_destroy(*mut Handle);
    optimistictransaction_options_set_set_snapshot(*mut Handle, Flag);
    transaction_begin(*mut Handle, *const Handle, *const Handle, *mut Handle) -> *mut Handle;
    optimistictransaction_begin(*mut Handle, *const Handle, *const Handle, *mut Handle) -> *mut Handle;
    transaction_destroy(*mut Handle);
    transaction_commit(*mut Handle, Failure);
    transaction_rollback(*mut Handle, Failure);
    transaction_set_savepoint(*mut Handle);
    transaction_rollback_to_savepoint(*mut Handle, Failure);
    transaction_get_snapshot(*mut Handle) -> *const Handle;
    transaction_put_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    transaction_delete_cf(*mut Handle, *mut Handle, Bytes, usize, Failure);
    transaction_merge_cf(*mut Handle, *mut Handle, Bytes, usize, Bytes, usize, Failure);
    transaction_get_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    transaction_get_pinned_cf(*mut Handle, *const Handle, *mut Handle, Bytes, usize, Failure) -> *mut Handle;
    transaction_get_for_update_cf(
        *mut Handle, *const Handle, *mut Handle, Bytes, usize, *mut usize, Flag, Failure
    ) -> *mut c_char;
    transaction_multi_get_cf(
        *mut Handle, *const Handle, *const *const Handle, usize, *const Bytes, *const usize, *mut *mut c_char,
        *mut usize, *mut *mut c_char
    );
    transaction_create_iterator_cf(*mut Handle, *const Handle, *mut Handle) -> *mut Handle;
}
