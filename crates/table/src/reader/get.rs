//! Point lookups.

use std::cell::Cell;

use base::metrics::{Ticker, tick};
use base::{LookupKey, Result, SeqNo, UserOrder, ValueKind, key};

use super::index::Meta;
use super::{BlockBasedTable, Fetch, unknown_kind};
use crate::block::{BlockCursor, Scan};
use crate::cached::BlockRef;
use crate::handle::BlockHandle;
use crate::index::IndexBlock;
use crate::{TableReadOptions, TableValue, Visit};

/// Larger key buffers are freed: one huge key must not pin memory.
const KEY_BUFFER_KEPT_MAX: usize = 64 << 10;

thread_local! {
    /// Key buffer of lookups that rebuild keys: one allocation per thread.
    static KEY_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Result of a walk through one block, or one index block.
enum Walk {
    /// The lookup is answered.
    Done,
    /// The block ended while entries of the key could still follow.
    BlockEnded,
}

/// One lookup in one table.
struct Lookup<'a> {
    key: &'a LookupKey,
    fetch: Fetch,
    /// The data block read last: the next lookup of a batch may need it too.
    block: Option<(BlockHandle, BlockRef)>,
    /// No entry was passed yet; the first is counted.
    awaits_first: bool,
}

impl BlockBasedTable {
    pub(super) fn get_entries(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let fetch = Fetch::from(options);
        if !self.filter_allows(key, fetch)? {
            return Ok(());
        }
        self.look_up(&mut Lookup { key, fetch, block: None, awaits_first: true }, visit)
    }

    pub(super) fn get_many(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let fetch = Fetch::from(options);
        let mut block = None;
        for (i, key) in keys.iter().enumerate() {
            if self.filter_allows(key, fetch)? {
                let mut lookup = Lookup { key, fetch, block, awaits_first: true };
                self.look_up(&mut lookup, &mut |seq, kind, value| visit(i, seq, kind, value))?;
                block = lookup.block;
            }
        }
        Ok(())
    }

    fn filter_allows(&self, key: &LookupKey, fetch: Fetch) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.may_hold_key(key.internal(), &self.order, &self.file, fetch),
            None => Ok(true),
        }
    }

    fn look_up(&self, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<()> {
        let loaded;
        let top = match &self.index.top {
            Meta::Held(block) => block,
            Meta::Cached(_) => {
                loaded = self.index.top(&self.file, lookup.fetch)?;
                &loaded
            }
        };
        let top = top.as_index();
        if !self.index.partitioned {
            self.look_up_in(top, lookup, visit)?;
            return Ok(());
        }
        for at in top.seek(lookup.key.internal(), &self.order)..top.len() {
            let Some(slot) = top.get(at) else { break };
            let part = self.file.index_block(slot.handle, self.file.index_format, lookup.fetch)?;
            if matches!(self.look_up_in(part.as_index(), lookup, visit)?, Walk::Done) {
                break;
            }
        }
        Ok(())
    }

    /// Searches the data blocks of an index block.
    fn look_up_in(&self, index: &IndexBlock, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<Walk> {
        let user_key = lookup.key.user_key();
        for at in index.seek(lookup.key.internal(), &self.order)..index.len() {
            let Some(slot) = index.get(at) else { break };
            let before_block =
                !slot.first_key.is_empty() && self.order.user.compare(user_key, key::user_key(slot.first_key)).is_lt();
            if before_block {
                return Ok(Walk::Done);
            }
            // Another block can hold the key only if this block's separator is a version of the key.
            let may_go_on = self.order.user.compare(index.separator_user_key(&slot), user_key).is_le();
            let walked = self.walk_block(slot.handle, lookup, visit)?;
            if matches!(walked, Walk::Done) || !may_go_on {
                return Ok(Walk::Done);
            }
        }
        Ok(Walk::BlockEnded)
    }

    /// Passes a block's entries of the key to `visit`.
    fn walk_block(&self, handle: BlockHandle, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<Walk> {
        let block = match lookup.block.take().filter(|(at, _)| *at == handle) {
            Some((_, block)) => block,
            None => self.file.data_block(handle, lookup.fetch, None)?,
        };
        let walked = match self.order.user {
            UserOrder::Bytewise => self.show_first(&block, lookup, visit),
            _ => self.show_all(&block, lookup, false, visit),
        };
        lookup.block = Some((handle, block));
        walked.map_err(|e| e.at_path(self.file.path()).at_offset(handle.offset))
    }

    /// The same in byte order: the newest entry, found without rebuilding keys, is most often all that is asked for.
    fn show_first(&self, block: &BlockRef, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<Walk> {
        let entries = &block.entries;
        let found = match entries.find(lookup.key, self.global) {
            Some(Scan::Found(found)) => found,
            Some(Scan::Behind) => return Ok(Walk::BlockEnded),
            Some(Scan::NeedsKeys) | None => return self.show_all(block, lookup, false, visit),
        };
        if !found.is_target {
            return Ok(Walk::Done);
        }
        let Some(kind) = ValueKind::from_u8(found.trailer as u8) else {
            return Err(unknown_kind(&found.trailer.to_le_bytes()));
        };
        let (start, end) = (found.entry.key_end, found.entry.value_end);
        let value =
            TableValue { bytes: entries.bytes().get(start..end).unwrap_or_default(), owner: Some((block, start)) };
        if self.show(lookup, SeqNo(found.trailer >> 8), kind, value, visit) {
            return self.show_all(block, lookup, true, visit);
        }
        Ok(Walk::Done)
    }

    /// Passes the block's entries of the key to `visit`, without the first if it was `passed` already.
    fn show_all(&self, block: &BlockRef, lookup: &mut Lookup<'_>, mut passed: bool, visit: Visit<'_>) -> Result<Walk> {
        let mut data = BlockCursor::with_buffer(self.global, KEY_BUFFER.take());
        data.set_block(block.clone());
        let mut valid = data.seek_for_get(lookup.key.internal(), &self.order) == Some(true);
        let mut walked = Walk::BlockEnded;
        while valid {
            let Some((user_key, trailer)) = key::split(data.key()) else { break };
            if !self.order.user.equal(user_key, lookup.key.user_key()) {
                walked = Walk::Done;
                break;
            }
            let Some(kind) = ValueKind::from_u8(trailer as u8) else {
                return Err(unknown_kind(&trailer.to_le_bytes()));
            };
            let value = TableValue { bytes: data.value(), owner: Some((block, data.value_range().start)) };
            if !std::mem::take(&mut passed) && !self.show(lookup, SeqNo(trailer >> 8), kind, value, visit) {
                walked = Walk::Done;
                break;
            }
            valid = data.next();
        }
        let status = data.status();
        let mut buffer = data.into_buffer();
        buffer.clear();
        buffer.shrink_to(KEY_BUFFER_KEPT_MAX);
        KEY_BUFFER.set(buffer);
        status.map(|()| walked)
    }

    #[inline]
    fn show(
        &self,
        lookup: &mut Lookup<'_>,
        seq: SeqNo,
        kind: ValueKind,
        value: TableValue<'_>,
        visit: Visit<'_>,
    ) -> bool {
        let first = std::mem::take(&mut lookup.awaits_first);
        if first && self.filter.as_ref().is_some_and(|filter| filter.question.by_whole_keys()) {
            tick(self.file.statistics(), Ticker::BloomFilterFullTruePositive, 1);
        }
        visit(seq, kind, value)
    }
}
