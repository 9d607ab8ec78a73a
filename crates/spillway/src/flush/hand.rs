//! Manual flushes, awaited by the caller.

use std::sync::Arc;

use base::{FamilyId, Result, SeqNo};

use crate::core::FamilyState;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::flush::group::Flusher;

impl Flusher {
    /// Seals the families' memtables and wakes the background flush. Returns the number to be flushed through, per
    /// family.
    pub(crate) fn seal_families(&self, families: &[&Arc<Family>]) -> Result<Vec<(FamilyId, SeqNo)>> {
        let mut goals: Vec<(FamilyId, SeqNo)> = Vec::with_capacity(families.len());
        for family in families {
            self.core.check_family(family)?;
            // Before the seal: the flush may begin at once.
            if let Some(family) = self.core.state.lock().families.get_mut(&family.id()) {
                family.by_hand_through = self.core.pipeline.visible();
            }
            goals.push((family.id(), self.memtables.seal_for_flush(family)?));
        }
        self.core.state_changed.notify_all();
        Ok(goals)
    }

    pub(crate) fn flush_families(&self, families: &[&Arc<Family>]) -> Result<()> {
        let _awaited = self.core.context.throttle.await_flushes();
        self.core.space.try_now(Needs::Flush);
        let goals = self.seal_families(families)?;
        // As in RocksDB, listeners have heard of the flush when the call returns. The ring of events has it, too.
        let is_unreported = |family: &FamilyState, through| family.flushing && family.flushing_from < through;
        self.core.wait_until(|state| {
            let is_done = |(id, through): &(FamilyId, SeqNo)| {
                let is_done =
                    |family: &FamilyState| family.is_flushed_through(*through) && !is_unreported(family, *through);
                state.families.get(id).is_none_or(is_done)
            };
            self.core.is_done_or_lacks_space(goals.iter().all(is_done))
        })
    }

    /// Seals memtables below long lists of linked ingests, so that T passes the listed ingests.
    ///
    /// # Errors
    /// As making a memtable.
    pub(crate) fn pass_linked_ingests(&self) -> Result<()> {
        let families = {
            let mut state = self.core.state.lock();
            if !state.has_long_lists {
                return Ok(());
            }
            let families = state.families_where(FamilyState::has_too_many_linked);
            state.has_long_lists = !families.is_empty();
            families
        };
        families.iter().try_for_each(|family| self.memtables.seal_for_flush(family).map(|_| ()))
    }
}
