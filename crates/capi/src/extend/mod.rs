//! C's extensions of the engine: key orders, merge operators, compaction filters, prefixes, partitioners.

pub mod comparator;
pub mod filter;
pub mod merge;
pub mod partitioner;
pub mod prefix;
