//! A database's registration with an Env: its limits and its running jobs. Keeps E2, E3.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use base::Error;
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::Task;

use super::env::Shared;
use super::parts::Helpers;
use super::pool::{AwayFromPool, Turn};
use super::signal::Signal;
use super::{Client, Lane, PerLane};
use crate::background::caught::caught_panic;

/// Limits on concurrent jobs of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub flushes: usize,
    pub compactions: usize,
    pub tasks: usize,
    /// `Compaction` or `LowCompaction`.
    pub compaction_lane: Lane,
}

impl Limits {
    fn of(&self, lane: Lane) -> usize {
        match lane {
            Lane::Flush => self.flushes,
            Lane::Compaction | Lane::LowCompaction => self.compactions,
            Lane::Tasks => self.tasks,
            Lane::Parts | Lane::Reads | Lane::Upkeep => 1,
        }
    }
}

pub(crate) struct Registration {
    pub(super) id: u64,
    env: Arc<Shared>,
    client: Weak<dyn Client>,
    compaction_lane: Lane,
    pub(super) upkeep: Arc<Signal>,
    lanes: Mutex<Lanes>,
    /// Notified when no job runs any more.
    idle: Condvar,
}

struct Lanes {
    limits: Limits,
    of: PerLane<LaneState>,
    is_ended: bool,
}

#[derive(Default)]
struct LaneState {
    /// In the pool's queue.
    is_queued: bool,
    running: usize,
    /// Running jobs inside a listener (E4).
    away: usize,
    /// Work may have arrived while the lane was at its limit.
    again: bool,
}

impl Lanes {
    fn is_idle(&self) -> bool {
        self.of.all().iter().all(|lane| lane.running == 0)
    }
}

thread_local! {
    /// The current turn of this Env thread.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

struct Current {
    registration: Arc<Registration>,
    lane: Lane,
    /// Tasks to run after the turn.
    after: Vec<Task>,
}

impl Registration {
    pub(super) fn new(
        env: Arc<Shared>,
        client: Weak<dyn Client>,
        limits: Limits,
        upkeep: Arc<Signal>,
    ) -> Arc<Registration> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let compaction_lane = limits.compaction_lane;
        let lanes = Mutex::new(Lanes { limits, of: PerLane::new(|_| LaneState::default()), is_ended: false });
        let registration = Registration { id, env, client, compaction_lane, upkeep, lanes, idle: Condvar::new() };
        let registration = Arc::new(registration);
        registration.upkeep.wakes(&registration);
        registration
    }

    /// Signals possible flushes and compactions.
    pub fn signal_jobs(self: &Arc<Self>) {
        self.signal(Lane::Flush);
        self.signal(self.compaction_lane);
    }

    /// Changes the limits. Running jobs above them go on.
    pub fn set_limits(self: &Arc<Self>, limits: Limits) {
        self.lanes.lock().limits = limits;
        self.env.pool(Lane::Flush).need(limits.flushes);
        self.env.pool(limits.compaction_lane).need(limits.compactions);
        self.signal_jobs();
    }

    /// Signals possible work of a lane.
    pub fn signal(self: &Arc<Self>, lane: Lane) {
        let mut lanes = self.lanes.lock();
        if lanes.is_ended {
            return;
        }
        let limit = lanes.limits.of(lane);
        let state = lanes.of.get_mut(lane);
        if state.is_queued {
            return;
        }
        if state.running - state.away >= limit {
            state.again = true;
            return;
        }
        state.is_queued = true;
        drop(lanes);
        self.env.pool(lane).push(self.clone());
    }

    /// Helper threads for parts of a caller's work.
    pub fn helpers(&self, count: usize) -> Helpers {
        Helpers::new(self.env.pool(Lane::Parts), count)
    }

    /// Helper threads for parts of a compaction.
    pub fn compaction_helpers(&self, count: usize) -> Helpers {
        Helpers::new(self.env.pool(self.compaction_lane), count)
    }

    fn begin_turn(&self, lane: Lane) -> bool {
        let mut lanes = self.lanes.lock();
        let is_ended = lanes.is_ended;
        let state = lanes.of.get_mut(lane);
        state.is_queued = false;
        state.running += usize::from(!is_ended);
        !is_ended
    }

    fn work(self: &Arc<Self>, lane: Lane) -> bool {
        let Some(client) = self.client.upgrade() else { return false };
        if lane != Lane::Upkeep {
            return client.work(lane, &|| self.signal(lane));
        }
        if let Some(is_over) = self.upkeep.begin_turn() {
            let limit = client.keep_up(is_over);
            drop(client);
            self.env.timer.rest(self, limit);
        }
        false
    }

    fn end_turn(self: &Arc<Self>, lane: Lane, worked: bool) {
        let mut lanes = self.lanes.lock();
        let state = lanes.of.get_mut(lane);
        state.running -= 1;
        let again = std::mem::take(&mut state.again) || worked;
        if lanes.is_ended && lanes.is_idle() {
            self.idle.notify_all();
        }
        drop(lanes);
        if again {
            self.signal(lane);
        }
    }

    /// Cancels queued turns and waits for running jobs. Must not be called from a job of the database: see
    /// [`defer`](Self::defer).
    pub fn end(&self) {
        let mut lanes = self.lanes.lock();
        let is_first = !std::mem::replace(&mut lanes.is_ended, true);
        while !lanes.is_idle() {
            self.idle.wait(&mut lanes);
        }
        drop(lanes);
        if is_first {
            self.env.timer.end(self.id);
        }
    }

    /// Runs `task` after the database's current job on this thread. `false` if this thread runs no job of the database.
    pub fn defer(&self, task: impl FnOnce() + Send + 'static) -> bool {
        CURRENT.with_borrow_mut(|current| match current {
            Some(current) if current.registration.id == self.id => {
                current.after.push(Box::new(task));
                true
            }
            _ => false,
        })
    }

    fn go_away(self: &Arc<Self>, lane: Lane) {
        let mut lanes = self.lanes.lock();
        let state = lanes.of.get_mut(lane);
        state.away += 1;
        let again = std::mem::take(&mut state.again);
        drop(lanes);
        if again {
            self.signal(lane);
        }
    }

    fn come_back(&self, lane: Lane) {
        MutexGuard::map(self.lanes.lock(), |lanes| lanes.of.get_mut(lane)).away -= 1;
    }
}

