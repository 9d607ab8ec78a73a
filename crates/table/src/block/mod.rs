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
pub use search::Scan;
pub use walk::walk;

use base::coding::decode_u32;
use base::{Error, LookupKey, Result};

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
    /// End of the entries and start of the restart array.
    entries_end: usize,
    restarts: usize,
    /// Buckets of the hash index, one byte each, directly behind the restart array; 0 for none.
    buckets: usize,
}

impl Block {
    /// Takes a block's contents and checks its footer.
    ///
    /// # Errors
    /// `Corruption`: counts that do not fit the block. `Unsupported`: a layout newer than this reader.
    pub fn parse(bytes: Vec<u8>) -> Result<Block> {
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
        Ok(Block { bytes, entries_end, restarts, buckets })
    }

    /// Opaque bytes without entries: a filter.
    pub fn opaque(bytes: Vec<u8>) -> Block {
        Block { bytes, ..Block::default() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The entries alone, without restart array and footer.
    #[inline]
    pub fn entries(&self) -> &[u8] {
        self.bytes.get(..self.entries_end).unwrap_or_default()
    }

    #[inline]
    pub fn entries_end(&self) -> usize {
        self.entries_end
    }

    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// The offset of restart point `index`, within the entries.
    #[inline]
    pub fn restart(&self, index: usize) -> Result<usize> {
        let at = self.entries_end + index * 4;
        match self.bytes.get(at..).and_then(decode_u32) {
            Some(offset) if index < self.restarts && (offset as usize) < self.entries_end => Ok(offset as usize),
            _ => Err(bad("a restart point lies outside the block's entries")),
        }
    }

    /// The hash index's bucket for a user key's hash; `None` if the block has no hash index.
    #[inline]
    pub fn bucket(&self, hash: impl FnOnce() -> u32) -> Option<Bucket> {
        if self.buckets == 0 {
            return None;
        }
        let start = self.entries_end + self.restarts * 4;
        let index = hash() as usize % self.buckets;
        self.bytes.get(start + index).map(|&byte| Bucket::from_byte(byte))
    }

    /// Searches in byte order, by the hash index if there is one, for the newest entry of a lookup's user key at or below
    /// its number. `None`: the block is malformed.
    #[inline]
    pub fn find(&self, key: &LookupKey, global: GlobalSeq) -> Option<Scan> {
        if self.entries_end == 0 {
            return Some(Scan::Behind);
        }
        let restart = match self.bucket(|| hash_of(key.user_key())) {
            None | Some(Bucket::Collision) => search::restart_before(self, key.internal(), global)?,
            Some(Bucket::Empty) => return Some(Scan::Behind),
            Some(Bucket::Restart(restart)) => restart,
        };
        search::scan(self, restart, key.internal(), global)
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

fn bad(message: &str) -> Error {
    Error::corruption(message)
}

#[cfg(test)]
mod tests;
