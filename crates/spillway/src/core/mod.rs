//! The database behind its handles: everything that threads share, and the locks that guard it.
//!
//! Lock order, outermost first: `manifest`, `state`, `commit`; the locks inside [`Logs`], [`Pipeline`], [`RangeLatches`],
//! [`Stall`] and [`SnapshotList`] are leaves. Neither `state` nor `commit` is held over I/O (C3); `manifest` is, and only jobs take it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use base::extend::Event;
use base::metrics::{Counters, Ticker, tick};
use base::note;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use parking_lot::Mutex;

use crate::api::report::ToldDatabase;
use crate::background::removal::Removals;
use crate::background::{Signal, StateChanged};
use crate::commit::ingest_waits::IngestWaits;
use crate::commit::latch::RangeLatches;
use crate::commit::pipeline::Pipeline;
use crate::commit::stall::{Debt, Stall};
use crate::compaction::FamilyCompactions;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::core::space::{Needs, Space};
use crate::flush::job::tables_to_come;
use crate::ingest::late::LateExcise;
use crate::jobs::notices::{ToldStalls, UpkeepWaits};
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::ingest::QueuedIngest;
use crate::queue::view::ReadView;
use crate::read::snapshot::SnapshotList;
use crate::version::manifest::ManifestWriter;
use crate::version::purge::PurgeQueue;
use crate::version::table_file::TableFile;
use crate::version::table_store::OpenSlots;
use crate::version::version::Version;
use crate::wal::logs::{ActiveLog, Logs};
use crate::wal::marks::Marks;
use crate::wal::presence::LogPace;

pub(crate) struct Core {
    pub context: Arc<Context>,
    pub read_only: bool,
    /// No file of this process has a smaller number.
    pub first_own_file: FileNumber,
    /// Memtables of earlier processes that were read where they lay when the database was opened.
    pub restored_memtables: usize,
    pub families: ArcSwap<FamilySet>,
    pub commit: Mutex<CommitState>,
    pub pipeline: Pipeline,
    pub latches: RangeLatches,
    pub ingest_waits: IngestWaits,
    pub logs: Arc<Logs>,
    pub stall: Stall,
    pub snapshots: SnapshotList,
    pub state: Mutex<State>,
    /// Told of every change of `state` that may give a job something to do, or let a waiting thread go on.
    pub state_changed: StateChanged,
    pub upkeep: Arc<Signal>,
    /// A leaf lock.
    pub upkeep_waits: Mutex<UpkeepWaits>,
    /// Of the log, as upkeep sees it.
    pub log_pace: LogPace,
    pub marks: Marks,
    /// A leaf lock.
    pub told_stalls: Mutex<ToldStalls>,
    /// Writes, changes, their bytes; of those that are logged how many, and bytes.
    pub written: Counters<5>,
    /// What `rocksdb.dbstats` told last. A leaf lock.
    pub told_stats: Mutex<ToldDatabase>,
    opened_at: Duration,
    /// `None` where the database is open for reading only.
    pub manifest: Mutex<Option<ManifestWriter>>,
    /// Held by whoever writes the options file, and under no other lock.
    pub options_file: Mutex<()>,
    pub purge: Arc<PurgeQueue>,
    /// Deleted files whose space is given back bit by bit.
    pub removals: Removals,
    pub slots: Arc<OpenSlots>,
    pub block_cache: Arc<table::BlockCache>,
    background_error: ArcSwapOption<Error>,
    pub space: Space,
    /// What became of background errors, that listeners were not told of yet.
    pub untold: Mutex<Vec<Event>>,
    closing: Arc<AtomicBool>,
}

/// What the commit lock guards: the end of history.
pub(crate) struct CommitState {
    /// The last number given out (S1).
    pub last_seq: SeqNo,
    /// Set when the database was closed: no number is given out any more, and no log made current.
    pub closed: bool,
    /// `None` before the first logged write.
    pub log: Option<Arc<ActiveLog>>,
}

/// The live families, by id. Replaced as a whole when one is created or dropped.
#[derive(Clone, Default)]
pub(crate) struct FamilySet {
    families: Vec<Arc<Family>>,
}

impl FamilySet {
    pub fn new(mut families: Vec<Arc<Family>>) -> Self {
        families.sort_by_key(|family| family.id());
        FamilySet { families }
    }

