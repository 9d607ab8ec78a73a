//! State guarded by the state lock: each family's queue, version and running jobs. Keeps V1.

use crate::core::family::{Family, FamilySet};
use crate::core::late_excise::LateExcise;
use crate::core::plan::FamilyCompactions;
use crate::queue::entries::tables_to_come;
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::ingest::QueuedIngest;
use crate::queue::memory::Charge;
use crate::queue::view::ReadView;
use crate::version::snapshot::FamilySnapshot;
use crate::version::table_file::TableFile;
use crate::version::version::Version;
use base::options::CompactionStyle;
use base::{FamilyId, FileNumber, SeqNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Guarded by the state lock.
pub(crate) struct State {
    pub families: BTreeMap<FamilyId, FamilyState>,
    /// Equal to [`Core::families`](crate::core::Core::families): the next change of the families is made in it.
    pub next_set: Option<FamilySet>,
    pub max_family: u32,
    /// The first time at which a delayed flush is due, or an earlier one.
    pub flush_due: Option<Duration>,
    /// The first time at which a table becomes due for its age, in seconds since the epoch, or an earlier one.
    pub age_due_s: Option<u64>,
    /// Bytes of all families' tables.
    pub table_bytes: u64,
    /// Some family may have [too many linked ingests](FamilyState::has_too_many_linked).
    pub has_long_lists: bool,
    /// Some family has late excises.
    pub has_late_excises: bool,
    pub flushes_running: usize,
    /// An atomic flush runs: of all families, and alone.
    pub flushes_all: bool,
    pub compactions_running: usize,
    /// No automatic compaction starts while above 0.
    pub pauses: usize,
    /// Ingests being prepared. They create files in the directory.
    pub prepares_running: usize,
}

impl State {
    /// The number through which no family needs the WAL.
    pub fn needed_after(&self) -> SeqNo {
        self.families.values().map(FamilyState::needed_after).min().unwrap_or(SeqNo::MAX)
    }

    pub fn families_where(&self, wanted: impl Fn(&FamilyState) -> bool) -> Vec<Arc<Family>> {
        self.families.values().filter(|family| wanted(family)).map(|family| family.family.clone()).collect()
    }

    /// The family whose mutable memtable is flushed first to free memory: the largest, or the oldest. `None` if all are
    /// empty.
    pub fn first_memtable(&self, oldest_first: bool) -> Option<Arc<Family>> {
        let holding = self.families.values().filter(|family| family.mutable.memtable().entries() > 0);
        let first = if oldest_first {
            holding.min_by_key(|family| family.mutable.memtable_charge().birth())
        } else {
            holding.max_by_key(|family| family.reserved_bytes())
        };
        first.map(|family| family.family.clone())
    }
}

/// Limit on the entries of a family's queue: every read looks at each.
const QUEUE_ENTRIES_MAX: usize = 256;

/// Replaced views. Readers may still hold them.
pub(crate) struct OldViews {
    _before: Arc<ReadView>,
    _installed: Option<Arc<ReadView>>,
}

/// One family's part of the state.
pub(crate) struct FamilyState {
    pub family: Arc<Family>,
    pub mutable: Arc<QueuedMemtable>,
    /// Sealed, youngest first (Q1).
    pub queue: Vec<Arc<dyn Flushable>>,
    pub version: Arc<Version>,
    /// Successor of the family's view: visible to readers, not yet exchanged.
    installed: Option<Arc<ReadView>>,
    /// A memtable ready to become mutable.
    pub spare: Option<Arc<QueuedMemtable>>,
    /// Every number at or below it is in tables (T of F2).
    pub flushed_through: SeqNo,
    /// Ingests above T already in tables (F2), by the first of their numbers.
    pub linked_ingests: BTreeSet<SeqNo>,
    /// Entries created at or before this are flushed regardless of their count.
    pub flush_wanted_through: SeqNo,
    /// Flushes of anything older were asked for by callers.
    pub by_hand_through: SeqNo,
    /// When the first ingest since the last flush began was enqueued; `None` if no flush is delayed.
    pub joined_at: Option<Duration>,
    pub flushing: bool,
    /// The running flush has nothing written before this number.
    pub flushing_from: SeqNo,
    pub compactions: FamilyCompactions,
    pub pending_compaction_bytes: u64,
    /// Excises deferred until older snapshots are released.
    pub late_excises: Vec<LateExcise>,
}

/// Waiting compactions of level 0 at which a family counts as behind.
const COMPACTIONS_BEHIND: f64 = 3.0;

impl FamilyState {
    pub fn new(family: Arc<Family>, view: &ReadView, flushed_through: SeqNo) -> Self {
        FamilyState {
            family,
            mutable: view.mutable.clone(),
            queue: view.queue.clone(),
            version: view.version.clone(),
            installed: None,
            spare: None,
            flushed_through,
            linked_ingests: BTreeSet::new(),
            flush_wanted_through: SeqNo::ZERO,
            by_hand_through: SeqNo::ZERO,
            joined_at: None,
            flushing: false,
            flushing_from: SeqNo::ZERO,
            compactions: FamilyCompactions::default(),
            pending_compaction_bytes: 0,
            late_excises: Vec::new(),
        }
    }

    /// Whether the family is being written to: its mutable memtable is used, or its queue holds entries. An ingest may
    /// have just switched the memtable, so an unused one alone proves nothing.
    pub fn is_written(&self) -> bool {
        !self.mutable.is_unused() || !self.queue.is_empty()
    }

    /// Makes `version` the family's. The caller publishes the view. `uncovers`: hidden entries may show in it again; an
    /// iterator over an older version adds no gap from here on (G1).
    pub fn install_version(&mut self, version: Version, uncovers: bool) {
        self.version = Arc::new(if uncovers { version.in_next_era() } else { version });
        if uncovers {
            self.family.gaps().begin_era(self.version.era());
        }
    }

    /// Installs a view of the present state. Returns the views before, to be dropped off the lock.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub fn publish_view(&mut self) -> OldViews {
        self.publish_view_from(SeqNo::ZERO)
    }

    /// As [`publish_view`](Self::publish_view). Readers wait until `seq` is visible.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub fn publish_view_from(&mut self, seq: SeqNo) -> OldViews {
        let view = ReadView::new(self.mutable.clone(), self.queue.clone(), self.version.clone()).shown_from(seq);
        let before = self.family.swap_view(Arc::new(view));
        // Only after the exchange: a reader finding the successor gone loads the family's view.
        let installed = self.installed.take();
        installed.iter().for_each(|view| self.family.record_replaced(view));
        OldViews { _before: before, _installed: installed }
    }

    /// Whether both show the same tables and entries.
    pub fn shows_as(&self, other: &FamilyState) -> bool {
        let same = |(a, b): (&Arc<dyn Flushable>, &Arc<dyn Flushable>)| Arc::ptr_eq(a, b);
        Arc::ptr_eq(&self.mutable, &other.mutable)
            && Arc::ptr_eq(&self.version, &other.version)
            && self.queue.len() == other.queue.len()
            && self.queue.iter().zip(&other.queue).all(same)
    }

    /// Keeps the [installed](crate::memtables::staged::Staged::install) successor of the family's view; it shows the
    /// present state. The costly exchange is left to [`exchange_view`](Self::exchange_view), so a waiting writer is not
    /// delayed by it. Call `exchange_view` before as well: a view has
    /// one successor.
    pub fn install_view(&mut self, next: Arc<ReadView>) {
        self.installed = Some(next);
    }

    /// Exchanges the family's view for the installed one, if any. Returns the view before, to be dropped off the lock.
    #[must_use = "dropping a view can free memtables: do it off the locks"]
    pub fn exchange_view(&mut self) -> Option<OldViews> {
        let before = self.family.swap_view(self.installed.take()?);
        Some(OldViews { _before: before, _installed: None })
    }

    /// Whether the queue is as full as `max_write_buffer_number` permits beside the mutable memtable. The limit is on
    /// memory, not entries: an ingest may seal a nearly empty memtable, and takes no memory itself.
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

    /// Whether flushes or compactions of the family have too much work to be delayed: long before writers are slowed
    /// down.
    pub fn is_behind(&self) -> bool {
        let options = self.family.options();
        let soft_bytes = options.soft_pending_compaction_bytes_limit;
        let sealed_bytes = || self.queue.iter().map(|entry| entry.memory_bytes()).sum::<usize>();
        self.waits_for_compactions()
            || (soft_bytes > 0 && self.pending_compaction_bytes > soft_bytes / 2)
            || sealed_bytes() >= options.write_buffer_size.saturating_mul(2)
    }

    /// Whether at least `COMPACTIONS_BEHIND` compactions of level 0 wait, tables to come from the queue included.
    pub fn waits_for_compactions(&self) -> bool {
        self.compactions_of_level0_waiting() >= COMPACTIONS_BEHIND
    }

    /// Compactions of level 0 waiting beside a running one, by the tables there and the tables to come from the queue.
    /// With universal compaction, by the sorted runs beyond the trigger: so many are there at rest.
    fn compactions_of_level0_waiting(&self) -> f64 {
        let options = self.family.options();
        let one = options.level0_file_num_compaction_trigger.max(1);
        let tables = match options.compaction_style {
            CompactionStyle::Universal => self.version.sorted_runs().saturating_sub(one as usize),
            CompactionStyle::Fifo => 0,
            _ => self.version.level(0).len(),
        };
        let in_level0 = tables.saturating_sub(self.compactions.taken(0).0);
        (in_level0 + tables_to_come(&self.queue)) as f64 / f64::from(one)
    }

    /// How far jobs of the family are behind, for the throttle, from 0 to 1: 1 if [`is_behind`](Self::is_behind). Two
    /// base levels in bytes count as one compaction of level 0.
    pub fn debt(&self) -> f64 {
        let by_bytes = self.pending_compaction_bytes as f64 / *self.family.options().max_bytes_for_level_base as f64;
        let waiting = self.compactions_of_level0_waiting().max(by_bytes / 2.0);
        if self.is_behind() { 1.0 } else { (waiting / COMPACTIONS_BEHIND).min(1.0) }
    }

    /// All tables, including ingested ones without a level yet.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        let queued = self.queue.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files);
        self.version.all_files().map(|(_, file)| file).chain(queued)
    }

    /// The number through which nothing in memory needs the WAL (F2): where the oldest entry begins. An entry queued
    /// under the mutable memtable may begin later than the memtable.
    pub fn needed_after(&self) -> SeqNo {
        self.needed_without(&[])
    }

    /// As [`needed_after`](Self::needed_after), once these entries have left the queue.
    pub fn needed_without(&self, flushed: &[Arc<dyn Flushable>]) -> SeqNo {
        let left = self.queue.iter().filter(|entry| !holds(flushed, entry)).map(|entry| entry.created_at());
        left.fold(self.mutable.created_at(), SeqNo::min)
    }

    /// The family as a MANIFEST states it: everything through `flushed_through` is in tables.
    pub fn snapshot(&self, log_number: FileNumber, flushed_through: SeqNo) -> FamilySnapshot {
        FamilySnapshot {
            id: self.family.id(),
            name: self.family.name().to_owned(),
            comparator: self.family.order().user.name().to_owned(),
            value_times: *self.family.options().value_times,
            log_number,
            flushed_through,
            linked_ingests: self.linked_ingests.iter().copied().collect(),
            version: self.version.clone(),
        }
    }

    /// Largest number of the youngest queue entry, or zero.
    pub fn newest_sealed(&self) -> SeqNo {
        self.queue.first().and_then(|youngest| youngest.largest_seq()).unwrap_or(SeqNo::ZERO)
    }

    /// Bytes reserved in the mutable memtable.
    pub fn reserved_bytes(&self) -> usize {
        if self.mutable.is_unused() { 0 } else { self.mutable.memtable().reserved_bytes() }
    }

    /// The charges of the family's memtables, sealed ones and the spare included.
    pub fn charges(&self) -> impl Iterator<Item = &Arc<Charge>> {
        let spare = self.spare.iter().map(|spare| spare.memtable_charge());
        let queued = self.queue.iter().filter_map(|entry| entry.charge());
        std::iter::once(self.mutable.memtable_charge()).chain(spare).chain(queued)
    }

    /// Whether every input file is still at its level (V2).
    pub fn has_in_place(&self, inputs: &[(usize, FileNumber)]) -> bool {
        inputs.iter().all(|(level, number)| self.version.level(*level).iter().any(|file| file.number() == *number))
    }

    /// Whether the entry is still queued or mutable.
    pub fn has_in_memory(&self, entry: &Arc<dyn Flushable>) -> bool {
        let mutable: Arc<dyn Flushable> = self.mutable.clone();
        Arc::ptr_eq(&mutable, entry) || holds(&self.queue, entry)
    }
}

/// Whether `entry` is one of `entries`.
pub(crate) fn holds(entries: &[Arc<dyn Flushable>], entry: &Arc<dyn Flushable>) -> bool {
    entries.iter().any(|other| Arc::ptr_eq(other, entry))
}
