//! `WriteBatchWithIndex`.

use capi::family::FamilyHandle;
use capi::indexed_batch::IndexedBatch;
use capi::options::Options;
use capi::read_options::ReadSettings;
use spillway::internal::indexed::Entries;
use spillway::internal::{Pinned, UserOrder, ValueKind, WriteBatch};

use super::walk::BatchWalk;
use super::{Batch, check_limit, id_of, no_savepoint};
use crate::boundary::argument::Head;
use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::Made;
use crate::boundary::{handle, natives};
use crate::callbacks::comparator::Order;
use crate::database::Db;
use crate::database::children::Child;
use crate::fault::Fault;
use crate::iterator::Walk;

/// A batch with an index: its own, or a transaction's.
pub struct Indexed {
    pub batch: Box<IndexedBatch>,
    /// 0: no limit.
    bytes_max: usize,
    /// Handle of the batch's `WriteBatch`, once one was asked for. Java does not close it.
    view: Option<i64>,
}

impl Drop for Indexed {
    fn drop(&mut self) {
        if let Some(view) = self.view {
            drop(handle::close::<Batch>(view));
        }
    }
}

static BATCH: Class = Class::new(c"org/rocksdb/WriteBatch");
static OF_HANDLE: Method = Method::constructor(&BATCH, c"(J)V");

/// A `WriteBatch` of Java's that does not close its handle.
pub fn borrowed<'j>(env: Env<'j>, handle: i64) -> Result<Object<'j>, Fault> {
    OF_HANDLE.make(env, &[Value::Long(handle)])
}

impl Indexed {
    pub fn new(batch: Box<IndexedBatch>) -> Box<Indexed> {
        Box::new(Indexed { batch, bytes_max: 0, view: None })
    }

    pub fn read<R>(&self, read: impl FnOnce(&WriteBatch) -> R) -> R {
        read(self.batch.shared().read().batch())
    }

    /// # Errors
    /// The limit of bytes: the batch is as before.
    pub fn change(
        &mut self,
        family: Option<&FamilyHandle>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Fault> {
        if self.bytes_max == 0 {
            self.batch.change(family, kind, key, value);
            return Ok(());
        }
        self.set_savepoint();
        self.batch.change(family, kind, key, value);
        let fits = check_limit(self.read(WriteBatch::len), self.bytes_max);
        if fits.is_ok() {
            self.pop_savepoint()?
        } else {
            self.rollback_to_savepoint()?
        };
        fits
    }

    pub fn put_log_data(&mut self, blob: &[u8]) {
        self.batch.shared().write().put_log_data(blob);
    }

    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    pub fn clear(&mut self) {
        self.batch.shared().write().clear();
    }

    pub fn set_savepoint(&mut self) {
        self.batch.shared().write().set_savepoint();
    }

    pub fn rollback_to_savepoint(&mut self) -> Result<(), Fault> {
        Ok(self.batch.roll_back()?)
    }

    pub fn pop_savepoint(&mut self) -> Result<(), Fault> {
        let popped = self.batch.shared().write().pop_savepoint();
        if popped { Ok(()) } else { Err(no_savepoint()) }
    }

    fn walk(&self, family: Option<&FamilyHandle>) -> Box<BatchWalk> {
        let order = || family.map_or(UserOrder::Bytewise, |family| family.0.options().order.clone());
        Box::new(BatchWalk::new(Entries::new(&self.batch.shared(), id_of(family), order)))
    }

    fn get_over(
        &self,
        database: &Db,
        family: Option<&FamilyHandle>,
        key: &[u8],
        options: &ReadSettings,
    ) -> Result<Option<Pinned>, Fault> {
        Ok(self.batch.get_over(database, family, key, options)?)
    }
}

natives! { "WriteBatchWithIndex";
    "newWriteBatchWithIndex__" => fn(_env) -> Box<Indexed> {
        Ok(Indexed::new(IndexedBatch::new(UserOrder::Bytewise)))
    }

    /// Each key shows one entry, the newest, whether or not `overwrite_keys`.
    "newWriteBatchWithIndex__Z" => fn(_env, _overwrite_keys: bool) -> Box<Indexed> {
        Ok(Indexed::new(IndexedBatch::new(UserOrder::Bytewise)))
    }

    /// The comparator is for families not yet passed to a call by handle.
    "newWriteBatchWithIndex__JBIZ" => fn(
        _env,
        comparator: Option<&Order>,
        _kind: i8,
        _reserved_bytes: i32,
        _overwrite_keys: bool,
    ) -> Box<Indexed> {
        let order = comparator.map_or(UserOrder::Bytewise, |comparator| comparator.order.clone());
        Ok(Indexed::new(IndexedBatch::new(order)))
    }

    "getWriteBatchJni" | "getWriteBatch" => fn(env, batch: &mut Indexed) -> Made {
        let shared = batch.batch.shared();
        let view = *batch.view.get_or_insert_with(|| handle::open(Batch::view(&shared)));
        Ok(borrowed(env, view)?.into())
    }

    "iterator0" => fn(_env, batch: &Indexed) -> Box<BatchWalk> {
        Ok(batch.walk(None))
    }

    "iterator1" => fn(_env, batch: &Indexed, family: &FamilyHandle) -> Box<BatchWalk> {
        Ok(batch.walk(Some(family)))
    }

    /// The iterator takes `below`. Each move shows the batch's present contents.
    "iteratorWithBase" =>
    fn(_env, batch: &Indexed, family: &FamilyHandle, below: i64, options: Option<&ReadSettings>) -> i64 {
        let below = Walk::take(below).ok_or_else(|| Fault::State("the base iterator is closed".to_owned()))?;
        Ok(below.replace(|below| batch.batch.over(below, Some(family), options)))
    }

    "getFromBatch__JJ_3BI" => fn(_env, batch: &Indexed, options: &Options, key[len]: Head) -> Option<Pinned> {
        Ok(batch.batch.get(None, &key, options)?)
    }

    "getFromBatch__JJ_3BIJ" =>
    fn(_env, batch: &Indexed, options: &Options, key[len]: Head, family: &FamilyHandle) -> Option<Pinned> {
        Ok(batch.batch.get(Some(family), &key, options)?)
    }

    "getFromBatchAndDB__JJJ_3BI" =>
    fn(_env, batch: &Indexed, database: &Db, options: &ReadSettings, key[len]: Head) -> Option<Pinned> {
        batch.get_over(database, None, &key, options)
    }

    "getFromBatchAndDB__JJJ_3BIJ" => fn(
        _env,
        batch: &Indexed,
        database: &Db,
        options: &ReadSettings,
        key[len]: Head,
        family: &FamilyHandle,
    ) -> Option<Pinned> {
        batch.get_over(database, Some(family), &key, options)
    }
}
