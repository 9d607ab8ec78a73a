//! Pessimistic transactions. Opening a database for them is refused; their options are kept.

use std::ffi::{CStr, c_char, c_uchar};

use super::Absent;
use crate::boundary::array::{Array, IntCount, OutArray};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles, of_nothing};
use crate::family::FamilyHandle;
use crate::kept::{Kept, keeps_numbers};
use crate::options::Options;

const TRANSACTIONS: Absent = Absent("pessimistic transactions");

/// `rocksdb_transactiondb_t`, never made.
pub enum TransactionDb {}

/// `rocksdb_transactiondb_options_t`.
#[derive(Default)]
pub struct DbSettings {
    kept: Kept,
}

/// `rocksdb_transaction_options_t`.
#[derive(Default)]
pub struct TransactionSettings {
    kept: Kept,
}

handles!(TransactionDb, DbSettings, TransactionSettings);

keeps_numbers!(DbSettings, TransactionSettings);

settings! { DbSettings, "rocksdb_transactiondb_options_";
    default_lock_timeout: i64 = 1000;
    max_num_locks: i64 = -1;
    num_stripes: usize = 16;
    transaction_lock_timeout: i64 = 1000;
}

settings! { TransactionSettings, "rocksdb_transaction_options_";
    deadlock_detect: c_uchar = 0;
    deadlock_detect_depth: i64 = 50;
    expiration: i64 = -1;
    lock_timeout: i64 = -1;
    max_write_batch_size: usize = 0;
    set_snapshot: c_uchar = 0;
    skip_prepare: c_uchar = 1;
}

export! {
    fn rocksdb_transactiondb_options_create() -> Box<DbSettings> {
        Box::default()
    }

    fn rocksdb_transactiondb_options_destroy(options: Option<Box<DbSettings>>) {
        drop(options);
    }

    fn rocksdb_transaction_options_create() -> Box<TransactionSettings> {
        Box::default()
    }

    fn rocksdb_transaction_options_destroy(options: Option<Box<TransactionSettings>>) {
        drop(options);
    }
}

fallible! {
    fn rocksdb_transactiondb_open(
        _options: &Options,
        _transaction_options: &DbSettings,
        _name: &CStr,
    ) -> Option<Box<TransactionDb>> {
        TRANSACTIONS.refuse()
    }

    fn rocksdb_transactiondb_open_column_families(
        _options: &Options,
        _transaction_options: &DbSettings,
        _name: &CStr,
        _count: IntCount,
        _names: Array<*const c_char>,
        _family_options: Array<*const Options>,
        _handles: OutArray<*mut FamilyHandle>,
    ) -> Option<Box<TransactionDb>> {
        TRANSACTIONS.refuse()
    }
}

of_nothing! { "pessimistic transactions";
    destroy {
        rocksdb_transactiondb_close
        rocksdb_transactiondb_close_base_db
    }
    use {
        rocksdb_transaction_begin
        rocksdb_transactiondb_checkpoint_object_create
        rocksdb_transactiondb_create_column_family
        rocksdb_transactiondb_create_iterator
        rocksdb_transactiondb_create_iterator_cf
        rocksdb_transactiondb_create_snapshot
        rocksdb_transactiondb_delete
        rocksdb_transactiondb_delete_cf
        rocksdb_transactiondb_flush
        rocksdb_transactiondb_flush_cf
        rocksdb_transactiondb_flush_cfs
        rocksdb_transactiondb_flush_wal
        rocksdb_transactiondb_get
        rocksdb_transactiondb_get_base_db
        rocksdb_transactiondb_get_cf
        rocksdb_transactiondb_get_pinned
        rocksdb_transactiondb_get_pinned_cf
        rocksdb_transactiondb_get_prepared_transactions
        rocksdb_transactiondb_merge
        rocksdb_transactiondb_merge_cf
        rocksdb_transactiondb_multi_get
        rocksdb_transactiondb_multi_get_cf
        rocksdb_transactiondb_property_int
        rocksdb_transactiondb_property_value
        rocksdb_transactiondb_put
        rocksdb_transactiondb_put_cf
        rocksdb_transactiondb_release_snapshot
        rocksdb_transactiondb_write
    }
}
