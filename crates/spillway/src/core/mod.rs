//! Shared state behind the database's handles, and the locks guarding it.
//!
//! Lock order: ARCHITECTURE.md, *Locks*. In short `manifest`, `state`, `commit`, then leaves; `WalFiles::rolling` comes
//! before all three. Neither `state` nor `commit` is held over I/O (C3).
//! `manifest` is: by jobs, changes of the family set, checkpoints and exports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use parking_lot::Mutex;
use wal::{DatabaseId, FILE_HEADER_BYTES, Position};

use crate::background::removal::Removals;
use crate::background::{Signal, StateChanged};
use crate::core::context::Context;
use crate::core::family::{Family, FamilySet};
use crate::core::reserve::Reserve;
use crate::core::space::{Needs, Space};
use crate::cursor::snapshot::{Snapshot, SnapshotList};
use crate::log_files::archive::Archive;
use crate::log_files::logs::{ActiveLog, WalFiles};
use crate::order::latch::RangeLatches;
use crate::order::pipeline::Pipeline;
use crate::order::stall::{Debt, Stall};
use crate::version::file_name;
use crate::version::file_name::FileType;
use crate::version::purge::PurgeQueue;
use crate::version::table_store::OpenSlots;
use std::path::PathBuf;

pub(crate) use state::{FamilyState, OldViews, State, holds};

pub(crate) struct Core {
    pub context: Arc<Context>,
    pub read_only: bool,
    /// Follows a primary; read-only.
    is_secondary: bool,
    /// Smallest file number of this process.
    pub first_own_file: FileNumber,
    /// Memtables of earlier processes reopened in place when the database was opened.
    pub restored_memtables: usize,
    pub families: ArcSwap<FamilySet>,
    pub commit: Mutex<CommitState>,
    pub pipeline: Pipeline,
    pub latches: RangeLatches,
    pub logs: Arc<WalFiles>,
    pub archive: Arc<Archive>,
    pub stall: Stall,
    pub snapshots: SnapshotList,
    pub state: Mutex<State>,
    /// Notified after every change of `state` relevant to jobs or waiting threads.
    pub state_changed: StateChanged,
    pub upkeep: Arc<Signal>,
    /// Tables became hot by reads since upkeep took such the last time.
    pub has_hot_tables: AtomicBool,
    opened_at: Duration,
    pub purge: Arc<PurgeQueue>,
    /// Paced file deletion: deleted files still holding space.
    pub removals: Removals,
    pub slots: Arc<OpenSlots>,
    pub block_cache: Arc<table::BlockCache>,
    pub row_cache: Option<Arc<table::BlockCache>>,
    background_error: ArcSwapOption<Error>,
    pub space: Space,
    pub reserve: Reserve,
    /// Background-error and recovery events not yet delivered to listeners.
    pub pending_events: Mutex<Vec<Event>>,
    closing: Arc<AtomicBool>,
    /// Jobs run by the calling threads if the vfs runs inline.
    inline: OnceLock<Weak<dyn InlineJobs>>,
}

/// The beginning of errors of writes to a database that is open for reading only, as RocksDB's.
pub const READING_REFUSAL: &str = "Not supported operation in read only mode.";

/// The beginning of errors of a dropped family, as RocksDB's.
pub const FAMILY_DROPPED: &str = "Column family dropped: ";

/// As [`READING_REFUSAL`], of a secondary.
pub const SECONDARY_REFUSAL: &str = "Not supported operation in secondary mode.";

/// Background work on the calling thread if the vfs runs inline.
pub(crate) trait InlineJobs: Send + Sync {
    /// Runs due jobs until none is due.
    fn run_due(&self);
}

/// State guarded by the commit lock: the end of the history.
pub(crate) struct CommitState {
    /// Last sequence number allocated (S1).
    pub last_seq: SeqNo,
    /// The database is closed: no sequence number is allocated and no log becomes current any more.
    pub closed: bool,
    /// `None` before the first logged write.
    pub log: Option<Arc<ActiveLog>>,
}

/// Parts of a [`Core`].
pub(crate) struct CoreParts {
    pub context: Arc<Context>,
    pub read_only: bool,
    pub is_secondary: bool,
    pub last_seq: SeqNo,
    pub first_own_file: FileNumber,
    pub restored_memtables: usize,
    pub max_family: u32,
    pub purge: Arc<PurgeQueue>,
    pub slots: Arc<OpenSlots>,
    pub block_cache: Arc<table::BlockCache>,
    pub row_cache: Option<Arc<table::BlockCache>>,
}

