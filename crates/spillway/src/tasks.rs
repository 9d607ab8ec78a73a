//! Short tasks that no caller should wait for: sorting a part of a memtable, giving a memtable's memory back, syncing a
//! log beside the table that is built from it. A few threads run them, in the order they came.
//!
//! Where background work runs inline, and where the database has no threads, a task is run by whoever hands it in.

use std::collections::VecDeque;
use std::sync::Arc;

use base::note;
use memtable::Background;
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::Task;

use crate::caught::caught_panic;

/// Tasks that wait at the most; beyond that whoever hands one in runs it, so that the queue cannot outgrow its threads.
const WAITING_MAX: usize = 1024;

/// Threads for tasks: as many as there are jobs that may run at once, and no more than this.
const THREADS_MAX: usize = 4;

/// Threads for the tasks of a database that may have so many jobs at once.
pub(crate) fn threads(max_background_jobs: usize) -> usize {
    max_background_jobs.clamp(1, THREADS_MAX)
}

/// Tasks on their way to threads. A leaf lock.
pub struct Tasks {
    inline: bool,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    ended: bool,
}

impl Tasks {
    /// `inline`: nobody calls [`work_until_ended`](Self::work_until_ended); whoever hands a task in runs it.
    pub fn new(inline: bool) -> Arc<Self> {
        Arc::new(Tasks { inline, waiting: Mutex::default(), changed: Condvar::new() })
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
        self.changed.notify_one();
        None
    }

    /// The life of a thread that runs tasks.
    pub fn work_until_ended(&self) {
        let mut waiting = self.waiting.lock();
        while !waiting.ended {
            match waiting.tasks.pop_front() {
                Some(task) => {
                    if let Err(error) = MutexGuard::unlocked(&mut waiting, || caught_panic("a task", task)) {
                        note::error!(%error, "the thread goes on");
                    }
                    // A flush leaves many memtables to be freed: who woke on this processor need not wait for all.
                    MutexGuard::unlocked(&mut waiting, std::thread::yield_now);
                }
                None => self.changed.wait(&mut waiting),
            }
        }
    }

    /// Lets the threads go and drops what waits. Tasks handed in later are run by whoever does.
    pub fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ended = true;
        let dropped = std::mem::take(&mut waiting.tasks);
        drop(waiting);
        self.changed.notify_all();
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
        std::thread::scope(|scope| {
            scope.spawn(|| tasks.work_until_ended());
            while count.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            tasks.end();
        });
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
