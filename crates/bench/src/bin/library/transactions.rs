//! A database with transactions.

use std::path::Path;
use std::ptr;

use base::{Error, ErrorKind, Result};

use super::Options;
use super::call::{Owned, c_bytes, c_path, checked};
use super::table::{Functions, Handle};

/// How transactions keep out of each other's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Conflicts are found at the commit.
    Optimistic,
    /// Keys are locked at the write; deadlocks are looked for.
    Pessimistic,
}

/// An open database with transactions of one kind; closed when dropped.
pub struct TransactionDatabase {
    functions: &'static Functions,
    control: Control,
    handle: *mut Handle,
    writes: Owned,
    /// Of each transaction.
    habits: Owned,
}

// SAFETY: RocksDB's contract: a database may be used by any number of threads at once, without a lock. The option handles are only
// read (see `Owned`).
unsafe impl Send for TransactionDatabase {}
// SAFETY: as for `Send`.
unsafe impl Sync for TransactionDatabase {}

/// A transaction, for one thread at a time. It borrows its database, which must be closed later.
pub struct Transaction<'a> {
    handle: Owned,
    database: &'a TransactionDatabase,
}

impl TransactionDatabase {
    /// # Errors
    /// The error of the library.
    pub fn open(options: &Options, path: &Path, control: Control) -> Result<TransactionDatabase> {
        let functions = options.functions;
        // SAFETY: a create function without arguments, and its destroy function; so for the options below.
        let writes = unsafe { Owned::new((functions.writeoptions_create)(), functions.writeoptions_destroy) }?;
        let (name, options) = (c_path(path)?, options.handle.get());
        let (handle, habits) = match control {
            Control::Optimistic => {
                // SAFETY: as above.
                let habits = unsafe {
                    let made = (functions.optimistictransaction_options_create)();
                    Owned::new(made, functions.optimistictransaction_options_destroy)
                }?;
                let handle = checked(functions, "optimistictransactiondb_open", |failed| {
                    // SAFETY: a live options handle, and a C string alive until the call returns.
                    unsafe { (functions.optimistictransactiondb_open)(options, name.as_ptr(), failed) }
                });
                (handle, habits)
            }
            Control::Pessimistic => {
                // SAFETY: as above; the setter gets a live handle, not used elsewhere yet.
                let (all, habits) = unsafe {
                    let made = (functions.transactiondb_options_create)();
                    let all = Owned::new(made, functions.transactiondb_options_destroy)?;
                    let made = (functions.transaction_options_create)();
                    let mut habits = Owned::new(made, functions.transaction_options_destroy)?;
                    (functions.transaction_options_set_deadlock_detect)(habits.get_mut(), 1);
                    (all, habits)
                };
                let handle = checked(functions, "transactiondb_open", |failed| {
                    // SAFETY: live options handles, and a C string alive until the call returns.
                    unsafe { (functions.transactiondb_open)(options, all.get(), name.as_ptr(), failed) }
                });
                (handle, habits)
            }
        };
        let handle = handle.map_err(|e| e.at_path(path))?;
        if handle.is_null() {
            return Err(Error::new(ErrorKind::Io, "the library returned a null handle without a message").at_path(path));
        }
        Ok(TransactionDatabase { functions, control, handle, writes, habits })
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// `Io`: the library returned none.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        // SAFETY: `start` returns a transaction of its own where it is given none; and its destroy function.
        let handle = unsafe { Owned::new(self.start(ptr::null_mut()), self.functions.transaction_destroy) }?;
        Ok(Transaction { handle, database: self })
    }

    /// Begins a transaction in `old`, or in a new handle if it is null.
    ///
    /// # Safety
    /// `old` is null, or a transaction of this database that no other thread uses.
    unsafe fn start(&self, old: *mut Handle) -> *mut Handle {
        let begin = match self.control {
            Control::Optimistic => self.functions.optimistictransaction_begin,
            Control::Pessimistic => self.functions.transaction_begin,
        };
        // SAFETY: a live database and its options; the caller's promise.
        unsafe { begin(self.handle, self.writes.get(), self.habits.get(), old) }
    }
}

impl Drop for TransactionDatabase {
    fn drop(&mut self) {
        let close = match self.control {
            Control::Optimistic => self.functions.optimistictransactiondb_close,
            Control::Pessimistic => self.functions.transactiondb_close,
        };
        // SAFETY: `open` made it with the same control, transactions borrow this value and are gone, and only this closes it.
        unsafe { close(self.handle) }
    }
}

impl Transaction<'_> {
    /// Begins anew after a commit or a rollback, in the same handle.
    pub fn restart(&mut self) {
        // SAFETY: a transaction of this database, used by no other thread (`&mut self`). It comes back as the same handle.
        unsafe { self.database.start(self.handle.get_mut()) };
    }

    /// # Errors
    /// `Busy`: another transaction is in the way.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (functions, at) = (self.database.functions, self.handle.get_mut());
        checked(functions, "transaction_put", |failed| {
            // SAFETY: a live transaction, used by no other thread (`&mut self`), and two pieces of memory with their lengths.
            unsafe { (functions.transaction_put)(at, c_bytes(key), key.len(), c_bytes(value), value.len(), failed) }
        })
    }

    /// # Errors
    /// `Busy`: another transaction was in the way; nothing was written.
    #[inline]
    pub fn commit(&mut self) -> Result<()> {
        let (functions, at) = (self.database.functions, self.handle.get_mut());
        // SAFETY: as in `put`.
        checked(functions, "transaction_commit", |failed| unsafe { (functions.transaction_commit)(at, failed) })
    }

    /// # Errors
    /// The error of the library.
    pub fn rollback(&mut self) -> Result<()> {
        let (functions, at) = (self.database.functions, self.handle.get_mut());
        // SAFETY: as in `put`.
        checked(functions, "transaction_rollback", |failed| unsafe { (functions.transaction_rollback)(at, failed) })
    }
}
