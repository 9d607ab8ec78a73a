//! Spare memtables, made ahead so that a switch costs its writer nothing, whatever the memtable's size. One for each
//! family written since its last switch. Prefault: [`crate::wal::presence`].

use std::sync::Arc;

use base::{FamilyId, Result};

use crate::core::family::Family;
use crate::queue::Memtables;
use crate::queue::flushable::QueuedMemtable;

impl Memtables {
    /// Makes a memtable with room for `need_bytes`, to become a family's mutable one. Called off every lock.
    pub(crate) fn make_memtable(&self, family: &Family, need_bytes: usize) -> Result<Arc<QueuedMemtable>> {
        Ok(self.core.context.queue_memtable(family.create_memtable(need_bytes)?))
    }

    /// Takes the family's spare, if it has room for `need_bytes`.
    pub(crate) fn take_spare(&self, family: FamilyId, need_bytes: usize) -> Option<Arc<QueuedMemtable>> {
        let mut state = self.core.state.lock();
        let family = state.families.get_mut(&family)?;
        // The option may have changed since the spare was made, or exceed the largest memtable.
        let buffer_bytes = family.family.options().write_buffer_size;
        family.spare.take_if(|spare| need_bytes <= buffer_bytes.min(spare.unused_bytes()))
    }

    /// Makes missing spares. A background job.
    pub(crate) fn make_spare_memtables(&self) -> Result<()> {
        let memory = &self.core.context.memtables.memory;
        let lacking = self.core.state.lock().families_where(|family| family.spare.is_none() && family.is_written());
        for family in lacking {
            if memory.charged_bytes() > memory.limit_bytes() - memory.limit_bytes() / 4 {
                break; // a waiting writer would drop it again
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

    /// Drops all spares to free their memory; false if there were none.
    pub(crate) fn give_up_spares(&self) -> bool {
        let mut state = self.core.state.lock();
        let spares: Vec<_> = state.families.values_mut().filter_map(|family| family.spare.take()).collect();
        drop(state);
        !spares.is_empty()
    }
}
