//! Memtables made ahead, so that replacing a full one costs its writer nothing, whatever its size: one for each family
//! that was written since its memtable became mutable. How far their pages are present: [`crate::wal::presence`].

use std::sync::Arc;

use base::{FamilyId, Result};

use crate::core::FamilyState;
use crate::core::family::Family;
use crate::queue::Memtables;
use crate::queue::flushable::QueuedMemtable;

impl Memtables {
    /// Makes a memtable that can become a family's mutable one, with so much room. Off every lock.
    pub(crate) fn make_memtable(&self, family: &Family, need_bytes: usize) -> Result<Arc<QueuedMemtable>> {
        Ok(self.core.context.queue_memtable(family.create_memtable(need_bytes)?))
    }

    /// Takes the family's spare, where there is one with so much room.
    pub(crate) fn take_spare(&self, family: FamilyId, need_bytes: usize) -> Option<Arc<QueuedMemtable>> {
        let mut state = self.core.state.lock();
        let family = state.families.get_mut(&family)?;
        // The buffer's size may have been changed since the spare was made, or be more than a memtable may have.
        let buffer_bytes = family.family.options().write_buffer_size;
        family.spare.take_if(|spare| need_bytes <= buffer_bytes.min(spare.unused_bytes()))
    }

    /// Makes the spares that are lacking. A background job.
    pub(crate) fn make_spare_memtables(&self) -> Result<()> {
        let memory = &self.core.context.memtables.memory;
        for family in self.families_where(|f| f.spare.is_none() && f.is_written()) {
            if memory.charged_bytes() > memory.limit_bytes() - memory.limit_bytes() / 4 {
                break; // a writer would only have it given up again
            }
            let made = self.make_memtable(&family, 0)?;
            let mut state = self.core.state.lock();
            let unneeded = match state.families.get_mut(&family.id()) {
                Some(state) if state.spare.is_none() => {
                    state.spare = Some(made);
                    None
                }
                _ => Some(made),
            };
            drop(state);
            drop(unneeded);
        }
        Ok(())
    }

    /// Drops all spares, for the memory they hold; false where there was none.
    pub(crate) fn give_up_spares(&self) -> bool {
        let mut state = self.core.state.lock();
        let spares: Vec<_> = state.families.values_mut().filter_map(|family| family.spare.take()).collect();
        drop(state);
        !spares.is_empty()
    }

    fn families_where(&self, wanted: impl Fn(&FamilyState) -> bool) -> Vec<Arc<Family>> {
        let state = self.core.state.lock();
        state.families.values().filter(|family| wanted(family)).map(|family| family.family.clone()).collect()
    }
}
