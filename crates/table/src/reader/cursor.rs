//! Table cursor: the index cursor selects the data block, the block cursor walks it.

use std::sync::Arc;

use base::{Cursor, Error, ErrorKind, Result, key};

use super::index::IndexCursor;
use super::readahead::Readahead;
use super::{BlockBasedTable, Fetch};
use crate::block::BlockCursor;
use crate::handle::BlockHandle;
use crate::{DamageSink, PassedOver, TableReadOptions};

/// A cursor over a table's point entries.
pub struct TableCursor {
    table: Arc<BlockBasedTable>,
    fetch: Fetch,
    /// Seeks may ask the prefix filter.
    by_prefix: bool,
    /// `None` until the first move. The first move loads the index if it is not held.
    index: Option<IndexCursor>,
    data: BlockCursor,
    readahead: Readahead,
    /// Receives the damaged blocks; the cursor skips them.
    damage: Option<Arc<dyn DamageSink>>,
    error: Option<Error>,
}

/// Position to take in a newly entered block.
#[derive(Clone, Copy)]
enum Enter<'a> {
    First,
    Last,
    At(&'a [u8]),
}

impl TableCursor {
    pub fn new(table: Arc<BlockBasedTable>, options: &TableReadOptions) -> Self {
        TableCursor {
            fetch: Fetch::from(options),
            by_prefix: options.prefix_same_as_start && !options.total_order_seek,
            index: None,
            data: BlockCursor::new(table.global),
            readahead: Readahead::new(options.readahead_bytes),
            damage: options.skip_damaged.clone(),
            error: None,
            table,
        }
    }

    /// Moves the index by `go`, then positions in the block found by `enter`. Skips blocks without a matching entry, in
    /// the direction of `enter`.
    fn find(
        &mut self,
        enter: Enter<'_>,
        go: impl FnOnce(&mut IndexCursor, &BlockBasedTable, Fetch) -> Result<bool>,
    ) -> bool {
        self.error = None;
        match self.try_find(enter, go) {
            Ok(found) => found,
            Err(error) => {
                self.error = Some(error);
                self.data.leave_block();
                false
            }
        }
    }

    fn try_find(
        &mut self,
        enter: Enter<'_>,
        go: impl FnOnce(&mut IndexCursor, &BlockBasedTable, Fetch) -> Result<bool>,
    ) -> Result<bool> {
        let mut index = match self.index.take() {
            Some(index) => index,
            None => self.table.index.cursor(&self.table.file, self.fetch)?,
        };
        let found = go(&mut index, &self.table, self.fetch)?;
        let found = self.stand(enter, found, &mut index);
        self.index = Some(index);
        found
    }

    fn stand(&mut self, enter: Enter<'_>, mut found: bool, index: &mut IndexCursor) -> Result<bool> {
        while found {
            let Some(slot) = index.slot() else { break };
            let handle = slot.handle;
            let entered = self.enter(enter, handle);
            if matches!(entered, Ok(true)) {
                return Ok(true);
            }
            if let Err(error) = entered {
                self.pass_over(index, error)?;
            }
            found = match enter {
                Enter::First | Enter::At(_) => index.next(&self.table.file, self.fetch)?,
                Enter::Last => index.prev(&self.table.file, self.fetch)?,
            };
        }
        self.data.leave_block();
        Ok(false)
    }

    /// Positions in a data block by `enter`; false if no entry matches.
    fn enter(&mut self, enter: Enter<'_>, handle: BlockHandle) -> Result<bool> {
        let table = &self.table;
        if table.file.is_mapped() && !self.fetch.memory_only {
            self.readahead.hint(&table.file, handle);
        }
        match table.file.mapped_block(handle, self.fetch)? {
            Some(view) => {
                // Copied: what the caller gets to see must not turn into zeros before the next move.
                self.data.set_copy(view.bytes())?;
                table.file.check_intact()?;
            }
            None => self.data.set_block(table.file.data_block(handle, self.fetch, Some(&mut self.readahead))?),
        }
        let valid = match enter {
            Enter::First => self.data.seek_to_first(),
            Enter::Last => self.data.seek_to_last(),
            Enter::At(target) => self.data.seek(target, &table.order),
        };
        if !valid {
            self.data.status().map_err(|e| e.at_path(table.file.path()).at_offset(handle.offset))?;
        }
        Ok(valid)
    }

