//! Blocks of entries: delta-coded keys with restart points. The unit of reads, checksums, compression and caching.
//! Format: docs/format/table.md, "Data blocks".
//!
//! A [`Block`] has a checked footer. Entries are checked as they are read; a bad entry ends the walk with `Corruption`
//! (B1).

mod builder;
mod cursor;
mod entry;
mod hash_index;
mod search;
mod walk;

pub use builder::BlockBuilder;
pub use cursor::{BlockCursor, GlobalSeq};
pub use entry::{Entry, parse_entry, parse_index_entry};
pub use hash_index::{Bucket, hash_of};
pub use search::{Place, Scan};
pub use walk::walk;

use base::coding::decode_u32;
use base::{Error, Result};

/// Bits of a block's last word: number of restart points, and flags.
const RESTART_COUNT_MASK: u32 = (1 << 28) - 1;
const SEPARATED_VALUES: u32 = 1 << 28;
/// Restart keys are evenly spread, for interpolation search. An unused hint.
const UNIFORM: u32 = 1 << 29;
const HASH_INDEX: u32 = 1 << 31;

/// Bound on expanded keys as a multiple of the block's size, beyond the free allowance. RocksDB's writers stay below 20
/// unless asked for long restart intervals; the allowance lets most of these pass.
const EXPANSION_MAX: usize = 64;
const EXPANDED_KEYS_FREE: usize = 16 << 20;

/// A block's contents, decompressed, its footer checked.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    layout: Layout,
}

/// The same, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

/// Places in a block, from its footer.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// End of the entries and start of the restart array.
    entries_end: usize,
    restarts: usize,
    /// Buckets of the hash index, one byte each, directly behind the restart array; 0 for none.
    buckets: usize,
}

impl Layout {
    #[inline]
    fn parse(bytes: &[u8]) -> Result<Layout> {
        let (body, footer) = bytes.split_last_chunk::<4>().ok_or_else(|| bad("a block shorter than its footer"))?;
        let footer = u32::from_le_bytes(*footer);
        if footer & SEPARATED_VALUES != 0 {
            return Err(Error::unsupported("block with keys and values kept apart (a RocksDB 11 option)"));
        }
        let restarts = (footer & RESTART_COUNT_MASK) as usize;
        if footer & !(RESTART_COUNT_MASK | UNIFORM | HASH_INDEX) != 0 {
            return Err(bad("reserved bits are set in a block's footer"));
        }
        let (buckets, restarts_end) = match footer & HASH_INDEX {
            0 => (0, body.len()),
            _ => hash_index::split(body)?,
        };
        let Some(entries_end) = restarts_end.checked_sub(restarts * 4) else {
            return Err(bad("a block's restart array is longer than the block"));
        };
        if restarts == 0 && entries_end > 0 {
            return Err(bad("a block with entries has no restart points"));
        }
        u32::try_from(bytes.len()).map_err(|_| bad("a block of more than 4 GiB"))?;
        Ok(Layout { entries_end, restarts, buckets })
    }
}

impl Block {
    /// A block without entries.
    pub const EMPTY: Block = Block { bytes: Vec::new(), layout: Layout { entries_end: 0, restarts: 0, buckets: 0 } };

    /// Takes a block's contents and checks its footer.
    ///
    /// # Errors
    /// `Corruption`: counts that do not fit the block. `Unsupported`: a layout newer than this reader.
    pub fn parse(bytes: Vec<u8>) -> Result<Block> {
        let layout = Layout::parse(&bytes)?;
        Ok(Block { bytes, layout })
    }

    /// Opaque bytes without entries: a filter.
    pub fn opaque(bytes: Vec<u8>) -> Block {
        Block { bytes, ..Block::default() }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    pub fn view(&self) -> BlockView<'_> {
        BlockView { bytes: &self.bytes, layout: self.layout }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries alone, without restart array and footer.
    #[inline]
    pub fn entries(&self) -> &[u8] {
        self.view().entries()
    }

    #[inline]
    pub fn entries_end(&self) -> usize {
        self.layout.entries_end
    }

    pub fn restarts(&self) -> usize {
        self.layout.restarts
    }

    /// The offset of restart point `index`, within the entries.
    #[inline]
    pub fn restart(&self, index: usize) -> Result<usize> {
        self.view().restart(index)
    }

    /// Bound on the total size of the block's expanded keys: shared prefixes let a small block claim any size (B2).
    pub fn expanded_keys_max(&self) -> usize {
        self.bytes.len().saturating_mul(EXPANSION_MAX).saturating_add(EXPANDED_KEYS_FREE)
    }

    /// Heap bytes, charged to the block cache.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl<'a> BlockView<'a> {
    /// As [`Block::parse`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Ok(BlockView { bytes, layout: Layout::parse(bytes)? })
    }

    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn entries(self) -> &'a [u8] {
        self.bytes.get(..self.layout.entries_end).unwrap_or_default()
    }

    #[inline]
    pub fn restarts(self) -> usize {
        self.layout.restarts
    }

    #[inline]
    pub fn restart(self, index: usize) -> Result<usize> {
        let at = self.layout.entries_end + index * 4;
        match self.bytes.get(at..).and_then(decode_u32) {
            Some(offset) if index < self.layout.restarts && (offset as usize) < self.layout.entries_end => {
                Ok(offset as usize)
            }
            _ => Err(bad("a restart point lies outside the block's entries")),
        }
    }

    /// The hash index's bucket for a user key's hash; `None` if the block has no hash index.
    #[inline]
    pub fn bucket(self, hash: impl FnOnce() -> u32) -> Option<Bucket> {
        let Layout { entries_end, restarts, buckets } = self.layout;
        if buckets == 0 {
            return None;
        }
        let index = hash() as usize % buckets;
        self.bytes.get(entries_end + restarts * 4 + index).map(|&byte| Bucket::from_byte(byte))
    }
}

fn bad(message: &str) -> Error {
    Error::corruption(message)
}

#[cfg(test)]
mod tests;
