//! What C adds to the engine: orders of keys, merge operators, compaction filters, prefixes.

pub mod comparator;
pub mod filter;
pub mod merge;
pub mod prefix;
