//! Background jobs: how they are picked and run.
//!
//! Flushes and compactions have three steps. *Pick* chooses the work under the state lock; *run* does the I/O and holds
//! no lock; *install* rechecks and installs the result. Upkeep makes spares and deletes files. Jobs run on threads of
//! an [`Env`]. If the vfs runs inline, [`Core::drive`] runs them on the calling thread, so that a run is deterministic.

use std::io::Write;
use std::sync::{Arc, Once, Weak};
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
use crate::compaction::job::Compactor;
use crate::core::InlineJobs;
use crate::core::install::Installer;
use crate::core::options_file::OptionsFile;
use crate::core::space::Needs;
use crate::core::{Core, State};
use crate::flush::group::Flusher;
use crate::flush::job::FlushPlan;
use crate::flush::link::Linker;
use crate::jobs::reports::ReportedStalls;
use crate::jobs::reports::UpkeepWaits;
use crate::memtables::Memtables;
use crate::rollover::roll::Wal;
use parking_lot::Mutex;

pub(crate) mod reports;
mod space;

pub(crate) enum Job {
    /// Of different families.
    Flush(Vec<FlushPlan>),
    /// Of all families (`atomic_flush`).
    FlushAll,
    Compaction(Box<CompactionPlan>),
}

/// Background jobs of a database, and its upkeep.
pub(crate) struct Jobs {
    pub core: Arc<Core>,
    pub installer: Arc<Installer>,
    memtables: Arc<Memtables>,
    wal: Arc<Wal>,
    flusher: Arc<Flusher>,
    compactor: Arc<Compactor>,
    linker: Arc<Linker>,
    options_file: Arc<OptionsFile>,
    /// A leaf lock.
    reported_stalls: Mutex<ReportedStalls>,
    /// A leaf lock.
    upkeep_waits: Mutex<UpkeepWaits>,
    /// That no thread can be had was told.
    told_alone: Once,
}

impl Jobs {
    pub fn new(flusher: Arc<Flusher>, compactor: Arc<Compactor>, options_file: Arc<OptionsFile>) -> Arc<Self> {
        let Flusher { core, installer, memtables, wal, linker } = &*flusher;
        let jobs = Jobs {
            core: core.clone(),
            installer: installer.clone(),
            memtables: memtables.clone(),
            wal: wal.clone(),
            linker: linker.clone(),
            flusher: flusher.clone(),
            compactor,
            options_file,
            reported_stalls: Mutex::default(),
            upkeep_waits: Mutex::default(),
            told_alone: Once::new(),
        };
        Arc::new(jobs)
    }

    /// Registers with `env`, to run jobs on its threads. Does nothing if the vfs runs inline.
    ///
    /// # Errors
    /// `Io`: no thread could be started.
    pub fn register(self: &Arc<Self>, env: &Env) -> Result<()> {
        if self.core.context.vfs.runs_inline() {
            return Ok(());
        }
        self.core.context.info_log.written_by(self.core.upkeep.clone());
        let client: Weak<Jobs> = Arc::downgrade(self);
        let registration = env.register(client, self.limits(), self.core.upkeep.clone())?;
        self.core.context.tasks.run_by(registration.clone());
        self.core.state_changed.run_jobs_by(registration);
        self.core.state_changed.notify_all();
        Ok(())
    }

    /// As in RocksDB: a quarter of the jobs flush, the rest compact, at least one of each.
    fn limits(&self) -> Limits {
        let options = self.core.context.options_now.load();
        let flushes = (options.max_background_jobs / 4).max(1);
        Limits {
            flushes,
            compactions: options.max_background_jobs.saturating_sub(flushes).max(1),
            tasks: tasks::at_once(options.max_background_jobs),
            compaction_lane: match options.compaction_cpu_priority {
                CpuPriority::Low => Lane::LowCompaction,
                _ => Lane::Compaction,
            },
        }
    }

    /// Follows a change of `max_background_jobs` or `max_open_files`.
    pub fn follow_options(&self) {
        if self.core.slots.set_max(self.core.context.options_now.load().max_open_files) {
            for family in self.core.families.load().iter() {
                let view = family.view_full();
                let placed = view.version.all_files().map(|(_, table)| table);
                let open = placed.chain(view.queued_tables()).filter(|table| table.is_open());
                open.for_each(|table| self.core.slots.took_slot(Arc::downgrade(table)));
            }
        }
        if let Some(registration) = self.core.state_changed.registration() {
            registration.set_limits(self.limits());
        }
    }

    fn pick(&self, needs: Needs, state: &mut State) -> Option<Job> {
        if self.core.read_only
            || self.core.is_closing()
            || self.core.background_error().is_some()
            || self.core.space.holds(needs)
            || self.core.reserve.is_claimed()
        {
            return None;
        }
        let is_full = self.core.reserve.is_spent();
        if is_full && (self.core.reserve.wants_seal() || state.flushes_running + state.compactions_running > 0) {
            return None; // one job at a time: two would take the last space from each other
        }
        match needs {
            Needs::Flush if self.flusher.is_atomic() => state.begin_flush_of_all().then_some(Job::FlushAll),
            Needs::Flush => {
                let plans = if is_full { state.pick_all_flushes() } else { state.pick_flush().into_iter().collect() };
                (!plans.is_empty()).then_some(Job::Flush(plans))
            }
            Needs::Compaction => self.compactor.pick_compaction(state).map(|plan| Job::Compaction(Box::new(plan))),
            Needs::Manifest => None,
        }
    }