    #[inline]
    pub fn get(&self, id: FamilyId) -> Option<&Arc<Family>> {
        // Ids are mostly dense, so the place is mostly the number.
        match self.families.get(id.0 as usize) {
            Some(family) if family.id() == id => Some(family),
            _ => self.families.iter().find(|family| family.id() == id),
        }
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<Family>> {
        self.families.iter().find(|family| family.name() == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Family>> {
        self.families.iter()
    }
}

/// What the state lock guards.
pub(crate) struct State {
    pub families: BTreeMap<FamilyId, FamilyState>,
    pub max_family: u32,
    pub flushes_running: usize,
    pub compactions_running: usize,
    /// Ingests that are being prepared: they make files in the directory.
    pub prepares_running: usize,
}

/// Entries of a family's queue at the most: every read looks at each.
const QUEUE_ENTRIES_MAX: usize = 256;

/// Views that readers alone may still hold.
pub(crate) struct OldViews {
    _before: Arc<ReadView>,
    _announced: Option<Arc<ReadView>>,
}

/// One family's part of the state.
pub(crate) struct FamilyState {
    pub family: Arc<Family>,
    pub mutable: Arc<QueuedMemtable>,
    /// Sealed, youngest first (Q1).
    pub queue: Vec<Arc<dyn Flushable>>,
    pub version: Arc<Version>,
    /// The view that readers find as the successor of the family's.
    announced: Option<Arc<ReadView>>,
    /// A memtable that waits to become mutable.
    pub spare: Option<Arc<QueuedMemtable>>,
    /// Every number at or below it is in tables (T of F2).
    pub flushed_through: SeqNo,
    /// Ingests above T that are in tables (F2), by the numbers before theirs.
    pub linked_ingests: BTreeSet<SeqNo>,
    /// Entries created at or before this are flushed whatever their count.
    pub flush_wanted_through: SeqNo,
    /// When the first ingest joined the queue of those that no flush was begun for since; `None` where no flush waits.
    pub joined_at: Option<Duration>,
    pub flushing: bool,
    pub compactions: FamilyCompactions,
    pub pending_compaction_bytes: u64,
    /// That wait for snapshots to go.
    pub late_excises: Vec<LateExcise>,
}

impl FamilyState {
    pub fn new(family: Arc<Family>, view: &ReadView, flushed_through: SeqNo) -> Self {
        FamilyState {
            family,
            mutable: view.mutable.clone(),
            queue: view.queue.clone(),
            version: view.version.clone(),
            announced: None,
            spare: None,
            flushed_through,
            linked_ingests: BTreeSet::new(),
            flush_wanted_through: SeqNo::ZERO,
            joined_at: None,
            flushing: false,
            compactions: FamilyCompactions::default(),
            pending_compaction_bytes: 0,
            late_excises: Vec::new(),
        }
    }

    /// Whether writes came since the mutable memtable was made, or are likely to come: an ingest may have brought it, and
    /// then the queue tells that the one before was written.
    pub fn is_written(&self) -> bool {
        !self.mutable.is_unused() || !self.queue.is_empty()
    }

    /// Makes readers see the state as it is now. Returns the views before, to be dropped off the lock.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub fn publish_view(&mut self) -> OldViews {
        let view = ReadView::new(self.mutable.clone(), self.queue.clone(), self.version.clone());
        let before = self.family.swap_view(Arc::new(view));
        // Not sooner: whoever finds that it is gone looks for the family's.
        OldViews { _before: before, _announced: self.announced.take() }
    }

    /// Keeps the view that was [announced](crate::queue::view::NextView::announce) to come after the family's, and is of the
    /// state as it is now: what an exchange of views takes is left for [`settle_view`](Self::settle_view), which was called
    /// before, too. A writer that waits does not wait for that.
    pub fn keep_announced(&mut self, next: Arc<ReadView>) {
        self.announced = Some(next);
    }

    /// Makes the announced view, where there is one, the family's. Returns the view before, to be dropped off the lock.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub fn settle_view(&mut self) -> Option<OldViews> {
        let before = self.family.swap_view(self.announced.take()?);
        Some(OldViews { _before: before, _announced: None })
    }

    /// Whether the queue holds all that `max_write_buffer_number` lets it hold beside the mutable memtable. That is so much
    /// memory, not so many entries: an ingest may seal a memtable that holds next to nothing, and needs none itself.
    pub fn has_full_queue(&self) -> bool {
        let options = self.family.options();
        let buffers = options.max_write_buffer_number.saturating_sub(1);
        // Memtables are not quite full when they are switched.
        let limit_bytes = options.write_buffer_size.saturating_mul(buffers) - options.write_buffer_size / 2;
        if self.queue.len() < buffers {
            return false;
        }
        self.queue.len() >= QUEUE_ENTRIES_MAX
            || self.queue.iter().map(|entry| entry.memory_bytes()).sum::<usize>() >= limit_bytes
    }

    /// Whether flushes or compactions of the family have so much to do that they had better not rest: long before writers
    /// would be slowed down.
    pub fn is_behind(&self) -> bool {
        let options = self.family.options();
        let soft_bytes = options.soft_pending_compaction_bytes_limit;
        let sealed_bytes = || self.queue.iter().map(|entry| entry.memory_bytes()).sum::<usize>();
        self.waits_for_compactions()
            || (soft_bytes > 0 && self.pending_compaction_bytes > soft_bytes / 2)
            || sealed_bytes() >= options.write_buffer_size.saturating_mul(2)
    }

    /// Whether tables for some compactions of level 0 wait, those included that the queue will become.
    pub fn waits_for_compactions(&self) -> bool {
        self.compactions_of_level0_waiting() >= 3.0
    }

    /// How many compactions of level 0 wait beside one that runs, by the tables there and those that the queue will become.
    fn compactions_of_level0_waiting(&self) -> f64 {
        let in_level0 = self.version.level(0).len().saturating_sub(self.compactions.taken(0).0);
        let one = self.family.options().level0_file_num_compaction_trigger.max(1);
        (in_level0 + tables_to_come(&self.queue)) as f64 / f64::from(one)
    }

    /// How much waits to be compacted, in the terms of [`Pace::set_backlog`](crate::background::pace::Pace::set_backlog): 1 for a whole
    /// further compaction of level 0, or two base levels in bytes.
    fn backlog(&self) -> f64 {
        let by_bytes = self.pending_compaction_bytes as f64 / self.family.options().max_bytes_for_level_base as f64;
        self.compactions_of_level0_waiting().max(by_bytes / 2.0)
    }

    /// All tables, those that were ingested and have no level yet included.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        let queued = self.queue.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files);
        self.version.all_files().map(|(_, file)| file).chain(queued)
    }

