//! Which flush is next: the old end of a family's queue becomes a table in level 0. Keeps Q2.

use std::sync::Arc;

use base::{FamilyId, SeqNo};

use crate::core::{Core, FamilyState, State};
use crate::family::Family;
use crate::flush::flushable::Flushable;
use crate::ingest::queued::QueuedIngest;
use crate::version::version::Version;

/// Ingests that are linked at once, at the most: where all their tables end in level 0, compactions and the stall of
/// writers see that before the next ones come.
const INGESTS_MAX: usize = 64;

/// What to flush: plain data, fixed when it is picked.
pub(crate) struct FlushPlan {
    pub family: Arc<Family>,
    /// The family's tables when the plan was made.
    pub version: Arc<Version>,
    /// Oldest first, from the queue's old end (Q2). All of them ingests, whose tables are linked, or none, and one table
    /// is made of them.
    pub entries: Vec<Arc<dyn Flushable>>,
    /// The largest number in them.
    pub through: SeqNo,
}

impl FlushPlan {
    /// The entries, where they are ingests.
    pub fn ingests(&self) -> impl Iterator<Item = &QueuedIngest> {
        self.entries.iter().filter_map(|entry| entry.as_ingest())
    }

    pub fn is_of_ingests(&self) -> bool {
        self.ingests().next().is_some()
    }
}

/// A run of entries at a queue's old end that leave it the same way, oldest first: the longest, of memtables. One that is to
/// become a table leaves alone. An ingest with an excise is the first of its run: it is to find in tables whatever it
/// removes. `queue` is youngest first.
pub(crate) fn next_to_flush(queue: &[Arc<dyn Flushable>]) -> Vec<Arc<dyn Flushable>> {
    let is_ingest = |entry: &Arc<dyn Flushable>| entry.as_ingest().is_some();
    let excises = |entry: &Arc<dyn Flushable>| entry.as_ingest().is_some_and(|ingest| ingest.excise().is_some());
    let Some(first) = queue.last().filter(|oldest| !is_held(oldest)) else { return Vec::new() };
    let leaves_alone = |entry: &Arc<dyn Flushable>| entry.conversion().is_some();
    let rest = queue.iter().rev().skip(1).take_while(|entry| !leaves_alone(entry));
    let alike = rest.take_while(|entry| is_ingest(entry) == is_ingest(first) && !excises(entry) && !is_held(entry));
    let entries_max = match () {
        () if leaves_alone(first) => 1,
        () if is_ingest(first) => INGESTS_MAX,
        () => usize::MAX,
    };
    std::iter::once(first).chain(alike).take(entries_max).cloned().collect()
}

/// Whether its committer takes the entry out of the queue, and nothing above it leaves before.
fn is_held(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(QueuedIngest::is_held)
}

impl Core {
    /// The next flush: of the family whose oldest sealed entry is oldest.
    pub(crate) fn pick_flush(&self, state: &mut State) -> Option<FlushPlan> {
        let oldest = |family: &FamilyState| family.queue.last().map(|entry| entry.created_at());
        let due = state.families.values().filter(|family| !family.flushing && wants_flush(family));
        let id = due.min_by_key(|family| oldest(family))?.family.id();
        self.plan_flush(state, id)
    }

    /// Takes on the flush of what a family has sealed, as far as it leaves the queue the same way. Nobody else may be flushing it.
    pub(crate) fn plan_flush(&self, state: &mut State, id: FamilyId) -> Option<FlushPlan> {
        let family = state.families.get_mut(&id)?;
        assert!(!family.flushing, "one flush of a family at a time (Q2)");
        let entries = next_to_flush(&family.queue);
        let through = entries.last().and_then(|entry| entry.largest_seq())?;
        family.flushing = true;
        let plan = FlushPlan { family: family.family.clone(), version: family.version.clone(), entries, through };
        state.flushes_running += 1;
        Some(plan)
    }
}

/// Whether a family has something to flush: enough sealed entries, an ingest, or any that somebody waits for.
pub(crate) fn wants_flush(family: &FamilyState) -> bool {
    let enough = family.family.options().min_write_buffer_number_to_merge;
    let wanted = family.flush_wanted_through;
    // The second is for those that no write was noted to: only their memory can be waited for.
    let waited_for = |entry: &Arc<dyn Flushable>| {
        entry.created_at() < wanted || entry.largest_seq().is_some_and(|largest| largest <= wanted)
    };
    let Some(oldest) = family.queue.last().filter(|oldest| !is_held(oldest)) else { return false };
    oldest.as_ingest().is_some() || family.queue.len() >= enough || family.queue.iter().any(waited_for)
}
