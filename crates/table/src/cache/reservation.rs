//! The cache's budget: capacity less bytes reserved for memory held elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct Budget {
    capacity: AtomicUsize,
    reserved: AtomicUsize,
}

impl Budget {
    pub(super) fn new(capacity: usize) -> Self {
        Budget { capacity: AtomicUsize::new(capacity), reserved: AtomicUsize::new(0) }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity.load(Relaxed)
    }

    pub(super) fn set_capacity(&self, bytes: usize) {
        self.capacity.store(bytes, Relaxed);
    }

    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    /// Bytes left for entries.
    pub(super) fn available(&self) -> usize {
        self.capacity().saturating_sub(self.reserved())
    }
}

/// Memory held elsewhere and charged to the cache until the reservation is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    pub(super) fn new(budget: &Arc<Budget>, bytes: usize) -> Self {
        budget.reserved.fetch_add(bytes, Relaxed);
        Reservation { budget: budget.clone(), bytes }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.reserved.fetch_sub(self.bytes, Relaxed);
    }
}
