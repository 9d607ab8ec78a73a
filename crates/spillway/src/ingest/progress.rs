//! Progress of a prepare, and cancellation of an ingest.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Error, Result};

/// Progress of a prepare. Another thread may read it, or cancel the ingest. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct IngestProgress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
    cancelled: AtomicBool,
}

impl IngestProgress {
    /// Total and prepared files.
    pub fn files(&self) -> (u64, u64) {
        (self.0.files.load(Ordering::Relaxed), self.0.files_done.load(Ordering::Relaxed))
    }

    /// Total and prepared bytes. A file being copied or verified counts by its share.
    pub fn bytes(&self) -> (u64, u64) {
        (self.0.bytes.load(Ordering::Relaxed), self.0.bytes_done.load(Ordering::Relaxed))
    }

    /// Cancels the ingest unless it has taken sequence numbers: it fails with `Closed`, without effect. A prepare stops
    /// between two blocks of a file at the latest, a commit after its waits (flushes, compactions, other ingests).
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(Error::closed("the ingest was cancelled"));
        }
        Ok(())
    }

    pub(super) fn expect(&self, files: u64, bytes: u64) {
        self.0.files.fetch_add(files, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Reasons to stop work on a file, besides a cancel.
#[derive(Clone, Copy)]
pub(super) struct Stops<'a> {
    /// Another file of the ingest failed.
    pub gives_up: &'a dyn Fn() -> bool,
    /// The database is closing and waits for the prepare.
    pub closing: &'a AtomicBool,
}

/// One file's part of a prepare's progress. Each pass over the file counts its share, so reported bytes only grow and
/// end at the file's size.
pub(super) struct FileProgress<'a> {
    whole: &'a IngestProgress,
    stops: Stops<'a>,
    file_bytes: u64,
    /// Passes over the file.
    passes: u64,
    worked: Cell<u64>,
    told: Cell<u64>,
}

impl<'a> FileProgress<'a> {
    pub fn new(whole: &'a IngestProgress, stops: Stops<'a>, file_bytes: u64, passes: u64) -> Self {
        let passes = passes.max(1);
        FileProgress { whole, stops, file_bytes, passes, worked: Cell::new(0), told: Cell::new(0) }
    }

    /// Called between blocks.
    ///
    /// # Errors
    /// `Closed`: the ingest was cancelled, another file of it failed, or the database is being closed.
    pub fn check(&self) -> Result<()> {
        if (self.stops.gives_up)() {
            return Err(Error::closed("another file of the ingest failed"));
        }
        if self.stops.closing.load(Ordering::Relaxed) {
            return Err(Error::closed("the database is closed"));
        }
        self.whole.check()
    }

    /// Adds bytes processed in a pass.
    pub fn worked(&self, bytes: u64) {
        self.worked.set(self.worked.get().saturating_add(bytes));
        self.tell((self.worked.get() / self.passes).min(self.file_bytes));
    }

    /// The file is ready.
    pub fn done(&self) {
        self.tell(self.file_bytes);
        self.whole.0.files_done.fetch_add(1, Ordering::Relaxed);
    }

    fn tell(&self, bytes: u64) {
        let before = self.told.replace(bytes);
        self.whole.0.bytes_done.fetch_add(bytes.saturating_sub(before), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_advances_by_its_passes_and_ends_at_its_size() {
        let (whole, never) = (IngestProgress::default(), AtomicBool::new(false));
        let stops = Stops { gives_up: &|| false, closing: &never };
        whole.expect(2, 300);
        let file = FileProgress::new(&whole, stops, 100, 2);
        let told = [60, 60, 200].map(|bytes| {
            file.worked(bytes);
            whole.bytes().1
        });
        assert_eq!(told, [30, 60, 100], "no more than the file has");
        file.done();
        assert_eq!((whole.bytes(), whole.files()), ((300, 100), (2, 1)));
        FileProgress::new(&whole, stops, 200, 0).done();
        assert_eq!((whole.bytes(), whole.files()), ((300, 300), (2, 2)));
    }

    #[test]
    fn a_file_stops_for_a_cancel_a_close_and_another_that_failed() {
        let (whole, given_up, closing) = (IngestProgress::default(), AtomicBool::new(false), AtomicBool::new(false));
        let gives_up = || given_up.load(Ordering::Relaxed);
        let file = FileProgress::new(&whole, Stops { gives_up: &gives_up, closing: &closing }, 100, 1);
        for stop in [&given_up, &closing] {
            file.check().expect("nothing happened");
            stop.store(true, Ordering::Relaxed);
            assert_eq!(file.check().expect_err("stopped").kind(), base::ErrorKind::Closed);
            stop.store(false, Ordering::Relaxed);
        }
        whole.clone().cancel();
        assert_eq!(file.check().expect_err("cancelled").kind(), base::ErrorKind::Closed);
    }
}
