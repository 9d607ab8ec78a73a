//! Work on many files at once: by whoever calls, and by a few threads that live for as long as that takes. They are not
//! those for short tasks, which flushes wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::note;
use base::{Error, Result};
use parking_lot::Mutex;
use vfs::{JoinHandle, Vfs};

use crate::caught::caught_panic;

/// Threads beside the caller's, at the most: what a disk gains from more syncs at once ends about there.
const HELPERS_MAX: usize = 3;

/// A thread pays off from so many files or bytes on. Fewer are done before it has started.
const FILES_PER_HELPER: usize = 4;
const BYTES_PER_HELPER: u64 = 4 << 20;

/// Helpers for so much work.
pub(crate) fn helpers_for(files: usize, bytes: u64) -> usize {
    let by_bytes = usize::try_from(bytes / BYTES_PER_HELPER).unwrap_or(HELPERS_MAX);
    (files / FILES_PER_HELPER).max(by_bytes).min(HELPERS_MAX).min(files.saturating_sub(1))
}

/// Does `work` on every item; returns what that yields, in the items' order. After an error no further item is begun, and
/// work under way sees its flag raised.
///
/// # Errors
/// The first error of all. A panic in a helper is one.
pub(crate) fn work_off<T, R, W>(vfs: &dyn Vfs, helpers: usize, items: Vec<T>, work: W) -> Result<Vec<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
    W: Fn(&T, &AtomicBool) -> Result<R> + Send + Sync + 'static,
{
    if helpers == 0 || vfs.runs_inline() {
        let nobody_else = AtomicBool::new(false);
        return items.iter().map(|item| work(item, &nobody_else)).collect();
    }
    let results = items.iter().map(|_| Mutex::new(None)).collect();
    let crew = Arc::new(Crew { items, work, next: AtomicUsize::new(0), results, stop: Stop::default() });
    {
        let mut threads = Threads { stop: &crew.stop, handles: Vec::new() };
        for _ in 0..helpers {
            let crew = crew.clone();
            let info_log = note::current();
            let help = move || {
                let _scope = note::within(info_log);
                crew.help();
            };
            match vfs.spawn("spillway-files", Box::new(help)) {
                Ok(handle) => threads.handles.push(handle),
                Err(error) => note::info!(%error, "files are worked on by fewer threads"),
            }
        }
        crew.work_off();
        // Those who help end what they are at. A panic here raises the flag first.
        threads.join();
    }
    match crew.stop.error.lock().take() {
        Some(error) => Err(error),
        None => Ok(crew.results.iter().map(|result| result.lock().take().expect("every item was done")).collect()),
    }
}

struct Crew<T, R, W> {
    items: Vec<T>,
    work: W,
    /// The first item that nobody has begun.
    next: AtomicUsize,
    results: Vec<Mutex<Option<R>>>,
    stop: Stop,
}

/// What ends the work early.
#[derive(Default)]
struct Stop {
    flag: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Stop {
    /// The first error counts; those after it may only say that there was one.
    fn with(&self, error: Error) {
        self.error.lock().get_or_insert(error);
        self.flag.store(true, Ordering::Relaxed);
    }
}

impl<T, R, W: Fn(&T, &AtomicBool) -> Result<R>> Crew<T, R, W> {
    fn work_off(&self) {
        while !self.stop.flag.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let (Some(item), Some(result)) = (self.items.get(index), self.results.get(index)) else { return };
            match (self.work)(item, &self.stop.flag) {
                Ok(done) => *result.lock() = Some(done),
                Err(error) => self.stop.with(error),
            }
        }
    }

    fn help(&self) {
        if let Err(error) = caught_panic("work on a file", || self.work_off()) {
            self.stop.with(error);
        }
    }
}

/// Helpers at work. None of them outlives it.
struct Threads<'a> {
    stop: &'a Stop,
    handles: Vec<Box<dyn JoinHandle>>,
}

impl Threads<'_> {
    fn join(&mut self) {
        self.handles.drain(..).for_each(|thread| thread.join());
    }
}

impl Drop for Threads<'_> {
    /// Finds threads only where the caller's own part panicked.
    fn drop(&mut self) {
        self.stop.flag.store(true, Ordering::Relaxed);
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use vfs::RealVfs;

    use super::*;

    #[test]
    fn helpers_come_where_there_is_work_for_them() {
        assert_eq!([0, 1, 3, 4, 8, 100].map(|files| helpers_for(files, 1000)), [0, 0, 0, 1, 2, 3]);
        assert_eq!([1, 2, 3, 9].map(|files| helpers_for(files, 1 << 30)), [0, 1, 2, 3]);
    }

    #[test]
    fn every_item_is_done_once_and_results_keep_their_order() {
        for helpers in [0, 3] {
            let items: Vec<u32> = (0..500).collect();
            let done = Arc::new(AtomicU32::new(0));
            let counted = done.clone();
            let work = move |item: &u32, _: &AtomicBool| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(item * 2)
            };
            let results = work_off(&*RealVfs::new(), helpers, items, work).expect("no error");
            assert_eq!(results, (0..500).map(|item| item * 2).collect::<Vec<u32>>());
            assert_eq!(done.load(Ordering::Relaxed), 500);
        }
    }

    #[test]
    fn an_error_or_a_panic_ends_the_others() {
        for panics in [false, true] {
            // Two items: one waits for the flag, the other raises it. With one helper each has a thread.
            let work = move |item: &u32, given_up: &AtomicBool| -> Result<u32> {
                if *item == 0 {
                    while !given_up.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    return Err(Error::closed("another failed"));
                }
                let on_helper = std::thread::current().name() == Some("spillway-files");
                assert!(!(panics && on_helper), "a panic that the test asks for");
                Err(Error::corruption("the first error"))
            };
            let error = work_off(&*RealVfs::new(), 1, vec![0, 1], work).expect_err("one failed");
            assert_eq!(error.kind(), base::ErrorKind::Corruption, "{error}");
        }
    }
}
