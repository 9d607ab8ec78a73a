//! Spare memtables, made ahead so that a switch costs its writer nothing, whatever the memtable's size. One for each
//! family written since its last switch. Prefault: [`crate::rollover::prefault`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{FamilyId, Result};

use crate::core::family::Family;
use crate::memtables::Memtables;
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

    /// Makes missing spares of families. A background job.
    pub(crate) fn make_spare_memtables(&self, looks: &BTreeSet<FamilyId>) -> Result<()> {
        let memory = &self.core.context.memtables.memory;
        let lacking: Vec<_> = {
            let state = self.core.state.lock();
            let families = looks.iter().filter_map(|id| state.families.get(id));
            let lacking = families.filter(|family| family.spare.is_none() && family.is_written());
            lacking.map(|family| family.family.clone()).collect()
        };
        for family in lacking {
            if memory.charged_bytes() > memory.limit_bytes() - memory.limit_bytes() / 4 {
                self.look_at([family.id()]); // a waiting writer would drop it again now
                continue;
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
        let spares: BTreeMap<_, _> =
            state.families.iter_mut().filter_map(|(id, family)| Some((*id, family.spare.take()?))).collect();
        drop(state);
        self.look_at(spares.keys().copied());
        !spares.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vfs::MemoryVfs;

    use crate::internal::{Database, FamilyOptions, OpenOptions};

    #[test]
    fn upkeep_looks_at_families_that_were_written_to_alone() {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database, without threads");
        let make = |name: &str| db.create_family(name, FamilyOptions::default()).expect("made");
        let [one, other] = ["one", "other"].map(make);
        let has_spare = |id| db.core().state.lock().families[&id].spare.is_some();
        let memtables = &db.engine().memtables;
        db.engine().jobs.keep_up();
        vfs.set_runs_inline(false); // or a put would run upkeep
        db.put(&one, b"key", b"value", &Default::default()).expect("put");
        assert_eq!(*memtables.looks.lock(), BTreeSet::from([one.id()]));
        db.engine().jobs.keep_up();
        assert_eq!((has_spare(one.id()), has_spare(other.id())), (true, false));
        assert!(memtables.looks.lock().is_empty());
        db.put(&one, b"key", b"again", &Default::default()).expect("put");
        assert!(memtables.looks.lock().is_empty(), "a small write calls nobody");
        assert!(memtables.give_up_spares());
        assert_eq!(*memtables.looks.lock(), BTreeSet::from([one.id()]), "a spare that was given up is made again");
        vfs.set_runs_inline(true);
    }
}
