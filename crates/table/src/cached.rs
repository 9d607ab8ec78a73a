//! Contents of the block cache: blocks ready to use.

use std::sync::Arc;

use base::{Error, Result};

use crate::block::Block;
use crate::cache::Cache;
use crate::index::IndexBlock;

/// The cache of all tables' blocks.
pub type BlockCache = Cache<CachedBlock>;

/// A block shared by the cache, its cursors, and the values pinned in it.
pub type BlockRef = Arc<CachedBlock>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockRole {
    #[default]
    Entries,
    Index,
    /// The bytes are a filter's.
    Filter,
}

/// A block of one role. The parts of other roles are empty, so a cursor reaches its entries without a branch.
#[derive(Debug, Default)]
pub struct CachedBlock {
    role: BlockRole,
    /// The block's entries.
    pub entries: Block,
    index: IndexBlock,
}

impl CachedBlock {
    /// A block of entries.
    pub fn entries(entries: Block) -> Self {
        CachedBlock { entries, ..Self::default() }
    }

    /// A block of an index.
    pub fn index(index: IndexBlock) -> Self {
        CachedBlock { role: BlockRole::Index, index, ..Self::default() }
    }

    /// A block of a filter.
    pub fn filter(bytes: Vec<u8>) -> Self {
        CachedBlock { role: BlockRole::Filter, entries: Block::opaque(bytes), ..Self::default() }
    }

    /// The index; empty in other roles, ruled out by [`check`](Self::check).
    #[inline]
    pub fn as_index(&self) -> &IndexBlock {
        &self.index
    }

    /// Checks the role. Handles come from the file: two of different roles can name one offset.
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

    /// Heap bytes, charged to the cache.
    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes() + self.index.memory_bytes() + size_of::<CachedBlock>()
    }
}

/// Blocks of one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleContents {
    /// Number of blocks.
    pub entries: u64,
    /// As charged to the cache.
    pub bytes: u64,
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheContents {
    /// Data blocks.
    pub data: RoleContents,
    /// Index blocks.
    pub index: RoleContents,
    /// Filter blocks.
    pub filter: RoleContents,
}

/// Counts a cache's blocks by role. Walks all entries, locking one shard at a time.
pub fn contents(cache: &BlockCache) -> CacheContents {
    let mut found = CacheContents::default();
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