impl Turn for Registration {
    fn works_alone(&self, error: &Error) {
        if let Some(client) = self.client.upgrade() {
            client.works_alone(error);
        }
    }

    /// One job, on this thread.
    fn turn(self: Arc<Self>, lane: Lane) {
        if !self.begin_turn(lane) {
            return;
        }
        CURRENT.replace(Some(Current { registration: self.clone(), lane, after: Vec::new() }));
        let mut worked = false;
        let panicked = caught_panic("a turn", || worked = self.work(lane));
        let after = CURRENT.take().map(|current| current.after).unwrap_or_default();
        self.end_turn(lane, worked || panicked.is_err());
        if !after.is_empty() {
            // Not part of the lane's work: the pool must not wait for these tasks.
            let _away = AwayFromPool::new();
            after.into_iter().for_each(|task| task());
        }
    }
}

/// Runs user code, which may wait for a database. On an Env thread, another thread may take its place (E4).
pub(crate) fn as_away(run: impl FnOnce()) {
    let current =
        CURRENT.with_borrow(|current| current.as_ref().map(|current| (current.registration.clone(), current.lane)));
    let _away = current.map(|(registration, lane)| Away::new(registration, lane));
    let _away_from_pool = AwayFromPool::new();
    run();
}

/// Guard: a job of the database is inside user code.
struct Away {
    registration: Arc<Registration>,
    lane: Lane,
}

impl Away {
    fn new(registration: Arc<Registration>, lane: Lane) -> Self {
        // Upkeep runs one turn at a time, even while away.
        if lane != Lane::Upkeep {
            registration.go_away(lane);
        }
        Away { registration, lane }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if self.lane != Lane::Upkeep {
            self.registration.come_back(self.lane);
        }
    }
}
