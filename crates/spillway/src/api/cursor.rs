//! A cursor: moves freely, and lends keys and values.

use base::Result;

use crate::api::family::Family;
use crate::api::range::KeyRange;
use crate::api::walk::{Start, Walk};
use crate::cursor::options::ReadOptions;

/// A position among entries of a family, as of the call that made the cursor. It moves in both directions, and lends
/// key and value without a copy until the next move.
///
/// Moves return whether there is an entry. A new cursor stands on none. Off the entries `next` and `prev` do not move.
///
/// ```
/// # fn main() -> spillway::Result<()> {
/// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
/// db.put("a", "1")?;
/// db.put("b", "2")?;
/// let mut cursor = db.cursor(..)?;
/// let mut bytes = 0;
/// let mut found = cursor.seek("a")?;
/// while found {
///     bytes += cursor.key().len() + cursor.value().len();
///     found = cursor.next()?;
/// }
/// assert_eq!(bytes, 4);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of moves: `Corruption`, `Io` of a table; `Closed` after [`Db::close`](crate::Db::close). The cursor then stands on
/// no entry, and can seek again.
pub struct Cursor(Walk);

impl Cursor {
    pub(super) fn new(family: &Family, range: impl KeyRange, options: ReadOptions) -> Result<Cursor> {
        Start::new(family, range, options)?.walk().map(Cursor)
    }

    /// Moves to the first entry of the range. Errors as of [`Cursor`].
    pub fn first(&mut self) -> Result<bool> {
        self.0.first()
    }

    /// Moves to the last entry of the range. Errors as of [`Cursor`].
    pub fn last(&mut self) -> Result<bool> {
        self.0.last()
    }

    /// Moves to the first entry at or after `key`. Errors as of [`Cursor`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.0.seek(key.as_ref())
    }

    /// Moves to the last entry at or before `key`. Errors as of [`Cursor`].
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.0.seek_back(key.as_ref())
    }

    /// Moves to the next entry. Errors as of [`Cursor`].
    #[expect(clippy::should_implement_trait, reason = "it lends from itself, which an Iterator cannot")]
    pub fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    /// Moves to the previous entry. Errors as of [`Cursor`].
    pub fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    /// Whether the cursor stands on an entry.
    pub fn is_on_entry(&self) -> bool {
        self.0.is_on_entry()
    }

    /// The key under the cursor; empty off the entries.
    pub fn key(&self) -> &[u8] {
        self.0.key()
    }

    /// The value under the cursor; empty off the entries.
    pub fn value(&self) -> &[u8] {
        self.0.value()
    }
}
