//! Reading below views: cursors over levels and merges of them, searches, snapshots, and what reads of a family share.
//!
//! [`search`] takes the newest visible entry of a key, [`answers`] spares hot keys the tables. [`level`] and [`merging`] make one
//! cursor of many. [`tombstones`] holds the range deletions for iterators, [`gaps`] the runs of dead entries found.

pub mod answers;
pub mod damage;
pub mod gaps;
pub mod level;
pub mod merging;
pub(crate) mod meter;
pub mod options;
pub mod sample;
pub mod search;
pub mod snapshot;
pub mod tombstones;

#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use base::extend::{MergeOperator, PrefixExtractor};
use base::metrics::Ticker;
use base::{Error, InternalOrder, Result};
use table::BlockCache;

use crate::cursor::gaps::Gaps;
use crate::cursor::meter::Meter;
use crate::cursor::sample::Sample;

/// Settings of a family for reads. Cheap to clone.
#[derive(Clone)]
pub struct ReadContext {
    pub order: InternalOrder,
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    pub prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// Hidden entries an iterator steps over one by one before it seeks past the rest of their run.
    pub max_sequential_skip: u64,
    pub gaps: Arc<Gaps>,
    /// `None` without statistics.
    pub meter: Option<Arc<Meter>>,
    /// `None` with statistics.
    pub sample: Option<Arc<Sample>>,
    /// The cache with answers of hot keys, if they are kept.
    pub answers: Option<Arc<BlockCache>>,
}

impl ReadContext {
    /// Whether merging the same operands again gives the same result.
    pub fn merges_are_pure(&self) -> bool {
        self.merge_operator.as_ref().is_some_and(|operator| operator.is_pure())
    }

    /// Applies merge operands, oldest first, to the value below them.
    ///
    /// # Errors
    /// `InvalidArgument`: the family has no merge operator. `Corruption`: the operator cannot apply the operands.
    pub fn merge(&self, user_key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        let Some(operator) = &self.merge_operator else {
            return Err(Error::invalid_argument("the key has merge operands, but merge_operator is not set"));
        };
        operator.full_merge(user_key, existing, operands).ok_or_else(|| {
            if let Some(meter) = &self.meter {
                meter.statistics.add(Ticker::NumberMergeFailures, 1);
            }
            let count = operands.len();
            let name = operator.name();
            Error::corruption(format!("Merge operator failed: \"{name}\" cannot apply {count} operands"))
        })
    }
}

#[cold]
pub(crate) fn bad_entry(internal_key: &[u8]) -> Error {
    Error::corruption(format!("not a point entry's key: {internal_key:02x?}"))
}
