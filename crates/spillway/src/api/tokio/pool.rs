//! Calls that may wait, on the runtime's blocking threads.

use std::panic::resume_unwind;
use std::sync::Arc;

use base::{Error, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, spawn_blocking};

/// What a call waits for, at the most.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    /// A read of the disk.
    Read,
    /// A sync, back-pressure, a flush or a compaction: seconds and more. Reads do not wait for their places.
    Other,
}

/// Places on the runtime's blocking threads, in each lane.
///
/// Without a bound, a burst of calls would take all 512 of these threads, which the whole program shares, and queue
/// behind them without limit. A call without a place waits as a future, first come, first served, and can be dropped.
pub(super) struct Pool {
    reads: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

/// A place on a blocking thread; kept until the call is over, also when nobody waits for it any more.
pub(super) type Place = OwnedSemaphorePermit;

impl Pool {
    pub fn new(calls_max: usize) -> Pool {
        let calls_max = calls_max.clamp(1, Semaphore::MAX_PERMITS);
        Pool { reads: Arc::new(Semaphore::new(calls_max)), others: Arc::new(Semaphore::new(calls_max)) }
    }

    /// Waits for a place. Dropping the future gives up the wait.
    pub async fn place(&self, lane: Lane) -> Place {
        let places = match lane {
            Lane::Read => &self.reads,
            Lane::Other => &self.others,
        };
        places.clone().acquire_owned().await.expect("it is never closed")
    }

    /// Runs a call once there is a place. From then on it runs to its end, whether or not the future is dropped.
    ///
    /// # Errors
    /// The call's; `Closed`: the runtime ended before it began.
    pub async fn run<T, F>(&self, lane: Lane, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let place = self.place(lane).await;
        let call = move || {
            let _place = place;
            call()
        };
        spawn_blocking(call).await.unwrap_or_else(|error| Err(not_run(error)))
    }
}

/// Error of a call that the runtime did not run; a panic goes on in the caller.
pub(super) fn not_run(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Error::closed("the runtime ended before the call began"),
    }
}
