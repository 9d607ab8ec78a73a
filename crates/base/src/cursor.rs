//! The common iterator over sorted entries: memtables, tables and their merges.

use crate::error::Result;

/// A position among entries sorted by internal key.
///
/// Every positioning method returns true if the cursor is now on an entry. After an error the cursor is invalid; check
/// [`status`](Cursor::status) before taking `false` for the end. Deletions and all versions are ordinary entries; range
/// tombstones are not included.
pub trait Cursor: Send {
    /// True on an entry.
    fn valid(&self) -> bool;

    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> bool;

    /// Moves to the last entry.
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
