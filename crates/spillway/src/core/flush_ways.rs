//! Counts flushes by way, for reports and statistics.

use std::sync::Arc;

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
pub struct FlushCounts(Mutex<FlushReport>);

impl FlushCounts {
    pub(crate) fn note(&self, statistics: &Option<Arc<Statistics>>, way: FlushWay) {
        let mut counts = self.0.lock();
        let (count, ticker) = match way {
            FlushWay::Rewrite => (&mut counts.rewritten, Ticker::FlushesRewritten),
            FlushWay::Convert => (&mut counts.converted, Ticker::FlushesConverted),
            _ => (&mut counts.linked, Ticker::FlushesLinked),
        };
        *count += 1;
        tick(statistics, ticker, 1);
    }

    pub(crate) fn count_fall_back(&self, statistics: &Option<Arc<Statistics>>, why: &Error) {
        let mut counts = self.0.lock();
        counts.fallen_back += 1;
        counts.last_fall_back = Some(why.to_string());
        tick(statistics, Ticker::FlushesFallenBack, 1);
    }

    pub fn report(&self) -> FlushReport {
        self.0.lock().clone()
    }
}