    /// Reports the damaged block at the index cursor and skips it.
    ///
    /// # Errors
    /// `error`, unless damage is skipped, and it is `Corruption` or a read failure.
    #[cold]
    fn pass_over(&mut self, index: &mut IndexCursor, error: Error) -> Result<()> {
        let is_damage = error.kind() == ErrorKind::Corruption || error.is_read_failure();
        let Some(damage) = self.damage.clone().filter(|_| is_damage) else {
            return Err(error);
        };
        let separator = |index: &IndexCursor| {
            let (slot, block) = (index.slot()?, index.block()?);
            let separator = if block.has_user_keys() { slot.separator } else { key::user_key(slot.separator) };
            Some(separator.to_vec())
        };
        let (file, fetch) = (&self.table.file, self.fetch);
        let through = separator(index);
        let from = if index.prev(file, fetch)? {
            let before = separator(index);
            index.next(file, fetch)?;
            before
        } else {
            index.seek_to_first(file, fetch)?;
            None
        };
        self.data.leave_block();
        damage.passed_over(PassedOver { error, from, through });
        Ok(())
    }

    /// Handles the end of a block, or damage in it.
    #[cold]
    fn leave_block(&mut self, enter: Enter<'_>) -> bool {
        if let Err(error) = self.data.status()
            && let Some(mut index) = self.index.take()
        {
            let offset = index.slot().map_or(0, |slot| slot.handle.offset);
            let passed = self.pass_over(&mut index, error.at_path(self.table.file.path()).at_offset(offset));
            self.index = Some(index);
            if let Err(error) = passed {
                self.error = Some(error);
                return false;
            }
        }
        self.find(enter, |index, table, fetch| match enter {
            Enter::Last => index.prev(&table.file, fetch),
            Enter::First | Enter::At(_) => index.next(&table.file, fetch),
        })
    }

    /// False if the prefix filter rules out keys at or after `target` with its prefix.
    fn filter_allows(&mut self, target: &[u8]) -> Result<bool> {
        match &self.table.filter {
            Some(filter) if self.by_prefix => {
                filter.may_hold_prefix(target, &self.table.order, &self.table.file, self.fetch)
            }
            _ => Ok(true),
        }
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.data.valid()
    }

    fn seek_to_first(&mut self) -> bool {
        self.find(Enter::First, |index, table, fetch| index.seek_to_first(&table.file, fetch))
    }

    fn seek_to_last(&mut self) -> bool {
        self.find(Enter::Last, |index, table, fetch| index.seek_to_last(&table.file, fetch))
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.find(Enter::At(target), |index, table, fetch| index.seek(target, &table.order, &table.file, fetch))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        let allowed = self.filter_allows(target);
        self.find(Enter::At(target), |index, table, fetch| {
            Ok(allowed? && index.seek(target, &table.order, &table.file, fetch)?)
        })
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        let found = self.seek(target);
        if self.error.is_some() {
            return false;
        }
        if !found {
            return self.seek_to_last();
        }
        match self.table.order.compare(self.data.key(), target) {
            std::cmp::Ordering::Greater => self.prev(),
            _ => true,
        }
    }

    #[inline]
    fn next(&mut self) -> bool {
        self.data.next() || self.leave_block(Enter::First)
    }

    #[inline]
    fn prev(&mut self) -> bool {
        self.data.prev() || self.leave_block(Enter::Last)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.data.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.data.value()
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}
