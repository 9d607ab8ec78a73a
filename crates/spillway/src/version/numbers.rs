//! Numbers of new files.

use std::sync::atomic::{AtomicU64, Ordering};

use base::FileNumber;

/// Allocates file numbers, each once.
pub struct FileNumbers(AtomicU64);

impl FileNumbers {
    pub fn starting_at(next: FileNumber) -> Self {
        FileNumbers(AtomicU64::new(next.0))
    }

    /// Allocates a file number never used before.
    pub fn take(&self) -> FileNumber {
        FileNumber(self.0.fetch_add(1, Ordering::Relaxed))
    }

    /// The next number to be allocated.
    pub fn peek(&self) -> FileNumber {
        FileNumber(self.0.load(Ordering::Relaxed))
    }
}
