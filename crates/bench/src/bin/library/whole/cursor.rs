//! Iterators over a database, a transaction, or a batch above a database.

use super::batch::Indexed;
use super::held::{Answer, Counted, Held, told};
use super::reads::Reads;
use super::setup::Library;
use super::store::{Family, Store};
use super::transaction::Transaction;
use crate::library::call::{c_bytes, lent};
use crate::library::table::Handle;

/// An iterator.
pub struct Cursor {
    library: Library,
    handle: Counted,
    /// Bounds and snapshot, which outlive it.
    _reads: Reads,
}

impl Cursor {
    pub fn over(store: &Store, reads: &Reads, family: &Family) -> Answer<Cursor> {
        // SAFETY: live handles: a database, options and a family.
        let made = unsafe { created(store, reads, family) };
        Cursor::new(made, reads, &[&family.handle, &store.base])
    }

    pub fn over_transaction(transaction: &Transaction, reads: &Reads, family: &Family) -> Answer<Cursor> {
        let call = reads.library.calls.transaction_create_iterator_cf;
        // SAFETY: live handles: a transaction, options and a family.
        let made = unsafe { call(transaction.handle.at(), reads.options.at(), family.handle.at()) };
        Cursor::new(made, reads, &[&family.handle, &transaction.kept()])
    }

    pub fn over_batch(store: &Store, batch: &Indexed, reads: &Reads, family: &Family) -> Answer<Cursor> {
        let call = reads.library.calls.writebatch_wi_create_iterator_with_base_cf_readopts;
        // SAFETY: live handles: a batch, an iterator made here, which becomes part of the new one, a family and options.
        let made = unsafe {
            let below = created(store, reads, family);
            call(batch.handle.at(), below, family.handle.at(), reads.options.at())
        };
        Cursor::new(made, reads, &[&family.handle, &store.base, &batch.kept()])
    }

    fn new(made: *mut Handle, reads: &Reads, keeps: &[&Counted]) -> Answer<Cursor> {
        let mut keeps = keeps.to_vec();
        keeps.push(&reads.options);
        // SAFETY: just made, with its destroy function; it is destroyed before what it reads.
        let handle = unsafe { Held::new(made, reads.library.functions.iter_destroy, &keeps)? };
        Ok(Cursor { library: reads.library, handle, _reads: reads.clone() })
    }

    pub fn seek_to_first(&self) {
        // SAFETY: a live iterator, used by one thread; so in all moves.
        unsafe { (self.library.functions.iter_seek_to_first)(self.handle.at()) }
    }

    pub fn seek_to_last(&self) {
        // SAFETY: as in `seek_to_first`.
        unsafe { (self.library.functions.iter_seek_to_last)(self.handle.at()) }
    }

    pub fn seek(&self, key: &[u8]) {
        // SAFETY: as in `seek_to_first`; a key with its length.
        unsafe { (self.library.functions.iter_seek)(self.handle.at(), c_bytes(key), key.len()) }
    }

    pub fn seek_back(&self, key: &[u8]) {
        // SAFETY: as in `seek`.
        unsafe { (self.library.calls.iter_seek_for_prev)(self.handle.at(), c_bytes(key), key.len()) }
    }

    /// Does nothing where it stands on no key: `c.h` does not define such a step.
    pub fn next(&self) {
        if self.stands() {
            // SAFETY: as in `seek_to_first`; it stands on a key.
            unsafe { (self.library.functions.iter_next)(self.handle.at()) }
        }
    }

    /// As [`next`](Self::next).
    pub fn prev(&self) {
        if self.stands() {
            // SAFETY: as in `next`.
            unsafe { (self.library.functions.iter_prev)(self.handle.at()) }
        }
    }

    pub fn refresh(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live iterator.
            unsafe { (self.library.calls.iter_refresh)(self.handle.at(), failed) }
        })
    }

    fn stands(&self) -> bool {
        // SAFETY: a live iterator.
        unsafe { (self.library.functions.iter_valid)(self.handle.at()) != 0 }
    }

    /// Copies of key and value where it stands, if on a key.
    pub fn at(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        if !self.stands() {
            return None;
        }
        let (functions, at) = (self.library.functions, self.handle.at());
        let (mut key_length, mut value_length) = (0, 0);
        // SAFETY: a live iterator on a key; the bytes are copied before its next move.
        unsafe {
            let key = (functions.iter_key)(at, &mut key_length);
            let value = (functions.iter_value)(at, &mut value_length);
            Some((lent(key, key_length).to_vec(), lent(value, value_length).to_vec()))
        }
    }

    pub fn status(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live iterator.
            unsafe { (self.library.functions.iter_get_error)(self.handle.at(), failed) }
        })
    }
}

/// # Safety
/// Nothing: all handles live while they are borrowed. The iterator made has to be destroyed before them.
unsafe fn created(store: &Store, reads: &Reads, family: &Family) -> *mut Handle {
    let call = reads.library.calls.create_iterator_cf;
    // SAFETY: live handles: a database, options and a family.
    unsafe { call(store.base.at(), reads.options.at(), family.handle.at()) }
}
