//! Gate for writers of a memtable with an image. Once it is closed, the sealed memory can be exposed as immutable bytes
//! (A5).
//!
//! A writer increments its count, then checks the closed flag. Closing sets the flag, then checks the counts. All four
//! accesses are sequentially consistent, so at least one side sees the other: a writer missed by the closing panics
//! before it writes.
//!
//! Watermark markers may enter at any time and stay for a few stores. The closing waits for them; markers arriving
//! later find the gate closed.

use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Release, SeqCst},
};

use crate::stripe::{STRIPES, thread_index};

/// Weight of a marker in a count, where a writer weighs 1: more than the possible number of writers.
const MARKER: usize = 1 << 32;

/// Alone on its pair of cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

pub(crate) struct Gate {
    /// False for memtables without an image: nothing is counted, and the gate never closes.
    is_watched: bool,
    is_closed: AtomicBool,
    /// Writers and markers inside, by thread.
    inside: [Count; STRIPES],
}

/// A writer or marker inside until dropped: its count and weight.
pub(crate) struct Inside<'a>(Option<(&'a Count, usize)>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((count, weight)) = self.0 {
            // Release: the holder's writes happen before the gate is found empty.
            count.0.fetch_sub(weight, Release);
        }
    }
}

impl Gate {
    pub(crate) fn new(is_watched: bool) -> Gate {
        Gate { is_watched, is_closed: AtomicBool::new(false), inside: Default::default() }
    }

    /// For a reopened image: no writer may ever enter.
    pub(crate) fn closed() -> Gate {
        Gate { is_closed: AtomicBool::new(true), ..Gate::new(true) }
    }

    /// # Panics
    /// If the gate is closed: an insert into a sealed memtable.
    #[inline]
    pub(crate) fn enter(&self) -> Inside<'_> {
        if !self.is_watched {
            return Inside(None);
        }
        let inside = self.count_in(1);
        assert!(!self.is_closed.load(SeqCst), "an insert into a memtable that was sealed");
        inside
    }

    /// Enters as a marker; `None` if the gate is closed or not watched.
    #[inline]
    pub(crate) fn enter_to_mark(&self) -> Option<Inside<'_>> {
        if !self.is_watched {
            return None;
        }
        let inside = self.count_in(MARKER);
        (!self.is_closed.load(SeqCst)).then_some(inside)
    }

    #[inline]
    fn count_in(&self, weight: usize) -> Inside<'_> {
        let count = self.inside.get(thread_index() % STRIPES);
        Inside(count.map(|count| {
            count.0.fetch_add(weight, SeqCst);
            (count, weight)
        }))
    }

    /// Closes the gate. Returns true once only, if it was open and no writer is inside. If a writer is inside, the gate
    /// reopens.
    pub(crate) fn close(&self) -> bool {
        if !self.is_watched || self.is_closed.swap(true, SeqCst) {
            return false;
        }
        if self.inside.iter().any(|count| count.0.load(SeqCst) % MARKER != 0) {
            self.is_closed.store(false, SeqCst);
            return false;
        }
        // Markers leave within a few stores, unless descheduled.
        while self.inside.iter().any(|count| count.0.load(SeqCst) != 0) {
            std::thread::yield_now();
        }
        true
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
        assert!(!unwatched.close() && unwatched.enter_to_mark().is_none());
        drop(unwatched.enter());
    }

    #[test]
    fn closing_waits_for_those_who_mark() {
        use std::sync::atomic::AtomicU64;
        let (gate, marks, done) = (Gate::new(true), AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while let Some(inside) = gate.enter_to_mark() {
                        assert!(!done.load(SeqCst), "nobody marks behind a closed gate");
                        marks.fetch_add(1, SeqCst);
                        drop(inside);
                    }
                });
            }
            while marks.load(SeqCst) < 100 {
                std::thread::yield_now();
            }
            assert!(gate.close(), "those who mark keep no gate open");
            done.store(true, SeqCst);
        });
        assert!(gate.enter_to_mark().is_none());
    }
}