    /// The number through which nothing in memory is needed from the logs (F2): where the oldest entry begins. An entry
    /// that went under the mutable memtable may have begun after that.
    pub fn needed_after(&self) -> SeqNo {
        self.needed_without(&[])
    }

    /// As [`needed_after`](Self::needed_after), once these entries have left the queue.
    pub fn needed_without(&self, flushed: &[Arc<dyn Flushable>]) -> SeqNo {
        let left = self.queue.iter().filter(|entry| !holds(flushed, entry)).map(|entry| entry.created_at());
        left.fold(self.mutable.created_at(), SeqNo::min)
    }

    /// Whether the entry is in the queue still, or mutable.
    pub fn has_in_memory(&self, entry: &Arc<dyn Flushable>) -> bool {
        let mutable: Arc<dyn Flushable> = self.mutable.clone();
        Arc::ptr_eq(&mutable, entry) || holds(&self.queue, entry)
    }
}

/// Whether the entry is one of these.
pub(crate) fn holds(entries: &[Arc<dyn Flushable>], entry: &Arc<dyn Flushable>) -> bool {
    entries.iter().any(|other| Arc::ptr_eq(other, entry))
}

/// What a [`Core`] is made of.
pub(crate) struct CoreParts {
    pub context: Arc<Context>,
    pub read_only: bool,
    pub last_seq: SeqNo,
    pub first_own_file: FileNumber,
    pub restored_memtables: usize,
    pub max_family: u32,
    pub purge: Arc<PurgeQueue>,
    pub slots: Arc<OpenSlots>,
    pub block_cache: Arc<table::BlockCache>,
}

impl Core {
    pub fn new(parts: CoreParts) -> Self {
        let CoreParts { context, read_only, last_seq, first_own_file, restored_memtables, .. } = parts;
        let CoreParts { max_family, purge, slots, block_cache, .. } = parts;
        let (vfs, options) = (context.vfs.clone(), &context.options);
        Core {
            logs: Arc::new(Logs::new(&context)),
            stall: Stall::new(vfs, context.statistics.clone(), options.delayed_write_rate),
            read_only,
            first_own_file,
            restored_memtables,
            families: ArcSwap::from_pointee(FamilySet::default()),
            commit: Mutex::new(CommitState { last_seq, closed: false, log: None }),
            pipeline: Pipeline::new(last_seq),
            latches: RangeLatches::new(),
            ingest_waits: IngestWaits::default(),
            snapshots: SnapshotList::default(),
            state: Mutex::new(State {
                families: BTreeMap::new(),
                max_family,
                flushes_running: 0,
                compactions_running: 0,
                prepares_running: 0,
            }),
            state_changed: StateChanged::default(),
            upkeep: Arc::default(),
            upkeep_waits: Mutex::default(),
            log_pace: LogPace::default(),
            marks: Marks::new(!read_only && context.options.memtable_crash_safe_recover),
            told_stalls: Mutex::default(),
            written: Counters::default(),
            told_stats: Mutex::default(),
            opened_at: context.vfs.now(),
            manifest: Mutex::new(None),
            options_file: Mutex::default(),
            purge,
            removals: Removals::default(),
            slots,
            block_cache,
            background_error: ArcSwapOption::empty(),
            space: Space::default(),
            untold: Mutex::default(),
            closing: Arc::default(),
            context,
        }
    }

