//! The common iterator over sorted entries: memtables, tables and their merges.

use crate::error::Result;

/// A position among entries sorted by internal key.
///
/// Every positioning method returns true if the cursor is now on an entry. After an error the cursor is invalid; check
/// [`status`](Cursor::status) before taking `false` for the end. Deletions and all versions are ordinary entries; range
/// tombstones are not included.
pub trait Cursor: Send {
    fn valid(&self) -> bool;

    fn seek_to_first(&mut self) -> bool;

    fn seek_to_last(&mut self) -> bool;

    /// Moves to the first entry at or after the internal key `target`.
    fn seek(&mut self, target: &[u8]) -> bool;

    /// As [`seek`](Cursor::seek), if the caller only wants entries with the target's prefix. The cursor may be invalid
    /// if no entry has the prefix.
    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.seek(target)
    }

    /// Moves to the last entry at or before the internal key `target`.
    fn seek_for_prev(&mut self, target: &[u8]) -> bool;

    /// Moves to the next entry. The cursor must be valid.
    fn next(&mut self) -> bool;

    /// Moves to the previous entry. The cursor must be valid.
    fn prev(&mut self) -> bool;

    /// The internal key of the entry, until the cursor moves. Empty if the cursor is invalid.
    fn key(&self) -> &[u8];

    /// The value of the entry, until the cursor moves. Empty if the cursor is invalid.
    fn value(&self) -> &[u8];

    /// The error that ended the iteration, if any.
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

/// A cursor over sorted entries in memory, for tests and small inputs.
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
