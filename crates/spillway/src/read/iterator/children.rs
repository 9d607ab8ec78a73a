//! The child cursors of an iterator and their range tombstones.

use std::sync::Arc;

use base::{Cursor, Result, SeqNo};

use crate::queue::view::ReadView;
use crate::read::ReadContext;
use crate::read::level::{LevelCursor, LevelFiles, UserBounds, open_cursor};
use crate::read::options::ReadOptions;
use crate::read::tombstones::CoverIndex;

/// Cursors over all sources of a view, youngest first. A rank in `cover` is an index into `cursors`.
pub(super) struct Children {
    pub cursors: Vec<Box<dyn Cursor>>,
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
        let options = options.for_tables();
        let order = &context.order;
        let version = &view.version;
        let mut cover = CoverIndex::new(order.user.clone(), seq);
        let mut cursors: Vec<Box<dyn Cursor>> = Vec::new();
        for flushable in view.flushables() {
            if let Some(tombstones) = flushable.tombstones(&options)? {
                cover.add(cursors.len(), tombstones);
            }
            cursors.push(flushable.cursor(&options)?);
        }
        for file in version.level(0).iter().filter(|file| !bounds.exclude(order, file)) {
            let place = cursors.len();
            cursors.push(open_cursor(file, &options, |tombstones| cover.add_table(place, file, tombstones))?);
        }
        for level in (1..version.num_levels()).filter(|&level| !version.level(level).is_empty()) {
            let files = LevelFiles::OfVersion(Arc::clone(version), level);
            let cursor = LevelCursor::new(order.clone(), files, options.clone())
                .within(bounds.clone())
                .feeding(cover.feed(cursors.len()));
            cursors.push(Box::new(cursor));
        }
        Ok(Children { cursors, cover })
    }
}
