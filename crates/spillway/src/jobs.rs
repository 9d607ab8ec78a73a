//! Background work: who does it, and in what order.
//!
//! Flushes and compactions share one shape: *pick* looks at the state and says what to do, under the state lock; *run*
//! does the I/O and holds no lock; *install* rechecks and publishes. Upkeep makes spares and deletes files. Where the
//! vfs runs inline, [`Core::drive`] does all of it on the calling thread, so that a run is deterministic.

use std::sync::Arc;
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::options::CpuPriority;
use base::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::JoinHandle;

use crate::caught::caught_panic;
use crate::compaction::job::CompactionPlan;
use crate::core::{Core, State};
use crate::flush::job::FlushPlan;
use crate::space::Needs;
use crate::tasks;

/// Wakes one thread that waits for something to do. A leaf lock: raised under any other.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    raised: bool,
    /// The thread that waits looks again before long.
    looks_soon: bool,
}

/// For so long after it was raised, and so often, the thread that waits looks by itself.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS: u32 = 10;

impl Signal {
    pub fn raise(&self) {
        self.state.lock().raised = true;
        self.changed.notify_one();
    }

    /// As [`raise`](Self::raise), for what may wait some milliseconds: nobody is woken who looks soon anyway, since that costs
    /// whoever does it more than many a task takes.
    pub fn raise_soon(&self) {
        self.raise_unless(|state| state.looks_soon);
    }

    /// As [`raise_soon`](Self::raise_soon); but where it is raised already, more came than could wait for the next look.
    pub fn raise_again(&self) {
        self.raise_unless(|state| state.looks_soon && !state.raised);
    }

    /// Raises it, and wakes whoever waits unless that `can_wait`.
    fn raise_unless(&self, can_wait: impl Fn(&SignalState) -> bool) {
        let mut state = self.state.lock();
        let can_wait = can_wait(&state);
        state.raised = true;
        if !can_wait {
            self.changed.notify_one();
        }
    }

    /// Waits until it is raised, and lowers it; no longer than `limit`. Whether it was raised.
    pub fn wait(&self, limit: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        let mut left = limit;
        for look in 0..=LOOKS {
            let is_short = look < LOOKS;
            let step = if is_short { Some(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY))) } else { left };
            state.looks_soon = is_short;
            self.wait_once(&mut state, step);
            state.looks_soon = false;
            left = left.map(|left| left.saturating_sub(LOOK_EVERY));
            if state.raised || left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
        std::mem::take(&mut state.raised)
    }

    /// Until it is raised, or `limit` is over.
    fn wait_once(&self, state: &mut MutexGuard<'_, SignalState>, limit: Option<Duration>) {
        while !state.raised {
            match limit {
                None => self.changed.wait(state),
                Some(limit) if self.changed.wait_for(state, limit).timed_out() => break,
                Some(_) => {}
            }
        }
    }
}

/// What a background thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    Flush,
    Compaction,
    Upkeep,
    /// Short tasks that were handed in; see [`crate::tasks`].
    Tasks,
}

pub(crate) enum Job {
    Flush(FlushPlan),
    Compaction(Box<CompactionPlan>),
}

impl Core {
    /// Starts the background threads; none where the vfs runs inline.
    pub fn start_threads(self: &Arc<Self>, threads: &mut Vec<Box<dyn JoinHandle>>) -> Result<()> {
        if self.context.vfs.runs_inline() {
            return Ok(());
        }
        self.context.info_log.written_by(self.upkeep.clone());
        let jobs = self.context.options.max_background_jobs;
        // As in RocksDB: a quarter of the jobs flush, the others compact, and there is one of each at least.
        let flushes = (jobs / 4).max(1);
        let compactions = jobs.saturating_sub(flushes).max(1);
        let duties = std::iter::repeat_n(Duty::Flush, flushes)
            .chain(std::iter::repeat_n(Duty::Compaction, compactions))
            .chain(std::iter::repeat_n(Duty::Tasks, tasks::threads(jobs)))
            .chain([Duty::Upkeep]);
        for duty in duties {
            threads.push(self.start_thread(duty)?);
        }
        Ok(())
    }

    fn start_thread(self: &Arc<Self>, duty: Duty) -> Result<Box<dyn JoinHandle>> {
        let core = self.clone();
        let name = match duty {
            Duty::Flush => "spillway-flush",
            Duty::Compaction => "spillway-comp",
            Duty::Upkeep => "spillway-upkeep",
            Duty::Tasks => "spillway-tasks",
        };
        self.context.vfs.spawn(name, Box::new(move || core.work(duty)))
    }

