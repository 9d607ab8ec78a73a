//! Statistics and the clock for timings. Without statistics there is no meter and the clock is not read.

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Histogram, Statistics, Ticker};
use base::{Pinned, Result};
use vfs::{IoClass, RandomFile, Vfs};

use crate::cursor::search::Found;

pub struct Meter {
    pub statistics: Arc<Statistics>,
    vfs: Arc<dyn Vfs>,
}

impl Meter {
    pub fn new(statistics: Arc<Statistics>, vfs: Arc<dyn Vfs>) -> Arc<Self> {
        Arc::new(Meter { statistics, vfs })
    }

    pub fn now(&self) -> Duration {
        self.vfs.now()
    }

    /// Records the microseconds since `start`.
    pub fn record_since(&self, histogram: Histogram, start: Duration) {
        let micros = self.now().saturating_sub(start).as_micros() as u64;
        self.statistics.record(histogram, micros);
    }

    /// Runs a point lookup and counts it.
    pub(crate) fn get(&self, look_up: impl FnOnce() -> Result<Found>) -> Result<Found> {
        let start = self.now();
        let found = look_up()?;
        self.record_since(Histogram::DbGet, start);
        let bytes = value_bytes(&found.value);
        self.statistics.add(Ticker::NumberKeysRead, 1);
        self.statistics.add(Ticker::BytesRead, bytes);
        self.statistics.record(Histogram::BytesPerRead, bytes);
        found.count(&self.statistics);
        Ok(found)
    }

    /// Runs the lookups of a multi-get and counts them.
    pub(crate) fn multi_get(&self, look_up: impl FnOnce() -> Vec<Result<Found>>) -> Vec<Result<Found>> {
        let start = self.now();
        let results = look_up();
        self.record_since(Histogram::DbMultiget, start);
        let (mut keys_found, mut bytes) = (0, 0);
        for found in results.iter().flatten() {
            found.count(&self.statistics);
            keys_found += u64::from(found.value.is_some());
            bytes += value_bytes(&found.value);
        }
        self.statistics.add(Ticker::NumberMultigetCalls, 1);
        self.statistics.add(Ticker::NumberMultigetKeysRead, results.len() as u64);
        self.statistics.add(Ticker::NumberMultigetKeysFound, keys_found);
        self.statistics.add(Ticker::NumberMultigetBytesRead, bytes);
        self.statistics.record(Histogram::BytesPerMultiget, bytes);
        results
    }
}

fn value_bytes(value: &Option<Pinned>) -> u64 {
    value.as_ref().map_or(0, |value| value.len() as u64)
}

/// A table's file with timed reads.
pub(crate) struct MeteredFile {
    pub file: Arc<dyn RandomFile>,
    pub meter: Arc<Meter>,
}

impl RandomFile for MeteredFile {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        let start = self.meter.now();
        let read = self.file.read_at(offset, buf, class);
        self.meter.record_since(Histogram::SstRead, start);
        read
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.file.prefetch(offset, len);
    }

    fn expect_random(&self) {
        self.file.expect_random();
    }

    /// Timed if it is the whole read: else [`read_at`](RandomFile::read_at) of the rest is.
    fn read_cached(&self, offset: u64, buf: &mut [u8], class: IoClass) -> usize {
        let start = self.meter.now();
        let read = self.file.read_cached(offset, buf, class);
        if read == buf.len() {
            self.meter.record_since(Histogram::SstRead, start);
        }
        read
    }
}
