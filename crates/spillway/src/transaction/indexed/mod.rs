//! A batch readable before it is written, alone and over a database.
//!
//! Beside the batch stands its index by family and key ([`index`]): places in the batch's bytes, no copies. It includes
//! range deletions, which RocksDB silently ignores in such batches. Iterators share the batch: each move shows its present
//! contents, and they can outlive its owner.

mod entries;
mod index;
mod merged;
mod over_base;
mod ranges;
mod sorted;

use std::sync::Arc;

use base::{FamilyId, Result, UserOrder, ValueKind};
use parking_lot::RwLock;

pub use self::entries::Entries;
pub use self::index::Said;
use self::index::{Index, Savepoint};
pub use self::merged::{Operator, merged, operator_of};
pub use self::over_base::{Below, Move, OverBase};
use crate::batch::WriteBatch;

/// A batch, and the changes of each of its keys.
#[derive(Default)]
pub struct IndexedBatch {
    batch: WriteBatch,
    index: Index,
    /// Of the index; those of the batch go in step.
    savepoints: Vec<Savepoint>,
    /// Counts changes, so that an iterator knows whether its place still stands.
    changes: u64,
}

/// A batch shared with its iterators.
pub type SharedBatch = Arc<RwLock<IndexedBatch>>;

impl IndexedBatch {
    /// The batch as it will be written.
    pub fn batch(&self) -> &WriteBatch {
        &self.batch
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Adds a change to the batch and to the index; for a range deletion, `value` is the end. `order` is the family's.
    #[inline]
    pub fn add(
        &mut self,
        family: FamilyId,
        order: impl FnOnce() -> UserOrder,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) {
        self.changes += 1;
        let slot = self.index.slot(family, order);
        if let Some(placed) = self.batch.add(family, kind, key, value) {
            self.index.add(slot, kind, &placed, self.batch.as_bytes());
        }
    }

    /// Adds a change to the batch only: reads do not see it.
    pub fn add_unindexed(&mut self, family: FamilyId, kind: ValueKind, key: &[u8], value: &[u8]) {
        self.batch.add(family, kind, key, value);
    }

    /// See [`WriteBatch::put_log_data`].
    pub fn put_log_data(&mut self, blob: &[u8]) {
        self.batch.put_log_data(blob);
    }

    /// Removes all changes and savepoints.
    pub fn clear(&mut self) {
        self.changes += 1;
        self.batch.clear();
        self.index.clear();
        self.savepoints.clear();
    }

    /// Sets a savepoint. Savepoints nest.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.index.savepoint());
        self.batch.set_savepoint();
    }

    /// Removes the last savepoint and everything added since. False if there is none.
    pub fn rollback_to_savepoint(&mut self) -> bool {
        let Some(savepoint) = self.savepoints.pop() else { return false };
        self.changes += 1;
        self.index.roll_back(savepoint, self.batch.as_bytes());
        self.batch.rollback_to_savepoint()
    }

    /// Removes the last savepoint, but keeps everything added since. False if there is none.
    pub fn pop_savepoint(&mut self) -> bool {
        self.savepoints.pop().is_some() && self.batch.pop_savepoint()
    }

    /// The batch's change of a key; `None` if there is none.
    pub fn get(&self, family: FamilyId, key: &[u8]) -> Option<Said<'_>> {
        self.index.get(self.index.slot_of(family)?, key, self.batch.as_bytes())
    }

    /// The place of a family's entries, for an iterator.
    fn slot(&mut self, family: FamilyId, order: impl FnOnce() -> UserOrder) -> usize {
        self.index.slot(family, order)
    }

    /// The value of a key over `below`, called only if it is needed.
    ///
    /// # Errors
    /// Of `below`, and as of [`merged`].
    pub fn get_over(
        &self,
        family: FamilyId,
        key: &[u8],
        operator: &Operator,
        below: impl FnOnce() -> Result<Option<base::Pinned>>,
    ) -> Result<Option<base::Pinned>> {
        let Some(said) = self.get(family, key) else { return below() };
        let below = if said.needs_below() { below()? } else { None };
        let mut value = Vec::new();
        let has_value = merged(operator.as_ref(), key, &said, below.as_deref(), &mut value)?;
        Ok(has_value.then(|| value.into()))
    }
}

#[cfg(test)]
mod tests;
