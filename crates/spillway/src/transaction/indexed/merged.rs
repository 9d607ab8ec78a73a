//! The value of a key after a batch's changes.

use std::sync::Arc;

use base::extend::MergeOperator;
use base::options::FamilyOptions;
use base::{Error, Result};

use super::index::{Base, Said};
use crate::ttl::STAMPED_MERGE;

/// The merge operator, if there is one.
pub type Operator = Option<Arc<dyn MergeOperator>>;

/// The operator of a family without stamps. A stamped family's operator expects stamps, and batches have none.
pub fn operator_of(options: &FamilyOptions) -> Operator {
    options.merge_operator.clone().filter(|operator| operator.name() != STAMPED_MERGE)
}

/// Puts the value over `below`, the database's, into `value`. False if the key is deleted.
///
/// # Errors
/// `InvalidArgument`: operands without an operator. `Corruption`: they cannot be applied.
pub fn merged(
    operator: Option<&Arc<dyn MergeOperator>>,
    key: &[u8],
    said: &Said<'_>,
    below: Option<&[u8]>,
    value: &mut Vec<u8>,
) -> Result<bool> {
    value.clear();
    let base = match said.base {
        Base::Below => below,
        Base::Deleted => None,
        Base::Value(value) => Some(value),
    };
    if said.operands.is_empty() {
        value.extend_from_slice(base.unwrap_or_default());
        return Ok(base.is_some());
    }
    let nothing = || Error::invalid_argument("the batch has merge operands, and there is no merge operator for them");
    let result = operator.ok_or_else(nothing)?.full_merge(key, base, &said.operands);
    *value = result.ok_or_else(|| Error::corruption("merge operands of the batch cannot be applied"))?;
    Ok(true)
}
