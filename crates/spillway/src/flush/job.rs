//! Picks the next flush and its entries off the old end of its queue. Keeps Q2.

use std::sync::Arc;

use base::{FamilyId, SeqNo};

use crate::core::family::Family;
use crate::core::running::{EntriesDone, JobBytes, JobPlan};
use crate::core::{FamilyState, State};
use crate::observe::ObservedJobKind;
use crate::queue::entries::{SmallIngests, excises, is_converted, is_held, is_ingest, is_linked, memtable_bytes};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::version::version::Version;

/// Ingests linked by one flush at most, and entries of a flush with ingests. If all their tables end in level 0,
/// compactions and the write stall react before the next ones come.
const INGESTS_MAX: usize = 64;

/// Bytes of memtables in one flush with ingests between them, at most. Memtables sealed by ingests are mostly small,
/// and their flush costs mainly syncs. Large memtables are not joined, so their memory is freed sooner.
const JOINED_BYTES_MAX: usize = 16 << 20;

/// A flush to run: plain data, fixed when picked.
#[derive(Clone)]
pub(crate) struct FlushPlan {
    pub family: Arc<Family>,
    /// The family's tables when the plan was made.
    pub version: Arc<Version>,
    /// Oldest first, from the queue's old end (Q2). [`Divided`](crate::flush::divide::Divided) says what becomes of them.
    pub entries: Vec<Arc<dyn Flushable>>,
    pub small: SmallIngests,
    /// The largest sequence number in the entries.
    pub through: SeqNo,
    /// A caller asked for it.
    pub by_hand: bool,
    /// Entries written so far.
    pub done: EntriesDone,
}

impl FlushPlan {
    /// `None` if there is nothing to flush.
    pub fn new(family: &FamilyState, entries: Vec<Arc<dyn Flushable>>, small: SmallIngests) -> Option<Self> {
        let through = entries.iter().filter_map(|entry| entry.largest_seq()).max()?;
        Some(FlushPlan {
            family: family.family.clone(),
            version: family.version.clone(),
            by_hand: entries.iter().any(|entry| entry.created_at() < family.by_hand_through),
            entries,
            small,
            through,
            done: EntriesDone::default(),
        })
    }

    /// Bytes of the memtables in the plan.
    pub fn bytes(&self) -> u64 {
        memtable_bytes(&self.entries) as u64
    }

    /// The flush in the register of running jobs, and how far it is.
    pub fn as_job(&self) -> (JobPlan, impl Fn() -> JobBytes + Send + Sync + 'static) {
        let memtables = self.entries.iter().filter_map(|entry| entry.as_memtable());
        let (bytes, entries) = (self.bytes(), memtables.map(|memtable| memtable.entries()).sum());
        let plan = JobPlan {
            kind: ObservedJobKind::Flush,
            family: self.family.name().to_owned(),
            level: None,
            output_level: Some(0),
            reason: if self.has_ingests() { "ingests" } else { "memtables" },
        };
        let done = self.done.clone();
        (plan, move || done.bytes(bytes, entries))
    }

    /// The entries that are ingests.
    pub fn ingests(&self) -> impl Iterator<Item = &QueuedIngest> {
        self.entries.iter().filter_map(|entry| entry.as_ingest())
    }

    pub fn has_ingests(&self) -> bool {
        self.ingests().next().is_some()
    }

    /// The plan with every ingest linked.
    pub fn linking(&self) -> FlushPlan {
        FlushPlan { small: SmallIngests::Link, ..self.clone() }
    }
}

/// The longest sequence of entries at a queue's old end that leave it the same way, oldest first: all of them are linked,
/// or none is for sure. `queue` is youngest first.
pub(crate) fn next_to_flush(queue: &[Arc<dyn Flushable>], small: SmallIngests) -> Vec<Arc<dyn Flushable>> {
    let Some(first) = queue.last() else { return Vec::new() };
    oldest_entries(queue, |entry| is_linked(entry, small) == is_linked(first, small))
}

/// The entries at a queue's old end that one flush takes, with one WAL sync and one MANIFEST edit, oldest first. Memtables
/// above the last ingest stay while `are_ready` returns false: later memtables may be merged with them into one table.
fn entries_of_job(
    queue: &[Arc<dyn Flushable>],
    are_ready: impl Fn(&[Arc<dyn Flushable>]) -> bool,
) -> Vec<Arc<dyn Flushable>> {
    let mut taken = oldest_entries(queue, |_| true);
    let through_ingests = taken.iter().rposition(is_ingest).map_or(taken.len(), |at| at + 1);
    let waits = |above: &[Arc<dyn Flushable>]| !above.is_empty() && taken.len() == queue.len() && !are_ready(above);
    if taken.get(through_ingests..).is_some_and(waits) {
        taken.truncate(through_ingests);
    }
    taken
}

