//! The parts of an open database, their assembly, and the close.

pub(crate) mod reported;

use std::sync::{Arc, OnceLock};

use base::note;
use base::{Result, SeqNo};
use parking_lot::Mutex;
use vfs::LockGuard;

use crate::commit::committer::Committer;
use crate::compaction::job::Compactor;
use crate::core::family::Family;
use crate::core::install::Installer;
use crate::core::options_file::OptionsFile;
use crate::core::space::Needs;
use crate::core::{Core, InlineJobs};
use crate::engine::reported::Reported;
use crate::flush::group::Flusher;
use crate::flush::link::Linker;
use crate::ingest::Ingester;
use crate::jobs::Jobs;
use crate::manage::catalog::Catalog;
use crate::manage::checkpoint::Copier;
use crate::manage::import::Importer;
use crate::memtables::Memtables;
#[cfg(feature = "observe")]
use crate::observe::socket::Server;
use crate::rollover::roll::Wal;

/// Held from the open to the end of the close.
pub(crate) type DirectoryLock = Mutex<Option<Box<dyn LockGuard>>>;

/// How far a secondary is behind its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The last number that reads find.
    pub visible: SeqNo,
    /// Bytes of log records not read yet.
    pub bytes: u64,
}

/// What follows a primary. It opens what the primary wrote, as an open does.
pub(crate) trait Following: Send + Sync {
    /// Shows what the primary has done since.
    ///
    /// # Errors
    /// `InvalidArgument`: the primary is another database, or an older state. `Io` (not found): it is gone. `Busy`: it
    /// changed its files during every try. What was visible stays so.
    fn catch_up(&self) -> Result<()>;

    /// How far this secondary is behind. Reads the log records that it has not read.
    ///
    /// # Errors
    /// As reading the logs.
    fn lag(&self) -> Result<Lag>;
}

/// The parts of an open database. Each part holds the parts it uses; none holds the engine.
pub(crate) struct Engine {
    pub core: Arc<Core>,
    pub installer: Arc<Installer>,
    pub memtables: Arc<Memtables>,
    pub wal: Arc<Wal>,
    pub committer: Arc<Committer>,
    pub flusher: Arc<Flusher>,
    pub compactor: Arc<Compactor>,
    pub ingester: Ingester,
    pub jobs: Arc<Jobs>,
    pub options_file: Arc<OptionsFile>,
    /// Set on a secondary.
    pub follower: OnceLock<Box<dyn Following>>,
    /// The state of the last `rocksdb.stats` report. A leaf lock.
    pub reported: Mutex<Reported>,
    /// Set while readings are served at a socket.
    #[cfg(feature = "observe")]
    pub observer: OnceLock<Server>,
}

impl Engine {
    pub fn new(core: Core) -> Arc<Engine> {
        let core = Arc::new(core);
        let installer = Installer::new(core.clone());
        let memtables = Memtables::new(core.clone());
        let wal = Wal::new(core.clone(), installer.clone(), memtables.clone());
        let linker = Linker::new(core.clone(), installer.clone());
        let committer = Committer::new(core.clone(), memtables.clone(), wal.clone());
        let flusher = Flusher::new(memtables.clone(), wal.clone(), linker.clone());
        let compactor = Compactor::new(core.clone(), installer.clone());
        let ingester = Ingester::new(&committer, &flusher, &linker);
        let options_file = OptionsFile::new(core.clone(), installer.clone());
        let jobs = Jobs::new(flusher.clone(), compactor.clone(), options_file.clone());
        let inline: Arc<dyn InlineJobs> = jobs.clone();
        core.run_inline_by(Arc::downgrade(&inline));
        Arc::new(Engine {
            core,
            installer,
            memtables,
            wal,
            committer,
            flusher,
            compactor,
            ingester,
            jobs,
            options_file,
            follower: OnceLock::new(),
            reported: Mutex::default(),
            #[cfg(feature = "observe")]
            observer: OnceLock::new(),
        })
    }