    fn work(&self, duty: Duty) {
        let _noting = self.context.noting();
        match duty {
            Duty::Upkeep => return self.keep_up_until_closed(),
            Duty::Tasks => return self.context.tasks.work_until_ended(),
            Duty::Compaction if self.context.options.compaction_cpu_priority == CpuPriority::Low => {
                if !self.context.vfs.lower_cpu_priority() {
                    note::warn!("compactions keep their priority: the system does not let them give way");
                }
            }
            Duty::Flush | Duty::Compaction => {}
        }
        while !self.is_closing() {
            // Also where what is picked is compared by the caller's code.
            if let Err(error) = caught_panic("a background thread", || self.work_until_closed(duty)) {
                self.fail(&error);
            }
        }
    }

    fn work_until_closed(&self, duty: Duty) {
        let mut state = self.state.lock();
        while !self.is_closing() {
            match self.pick(duty, &mut state) {
                Some(job) => MutexGuard::unlocked(&mut state, || self.run_job(job)),
                None => self.state_changed.wait(&mut state),
            }
        }
    }

    fn pick(&self, duty: Duty, state: &mut State) -> Option<Job> {
        if self.read_only || self.background_error().is_some() {
            return None;
        }
        match duty {
            Duty::Flush if self.space.holds(Needs::Flush) => None,
            Duty::Compaction if self.space.holds(Needs::Compaction) => None,
            Duty::Flush => self.pick_flush(state).map(Job::Flush),
            Duty::Compaction => self.pick_compaction(state).map(|plan| Job::Compaction(Box::new(plan))),
            Duty::Upkeep | Duty::Tasks => None,
        }
    }

    fn run_job(&self, job: Job) {
        let (needs, bytes, result) = match job {
            Job::Flush(plan) => (Needs::Flush, plan.bytes(), self.flush_group(vec![plan])),
            Job::Compaction(plan) => {
                (Needs::Compaction, plan.pick.input_bytes(), self.compaction_job(*plan).map(|_| ()))
            }
        };
        self.end_job(needs, bytes, &result);
    }

    /// What follows a job, whoever ran it, that might have written `needed_bytes`.
    pub(crate) fn end_job(&self, needs: Needs, needed_bytes: u64, result: &Result<()>) {
        match result {
            Ok(()) => self.job_succeeded(needs, needed_bytes),
            Err(error) => self.job_failed(needs, error, needed_bytes),
        }
        self.tell_stall_changes();
        self.state_changed.notify_all();
        self.upkeep.raise(); // what waited for tables that the job had
    }

    /// Makes present what is written next, and spares, deletes what nothing needs, and tells of what changed.
    pub fn keep_up(&self) {
        self.tell_background_errors();
        self.tell_stall_changes();
        if self.read_only {
            return;
        }
        if let Some(error) = self.background_error() {
            if error.kind() == ErrorKind::NoSpace {
                self.purge_obsolete(); // which no edit can name any more that is to come (V3)
            }
            self.give_back_all_space();
            return;
        }
        if self.space.any() {
            self.give_back_all_space();
            self.end_idle_lacks(&self.state.lock());
        }
        let kept = self.keep_memtables_within_limit().and_then(|()| self.pass_linked_ingests());
        let kept = kept.and_then(|()| self.make_spare_memtables());
        self.keep_present();
        let kept = kept.and_then(|()| self.make_spare_log());
        if let Err(e) = kept {
            // Not fatal: a writer that finds no spare makes one itself, and reports what fails then.
            note::warn!(error = %e, "cannot make a spare");
        }
        if let Err(e) = self.note_logs() {
            note::warn!(error = %e, "cannot note the logs in the MANIFEST");
        }
        self.excise_what_waited();
        self.purge_obsolete();
        self.give_back_space();
    }

    fn make_spare_log(&self) -> Result<()> {
        if !self.logs.wants_spare() || self.is_closing() {
            return Ok(());
        }
        // A roll-over meanwhile would bring a log with a larger number into use before this one (C1), and a second spare
        // would leave one that never is.
        let _rolling = self.logs.rolling.lock();
        if self.logs.wants_spare() {
            self.logs.put_spare(self.logs.create(0)?);
        }
        Ok(())
    }

    /// Deletes the files whose last pin went (Q3). A file that cannot be deleted is left for the next open.
    pub fn purge_obsolete(&self) {
        for file in self.purge.take() {
            let path = self.path_of(file.file_type, file.number);
            match self.remove_obsolete(&path) {
                Ok(()) => {
                    tick(&self.context.statistics, Ticker::FilesDeletedImmediately, 1);
                    self.context.notify(&Event::FileDeleted { path });
                }
                Err(e) => note::warn!(error = %e, "cannot delete an obsolete file"),
            }
        }
    }

