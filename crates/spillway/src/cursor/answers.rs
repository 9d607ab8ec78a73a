//! Answers of hot keys, kept in front of the tables (RocksDB: row cache).
//!
//! An answer is the outcome of one key's lookup in the tables of a version: the number that decided it, and the value if
//! there is one. A lookup undecided by memtables and queue asks for it before the tables. Keeps Q1.
//!
//! *Exactness*, without any work by writers:
//!
//! - An answer is kept under the version's content number. A flush, link, excise, drop or filtered compaction makes
//!   a new number, so the answers before are found no more, and age out. A merge of tables, or a move, keeps the number.
//! - Only a lookup at or above every number in the tables offers its outcome. So the deciding number is the newest of the
//!   key in this content.
//! - An answer decided by t serves lookups at t or above. A compaction can lower t: it makes numbers 0, and drops
//!   deletions. It does so only if no snapshot is below them, and every later one is above (see
//!   [`snapshot`](super::snapshot)). A lookup without a snapshot is above all numbers in its tables: F1, and the view is
//!   loaded before the number.
//!
//! Only keys looked up often are kept. The cache counts lookups; of other keys that is all it does.

use std::sync::Arc;

use base::UserOrder;
use table::BlockCache;

/// The cache with a family's answers: one of their own, or else the block cache. `None` in an order with equal keys that
/// differ: the cache compares bytes.
pub(crate) fn cache_of(
    own: Option<Arc<BlockCache>>,
    blocks: Option<Arc<BlockCache>>,
    order: &UserOrder,
) -> Option<Arc<BlockCache>> {
    if order.equal_keys_can_differ() || order.timestamp_bytes() > 0 {
        return None;
    }
    let is_shared = |own: &Arc<BlockCache>| blocks.as_ref().is_some_and(|blocks| Arc::ptr_eq(own, blocks));
    if let Some(own) = own.as_ref().filter(|own| !is_shared(own)) {
        own.dedicate_to_answers();
    }
    own.or(blocks)
}
