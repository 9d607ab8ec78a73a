//! Whether anybody writes: so that a sealed memtable's memory can be handed out as bytes that do not change (A5).
//!
//! A writer counts itself in, then looks whether the gate is closed; whoever closes it closes it, then looks at the counts.
//! All of that is sequentially consistent, so one of the two sees the other: a writer that the closing did not count
//! panics before it writes.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Release, SeqCst},
};

use crate::stripe::{STRIPES, thread_index};

/// Alone on its pair of cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

pub(crate) struct Gate {
    /// For memtables without an image nobody is counted, and the gate never closes.
    is_watched: bool,
    is_closed: AtomicBool,
    /// Writers inside, by thread.
    inside: [Count; STRIPES],
}

/// A writer inside, until dropped.
pub(crate) struct Inside<'a>(Option<&'a Count>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            // Release: what was written happened before the gate was found empty.
            count.0.fetch_sub(1, Release);
        }
    }
}

impl Gate {
    pub(crate) fn new(is_watched: bool) -> Gate {
        Gate { is_watched, is_closed: AtomicBool::new(false), inside: Default::default() }
    }

    /// Of memory that nobody ever wrote to here.
    pub(crate) fn closed() -> Gate {
        Gate { is_closed: AtomicBool::new(true), ..Gate::new(true) }
    }

    /// # Panics
    /// Where the gate is closed: an insert into a sealed memtable.
    #[inline]
    pub(crate) fn enter(&self) -> Inside<'_> {
        if !self.is_watched {
            return Inside(None);
        }
        let count = self.inside.get(thread_index() % STRIPES);
        if let Some(count) = count {
            count.0.fetch_add(1, SeqCst);
        }
        let inside = Inside(count);
        assert!(!self.is_closed.load(SeqCst), "an insert into a memtable that was sealed");
        inside
    }

    /// Closes the gate. True, once only, where it was open and nobody is inside; where somebody is, it is open again.
    pub(crate) fn close(&self) -> bool {
        if !self.is_watched || self.is_closed.swap(true, SeqCst) {
            return false;
        }
        let is_empty = self.inside.iter().all(|count| count.0.load(SeqCst) == 0);
        if !is_empty {
            self.is_closed.store(false, SeqCst);
        }
        is_empty
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_gate_closes_once_where_nobody_is_inside_and_then_lets_nobody_in() {
        let gate = Gate::new(true);
        let inside = gate.enter();
        assert!(!gate.close(), "somebody is inside");
        drop((inside, gate.enter()));
        assert!(gate.close() && !gate.close());
        for closed in [gate, Gate::closed()] {
            let late = catch_unwind(AssertUnwindSafe(|| drop(closed.enter())));
            assert!(late.is_err());
        }
        let unwatched = Gate::new(false);
        assert!(!unwatched.close());
        drop(unwatched.enter());
    }
}