    /// Runs all background work that is due on the calling thread, where the vfs runs inline.
    pub fn drive_if_inline(&self) {
        if self.context.vfs.runs_inline() {
            self.drive();
        }
    }

    /// Runs background work on the calling thread until there is none.
    pub fn drive(&self) {
        self.look_for_space(false);
        loop {
            let job = {
                let mut state = self.state.lock();
                self.pick(Duty::Flush, &mut state).or_else(|| self.pick(Duty::Compaction, &mut state))
            };
            match job {
                Some(job) => self.run_job(job),
                None if self.excise_what_waited() => {}
                None => break,
            }
        }
        self.keep_up();
    }

    /// Waits for a condition of the state, running background work meanwhile where the vfs runs inline.
    ///
    /// # Errors
    /// The background error that keeps the condition from ever holding; `Closed`.
    pub fn wait_until(&self, mut holds: impl FnMut(&mut State) -> Result<bool>) -> Result<()> {
        let inline = self.context.vfs.runs_inline();
        if inline {
            self.drive();
        }
        let mut state = self.state.lock();
        loop {
            if holds(&mut state)? {
                return Ok(());
            }
            if let Some(error) = self.background_error() {
                return Err(error);
            }
            if self.is_closing() {
                return Err(Error::closed("the database was closed meanwhile"));
            }
            assert!(!inline, "background work that ran to its end left nothing to wait for");
            self.state_changed.wait(&mut state);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a signal is waited for by the system's clock, not a vfs's")]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    /// Long enough to tell that nobody was woken.
    const LIMIT: Duration = Duration::from_secs(20);

    /// How long a thread goes on waiting that began `age` ago, for a signal that is raised by `raise` then.
    fn wait_for(age: Duration, raise: fn(&Signal)) -> Duration {
        let signal = Signal::default();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                assert!(signal.wait(Some(LIMIT)));
                Instant::now()
            });
            thread::sleep(age);
            let start = Instant::now();
            raise(&signal);
            waits.join().expect("the thread that waits").saturating_duration_since(start)
        })
    }

    #[test]
    fn whoever_waits_is_woken_or_looks_before_long() {
        let long = LOOK_EVERY * (LOOKS + 10);
        for (age, raise) in [
            (LOOK_EVERY / 4, Signal::raise as fn(&Signal)),
            (long, Signal::raise),
            (LOOK_EVERY / 4, Signal::raise_soon),
            (long, Signal::raise_soon),
            (LOOK_EVERY / 4, Signal::raise_again),
            (long, Signal::raise_again),
        ] {
            assert!(wait_for(age, raise) < LIMIT / 2);
        }
    }

    /// Two that find none would both make one, and that which is replaced would stay among the logs, unused.
    #[test]
    fn there_is_one_spare_log_however_many_make_it() {
        let vfs = vfs::MemoryVfs::new(1);
        let mut options = crate::OpenOptions { vfs: vfs.clone(), ..crate::OpenOptions::create_if_missing() };
        options.db.log_file_bytes = 64 << 10;
        let db = crate::Db::open("/db", &options).expect("opened");
        let core = db.core();
        vfs.set_runs_inline(false); // no upkeep but what is called here
        let write = || db.put(&db.default_family(), b"key", &[7; 40 << 10], &crate::WriteOptions::default());
        let logs =
            || vfs.all_files().iter().filter(|path| path.extension().is_some_and(|kind| kind == "splog")).count();
        core.make_spare_log().expect("nothing to make");
        assert_eq!(logs(), 1, "a log that is not half full needs no successor");
        write().expect("written");
        thread::scope(|scope| {
            let rolling = core.logs.rolling.lock();
            for _ in 0..2 {
                scope.spawn(|| core.make_spare_log().expect("made"));
                thread::sleep(Duration::from_millis(20));
            }
            drop(rolling);
        });
        assert_eq!(logs(), 2, "the current one, and the spare");
        vfs.set_runs_inline(true);
    }

    #[test]
    fn who_raises_again_before_anybody_looked_wakes_it() {
        let twice = |signal: &Signal| {
            signal.raise_soon();
            signal.raise_again();
        };
        // The shortest: others may have the processors.
        let shortest = (0..20).map(|_| wait_for(LOOK_EVERY / 8, twice)).min();
        assert!(shortest < Some(LOOK_EVERY / 4), "{shortest:?}");
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        let signal = Signal::default();
        for limit in [Duration::from_millis(1), LOOK_EVERY * (LOOKS + 2)] {
            let start = Instant::now();
            assert!(!signal.wait(Some(limit)));
            assert!(start.elapsed() >= limit);
        }
        signal.raise_soon();
        assert!(signal.wait(Some(Duration::ZERO)), "raised before anybody waited");
    }
}
