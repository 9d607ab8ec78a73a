//! Cursor over a fast table.

use std::ops::Range;
use std::sync::Arc;

use base::{Cursor, Error, Result, key};

use super::FastTable;
use super::group::{Entry, Group};
use super::heads::rank;
use crate::TableReadOptions;

/// A cursor over a table's point entries.
pub(super) struct FastCursor {
    table: Arc<FastTable>,
    verify: bool,
    /// Seeks may ask the prefix filter.
    by_prefix: bool,
    /// Place of the current group, and its number of entries.
    group: Range<usize>,
    len: usize,
    /// The current entry of the group; `len` if the cursor is not valid.
    nth: usize,
    key: Range<usize>,
    value: Range<usize>,
    /// The current key with the table's global sequence number, if the table has one.
    patched: Vec<u8>,
    error: Option<Error>,
}

impl FastCursor {
    pub(super) fn new(table: Arc<FastTable>, options: &TableReadOptions) -> Self {
        FastCursor {
            table,
            verify: options.verify_checksums,
            by_prefix: options.prefix_same_as_start && !options.total_order_seek,
            group: 0..0,
            len: 0,
            nth: 0,
            key: 0..0,
            value: 0..0,
            patched: Vec::new(),
            error: None,
        }
    }

    /// Moves to the first entry at or after `target`.
    fn find(&mut self, target: &[u8]) -> Result<bool> {
        if self.table.reading(self.verify).is_empty() {
            return Ok(false);
        }
        match self.enter_for(target, false)? {
            nth if nth == self.len => self.next_group(),
            nth => self.stand_on(nth),
        }
    }

    fn leave(&mut self) -> bool {
        (self.len, self.nth) = (0, 0);
        (self.key, self.value) = (0..0, 0..0);
        self.patched.clear();
        false
    }

    /// Moves by `go`. Stores an error and returns false if it fails.
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

    /// Enters the group at `at`, without choosing an entry.
    fn enter(&mut self, at: usize) -> Result<()> {
        let group = self.table.reading(self.verify).group(at)?;
        let (bytes, len) = (group.bytes(), group.len());
        (self.group, self.len) = (at..at + bytes, len);
        Ok(())
    }

    /// The current group; its checksums were compared when it was entered.
    fn group(&self) -> Option<Group<'_>> {
        Group::parse(self.table.file.bytes().get(self.group.clone())?, self.table.heads)
    }

    /// Moves to entry `nth` of the group, at offset `start` of the file. False if it is malformed.
    #[inline]
    fn stand(&mut self, nth: usize, start: usize) -> bool {
        let bytes = self.table.file.bytes().get(..self.group.end).unwrap_or_default();
        let Some(Entry { key, value_range: (value, end), .. }) = Entry::parse(bytes, start) else { return false };
        let key = value - key.len()..value;
        (self.nth, self.key, self.value) = (nth, key, value..end);
        if self.table.file.global.0.is_some() {
            self.patch();
        }
        true
    }

    fn patch(&mut self) {
        let stored = self.table.file.bytes().get(self.key.clone()).unwrap_or_default();
        if let Some((user_key, trailer)) = key::split(stored) {
            self.patched.clear();
            self.patched.extend_from_slice(user_key);
            self.patched.extend_from_slice(&self.table.file.global.trailer(trailer).to_le_bytes());
        }
    }

    /// Moves to entry `nth` of the current group.
    fn stand_on(&mut self, nth: usize) -> Result<bool> {
        let start = self.group().and_then(|group| group.start(nth));
        match start.is_some_and(|start| self.stand(nth, self.group.start + start)) {
            true => Ok(true),
            false => Err(self.table.damaged("an entry", self.group.start)),
        }
    }

    /// Moves to the first entry of the next group.
    fn next_group(&mut self) -> Result<bool> {
        let at = self.group.end;
        if at >= self.table.file.footer.data_bytes as usize {
            return Ok(false);
        }
        self.enter(at)?;
        self.stand_on(0)
    }

    /// Moves to the last entry of the previous group.
    fn previous_group(&mut self) -> Result<bool> {
        let end = self.group.start;
        if end == 0 {
            return Ok(false);
        }
        let bytes = self.group().map_or(0, |group| group.previous_bytes()) as usize;
        let at = end.checked_sub(bytes).filter(|at| *at < end);
        self.enter(at.ok_or_else(|| self.table.damaged("a group", end))?)?;
        if self.group.end != end {
            return Err(self.table.damaged("a group", self.group.start));
        }
        self.stand_on(self.len - 1)
    }

    /// Moves to the next group, or fails if the current group still has entries: the next one is damaged.
    #[cold]
    fn leave_group(&mut self) -> bool {
        self.moved(|cursor| match cursor.nth + 1 < cursor.len {
            true => Err(cursor.table.damaged("an entry", cursor.value.end)),
            false => cursor.next_group(),
        })
    }

    /// Enters the group of `target`. Returns the number of entries before `target`, or not after it if `or_equal`.
    fn enter_for(&mut self, target: &[u8], or_equal: bool) -> Result<usize> {
        let table = self.table.clone();
        let reading = table.reading(self.verify);
        let at = reading.group_for(target)?;
        let group = reading.group(at)?;
        (self.group, self.len) = (at..at + group.bytes(), group.len());
        let damaged = || table.damaged("an entry", at);
        let rest = match table.heads.strip(key::user_key(target), group.prefix().ok_or_else(damaged)?) {
            Ok(rest) => rest,
            Err(side) => return Ok(if side.is_lt() { 0 } else { group.len() }),
        };
        let is_before = |nth| {
            let ordering = table.file.global.compare(&table.file.order, group.entry(nth)?.key, target);
            Some(ordering.is_lt() || (or_equal && ordering.is_eq()))
        };
        rank(group.heads(), group.len(), table.heads.head(rest), is_before).ok_or_else(damaged)
    }
}

impl Cursor for FastCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.nth < self.len
    }

    fn seek_to_first(&mut self) -> bool {
        self.moved(|cursor| {
            cursor.group = 0..0;
            cursor.next_group()
        })
    }

    fn seek_to_last(&mut self) -> bool {
        self.moved(|cursor| {
            let reading = cursor.table.reading(cursor.verify);
            if reading.is_empty() {
                return Ok(false);
            }
            let at = reading.descend(|node| node.children().checked_sub(1))?;
            cursor.enter(at)?;
            cursor.stand_on(cursor.len - 1)
        })
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| cursor.find(target))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| {
            let allowed = !cursor.by_prefix || cursor.table.file.may_hold_prefix(target, cursor.verify)?;
            if allowed { cursor.find(target) } else { Ok(false) }
        })
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.moved(|cursor| {
            if cursor.table.reading(cursor.verify).is_empty() {
                return Ok(false);
            }
            match cursor.enter_for(target, true)? {
                0 => cursor.previous_group(),
                nth => cursor.stand_on(nth - 1),
            }
        })
    }

    #[inline]
    fn next(&mut self) -> bool {
        // Entries lie back to back.
        (self.nth + 1 < self.len && self.stand(self.nth + 1, self.value.end)) || self.leave_group()
    }

    fn prev(&mut self) -> bool {
        match self.nth.checked_sub(1) {
            Some(nth) => self.moved(|cursor| cursor.stand_on(nth)),
            None => self.moved(Self::previous_group),
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.table.file.global.0.is_some() {
            return &self.patched;
        }
        self.table.file.bytes().get(self.key.clone()).unwrap_or_default()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.table.file.bytes().get(self.value.clone()).unwrap_or_default()
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}
