//! Batches, with an index and without.

use std::rc::Rc;

use super::held::{Answer, Counted, Held, taken, told};
use super::reads::Reads;
use super::setup::{Library, Setup};
use super::store::{Family, Store};
use crate::library::call::{c_bytes, lent};

/// Changes to be written together.
pub struct Batch {
    pub(super) library: Library,
    pub(super) handle: Counted,
}

/// Changes to be written together, readable before.
pub struct Indexed {
    pub(super) library: Library,
    pub(super) handle: Counted,
}

impl Batch {
    pub fn new(library: Library) -> Answer<Batch> {
        let functions = library.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let handle = unsafe { Held::new((functions.writebatch_create)(), functions.writebatch_destroy, &[])? };
        Ok(Batch { library, handle })
    }

    /// A batch of the same bytes, made anew.
    pub fn copied(&self) -> Answer<Batch> {
        let (library, bytes) = (self.library, self.bytes());
        // SAFETY: bytes with their number, copied by the library; and the destroy function.
        let handle = unsafe {
            let made = (library.calls.writebatch_create_from)(c_bytes(&bytes), bytes.len());
            Held::new(made, library.functions.writebatch_destroy, &[])?
        };
        Ok(Batch { library, handle })
    }

    /// RocksDB's form of it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: a live batch, unchanged while its bytes are copied.
        unsafe { lent((self.library.calls.writebatch_data)(self.handle.at(), &mut length), length).to_vec() }
    }

    pub fn count(&self) -> i32 {
        // SAFETY: a live batch.
        unsafe { (self.library.calls.writebatch_count)(self.handle.at()) }
    }

    pub fn clear(&self) {
        // SAFETY: a live batch.
        unsafe { (self.library.functions.writebatch_clear)(self.handle.at()) }
    }

    pub fn save(&self) {
        // SAFETY: a live batch.
        unsafe { (self.library.calls.writebatch_set_save_point)(self.handle.at()) }
    }

    pub fn roll_back(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live batch.
            unsafe { (self.library.calls.writebatch_rollback_to_save_point)(self.handle.at(), failed) }
        })
    }

    pub fn forget_save(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live batch.
            unsafe { (self.library.calls.writebatch_pop_save_point)(self.handle.at(), failed) }
        })
    }
}

impl Indexed {
    pub fn new(setup: &Setup, overwrite: bool) -> Answer<Indexed> {
        let (library, calls) = (setup.library, setup.library.calls);
        // SAFETY: a comparator that lives for ever, or the function for the usual order; and the destroy function.
        let handle = unsafe {
            let made = match setup.comparator {
                Some(comparator) => {
                    (calls.writebatch_wi_create_with_params)(comparator.at(), 0, overwrite.into(), 0, 0)
                }
                None => (calls.writebatch_wi_create)(0, overwrite.into()),
            };
            Held::new(made, calls.writebatch_wi_destroy, &[])?
        };
        Ok(Indexed { library, handle })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: a live batch, unchanged while its bytes are copied.
        unsafe { lent((self.library.calls.writebatch_wi_data)(self.handle.at(), &mut length), length).to_vec() }
    }

    pub fn count(&self) -> i32 {
        // SAFETY: a live batch.
        unsafe { (self.library.calls.writebatch_wi_count)(self.handle.at()) }
    }

    pub fn clear(&self) {
        // SAFETY: a live batch.
        unsafe { (self.library.calls.writebatch_wi_clear)(self.handle.at()) }
    }

    pub fn save(&self) {
        // SAFETY: a live batch.
        unsafe { (self.library.calls.writebatch_wi_set_save_point)(self.handle.at()) }
    }

    pub fn roll_back(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live batch.
            unsafe { (self.library.calls.writebatch_wi_rollback_to_save_point)(self.handle.at(), failed) }
        })
    }

    /// What the batch alone says of a key.
    pub fn get_own(&self, family: &Family, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        let mut length = 0;
        let value = told(self.library.functions, |failed| {
            // SAFETY: live handles: a batch, options and a family; a key with its length, and two places to write to.
            unsafe {
                (self.library.calls.writebatch_wi_get_from_batch_cf)(
                    self.handle.at(),
                    family.setup.options.at(),
                    family.handle.at(),
                    c_bytes(key),
                    key.len(),
                    &mut length,
                    failed,
                )
            }
        })?;
        // SAFETY: just handed over by the library.
        Ok(unsafe { taken(self.library.functions, value, length) })
    }

    /// A key as it will be once the batch is written.
    pub fn get(&self, store: &Store, reads: &Reads, family: &Family, key: &[u8]) -> Answer<Option<Vec<u8>>> {
        let mut length = 0;
        let value = told(self.library.functions, |failed| {
            // SAFETY: live handles: a batch, a database, options and a family; a key with its length, and two places to write to.
            unsafe {
                (self.library.calls.writebatch_wi_get_from_batch_and_db_cf)(
                    self.handle.at(),
                    store.base.at(),
                    reads.options.at(),
                    family.handle.at(),
                    c_bytes(key),
                    key.len(),
                    &mut length,
                    failed,
                )
            }
        })?;
        // SAFETY: just handed over by the library.
        Ok(unsafe { taken(self.library.functions, value, length) })
    }

    pub(super) fn kept(&self) -> Counted {
        Rc::clone(&self.handle)
    }
}
