//! Parallel parts of one piece of work. The caller works on the parts; threads of a pool help.
//!
//! No part waits for a helper, so a busy pool delays nothing. Once [`run_parts`] returns, no helper runs a part or
//! holds anything of the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base::note;
use base::{Error, Result};
use parking_lot::{Condvar, Mutex};

use super::Lane;
use super::pool::{Pool, Turn};
use crate::background::caught::{caught, caught_panic};

/// Interval at which a caller waiting for helpers checks `stop`.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Up to `count` threads of a pool as helpers.
pub(crate) struct Helpers {
    pool: Option<Arc<Pool>>,
    count: usize,
}

impl Helpers {
    pub fn none() -> Helpers {
        Helpers { pool: None, count: 0 }
    }

    pub(super) fn new(pool: &Arc<Pool>, count: usize) -> Helpers {
        Helpers { pool: Some(pool.clone()), count }
    }
}

/// Results of parts.
pub(crate) struct Outcome<R> {
    /// Results of the successful parts, in the order of the parts. Complete if there is no error.
    pub done: Vec<R>,
    /// The first error; later errors may only follow from it.
    pub error: Option<Error>,
}

impl<R> Outcome<R> {
    /// # Errors
    /// The first error of a part.
    pub fn all(self) -> Result<Vec<R>> {
        self.error.map_or(Ok(self.done), Err)
    }
}

/// Runs `work` on every part. After an error or a panic no further part begins. `work` can poll its second argument to
/// give up early: it is true after another part failed, or if `stop` is true. Only the calling thread calls `stop`.
/// `stop` keeps no part from beginning: `work` must look, and return an error.
pub(crate) fn run_parts<T, R, W>(helpers: Helpers, parts: Vec<T>, stop: &dyn Fn() -> bool, work: W) -> Outcome<R>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
    W: Fn(&T, &dyn Fn() -> bool) -> Result<R> + Send + Sync + 'static,
{
    let count = helpers.count.min(parts.len().saturating_sub(1));
    let outcome = Mutex::new(Outcome { done: Vec::with_capacity(parts.len()), error: None });
    let all = Arc::new(Parts { parts, work, next: AtomicUsize::new(0), gives_up: AtomicBool::new(false), outcome });
    match helpers.pool.filter(|_| count > 0) {
        None => all.work_off(stop),
        Some(pool) => {
            let (parts_of_helpers, info_log) = (all.clone(), note::current());
            let help = Help::new(Box::new(move || {
                let _scope = note::within(info_log.clone());
                parts_of_helpers.work_off(&|| false);
            }));
            (0..count).for_each(|_| pool.push(help.clone()));
            pool.start_threads(); // an Env without a database has no timer to do it; failed starts delay nothing
            all.work_off(stop);
            pool.withdraw(&(help.clone() as Arc<dyn Turn>));
            help.end(|| {
                if stop() {
                    all.gives_up.store(true, Ordering::Relaxed);
                }
            });
        }
    }
    let mut outcome = std::mem::replace(&mut *all.outcome.lock(), Outcome { done: Vec::new(), error: None });
    outcome.done.sort_unstable_by_key(|(index, _)| *index);
    Outcome { done: outcome.done.into_iter().map(|(_, result)| result).collect(), error: outcome.error }
}

struct Parts<T, R, W> {
    parts: Vec<T>,
    work: W,
    /// Index of the next part to begin.
    next: AtomicUsize,
    gives_up: AtomicBool,
    /// Results with their part's index.
    outcome: Mutex<Outcome<(usize, R)>>,
}

