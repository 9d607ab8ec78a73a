//! Filters: what a table keeps so that most lookups of absent keys never reach its data blocks.
//!
//! The layouts are RocksDB's. Written: its cache-local Bloom filter (format version 5). Read: that one, the Ribbon
//! filter, and the Bloom filter of older versions. A filter ends with five bytes that say what it is; one that is
//! unknown or damaged answers "may match", so that it costs reads and never a key (B1).

mod bloom;
mod hash;
mod legacy;
mod question;
mod reader;
mod ribbon;
#[cfg(test)]
mod tests;
mod xxph3;

pub use bloom::BloomBuilder;
pub use hash::rocks_hash;
pub(crate) use question::FilterQuestion;
pub use reader::FilterReader;
pub use xxph3::xxph3_64 as key_hash;

/// Bytes at a filter's end that say what it is.
const METADATA_BYTES: usize = 5;
