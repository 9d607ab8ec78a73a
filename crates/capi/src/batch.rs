//! `rocksdb_writebatch_t`.

use std::ffi::{c_char, c_int};

use spillway::internal::batch::BatchReader;
use spillway::internal::{Error, FamilyId, ValueKind, WriteBatch};

use crate::boundary::argument::Out;
use crate::boundary::array::{Array, IntCount, Parts};
use crate::boundary::callback::{StatePointer, VisitFamilyKey, VisitFamilyPair, VisitKey, VisitPair};
use crate::boundary::reply::Lent;
use crate::boundary::{export, fallible, handles};
use crate::failure::Failure;
use crate::family::FamilyHandle;

/// A batch. If made of malformed bytes, it is empty and cannot be written.
pub struct Batch {
    batch: WriteBatch,
    damage: Option<Error>,
}

handles!(Batch);

impl Batch {
    fn new(batch: WriteBatch) -> Box<Batch> {
        Box::new(Batch { batch, damage: None })
    }

    /// An empty batch without bytes. If they are malformed, writing the batch fails.
    pub fn of_bytes(bytes: Option<Vec<u8>>) -> Box<Batch> {
        match bytes.map_or_else(|| Ok(WriteBatch::new()), WriteBatch::from_bytes) {
            Ok(batch) => Batch::new(batch),
            Err(error) => Box::new(Batch { batch: WriteBatch::new(), damage: Some(error) }),
        }
    }

    /// # Errors
    /// `Corruption`: it was made of malformed bytes.
    pub fn written(&self) -> Result<&WriteBatch, Failure> {
        match &self.damage {
            Some(error) => Err(error.clone().into()),
            None => Ok(&self.batch),
        }
    }

    /// Makes writes of the batch fail.
    pub fn damage(&mut self, error: Error) {
        self.damage = Some(error);
    }

    /// Each record's family, kind, key and value; empty if the batch is damaged.
    fn records(&self) -> BatchReader<'_> {
        self.batch.iter()
    }

    fn put_parts(&mut self, family: FamilyId, key: Parts, value: Parts) {
        self.batch.put(family, &key.joined(), &value.joined());
    }

    fn merge_parts(&mut self, family: FamilyId, key: Parts, operand: Parts) {
        self.batch.merge(family, &key.joined(), &operand.joined());
    }

    fn delete_parts(&mut self, family: FamilyId, key: Parts) {
        self.batch.delete(family, &key.joined());
    }

    fn delete_range_parts(&mut self, family: FamilyId, start: Parts, end: Parts) {
        self.batch.delete_range(family, &start.joined(), &end.joined());
    }
}

/// Shows a batch's puts and deletions of every family.
pub fn show(records: BatchReader<'_>, state: StatePointer, put: VisitPair, deleted: VisitKey) {
    for record in records.flatten() {
        match record.kind {
            ValueKind::Value => put.call(state, record.key, record.value),
            ValueKind::Deletion => deleted.call(state, record.key),
            ValueKind::Merge | ValueKind::SingleDeletion | ValueKind::RangeDeletion => {}
        }
    }
}

