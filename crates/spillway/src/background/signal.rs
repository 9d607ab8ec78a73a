//! How a database calls for threads: [`Signal`] for upkeep, [`StateChanged`] for jobs and for whoever waits.

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Lane;
use super::registration::Registration;

/// Calls for a turn of upkeep. May be raised under any lock. Without an Env it only stays raised.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    registration: OnceLock<Weak<Registration>>,
}

#[derive(Default)]
struct SignalState {
    is_raised: bool,
    /// The timer looks within [`LOOK_EVERY`](super::timer::LOOK_EVERY).
    looks_soon: bool,
    /// The time is over that the last turn waits for.
    is_over: bool,
}

impl Signal {
    pub(super) fn wakes(&self, registration: &Arc<Registration>) {
        let _ = self.registration.set(Arc::downgrade(registration)); // a database registers once
    }

    pub fn raise(&self) {
        self.state.lock().is_raised = true;
        self.wake();
    }

    /// As [`raise`](Self::raise), for work that may wait some milliseconds: no thread is woken if the timer looks soon. A
    /// wake-up costs the caller more than many a task takes.
    pub fn raise_soon(&self) {
        let mut state = self.state.lock();
        state.is_raised = true;
        if !state.looks_soon {
            drop(state);
            self.wake();
        }
    }

    /// As [`raise_soon`](Self::raise_soon). If it was raised already, more work came than may wait for the next look.
    pub fn raise_again(&self) {
        let mut state = self.state.lock();
        let was_raised = std::mem::replace(&mut state.is_raised, true);
        if !state.looks_soon || was_raised {
            drop(state);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(registration) = self.registration.get().and_then(Weak::upgrade) {
            registration.signal(Lane::Upkeep);
        }
    }

    /// Lowers it. Whether it was raised.
    #[cfg(test)]
    pub fn take(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_raised)
    }

    /// Lowers it for a turn. Whether the time is over that the last turn waits for; `None` if nothing calls for a turn.
    pub(super) fn begin_turn(&self) -> Option<bool> {
        let mut state = self.state.lock();
        let called = state.is_raised || state.is_over;
        state.is_raised = false;
        called.then(|| std::mem::take(&mut state.is_over))
    }

    /// The timer looks soon from now on.
    pub(super) fn looks_soon(&self) {
        self.state.lock().looks_soon = true;
    }

    /// A look of the timer's: whether it is raised. `is_last`: none comes soon after it.
    pub(super) fn look(&self, is_last: bool) -> bool {
        let mut state = self.state.lock();
        state.looks_soon &= !is_last && !state.is_raised;
        state.is_raised
    }

    /// Calls for a turn: because it is raised, or because the time is over that the last turn waits for.
    pub(super) fn call_for_turn(&self, is_over: bool) {
        self.state.lock().is_over |= is_over;
        self.wake();
    }
}

/// Tells of changes of a database's state: threads that wait for one, and jobs that may have something to do.
#[derive(Default)]
pub(crate) struct StateChanged {
    waiting: Condvar,
    registration: OnceLock<Arc<Registration>>,
}

impl StateChanged {
    /// Has jobs run on an Env's threads from now on.
    pub fn run_jobs_by(&self, registration: Arc<Registration>) {
        let _ = self.registration.set(registration); // a database registers once
    }

    /// `None` where no thread runs jobs.
    pub fn registration(&self) -> Option<&Arc<Registration>> {
        self.registration.get()
    }

    pub fn notify_all(&self) {
        self.waiting.notify_all();
        if let Some(registration) = self.registration.get() {
            registration.signal_jobs();
        }
    }

    pub fn wait<T>(&self, state: &mut MutexGuard<'_, T>) {
        self.waiting.wait(state);
    }
}
