//! Cursor over a zip table: entering a group decodes all its keys; a value is decoded when the cursor reaches it.

use std::ops::Range;
use std::sync::Arc;

use base::{Cursor, Error, Result, key};

use super::ZipTable;
use super::group::Record;
use crate::TableReadOptions;

/// A cursor over a table's point entries.
pub(super) struct ZipCursor {
    table: Arc<ZipTable>,
    verify: bool,
    /// Seeks may ask the prefix filter.
    by_prefix: bool,
    /// The current group; meaningless while `slots` is empty.
    group: usize,
    slots: Vec<Slot>,
    /// Internal keys of the slots, back to back.
    keys: Vec<u8>,
    /// The current slot; past the end if the cursor is not valid.
    nth: usize,
    /// The current value, decompressed; else `plain_value` is its place in the file.
    value: Vec<u8>,
    plain_value: Range<usize>,
    error: Option<Error>,
}

/// An entry of the group.
struct Slot {
    key: Range<usize>,
    /// In the file.
    record: Range<usize>,
    is_plain: bool,
}

impl ZipCursor {
    pub(super) fn new(table: Arc<ZipTable>, options: &TableReadOptions) -> Self {
        ZipCursor {
            table,
            verify: options.verify_checksums,
            by_prefix: options.prefix_same_as_start && !options.total_order_seek,
            group: 0,
            slots: Vec::new(),
            keys: Vec::new(),
            nth: 0,
            value: Vec::new(),
            plain_value: 0..0,
            error: None,
        }
    }

    /// Moves by `go`. Stores an error and returns false if it fails.
    #[inline]
    fn moved(&mut self, go: impl FnOnce(&mut Self) -> Result<bool>) -> bool {
        self.error = None;
        match go(self) {
            Ok(true) => true,
            Ok(false) => self.leave(),
            Err(error) => {
                self.error = Some(error);
                self.leave()
            }
        }
    }

    fn leave(&mut self) -> bool {
        self.slots.clear();
        self.nth = 0;
        false
    }

    /// Decodes the keys of a group; false if there is no such group.
    fn enter(&mut self, group: usize) -> Result<bool> {
        if !self.slots.is_empty() && self.group == group {
            return Ok(true);
        }
        self.slots.clear();
        self.keys.clear();
        if group >= self.table.index.len() {
            return Ok(false);
        }
        self.group = group;
        let table = self.table.clone();
        self.read_group(&table).map_err(|e| table.damaged(e, table.index.place(group).start))?;
        Ok(!self.slots.is_empty())
    }

    fn read_group(&mut self, table: &ZipTable) -> Result<()> {
        let mut entries = table.group(self.group, self.verify)?;
        // The value's buffer is unused now: it serves as the user key's buffer.
        let user_key = &mut self.value;
        user_key.clear();
        user_key.extend_from_slice(table.index.separator(self.group));
        while let Some((stored, record)) = entries.next(user_key)? {
            let start = self.keys.len();
            self.keys.extend_from_slice(user_key);
            self.keys.extend_from_slice(&table.file.global.trailer(stored).to_le_bytes());
            let at = record.rest.as_ptr().addr() - table.file.bytes().as_ptr().addr();
            let Record { len, is_plain, .. } = record;
            self.slots.push(Slot { key: start..self.keys.len(), record: at..at + len, is_plain });
        }
        Ok(())
    }

    #[inline]
    fn key_of(&self, nth: usize) -> &[u8] {
        self.slots.get(nth).and_then(|slot| self.keys.get(slot.key.clone())).unwrap_or_default()
    }

    /// Moves to a slot of the current group.
    fn stand(&mut self, nth: usize) -> Result<bool> {
        let Some(slot) = self.slots.get(nth) else { return Ok(false) };
        self.nth = nth;
        self.plain_value = 0..0;
        self.value.clear();
        if slot.is_plain {
            self.plain_value = slot.record.clone();
        } else if !slot.record.is_empty() {
            let group_end = self.table.index.place(self.group).end as usize;
            let rest = self.table.file.bytes().get(slot.record.start..group_end).unwrap_or_default();
            let decoded = self.table.values.decode(rest, slot.record.len(), &mut self.value);
            decoded.map_err(|e| self.table.damaged(e, slot.record.start as u64))?;
        }
        Ok(true)
    }

    /// Moves to the first entry of a group.
    fn stand_first(&mut self, group: usize) -> Result<bool> {
        Ok(self.enter(group)? && self.stand(0)?)
    }

    /// Moves to the last entry of the group before `group`.
    fn stand_last_before(&mut self, group: usize) -> Result<bool> {
        match group.checked_sub(1) {
            Some(before) => Ok(self.enter(before)? && self.stand(self.slots.len() - 1)?),
            None => Ok(false),
        }
    }

    /// Enters the group that `target` belongs to and returns its first slot for which `is_before` is false, or the
    /// number of its slots. `None` if the table is empty.
    fn find(&mut self, target: &[u8], is_before: impl Fn(&[u8]) -> bool) -> Result<Option<usize>> {
        let table = self.table.clone();
        let user_key = key::user_key(target);
        let mut group = table.index.find(user_key, &table.file.order.user);
        loop {
            if !self.enter(group)? {
                return Ok(None);
            }
            let nth = self.slots.partition_point(|slot| is_before(self.keys.get(slot.key.clone()).unwrap_or_default()));
            // The next group has versions of the key only if its separator equals the key.
            let goes_on = nth == self.slots.len()
                && group + 1 < table.index.len()
                && table.file.order.user.compare(table.index.separator(group + 1), user_key).is_le();
            if !goes_on {
                return Ok(Some(nth));
            }
            group += 1;
        }
    }

    /// Moves to the first entry at or after `target`.
    fn stand_at(&mut self, target: &[u8]) -> Result<bool> {
        let order = self.table.file.order.clone();
        match self.find(target, |stored| order.compare(stored, target).is_lt())? {
            Some(nth) if nth < self.slots.len() => self.stand(nth),
            Some(_) => self.stand_first(self.group + 1),
            None => Ok(false),
        }
    }
}

impl Cursor for ZipCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.nth < self.slots.len()
    }

    fn seek_to_first(&mut self) -> bool {
        self.moved(|cursor| cursor.stand_first(0))
    }

    fn seek_to_last(&mut self) -> bool {
        self.moved(|cursor| cursor.stand_last_before(cursor.table.index.len()))
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| cursor.stand_at(target))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| {
            let allowed = !cursor.by_prefix || cursor.table.file.may_hold_prefix(target, cursor.verify)?;
            if allowed { cursor.stand_at(target) } else { Ok(false) }
        })
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| {
            let order = cursor.table.file.order.clone();
            match cursor.find(target, |stored| order.compare(stored, target).is_le())? {
                Some(0) => cursor.stand_last_before(cursor.group),
                Some(nth) => cursor.stand(nth - 1),
                None => Ok(false),
            }
        })
    }

    #[inline]
    fn next(&mut self) -> bool {
        self.moved(|cursor| match cursor.nth + 1 {
            nth if nth < cursor.slots.len() => cursor.stand(nth),
            _ => cursor.stand_first(cursor.group + 1),
        })
    }

    #[inline]
    fn prev(&mut self) -> bool {
        self.moved(|cursor| match cursor.nth.checked_sub(1) {
            Some(nth) => cursor.stand(nth),
            None => cursor.stand_last_before(cursor.group),
        })
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.key_of(self.nth)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if !self.valid() {
            return &[];
        }
        match self.plain_value.is_empty() {
            true => &self.value,
            false => self.table.file.bytes().get(self.plain_value.clone()).unwrap_or_default(),
        }
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}