export! {
    fn rocksdb_writebatch_create() -> Box<Batch> {
        Batch::new(WriteBatch::new())
    }

    /// Batches grow as they need, without checksums of entries in memory.
    fn rocksdb_writebatch_create_with_params(
        _reserved_bytes: usize,
        _max_bytes: usize,
        _protection_bytes_per_key: usize,
        _default_cf_ts_sz: usize,
    ) -> Box<Batch> {
        Batch::new(WriteBatch::new())
    }

    /// From a batch's bytes. If they are malformed, writing the batch fails.
    fn rocksdb_writebatch_create_from(bytes[len]: &[u8]) -> Box<Batch> {
        Batch::of_bytes(Some(bytes.to_vec()))
    }

    fn rocksdb_writebatch_destroy(batch: Option<Box<Batch>>) {
        drop(batch);
    }

    fn rocksdb_writebatch_clear(batch: &mut Batch) {
        batch.batch.clear();
        batch.damage = None;
    }

    fn rocksdb_writebatch_count(batch: &Batch) -> c_int {
        c_int::try_from(batch.batch.count()).unwrap_or(c_int::MAX)
    }

    fn rocksdb_writebatch_put(batch: &mut Batch, key[key_len]: &[u8], value[value_len]: &[u8]) {
        batch.batch.put(FamilyId::DEFAULT, key, value);
    }

    fn rocksdb_writebatch_put_cf(
        batch: &mut Batch,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        batch.batch.put(family.0.id(), key, value);
    }

    fn rocksdb_writebatch_merge(batch: &mut Batch, key[key_len]: &[u8], operand[operand_len]: &[u8]) {
        batch.batch.merge(FamilyId::DEFAULT, key, operand);
    }

    fn rocksdb_writebatch_merge_cf(
        batch: &mut Batch,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        operand[operand_len]: &[u8],
    ) {
        batch.batch.merge(family.0.id(), key, operand);
    }

    fn rocksdb_writebatch_delete(batch: &mut Batch, key[key_len]: &[u8]) {
        batch.batch.delete(FamilyId::DEFAULT, key);
    }

    fn rocksdb_writebatch_delete_cf(batch: &mut Batch, family: &FamilyHandle, key[key_len]: &[u8]) {
        batch.batch.delete(family.0.id(), key);
    }

    fn rocksdb_writebatch_singledelete(batch: &mut Batch, key[key_len]: &[u8]) {
        batch.batch.single_delete(FamilyId::DEFAULT, key);
    }

    fn rocksdb_writebatch_singledelete_cf(batch: &mut Batch, family: &FamilyHandle, key[key_len]: &[u8]) {
        batch.batch.single_delete(family.0.id(), key);
    }

    fn rocksdb_writebatch_delete_range(batch: &mut Batch, start[start_len]: &[u8], end[end_len]: &[u8]) {
        batch.batch.delete_range(FamilyId::DEFAULT, start, end);
    }

    fn rocksdb_writebatch_delete_range_cf(
        batch: &mut Batch,
        family: &FamilyHandle,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        batch.batch.delete_range(family.0.id(), start, end);
    }

    fn rocksdb_writebatch_putv(
        batch: &mut Batch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.put_parts(FamilyId::DEFAULT, key, value);
    }

    fn rocksdb_writebatch_mergev(
        batch: &mut Batch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        value_parts: IntCount,
        values: Array<*const c_char>,
        value_lens: Array<usize>,
    ) {
        let key = Parts { count: key_parts, parts: keys, lens: key_lens };
        let value = Parts { count: value_parts, parts: values, lens: value_lens };
        batch.merge_parts(FamilyId::DEFAULT, key, value);
    }

    fn rocksdb_writebatch_deletev(
        batch: &mut Batch,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
    ) {
        batch.delete_parts(FamilyId::DEFAULT, Parts { count: key_parts, parts: keys, lens: key_lens });
    }

    /// Both keys have as many parts.
    fn rocksdb_writebatch_delete_rangev(
        batch: &mut Batch,
        parts: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        ends: Array<*const c_char>,
        end_lens: Array<usize>,
    ) {
        let start = Parts { count: parts, parts: starts, lens: start_lens };
        let end = Parts { count: parts, parts: ends, lens: end_lens };
        batch.delete_range_parts(FamilyId::DEFAULT, start, end);
    }

    fn rocksdb_writebatch_putv_cf(
        batch: &mut Batch,
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
        batch.put_parts(family.0.id(), key, value);
    }

    fn rocksdb_writebatch_mergev_cf(
        batch: &mut Batch,
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
        batch.merge_parts(family.0.id(), key, value);
    }

    fn rocksdb_writebatch_deletev_cf(
        batch: &mut Batch,
        family: &FamilyHandle,
        key_parts: IntCount,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
    ) {
        batch.delete_parts(family.0.id(), Parts { count: key_parts, parts: keys, lens: key_lens });
    }

    /// Both keys have as many parts.
    fn rocksdb_writebatch_delete_rangev_cf(
        batch: &mut Batch,
        family: &FamilyHandle,
        parts: IntCount,
        starts: Array<*const c_char>,
        start_lens: Array<usize>,
        ends: Array<*const c_char>,
        end_lens: Array<usize>,
    ) {
        let start = Parts { count: parts, parts: starts, lens: start_lens };
        let end = Parts { count: parts, parts: ends, lens: end_lens };
        batch.delete_range_parts(family.0.id(), start, end);
    }

    fn rocksdb_writebatch_put_log_data(batch: &mut Batch, blob[blob_len]: &[u8]) {
        batch.batch.put_log_data(blob);
    }

    fn rocksdb_writebatch_set_save_point(batch: &mut Batch) {
        batch.batch.set_savepoint();
    }

    /// The encoded batch, until it changes.
    fn rocksdb_writebatch_data(batch: &Batch, len: Out<usize>) -> Lent {
        len.set(batch.batch.len());
        Lent::of(batch.batch.as_bytes())
    }

    /// Shows puts and deletions of every family.
    fn rocksdb_writebatch_iterate(batch: &Batch, state: StatePointer, put: VisitPair, deleted: VisitKey) {
        show(batch.records(), state, put, deleted);
    }

    fn rocksdb_writebatch_iterate_cf(
        batch: &Batch,
        state: StatePointer,
        put: VisitFamilyPair,
        deleted: VisitFamilyKey,
        merge: VisitFamilyPair,
    ) {
        for record in batch.records().flatten() {
            let family = record.family.0;
            match record.kind {
                ValueKind::Value => put.call(state, family, record.key, record.value),
                ValueKind::Deletion => deleted.call(state, family, record.key),
                ValueKind::Merge => merge.call(state, family, record.key, record.value),
                ValueKind::SingleDeletion | ValueKind::RangeDeletion => {}
            }
        }
    }
}

fallible! {
    fn rocksdb_writebatch_rollback_to_save_point(batch: &mut Batch) {
        let rolled_back = batch.batch.rollback_to_savepoint();
        if rolled_back { Ok(()) } else { Err(Failure::not_found("the batch has no save point")) }
    }

    fn rocksdb_writebatch_pop_save_point(batch: &mut Batch) {
        let popped = batch.batch.pop_savepoint();
        if popped { Ok(()) } else { Err(Failure::not_found("the batch has no save point")) }
    }
}