impl Core {
    pub fn new(parts: CoreParts) -> Self {
        let CoreParts { context, read_only, is_secondary, last_seq, first_own_file, restored_memtables, .. } = parts;
        let CoreParts { max_family, purge, slots, block_cache, row_cache, .. } = parts;
        let (vfs, options) = (context.vfs.clone(), &context.options);
        let reserve = Reserve::find(&vfs, &context.dir);
        let stall = Stall::new(vfs, context.statistics.clone(), options.delayed_write_rate);
        stall.set_scarce(reserve.is_spent());
        Core {
            logs: Arc::new(WalFiles::new(context.log_setup())),
            archive: Archive::new(context.vfs.clone(), context.log_dir(), DatabaseId::new(&context.db_id)),
            stall,
            read_only,
            is_secondary,
            first_own_file,
            restored_memtables,
            families: ArcSwap::from_pointee(FamilySet::default()),
            commit: Mutex::new(CommitState { last_seq, closed: false, log: None }),
            pipeline: Pipeline::new(last_seq),
            latches: RangeLatches::new(),
            snapshots: SnapshotList::default(),
            state: Mutex::new(State {
                families: BTreeMap::new(),
                next_set: None,
                max_family,
                flush_due: None,
                age_due_s: Some(0),
                table_bytes: 0,
                has_long_lists: true,
                has_late_excises: false,
                flushes_running: 0,
                flushes_all: false,
                compactions_running: 0,
                pauses: 0,
                prepares_running: 0,
            }),
            state_changed: StateChanged::default(),
            upkeep: Arc::default(),
            has_hot_tables: AtomicBool::new(false),
            opened_at: context.vfs.now(),
            purge,
            removals: Removals::new(context.vfs.clone(), context.throttle.clone()),
            slots,
            block_cache,
            row_cache,
            background_error: ArcSwapOption::empty(),
            space: Space::default(),
            reserve,
            pending_events: Mutex::default(),
            closing: Arc::default(),
            inline: OnceLock::new(),
            context,
        }
    }

    /// Replaces the set of families by a changed one. The set before is changed alike, and stands by for the next change: a
    /// copy would cost each change as much as there are families. A copy is made where a reader holds the set.
    pub fn change_families(&self, state: &mut State, change: impl Fn(&mut FamilySet)) {
        let mut next = state.next_set.take().unwrap_or_else(|| (**self.families.load()).clone());
        change(&mut next);
        let before = self.families.swap(Arc::new(next));
        state.next_set = Arc::try_unwrap(before).ok();
        state.next_set.iter_mut().for_each(change);
    }

    /// Lets iterators over the family remember gaps, and reads of its tables tell which are hot.
    pub fn learn_from_reads_of(self: &Arc<Self>, family: &Family) {
        let core = Arc::downgrade(self);
        family.tables().hot_reads().listen(Box::new(move || {
            let Some(core) = core.upgrade() else { return };
            core.has_hot_tables.store(true, Ordering::Release);
            core.upkeep.raise();
        }));
        let core = Arc::downgrade(self);
        family.gaps().learn_with(Box::new(move || Some(core.upgrade()?.commit.lock().last_seq)));
    }

    /// Lower bound for the position of the next WAL record. Before the first log of this process it lies in no log;
    /// recovery then begins with the first log it finds.
    pub fn next_record(&self, commit: &CommitState) -> Position {
        let before_logs = || Position { log: self.first_own_file, offset: FILE_HEADER_BYTES };
        commit.log.as_ref().map_or_else(before_logs, |log| log.end_position())
    }

    /// The name of a family.
    pub fn name_of(&self, id: FamilyId) -> Option<String> {
        self.families.load().get(id).map(|family| family.name().to_owned())
    }

    /// How long the database has been open.
    pub fn uptime(&self) -> Duration {
        self.context.vfs.now().saturating_sub(self.opened_at)
    }

    /// # Errors
    /// `InvalidArgument`: the family is another database's. `Closed`: it was dropped, or the database is closed.
    #[inline]
    pub fn check_family(&self, family: &Family) -> Result<()> {
        self.check_open()?;
        family.check_home(&self.context)?;
        family.check_live()
    }

