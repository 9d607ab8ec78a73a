//! Support for tests with real threads: a time limit and waiting for conditions.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs a test on a new thread and fails if it exceeds `limit`: a hang is a failure. The hanging thread is left
/// running.
///
/// # Panics
/// The test panics or takes too long.
pub fn within<T: Send + 'static>(limit: Duration, test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    start(move || {
        let outcome = catch_unwind(AssertUnwindSafe(test));
        let _ = sender.send(outcome); // no receiver after the limit
    });
    match receiver.recv_timeout(limit) {
        Ok(Ok(value)) => value,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(RecvTimeoutError::Timeout) => panic!("not over after {limit:?}: a hang"),
        Err(RecvTimeoutError::Disconnected) => panic!("the test's thread ended without a word"),
    }
}

/// Starts a thread of the operating system.
#[expect(clippy::disallowed_methods, reason = "tests that need real threads are not replayed from a seed")]
pub fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::spawn(work)
}

/// Waits for a condition set by another thread.
///
/// # Panics
/// The condition does not hold within ten seconds.
#[expect(clippy::disallowed_methods, reason = "tests that need real threads are not replayed from a seed")]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    const TRIES_MAX: usize = 10_000;
    for _ in 0..TRIES_MAX {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited in vain for {what}");
}
