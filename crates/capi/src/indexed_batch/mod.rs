//! `rocksdb_writebatch_wi_t`: a batch that can be read before it is written, alone and over a database.
//!
//! Beside the batch stands an index of it by family and key ([`index`]). Range deletions are part of it, which RocksDB
//! leaves out of such batches without a word.

mod calls;
mod index;
mod merged;
mod over_base;

use std::sync::Arc;

use spillway::{FamilyId, Pinned, UserOrder, ValueKind, WriteBatch};

use self::index::{Base, FamilyIndex, Index, Said};
use self::merged::{Operator, merged, operator_of};
pub use self::over_base::BatchOverBase;
use crate::boundary::handles;
use crate::database::{Database, FamilyHandle};
use crate::failure::Failure;
use crate::iterator::Iterator;
use crate::read_options::ReadSettings;

/// A batch, and what it says of each key.
pub struct IndexedBatch {
    batch: WriteBatch,
    index: Index,
    /// How keys of families sort whose handle no call has shown.
    order: UserOrder,
}

handles!(IndexedBatch);

impl IndexedBatch {
    fn new(order: UserOrder) -> Box<IndexedBatch> {
        Box::new(IndexedBatch { batch: WriteBatch::new(), index: Index::new(), order })
    }

    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// Adds a change to the batch and to the index; `value` is the end of a range.
    fn change(&mut self, family: Option<&FamilyHandle>, kind: ValueKind, key: &[u8], value: &[u8]) {
        let id = family.map_or(FamilyId::DEFAULT, |family| family.0.id());
        match kind {
            ValueKind::Value => self.batch.put(id, key, value),
            ValueKind::Merge => self.batch.merge(id, key, value),
            ValueKind::Deletion => self.batch.delete(id, key),
            ValueKind::SingleDeletion => self.batch.single_delete(id, key),
            ValueKind::RangeDeletion => self.batch.delete_range(id, key, value),
        }
        let order = || family.map_or_else(|| self.order.clone(), |family| family.0.options().order.clone());
        self.index.family_mut(id, order).change(kind, key, value);
    }

    /// What the batch says of a key; `None` where that is nothing.
    fn said(&self, family: Option<&FamilyHandle>, key: &[u8]) -> Option<Said> {
        let id = family.map_or(FamilyId::DEFAULT, |family| family.0.id());
        self.index.family(id)?.get(key)
    }

    /// The value by the batch alone.
    ///
    /// # Errors
    /// It depends on what is in the database; `operator` is missing, or cannot apply the operands.
    fn get(&self, family: Option<&FamilyHandle>, key: &[u8], operator: &Operator) -> Result<Option<Vec<u8>>, Failure> {
        match self.said(family, key) {
            None => Ok(None),
            Some(Said { base: Base::Below, .. }) => {
                Err(Failure::merge_in_progress("the operands need a value to go on"))
            }
            Some(said) => merged(operator.as_ref(), key, &said, None),
        }
    }

    /// The value as it will be when the batch is written.
    fn get_over(
        &self,
        database: &Database,
        family: Option<&FamilyHandle>,
        key: &[u8],
        options: &ReadSettings,
    ) -> Result<Option<Pinned>, Failure> {
        let of = family.map_or_else(|| database.default_family(), |family| &family.0);
        let below = || database.look_up(of, key, options);
        let Some(said) = self.said(family, key) else { return Ok(below()?) };
        let below = if matches!(said.base, Base::Below) { below()? } else { None };
        let operator = operator_of(of, database.stamps().is_some());
        Ok(merged(operator.as_ref(), key, &said, below.as_deref())?.map(Pinned::from))
    }

    /// An iterator over the batch's entries and those of `below`, which it takes. `bounds` are those of the batch's
    /// entries, without it they are those of `below`.
    fn over(
        &self,
        below: Box<Iterator>,
        family: Option<&FamilyHandle>,
        bounds: Option<&ReadSettings>,
    ) -> Box<Iterator> {
        let (id, source) = match family {
            Some(family) => (family.0.id(), &family.0),
            None => (FamilyId::DEFAULT, below.family()),
        };
        let new = || Arc::new(FamilyIndex::new(source.options().order.clone()));
        let index = self.index.family(id).map_or_else(new, Arc::clone);
        let operator = operator_of(source, below.is_stamped());
        Iterator::over_batch(below, |below, own| {
            BatchOverBase::new(below, index, operator, bounds.map_or(own, |bounds| &bounds.options))
        })
    }

    /// Builds the index anew, from the batch.
    fn reindex(&mut self) {
        self.index.forget_changes();
        for record in self.batch.iter().flatten() {
            let order = || self.order.clone();
            self.index.family_mut(record.family, order).change(record.kind, record.key, record.value);
        }
    }

    fn roll_back(&mut self) -> Result<(), Failure> {
        if !self.batch.rollback_to_savepoint() {
            return Err(Failure::not_found("the batch has no save point"));
        }
        self.reindex();
        Ok(())
    }
}
