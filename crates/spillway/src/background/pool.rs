//! The threads of one lane and its queue of databases with work. Keeps E1, E4.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use base::{Error, note};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Lane;
use super::timer::Timer;
use crate::background::caught::caught_panic;

/// A queue entry of a pool.
pub(super) trait Turn: Send + Sync {
    fn turn(self: Arc<Self>, lane: Lane);

    /// Before a turn on the timer's thread (E6).
    fn works_alone(&self, _error: &Error) {}
}

thread_local! {
    /// The pool of this thread.
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
}

pub(super) struct Pool {
    lane: Lane,
    timer: Arc<Timer>,
    queue: Mutex<Queue>,
    work: Condvar,
}

struct Queue {
    /// Databases with work, each at most once, and requests for help with parts.
    ready: VecDeque<Arc<dyn Turn>>,
    /// Maximum of threads, not counting threads in `away`.
    size: usize,
    /// Includes threads in `to_start`.
    threads: usize,
    /// Threads for the timer to start: starting a thread takes too long for a writer.
    to_start: usize,
    /// Waiting threads, not woken yet.
    idle: usize,
    /// Woken threads, not running yet.
    woken: usize,
    /// Threads inside user code (E4).
    away: usize,
}

/// What became of a pool's call for threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Started {
    All,
    /// One is missing; others serve the queue, or it is empty.
    Missing,
    /// One is missing; the caller has run a turn.
    Worked,
}

impl Queue {
    fn counted(&self) -> usize {
        self.threads - self.away
    }
}

impl Pool {
    pub fn new(lane: Lane, timer: Arc<Timer>, size: usize) -> Arc<Pool> {
        let queue = Queue { ready: VecDeque::new(), size, threads: 0, to_start: 0, idle: 0, woken: 0, away: 0 };
        Arc::new(Pool { lane, timer, queue: Mutex::new(queue), work: Condvar::new() })
    }

    pub fn size(&self) -> usize {
        self.queue.lock().size
    }

    pub fn threads(&self) -> usize {
        self.queue.lock().threads
    }

    pub fn set_size(&self, size: usize) {
        self.resize(|_| size.max(1));
    }

    /// Grows the pool to at least `size`.
    pub fn need(&self, size: usize) {
        self.resize(|now| now.max(size));
    }

    fn resize(&self, size: impl Fn(usize) -> usize) {
        let mut queue = self.queue.lock();
        queue.size = size(queue.size);
        let ready = queue.ready.len();
        drop(queue);
        (0..ready).for_each(|_| self.serve(self.queue.lock()));
    }

    /// Appends `turn` to the queue.
    pub fn push(&self, turn: Arc<dyn Turn>) {
        let mut queue = self.queue.lock();
        queue.ready.push_back(turn);
        self.serve(queue);
    }

    /// Removes `turn` from the queue.
    pub fn withdraw(&self, turn: &Arc<dyn Turn>) {
        self.queue.lock().ready.retain(|ready| !Arc::ptr_eq(ready, turn));
    }

    /// Wakes an idle thread for the queue, or starts a new one. If neither is possible, a running thread picks up the
    /// work.
    fn serve(&self, mut queue: MutexGuard<'_, Queue>) {
        if queue.idle > 0 {
            queue.idle -= 1;
            queue.woken += 1;
            drop(queue);
            self.work.notify_one();
        } else if queue.counted() < queue.size {
            queue.threads += 1;
            queue.to_start += 1;
            drop(queue);
            self.timer.start_threads();
        }
    }

    /// Starts the threads in `to_start`. Where none can be had and the pool has none, the caller runs one turn.
    pub fn start_threads(self: &Arc<Self>) -> Started {
        let mut queue = self.queue.lock();
        while queue.to_start > 0 {
            queue.to_start -= 1;
            let pool = self.clone();
            let start = || self.timer.vfs.spawn(self.lane.thread_name(), Box::new(move || pool.run()));
            // The thread is never joined.
            if let Err(error) = MutexGuard::unlocked(&mut queue, start).map(drop) {
                queue.to_start += 1;
                let is_alone = queue.threads == queue.to_start;
                let turn = if is_alone { queue.ready.pop_front() } else { None };
                let Some(turn) = turn else { return Started::Missing };
                drop(queue);
                turn.works_alone(&error);
                self.take_turn(turn);
                return Started::Worked;
            }
        }
        Started::All
    }

    fn take_turn(&self, turn: Arc<dyn Turn>) {
        if let Err(error) = caught_panic("a turn", || turn.turn(self.lane)) {
            note::error!(%error, "the thread goes on");
        }
    }

    /// Main function of a thread.
    fn run(self: &Arc<Self>) {
        POOL.replace(Some(self.clone()));
        if self.lane == Lane::LowCompaction && !self.timer.vfs.lower_cpu_priority() {
            note::warn!("compactions keep their priority: the system does not let them give way");
        }
        let mut queue = self.queue.lock();
        while queue.counted() <= queue.size {
            let Some(turn) = queue.ready.pop_front() else { if self.wait(&mut queue) { continue } else { break } };
            MutexGuard::unlocked(&mut queue, || self.take_turn(turn));
        }
        queue.threads -= 1;
        // A surplus thread may end after being woken for a turn. Another thread must take the turn.
        if !queue.ready.is_empty() {
            self.serve(queue);
        }
    }

    /// Waits for work. False after an idle time long enough to end the thread.
    fn wait(&self, queue: &mut MutexGuard<'_, Queue>) -> bool {
        queue.idle += 1;
        loop {
            let is_over = self.work.wait_for(queue, self.timer.idle_max).timed_out();
            if queue.woken > 0 {
                queue.woken -= 1;
                return true;
            }
            if is_over {
                queue.idle -= 1;
                return false;
            }
        }
    }
}

/// Guard: the calling thread is away from its pool, and another thread may take its place (E4). No effect on other
/// threads.
pub(super) struct AwayFromPool(Option<Arc<Pool>>);

impl AwayFromPool {
    pub fn new() -> Self {
        let pool = POOL.with_borrow(Clone::clone);
        if let Some(pool) = &pool {
            let mut queue = pool.queue.lock();
            queue.away += 1;
            if !queue.ready.is_empty() {
                pool.serve(queue);
            }
        }
        AwayFromPool(pool)
    }
}

impl Drop for AwayFromPool {
    fn drop(&mut self) {
        if let Some(pool) = &self.0 {
            pool.queue.lock().away -= 1;
        }
    }
}

impl Lane {
    fn thread_name(self) -> &'static str {
        match self {
            Lane::Flush => "spillway-flush",
            Lane::Compaction | Lane::LowCompaction => "spillway-comp",
            Lane::Tasks => "spillway-tasks",
            Lane::Parts => "spillway-parts",
            Lane::Reads => "spillway-reads",
            Lane::Upkeep => "spillway-upkeep",
        }
    }
}
