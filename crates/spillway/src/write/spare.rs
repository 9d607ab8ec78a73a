//! Memtables made ahead, so that replacing a full one costs its writer nothing, whatever its size: one for each family
//! that was written since its memtable became mutable, and its pages made present once that is half full.

use std::sync::Arc;

use base::{FamilyId, Result};
use memtable::Memtable;

use crate::core::{Core, FamilyState};
use crate::family::Family;
use crate::flush::held::HeldMemtable;

/// Write buffers larger than this are not made present ahead: that would take the memory of a whole one long before it
/// is needed.
const POPULATED_MAX_BYTES: usize = 256 << 20;

/// A memtable that waits to become mutable.
pub(crate) struct Spare {
    held: HeldMemtable,
    populated: bool,
}

impl Spare {
    pub fn new(held: HeldMemtable) -> Self {
        Spare { held, populated: false }
    }

    pub fn memtable(&self) -> &Arc<dyn Memtable> {
        self.held.memtable()
    }
}

impl Core {
    /// Takes the family's spare, where there is one with so much room.
    pub(crate) fn take_spare(&self, family: FamilyId, need_bytes: usize) -> Option<HeldMemtable> {
        let mut state = self.state.lock();
        let family = state.families.get_mut(&family)?;
        // The buffer's size may have been changed since the spare was made, or be more than a memtable may have.
        let unused_bytes = |held: &HeldMemtable| held.capacity_bytes().saturating_sub(held.memtable().reserved_bytes());
        let room_bytes = |spare: &Spare| family.family.options().write_buffer_size.min(unused_bytes(&spare.held));
        let fits = family.spare.as_ref().is_some_and(|spare| need_bytes <= room_bytes(spare));
        family.spare.take_if(|_| fits).map(|spare| spare.held)
    }

    /// Makes the spares that are lacking, and the pages present of those that are needed soon. A background job.
    pub(crate) fn make_spare_memtables(&self) -> Result<()> {
        let memory = &self.context.memtables.memory;
        // What an ingest took the spare of will be written again: its queue says that it was.
        let is_written = |family: &FamilyState| !family.mutable.is_unused() || !family.queue.is_empty();
        for family in self.families_where(|f| f.spare.is_none() && is_written(f)) {
            if memory.charged_bytes() > memory.limit_bytes() - memory.limit_bytes() / 4 {
                break; // a writer would only have it given up again
            }
            let made = Spare::new(family.create_memtable(0)?);
            let mut state = self.state.lock();
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
        for family in self.families_where(|f| f.mutable.is_half_full() && !is_populated(f)) {
            self.populate_spare(&family);
        }
        Ok(())
    }

    /// Makes the pages of a family's spare present. It may become mutable meanwhile.
    fn populate_spare(&self, family: &Family) {
        let (memtable, charge) = {
            let mut state = self.state.lock();
            let Some(spare) = state.families.get_mut(&family.id()).and_then(|family| family.spare.as_mut()) else {
                return;
            };
            spare.populated = true; // or will not be: once is enough to try
            (spare.memtable().clone(), spare.held.charge().clone())
        };
        let bytes = family.options().write_buffer_size;
        let memory = &self.context.memtables.memory;
        // All of it counts as held from then on: only while that leaves as much again for what is written.
        if bytes <= POPULATED_MAX_BYTES && charge.try_raise(bytes, memory.limit_bytes() / 2) {
            memtable.populate();
            charge.raise(memtable.memory_bytes());
        }
    }

    /// Drops all spares, for the memory they hold; false where there was none.
    pub(crate) fn give_up_spares(&self) -> bool {
        let mut state = self.state.lock();
        let spares: Vec<Spare> = state.families.values_mut().filter_map(|family| family.spare.take()).collect();
        drop(state);
        !spares.is_empty()
    }

    fn families_where(&self, wanted: impl Fn(&FamilyState) -> bool) -> Vec<Arc<Family>> {
        let state = self.state.lock();
        state.families.values().filter(|family| wanted(family)).map(|family| family.family.clone()).collect()
    }
}

/// Also where there is none to populate.
fn is_populated(family: &FamilyState) -> bool {
    family.spare.as_ref().is_none_or(|spare| spare.populated)
}
