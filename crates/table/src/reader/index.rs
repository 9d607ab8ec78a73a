//! Finds data blocks through a one- or two-level index.

use base::{InternalOrder, Result};

use super::file::{Fetch, TableFile};
use crate::cached::BlockRef;
use crate::handle::BlockHandle;
use crate::index::{IndexBlock, IndexFormat, IndexSlot};

/// A meta block held by the table, or fetched from the cache at every use.
pub enum Meta {
    Held(BlockRef),
    Cached(BlockHandle),
}

/// A table's index. The top block's entries are index blocks if `partitioned`, else data blocks.
pub struct TableIndex {
    pub top: Meta,
    pub partitioned: bool,
}

impl Meta {
    pub fn memory_bytes(&self) -> usize {
        match self {
            Meta::Held(block) => block.memory_bytes(),
            Meta::Cached(_) => 0,
        }
    }
}

impl TableIndex {
    pub fn top(&self, file: &TableFile, fetch: Fetch) -> Result<BlockRef> {
        match &self.top {
            Meta::Held(block) => Ok(block.clone()),
            Meta::Cached(handle) => file.index_block(*handle, self.top_format(file), fetch),
        }
    }

    /// The format of the top block: a top level has no first keys.
    pub fn top_format(&self, file: &TableFile) -> IndexFormat {
        IndexFormat { first_keys: file.index_format.first_keys && !self.partitioned, ..file.index_format }
    }

    /// An unpositioned cursor.
    pub fn cursor(&self, file: &TableFile, fetch: Fetch) -> Result<IndexCursor> {
        Ok(IndexCursor {
            top: self.top(file, fetch)?,
            top_at: 0,
            part: None,
            at: usize::MAX,
            partitioned: self.partitioned,
        })
    }
}

/// A position in the index. Methods take the file if they can load a partition.
pub struct IndexCursor {
    top: BlockRef,
    top_at: usize,
    /// The current partition, if partitioned.
    part: Option<BlockRef>,
    at: usize,
    partitioned: bool,
}

impl IndexCursor {
    /// The current entry; `None` past either end.
    #[inline]
    pub fn slot(&self) -> Option<IndexSlot<'_>> {
        self.block()?.get(self.at)
    }

    /// The index block of the current entry.
    #[inline]
    pub fn block(&self) -> Option<&IndexBlock> {
        let block = if self.partitioned { self.part.as_ref()? } else { &self.top };
        Some(block.as_index())
    }

    /// Moves to the first candidate block for keys at or after `target`; false if there is none.
    pub fn seek(&mut self, target: &[u8], order: &InternalOrder, file: &TableFile, fetch: Fetch) -> Result<bool> {
        if self.partitioned {
            self.top_at = self.top.as_index().seek(target, order);
            if !self.load(file, fetch)? {
                return Ok(false);
            }
        }
        self.at = self.block().map_or(0, |block| block.seek(target, order));
        self.skip_empty_forward(file, fetch)
    }

    pub fn seek_to_first(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        self.top_at = 0;
        self.at = 0;
        if self.partitioned && !self.load(file, fetch)? {
            return Ok(false);
        }
        self.skip_empty_forward(file, fetch)
    }

    pub fn seek_to_last(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        if self.partitioned {
            self.top_at = self.top.as_index().len().saturating_sub(1);
            if !self.load(file, fetch)? {
                return Ok(false);
            }
        }
        self.at = self.block().map_or(0, IndexBlock::len);
        self.prev(file, fetch)
    }

    pub fn next(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        self.at = self.at.saturating_add(1);
        self.skip_empty_forward(file, fetch)
    }

    pub fn prev(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        while self.at == 0 {
            let Some(before) = self.top_at.checked_sub(1).filter(|_| self.partitioned) else {
                self.at = usize::MAX;
                return Ok(false);
            };
            self.top_at = before;
            self.load(file, fetch)?;
            self.at = self.block().map_or(0, IndexBlock::len);
        }
        self.at -= 1;
        Ok(self.slot().is_some())
    }

    /// Moves to the next partition while the current one has no entry here.
    fn skip_empty_forward(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        while self.slot().is_none() {
            if !self.partitioned || self.part.is_none() {
                return Ok(false);
            }
            self.top_at += 1;
            self.at = 0;
            self.load(file, fetch)?;
        }
        Ok(true)
    }

    /// Loads the partition at `top_at`; false if `top_at` is past either end.
    fn load(&mut self, file: &TableFile, fetch: Fetch) -> Result<bool> {
        self.part = None;
        if let Some(slot) = self.top.as_index().get(self.top_at) {
            self.part = Some(file.index_block(slot.handle, file.index_format, fetch)?);
        }
        Ok(self.part.is_some())
    }
}
