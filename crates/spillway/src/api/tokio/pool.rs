//! Calls that may wait, on the runtime's blocking threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use base::{Error, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinHandle};

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
        run(call).await
    }
}

/// Runs a call on a blocking thread.
///
/// # Errors
/// The call's; `Closed`: the runtime ended before it began.
pub(super) async fn run<T: Send + 'static>(call: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let ran = spawn(&Handle::current(), call).await.map_err(not_run)?;
    ran.expect("a call that was taken back is run by its caller")
}

/// Begins a call on a blocking thread. Where the system gives the runtime none, the call is a task, and holds up the tasks beside it.
/// Tokio's panic has said so by then, and kept the call: it may give it a thread later, which finds `None`.
pub(super) fn spawn<T, F>(runtime: &Handle, call: F) -> JoinHandle<Option<T>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let kept = Arc::new(Mutex::new(Some(call)));
    let queued = kept.clone();
    let take_and_run = move |call: Arc<Mutex<Option<F>>>| {
        let call = call.lock().take();
        call.map(|call| call())
    };
    let spawned = catch_unwind(AssertUnwindSafe(|| runtime.spawn_blocking(move || take_and_run(queued))));
    spawned.unwrap_or_else(|_no_thread| runtime.spawn(async move { take_and_run(kept) }))
}

/// Error of a call that the runtime did not run; a panic goes on in the caller.
pub(super) fn not_run(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Error::closed("the runtime ended before the call began"),
    }
}