    /// How long the database has been open.
    pub fn uptime(&self) -> Duration {
        self.context.vfs.now().saturating_sub(self.opened_at)
    }

    /// # Errors
    /// `InvalidArgument`: the family is another database's. `Closed`: it was dropped.
    #[inline]
    pub fn check_family(&self, family: &Family) -> Result<()> {
        family.check_home(&self.context)?;
        family.check_live()
    }

    /// # Errors
    /// `Closed`: no such family, or it was dropped.
    pub fn family_state<'a>(&self, state: &'a mut State, id: FamilyId) -> Result<&'a mut FamilyState> {
        state.families.get_mut(&id).ok_or_else(|| Error::closed(format!("column family {} was dropped", id.0)))
    }

    /// # Errors
    /// `Closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.is_closing() { Err(Error::closed("the database is closed")) } else { Ok(()) }
    }

    /// # Errors
    /// Why the database does not take writes: opened for reading, closed, or a background error.
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::read_only("the database is open for reading only").at_path(&self.context.dir));
        }
        self.check_open()?;
        match &*self.background_error.load() {
            None => Ok(()),
            Some(error) if self.space.is_lacking(Needs::Manifest) => Err(writes_wait(error)),
            Some(error) => Err(writes_refused(error)),
        }
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

    /// Has upkeep tell listeners: whoever calls this may hold the manifest lock, and a listener may call anything.
    pub fn tell_later(&self, event: Event) {
        self.untold.lock().push(event);
    }

    /// Wakes everyone who waits for the state, after a change of something that its lock does not guard. Whoever looked
    /// before the change holds the lock until it waits, so that nobody misses it.
    pub fn wake_all(&self) {
        drop(self.state.lock());
        self.state_changed.notify_all();
        self.context.memtables.memory.wake();
        self.latches.wake();
    }

    /// As [`fail`](Self::fail), for a write that already has numbers: they will never be visible.
    pub fn fail_numbered(&self, error: &Error) {
        self.fail(error);
        self.pipeline.break_down();
    }

    /// Forgets the background error, once its cause is mended.
    pub fn clear_background_error(&self) {
        self.stall.begin(); // before: a failure from now on ends it again
        self.background_error.store(None);
        if self.is_closing() {
            self.stall.end();
        }
        self.wake_all();
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// For those who outlive the database, or have no handle of it.
    pub fn closing_flag(&self) -> Arc<AtomicBool> {
        self.closing.clone()
    }

    /// Says that no job is to be started any more, and no write to be taken. False where that was said before.
    pub fn begin_closing(&self) -> bool {
        let first = !self.closing.swap(true, Ordering::AcqRel);
        self.stall.end();
        self.wake_all();
        self.upkeep.raise();
        self.context.tasks.end();
        first
    }

    /// Waits until nothing makes files in the directory: no flush or compaction runs, and no ingest is prepared. None
    /// begins after [`begin_closing`](Self::begin_closing).
    pub fn wait_for_jobs(&self) {
        let mut state = self.state.lock();
        while state.flushes_running + state.compactions_running + state.prepares_running > 0 {
            self.state_changed.wait(&mut state);
        }
    }

    /// Works the stall's debt out again. Called under the state lock after any version changed.
    pub fn refresh_debt(&self, state: &State) {
        let debt = state
            .families
            .values()
            .map(|f| Debt::of(&f.version, f.pending_compaction_bytes, &f.family.options()))
            .fold(Debt::NONE, Debt::max);
        self.stall.set_debt(debt);
        self.refresh_pace(state);
    }

    /// Says whether background jobs may rest, and how long. Called under the state lock after anything changed that tells.
    pub fn refresh_pace(&self, state: &State) {
        let is_behind = !self.stall.is_free() || state.families.values().any(FamilyState::is_behind);
        self.context.pace.set_behind(is_behind);
        self.context.pace.set_backlog(state.families.values().map(FamilyState::backlog).fold(0.0, f64::max));
    }
}

fn writes_refused(error: &Error) -> Error {
    Error::read_only(format!("writes are refused since a background error ({error}); resume or reopen the database"))
}

fn writes_wait(error: &Error) -> Error {
    error.clone().context("writes are refused until there is disk space for a new MANIFEST; free some, and they go on")
}
pub mod context;
pub mod family;
pub mod flush_ways;
pub(crate) mod install;
pub(crate) mod space;
pub(crate) mod tables;
