//! Lookups, and what they see.

use std::ffi::c_char;
use std::ptr;
use std::rc::Rc;

use super::held::{Answer, Counted, Held, taken, told, unpinned};
use super::setup::Library;
use super::store::{Family, Kind, Store};
use super::transaction::Transaction;
use crate::library::call::{c_bytes, take_text};
use crate::library::table::{Bytes, Handle};

/// A state of the database.
#[derive(Clone)]
pub struct Snapshot(Rc<Seen>);

enum Seen {
    Own { library: Library, at: *const Handle, base: Counted },
    Transaction(Counted),
}

impl Snapshot {
    pub(super) fn of_transaction(handle: Counted) -> Snapshot {
        Snapshot(Rc::new(Seen::Transaction(handle)))
    }

    fn at(&self) -> *const Handle {
        match &*self.0 {
            Seen::Own { at, .. } => *at,
            Seen::Transaction(handle) => handle.at(),
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        if let Seen::Own { library, at, base } = self {
            // SAFETY: a live database and a snapshot of it, not used afterwards.
            unsafe { (library.calls.release_snapshot)(base.at(), *at) }
        }
    }
}

/// How a lookup asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Single,
    Pinned,
    Several,
    Batched,
}

/// What reads are given.
#[derive(Clone)]
pub struct Reads {
    pub(super) library: Library,
    pub(super) options: Counted,
    /// Outlives the options.
    pub(super) snapshot: Option<Snapshot>,
    /// Bounds of iterators, lent to the library while the options live.
    bounds: Rc<Bounds>,
}

#[derive(Default)]
struct Bounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Reads {
    pub fn new(library: Library, snapshot: Option<Snapshot>) -> Answer<Reads> {
        let functions = library.functions;
        // SAFETY: a create function without arguments, and its destroy function; a live snapshot.
        let options = unsafe {
            let options = Held::new((functions.readoptions_create)(), functions.readoptions_destroy, &[])?;
            if let Some(snapshot) = &snapshot {
                (library.calls.readoptions_set_snapshot)(options.at(), snapshot.at());
            }
            options
        };
        Ok(Reads { library, options, snapshot, bounds: Rc::default() })
    }

    /// Bounds iterators.
    #[must_use]
    pub fn between(mut self, lower: Option<Vec<u8>>, upper: Option<Vec<u8>>) -> Reads {
        let calls = self.library.calls;
        self.bounds = Rc::new(Bounds { lower, upper });
        let at = self.options.at();
        // SAFETY: live options; keys with their lengths, which live as long as they do.
        unsafe {
            if let Some(key) = &self.bounds.lower {
                (calls.readoptions_set_iterate_lower_bound)(at, c_bytes(key), key.len());
            }
            if let Some(key) = &self.bounds.upper {
                (calls.readoptions_set_iterate_upper_bound)(at, c_bytes(key), key.len());
            }
        }
        self
    }

    /// How iterators regard prefixes, and read.
    #[must_use]
    pub fn ordered(self, total_order: bool, same_prefix: bool, pinned: bool, readahead: usize) -> Reads {
        let (calls, at) = (self.library.calls, self.options.at());
        // SAFETY: live options.
        unsafe {
            (calls.readoptions_set_total_order_seek)(at, total_order.into());
            (calls.readoptions_set_prefix_same_as_start)(at, same_prefix.into());
            (calls.readoptions_set_pin_data)(at, pinned.into());
            (calls.readoptions_set_readahead_size)(at, readahead);
        }
        self
    }
}

/// Keys as the C API takes them.
fn pointers(keys: &[Vec<u8>]) -> (Vec<Bytes>, Vec<usize>) {
    keys.iter().map(|key| (c_bytes(key), key.len())).unzip()
}

/// What was found of a key.
pub type Found = Answer<Option<Vec<u8>>>;

impl Store {
    pub fn snapshot(&self) -> Snapshot {
        let library = self.library;
        // SAFETY: a live database, which the snapshot keeps open.
        let at = unsafe { (library.calls.create_snapshot)(self.base.at()) };
        Snapshot(Rc::new(Seen::Own { library, at, base: Rc::clone(&self.base) }))
    }

    pub fn get(&self, reads: &Reads, family: &Family, keys: &[Vec<u8>], how: How) -> Vec<Found> {
        match how {
            How::Single => keys.iter().map(|key| self.single(reads, family, key)).collect(),
            How::Pinned => keys.iter().map(|key| self.pinned(reads, family, key)).collect(),
            How::Several => self.several(reads, family, keys),
            How::Batched => self.batched(reads, family, keys),
        }
    }

    fn single(&self, reads: &Reads, family: &Family, key: &[u8]) -> Found {
        let (functions, calls) = (self.library.functions, self.library.calls);
        let (at, call) = match self.kind {
            Kind::Pessimistic => (self.whole.at(), calls.transactiondb_get_cf),
            _ => (self.base.at(), calls.get_cf),
        };
        let mut length = 0;
        // SAFETY: live handles: a database of the kind that the function is for, options and a family; a key with its length, two
        // places to write to; and what was just handed over.
        unsafe {
            let value = told(functions, |failed| {
                let options = reads.options.at().cast_const();
                call(at, options, family.handle.at(), c_bytes(key), key.len(), &mut length, failed)
            })?;
            Ok(taken(functions, value, length))
        }
    }