    pub fn catalog(&self) -> Catalog<'_> {
        Catalog { core: &self.core, installer: &self.installer }
    }

    pub fn importer(&self) -> Importer<'_> {
        Importer { core: &self.core, catalog: self.catalog(), committer: &self.committer }
    }

    pub fn copier(&self) -> Copier<'_> {
        Copier { core: &self.core, installer: &self.installer, flusher: &self.flusher }
    }

    /// Changes mutable options of a family, and stores them.
    pub fn set_options(&self, family: &Family, options: &[(&str, &str)]) -> Result<()> {
        self.core.check_open()?;
        let _noting = self.core.context.noting();
        self.catalog().set_family_options(family, options)?;
        self.store_options();
        Ok(())
    }

    /// Changes mutable options of the database, and stores them.
    pub fn set_db_options(&self, options: &[(&str, &str)]) -> Result<()> {
        self.core.check_open()?;
        let _noting = self.core.context.noting();
        let context = &self.core.context;
        let before = context.options_now.load_full();
        self.catalog().set_db_options(options)?;
        self.jobs.follow_options();
        let now = context.options_now.load();
        self.committer.counts.slow.watch(now.slow_operation_micros, context.vfs.now());
        // Only a change: a limiter of several databases may have another limit.
        if now.rate_limiter_bytes_per_sec != before.rate_limiter_bytes_per_sec {
            context.throttle.set_limit(now.rate_limiter_bytes_per_sec);
        }
        self.store_options();
        Ok(())
    }

    fn store_options(&self) {
        if !self.core.read_only {
            self.options_file.write();
        }
    }

    /// Closes the database, unless closing began before. Not called on a thread running one of its jobs.
    pub(crate) fn close(&self, lock: &DirectoryLock) -> Result<()> {
        let _noting = self.core.context.noting();
        let _awaited = (self.core.context.throttle.await_flushes(), self.core.context.throttle.await_compactions());
        let flushed = self.flush_unlogged();
        if !self.core.begin_closing() {
            return Ok(());
        }
        #[cfg(feature = "observe")]
        self.observer.get().into_iter().for_each(Server::stop);
        if let Some(registration) = self.core.state_changed.registration() {
            registration.end();
        }
        self.core.wait_for_jobs(); // jobs on threads outside an `Env`
        self.memtables.leave_budget();
        let ended = self.wal.end_log();
        self.jobs.purge_obsolete();
        self.core.removals.give_back_all_space();
        self.jobs.tell_background_errors();
        self.options_file.close();
        // Another process may take the directory once the lock is released. A late edit finds no MANIFEST to write to.
        *self.installer.manifest.lock() = None;
        let closed = flushed.and(ended);
        match &closed {
            Ok(()) => note::info!("the database is closed"),
            Err(error) => note::error!(%error, "the database is closed, and not everything went well"),
        }
        self.core.context.info_log.write_out();
        *lock.lock() = None;
        closed
    }

    /// Flushes the families with unlogged writes.
    ///
    /// # Errors
    /// The failure of the flush; the unlogged writes are lost with their memtables.
    pub(crate) fn flush_unlogged(&self) -> Result<()> {
        if self.core.read_only
            || self.core.context.options_now.load().avoid_flush_during_shutdown
            || self.core.is_closing()
        {
            return Ok(());
        }
        let families: Vec<Arc<Family>> =
            self.core.families.load().iter().filter(|family| family.has_unlogged_writes()).cloned().collect();
        if families.is_empty() {
            return Ok(());
        }
        if self.core.space.is_lacking(Needs::Manifest) {
            let _ = self.jobs.mend(); // on failure the background error stands
        }
        if let Some(error) = self.core.background_error() {
            return Err(error.context("writes that went to no log (disable_wal) may be lost"));
        }
        self.flusher.flush_families(&families.iter().collect::<Vec<_>>())
    }
}
