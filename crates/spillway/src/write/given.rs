//! What a change is given that joins the queues as a whole, and where its entries keep that.

use std::sync::atomic::{AtomicU64, Ordering};

use base::SeqNo;

use crate::flush::flushable::Flushable;
use crate::write::pipeline::LogPosition;

/// What a change was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The last number before it.
    pub before: SeqNo,
    pub last: SeqNo,
    /// Where its log record ends; 0 where it has none.
    pub log_end: LogPosition,
}

/// An entry of a queue that gets its numbers when it joins.
pub(crate) trait Joins: Flushable {
    /// Called before any reader can find the entry; by several threads perhaps, and late by some, with the same.
    fn set_numbers(&self, given: &Given);

    /// Called once, before a flush can find it, where a memtable that will be written into a table was sealed because the
    /// entry overlaps it.
    fn stands_over_memtable(&self) {}
}

/// Set once, though several threads may do that.
pub(crate) struct GivenOnce {
    before: AtomicU64,
    last: AtomicU64,
    log_end: AtomicU64,
}

/// No sequence number.
const NOT_YET: u64 = u64::MAX;

impl GivenOnce {
    pub fn new() -> Self {
        GivenOnce { before: AtomicU64::new(NOT_YET), last: AtomicU64::new(0), log_end: AtomicU64::new(0) }
    }

    pub fn set(&self, given: &Given) {
        self.last.store(given.last.0, Ordering::Relaxed);
        self.log_end.store(given.log_end, Ordering::Relaxed);
        let before = self.before.swap(given.before.0, Ordering::AcqRel);
        assert!(before == NOT_YET || before == given.before.0, "what joins is numbered once");
    }

    #[inline]
    pub fn get(&self) -> Option<Given> {
        let before = self.before.load(Ordering::Acquire);
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let given = Given { before: SeqNo(before), last: SeqNo(load(&self.last)), log_end: load(&self.log_end) };
        (before != NOT_YET).then_some(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_once() {
        let given = Given { before: SeqNo(7), last: SeqNo(9), log_end: 0 };
        let once = GivenOnce::new();
        assert_eq!(once.get(), None);
        once.set(&given);
        once.set(&given); // by another thread
        assert_eq!(once.get(), Some(given));
        let other = Given { before: SeqNo(8), ..given };
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| once.set(&other)));
        assert!(again.is_err());
    }
}