    fn pinned(&self, reads: &Reads, family: &Family, key: &[u8]) -> Found {
        let functions = self.library.functions;
        // SAFETY: live handles: a database, options and a family; a key with its length; and what was just made.
        unsafe {
            let value = told(functions, |failed| {
                let (base, options) = (self.base.at(), reads.options.at().cast_const());
                (self.library.calls.get_pinned_cf)(base, options, family.handle.at(), c_bytes(key), key.len(), failed)
            })?;
            Ok(unpinned(functions, value))
        }
    }

    fn several(&self, reads: &Reads, family: &Family, keys: &[Vec<u8>]) -> Vec<Found> {
        let call = self.library.calls.multi_get_cf;
        // SAFETY: a live database, and the function for it.
        unsafe { several(self.library, call, self.base.at(), reads, family, keys) }
    }

    fn batched(&self, reads: &Reads, family: &Family, keys: &[Vec<u8>]) -> Vec<Found> {
        let functions = self.library.functions;
        let (starts, lengths) = pointers(keys);
        let mut values: Vec<*mut Handle> = vec![ptr::null_mut(); keys.len()];
        let mut errors: Vec<*mut c_char> = vec![ptr::null_mut(); keys.len()];
        // SAFETY: live handles: a database, options and a family; as many keys, and places for values and errors, as stated; and
        // what was just made.
        unsafe {
            (functions.batched_multi_get_cf)(
                self.base.at(),
                reads.options.at(),
                family.handle.at(),
                keys.len(),
                starts.as_ptr(),
                lengths.as_ptr(),
                values.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
            let found = values.into_iter().zip(errors);
            found
                .map(|(value, error)| match error.is_null() {
                    true => Ok(unpinned(functions, value)),
                    false => Err(take_text(functions, error)),
                })
                .collect()
        }
    }
}

type MultiGet = unsafe extern "C" fn(
    *mut Handle,
    *const Handle,
    *const *const Handle,
    usize,
    *const Bytes,
    *const usize,
    *mut *mut c_char,
    *mut usize,
    *mut *mut c_char,
);

/// # Safety
/// `of` is a live handle of the kind that `call` is for.
unsafe fn several(
    library: Library,
    call: MultiGet,
    of: *mut Handle,
    reads: &Reads,
    family: &Family,
    keys: &[Vec<u8>],
) -> Vec<Found> {
    let functions = library.functions;
    let (starts, lengths) = pointers(keys);
    let families = vec![family.handle.at().cast_const(); keys.len()];
    let mut values: Vec<*mut c_char> = vec![ptr::null_mut(); keys.len()];
    let mut sizes = vec![0; keys.len()];
    let mut errors: Vec<*mut c_char> = vec![ptr::null_mut(); keys.len()];
    // SAFETY: the caller's promise; live options and families; as many keys, families, and places for values, lengths and errors,
    // as stated; and what was just handed over.
    unsafe {
        call(
            of,
            reads.options.at(),
            families.as_ptr(),
            keys.len(),
            starts.as_ptr(),
            lengths.as_ptr(),
            values.as_mut_ptr(),
            sizes.as_mut_ptr(),
            errors.as_mut_ptr(),
        );
        let found = values.into_iter().zip(sizes).zip(errors);
        found
            .map(|((value, size), error)| match error.is_null() {
                true => Ok(taken(functions, value, size)),
                false => Err(take_text(functions, error)),
            })
            .collect()
    }
}

impl Transaction {
    pub fn get(&self, reads: &Reads, family: &Family, keys: &[Vec<u8>], how: How) -> Vec<Found> {
        match how {
            How::Single => keys.iter().map(|key| self.single(reads, family, key)).collect(),
            How::Pinned => keys.iter().map(|key| self.pinned(reads, family, key)).collect(),
            How::Several | How::Batched => {
                let call = self.library.calls.transaction_multi_get_cf;
                // SAFETY: a live transaction, and the function for it.
                unsafe { several(self.library, call, self.handle.at(), reads, family, keys) }
            }
        }
    }

    fn single(&self, reads: &Reads, family: &Family, key: &[u8]) -> Found {
        let (functions, mut length) = (self.library.functions, 0);
        // SAFETY: live handles: a transaction, options and a family; a key with its length, two places to write to; and what was
        // just handed over.
        unsafe {
            let value = told(functions, |failed| {
                let (at, options) = (self.handle.at(), reads.options.at().cast_const());
                let call = self.library.calls.transaction_get_cf;
                call(at, options, family.handle.at(), c_bytes(key), key.len(), &mut length, failed)
            })?;
            Ok(taken(functions, value, length))
        }
    }

    fn pinned(&self, reads: &Reads, family: &Family, key: &[u8]) -> Found {
        let functions = self.library.functions;
        // SAFETY: live handles: a transaction, options and a family; a key with its length; and what was just made.
        unsafe {
            let value = told(functions, |failed| {
                let (at, options) = (self.handle.at(), reads.options.at().cast_const());
                let call = self.library.calls.transaction_get_pinned_cf;
                call(at, options, family.handle.at(), c_bytes(key), key.len(), failed)
            })?;
            Ok(unpinned(functions, value))
        }
    }

    /// Reads a key and claims it.
    pub fn get_for_update(&self, reads: &Reads, family: &Family, key: &[u8], exclusive: bool) -> Found {
        let (functions, mut length) = (self.library.functions, 0);
        // SAFETY: as in `single`.
        unsafe {
            let value = told(functions, |failed| {
                let (at, options) = (self.handle.at(), reads.options.at().cast_const());
                let (call, length) = (self.library.calls.transaction_get_for_update_cf, &mut length);
                call(at, options, family.handle.at(), c_bytes(key), key.len(), length, exclusive.into(), failed)
            })?;
            Ok(taken(functions, value, length))
        }
    }
}
