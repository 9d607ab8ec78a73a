//! Short tasks that no caller should wait for: sorting a part of a memtable, giving a memtable's memory back, syncing a
//! log beside the table that is built from it. Threads of the Env run them, in the order they came.
//!
//! Where background work runs inline, and where the database is open for reading only, a task is run by whoever hands it in.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use base::note;
use memtable::Background;
use parking_lot::Mutex;
use vfs::Task;

use crate::background::caught::caught_panic;
use crate::background::{Lane, Registration};

/// Tasks that wait at the most; beyond that whoever hands one in runs it, so that the queue cannot outgrow its threads.
const WAITING_MAX: usize = 1024;

/// Tasks of a database at once, at the most.
const AT_ONCE_MAX: usize = 4;

/// Tasks at once of a database that may have so many jobs.
pub(crate) fn at_once(max_background_jobs: usize) -> usize {
    max_background_jobs.clamp(1, AT_ONCE_MAX)
}

/// Tasks on their way to threads. A leaf lock.
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
    /// `inline`: whoever hands a task in runs it.
    pub fn new(inline: bool) -> Arc<Self> {
        Arc::new(Tasks { inline, waiting: Mutex::default(), registration: OnceLock::new() })
    }

    /// Has threads of an Env come for tasks, those that wait included.
    pub(crate) fn run_by(&self, registration: Arc<Registration>) {
        let _ = self.registration.set(registration); // a database registers once
        self.call();
    }

    /// `None` where no threads of an Env come.
    pub(crate) fn registration(&self) -> Option<&Arc<Registration>> {
        self.registration.get()
    }

    fn call(&self) {
        if let Some(registration) = self.registration.get() {
            registration.signal(Lane::Tasks);
        }
    }

    /// Has a task run: soon, once, and not at all where the database closes before its turn comes.
    pub fn run(&self, task: Task) {
        if let Some(task) = self.enqueue(task) {
            task();
        }
    }

    /// Returns a task that its owner has to run.
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

    /// Runs the first that waits. Calls `found` before. False if none waits.
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
        // A flush leaves many memtables to be freed: who woke on this processor need not wait for all.
        std::thread::yield_now();
        true
    }

    /// Drops what waits. Tasks handed in later are run by whoever does.
    pub fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ended = true;
        let dropped = std::mem::take(&mut waiting.tasks);
        drop(waiting);
        drop(dropped); // off the lock: what a task owns may hand in another when it is dropped
    }

    /// The same, as memtables know it.
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
