//! The functions of C.

use std::ffi::{c_char, c_int};

use spillway::internal::{UserOrder, ValueKind};

use super::IndexedBatch;
use crate::batch::show;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, IntCount, Parts};
use crate::boundary::callback::{StatePointer, VisitKey, VisitPair};
use crate::boundary::reply::{Given, Lent};
use crate::boundary::{export, fallible};
use crate::database::Database;
use crate::database::read::{PinnedValue, given_found};
use crate::extend::comparator::CallbackOrder;
use crate::family::FamilyHandle;
use crate::iterator::Iterator;
use crate::options::Options;
use crate::read_options::ReadSettings;
use crate::write_options::WriteSettings;

export! {
    /// Each key shows one entry, the newest, whether or not `overwrite_keys`.
    fn rocksdb_writebatch_wi_create(_reserved_bytes: usize, _overwrite_keys: bool) -> Box<IndexedBatch> {
        IndexedBatch::new(UserOrder::Bytewise)
    }

    /// The comparator is for families not yet passed to a call by handle. Batches grow as they need.
    fn rocksdb_writebatch_wi_create_with_params(
        comparator: Option<&CallbackOrder>,
        _reserved_bytes: usize,
        _overwrite_keys: bool,
        _max_bytes: usize,
        _protection_bytes_per_key: usize,
    ) -> Box<IndexedBatch> {
        IndexedBatch::new(comparator.map_or(UserOrder::Bytewise, CallbackOrder::order))
    }

    fn rocksdb_writebatch_wi_destroy(batch: Option<Box<IndexedBatch>>) {
        drop(batch);
    }

    fn rocksdb_writebatch_wi_clear(batch: &IndexedBatch) {
        batch.shared().write().clear();
    }

    fn rocksdb_writebatch_wi_count(batch: &IndexedBatch) -> c_int {
        c_int::try_from(batch.shared().read().batch().count()).unwrap_or(c_int::MAX)
    }

    /// The encoded batch, until it changes.
    fn rocksdb_writebatch_wi_data(batch: &IndexedBatch, len: Out<usize>) -> Lent {
        let shared = batch.shared();
        let batch = shared.read();
        len.set(batch.batch().len());
        Lent::of(batch.batch().as_bytes())
    }

    fn rocksdb_writebatch_wi_put_log_data(batch: &IndexedBatch, blob[blob_len]: &[u8]) {
        batch.shared().write().put_log_data(blob);
    }

    fn rocksdb_writebatch_wi_set_save_point(batch: &IndexedBatch) {
        batch.shared().write().set_savepoint();
    }

    fn rocksdb_writebatch_wi_put(batch: &IndexedBatch, key[key_len]: &[u8], value[value_len]: &[u8]) {
        batch.change(None, ValueKind::Value, key, value);
    }

    fn rocksdb_writebatch_wi_put_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        batch.change(Some(family), ValueKind::Value, key, value);
    }

    fn rocksdb_writebatch_wi_merge(batch: &IndexedBatch, key[key_len]: &[u8], operand[operand_len]: &[u8]) {
        batch.change(None, ValueKind::Merge, key, operand);
    }

    fn rocksdb_writebatch_wi_merge_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        batch.change(Some(family), ValueKind::Merge, key, operand);
    }

    fn rocksdb_writebatch_wi_delete(batch: &IndexedBatch, key[key_len]: &[u8]) {
        batch.change(None, ValueKind::Deletion, key, &[]);
    }

    fn rocksdb_writebatch_wi_delete_cf(batch: &IndexedBatch, family: &FamilyHandle, key[key_len]: &[u8]) {
        batch.change(Some(family), ValueKind::Deletion, key, &[]);
    }

    fn rocksdb_writebatch_wi_singledelete(batch: &IndexedBatch, key[key_len]: &[u8]) {
        batch.change(None, ValueKind::SingleDeletion, key, &[]);
    }

    fn rocksdb_writebatch_wi_singledelete_cf(batch: &IndexedBatch, family: &FamilyHandle, key[key_len]: &[u8]) {
        batch.change(Some(family), ValueKind::SingleDeletion, key, &[]);
    }

    fn rocksdb_writebatch_wi_delete_range(
        batch: &IndexedBatch,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        batch.change(None, ValueKind::RangeDeletion, start, end);
    }

    fn rocksdb_writebatch_wi_delete_range_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        batch.change(Some(family), ValueKind::RangeDeletion, start, end);
    }

    fn rocksdb_writebatch_wi_putv(
        batch: &IndexedBatch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.change_parts(None, ValueKind::Value, key, value);
    }

    fn rocksdb_writebatch_wi_mergev(
        batch: &IndexedBatch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.change_parts(None, ValueKind::Merge, key, value);
    }

    fn rocksdb_writebatch_wi_deletev(
        batch: &IndexedBatch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        batch.change(None, ValueKind::Deletion, &key.joined(), &[]);
    }

    /// Both keys have as many parts.
    fn rocksdb_writebatch_wi_delete_rangev(
        batch: &IndexedBatch,
        parts: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        ends: Array<*const c_char>,
        end_lens: Array<usize>,
    ) {
        let start = Parts { count: parts, parts: starts, lens: start_lens };
        let end = Parts { count: parts, parts: ends, lens: end_lens };
        batch.change_parts(None, ValueKind::RangeDeletion, start, end);
    }

    fn rocksdb_writebatch_wi_putv_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.change_parts(Some(family), ValueKind::Value, key, value);
    }

    fn rocksdb_writebatch_wi_mergev_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.change_parts(Some(family), ValueKind::Merge, key, value);
    }

    fn rocksdb_writebatch_wi_deletev_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        batch.change(Some(family), ValueKind::Deletion, &key.joined(), &[]);
    }

    /// Both keys have as many parts.
    fn rocksdb_writebatch_wi_delete_rangev_cf(
        batch: &IndexedBatch,
        family: &FamilyHandle,
        parts: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        ends: Array<*const c_char>,
        end_lens: Array<usize>,
    ) {
        let start = Parts { count: parts, parts: starts, lens: start_lens };
        let end = Parts { count: parts, parts: ends, lens: end_lens };
        batch.change_parts(Some(family), ValueKind::RangeDeletion, start, end);
    }

    /// Shows puts and deletions of every family, in the order of writing.
    fn rocksdb_writebatch_wi_iterate(batch: &IndexedBatch, state: StatePointer, put: VisitPair, deleted: VisitKey) {
        show(batch.shared().read().batch().iter(), state, put, deleted);
    }

    /// The iterator takes `below`. Each move shows the batch's current contents.
    fn rocksdb_writebatch_wi_create_iterator_with_base(
        batch: &IndexedBatch,
        below: Box<Iterator>,
    ) -> Box<Iterator> {
        batch.over(below, None, None)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
        batch: &IndexedBatch,
        below: Box<Iterator>,
        options: &ReadSettings,
    ) -> Box<Iterator> {
        batch.over(below, None, Some(options))
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_cf(
        batch: &IndexedBatch,
        below: Box<Iterator>,
        family: &FamilyHandle,
    ) -> Box<Iterator> {
        batch.over(below, Some(family), None)
    }

    fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
        batch: &IndexedBatch,
        below: Box<Iterator>,
        family: &FamilyHandle,
        options: &ReadSettings,
    ) -> Box<Iterator> {
        batch.over(below, Some(family), Some(options))
    }
}

