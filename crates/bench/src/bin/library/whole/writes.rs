//! Changes of single keys and ranges, made to a database, a batch, a batch with an index, or a transaction.

use super::batch::{Batch, Indexed};
use super::held::{Answer, told};
use super::store::{Family, Kind, Store};
use super::transaction::Transaction;
use crate::library::call::c_bytes;

/// A change.
#[derive(Clone, PartialEq)]
pub enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

const NOT_THERE: &str = "no such call";

impl Store {
    /// Under locks in a database of pessimistic transactions, where the C API has such a call.
    pub fn change(&self, family: &Family, change: &Change, unlogged: bool) -> Answer<()> {
        let calls = self.library.calls;
        let options = if unlogged { &self.unlogged } else { &self.writes }.at().cast_const();
        let (locked, at) = match self.kind {
            Kind::Pessimistic => (true, self.whole.at()),
            _ => (false, self.base.at()),
        };
        let family = family.handle.at();
        told(self.library.functions, |failed| {
            // SAFETY: live handles: a database of the kind that the function is for, options, and a family of it; pieces of memory
            // with their lengths.
            unsafe {
                match change {
                    Change::Put(key, value) => {
                        let call = if locked { calls.transactiondb_put_cf } else { calls.put_cf };
                        call(at, options, family, c_bytes(key), key.len(), c_bytes(value), value.len(), failed);
                    }
                    Change::Merge(key, value) => {
                        let call = if locked { calls.transactiondb_merge_cf } else { calls.merge_cf };
                        call(at, options, family, c_bytes(key), key.len(), c_bytes(value), value.len(), failed);
                    }
                    Change::Delete(key) => {
                        let call = if locked { calls.transactiondb_delete_cf } else { calls.delete_cf };
                        call(at, options, family, c_bytes(key), key.len(), failed);
                    }
                    Change::SingleDelete(key) => {
                        (calls.singledelete_cf)(self.base.at(), options, family, c_bytes(key), key.len(), failed);
                    }
                    Change::DeleteRange(from, to) => {
                        let (base, from_length, to_length) = (self.base.at(), from.len(), to.len());
                        let (from, to) = (c_bytes(from), c_bytes(to));
                        (calls.delete_range_cf)(base, options, family, from, from_length, to, to_length, failed);
                    }
                }
            }
        })
    }

    /// Writes a batch.
    pub fn write(&self, batch: &Batch, unlogged: bool) -> Answer<()> {
        let (functions, calls) = (self.library.functions, self.library.calls);
        let options = if unlogged { &self.unlogged } else { &self.writes }.at().cast_const();
        told(functions, |failed| {
            // SAFETY: live handles: a database of the kind that the function is for, options, and a batch.
            unsafe {
                match self.kind {
                    Kind::Pessimistic => {
                        (calls.transactiondb_write)(self.whole.at(), options, batch.handle.at(), failed);
                    }
                    Kind::Optimistic => {
                        (calls.optimistictransactiondb_write)(self.whole.at(), options, batch.handle.at(), failed);
                    }
                    _ => (functions.write)(self.base.at(), options, batch.handle.at(), failed),
                }
            }
        })
    }

    /// Writes a batch with an index.
    pub fn write_indexed(&self, batch: &Indexed) -> Answer<()> {
        told(self.library.functions, |failed| {
            // SAFETY: live handles: a database, options, and a batch.
            unsafe {
                let options = self.writes.at().cast_const();
                (self.library.calls.write_writebatch_wi)(self.base.at(), options, batch.handle.at(), failed);
            }
        })
    }
}

impl Batch {
    pub fn change(&self, family: &Family, change: &Change) -> Answer<()> {
        let (calls, batch, family) = (self.library.calls, self.handle.at(), family.handle.at());
        // SAFETY: live handles: a batch and a family; pieces of memory with their lengths.
        unsafe {
            match change {
                Change::Put(key, value) => {
                    (calls.writebatch_put_cf)(batch, family, c_bytes(key), key.len(), c_bytes(value), value.len())
                }
                Change::Merge(key, value) => {
                    (calls.writebatch_merge_cf)(batch, family, c_bytes(key), key.len(), c_bytes(value), value.len())
                }
                Change::Delete(key) => (calls.writebatch_delete_cf)(batch, family, c_bytes(key), key.len()),
                Change::DeleteRange(from, to) => {
                    (calls.writebatch_delete_range_cf)(batch, family, c_bytes(from), from.len(), c_bytes(to), to.len())
                }
                Change::SingleDelete(_) => return Err(NOT_THERE.to_owned()),
            }
        }
        Ok(())
    }
}

impl Indexed {
    /// Range deletions and single deletions are left out.
    pub fn change(&self, family: &Family, change: &Change) -> Answer<()> {
        let (calls, batch, family) = (self.library.calls, self.handle.at(), family.handle.at());
        // SAFETY: live handles: a batch and a family; pieces of memory with their lengths.
        unsafe {
            match change {
                Change::Put(key, value) => {
                    (calls.writebatch_wi_put_cf)(batch, family, c_bytes(key), key.len(), c_bytes(value), value.len())
                }
                Change::Merge(key, value) => {
                    (calls.writebatch_wi_merge_cf)(batch, family, c_bytes(key), key.len(), c_bytes(value), value.len())
                }
                Change::Delete(key) => (calls.writebatch_wi_delete_cf)(batch, family, c_bytes(key), key.len()),
                Change::SingleDelete(_) | Change::DeleteRange(..) => return Err(NOT_THERE.to_owned()),
            }
        }
        Ok(())
    }
}

impl Transaction {
    /// Range deletions and single deletions are left out.
    pub fn change(&self, family: &Family, change: &Change) -> Answer<()> {
        let (calls, at, family) = (self.library.calls, self.handle.at(), family.handle.at());
        told(self.library.functions, |failed| {
            // SAFETY: live handles: a transaction and a family; pieces of memory with their lengths.
            unsafe {
                match change {
                    Change::Put(key, value) => (calls.transaction_put_cf)(
                        at,
                        family,
                        c_bytes(key),
                        key.len(),
                        c_bytes(value),
                        value.len(),
                        failed,
                    ),
                    Change::Merge(key, value) => (calls.transaction_merge_cf)(
                        at,
                        family,
                        c_bytes(key),
                        key.len(),
                        c_bytes(value),
                        value.len(),
                        failed,
                    ),
                    Change::Delete(key) => {
                        (calls.transaction_delete_cf)(at, family, c_bytes(key), key.len(), failed);
                    }
                    Change::SingleDelete(_) | Change::DeleteRange(..) => return Err(NOT_THERE.to_owned()),
                }
            }
            Ok(())
        })?
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
        match self {
            Change::Put(key, value) => write!(to, "put {} {}", shown(key), shown(value)),
            Change::Delete(key) => write!(to, "delete {}", shown(key)),
            Change::SingleDelete(key) => write!(to, "single_delete {}", shown(key)),
            Change::Merge(key, value) => write!(to, "merge {} {}", shown(key), shown(value)),
            Change::DeleteRange(from, end) => write!(to, "delete_range {} {}", shown(from), shown(end)),
        }
    }
}
