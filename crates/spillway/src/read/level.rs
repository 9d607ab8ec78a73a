//! One cursor over a sorted run of disjoint tables: a level of a version, or a compaction's inputs from one level.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, InternalOrder, Result};
use table::TableReadOptions;

use super::damage::DamageBearing;
use super::tombstones::CoverFeed;
use crate::version::level::ends_before;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// The tables of the run, ascending.
pub enum LevelFiles {
    OfVersion(Arc<Version>, usize),
    Listed(Vec<Arc<TableFile>>),
}

impl LevelFiles {
    fn get(&self) -> &[Arc<TableFile>] {
        match self {
            LevelFiles::OfVersion(version, level) => version.level(*level),
            LevelFiles::Listed(files) => files,
        }
    }
}

/// Bounds of the user keys to read. Tables wholly outside are not opened.
#[derive(Clone, Default)]
pub struct UserBounds {
    /// Inclusive.
    pub lower: Option<Vec<u8>>,
    /// Exclusive.
    pub upper: Option<Vec<u8>>,
}

impl UserBounds {
    pub fn is_past_upper(&self, order: &InternalOrder, user_key: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|upper| order.user.compare(user_key, upper).is_ge())
    }

    pub fn is_before_lower(&self, order: &InternalOrder, user_key: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|lower| order.user.compare(user_key, lower).is_lt())
    }

    /// Whether no key of the table is within the bounds.
    pub fn exclude(&self, order: &InternalOrder, file: &TableFile) -> bool {
        self.is_past_upper(order, file.smallest_user_key()) || self.exclude_below(order, file)
    }

    fn exclude_below(&self, order: &InternalOrder, file: &TableFile) -> bool {
        self.lower.as_ref().is_some_and(|lower| ends_before(&order.user, &file.meta, lower))
    }
}

/// A cursor over a sorted run. Opens a table when the walk reaches it, and holds one at a time.
pub struct LevelCursor {
    order: InternalOrder,
    files: LevelFiles,
    options: TableReadOptions,
    bounds: UserBounds,
    /// Receives the range tombstones of every opened table.
    feed: Option<CoverFeed>,
    /// Index of the open table.
    at: usize,
    table: Option<Box<dyn Cursor>>,
    valid: bool,
    error: Option<Error>,
}

impl LevelCursor {
    pub fn new(order: InternalOrder, files: LevelFiles, options: TableReadOptions) -> Self {
        LevelCursor {
            order,
            files,
            options,
            bounds: UserBounds::default(),
            feed: None,
            at: 0,
            table: None,
            valid: false,
            error: None,
        }
    }

