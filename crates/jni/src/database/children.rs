//! Handles that end with their database.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::boundary::handle::{self, Held};

/// Handles that Java does not close after their database: iterators, snapshots, the default family. They would pin
/// tables and disk space for ever.
#[derive(Clone, Default)]
pub struct Children(Arc<Mutex<BTreeMap<i64, Close>>>);

/// Closes a handle of some type.
type Close = fn(i64);

/// An object that knows its database, to be closed before it.
pub trait Child: Held {
    fn parent(&self) -> &Children;

    /// Closes a handle; nothing if its database closed it.
    fn close(handle: i64) {
        drop(Self::take(handle));
    }

    /// The object of a handle, which is closed.
    fn take(handle: i64) -> Option<Box<Self>> {
        let child = handle::close::<Self>(handle)?;
        child.parent().0.lock().remove(&handle);
        Some(child)
    }
}

impl Children {
    /// A handle that ends with the database at the latest.
    pub fn adopt<T: Held>(&self, object: Box<T>) -> i64 {
        let handle = handle::open(object);
        self.0.lock().insert(handle, |handle| drop(handle::close::<T>(handle)));
        handle
    }

    /// Closes a handle before its database; false if it was closed.
    pub fn release<T: Held>(&self, handle: i64) -> bool {
        self.0.lock().remove(&handle);
        handle::close::<T>(handle).is_some()
    }

    pub fn close(&self) {
        let children = std::mem::take(&mut *self.0.lock());
        children.into_iter().for_each(|(handle, close)| close(handle));
    }
}
