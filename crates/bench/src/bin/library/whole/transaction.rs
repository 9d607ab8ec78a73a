//! Transactions of both kinds.

use std::ptr;
use std::rc::Rc;

use super::held::{Answer, Counted, Held, told};
use super::reads::Snapshot;
use super::setup::Library;
use super::store::{Kind, Store};

/// A transaction; rolled back if dropped before its commit.
pub struct Transaction {
    pub(super) library: Library,
    pub(super) handle: Counted,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    pub snapshot: bool,
    pub deadlock_detect: bool,
    pub lock_timeout_ms: i64,
}

impl Transaction {
    /// # Errors
    /// The database knows no transactions.
    pub fn begin(store: &Store, how: Begin) -> Answer<Transaction> {
        let (library, calls) = (store.library, store.library.calls);
        let (at, writes) = (store.whole.at(), store.writes.at().cast_const());
        // SAFETY: a live database of the kind that the functions are for; options made here, and destroyed after the call.
        let made = unsafe {
            match store.kind {
                Kind::Plain | Kind::ReadOnly => return Err("no transactions".to_owned()),
                Kind::Optimistic => {
                    let options = (calls.optimistictransaction_options_create)();
                    (calls.optimistictransaction_options_set_set_snapshot)(options, how.snapshot.into());
                    let made = (calls.optimistictransaction_begin)(at, writes, options, ptr::null_mut());
                    (calls.optimistictransaction_options_destroy)(options);
                    made
                }
                Kind::Pessimistic => {
                    let options = (calls.transaction_options_create)();
                    (calls.transaction_options_set_set_snapshot)(options, how.snapshot.into());
                    (calls.transaction_options_set_deadlock_detect)(options, how.deadlock_detect.into());
                    (calls.transaction_options_set_lock_timeout)(options, how.lock_timeout_ms);
                    let made = (calls.transaction_begin)(at, writes, options, ptr::null_mut());
                    (calls.transaction_options_destroy)(options);
                    made
                }
            }
        };
        // SAFETY: just made, with its destroy function; it is destroyed before its database.
        let handle =
            unsafe { Held::new(made, calls.transaction_destroy, &[&store.whole, &store.base, &store.writes])? };
        Ok(Transaction { library, handle })
    }

    pub fn commit(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live transaction.
            unsafe { (self.library.calls.transaction_commit)(self.handle.at(), failed) }
        })
    }

    pub fn roll_back(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live transaction.
            unsafe { (self.library.calls.transaction_rollback)(self.handle.at(), failed) }
        })
    }

    pub fn save(&self) {
        // SAFETY: a live transaction.
        unsafe { (self.library.calls.transaction_set_savepoint)(self.handle.at()) }
    }

    pub fn roll_back_to_save(&self) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: a live transaction.
            unsafe { (self.library.calls.transaction_rollback_to_savepoint)(self.handle.at(), failed) }
        })
    }

    /// The snapshot taken when it began, if one was.
    pub fn snapshot(&self) -> Option<Snapshot> {
        // SAFETY: a live transaction; the handle made is freed before it, and is null without a snapshot. RocksDB frees only the
        // memory of the handle; the snapshot is the transaction's.
        unsafe {
            let at = (self.library.calls.transaction_get_snapshot)(self.handle.at());
            let free = self.library.functions.free;
            Held::new(at.cast_mut(), free, &[&self.handle]).ok().map(Snapshot::of_transaction)
        }
    }

    pub(super) fn kept(&self) -> Counted {
        Rc::clone(&self.handle)
    }
}
