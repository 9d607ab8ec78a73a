//! Background work: who does it, and in what order.
//!
//! Flushes and compactions share one shape: *pick* looks at the state and says what to do, under the state lock; *run*
//! does the I/O and holds no lock; *install* rechecks and publishes. Upkeep makes spares and deletes files. All of it runs
//! on threads of an [`Env`]. If the vfs runs inline, [`Core::drive`] does it on the calling thread, so that a run is deterministic.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::options::CpuPriority;
use base::{Error, ErrorKind, Result};

use crate::background::caught::caught;
use crate::background::tasks;
use crate::background::{Client, Env, Lane, Limits};
use crate::compaction::job::CompactionPlan;
use crate::core::space::Needs;
use crate::core::{Core, State};
use crate::flush::job::FlushPlan;

pub(crate) enum Job {
    Flush(FlushPlan),
    Compaction(Box<CompactionPlan>),
}

impl Core {
    /// Has background work run on threads of an Env; not where the vfs runs inline.
    ///
    /// # Errors
    /// `Io`: there is no thread to be had.
    pub fn register(self: &Arc<Self>, env: &Env) -> Result<()> {
        if self.context.vfs.runs_inline() {
            return Ok(());
        }
        let options = &self.context.options;
        // As in RocksDB: a quarter of the jobs flush, the others compact, and there is one of each at least.
        let flushes = (options.max_background_jobs / 4).max(1);
        let limits = Limits {
            flushes,
            compactions: options.max_background_jobs.saturating_sub(flushes).max(1),
            tasks: tasks::at_once(options.max_background_jobs),
            compaction_lane: match options.compaction_cpu_priority {
                CpuPriority::Low => Lane::LowCompaction,
                _ => Lane::Compaction,
            },
        };
        self.context.info_log.written_by(self.upkeep.clone());
        let client: Weak<Core> = Arc::downgrade(self);
        let registration = env.register(client, limits, self.upkeep.clone())?;
        self.context.tasks.run_by(registration.clone());
        self.state_changed.run_jobs_by(registration);
        self.state_changed.notify_all();
        Ok(())
    }

    fn pick(&self, needs: Needs, state: &mut State) -> Option<Job> {
        if self.read_only || self.is_closing() || self.background_error().is_some() || self.space.holds(needs) {
            return None;
        }
        match needs {
            Needs::Flush => self.pick_flush(state).map(Job::Flush),
            Needs::Compaction => self.pick_compaction(state).map(|plan| Job::Compaction(Box::new(plan))),
            Needs::Manifest => None,
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
        // would leave one that never is. Whoever rolls makes a log that needs none yet: threads that databases share do not wait for it.
        let Some(_rolling) = self.logs.rolling.try_lock() else { return Ok(()) };
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
                self.pick(Needs::Flush, &mut state).or_else(|| self.pick(Needs::Compaction, &mut state))
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

impl Client for Core {
    fn work(&self, lane: Lane, found: &dyn Fn()) -> bool {
        let _noting = self.context.noting();
        let needs = match lane {
            Lane::Tasks => return self.context.tasks.run_one(found),
            Lane::Flush => Needs::Flush,
            _ => Needs::Compaction,
        };
        // Also where what is picked is compared by the caller's code.
        let worked = caught("a background thread", || {
            let job = self.pick(needs, &mut self.state.lock());
            Ok(job.map(|job| {
                found();
                self.run_job(job);
            }))
        });
        worked.map_or_else(
            |error| {
                self.fail(&error);
                false
            },
            |worked| worked.is_some(),
        )
    }

    fn keep_up(&self, is_over: bool) -> Option<Duration> {
        let _noting = self.context.noting();
        self.turn_of_upkeep(is_over)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    /// Two that find none would both make one, and that which is replaced would stay among the logs, unused.
    #[test]
    fn there_is_one_spare_log_however_many_make_it() {
        let vfs = vfs::MemoryVfs::new(1);
        let mut options = crate::OpenOptions { vfs: vfs.clone(), ..crate::OpenOptions::create_if_missing() };
        options.db.log_file_bytes = 64 << 10;
        let db = crate::Db::open("/db", &options).expect("opened");
        let core = db.core();
        vfs.set_runs_inline(false); // no upkeep but what is called here
        let write =
            |kib: usize| db.put(&db.default_family(), b"key", &vec![7; kib << 10], &crate::WriteOptions::default());
        let logs =
            || vfs.all_files().iter().filter(|path| path.extension().is_some_and(|kind| kind == "splog")).count();
        core.make_spare_log().expect("nothing to make");
        assert_eq!(logs(), 0, "nothing was written");
        write(10).expect("written");
        core.make_spare_log().expect("nothing to make");
        assert_eq!(logs(), 1, "a log that is not half full needs no successor");
        write(40).expect("written");
        let rolling = core.logs.rolling.lock();
        core.make_spare_log().expect("nothing to wait for");
        assert_eq!(logs(), 1, "whoever rolls makes one");
        drop(rolling);
        thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| core.make_spare_log().expect("made")))));
        assert_eq!(logs(), 2, "the current one, and the spare");
        vfs.set_runs_inline(true);
    }
}
pub(crate) mod notices;
