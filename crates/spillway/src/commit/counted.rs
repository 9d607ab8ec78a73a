//! Write counters: a few sums always; times and distributions if statistics are kept.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Counters, Histogram, Statistics, Ticker};

use crate::commit::batch::WriteBatch;
use crate::commit::options::WriteOptions;
use crate::core::context::Context;

/// Writes since the database was opened.
pub(crate) struct WriteCounts {
    statistics: Option<Arc<Statistics>>,
    /// Writes, changes, bytes; logged writes, their bytes.
    sums: Counters<5>,
}

impl WriteCounts {
    pub fn new(context: &Context) -> Self {
        WriteCounts { statistics: context.statistics.clone(), sums: Counters::default() }
    }

    pub fn sums(&self) -> [u64; 5] {
        self.sums.sums()
    }

    /// Start time of a write; `None` without statistics, to save the clock read.
    #[inline]
    pub fn start(&self, context: &Context) -> Option<Duration> {
        self.statistics.as_ref().map(|_| context.vfs.now())
    }

    /// Counts a write and its duration. A batch without changes does not count.
    #[inline]
    pub fn add(&self, batch: &WriteBatch, options: &WriteOptions, took: Option<Duration>) {
        if batch.is_empty() {
            return;
        }
        let (bytes, logged) = (batch.len() as u64, u64::from(!options.disable_wal));
        self.sums.add([1, u64::from(batch.count()), bytes, logged, logged * bytes]);
        if let (Some(statistics), Some(took)) = (&self.statistics, took) {
            tell(statistics, batch, options, took);
        }
    }
}

fn tell(statistics: &Statistics, batch: &WriteBatch, options: &WriteOptions, took: Duration) {
    let bytes = batch.len() as u64;
    statistics.record(Histogram::DbWrite, took.as_micros() as u64);
    statistics.record(Histogram::BytesPerWrite, bytes);
    statistics.add(Ticker::NumberKeysWritten, u64::from(batch.count()));
    statistics.add(Ticker::BytesWritten, bytes);
    if !options.disable_wal {
        statistics.add(Ticker::WriteWithWal, 1);
        statistics.add(Ticker::WalFileBytes, bytes);
    }
    if !options.sync {
        statistics.add(Ticker::WriteDoneBySelf, 1); // the sync counts synced writes
    }
}
