//! Background jobs: how they are picked and run.
//!
//! Flushes and compactions have three steps. *Pick* chooses the work under the state lock; *run* does the I/O and holds
//! no lock; *install* rechecks and installs the result. Upkeep makes spares and deletes files. Jobs run on threads of
//! an [`Env`]. If the vfs runs inline, [`Core::drive`] runs them on the calling thread, so that a run is deterministic.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::options::CpuPriority;
use base::{ErrorKind, Result};

use crate::background::caught::caught;
use crate::background::tasks;
use crate::background::{Client, Env, Lane, Limits};
use crate::compaction::job::CompactionPlan;
use crate::compaction::job::Compactor;
use crate::core::InlineJobs;
use crate::core::install::Installer;
use crate::core::space::Needs;
use crate::core::{Core, State};
use crate::flush::group::Flusher;
use crate::flush::job::FlushPlan;
use crate::ingest::link::Linker;
use crate::jobs::notices::ToldStalls;
use crate::jobs::notices::UpkeepWaits;
use crate::queue::Memtables;
use crate::wal::roll::Wal;
use parking_lot::Mutex;

pub(crate) mod notices;
mod space;

pub(crate) enum Job {
    Flush(FlushPlan),
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
    /// A leaf lock.
    told_stalls: Mutex<ToldStalls>,
    /// A leaf lock.
    upkeep_waits: Mutex<UpkeepWaits>,
}

impl Jobs {
    pub fn new(flusher: Arc<Flusher>, compactor: Arc<Compactor>) -> Arc<Self> {
        let Flusher { core, installer, memtables, wal, linker } = &*flusher;
        let jobs = Jobs {
            core: core.clone(),
            installer: installer.clone(),
            memtables: memtables.clone(),
            wal: wal.clone(),
            linker: linker.clone(),
            flusher: flusher.clone(),
            compactor,
            told_stalls: Mutex::default(),
            upkeep_waits: Mutex::default(),
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
        let options = &self.core.context.options;
        // As in RocksDB: a quarter of the jobs flush, the rest compact, at least one of each.
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
        self.core.context.info_log.written_by(self.core.upkeep.clone());
        let client: Weak<Jobs> = Arc::downgrade(self);
        let registration = env.register(client, limits, self.core.upkeep.clone())?;
        self.core.context.tasks.run_by(registration.clone());
        self.core.state_changed.run_jobs_by(registration);
        self.core.state_changed.notify_all();
        Ok(())
    }

    fn pick(&self, needs: Needs, state: &mut State) -> Option<Job> {
        if self.core.read_only
            || self.core.is_closing()
            || self.core.background_error().is_some()
            || self.core.space.holds(needs)
        {
            return None;
        }
        match needs {
            Needs::Flush => state.pick_flush().map(Job::Flush),
            Needs::Compaction => self.compactor.pick_compaction(state).map(|plan| Job::Compaction(Box::new(plan))),
            Needs::Manifest => None,
        }
    }

    fn run_job(&self, job: Job) {
        let (needs, bytes, result) = match job {
            Job::Flush(plan) => (Needs::Flush, plan.bytes(), self.flusher.flush_group(vec![plan])),
            Job::Compaction(plan) => {
                (Needs::Compaction, plan.pick.input_bytes(), self.compactor.compaction_job(*plan).map(|_| ()))
            }
        };
        self.core.end_job(needs, bytes, &result);
        self.tell_stall_changes();
    }

    /// One round of upkeep: notifies listeners, seals memtables over the limit, makes spares, prefaults, deletes
    /// obsolete files.
    pub fn keep_up(&self) {
        self.tell_background_errors();
        self.tell_stall_changes();
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
        let kept = self.memtables.keep_memtables_within_limit().and_then(|()| self.flusher.pass_linked_ingests());
        let kept = kept.and_then(|()| self.memtables.make_spare_memtables());
        self.wal.keep_present();
        let kept = kept.and_then(|()| self.wal.make_spare_log());
        if let Err(e) = kept {
            // Not fatal: a writer without a spare makes one itself and reports its error.
            note::warn!(error = %e, "cannot make a spare");
        }
        if let Err(e) = self.installer.note_logs() {
            note::warn!(error = %e, "cannot note the logs in the MANIFEST");
        }
        self.linker.excise_what_waited();
        self.purge_obsolete();
        self.core.removals.give_back_space();
    }

    /// Deletes files whose last pin is gone (Q3). If deletion fails, the next open retries it.
    pub fn purge_obsolete(&self) {
        for file in self.core.purge.take() {
            let path = self.core.path_of(file.file_type, file.number);
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
                None if self.linker.excise_what_waited() => {}
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

    fn keep_up(&self, is_over: bool) -> Option<Duration> {
        let _noting = self.core.context.noting();
        self.turn_of_upkeep(is_over)
    }
}
