//! A family's queue as it is to be. Made under the state lock, before the commit lock is taken: allocations and the lines of
//! the queue's entries are cold there, and writers would wait for them.
//!
//! Under the commit lock the view is installed, a few stores; the family's state, by which jobs go, follows under the state
//! lock.

use std::sync::Arc;

use base::SeqNo;
use log::Position;

use crate::commit::pipeline::LogPosition;
use crate::core::family::Family;
use crate::core::{FamilyState, OldViews};
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::view::{NextView, ReadView};

/// To be put in place, if at all, while the state lock is held under which it was made; afterwards it holds what it replaced.
/// Dropped off the locks.
pub(crate) struct Staged {
    queue: Vec<Arc<dyn Flushable>>,
    view: NextView,
    /// Views that were exchanged for the present one.
    _exchanged: Option<OldViews>,
}

/// Where a memtable ends and the next one begins.
pub(crate) struct Seam {
    /// The last number of what may be in the one.
    pub before: SeqNo,
    /// The last number given out: what the other holds is above it.
    pub last: SeqNo,
    /// Behind everything in the logs that has a number by now.
    pub logged_through: LogPosition,
    /// Where in the logs the other's writes begin, if that is known.
    pub next_record: Option<Position>,
}

impl Staged {
    /// `entries`, youngest first, above the family's queue: under its mutable memtable, or over it and under `next`.
    pub fn new(
        family: &mut FamilyState,
        entries: impl Iterator<Item = Arc<dyn Flushable>>,
        next: Option<&Arc<QueuedMemtable>>,
    ) -> Self {
        let _exchanged = family.settle_view();
        let sealed = next.map(|_| family.mutable.clone() as Arc<dyn Flushable>);
        let queue: Vec<_> = entries.chain(sealed).chain(family.queue.iter().cloned()).collect();
        let mutable = next.unwrap_or(&family.mutable).clone();
        let view = ReadView::new(mutable, queue.clone(), family.version.clone());
        Staged { queue, view: NextView::new(family.family.view_full(), view), _exchanged }
    }

    /// The memtable that is mutable once this is in place.
    pub fn mutable(&self) -> &QueuedMemtable {
        &self.view.next().mutable
    }

    pub fn keeps_mutable(&self) -> bool {
        self.view.keeps_mutable()
    }

    /// Under the commit lock. Has readers find the view before any number is published that needs it (V1), and writers that
    /// take a number from now on go to its memtable; seals the one before.
    pub fn install(&mut self, family: &Family, seam: &Seam) {
        if !self.keeps_mutable() {
            let next = &self.view.next().mutable;
            next.begin_after(seam.last);
            self.view.present().mutable.seal_at(seam.before, seam.logged_through, seam.next_record);
            family.set_mutable(next);
        }
        self.view.announce();
    }

    /// Has the family's state follow what was [installed](Self::install).
    pub fn follow(&mut self, family: &mut FamilyState) {
        family.mutable = self.view.next().mutable.clone(); // the one before is in the view before
        std::mem::swap(&mut family.queue, &mut self.queue);
        family.keep_announced(self.view.next().clone());
    }
}
