//! Point lookups.

use std::cell::Cell;

use base::metrics::{Ticker, tick};
use base::{LookupKey, ParsedKey, Result, SeqNo, ValueKind, key};

use super::index::IndexCursor;
use super::{BlockBasedTable, Fetch, unknown_kind};
use crate::block::BlockCursor;
use crate::handle::BlockHandle;
use crate::{ShareBytes, TableReadOptions, TableValue, Visit};

/// Larger key buffers are freed: one huge key must not pin memory.
const KEY_BUFFER_KEPT_MAX: usize = 64 << 10;

thread_local! {
    /// Key buffer of lookups: one allocation per thread.
    static KEY_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Result of a walk through one block.
enum Walk {
    /// The lookup is answered.
    Done,
    /// The block ended while entries of the key could still follow.
    BlockEnded,
}

impl BlockBasedTable {
    pub(super) fn get_entries(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let fetch = Fetch::from(options);
        if !self.filter_allows(key, fetch)? {
            return Ok(());
        }
        let mut index = self.index.cursor(&self.file, fetch)?;
        let mut data = BlockCursor::with_buffer(self.global, KEY_BUFFER.take());
        let mut position = Position { index: &mut index, data: &mut data, handle: None };
        let result = self.get_at(key, fetch, &mut position, visit);
        let mut buffer = data.into_buffer();
        buffer.clear();
        buffer.shrink_to(KEY_BUFFER_KEPT_MAX);
        KEY_BUFFER.set(buffer);
        result
    }

    pub(super) fn get_many(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let fetch = Fetch::from(options);
        let mut index = self.index.cursor(&self.file, fetch)?;
        let mut data = BlockCursor::new(self.global);
        let mut position = Position { index: &mut index, data: &mut data, handle: None };
        for (i, key) in keys.iter().enumerate() {
            if self.filter_allows(key, fetch)? {
                self.get_at(key, fetch, &mut position, &mut |seq, kind, value| visit(i, seq, kind, value))?;
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

    fn get_at(&self, key: &LookupKey, fetch: Fetch, position: &mut Position<'_>, visit: Visit<'_>) -> Result<()> {
        let user_key = key.user_key();
        let mut awaits_first = true;
        let mut found = position.index.seek(key.internal(), &self.order, &self.file, fetch)?;
        while found {
            let Some(slot) = position.index.slot() else { break };
            let before_block =
                !slot.first_key.is_empty() && self.order.user.compare(user_key, key::user_key(slot.first_key)).is_lt();
            if before_block {
                break;
            }
            // Another block can hold the key only if this block's separator is a version of the key.
            let separator = position.index.block().map_or(&[][..], |block| block.separator_user_key(&slot));
            let may_go_on = self.order.user.compare(separator, user_key).is_le();
            let handle = slot.handle;
            if position.handle != Some(handle) {
                position.data.set_block(self.file.data_block(handle, fetch, None)?);
                position.handle = Some(handle);
            }
            let walked = self.walk_block(key, position.data, &mut awaits_first, visit);
            let walked = walked.map_err(|e| e.at_path(self.file.path()).at_offset(handle.offset))?;
            if matches!(walked, Walk::Done) || !may_go_on {
                break;
            }
            found = position.index.next(&self.file, fetch)?;
        }
        Ok(())
    }

    /// Passes the block's entries of the key to `visit`. `awaits_first`: no entry was passed yet; the first is counted.
    fn walk_block(
        &self,
        key: &LookupKey,
        data: &mut BlockCursor,
        awaits_first: &mut bool,
        visit: Visit<'_>,
    ) -> Result<Walk> {
        let Some(mut valid) = data.seek_for_get(key.internal(), &self.order) else {
            return Ok(Walk::BlockEnded);
        };
        while valid {
            let Some((stored_user, _)) = key::split(data.key()) else { break };
            if !self.order.user.equal(stored_user, key.user_key()) {
                return Ok(Walk::Done);
            }
            let Some(entry) = ParsedKey::parse(data.key()) else {
                return Err(unknown_kind(data.key()));
            };
            if std::mem::take(awaits_first)
                && self.filter.as_ref().is_some_and(|filter| filter.question.by_whole_keys())
            {
                tick(self.file.statistics(), Ticker::BloomFilterFullTruePositive, 1);
            }
            let start = data.value_range().start;
            let owner = data.block().map(|block| (block as &dyn ShareBytes, start));
            let value = TableValue { bytes: data.value(), owner };
            if !visit(entry.seq, entry.kind, value) {
                return Ok(Walk::Done);
            }
            valid = data.next();
        }
        data.status()?;
        Ok(Walk::BlockEnded)
    }
}

/// State of a run of lookups: the next lookup may need the same block.
struct Position<'a> {
    index: &'a mut IndexCursor,
    data: &'a mut BlockCursor,
    /// The data block that `data` is on.
    handle: Option<BlockHandle>,
}
