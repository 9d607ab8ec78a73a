//! Handles that end with their database.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::boundary::handle::{self, Held};

/// Handles that Java does not close after their database: iterators, snapshots, the default family. They would pin
/// tables and disk space for ever.
#[derive(Clone, Default)]
pub struct Children(Arc<Mutex<BTreeMap<i64, fn(i64)>>>);

impl Children {
    /// A handle that ends with the database, or before it by `release`.
    pub fn adopt<T: Held>(&self, object: Box<T>) -> i64 {
        let handle = handle::open(object);
        self.0.lock().insert(handle, |handle| drop(handle::close::<T>(handle)));
        handle
    }

    /// Forgets a handle that was closed by itself.
    pub fn release(&self, handle: i64) {
        self.0.lock().remove(&handle);
    }

    pub fn close(&self) {
        let children = std::mem::take(&mut *self.0.lock());
        children.into_iter().for_each(|(handle, close)| close(handle));
    }
}
