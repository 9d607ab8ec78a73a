//! The index: each data block's handle and separator. A separator is at or after the block's last key and before the
//! next block's first. One block, or two levels. Format: docs/format/table.md, "Index".

mod block;
mod builder;
mod hash;
mod log;

pub use block::{Candidate, IndexBlock, IndexFormat, IndexSlot};
pub use builder::{IndexBlockBuilder, IndexEntry};
pub use hash::{METADATA_NAME, PREFIXES_NAME, PrefixBlocks};
pub use log::IndexLog;
