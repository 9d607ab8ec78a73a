//! Which flush is next: the old end of a family's queue becomes a table in level 0. Keeps Q2.

use std::sync::Arc;

use base::{FamilyId, SeqNo};

use crate::core::{Core, FamilyState, State};
use crate::family::Family;
use crate::flush::flushable::Flushable;
use crate::version::version::Version;

/// What to flush: plain data, fixed when it is picked.
pub(crate) struct FlushPlan {
    pub family: Arc<Family>,
    /// The family's tables when the plan was made.
    pub version: Arc<Version>,
    /// Oldest first, from the queue's old end (Q2).
    pub entries: Vec<Arc<dyn Flushable>>,
    /// The largest number in them.
    pub through: SeqNo,
}

impl Core {
    /// The next flush: of the family whose oldest sealed entry is oldest.
    pub(crate) fn pick_flush(&self, state: &mut State) -> Option<FlushPlan> {
        let oldest = |family: &FamilyState| family.queue.last().map(|entry| entry.created_at());
        let due = state.families.values().filter(|family| !family.flushing && wants_flush(family));
        let id = due.min_by_key(|family| oldest(family))?.family.id();
        self.plan_flush(state, id)
    }

    /// Takes on the flush of everything that a family has sealed. Nobody else may be flushing it.
    pub(crate) fn plan_flush(&self, state: &mut State, id: FamilyId) -> Option<FlushPlan> {
        let family = state.families.get_mut(&id)?;
        assert!(!family.flushing, "one flush of a family at a time (Q2)");
        let entries: Vec<_> = family.queue.iter().rev().cloned().collect();
        let through = entries.last().and_then(|entry| entry.largest_seq())?;
        family.flushing = true;
        let plan = FlushPlan { family: family.family.clone(), version: family.version.clone(), entries, through };
        state.flushes_running += 1;
        Some(plan)
    }
}

/// Whether a family has something to flush: enough sealed entries, or any that somebody waits for.
pub(crate) fn wants_flush(family: &FamilyState) -> bool {
    let enough = family.family.options().min_write_buffer_number_to_merge;
    let wanted = family.flush_wanted_through;
    // The second is for those that no write was noted to: only their memory can be waited for.
    let waited_for = |oldest: &Arc<dyn Flushable>| {
        oldest.created_at() < wanted || oldest.largest_seq().is_some_and(|largest| largest <= wanted)
    };
    family.queue.last().is_some_and(|oldest| family.queue.len() >= enough || waited_for(oldest))
}

/// Whether the entries are what the queue's old end still is (V2).
pub(crate) fn still_at_the_old_end(family: &FamilyState, entries: &[Arc<dyn Flushable>]) -> bool {
    let same = |(a, b): (&Arc<dyn Flushable>, &Arc<dyn Flushable>)| Arc::ptr_eq(a, b);
    family.queue.len() >= entries.len() && family.queue.iter().rev().zip(entries).all(same)
}
