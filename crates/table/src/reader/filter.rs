//! Asking a table's filter, whole or in partitions.

use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::metrics::{Ticker, tick};
use base::{InternalOrder, Result, key};

use super::file::{Fetch, TableFile};
use super::index::Meta;
use crate::cached::{BlockRef, BlockRole};
use crate::filter::FilterReader;
use crate::handle::BlockHandle;
use crate::index::IndexFormat;

/// A table's filter. What it cannot answer, may match.
pub struct TableFilter {
    pub(super) block: Meta,
    /// The block is an index of partitions.
    pub(super) partitioned: bool,
    pub(super) whole_keys: bool,
    /// The extractor whose prefixes are in the filter; `None` where there are none, or the family's extractor is
    /// another by now.
    pub(super) prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
}

impl TableFilter {
    pub fn memory_bytes(&self) -> usize {
        match &self.block {
            Meta::Held(block) => block.memory_bytes(),
            Meta::Cached(_) => 0,
        }
    }

    /// False where the table certainly holds no entry of the user key of `target`.
    pub fn may_hold_key(&self, target: &[u8], order: &InternalOrder, file: &TableFile, fetch: Fetch) -> Result<bool> {
        if order.user.equal_keys_can_differ() {
            return Ok(true); // a filter goes by bytes
        }
        let user_key = order.user.strip_timestamp(key::user_key(target));
        if self.whole_keys {
            let may_match = self.may_match(user_key, target, order, (file, fetch))?;
            let ticker = if may_match { Ticker::BloomFilterFullPositive } else { Ticker::BloomFilterUseful };
            tick(file.statistics(), ticker, 1);
            return Ok(may_match);
        }
        self.may_hold_prefix(target, order, file, fetch)
    }

    /// False where no key at or after `target` has its prefix.
    pub fn may_hold_prefix(
        &self,
        target: &[u8],
        order: &InternalOrder,
        file: &TableFile,
        fetch: Fetch,
    ) -> Result<bool> {
        let user_key = order.user.strip_timestamp(key::user_key(target));
        let Some(prefix) = self.prefix_extractor.as_ref().and_then(|extractor| extractor.prefix(user_key)) else {
            return Ok(true);
        };
        let may_match = self.may_match(prefix, target, order, (file, fetch))?;
        tick(file.statistics(), Ticker::BloomFilterPrefixChecked, 1);
        tick(file.statistics(), Ticker::BloomFilterPrefixUseful, u64::from(!may_match));
        Ok(may_match)
    }

    /// Where the partitions lie; none for a whole filter.
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
        (file, fetch): (&TableFile, Fetch),
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
        // A key past the last separator can still have a prefix that the last partition holds.
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