impl<T, R, W: Fn(&T, &dyn Fn() -> bool) -> Result<R>> Parts<T, R, W> {
    /// Works until no part is left to begin.
    fn work_off(&self, stop: &dyn Fn() -> bool) {
        let gives_up = || self.gives_up.load(Ordering::Relaxed) || stop();
        while !self.gives_up.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = self.parts.get(index) else { return };
            // A panic is an error: a missing part is missing data (V2).
            match caught("a part of parallel work", || (self.work)(part, &gives_up)) {
                Ok(result) => self.outcome.lock().done.push((index, result)),
                Err(error) => {
                    self.outcome.lock().error.get_or_insert(error);
                    self.gives_up.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

/// The helpers of one piece of work.
struct Help {
    state: Mutex<HelpState>,
    /// A helper ended.
    ended: Condvar,
}

struct HelpState {
    /// `None` once no further helper may begin.
    work: Option<Arc<dyn Fn() + Send + Sync>>,
    helping: usize,
}

impl Help {
    fn new(work: Box<dyn Fn() + Send + Sync>) -> Arc<Help> {
        Arc::new(Help { state: Mutex::new(HelpState { work: Some(work.into()), helping: 0 }), ended: Condvar::new() })
    }

    /// Stops further helpers and waits for running ones. Calls `look` periodically.
    fn end(&self, look: impl Fn()) {
        let mut state = self.state.lock();
        state.work = None;
        while state.helping > 0 {
            self.ended.wait_for(&mut state, STOP_CHECK_INTERVAL);
            look();
        }
    }
}

impl Turn for Help {
    fn turn(self: Arc<Self>, _: Lane) {
        let mut state = self.state.lock();
        let Some(work) = state.work.clone() else { return };
        state.helping += 1;
        drop(state);
        if let Err(error) = caught_panic("a helper", || work()) {
            note::error!(%error, "the thread goes on");
        }
        drop(work); // before the caller goes on
        self.state.lock().helping -= 1;
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::background::{Env, EnvOptions};

    fn run<R: Send + 'static>(
        helpers: usize,
        parts: Vec<u32>,
        work: impl Fn(u32, &dyn Fn() -> bool) -> Result<R> + Send + Sync + 'static,
    ) -> Result<Vec<R>> {
        let env = Env::new(EnvOptions::default());
        run_parts(env.helpers(helpers), parts, &|| false, move |part, gives_up| work(*part, gives_up)).all()
    }

    #[test]
    fn every_part_is_done_once_and_results_keep_their_order() {
        for helpers in [0, 3] {
            let done = Arc::new(AtomicU32::new(0));
            let counted = done.clone();
            let work = move |part, _: &dyn Fn() -> bool| {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(part * 2)
            };
            let results = run(helpers, (0..500).collect(), work).expect("no error");
            assert_eq!(results, (0..500).map(|part| part * 2).collect::<Vec<u32>>());
            assert_eq!((done.load(Ordering::Relaxed), Arc::strong_count(&done)), (500, 1), "nobody holds the work");
        }
    }

    #[test]
    fn helpers_work_beside_the_caller() {
        let all_at_once = Barrier::new(4); // nobody passes alone
        let work = move |part, _: &dyn Fn() -> bool| {
            all_at_once.wait();
            Ok(part)
        };
        assert_eq!(run(3, vec![1, 2, 3, 4], work).expect("no error"), [1, 2, 3, 4]);
    }

    #[test]
    fn where_all_threads_are_busy_the_caller_does_everything() {
        let env = Env::new(EnvOptions::default());
        let inner = env.clone();
        // Each holds a thread, and the inner parts have nobody else.
        let all_begun = Barrier::new(1 + env.0.pool(Lane::Parts).size());
        let work = move |_: &u32, _: &dyn Fn() -> bool| {
            all_begun.wait();
            run_parts(inner.helpers(3), vec![1, 2, 3], &|| false, |part, _| Ok(*part)).all()
        };
        let outer: Vec<u32> = (0..=env.0.pool(Lane::Parts).size() as u32).collect();
        let outcome = run_parts(env.helpers(env.0.pool(Lane::Parts).size()), outer, &|| false, work);
        assert!(outcome.all().expect("no error").iter().all(|inner| *inner == [1, 2, 3]));
    }

    #[test]
    fn an_error_or_a_panic_ends_the_others() {
        for panics in [false, true] {
            let both_begun = Barrier::new(2);
            // One waits for the other to fail.
            let work = move |part, gives_up: &dyn Fn() -> bool| -> Result<u32> {
                both_begun.wait();
                if part == 0 {
                    while !gives_up() {
                        std::thread::yield_now();
                    }
                    return Err(Error::closed("another failed"));
                }
                assert!(!panics, "a panic that the test asks for");
                Err(Error::corruption("the first error"))
            };
            let error = run(1, vec![0, 1, 2], work).expect_err("one failed");
            let text = if panics { "a panic that the test asks for" } else { "the first error" };
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn a_caller_that_is_told_to_stop_stops_its_helpers() {
        let env = Env::new(EnvOptions::default());
        let both_begun = Barrier::new(2);
        let work = move |_: &u32, gives_up: &dyn Fn() -> bool| -> Result<()> {
            both_begun.wait();
            while !gives_up() {
                std::thread::yield_now();
            }
            Err(Error::closed("told to"))
        };
        let outcome = run_parts(env.helpers(1), vec![0, 1], &|| true, work);
        assert_eq!(outcome.error.map(|error| error.kind()), Some(base::ErrorKind::Closed));
    }
}
