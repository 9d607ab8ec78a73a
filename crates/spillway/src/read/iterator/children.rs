//! The child cursors of an iterator and their range tombstones.

use std::sync::Arc;

use base::{Cursor, Result, SeqNo};

use crate::cursor::ReadContext;
use crate::cursor::level::{LevelContext, LevelCursor, LevelFiles, UserBounds};
use crate::cursor::merging::MergeChild;
use crate::cursor::options::ReadOptions;
use crate::cursor::tombstones::CoverIndex;
use crate::queue::view::ReadView;

/// A child: tables, or one of the flushables. A walk over tables alone needs no virtual call.
pub(super) enum Child {
    Tables(LevelCursor),
    Flushable(Box<dyn Cursor>),
}

/// Cursors over all sources of a view, youngest first. A rank in `cover` is an index into `cursors`.
pub(super) struct Children {
    pub cursors: Vec<Child>,
    pub cover: CoverIndex,
}

impl Children {
    pub fn of(
        view: &ReadView,
        context: &ReadContext,
        bounds: &UserBounds,
        seq: SeqNo,
        options: &ReadOptions,
    ) -> Result<Children> {
        let (options, table_filter) = (options.for_tables(), options.table_filter.clone());
        let order = &context.order;
        let version = &view.version;
        let level0 = version.level(0);
        let mut cover = CoverIndex::new(order.user.clone(), seq);
        let levels = || (1..version.num_levels()).filter(|&level| !version.level(level).is_empty());
        let mut cursors = Vec::with_capacity(view.flushables().size_hint().0 + level0.len() + levels().count());
        for flushable in view.flushables() {
            if let Some(tombstones) = flushable.tombstones(&options)? {
                cover.add(cursors.len(), tombstones);
            }
            cursors.push(Child::Flushable(flushable.cursor(&options)?));
        }
        let level0 = level0.iter().filter(|file| !bounds.exclude(order, file)).cloned().map(LevelFiles::One);
        let levels = levels().map(|level| LevelFiles::OfVersion(Arc::clone(version), level));
        let context = LevelContext::new(order.clone(), options).within(bounds.clone()).waiting().feeding(cover.feed());
        let context = Arc::new(context.filtered(table_filter));
        for files in level0.chain(levels) {
            cursors.push(Child::Tables(LevelCursor::new(context.clone(), cursors.len(), files)));
        }
        Ok(Children { cursors, cover })
    }
}

/// Calls a method of the child.
macro_rules! of_either {
    ($child:expr, $cursor:ident => $call:expr) => {
        match $child {
            Child::Tables($cursor) => $call,
            Child::Flushable($cursor) => $call,
        }
    };
}

impl Cursor for Child {
    #[inline]
    fn valid(&self) -> bool {
        of_either!(self, cursor => cursor.valid())
    }

    fn seek_to_first(&mut self) -> bool {
        of_either!(self, cursor => cursor.seek_to_first())
    }

    fn seek_to_last(&mut self) -> bool {
        of_either!(self, cursor => cursor.seek_to_last())
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        of_either!(self, cursor => cursor.seek(target))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        of_either!(self, cursor => cursor.seek_in_prefix(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        of_either!(self, cursor => cursor.seek_for_prev(target))
    }

    #[inline]
    fn next(&mut self) -> bool {
        of_either!(self, cursor => cursor.next())
    }

    #[inline]
    fn prev(&mut self) -> bool {
        of_either!(self, cursor => cursor.prev())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        of_either!(self, cursor => cursor.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        of_either!(self, cursor => cursor.value())
    }

    fn status(&self) -> Result<()> {
        of_either!(self, cursor => cursor.status())
    }
}

impl MergeChild for Child {
    #[inline]
    fn is_ahead(&self) -> bool {
        matches!(self, Child::Tables(tables) if tables.is_ahead())
    }

    fn arrive(&mut self) -> bool {
        match self {
            Child::Tables(tables) => tables.arrive(),
            Child::Flushable(cursor) => cursor.valid(),
        }
    }
}
