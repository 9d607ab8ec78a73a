//! The databases that share a [budget](super::memory::MemoryBudget). A writer at the limit may need memory that another
//! database holds: it asks that database, whose own upkeep then flushes. Nothing is flushed on threads of others, so a
//! close waits for its own jobs only, and no thread holds locks of two databases.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A database's memtables.
pub(crate) trait Sharer: Send + Sync {
    /// What they hold. Takes the state lock.
    fn held(&self) -> Held;

    /// Has upkeep look soon whether its memtables are to be sealed.
    fn call(&self);

    /// Has upkeep free memory: spares are dropped, sealed memtables flushed, or else one is sealed.
    fn ask_for_memory(&self);
}

/// What a database holds of a budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Bytes reserved in mutable memtables with entries.
    pub mutable_bytes: usize,
    /// The largest of them.
    pub largest_bytes: usize,
    /// The birth of the oldest.
    pub oldest: Option<u64>,
    /// Sealed memtables wait for a flush, or are being flushed.
    pub has_sealed: bool,
    /// Charged bytes that no flush frees: of empty memtables; of all, if flushes cannot run.
    pub kept_bytes: usize,
}

impl Held {
    /// Order of flushes: the sharer with the largest is first.
    fn urgency(&self, oldest_first: bool) -> u64 {
        if oldest_first { u64::MAX - self.oldest.unwrap_or(u64::MAX) } else { self.largest_bytes as u64 }
    }
}

/// What all databases of a budget hold.
#[derive(Default)]
pub(crate) struct Survey {
    pub mutable_bytes: usize,
    pub kept_bytes: usize,
    /// Those with sealed memtables.
    pub sealed: Vec<Arc<dyn Sharer>>,
    /// The one whose mutable memtable is to be flushed first.
    pub first: Option<Arc<dyn Sharer>>,
}

/// The lock is a leaf. Databases are asked off it.
#[derive(Default)]
pub(crate) struct Sharers(Mutex<Vec<Weak<dyn Sharer>>>);

impl Sharers {
    pub fn join(&self, sharer: Weak<dyn Sharer>) {
        let mut list = self.0.lock();
        list.retain(|known| known.strong_count() > 0);
        list.push(sharer);
    }

    pub fn leave(&self, sharer: &dyn Sharer) {
        self.0.lock().retain(|known| !std::ptr::addr_eq(known.as_ptr(), sharer));
    }

    fn all(&self) -> Vec<Arc<dyn Sharer>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    pub fn call_all(&self) {
        self.all().iter().for_each(|sharer| sharer.call());
    }

    /// Asks those with sealed memtables, or else the one with the first.
    pub fn ask_for_memory(&self, oldest_first: bool) {
        let Survey { sealed, first, .. } = self.survey(None, oldest_first);
        let first = if sealed.is_empty() { first } else { None };
        sealed.iter().chain(&first).for_each(|sharer| sharer.ask_for_memory());
    }

    /// Asks all. `own`: what the asking database says of itself, in place of [`Sharer::held`].
    pub(crate) fn survey(&self, own: Option<(&dyn Sharer, Held)>, oldest_first: bool) -> Survey {
        let mut survey = Survey::default();
        let mut most = 0;
        for sharer in self.all() {
            let held = match own {
                Some((known, held)) if std::ptr::addr_eq(known, Arc::as_ptr(&sharer)) => held,
                _ => sharer.held(),
            };
            survey.mutable_bytes += held.mutable_bytes;
            survey.kept_bytes += held.kept_bytes;
            if held.has_sealed {
                survey.sealed.push(sharer.clone());
            }
            if held.largest_bytes > 0 && held.urgency(oldest_first) >= most {
                most = held.urgency(oldest_first);
                survey.first = Some(sharer);
            }
        }
        survey
    }
}
