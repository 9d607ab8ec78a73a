//! Eager flush: a write that returns only when its families are flushed. For programs that persist one batch now and
//! then and want it in tables, and out of the WAL, at return. The writer seals its memtables and flushes them itself,
//! as a group; idle threads help. Keeps F1, F2.
//!
//! Families with nothing unflushed advance for free (F3), so a family without writes pins no log. A family written but
//! never flushed is flushed when the WAL reaches `max_total_wal_size`.

use std::sync::Arc;

use base::{Error, FamilyId, Result, SeqNo};
use smallvec::SmallVec;

use crate::commit::Written;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::flush::group::Flusher;
use crate::flush::job::{FlushPlan, next_to_flush};
use crate::queue::entries::SmallIngests;
use crate::queue::flushable::Flushable;

impl Flusher {
    /// Flushes the families of a visible write, as it asked for.
    ///
    /// # Errors
    /// The failure of the flush; the write itself succeeded. After `NoSpace` the flush is retried when there is room;
    /// after any other error the database is read-only.
    pub(crate) fn flush_written(&self, written: &Written) -> Result<()> {
        let Written { to_flush: families, last } = written;
        if self.is_atomic() {
            return self.flush_written_with_all(families);
        }
        let last = *last;
        let _awaited = self.core.context.throttle.await_flushes();
        let mut claims = Claims { flusher: self, families: SmallVec::new() };
        for family in families {
            claims.claim(family.id());
            let sealed = self.seal_through(family, last);
            if !family.is_dropped() {
                sealed?;
            }
        }
        claims.flush_older_runs()?;
        let plans = claims.into_plans()?;
        self.core.state_changed.notify_all(); // for unclaimed families, and claims without a plan
        if !plans.is_empty() {
            let bytes = plans.iter().map(FlushPlan::bytes).sum();
            let flushed = self.flush_group(plans);
            self.core.end_job(Needs::Flush, bytes, flushed)?;
        }
        // Memtables flushed by another thread, now or later, with older ones of the family.
        let ids: SmallVec<[FamilyId; 2]> = families.iter().map(|family| family.id()).collect();
        self.core.wait_until(|state| {
            let is_done = |id: &FamilyId| state.families.get(id).is_none_or(|family| family.is_flushed_through(last));
            self.core.is_done_or_lacks_space(ids.iter().all(is_done))
        })
    }

    /// Seals the family's mutable memtable, unless everything through `last` is sealed already.
    fn seal_through(&self, family: &Arc<Family>, last: SeqNo) -> Result<()> {
        let id = {
            let mut state = self.core.state.lock();
            let current = self.core.family_state(&mut state, family.id())?;
            current.flush_wanted_through = current.flush_wanted_through.max(last);
            (current.mutable.created_at() < last).then(|| current.mutable.id())
        };
        match id {
            Some(id) => self.memtables.replace_memtable(family, id, 0),
            None => Ok(()),
        }
    }
}

/// Families claimed for flushing by this thread. Claimed before the memtable is sealed: a sealed memtable may be
/// flushed by any thread. Dropping it releases the claims.
struct Claims<'a> {
    flusher: &'a Flusher,
    families: SmallVec<[FamilyId; 2]>,
}

impl Claims<'_> {
    /// Claims a family's flush unless another thread has it.
    fn claim(&mut self, id: FamilyId) {
        let mut state = self.flusher.core.state.lock();
        if let Some(family) = state.families.get_mut(&id).filter(|family| !family.flushing) {
            family.flushing = true;
            self.families.push(id);
        }
    }

    /// Flushes the older runs of claimed queues, up to the youngest run (linked ingests and memtables form separate
    /// runs). Then the written entries leave all the families in one edit (D3).
    fn flush_older_runs(&mut self) -> Result<()> {
        let mut at = 0;
        while let Some(id) = self.families.get(at).copied() {
            let Some(plan) = self.plan_older_run(id) else {
                at += 1;
                continue;
            };
            self.families.remove(at); // the flush ends with the claim
            let bytes = plan.bytes();
            let flushed = self.flusher.flush_group(vec![plan]);
            self.flusher.core.end_job(Needs::Flush, bytes, flushed)?;
            let mut state = self.flusher.core.state.lock();
            if let Some(family) = state.families.get_mut(&id).filter(|family| !family.flushing) {
                family.flushing = true;
                self.families.insert(at, id);
            }
        }
        Ok(())
    }

    fn plan_older_run(&self, id: FamilyId) -> Option<FlushPlan> {
        let mut state = self.flusher.core.state.lock();
        let family = state.families.get_mut(&id)?;
        let small = SmallIngests::of_group(self.families.len());
        if self.flusher.core.is_closing() || next_to_flush(&family.queue, small).len() == family.queue.len() {
            return None;
        }
        family.flushing = false;
        let plan = state.plan_flush(id, small);
        if let Some(family) = state.families.get_mut(&id) {
            family.flushing = true; // still claimed if there is no plan
        }
        plan
    }

    /// Plans the flushes of the claimed families. Fails once closing began: closing waits for running flushes, so the
    /// check is under the state lock.
    fn into_plans(mut self) -> Result<Vec<FlushPlan>> {
        let mut state = self.flusher.core.state.lock();
        if self.flusher.core.is_closing() {
            drop(state); // dropping `self` needs the state lock; its claims are released
            return Err(Error::closed("the database is being closed: the write was done, its flush was not"));
        }
        let claimed = std::mem::take(&mut self.families);
        let plan = |id: FamilyId| {
            let family = state.families.get_mut(&id)?;
            family.flushing = false;
            state.plan_flush(id, SmallIngests::of_group(claimed.len()))
        };
        Ok(claimed.iter().copied().filter_map(plan).collect())
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if self.families.is_empty() {
            return;
        }
        let mut state = self.flusher.core.state.lock();
        for id in &self.families {
            if let Some(family) = state.families.get_mut(id) {
                family.flushing = false;
            }
        }
        drop(state);
        self.flusher.core.state_changed.notify_all();
    }
}
