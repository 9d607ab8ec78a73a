//! Work on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use spillway::internal::Result;
use spillway::internal::vfs::{JoinHandle, Vfs};

/// Threads the machine runs at once.
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Work on its own thread. Dropping it waits for the thread.
pub struct Job<T> {
    thread: Option<Box<dyn JoinHandle>>,
    result: Arc<OnceLock<T>>,
}

impl<T: Send + Sync + 'static> Job<T> {
    pub fn start(vfs: &dyn Vfs, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<Job<T>> {
        let result = Arc::new(OnceLock::new());
        let to = result.clone();
        let thread = vfs.spawn(name, Box::new(move || assert!(to.set(work()).is_ok(), "one result of one thread")))?;
        Ok(Job { thread: Some(thread), result })
    }

    /// As [`start`](Self::start). Where no thread can be had, the work is done on this one before the call returns.
    pub fn begin(vfs: &dyn Vfs, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Job<T> {
        fn take<W>(work: &Mutex<Option<W>>) -> W {
            work.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it is done once")
        }
        let work = Arc::new(Mutex::new(Some(work)));
        let taken = work.clone();
        let started = Job::start(vfs, name, move || take(&taken)());
        started.unwrap_or_else(|_| Job { thread: None, result: Arc::new(OnceLock::from(take(&work)())) })
    }

    /// Waits for the result. A panic is passed on.
    pub fn wait(mut self) -> T {
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
        let result = std::mem::take(&mut self.result);
        Arc::into_inner(result).and_then(OnceLock::into_inner).expect("the thread has ended, and left its result")
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

/// Runs `work` for every item on at most `threads` threads, or on this one where none can be had. Results are in the order of the items.
///
/// # Errors
/// The first error in the order of the items. Items not yet begun by then are skipped.
pub fn map<I, T>(
    vfs: &dyn Vfs,
    threads: usize,
    items: Vec<I>,
    work: impl Fn(&I) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>>
where
    I: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let count = threads.clamp(1, items.len().max(1));
    let shared = Arc::new((items, AtomicUsize::new(0), AtomicBool::new(false), work));
    let one = |_| {
        let shared = shared.clone();
        Job::begin(vfs, "worker", move || {
            let (items, next, failed, work) = &*shared;
            let mut done = Vec::new();
            while !failed.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(at) else { break };
                let result = work(item);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                done.push((at, result));
            }
            done
        })
    };
    let jobs: Vec<_> = (0..count).map(one).collect();
    let mut done: Vec<_> = jobs.into_iter().flat_map(Job::wait).collect();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use spillway::internal::vfs::{Fault, FaultCode, FaultVfs, Operation, RealVfs, Rule};

    use super::*;

    /// As in a container without room for another process.
    #[test]
    fn work_without_a_thread_is_done_by_the_caller() {
        let vfs = FaultVfs::new(RealVfs::new());
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Spawn).sticky());
        assert_eq!(map(&*vfs, 4, vec![1, 2, 3], |n| Ok(n * 2)).expect("done"), [2, 4, 6]);
        assert_eq!(Job::begin(&*vfs, "work", || 7).wait(), 7);
    }
}
