//! Flushes that a caller asks for, and waits for.

use std::sync::Arc;

use base::{FamilyId, Result, SeqNo};

use crate::core::family::Family;
use crate::core::space::Needs;
use crate::flush::group::Flusher;

impl Flusher {
    /// Has the background flush what was written to families so far. Returns how far that is.
    pub(crate) fn seal_families(&self, families: &[&Arc<Family>]) -> Result<Vec<(FamilyId, SeqNo)>> {
        let mut goals: Vec<(FamilyId, SeqNo)> = Vec::with_capacity(families.len());
        for family in families {
            self.core.check_family(family)?;
            goals.push((family.id(), self.memtables.seal_for_flush(family)?));
        }
        self.core.state_changed.notify_all();
        Ok(goals)
    }

    pub(crate) fn flush_families(&self, families: &[&Arc<Family>]) -> Result<()> {
        let _awaited = self.core.context.throttle.await_flushes();
        self.core.space.try_now(Needs::Flush);
        let goals = self.seal_families(families)?;
        self.core.wait_until(|state| {
            let is_done = |(id, through): &(FamilyId, SeqNo)| {
                state.families.get(id).is_none_or(|family| family.is_flushed_through(*through))
            };
            self.core.is_done_or_lacks_space(goals.iter().all(is_done))
        })
    }

    /// Seals the memtables that have long lists of linked ingests above them, so that T passes those.
    ///
    /// # Errors
    /// What making a memtable yields.
    pub(crate) fn pass_linked_ingests(&self) -> Result<()> {
        let families: Vec<Arc<Family>> = {
            let state = self.core.state.lock();
            let long = state.families.values().filter(|family| family.has_too_many_linked());
            long.map(|family| family.family.clone()).collect()
        };
        families.iter().try_for_each(|family| self.memtables.seal_for_flush(family).map(|_| ()))
    }
}
