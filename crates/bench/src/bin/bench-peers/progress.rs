//! How far a long step is, on standard error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vfs::Vfs;

const EVERY: Duration = Duration::from_secs(5);

/// The progress of one step, shared by its threads.
pub struct Progress<'a> {
    vfs: &'a dyn Vfs,
    name: String,
    total: u64,
    began: Duration,
    done: AtomicU64,
    /// Microseconds from the begin to the next line.
    next_us: AtomicU64,
}

impl<'a> Progress<'a> {
    pub fn new(vfs: &'a dyn Vfs, name: &str, total: u64) -> Self {
        let next_us = AtomicU64::new(EVERY.as_micros() as u64);
        Progress { vfs, name: name.to_owned(), total, began: vfs.now(), done: AtomicU64::new(0), next_us }
    }

    /// Counts operations. Prints a line now and then.
    pub fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        let spent = self.vfs.now().saturating_sub(self.began);
        let (now, next) = (spent.as_micros() as u64, self.next_us.load(Ordering::Relaxed));
        let due = now >= next;
        let later = now + EVERY.as_micros() as u64;
        // One thread prints.
        if due && self.next_us.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let (share, rate) = (done as f64 / self.total.max(1) as f64, done as f64 / spent.as_secs_f64());
            let left = spent.as_secs_f64() * (1.0 - share).max(0.0) / share.max(f64::MIN_POSITIVE);
            eprintln!("    {:<22} {:>3.0} %  {rate:.0}/s  about {left:.0} s left", self.name, share * 100.0);
        }
    }
}
