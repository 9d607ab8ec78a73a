//! How a database calls for threads: [`Signal`] for upkeep, [`StateChanged`] for jobs and for waiting threads.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Lane;
use super::registration::Registration;

/// Requests a turn of upkeep. May be raised under any lock. Without an Env it only stays raised.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    registration: OnceLock<Weak<Registration>>,
}

#[derive(Default)]
struct SignalState {
    is_raised: bool,
    /// The timer checks the signal within [`LOOK_EVERY`](super::timer::LOOK_EVERY).
    looks_soon: bool,
    /// The time limit of the last turn has expired.
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

    /// As [`raise`](Self::raise), for work with some milliseconds to spare. Wakes no thread if the timer checks soon: a
    /// wake-up often costs the caller more than the work itself.
    pub fn raise_soon(&self) {
        let mut state = self.state.lock();
        state.is_raised = true;
        if !state.looks_soon {
            drop(state);
            self.wake();
        }
    }

    /// As [`raise_soon`](Self::raise_soon), but wakes a thread if the signal was raised already: there is more work
    /// than may wait for the next check.
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

    /// Clears the signal. Returns whether it was raised.
    #[cfg(test)]
    pub fn take(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_raised)
    }

    /// Clears the signal for a turn. Returns whether the last turn's time limit expired; `None` if no turn is due.
    pub(super) fn begin_turn(&self) -> Option<bool> {
        let mut state = self.state.lock();
        let called = state.is_raised || state.is_over;
        state.is_raised = false;
        called.then(|| std::mem::take(&mut state.is_over))
    }

    /// From now on the timer checks soon.
    pub(super) fn looks_soon(&self) {
        self.state.lock().looks_soon = true;
    }

    /// Called by the timer. Returns whether the signal is raised. `is_last`: no further check follows soon.
    pub(super) fn look(&self, is_last: bool) -> bool {
        let mut state = self.state.lock();
        state.looks_soon &= !is_last && !state.is_raised;
        state.is_raised
    }

    /// Requests a turn: the signal is raised, or the last turn's time limit expired (`is_over`).
    pub(super) fn call_for_turn(&self, is_over: bool) {
        self.state.lock().is_over |= is_over;
        self.wake();
    }
}

/// Notifies waiting threads and jobs of changes of the database's state.
#[derive(Default)]
pub(crate) struct StateChanged {
    waiting: Condvar,
    registration: OnceLock<Arc<Registration>>,
}

impl StateChanged {
    /// From now on, jobs run on threads of an Env.
    pub fn run_jobs_by(&self, registration: Arc<Registration>) {
        let _ = self.registration.set(registration); // a database registers once
    }

    /// `None` if no thread runs jobs.
    pub fn registration(&self) -> Option<&Arc<Registration>> {
        self.registration.get()
    }

    /// As [`notify_all`](Self::notify_all), after a change that makes no job due.
    pub fn wake_waiting(&self) {
        self.waiting.notify_all();
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

    pub fn wait_for<T>(&self, state: &mut MutexGuard<'_, T>, time: Duration) {
        self.waiting.wait_for(state, time);
    }
}
