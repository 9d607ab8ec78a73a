//! What the state lock guards: each family's queue, version and running jobs. Keeps V1.

use crate::compaction::FamilyCompactions;
use crate::core::family::Family;
use crate::core::late_excise::LateExcise;
use crate::queue::due::tables_to_come;
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::ingest::QueuedIngest;
use crate::queue::view::ReadView;
use crate::version::table_file::TableFile;
use crate::version::version::Version;
use base::{FamilyId, FileNumber, SeqNo};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What the state lock guards.
pub(crate) struct State {
    pub families: BTreeMap<FamilyId, FamilyState>,
    pub max_family: u32,
    pub flushes_running: usize,
    pub compactions_running: usize,
    /// Ingests that are being prepared: they make files in the directory.
    pub prepares_running: usize,
}

impl State {
    /// The number through which no family needs the logs.
    pub fn needed_after(&self) -> SeqNo {
        self.families.values().map(FamilyState::needed_after).min().unwrap_or(SeqNo::MAX)
    }

    /// The family whose mutable memtable is largest, of those that hold anything.
    pub fn largest_memtable(&self) -> Option<Arc<Family>> {
        let holding = self.families.values().filter(|family| family.mutable.memtable().entries() > 0);
        holding.max_by_key(|family| family.reserved_bytes()).map(|family| family.family.clone())
    }
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

/// So many compactions of level 0 that wait are too many.
const COMPACTIONS_BEHIND: f64 = 3.0;

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

    /// Whether flushes or compactions of the family have so much to do that they had better not wait: long before writers
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
        self.compactions_of_level0_waiting() >= COMPACTIONS_BEHIND
    }

    /// How many compactions of level 0 wait beside one that runs, by the tables there and those that the queue will become.
    fn compactions_of_level0_waiting(&self) -> f64 {
        let in_level0 = self.version.level(0).len().saturating_sub(self.compactions.taken(0).0);
        let one = self.family.options().level0_file_num_compaction_trigger.max(1);
        (in_level0 + tables_to_come(&self.queue)) as f64 / f64::from(one)
    }

    /// How far jobs of the family are behind, for the throttle: 1 if [`is_behind`](Self::is_behind). Two base levels in bytes
    /// count as a compaction of level 0.
    pub fn debt(&self) -> f64 {
        let by_bytes = self.pending_compaction_bytes as f64 / self.family.options().max_bytes_for_level_base as f64;
        let waiting = self.compactions_of_level0_waiting().max(by_bytes / 2.0);
        if self.is_behind() { 1.0 } else { (waiting / COMPACTIONS_BEHIND).min(1.0) }
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

    /// The largest number in the sealed memtables, or zero.
    pub fn newest_sealed(&self) -> SeqNo {
        self.queue.first().and_then(|youngest| youngest.largest_seq()).unwrap_or(SeqNo::ZERO)
    }

    /// What is reserved in the mutable memtable.
    pub fn reserved_bytes(&self) -> usize {
        if self.mutable.is_unused() { 0 } else { self.mutable.memtable().reserved_bytes() }
    }

    /// True where every file of a plan is still where it was (V2).
    pub fn has_in_place(&self, inputs: &[(usize, FileNumber)]) -> bool {
        inputs.iter().all(|(level, number)| self.version.level(*level).iter().any(|file| file.number() == *number))
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
