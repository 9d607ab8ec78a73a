//! Merge operators over stamped values.

use std::sync::Arc;

use spillway::internal::extend::MergeOperator;

use super::{Stamps, split};

/// RocksDB's name for it.
pub const STAMPED_MERGE: &str = "TtlMergeOperator";

/// Shows values and operands without stamps to an operator; its result is stamped with the current second.
pub struct StampedMerge {
    stamps: Stamps,
    inner: Arc<dyn MergeOperator>,
}

impl StampedMerge {
    pub fn new(stamps: Stamps, inner: Arc<dyn MergeOperator>) -> StampedMerge {
        StampedMerge { stamps, inner }
    }

    fn stamp(&self, mut merged: Vec<u8>) -> Vec<u8> {
        self.stamps.stamp(&mut merged);
        merged
    }
}

/// The bytes before the stamp; `None`, which fails the merge, if there is no stamp.
fn value(stamped: &[u8]) -> Option<&[u8]> {
    split(stamped).map(|(value, _)| value)
}

impl MergeOperator for StampedMerge {
    fn name(&self) -> &str {
        STAMPED_MERGE
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let existing = match existing {
            Some(existing) => Some(value(existing)?),
            None => None,
        };
        let operands = operands.iter().map(|operand| value(operand)).collect::<Option<Vec<&[u8]>>>()?;
        self.inner.full_merge(key, existing, &operands).map(|merged| self.stamp(merged))
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.inner.partial_merge(key, value(older)?, value(newer)?).map(|merged| self.stamp(merged))
    }
}
