//! One cursor over a sorted run of disjoint tables: a level of a version, or a compaction's inputs from one level.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, InternalOrder, Result};
use table::{AnyCursor, TableReadOptions};

use super::damage::DamageBearing;
use super::merging::MergeChild;
use super::options::TableFilter;
use super::tombstones::CoverFeed;
use crate::version::level::ends_before;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// The tables of the run, ascending.
pub enum LevelFiles {
    OfVersion(Arc<Version>, usize),
    One(Arc<TableFile>),
    Listed(Vec<Arc<TableFile>>),
}

impl LevelFiles {
    fn get(&self) -> &[Arc<TableFile>] {
        match self {
            LevelFiles::OfVersion(version, level) => version.level(*level),
            LevelFiles::One(file) => std::slice::from_ref(file),
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

/// What a cursor over a run stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Nowhere,
    /// The entry under the table's cursor.
    OnEntry,
    /// The smallest key of the table at `at`, of which nothing was read.
    Ahead,
}

/// What the cursors over a reader's runs have in common.
pub struct LevelContext {
    order: InternalOrder,
    options: TableReadOptions,
    bounds: UserBounds,
    /// Receives the range tombstones of every opened table.
    feed: Option<CoverFeed>,
    /// Seeks before a table stand on its smallest key until [`arrive`](MergeChild::arrive).
    waits: bool,
    /// Refused tables have no entries.
    filter: Option<TableFilter>,
}

impl LevelContext {
    pub fn new(order: InternalOrder, options: TableReadOptions) -> Self {
        LevelContext { order, options, bounds: UserBounds::default(), feed: None, waits: false, filter: None }
    }

    #[must_use]
    pub fn within(self, bounds: UserBounds) -> Self {
        LevelContext { bounds, ..self }
    }

    /// Seeks to a key before a table read nothing of it. The caller has the cursor arrive before it asks for the entry.
    #[must_use]
    pub fn waiting(self) -> Self {
        LevelContext { waits: true, ..self }
    }

    /// Leaves out the entries of tables refused by `filter`.
    #[must_use]
    pub fn filtered(self, filter: Option<TableFilter>) -> Self {
        LevelContext { filter, ..self }
    }

    /// Passes the range tombstones of every opened table to `feed`. A table is opened before the walk reaches its keys,
    /// so the feed has every tombstone of the run over a key the walk reaches.
    #[must_use]
    pub fn feeding(self, feed: CoverFeed) -> Self {
        LevelContext { feed: Some(feed), ..self }
    }
}

impl LevelContext {
    fn takes(&self, file: &TableFile) -> Result<bool> {
        self.filter.as_ref().map_or(Ok(true), |filter| file.with(|table| Ok(filter(table.properties()))))
    }
}

/// A cursor over a sorted run. Opens a table when the walk reaches it, and holds one at a time.
pub struct LevelCursor {
    context: Arc<LevelContext>,
    files: LevelFiles,
    /// Place among the merged cursors, youngest first.
    rank: usize,
    /// Index of the open table, or of the one ahead.
    at: usize,
    table: Option<AnyCursor>,
    position: Position,
    error: Option<Error>,
}

impl LevelCursor {
    /// `rank`: its place among the merged cursors, if the context has a feed.
    pub fn new(context: Arc<LevelContext>, rank: usize, files: LevelFiles) -> Self {
        LevelCursor { context, files, rank, at: 0, table: None, position: Position::Nowhere, error: None }
    }

    /// A cursor over one run alone.
    pub fn over(order: InternalOrder, files: LevelFiles, options: TableReadOptions) -> Self {
        LevelCursor::new(Arc::new(LevelContext::new(order, options)), 0, files)
    }

    /// Makes `index` the current table, opening it unless it is open.
    fn enter(&mut self, index: usize) -> Option<&mut AnyCursor> {
        self.at_table(index);
        if self.table.is_none() {
            let file = self.files.get().get(index)?;
            let (feed, rank) = (self.context.feed.as_ref(), self.rank);
            let opened = open_cursor(file, &self.context.options, |tombstones| {
                feed.into_iter().for_each(|feed| feed.add(rank, file, tombstones.clone()));
            });
            let opened = opened.and_then(|cursor| Ok((cursor, self.context.takes(file)?)));
            match opened {
                Ok((cursor, is_taken)) => self.table = Some(cursor).filter(|_| is_taken),
                Err(error) => self.error = Some(error),
            }
        }
        self.table.as_mut()
    }

    /// Makes `index` the current table, without opening it.
    fn at_table(&mut self, index: usize) {
        if self.at != index {
            self.table = None;
            self.at = index;
        }
    }

    /// Ends the walk. Returns false.
    fn end(&mut self) -> bool {
        self.position = Position::Nowhere;
        false
    }

    fn on_entry(&mut self) -> bool {
        self.position = Position::OnEntry;
        true
    }

    /// Stands on the smallest key of the table, or on its first entry if the cursor does not wait.
    fn before_table(&mut self, index: usize) -> bool {
        let Some(file) = self.files.get().get(index).filter(|_| self.context.waits) else {
            return self.first_from(index);
        };
        if self.context.bounds.is_past_upper(&self.context.order, file.smallest_user_key()) {
            return self.end();
        }
        self.at_table(index);
        self.position = Position::Ahead;
        true
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
            if self.context.bounds.is_past_upper(&self.context.order, file.smallest_user_key()) {
                return self.end();
            }
            if self.enter(index).is_some_and(|table| table.seek_to_first()) {
                return self.on_entry();
            }
            if self.table_failed() {
                return self.end();
            }
            index += 1;
        }
    }

    /// Moves to the first entry at or after `target`. `seek` runs in the first table with a largest key at or after
    /// `target`.
    fn seek_by(&mut self, target: &[u8], seek: impl FnOnce(&mut AnyCursor) -> bool) -> bool {
        self.error = None;
        let order = &self.context.order;
        let index = self.files.get().partition_point(|file| order.compare(&file.meta.largest, target).is_lt());
        let Some(file) = self.files.get().get(index) else { return self.end() };
        if self.context.bounds.is_past_upper(&self.context.order, file.smallest_user_key()) {
            return self.end();
        }
        if self.context.waits && order.compare(target, &file.meta.smallest).is_lt() {
            return self.before_table(index);
        }
        file.count_read();
        if self.enter(index).is_some_and(seek) {
            return self.on_entry();
        }
        if self.table_failed() { self.end() } else { self.before_table(index + 1) }
    }

    /// Moves to the first entry behind the current table, or of the one ahead.
    #[cold]
    fn next_table(&mut self) -> bool {
        if self.table_failed() {
            return self.end();
        }
        match self.position {
            Position::Ahead => self.first_from(self.at) && self.next(),
            Position::OnEntry | Position::Nowhere => self.first_from(self.at + 1),
        }
    }

    /// Moves to the last entry of the last non-empty table before `end`.
    fn last_before(&mut self, mut end: usize) -> bool {
        loop {
            let Some(index) = end.checked_sub(1) else { return self.end() };
            let Some(file) = self.files.get().get(index) else { return self.end() };
            if self.context.bounds.exclude_below(&self.context.order, file) {
                return self.end();
            }
            if self.enter(index).is_some_and(|table| table.seek_to_last()) {
                return self.on_entry();
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
fn open_cursor(
    file: &Arc<TableFile>,
    options: &TableReadOptions,
    record_tombstones: impl FnOnce(Arc<FragmentedTombstones>),
) -> Result<AnyCursor> {
    let opened = file.open_by(options).and_then(|table| {
        if table.is_mapped() {
            options.check_may_read_file()?;
        }
        if let Some(tombstones) = table.tombstones() {
            record_tombstones(tombstones);
        }
        Ok(table.any_cursor(options))
    });
    match &options.skip_damaged {
        None => opened,
        Some(damage) => DamageBearing::over(opened, file, damage).map(AnyCursor::Other),
    }
}

impl Cursor for LevelCursor {
    fn valid(&self) -> bool {
        self.position != Position::Nowhere
    }

    fn seek_to_first(&mut self) -> bool {
        self.error = None;
        let LevelContext { order, bounds, .. } = &*self.context;
        let index = self.files.get().partition_point(|file| bounds.exclude_below(order, file));
        self.before_table(index)
    }

    fn seek_to_last(&mut self) -> bool {
        self.error = None;
        let LevelContext { order, bounds, .. } = &*self.context;
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
        let order = &self.context.order;
        let end = self.files.get().partition_point(|file| order.compare(&file.meta.smallest, target).is_le());
        let Some(index) = end.checked_sub(1) else { return self.end() };
        let Some(file) = self.files.get().get(index) else { return self.end() };
        if self.context.bounds.exclude_below(&self.context.order, file) {
            return self.end();
        }
        file.count_read();
        if self.enter(index).is_some_and(|table| table.seek_for_prev(target)) {
            return self.on_entry();
        }
        if self.table_failed() { self.end() } else { self.last_before(index) }
    }

    #[inline]
    fn next(&mut self) -> bool {
        if self.position == Position::OnEntry && self.table.as_mut().is_some_and(|table| table.next()) {
            return true;
        }
        self.next_table()
    }

    #[inline]
    fn prev(&mut self) -> bool {
        if self.position == Position::OnEntry && self.table.as_mut().is_some_and(|table| table.prev()) {
            return true;
        }
        if self.table_failed() { self.end() } else { self.last_before(self.at) }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self.position {
            Position::OnEntry => self.table.as_ref().map_or(&[], Cursor::key),
            Position::Ahead => self.files.get().get(self.at).map_or(&[], |file| &file.meta.smallest),
            Position::Nowhere => &[],
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self.position {
            Position::OnEntry => self.table.as_ref().map_or(&[], Cursor::value),
            Position::Ahead | Position::Nowhere => &[],
        }
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl MergeChild for LevelCursor {
    #[inline]
    fn is_ahead(&self) -> bool {
        self.position == Position::Ahead
    }

    fn arrive(&mut self) -> bool {
        self.first_from(self.at)
    }
}

#[cfg(test)]
#[path = "level_tests.rs"]
mod tests;