    #[must_use]
    pub fn within(mut self, bounds: UserBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Passes the range tombstones of every opened table to `feed`. A table is opened before the walk reaches its keys,
    /// so the feed has every tombstone of the run over a key the walk reaches.
    #[must_use]
    pub fn feeding(mut self, feed: CoverFeed) -> Self {
        self.feed = Some(feed);
        self
    }

    /// Makes `index` the current table, opening it unless it is open.
    fn enter(&mut self, index: usize) -> Option<&mut Box<dyn Cursor>> {
        if self.table.is_none() || self.at != index {
            let file = self.files.get().get(index)?;
            self.table = None;
            let feed = self.feed.as_ref();
            let opened = open_cursor(file, &self.options, |tombstones| {
                feed.into_iter().for_each(|feed| feed.add(file, tombstones.clone()));
            });
            match opened {
                Ok(cursor) => self.table = Some(cursor),
                Err(error) => self.error = Some(error),
            }
            self.at = index;
        }
        self.table.as_mut()
    }

    /// Ends the walk. Returns false.
    fn end(&mut self) -> bool {
        self.valid = false;
        false
    }

    fn table_failed(&mut self) -> bool {
        if let Some(Err(error)) = self.table.as_ref().map(Cursor::status) {
            self.error = Some(error);
        }
        self.error.is_some()
    }

    /// Moves to the first entry of the first non-empty table from `index` on.
    fn first_from(&mut self, mut index: usize) -> bool {
        loop {
            let Some(file) = self.files.get().get(index) else { return self.end() };
            if self.bounds.is_past_upper(&self.order, file.smallest_user_key()) {
                return self.end();
            }
            if self.enter(index).is_some_and(|table| table.seek_to_first()) {
                self.valid = true;
                return true;
            }
            if self.table_failed() {
                return self.end();
            }
            index += 1;
        }
    }

    /// Moves to the first entry at or after `target`. `seek` runs in the first table with a largest key at or after
    /// `target`.
    fn seek_by(&mut self, target: &[u8], seek: impl FnOnce(&mut Box<dyn Cursor>) -> bool) -> bool {
        self.error = None;
        let order = &self.order;
        let index = self.files.get().partition_point(|file| order.compare(&file.meta.largest, target).is_lt());
        let Some(file) = self.files.get().get(index) else { return self.end() };
        if self.bounds.is_past_upper(&self.order, file.smallest_user_key()) {
            return self.end();
        }
        if self.enter(index).is_some_and(seek) {
            self.valid = true;
            return true;
        }
        if self.table_failed() { self.end() } else { self.first_from(index + 1) }
    }

    /// Moves to the last entry of the last non-empty table before `end`.
    fn last_before(&mut self, mut end: usize) -> bool {
        loop {
            let Some(index) = end.checked_sub(1) else { return self.end() };
            let Some(file) = self.files.get().get(index) else { return self.end() };
            if self.bounds.exclude_below(&self.order, file) {
                return self.end();
            }
            if self.enter(index).is_some_and(|table| table.seek_to_last()) {
                self.valid = true;
                return true;
            }
            if self.table_failed() {
                return self.end();
            }
            end = index;
        }
    }
}

/// Opens a cursor over a table. With `skip_damaged` the cursor skips damage.
///
/// # Errors
/// Errors of opening the table.
pub(crate) fn open_cursor(
    file: &Arc<TableFile>,
    options: &TableReadOptions,
    note_tombstones: impl FnOnce(Arc<FragmentedTombstones>),
) -> Result<Box<dyn Cursor>> {
    let opened = file.open_by(options).and_then(|table| {
        if table.is_mapped() {
            options.check_may_read_file()?;
        }
        if let Some(tombstones) = table.tombstones() {
            note_tombstones(tombstones);
        }
        Ok(table.cursor(options))
    });
    match &options.skip_damaged {
        None => opened,
        Some(damage) => DamageBearing::over(opened, file, damage),
    }
}

impl Cursor for LevelCursor {
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) -> bool {
        self.error = None;
        let (order, bounds) = (&self.order, &self.bounds);
        let index = self.files.get().partition_point(|file| bounds.exclude_below(order, file));
        self.first_from(index)
    }

    fn seek_to_last(&mut self) -> bool {
        self.error = None;
        let (order, bounds) = (&self.order, &self.bounds);
        let files = self.files.get();
        let end = files.partition_point(|file| !bounds.is_past_upper(order, file.smallest_user_key()));
        self.last_before(end)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.seek_by(target, |table| table.seek(target))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.seek_by(target, |table| table.seek_in_prefix(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.error = None;
        let order = &self.order;
        let end = self.files.get().partition_point(|file| order.compare(&file.meta.smallest, target).is_le());
        let Some(index) = end.checked_sub(1) else { return self.end() };
        let Some(file) = self.files.get().get(index) else { return self.end() };
        if self.bounds.exclude_below(&self.order, file) {
            return self.end();
        }
        if self.enter(index).is_some_and(|table| table.seek_for_prev(target)) {
            self.valid = true;
            return true;
        }
        if self.table_failed() { self.end() } else { self.last_before(index) }
    }

    #[inline]
    fn next(&mut self) -> bool {
        if self.table.as_mut().is_some_and(|table| table.next()) {
            return true;
        }
        if self.table_failed() { self.end() } else { self.first_from(self.at + 1) }
    }

    #[inline]
    fn prev(&mut self) -> bool {
        if self.table.as_mut().is_some_and(|table| table.prev()) {
            return true;
        }
        if self.table_failed() { self.end() } else { self.last_before(self.at) }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.valid { self.table.as_ref().map_or(&[], Cursor::key) } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.valid { self.table.as_ref().map_or(&[], Cursor::value) } else { &[] }
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
