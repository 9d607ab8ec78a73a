//! What the pipeline and the range latches are built from: the standard library's atomics and locks, or under `--cfg
//! loom` loom's, which run a test through every order in which threads can meet.

#[cfg(not(loom))]
pub(crate) use crossbeam_utils::Backoff;
#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, fence},
};

/// Gives up at once: under loom every load of a spinning loop multiplies the orders to try.
#[cfg(loom)]
pub(crate) struct Backoff;

#[cfg(loom)]
impl Backoff {
    pub fn new() -> Self {
        Backoff
    }

    pub fn is_completed(&self) -> bool {
        true
    }

    pub fn snooze(&self) {}
}
