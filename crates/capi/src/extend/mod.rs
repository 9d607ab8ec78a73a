//! C's extensions of the engine: key orders, merge operators, compaction filters, prefixes.

pub mod comparator;
pub mod filter;
pub mod merge;
pub mod prefix;
