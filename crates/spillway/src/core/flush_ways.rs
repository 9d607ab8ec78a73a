//! Counts flushes by way, for reports and statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::Error;
use base::extend::FlushWay;
use base::metrics::{Statistics, Ticker, tick};
use parking_lot::Mutex;

/// Flushes since the database was opened, by way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushReport {
    /// Tables written entry by entry.
    pub rewritten: u64,
    /// Memtables converted to tables.
    pub converted: u64,
    /// Runs of ingests assigned to levels.
    pub linked: u64,
    /// Memtables rewritten in the same flush after their conversion failed.
    pub fallen_back: u64,
    /// Error of the last failed conversion.
    pub last_fall_back: Option<String>,
}

/// Counts flushes. Its lock is a leaf.
#[derive(Default)]
pub struct FlushCounts {
    rewritten: AtomicU64,
    converted: AtomicU64,
    linked: AtomicU64,
    fallen_back: AtomicU64,
    last_fall_back: Mutex<Option<String>>,
}

impl FlushCounts {
    pub(crate) fn note(&self, statistics: &Option<Arc<Statistics>>, way: FlushWay) {
        let (count, ticker) = match way {
            FlushWay::Rewrite => (&self.rewritten, Ticker::FlushesRewritten),
            FlushWay::Convert => (&self.converted, Ticker::FlushesConverted),
            FlushWay::Link => (&self.linked, Ticker::FlushesLinked),
        };
        count.fetch_add(1, Relaxed);
        tick(statistics, ticker, 1);
    }

    pub(crate) fn note_fall_back(&self, statistics: &Option<Arc<Statistics>>, why: &Error) {
        self.fallen_back.fetch_add(1, Relaxed);
        *self.last_fall_back.lock() = Some(why.to_string());
        tick(statistics, Ticker::FlushesFallenBack, 1);
    }

    pub fn report(&self) -> FlushReport {
        FlushReport {
            rewritten: self.rewritten.load(Relaxed),
            converted: self.converted.load(Relaxed),
            linked: self.linked.load(Relaxed),
            fallen_back: self.fallen_back.load(Relaxed),
            last_fall_back: self.last_fall_back.lock().clone(),
        }
    }
}
