//! Batches that can be read before they are written.

use base::Result;

use super::Options;
use super::call::{Owned, c_bytes, checked, lent};
use super::table::Functions;

/// A batch with an index; a key put twice has its last value.
pub struct IndexedBatch<'a> {
    functions: &'static Functions,
    handle: Owned,
    /// Of whose comparator it is.
    options: &'a Options,
}

impl<'a> IndexedBatch<'a> {
    /// # Errors
    /// `Io`: the library returned none.
    pub fn new(options: &'a Options) -> Result<IndexedBatch<'a>> {
        let functions = options.functions;
        // SAFETY: a create function that takes a size and a flag, and its destroy function.
        let handle = unsafe { Owned::new((functions.writebatch_wi_create)(0, 1), functions.writebatch_wi_destroy) }?;
        Ok(IndexedBatch { functions, handle, options })
    }

    pub fn clear(&mut self) {
        // SAFETY: a live batch, used by no other thread (`&mut self`); so in all changes.
        unsafe { (self.functions.writebatch_wi_clear)(self.handle.get_mut()) };
    }

    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let (at, put) = (self.handle.get_mut(), self.functions.writebatch_wi_put);
        // SAFETY: as in `clear`; two pieces of memory with their lengths.
        unsafe { put(at, c_bytes(key), key.len(), c_bytes(value), value.len()) };
    }

    /// Whether the batch has the key; `see` gets its value.
    ///
    /// # Errors
    /// The error of the library.
    #[inline]
    pub fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let (functions, at, options) = (self.functions, self.handle.get_mut(), self.options.handle.get());
        let mut length = 0;
        let value = checked(functions, "writebatch_wi_get_from_batch", |failed| {
            // SAFETY: as in `clear`; a piece of memory with its length, and places for a length and a message.
            unsafe {
                (functions.writebatch_wi_get_from_batch)(at, options, c_bytes(key), key.len(), &mut length, failed)
            }
        })?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: the call allocated the value, of that length, for the caller, who frees it once.
        unsafe {
            see(lent(value, length));
            (functions.free)(value.cast());
        }
        Ok(true)
    }
}
