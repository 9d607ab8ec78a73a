//! Short tasks off the caller's path: sorting a part of a memtable, freeing a memtable's memory, syncing a WAL during
//! the build of a table. Threads of the Env run tasks in order of arrival.
//!
//! If background work runs inline, or the database is read-only, the caller runs the task.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use base::note;
use memtable::Background;
use parking_lot::Mutex;
use vfs::Task;

use crate::background::caught::caught_panic;
use crate::background::{Lane, Registration};

/// Maximum of queued tasks. Beyond it the caller runs its task, so the queue cannot outgrow its threads.
const WAITING_MAX: usize = 1024;

/// Maximum of concurrent tasks of a database.
const AT_ONCE_MAX: usize = 4;

/// Concurrent tasks of a database with `max_background_jobs`.
pub(crate) fn at_once(max_background_jobs: usize) -> usize {
    max_background_jobs.clamp(1, AT_ONCE_MAX)
}

/// Queue of tasks. A leaf lock.
pub struct Tasks {
    inline: bool,
    waiting: Mutex<Waiting>,
    registration: OnceLock<Arc<Registration>>,
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    ended: bool,
}

impl Tasks {
    /// `inline`: the caller runs each task.
    pub fn new(inline: bool) -> Arc<Self> {
        Arc::new(Tasks { inline, waiting: Mutex::default(), registration: OnceLock::new() })
    }

    /// From now on, threads of an Env run the tasks, including queued ones.
    pub(crate) fn run_by(&self, registration: Arc<Registration>) {
        let _ = self.registration.set(registration); // a database registers once
        self.call();
    }

    /// `None` if no Env runs the tasks.
    pub(crate) fn registration(&self) -> Option<&Arc<Registration>> {
        self.registration.get()
    }

    fn call(&self) {
        if let Some(registration) = self.registration.get() {
            registration.signal(Lane::Tasks);
        }
    }

    /// Runs a task once, soon. Dropped without running if the database closes first.
    pub fn run(&self, task: Task) {
        if let Some(task) = self.enqueue(task) {
            task();
        }
    }

    /// Returns the task if the caller must run it.
    fn enqueue(&self, task: Task) -> Option<Task> {
        if self.inline {
            return Some(task);
        }
        let mut waiting = self.waiting.lock();
        if waiting.ended || waiting.tasks.len() >= WAITING_MAX {
            return Some(task);
        }
        waiting.tasks.push_back(task);
        drop(waiting);
        self.call();
        None
    }

    /// Runs the oldest queued task. Calls `found` first if more are queued. False if the queue is empty.
    pub(crate) fn run_one(&self, found: &dyn Fn()) -> bool {
        let (task, is_last) = {
            let mut waiting = self.waiting.lock();
            let Some(task) = waiting.tasks.pop_front() else { return false };
            (task, waiting.tasks.is_empty())
        };
        if !is_last {
            found();
        }
        if let Err(error) = caught_panic("a task", task) {
            note::error!(%error, "the thread goes on");
        }
        // A flush queues many memtables to free. Yield between them to threads woken on this processor.
        std::thread::yield_now();
        true
    }

    /// Drops queued tasks. From now on callers run their tasks.
    pub fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ended = true;
        let dropped = std::mem::take(&mut waiting.tasks);
        drop(waiting);
        drop(dropped); // off the lock: dropping a task may enqueue another
    }

    /// The queue as a `Background` for memtables.
    pub fn as_background(self: &Arc<Self>) -> Background {
        let tasks = self.clone();
        Background::new(move |task| tasks.run(task))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counting(count: &Arc<AtomicUsize>) -> Task {
        let count = count.clone();
        Box::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    #[test]
    fn tasks_run_once_and_those_that_wait_at_the_end_are_dropped() {
        let (tasks, count) = (Tasks::new(false), Arc::new(AtomicUsize::new(0)));
        tasks.run(counting(&count));
        tasks.run(counting(&count));
        let founds = AtomicUsize::new(0);
        let found = || _ = founds.fetch_add(1, Ordering::SeqCst);
        assert_eq!([(); 3].map(|()| tasks.run_one(&found)), [true, true, false]);
        assert_eq!((count.load(Ordering::SeqCst), founds.into_inner()), (2, 1), "behind the last one nothing waits");
        tasks.end();
        tasks.run(counting(&count));
        assert_eq!(count.load(Ordering::SeqCst), 3, "after the end the caller runs them");
        let never_worked = Tasks::new(false);
        never_worked.run(counting(&count));
        never_worked.end();
        assert_eq!((count.load(Ordering::SeqCst), Arc::strong_count(&count)), (3, 1), "dropped, with what it held");
    }

    #[test]
    fn a_full_queue_is_worked_off_by_those_who_fill_it() {
        let (tasks, count) = (Tasks::new(false), Arc::new(AtomicUsize::new(0)));
        (0..WAITING_MAX + 5).for_each(|_| tasks.run(counting(&count)));
        assert_eq!(count.load(Ordering::SeqCst), 5);
    }
}