    /// # Errors
    /// `Closed`: no such family, or it was dropped.
    pub fn family_state<'a>(&self, state: &'a mut State, id: FamilyId) -> Result<&'a mut FamilyState> {
        state.families.get_mut(&id).ok_or_else(|| Error::closed(format!("{FAMILY_DROPPED}id {}", id.0)))
    }

    /// # Errors
    /// `Closed`.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.is_closing() { Err(self.closed()) } else { Ok(()) }
    }

    /// Why the database takes no more calls.
    #[cold]
    pub fn closed(&self) -> Error {
        if self.context.origin.is_here() {
            return Error::closed("the database is closed");
        }
        Error::closed("the database was opened before a fork, and stays open in the parent process alone")
            .at_path(&self.context.dir)
            .advise("open databases after the fork: for reading only beside a writer")
    }

    /// # Errors
    /// `ReadOnly`: opened for reading only, or a background error. `Closed`. `NoSpace`: the MANIFEST waits for space.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        if self.is_secondary {
            let what = format!("{SECONDARY_REFUSAL} Write to the primary");
            return Err(Error::read_only(what).at_path(&self.context.dir));
        }
        if self.read_only {
            let what = format!("{READING_REFUSAL} It is open for reading only");
            return Err(Error::read_only(what).at_path(&self.context.dir));
        }
        self.check_open()?;
        match &*self.background_error.load() {
            None => Ok(()),
            Some(error) if self.space.is_lacking(Needs::Manifest) => Err(writes_wait(error)),
            Some(error) => Err(writes_refused(error)),
        }
    }

    /// Makes the writes that readers may have seen durable. Precedes each change of data by the MANIFEST alone, such as an
    /// import or a dropped family: it would outlive them in a loss of power (D2).
    ///
    /// # Errors
    /// A failure of a log's sync; the database is read-only then (D4).
    pub fn sync_published(&self) -> Result<()> {
        let published = self.pipeline.published_log();
        self.logs.sync_through(published, || published).inspect_err(|error| self.fail(error)).map(drop)
    }

    /// # Errors
    /// `InvalidArgument`: the snapshot is another database's. `Unsupported`: compactions of the primary do not keep what
    /// a snapshot of a secondary shows.
    pub fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        let what = if self.is_secondary {
            Error::unsupported(
                "a secondary has no snapshots; an iterator keeps showing what there was when it was made",
            )
        } else if !self.snapshots.has(snapshot) {
            Error::invalid_argument("the snapshot is of another database")
        } else {
            return Ok(());
        };
        Err(what.at_path(&self.context.dir))
    }

    pub fn background_error(&self) -> Option<Error> {
        self.background_error.load().as_deref().cloned()
    }

    /// Turns the database read-only (D4). The first error stands. Called without the state lock.
    pub fn fail(&self, error: &Error) {
        let before = self.background_error.compare_and_swap(&None::<Arc<Error>>, Some(Arc::new(error.clone())));
        if before.is_none() {
            tick(&self.context.statistics, Ticker::BackgroundErrors, 1);
            self.space.count_error();
            let _scope = self.context.note_scope();
            note::error!(%error, "the database is read-only from now on");
            self.tell_later(Event::BackgroundError { error: error.clone() });
            self.upkeep.raise();
        }
        self.stall.end();
        self.wake_all();
    }

    /// Queues `event` for upkeep to deliver: the caller may hold the manifest lock, and listeners may call anything.
    pub fn tell_later(&self, event: Event) {
        self.pending_events.lock().push(event);
    }

    /// Wakes all waiters on the state after a change not guarded by its lock. Taking the lock first prevents lost
    /// wakeups: waiters check and wait under it.
    pub fn wake_all(&self) {
        drop(self.state.lock());
        self.state_changed.notify_all();
        self.context.memtables.memory.wake();
        self.latches.wake();
    }

    /// As [`fail`](Self::fail), for a write already numbered: its numbers never become visible.
    pub fn fail_numbered(&self, error: &Error) {
        self.fail(error);
        self.pipeline.break_down();
    }

    /// Clears the background error once its cause is repaired.
    pub fn clear_background_error(&self) {
        self.stall.begin(); // first, so that a later failure ends it again
        self.background_error.store(None);
        if self.is_closing() {
            self.stall.end();
        }
        self.wake_all();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// For threads outliving the database or without a handle of it.
    pub fn closing_flag(&self) -> Arc<AtomicBool> {
        self.closing.clone()
    }

    /// Stops new jobs and writes. Returns false if closing had already begun.
    pub fn begin_closing(&self) -> bool {
        let first = !self.closing.swap(true, Ordering::AcqRel);
        self.stall.end();
        self.wake_all();
        self.upkeep.raise();
        self.context.tasks.end();
        first
    }

    /// Waits until no flush or compaction runs and no ingest is being prepared: no job creates files any more. None
    /// begins after [`begin_closing`](Self::begin_closing).
    pub fn wait_for_jobs(&self) {
        let mut state = self.state.lock();
        while state.flushes_running + state.compactions_running + state.prepares_running > 0 {
            self.state_changed.wait(&mut state);
        }
    }

    /// Recomputes the stall's debt. Called under the state lock after any version changed.
    pub fn refresh_debt(&self, state: &State) {
        let debt = state
            .families
            .values()
            .map(|f| Debt::of(&f.version, f.pending_compaction_bytes, &f.family.options()))
            .fold(Debt::NONE, Debt::max);
        self.stall.set_debt(debt);
        self.refresh_throttle(state);
    }

    /// Raises the throttle's debt if one of `families` falls behind after an enqueue. Returns whether a flush of one
    /// is due. Takes the state lock: the caller must hold no unfinished sequence number.
    pub fn record_joined(&self, families: impl Iterator<Item = FamilyId>) -> bool {
        let state = self.state.lock();
        let mut wants = false;
        for id in families {
            let Some(family) = state.families.get(&id) else { continue };
            wants |= !family.flushing && family.wants_flush();
            if family.waits_for_compactions() {
                self.context.throttle.set_debt(1.0); // until the next refresh
            }
        }
        wants
    }

    /// Updates the throttle's debt. Called under the state lock after any change affecting it.
    pub fn refresh_throttle(&self, state: &State) {
        let of_families = state.families.values().map(FamilyState::debt).fold(0.0, f64::max);
        self.context.throttle.set_debt(if self.stall.is_free() { of_families } else { 1.0 });
    }

    /// Whether background threads exist to end a wait for a flush.
    pub fn flushes_can_wait(&self) -> bool {
        !self.context.vfs.runs_inline()
    }

    pub fn run_inline_by(&self, jobs: Weak<dyn InlineJobs>) {
        let _ = self.inline.set(jobs); // once, when the database is put together
    }

    /// Runs background work on the calling thread until there is none.
    pub fn drive(&self) {
        if let Some(jobs) = self.inline.get().and_then(Weak::upgrade) {
            jobs.run_due();
        }
    }

    /// Runs due background work on the calling thread if the vfs runs inline.
    #[inline]
    pub fn drive_if_inline(&self) {
        if self.context.vfs.runs_inline() {
            self.drive();
        }
    }

    /// Waits for a condition of the state. If the vfs runs inline, runs background work on the calling thread first.
    ///
    /// # Errors
    /// The background error; `Closed`; errors of `holds`.
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

    /// Whether every allocated sequence number is in tables, and nothing is prepared. While the manifest lock is held,
    /// numbers in tables stay there.
    pub(crate) fn is_all_in_tables(&self) -> bool {
        let state = self.state.lock();
        // The commit lock stops sequence allocation, so all families are seen at one instant.
        let _commit = self.commit.lock();
        let is_empty = |family: &FamilyState| family.queue.is_empty() && family.mutable.is_unused();
        state.families.values().all(is_empty) && self.logs.prepared.count() == 0
    }

    pub(crate) fn path_of(&self, kind: FileType, number: FileNumber) -> PathBuf {
        match kind {
            FileType::Log | FileType::LargeBatch | FileType::RocksLog => {
                self.context.log_dir().join(file_name::format(kind, number))
            }
            _ => self.context.dir.join(file_name::format(kind, number)),
        }
    }
}

fn writes_refused(error: &Error) -> Error {
    Error::read_only(format!("writes are refused since a background error ({error}); resume or reopen the database"))
}

fn writes_wait(error: &Error) -> Error {
    error.clone().context("writes are refused until there is disk space for a new MANIFEST; free some, and they go on")
}
pub mod context;
pub mod doubt;
pub mod family;
pub mod flush_ways;
pub(crate) mod install;
pub(crate) mod kept_views;
pub(crate) mod late_excise;
pub mod live_file;
pub(crate) mod lost;
pub(crate) mod new_family;
pub mod open_options;
pub(crate) mod options_file;
pub mod plan;
pub(crate) mod progress;
pub(crate) mod reserve;
pub(crate) mod running;
pub(crate) mod settled;
pub(crate) mod space;
mod state;
pub(crate) mod tables;
pub(crate) mod unfinished;
pub(crate) mod unnamed;
