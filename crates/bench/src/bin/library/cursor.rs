//! Iterators.

use base::Result;
use bench::store::Cursor;

use super::Database;
use super::call::{Owned, c_bytes, checked, lent};
use super::table::Functions;

/// An iterator. It borrows its database, which must be closed later.
pub struct Iter<'a> {
    functions: &'static Functions,
    handle: Owned,
    /// Whether it stands on a key. If not, `c.h` does not define steps and reads.
    standing: bool,
    _database: &'a Database,
}

impl<'a> Iter<'a> {
    pub fn new(functions: &'static Functions, handle: Owned, database: &'a Database) -> Self {
        Iter { functions, handle, standing: false, _database: database }
    }

    /// Whether a move ended on a key.
    #[inline]
    fn moved(&mut self) -> bool {
        // SAFETY: a live iterator.
        self.standing = unsafe { (self.functions.iter_valid)(self.handle.get()) != 0 };
        self.standing
    }

    #[inline]
    fn must_stand(&self) {
        assert!(self.standing, "the cursor stands on no key");
    }
}

impl Cursor for Iter<'_> {
    fn seek_to_first(&mut self) -> bool {
        // SAFETY: a live iterator, used by no other thread (`&mut self`); so in all moves.
        unsafe { (self.functions.iter_seek_to_first)(self.handle.get_mut()) };
        self.moved()
    }

    fn seek_to_last(&mut self) -> bool {
        // SAFETY: as in `seek_to_first`.
        unsafe { (self.functions.iter_seek_to_last)(self.handle.get_mut()) };
        self.moved()
    }

    #[inline]
    fn seek(&mut self, key: &[u8]) -> bool {
        // SAFETY: as in `seek_to_first`; the key is a piece of memory with its length.
        unsafe { (self.functions.iter_seek)(self.handle.get_mut(), c_bytes(key), key.len()) };
        self.moved()
    }

    #[inline]
    fn next(&mut self) -> bool {
        self.must_stand();
        // SAFETY: as in `seek_to_first`; it stands on a key (`must_stand`).
        unsafe { (self.functions.iter_next)(self.handle.get_mut()) };
        self.moved()
    }

    #[inline]
    fn prev(&mut self) -> bool {
        self.must_stand();
        // SAFETY: as in `next`.
        unsafe { (self.functions.iter_prev)(self.handle.get_mut()) };
        self.moved()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.must_stand();
        let mut length = 0;
        // SAFETY: a live iterator on a key (`must_stand`); the bytes stay until a move, and a move takes `&mut self`.
        unsafe {
            let at = (self.functions.iter_key)(self.handle.get(), &mut length);
            lent(at, length)
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.must_stand();
        let mut length = 0;
        // SAFETY: as in `key`.
        unsafe {
            let at = (self.functions.iter_value)(self.handle.get(), &mut length);
            lent(at, length)
        }
    }

    fn status(&self) -> Result<()> {
        checked(self.functions, "iter_get_error", |failed| {
            // SAFETY: a live iterator and the place for a message.
            unsafe { (self.functions.iter_get_error)(self.handle.get(), failed) }
        })
    }
}
