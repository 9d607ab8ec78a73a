//! `rocksdb_writebatch_wi_t`: a batch readable before it is written, alone and over a database.
//!
//! Beside the batch stands its index by family and key ([`index`]). It includes range deletions, which RocksDB silently
//! ignores in such batches.

mod calls;
mod index;
mod merged;
mod over_base;

use spillway::internal::{FamilyId, Pinned, UserOrder, ValueKind, WriteBatch};

use self::index::{Base, Index, Said};
use self::merged::{merged, operator_of};
pub use self::over_base::BatchOverBase;
use crate::boundary::array::Parts;
use crate::boundary::handles;
use crate::database::Database;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::iterator::Iterator;
use crate::options::Options;
use crate::read_options::ReadSettings;

/// A batch, and its net change of each key.
pub struct IndexedBatch {
    batch: WriteBatch,
    index: Index,
    /// Order of keys of families not yet passed to a call by handle.
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

    /// Adds a change to the batch and to the index; for a range deletion, `value` is the end.
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
        self.index.family(id, order).write().change(kind, key, value);
    }

    /// As [`change`](Self::change), with key and value in parts.
    fn change_parts(&mut self, family: Option<&FamilyHandle>, kind: ValueKind, key: Parts, value: Parts) {
        self.change(family, kind, &key.joined(), &value.joined());
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.index.forget_changes();
    }

    /// The batch's change of a key; `None` if there is none.
    fn said(&self, family: Option<&FamilyHandle>, key: &[u8]) -> Option<Said> {
        let id = family.map_or(FamilyId::DEFAULT, |family| family.0.id());
        self.index.get(id, key)
    }

    /// The value by the batch alone.
    ///
    /// # Errors
    /// The value depends on the database; or neither family nor options have an operator; or it cannot apply the
    /// operands.
    fn get(&self, family: Option<&FamilyHandle>, key: &[u8], options: &Options) -> Result<Option<Pinned>, Failure> {
        match self.said(family, key) {
            None => Ok(None),
            Some(Said { base: Base::Below, .. }) => {
                Err(Failure::merge_in_progress("the operands need a value to go on"))
            }
            Some(said) => {
                let operator = family.and_then(|family| operator_of(&family.0));
                let operator = operator.as_ref().or(options.family.merge_operator.as_ref());
                Ok(merged(operator, key, &said, None)?.map(Pinned::from))
            }
        }
    }

    /// The value after the batch is written.
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
        let operator = operator_of(of);
        Ok(merged(operator.as_ref(), key, &said, below.as_deref())?.map(Pinned::from))
    }

    /// An iterator over the batch's entries and the entries of `below`, which it takes. `bounds` apply to the batch's
    /// entries; `None` for the bounds of `below`.
    fn over(
        &mut self,
        below: Box<Iterator>,
        family: Option<&FamilyHandle>,
        bounds: Option<&ReadSettings>,
    ) -> Box<Iterator> {
        let (id, source) = match family {
            Some(family) => (family.0.id(), &family.0),
            None => (FamilyId::DEFAULT, below.family()),
        };
        let index = self.index.family(id, || source.options().order.clone()).clone();
        let operator = operator_of(source);
        Iterator::over_batch(below, |below, own| {
            BatchOverBase::new(below, index, operator, bounds.map_or(own, |bounds| &bounds.options))
        })
    }

    /// Rebuilds the index from the batch.
    fn reindex(&mut self) {
        self.index.forget_changes();
        for record in self.batch.iter().flatten() {
            let order = || self.order.clone();
            self.index.family(record.family, order).write().change(record.kind, record.key, record.value);
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
