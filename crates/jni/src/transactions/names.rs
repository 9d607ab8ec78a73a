//! The open transactions of a database by name.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// A transaction's handle.
struct Entry {
    handle: i64,
    is_prepared: bool,
}

/// Transactions with a name and a handle.
#[derive(Default)]
pub struct Named(Mutex<BTreeMap<Vec<u8>, Entry>>);

impl Named {
    pub fn add(&self, name: &[u8], handle: i64, is_prepared: bool) {
        self.0.lock().insert(name.to_vec(), Entry { handle, is_prepared });
    }

    pub fn set_prepared(&self, name: &[u8], is_prepared: bool) {
        if let Some(entry) = self.0.lock().get_mut(name) {
            entry.is_prepared = is_prepared;
        }
    }

    pub fn forget(&self, name: &[u8]) {
        self.0.lock().remove(name);
    }

    pub fn find(&self, name: &[u8]) -> Option<i64> {
        self.0.lock().get(name).map(|entry| entry.handle)
    }

    pub fn prepared(&self) -> Vec<i64> {
        self.0.lock().values().filter(|entry| entry.is_prepared).map(|entry| entry.handle).collect()
    }
}
