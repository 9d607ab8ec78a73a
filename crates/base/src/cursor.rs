//! The one way to walk sorted entries: memtables, tables and everything merged from them.

use crate::error::Result;

/// A position among entries sorted by internal key.
///
/// Every positioning method returns whether the cursor now stands on an entry. A cursor that ran into an error stands
/// on none, and [`status`](Cursor::status) tells; whoever sees `false` must ask before believing that it is the end.
/// Deletions and all versions are entries like any other; range tombstones are not among them.
pub trait Cursor: Send {
    fn valid(&self) -> bool;

    fn seek_to_first(&mut self) -> bool;

    fn seek_to_last(&mut self) -> bool;

    /// Moves to the first entry at or after the internal key `target`.
    fn seek(&mut self, target: &[u8]) -> bool;

    /// As [`seek`](Cursor::seek), for whoever takes no entry without the target's prefix: where none has it, the cursor may
    /// stand on none.
    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.seek(target)
    }

    /// Moves to the last entry at or before the internal key `target`.
    fn seek_for_prev(&mut self, target: &[u8]) -> bool;

    /// Moves to the next entry. The cursor must be valid.
    fn next(&mut self) -> bool;

    /// Moves to the entry before. The cursor must be valid.
    fn prev(&mut self) -> bool;

    /// The internal key of the entry, until the cursor moves. Empty where the cursor is not valid.
    fn key(&self) -> &[u8];

    /// The value of the entry, until the cursor moves. Empty where the cursor is not valid.
    fn value(&self) -> &[u8];

    /// The error that ended the walk, if one did.
    fn status(&self) -> Result<()>;
}

impl<C: Cursor + ?Sized> Cursor for Box<C> {
    fn valid(&self) -> bool {
        (**self).valid()
    }
    fn seek_to_first(&mut self) -> bool {
        (**self).seek_to_first()
    }
    fn seek_to_last(&mut self) -> bool {
        (**self).seek_to_last()
    }
    fn seek(&mut self, target: &[u8]) -> bool {
        (**self).seek(target)
    }
    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        (**self).seek_in_prefix(target)
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        (**self).seek_for_prev(target)
    }
    fn next(&mut self) -> bool {
        (**self).next()
    }
    fn prev(&mut self) -> bool {
        (**self).prev()
    }
    fn key(&self) -> &[u8] {
        (**self).key()
    }
    fn value(&self) -> &[u8] {
        (**self).value()
    }
    fn status(&self) -> Result<()> {
        (**self).status()
    }
}

/// A cursor over entries held in memory, already sorted: for tests, and for the small things that need no more.
pub struct VecCursor {
    order: crate::InternalOrder,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: usize,
}

impl VecCursor {
    /// `entries` are (internal key, value), sorted by `order`.
    pub fn new(order: crate::InternalOrder, entries: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let at = entries.len();
        VecCursor { order, entries, at }
    }

    fn entry(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.entries.get(self.at)
    }

    fn stand(&mut self, at: Option<usize>) -> bool {
        self.at = at.unwrap_or(self.entries.len());
        self.valid()
    }
}

impl Cursor for VecCursor {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }
    fn seek_to_first(&mut self) -> bool {
        self.stand(Some(0))
    }
    fn seek_to_last(&mut self) -> bool {
        self.stand(self.entries.len().checked_sub(1))
    }
    fn seek(&mut self, target: &[u8]) -> bool {
        let at = self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_lt());
        self.stand(Some(at))
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        let after = self.entries.partition_point(|(key, _)| self.order.compare(key, target).is_le());
        self.stand(after.checked_sub(1))
    }
    fn next(&mut self) -> bool {
        self.stand(Some(self.at + 1))
    }
    fn prev(&mut self) -> bool {
        self.stand(self.at.checked_sub(1))
    }
    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |(key, _)| key)
    }
    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |(_, value)| value)
    }
    fn status(&self) -> Result<()> {
        Ok(())
    }
}
