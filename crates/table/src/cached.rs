//! What the block cache holds: a block's contents, ready to use.

use std::sync::Arc;

use base::{Error, Result};

use crate::block::Block;
use crate::cache::Cache;
use crate::index::IndexBlock;

/// The cache of all tables' blocks.
pub type BlockCache = Cache<CachedBlock>;

/// A block shared by the cache, the cursors that stand on it, and the values pinned in it.
pub type BlockRef = Arc<CachedBlock>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockRole {
    #[default]
    Entries,
    Index,
    /// The bytes are a filter's.
    Filter,
}

/// A block of one role; the parts that belong to the others are empty, so that a cursor reaches its entries without a
/// branch.
#[derive(Debug, Default)]
pub struct CachedBlock {
    role: BlockRole,
    pub entries: Block,
    index: IndexBlock,
}

impl CachedBlock {
    pub fn entries(entries: Block) -> Self {
        CachedBlock { entries, ..Self::default() }
    }

    pub fn index(index: IndexBlock) -> Self {
        CachedBlock { role: BlockRole::Index, index, ..Self::default() }
    }

    pub fn filter(bytes: Vec<u8>) -> Self {
        CachedBlock { role: BlockRole::Filter, entries: Block::opaque(bytes), ..Self::default() }
    }

    /// The index; empty in another role, which [`check`](Self::check) has ruled out.
    #[inline]
    pub fn as_index(&self) -> &IndexBlock {
        &self.index
    }

    /// Handles come from the file: two of different roles can name one offset.
    ///
    /// # Errors
    /// `Corruption`: the block was cached in another role.
    #[inline]
    pub fn check(&self, role: BlockRole) -> Result<()> {
        if self.role != role {
            return Err(Error::corruption(format!("a block is both {:?} and {role:?}", self.role)));
        }
        Ok(())
    }

    /// Heap bytes: what the cache is charged.
    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes() + self.index.memory_bytes() + size_of::<CachedBlock>()
    }
}

/// Blocks of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleContents {
    pub entries: u64,
    /// As the cache is charged.
    pub bytes: u64,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheContents {
    pub data: RoleContents,
    pub index: RoleContents,
    pub filter: RoleContents,
    /// For memory held elsewhere.
    pub reserved_bytes: u64,
}

/// Counts a cache's blocks by role. Walks all entries, under one shard's lock after the other.
pub fn contents(cache: &BlockCache) -> CacheContents {
    let mut found = CacheContents { reserved_bytes: cache.reserved_bytes() as u64, ..CacheContents::default() };
    cache.for_each(|block, bytes| {
        let of = match block.role {
            BlockRole::Entries => &mut found.data,
            BlockRole::Index => &mut found.index,
            BlockRole::Filter => &mut found.filter,
        };
        of.entries += 1;
        of.bytes += bytes as u64;
    });
    found
}

impl AsRef<[u8]> for CachedBlock {
    fn as_ref(&self) -> &[u8] {
        self.entries.bytes()
    }
}
