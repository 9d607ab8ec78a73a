//! A family's queue as it is to be. Made before the commit lock is taken, for which writers wait: memory is asked for, and a
//! line touched for each entry, of which few are in the processor's caches. Under the lock it is only put in place.

use std::sync::Arc;

use base::SeqNo;

use crate::core::FamilyState;
use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::read::view::{NextView, ReadView};
use crate::write::logs::ActiveLog;
use crate::write::pipeline::LogPosition;

/// To be put in place, if at all, while the state lock is held that it was made under; what it took the place of is in it
/// then. To be dropped off the locks.
pub(crate) struct Staged {
    queue: Vec<Arc<dyn Flushable>>,
    view: NextView,
    /// What becomes the mutable memtable, and what was it, then; `None` where that stays.
    next: Option<Arc<QueuedMemtable>>,
}

/// Where a memtable ends and the next one begins.
pub(crate) struct Seam<'a> {
    /// The last number of what may be in the one.
    pub before: SeqNo,
    /// The last number given out: what the other holds is above it.
    pub last: SeqNo,
    /// Behind everything in the logs that has a number by now.
    pub logged_through: LogPosition,
    /// The current log, where the other's writes begin at its end.
    pub log: Option<&'a Arc<ActiveLog>>,
}

impl Staged {
    /// `entries`, youngest first, above the family's queue: under its mutable memtable, or over it and under `next`.
    pub fn new(
        family: &FamilyState,
        entries: impl Iterator<Item = Arc<dyn Flushable>>,
        next: Option<&Arc<QueuedMemtable>>,
    ) -> Self {
        let sealed = next.map(|_| family.mutable.clone() as Arc<dyn Flushable>);
        let queue: Vec<_> = entries.chain(sealed).chain(family.queue.iter().cloned()).collect();
        let mutable = next.unwrap_or(&family.mutable).clone();
        let view = ReadView::new(mutable, queue.clone(), family.version.clone());
        let view = NextView::new(family.family.view_full(), view);
        Staged { queue, view, next: next.cloned() }
    }

    pub fn keeps_mutable(&self) -> bool {
        self.next.is_none()
    }

    /// Replaces the family's queue and has readers find that. Under the commit lock, before any number that needs it is
    /// published (V1).
    pub fn put_in_place(&mut self, family: &mut FamilyState, seam: &Seam<'_>) {
        if let Some(next) = &mut self.next {
            next.begin_after(seam.last);
            family.mutable.seal_at(seam.before, seam.logged_through, seam.log);
            std::mem::swap(&mut family.mutable, next);
            family.family.set_mutable(&family.mutable);
        }
        std::mem::swap(&mut family.queue, &mut self.queue);
        family.announce_view(&mut self.view);
    }
}