fallible! {
    fn rocksdb_writebatch_wi_rollback_to_save_point(batch: &IndexedBatch) {
        batch.roll_back()
    }

    fn rocksdb_write_writebatch_wi(database: &Database, options: &WriteSettings, batch: &IndexedBatch) {
        database.write(batch.shared().read().batch(), options)
    }

    /// By the batch alone. The options' merge operator applies operands if the call names no family with one.
    fn rocksdb_writebatch_wi_get_from_batch(
        batch: &IndexedBatch,
        options: &Options,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(batch.get(None, key, options), len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_cf(
        batch: &IndexedBatch,
        options: &Options,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(batch.get(Some(family), key, options), len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db(
        batch: &IndexedBatch,
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(batch.get_over(database, None, key, options), len)
    }

    fn rocksdb_writebatch_wi_get_from_batch_and_db_cf(
        batch: &IndexedBatch,
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(batch.get_over(database, Some(family), key, options), len)
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db(
        batch: &IndexedBatch,
        database: &Database,
        options: &ReadSettings,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(batch.get_over(database, None, key, options)?.map(PinnedValue::new))
    }

    fn rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(
        batch: &IndexedBatch,
        database: &Database,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(batch.get_over(database, Some(family), key, options)?.map(PinnedValue::new))
    }
}
