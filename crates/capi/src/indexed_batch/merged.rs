//! The value of a key after a batch's changes.

use std::sync::Arc;

use spillway::internal::Family;
use spillway::internal::extend::MergeOperator;

use super::index::{Base, Said};
use crate::failure::Failure;
use spillway::internal::ttl::STAMPED_MERGE;

/// The merge operator, if there is one.
pub type Operator = Option<Arc<dyn MergeOperator>>;

/// The operator of a family without stamps. A stamped family's operator expects stamps, and batches have none.
pub fn operator_of(family: &Family) -> Operator {
    family.options().merge_operator.clone().filter(|operator| operator.name() != STAMPED_MERGE)
}

/// The value over `below`, the database's; `None` if the key is deleted.
///
/// # Errors
/// `Invalid argument`: operands without an operator. `Corruption`: they cannot be applied.
pub fn merged(
    operator: Option<&Arc<dyn MergeOperator>>,
    key: &[u8],
    said: &Said,
    below: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, Failure> {
    let base = match &said.base {
        Base::Below => below,
        Base::Deleted => None,
        Base::Value(value) => Some(&value[..]),
    };
    if said.operands.is_empty() {
        return Ok(base.map(<[u8]>::to_vec));
    }
    let nothing = || Failure::invalid_argument("the batch has merge operands, and there is no merge operator for them");
    let operands: Vec<&[u8]> = said.operands.iter().map(|operand| &operand[..]).collect();
    let value = operator.ok_or_else(nothing)?.full_merge(key, base, &operands);
    value.map(Some).ok_or_else(|| Failure::corruption("merge operands of the batch cannot be applied"))
}
