//! Primitives of the pipeline and the range latches: the standard library's atomics and locks, or loom's with
//! `--cfg loom`. loom runs a test under every thread interleaving.

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

/// Gives up at once: under loom every load in a spin loop multiplies the interleavings.
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
