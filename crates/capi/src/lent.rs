//! Handles of things that belong to another handle. C frees such a handle by `free`, which runs no destructor: so it is a
//! number, and the thing stands in a list until its owner takes it out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::boundary::call::die;

/// Lent things by number.
pub struct Lender<T: 'static> {
    things: RwLock<BTreeMap<u64, T>>,
    last: AtomicU64,
}

/// The owner's part: dropped, it ends the loan.
pub struct Loan<T: 'static> {
    lender: &'static Lender<T>,
    number: u64,
}

impl<T: Clone + 'static> Lender<T> {
    pub const fn new() -> Self {
        Lender { things: RwLock::new(BTreeMap::new()), last: AtomicU64::new(0) }
    }

    pub fn lend(&'static self, thing: T) -> Loan<T> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.things.write().insert(number, thing);
        Loan { lender: self, number }
    }

    /// The thing of a number. The process ends if its owner is gone (K1).
    pub fn get(&self, number: u64, what: &str) -> T {
        let thing = self.things.read().get(&number).cloned();
        thing.unwrap_or_else(|| die(&format!("{what} of a transaction was used after the transaction gave it up")))
    }
}

impl<T> Loan<T> {
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        let thing = self.lender.things.write().remove(&self.number);
        drop(thing); // off the lock
    }
}
