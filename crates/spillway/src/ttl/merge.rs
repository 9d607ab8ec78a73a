//! Merge operators over stamped values.

use std::sync::Arc;

use base::extend::MergeOperator;

use super::{Stamps, split};

/// RocksDB's name for it.
pub const STAMPED_MERGE: &str = "TtlMergeOperator";

/// Name of the operator around another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MergeName {
    /// [`STAMPED_MERGE`]. The operator inside has to be given at every open.
    RocksDb,
    /// That of the operator inside: a built-in one is found by its stored name.
    Inner,
}

/// Shows values and operands without stamps to an operator; its result is stamped with the current second.
pub struct StampedMerge {
    stamps: Stamps,
    inner: Arc<dyn MergeOperator>,
    name: MergeName,
}

impl StampedMerge {
    pub fn new(stamps: Stamps, inner: Arc<dyn MergeOperator>, name: MergeName) -> StampedMerge {
        StampedMerge { stamps, inner, name }
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
        match self.name {
            MergeName::RocksDb => STAMPED_MERGE,
            MergeName::Inner => self.inner.name(),
        }
    }

    fn option_string(&self) -> String {
        match self.name {
            MergeName::RocksDb => format!("{{id={STAMPED_MERGE};user_operator={};}}", self.inner.option_string()),
            MergeName::Inner => self.inner.option_string(),
        }
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