    fn run_job(&self, job: Job) {
        let (needs, bytes, result) = match job {
            Job::FlushAll => {
                let _ = self.flusher.flush_all(); // its end is handled there
                return self.tell_stall_changes();
            }
            Job::Flush(plans) => {
                (Needs::Flush, plans.iter().map(FlushPlan::bytes).sum(), self.flusher.flush_group(plans))
            }
            Job::Compaction(plan) => {
                (Needs::Compaction, plan.pick.input_bytes(), self.compactor.compaction_job(*plan).map(|_| ()))
            }
        };
        let _ = self.core.end_job(needs, bytes, result); // handled there
        self.tell_stall_changes();
    }

    /// One round of upkeep: notifies listeners, seals memtables over the limit, makes spares, prefaults, deletes
    /// obsolete files.
    pub fn keep_up(&self) {
        self.tell_background_errors();
        self.tell_stall_changes();
        self.tell_kept_views();
        if self.core.read_only {
            return;
        }
        if let Some(error) = self.core.background_error() {
            if error.kind() == ErrorKind::NoSpace {
                self.purge_obsolete(); // no later edit can name these files (V3)
            }
            self.core.removals.give_back_all_space();
            return;
        }
        if self.core.space.any() {
            self.core.removals.give_back_all_space();
            self.end_idle_lacks(&self.core.state.lock());
        }
        self.seal_for_room();
        let kept = self.memtables.keep_memtables_within_limit().and_then(|()| self.flusher.pass_linked_ingests());
        let looks = self.memtables.take_looks();
        let kept = kept.and_then(|()| self.memtables.make_spare_memtables(&looks));
        self.wal.prefault(&looks);
        self.wal.write_back();
        let kept = kept.and_then(|()| self.wal.make_spare_log());
        if let Err(e) = kept {
            // Not fatal: a writer without a spare makes one itself and reports its error.
            note::warn!(error = %e, "cannot make a spare");
            self.memtables.look_at(looks);
        }
        if let Err(e) = self.installer.record_logs() {
            note::warn!(error = %e, "cannot note the logs in the MANIFEST");
        }
        self.options_file.keep_up();
        self.linker.excise_what_waited();
        self.compactor.suggest_hot_tables();
        self.purge_obsolete();
        self.core.archive.keep_within(&self.core.context.options_now.load(), &self.core.removals);
        if self.core.reserve.is_spent() {
            self.core.removals.give_back_all_space();
        }
        self.core.removals.give_back_space();
        self.core.keep_reserve();
    }

    /// Once the reserve is given up: leaves the log and seals all memtables, so that the next flush frees all logs.
    /// False if this is done already.
    fn seal_for_room(&self) -> bool {
        if !self.core.reserve.wants_seal() {
            return false;
        }
        if let Err(error) = self.wal.leave_log() {
            note::warn!(%error, "the log goes on, and takes its space until it is full");
        }
        for family in self.core.families.load().iter() {
            if let Err(error) = self.memtables.seal_for_flush(family) {
                note::warn!(%error, family = family.name(), "cannot flush to make room");
            }
        }
        self.core.reserve.record_sealed();
        self.core.state_changed.notify_all();
        true
    }

    /// Deletes files whose last pin is gone (Q3). If deletion fails, the next open retries it.
    pub fn purge_obsolete(&self) {
        for file in self.core.purge.take() {
            let path = self.core.path_of(file.file_type, file.number);
            if self.core.context.may_be_of_another(file.file_type, file.number, &path) {
                note::warn!(path = %path.display(), "left alone: values in it are not needed any more, but another database may use it");
                continue;
            }
            let options = self.core.context.options_now.load();
            match self.core.archive.take(&path, file.file_type, file.number, &options) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => note::warn!(%error, "a log is deleted, because it cannot be archived"),
            }
            match self.core.removals.remove_obsolete(&path) {
                Ok(()) => {
                    tick(&self.core.context.statistics, Ticker::FilesDeletedImmediately, 1);
                    self.core.context.notify(&Event::FileDeleted { path });
                }
                Err(e) => note::warn!(error = %e, "cannot delete an obsolete file"),
            }
        }
    }
}

impl InlineJobs for Jobs {
    fn run_due(&self) {
        self.look_for_space(false);
        loop {
            let job = {
                let mut state = self.core.state.lock();
                self.pick(Needs::Flush, &mut state).or_else(|| self.pick(Needs::Compaction, &mut state))
            };
            match job {
                Some(job) => self.run_job(job),
                None if self.seal_for_room() || self.linker.excise_what_waited() => {}
                None => break,
            }
        }
        self.keep_up();
    }
}

impl Client for Jobs {
    fn work(&self, lane: Lane, found: &dyn Fn()) -> bool {
        let _noting = self.core.context.noting();
        let needs = match lane {
            Lane::Tasks => return self.core.context.tasks.run_one(found),
            Lane::Flush => Needs::Flush,
            _ => Needs::Compaction,
        };
        // Picking can panic, too: it calls the user's comparator.
        let worked = caught("a background thread", || {
            let job = self.pick(needs, &mut self.core.state.lock());
            Ok(job.map(|job| {
                found();
                self.run_job(job);
            }))
        });
        worked.map_or_else(
            |error| {
                self.core.fail(&error);
                false
            },
            |worked| worked.is_some(),
        )
    }

    fn works_alone(&self, error: &Error) {
        let _noting = self.core.context.noting();
        self.told_alone.call_once(|| {
            let dir = self.core.context.dir.display();
            let what = "no thread can be had: one does all background work, one job at a time, and writes may wait for it; \
                        raise the limit of processes (`ulimit -u`, pids.max), and open the database again";
            note::warn!(%error, "{what}");
            // A program without `tracing` would not know why it is slow.
            let _ = writeln!(std::io::stderr(), "spillway: {dir}: {what}: {error}");
        });
    }

    fn keep_up(&self, is_over: bool) -> Option<Duration> {
        let _noting = self.core.context.noting();
        self.turn_of_upkeep(is_over)
    }
}
