//! The functions of a transaction.

use std::ffi::c_char;
use std::iter;
use std::sync::Arc;

use spillway::internal::{Family, ValueKind};

use super::TransactionHandle;
use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, Count, OutArray};
use crate::boundary::reply::Given;
use crate::boundary::{export, fallible};
use crate::database::read::{PinnedValue, Results, given_found};
use crate::family::FamilyHandle;
use crate::indexed_batch::IndexedBatch;
use crate::iterator::Iterator;
use crate::read_options::ReadSettings;
use crate::snapshot::SnapshotHandle;

export! {
    /// The changes are forgotten; a prepared transaction stays prepared.
    fn rocksdb_transaction_destroy(transaction: Option<Box<TransactionHandle>>) {
        drop(transaction);
    }

    fn rocksdb_transaction_set_savepoint(transaction: &mut TransactionHandle) {
        transaction.transaction.set_savepoint();
    }

    /// NULL if none was asked for. Used until the commit or the rollback; freed by rocksdb_free.
    fn rocksdb_transaction_get_snapshot(transaction: &mut TransactionHandle) -> Option<Box<SnapshotHandle>> {
        transaction.snapshot()
    }

    /// The changes, until the transaction is destroyed; freed by rocksdb_free. Changes made through it are not tracked.
    fn rocksdb_transaction_get_writebatch_wi(transaction: &mut TransactionHandle) -> Box<IndexedBatch> {
        transaction.batch()
    }

    /// Empty without a name.
    fn rocksdb_transaction_get_name(transaction: &TransactionHandle, len: Out<usize>) -> Given<c_char> {
        let name = transaction.transaction.name();
        len.set(name.len());
        Given::text(name)
    }

    fn rocksdb_transaction_put_log_data(transaction: &mut TransactionHandle, blob[blob_len]: &[u8]) {
        transaction.transaction.put_log_data(blob);
    }

    /// An iterator over the database and the transaction's changes. Each move shows the present ones.
    fn rocksdb_transaction_create_iterator(
        transaction: &TransactionHandle,
        options: &ReadSettings,
    ) -> Box<Iterator> {
        transaction.iterator(None, options)
    }

    fn rocksdb_transaction_create_iterator_cf(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        family: &FamilyHandle,
    ) -> Box<Iterator> {
        transaction.iterator(Some(family), options)
    }

    /// No effect: there are no timestamps.
    fn rocksdb_transaction_set_commit_timestamp(_transaction: &TransactionHandle, _timestamp: u64) {}

    /// No effect: there are no timestamps.
    fn rocksdb_transaction_set_read_timestamp_for_validation(_transaction: &TransactionHandle, _timestamp: u64) {}

    fn rocksdb_transaction_multi_get(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let default = transaction.family(None).clone();
        let families: Vec<&Arc<Family>> = iter::repeat_n(&default, count.get()).collect();
        let found = transaction.multi_get(&families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_transaction_multi_get_cf(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        families: Array<*const FamilyHandle>,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let families: Vec<&Arc<Family>> = families.handles(count).map(|family| &family.0).collect();
        let found = transaction.multi_get(&families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_transaction_multi_get_for_update(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let default = transaction.family(None).clone();
        let families: Vec<&Arc<Family>> = iter::repeat_n(&default, count.get()).collect();
        let found = transaction.multi_get_for_update(&families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_transaction_multi_get_for_update_cf(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        families: Array<*const FamilyHandle>,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let families: Vec<&Arc<Family>> = families.handles(count).map(|family| &family.0).collect();
        let found = transaction.multi_get_for_update(&families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }
}

fallible! {
    fn rocksdb_transaction_commit(transaction: &mut TransactionHandle) {
        transaction.commit()
    }

    fn rocksdb_transaction_rollback(transaction: &mut TransactionHandle) {
        transaction.rollback()
    }

    fn rocksdb_transaction_rollback_to_savepoint(transaction: &mut TransactionHandle) {
        transaction.rollback_to_savepoint()
    }

    /// Refused, as in RocksDB, of optimistic transactions.
    fn rocksdb_transaction_prepare(transaction: &mut TransactionHandle) {
        transaction.prepare()
    }

    /// Refused, as in RocksDB, of optimistic transactions.
    fn rocksdb_transaction_set_name(transaction: &mut TransactionHandle, name[name_len]: &[u8]) {
        let TransactionHandle { transaction, database, .. } = transaction;
        Ok(transaction.set_name(&database.db, name)?)
    }

    /// Adds a batch's changes, as tracked ones.
    fn rocksdb_transaction_rebuild_from_writebatch(transaction: &mut TransactionHandle, batch: &Batch) {
        let TransactionHandle { transaction, database, .. } = transaction;
        Ok(transaction.rebuild_from(&database.db, batch.written()?)?)
    }

    fn rocksdb_transaction_rebuild_from_writebatch_wi(transaction: &mut TransactionHandle, batch: &IndexedBatch) {
        // A copy: the batch may be the transaction's own.
        let changes = batch.shared().read().batch().clone();
        let TransactionHandle { transaction, database, .. } = transaction;
        Ok(transaction.rebuild_from(&database.db, &changes)?)
    }

    fn rocksdb_transaction_put(
        transaction: &mut TransactionHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        transaction.change(None, ValueKind::Value, key, value)
    }

    fn rocksdb_transaction_put_cf(
        transaction: &mut TransactionHandle,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        transaction.change(Some(family), ValueKind::Value, key, value)
    }

    fn rocksdb_transaction_merge(
        transaction: &mut TransactionHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        transaction.change(None, ValueKind::Merge, key, operand)
    }

    fn rocksdb_transaction_merge_cf(
        transaction: &mut TransactionHandle,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        transaction.change(Some(family), ValueKind::Merge, key, operand)
    }

    fn rocksdb_transaction_delete(transaction: &mut TransactionHandle, key[key_len]: &[u8]) {
        transaction.change(None, ValueKind::Deletion, key, &[])
    }

    fn rocksdb_transaction_delete_cf(transaction: &mut TransactionHandle, family: &FamilyHandle, key[key_len]: &[u8]) {
        transaction.change(Some(family), ValueKind::Deletion, key, &[])
    }

    fn rocksdb_transaction_get(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(transaction.get(None, key, options), len)
    }

    fn rocksdb_transaction_get_pinned(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(transaction.get(None, key, options)?.map(PinnedValue::new))
    }

    fn rocksdb_transaction_get_cf(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(transaction.get(Some(family), key, options), len)
    }

    fn rocksdb_transaction_get_pinned_cf(
        transaction: &TransactionHandle,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(transaction.get(Some(family), key, options)?.map(PinnedValue::new))
    }

    fn rocksdb_transaction_get_for_update(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        key[key_len]: &[u8],
        len: Out<usize>,
        exclusive: bool,
    ) -> Given<c_char> {
        given_found(transaction.get_for_update(None, key, exclusive, options), len)
    }

    fn rocksdb_transaction_get_pinned_for_update(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        key[key_len]: &[u8],
        exclusive: bool,
    ) -> Option<Box<PinnedValue>> {
        Ok(transaction.get_for_update(None, key, exclusive, options)?.map(PinnedValue::new))
    }

    fn rocksdb_transaction_get_for_update_cf(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
        exclusive: bool,
    ) -> Given<c_char> {
        given_found(transaction.get_for_update(Some(family), key, exclusive, options), len)
    }

    fn rocksdb_transaction_get_pinned_for_update_cf(
        transaction: &mut TransactionHandle,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        exclusive: bool,
    ) -> Option<Box<PinnedValue>> {
        Ok(transaction.get_for_update(Some(family), key, exclusive, options)?.map(PinnedValue::new))
    }
}
