//! Makes the families' memtables, switches to the next ones, and finds them memory. Keeps Q1, V1.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use base::FamilyId;
use parking_lot::Mutex;

use crate::core::space::Needs;
use crate::core::{Core, FamilyState};
use crate::queue::memory::Charge;
use crate::queue::sharers::{Held, Sharer};

pub(crate) mod due;
pub(crate) mod restored;
pub(crate) mod room;
pub(crate) mod spare;
pub(crate) mod staged;
pub(crate) mod switch;

/// Makes, charges and switches the families' memtables.
pub(crate) struct Memtables {
    core: Arc<Core>,
    /// A writer, maybe of another database, waits for memory that these memtables hold.
    is_asked: AtomicBool,
    /// Families for upkeep to look at: written to so far that they want a spare, or memory prefaulted. A leaf lock.
    looks: Mutex<BTreeSet<FamilyId>>,
}

impl Memtables {
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        let memtables = Arc::new(Memtables { core, is_asked: AtomicBool::new(false), looks: Mutex::default() });
        let sharer: Weak<Memtables> = Arc::downgrade(&memtables);
        memtables.core.context.memtables.memory.sharers.join(sharer);
        memtables
    }

    /// Has the next turn of upkeep look at families.
    pub(crate) fn look_at(&self, families: impl IntoIterator<Item = FamilyId>) {
        self.looks.lock().extend(families);
    }

    /// The families to look at now.
    pub(crate) fn take_looks(&self) -> BTreeSet<FamilyId> {
        std::mem::take(&mut self.looks.lock())
    }

    /// Called by the close: nothing is asked of this database any more, and what readers keep is not counted.
    pub fn leave_budget(&self) {
        self.core.context.memtables.memory.sharers.leave(self);
        let state = self.core.state.lock();
        let charges: Vec<Arc<Charge>> = state.families.values().flat_map(FamilyState::charges).cloned().collect();
        drop(state);
        for charge in charges {
            charge.release();
        }
    }

    /// What the memtables hold. `can_flush`: flushes free memory, now or once there is space.
    fn held_if(&self, can_flush: bool) -> Held {
        let state = self.core.state.lock();
        let mut held = Held::default();
        for family in state.families.values() {
            let charge = family.mutable.memtable_charge();
            if !can_flush {
                held.kept_bytes += family.charges().map(|charge| charge.bytes()).sum::<usize>();
            } else if family.mutable.memtable().entries() == 0 {
                held.kept_bytes += charge.bytes();
            } else {
                held.mutable_bytes += family.reserved_bytes();
                held.largest_bytes = held.largest_bytes.max(family.reserved_bytes());
                let oldest = held.oldest.unwrap_or(u64::MAX);
                held.oldest = Some(oldest.min(charge.birth()));
            }
            held.has_sealed |= can_flush && family.queue.iter().any(|entry| entry.charge().is_some());
        }
        held
    }
}

impl Sharer for Memtables {
    fn held(&self) -> Held {
        let core = &self.core;
        let has_failed = core.read_only || core.is_closing() || core.background_error().is_some();
        let waits_for_space = core.space.is_lacking(Needs::Flush) || core.reserve.is_spent();
        self.held_if(!has_failed && !waits_for_space && core.flushes_can_wait())
    }

    fn call(&self) {
        self.core.upkeep.raise();
    }

    fn ask_for_memory(&self) {
        self.is_asked.store(true, Ordering::Release);
        self.core.upkeep.raise();
    }
}