/// Entries at a queue's old end, oldest first, while they are alike. A memtable to be converted is alone. An ingest with an
/// excise comes first: everything it removes must be in tables by then.
fn oldest_entries(
    queue: &[Arc<dyn Flushable>],
    is_alike: impl Fn(&Arc<dyn Flushable>) -> bool,
) -> Vec<Arc<dyn Flushable>> {
    let Some(first) = queue.last().filter(|oldest| !is_held(oldest)) else { return Vec::new() };
    let mut run = Run::new(first);
    if !is_converted(first) {
        let may_join = |entry: &&Arc<dyn Flushable>| !is_converted(entry) && !excises(entry) && !is_held(entry);
        let joining = queue.iter().rev().skip(1).take_while(may_join).take_while(|entry| is_alike(entry));
        joining.take_while(|entry| run.takes(entry)).for_each(drop);
    }
    run.entries
}

/// A growing run.
struct Run {
    entries: Vec<Arc<dyn Flushable>>,
    memtable_bytes: usize,
    has_ingests: bool,
}

impl Run {
    fn new(first: &Arc<dyn Flushable>) -> Self {
        let entries = vec![first.clone()];
        Run { memtable_bytes: memtable_bytes(&entries), has_ingests: is_ingest(first), entries }
    }

    /// Adds an entry, unless the run has ingests and reached its length or byte limit. An ingest joins the
    /// memtable under it, however large the memtable.
    fn takes(&mut self, entry: &Arc<dyn Flushable>) -> bool {
        let more_bytes = memtable_bytes(std::slice::from_ref(entry));
        self.memtable_bytes = self.memtable_bytes.saturating_add(more_bytes);
        let is_small = self.memtable_bytes <= JOINED_BYTES_MAX || is_ingest(entry);
        if self.has_ingests && (self.entries.len() >= INGESTS_MAX || !is_small) {
            return false;
        }
        self.has_ingests |= is_ingest(entry);
        self.entries.push(entry.clone());
        true
    }
}

impl State {
    /// The next flush: of the family with the oldest sealed entry.
    pub(crate) fn pick_flush(&mut self) -> Option<FlushPlan> {
        let oldest = |family: &FamilyState| family.queue.last().map(|entry| entry.created_at());
        let due = self.families.values().filter(|family| !family.flushing && family.wants_flush());
        let family = due.min_by_key(|family| oldest(family))?;
        let entries = entries_of_job(&family.queue, |memtables| {
            memtables.len() >= family.merged_at_least() || memtables.iter().any(|entry| family.is_waited_for(entry))
        });
        let id = family.family.id();
        self.begin_flush(id, entries, SmallIngests::Merge)
    }

    /// On a full disk, if a flush is due: one of the oldest runs of all families. It takes all memtables or, for lack of
    /// space, none. A flush of some would use up the space, and free no log.
    pub(crate) fn pick_all_flushes(&mut self) -> Vec<FlushPlan> {
        if !self.families.values().any(FamilyState::wants_flush) {
            return Vec::new();
        }
        let waiting = self.families.values().filter(|family| !family.flushing && !family.queue.is_empty());
        let ids: Vec<FamilyId> = waiting.map(|family| family.family.id()).collect();
        let small = SmallIngests::of_group(ids.len());
        ids.into_iter().filter_map(|id| self.plan_flush(id, small)).collect()
    }

    /// For `atomic_flush`: begins a flush of all families, if one is due and none runs. [`Flusher::flush_all`] runs it.
    ///
    /// [`Flusher::flush_all`]: crate::flush::group::Flusher::flush_all
    pub(crate) fn begin_flush_of_all(&mut self) -> bool {
        let begins = !self.flushes_all && self.families.values().any(FamilyState::wants_flush);
        if begins {
            self.flushes_all = true;
            self.flushes_running += 1;
        }
        begins
    }

    /// Plans to flush everything sealed through a number. `None` while a committer holds some of it: entries above a held
    /// one cannot leave before it.
    pub(crate) fn plan_all_through(&mut self, through: SeqNo) -> Option<Vec<FlushPlan>> {
        let is_sealed = |entry: &&Arc<dyn Flushable>| entry.largest_seq().is_some_and(|largest| largest <= through);
        let sealed =
            |family: &FamilyState| family.queue.iter().rev().take_while(is_sealed).cloned().collect::<Vec<_>>();
        let all: Vec<_> = self.families.iter().map(|(id, family)| (*id, sealed(family))).collect();
        if all.iter().flat_map(|(_, entries)| entries).any(is_held) {
            return None;
        }
        let plan = |(id, entries)| self.begin_flush(id, entries, SmallIngests::RewriteAll);
        Some(all.into_iter().filter_map(plan).collect())
    }

    /// Begins the flush of a family's oldest run. The caller makes sure that no other flush of the family runs.
    pub(crate) fn plan_flush(&mut self, id: FamilyId, small: SmallIngests) -> Option<FlushPlan> {
        let entries = next_to_flush(&self.families.get(&id)?.queue, small);
        self.begin_flush(id, entries, small)
    }

    fn begin_flush(
        &mut self,
        id: FamilyId,
        entries: Vec<Arc<dyn Flushable>>,
        small: SmallIngests,
    ) -> Option<FlushPlan> {
        let family = self.families.get_mut(&id)?;
        assert!(!family.flushing, "one flush of a family at a time (Q2)");
        let plan = FlushPlan::new(family, entries, small)?;
        family.flushing = true;
        family.flushing_from = plan.entries.iter().map(|entry| entry.created_at()).min().unwrap_or(SeqNo::ZERO);
        family.joined_at = None;
        self.flushes_running += 1;
        Some(plan)
    }
}
