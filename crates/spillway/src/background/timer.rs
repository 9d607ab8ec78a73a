//! The upkeep timer: requests turns when they are due. One thread for all databases of an Env; it also starts the
//! threads of pools.
//!
//! After a turn it polls the database's signal a few times, so writers need not wake a thread
//! ([`Signal::raise_soon`](super::Signal::raise_soon)).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::Result;
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::Vfs;

use super::env::Shared;
use super::pool::Started;
use super::registration::Registration;

/// Interval between polls of a signal, and the number of polls after a turn.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(10);
pub(super) const LOOKS: u32 = 10;

/// Interval between attempts to start a thread.
const START_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Timer {
    /// Starts the threads of the Env, and is its clock.
    pub vfs: Arc<dyn Vfs>,
    /// Idle time after which a thread ends.
    pub idle_max: Duration,
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    databases: BTreeMap<u64, Wait>,
    /// Due times of the databases.
    order: BTreeSet<(Duration, u64)>,
    /// Number of registered databases.
    registered: usize,
    has_thread: bool,
    /// When to start threads for pools; `None` if none are requested.
    start_at: Option<Duration>,
    /// When the thread wakes by itself; `None` while it runs.
    wakes_at: Option<Duration>,
}

/// A database between two turns of upkeep.
struct Wait {
    registration: Arc<Registration>,
    next: Duration,
    over_at: Option<Duration>,
    looks_left: u32,
}

impl Due {
    fn insert(&mut self, wait: Wait) {
        self.remove(wait.registration.id);
        self.order.insert((wait.next, wait.registration.id));
        self.databases.insert(wait.registration.id, wait);
    }

    fn remove(&mut self, id: u64) -> Option<Wait> {
        let wait = self.databases.remove(&id)?;
        self.order.remove(&(wait.next, id));
        Some(wait)
    }
}

impl Timer {
    pub fn new(vfs: Arc<dyn Vfs>, idle_max: Duration) -> Arc<Timer> {
        Arc::new(Timer { vfs, idle_max, due: Mutex::default(), changed: Condvar::new() })
    }

    pub fn threads(&self) -> usize {
        usize::from(self.due.lock().has_thread)
    }

    /// Called when a database registers.
    ///
    /// # Errors
    /// `Io`: the thread cannot be started.
    pub fn begin(&self, shared: &Arc<Shared>) -> Result<()> {
        let mut due = self.due.lock();
        if !due.has_thread {
            let shared = shared.clone();
            drop(self.vfs.spawn("spillway-timer", Box::new(move || shared.timer.run(&shared)))?); // never joined
            due.has_thread = true;
        }
        due.registered += 1;
        Ok(())
    }

    /// Called when a database unregisters.
    pub fn end(&self, id: u64) {
        let mut due = self.due.lock();
        due.registered -= 1;
        let gone = due.remove(id);
        if due.registered == 0 {
            self.changed.notify_one(); // from now on its wait has a time limit
        }
        drop(due);
        drop(gone);
    }

    /// Called after a turn of upkeep. Polls the signal for a while, and requests the next turn after `limit`.
    pub fn rest(&self, registration: &Arc<Registration>, limit: Option<Duration>) {
        registration.upkeep.looks_soon();
        let now = self.vfs.now();
        let over_at = limit.map(|limit| now + limit);
        let wait = Wait { registration: registration.clone(), next: now, over_at, looks_left: LOOKS };
        let mut due = self.due.lock();
        self.put_off(&mut due, wait, now);
    }

    /// Schedules the next poll or time limit of a database; drops `wait` if neither remains.
    fn put_off(&self, due: &mut Due, mut wait: Wait, now: Duration) {
        let look_at = (wait.looks_left > 0).then(|| now + LOOK_EVERY);
        let Some(next) = look_at.into_iter().chain(wait.over_at).min() else { return };
        wait.next = next;
        due.insert(wait);
        if due.wakes_at.is_some_and(|wakes_at| wakes_at > next) {
            self.changed.notify_one();
        }
    }

    /// Makes the timer thread start threads for pools.
    pub fn start_threads(&self) {
        self.due.lock().start_at = Some(Duration::ZERO);
        self.changed.notify_one();
    }

    /// Main function of the timer thread.
    fn run(&self, shared: &Shared) {
        let mut due = self.due.lock();
        loop {
            self.look_at_what_is_due(&mut due);
            let now = self.vfs.now();
            if due.start_at.take_if(|at| *at <= now).is_some() {
                match MutexGuard::unlocked(&mut due, || shared.start_threads()) {
                    Started::All => {}
                    Started::Missing => _ = due.start_at.get_or_insert(now + START_AGAIN),
                    Started::Worked => due.start_at = Some(now), // there may be more
                }
            }
            let next = due.order.first().map(|(at, _)| *at).into_iter().chain(due.start_at).min();
            let idle = (due.registered == 0).then_some(self.idle_max);
            let is_over = self.wait(&mut due, next.map(|at| at.saturating_sub(now)).or(idle));
            if is_over && due.registered == 0 && due.start_at.is_none() {
                due.has_thread = false;
                return;
            }
        }
    }

    /// Waits for a change. True if `limit` expired.
    fn wait(&self, due: &mut MutexGuard<'_, Due>, limit: Option<Duration>) -> bool {
        due.wakes_at = Some(limit.map_or(Duration::MAX, |limit| self.vfs.now() + limit));
        let is_over = match limit {
            Some(limit) => self.changed.wait_for(due, limit).timed_out(),
            None => {
                self.changed.wait(due);
                false
            }
        };
        due.wakes_at = None;
        is_over
    }

    fn look_at_what_is_due(&self, due: &mut MutexGuard<'_, Due>) {
        let now = self.vfs.now();
        while let Some(id) = due.order.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id) {
            if let Some(wait) = due.remove(id) {
                self.look(due, wait, now);
            }
        }
    }

    /// Handles one due database.
    fn look(&self, due: &mut MutexGuard<'_, Due>, mut wait: Wait, now: Duration) {
        let signal = wait.registration.upkeep.clone();
        let is_over = wait.over_at.is_some_and(|over_at| over_at <= now);
        wait.looks_left = wait.looks_left.saturating_sub(1);
        let is_raised = signal.look(is_over || wait.looks_left == 0);
        if !is_raised && !is_over {
            return self.put_off(due, wait, now);
        }
        MutexGuard::unlocked(due, || {
            signal.call_for_turn(is_over);
            drop(wait);
        });
    }
}
