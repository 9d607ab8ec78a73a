//! What tests with real threads need: a limit on their time, and writers that can be held in the midst of a store.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs a test on a thread of its own, and fails where it is not over in time: a hang is a failure like any other. The
/// thread is left behind then.
///
/// # Panics
/// As the test does, or because it takes too long.
pub fn within<T: Send + 'static>(limit: Duration, test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    start(move || {
        let outcome = catch_unwind(AssertUnwindSafe(test));
        let _ = sender.send(outcome); // nobody listens any more once the limit has passed
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

/// Waits for a condition that another thread brings about.
///
/// # Panics
/// It does not hold after ten seconds.
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
