//! Queries a table's filter, whole or partitioned.

use base::{InternalOrder, Result, key};

use super::file::{Fetch, TableFile};
use super::index::Meta;
use crate::cached::{BlockRef, BlockRole};
use crate::filter::{FilterQuestion, FilterReader};
use crate::handle::BlockHandle;
use crate::index::IndexFormat;

/// A table's filter. Answers "may match" if it cannot tell.
pub struct TableFilter {
    pub(super) block: Meta,
    /// The block is an index of partitions.
    pub(super) partitioned: bool,
    pub(super) question: FilterQuestion,
}

impl TableFilter {
    /// False if the table certainly holds no entry of the user key of `target`.
    pub fn may_hold_key(&self, target: &[u8], order: &InternalOrder, file: &TableFile, fetch: Fetch) -> Result<bool> {
        let ask = |part: &[u8]| self.may_match(part, target, order, file, fetch);
        self.question.may_hold_key(key::user_key(target), &order.user, file.statistics(), ask)
    }

    /// False if no key at or after `target` has its prefix.
    pub fn may_hold_prefix(
        &self,
        target: &[u8],
        order: &InternalOrder,
        file: &TableFile,
        fetch: Fetch,
    ) -> Result<bool> {
        let ask = |part: &[u8]| self.may_match(part, target, order, file, fetch);
        self.question.may_hold_prefix(key::user_key(target), &order.user, file.statistics(), ask)
    }

    /// Asks for the memory that [`may_hold_key`](Self::may_hold_key) reads, if the filter is held whole.
    #[inline]
    pub fn foresee(&self, user_key: &[u8]) {
        if let Meta::Held(block) = &self.block
            && !self.partitioned
            && self.question.by_whole_keys()
        {
            FilterReader::new(block.entries.bytes()).foresee(user_key);
        }
    }

    /// Handles of the partitions; empty for a whole filter.
    pub fn partitions(&self, file: &TableFile, fetch: Fetch) -> Result<Vec<BlockHandle>> {
        let block = match &self.block {
            _ if !self.partitioned => return Ok(Vec::new()),
            Meta::Held(block) => block.clone(),
            Meta::Cached(handle) => file.index_block(*handle, filter_index_format(file), fetch)?,
        };
        let index = block.as_index();
        Ok((0..index.len()).filter_map(|at| index.get(at)).map(|slot| slot.handle).collect())
    }

    fn may_match(
        &self,
        part_of_key: &[u8],
        target: &[u8],
        order: &InternalOrder,
        file: &TableFile,
        fetch: Fetch,
    ) -> Result<bool> {
        let loaded;
        let block: &BlockRef = match &self.block {
            Meta::Held(block) => block,
            Meta::Cached(handle) if self.partitioned => {
                loaded = file.index_block(*handle, filter_index_format(file), fetch)?;
                &loaded
            }
            Meta::Cached(handle) => {
                loaded = file.filter_block(*handle, fetch)?;
                &loaded
            }
        };
        if !self.partitioned {
            return Ok(FilterReader::new(block.entries.bytes()).may_match(part_of_key));
        }
        block.check(BlockRole::Index)?;
        let index = block.as_index();
        // The last partition can hold the prefix of a key past the last separator.
        let at = index.seek(target, order).min(index.len().saturating_sub(1));
        let Some(slot) = index.get(at) else {
            return Ok(true);
        };
        let part = file.filter_block(slot.handle, fetch)?;
        Ok(FilterReader::new(part.entries.bytes()).may_match(part_of_key))
    }
}

/// The index of filter partitions is coded like the data index, without first keys.
pub(super) fn filter_index_format(file: &TableFile) -> IndexFormat {
    IndexFormat { first_keys: false, ..file.index_format }
}
