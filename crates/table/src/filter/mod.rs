//! Filters: let most lookups of absent keys skip the data blocks.
//!
//! The layouts are RocksDB's. Written: its cache-local Bloom filter (format version 5). Read: also the Ribbon filter
//! and the Bloom filter of older versions. A filter's last five bytes identify it. An unknown or damaged filter answers
//! "may match": it costs reads, never a key (B1).

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
pub(crate) use hash::rocks_hash;
pub(crate) use question::FilterQuestion;
pub use reader::FilterReader;

/// Bytes at a filter's end: its metadata.
const METADATA_BYTES: usize = 5;
