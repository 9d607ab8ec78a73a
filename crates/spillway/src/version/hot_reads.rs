//! Counts of reads by table, for compactions triggered by reads (`read_triggered_compaction_threshold`).
//!
//! Counted are lookups without an answer in the table, and seeks: a compaction of the table spares later ones this work.
//! The counts are samples.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::FileNumber;
use parking_lot::Mutex;

/// One read in so many is counted, as so many.
const READS_PER_SAMPLE: u64 = 256;

/// Of a family's tables.
#[derive(Default)]
pub struct HotReads {
    /// Reads per byte of a hot table, as the bits of an `f64`. 0: no counting.
    threshold: AtomicU64,
    /// Hot tables not taken yet. A leaf lock.
    hot: Mutex<Vec<FileNumber>>,
    listener: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl HotReads {
    /// Takes effect for the next reads.
    pub fn set_threshold(&self, reads_per_byte: f64) {
        self.threshold.store(reads_per_byte.max(0.0).to_bits(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_counting(&self) -> bool {
        self.threshold.load(Ordering::Relaxed) != 0
    }

    /// Registers `listener` for every table that becomes hot from now on; the first listener stays.
    pub fn listen(&self, listener: Box<dyn Fn() + Send + Sync>) {
        let _ = self.listener.set(listener);
    }

    /// The tables that became hot since the last call.
    pub fn take(&self) -> Vec<FileNumber> {
        std::mem::take(&mut self.hot.lock())
    }

    fn add(&self, file: FileNumber) {
        self.hot.lock().push(file);
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }
}

/// Of one table.
#[derive(Default)]
pub(super) struct ReadCount {
    reads: AtomicU64,
    is_hot: AtomicBool,
}

impl ReadCount {
    /// Counts a read of a table of `bytes`. Reports the table when it becomes hot, once.
    #[cold]
    pub fn add(&self, of_family: &HotReads, file: FileNumber, bytes: u64) {
        if !is_sampled() {
            return;
        }
        let reads = self.reads.fetch_add(READS_PER_SAMPLE, Ordering::Relaxed) + READS_PER_SAMPLE;
        let threshold = f64::from_bits(of_family.threshold.load(Ordering::Relaxed));
        if reads as f64 > threshold * bytes as f64 && !self.is_hot.swap(true, Ordering::Relaxed) {
            of_family.add(file);
        }
    }
}

/// By a generator of the thread: a fixed interval could meet a rhythm of the reads.
fn is_sampled() -> bool {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE.with(|state| {
        // Knuth's MMIX generator; the topmost bits are the most random.
        let next = state.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.set(next);
        (next >> 32) % READS_PER_SAMPLE == 0
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_table_is_hot_once_by_its_reads_per_byte() {
        let (of_family, told) = (HotReads::default(), Arc::new(AtomicU64::new(0)));
        let counter = told.clone();
        of_family.listen(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(!of_family.is_counting());
        of_family.set_threshold(0.5);
        assert!(of_family.is_counting());
        let (small, large) = (ReadCount::default(), ReadCount::default());
        for _ in 0..100_000 {
            small.add(&of_family, FileNumber(7), 100_000);
            large.add(&of_family, FileNumber(8), 1_000_000);
        }
        assert_eq!(of_family.take(), [FileNumber(7)]);
        assert_eq!((told.load(Ordering::Relaxed), of_family.take()), (1, Vec::new()));
        // 100,000 reads are some 390 samples: their number is off by 5 % in two of three runs.
        let counted = small.reads.load(Ordering::Relaxed);
        assert!((75_000..125_000).contains(&counted), "{counted}");
    }
}
