//! Cursors of tables of every kind. Block-based tables have theirs named: their steps need no virtual call.

use base::{Cursor, Result};

use crate::reader::TableCursor;

/// A cursor over a table's point entries, or over another source of them.
pub enum AnyCursor {
    /// Over a block-based table.
    BlockBased(Box<TableCursor>),
    /// Over anything else.
    Other(Box<dyn Cursor>),
}

impl From<Box<dyn Cursor>> for AnyCursor {
    fn from(cursor: Box<dyn Cursor>) -> Self {
        AnyCursor::Other(cursor)
    }
}

/// Calls a method of the cursor.
macro_rules! of_either {
    ($any:expr, $cursor:ident => $call:expr) => {
        match $any {
            AnyCursor::BlockBased($cursor) => $call,
            AnyCursor::Other($cursor) => $call,
        }
    };
}

impl Cursor for AnyCursor {
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
