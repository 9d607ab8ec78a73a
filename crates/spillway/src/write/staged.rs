//! A family's queue as it is to be. Made before the commit lock is taken, for which writers wait: memory is asked for, and a
//! line touched for each entry, of which few are in the processor's caches.
//!
//! It is put in place in three steps. Under the commit lock writers are turned away from the memtable that is to be sealed.
//! Then it is shown to readers, and to writers the memtable that follows: they wait for that, so whoever does may do it. Last
//! comes what jobs go by, which the state lock guards.

use std::sync::Arc;

use base::SeqNo;

use crate::core::FamilyState;
use crate::family::Family;
use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::read::view::{NextView, ReadView};
use crate::write::logs::ActiveLog;
use crate::write::pipeline::LogPosition;

/// To be put in place, if at all, while the state lock is held that it was made under; what it took the place of is in it
/// then. To be dropped off the locks.
pub(crate) struct Staged {
    queue: Vec<Arc<dyn Flushable>>,
    view: Arc<NextView>,
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
        let view = Arc::new(NextView::new(family.family.view_full(), view));
        Staged { queue, view }
    }

    pub fn view(&self) -> &Arc<NextView> {
        &self.view
    }

    pub fn keeps_mutable(&self) -> bool {
        self.view.keeps_mutable()
    }

    /// Has no write that takes a number from now on go to the memtable that is to be sealed. Under the commit lock.
    #[inline]
    pub fn turn_writers_away(&self, family: &Family) {
        if !self.keeps_mutable() {
            family.set_mutable(&self.view.next().mutable);
        }
    }

    /// Has the family's state follow what readers were [shown](show).
    pub fn follow(&mut self, family: &mut FamilyState) {
        family.mutable = self.view.next().mutable.clone(); // the one before is in the view before
        std::mem::swap(&mut family.queue, &mut self.queue);
        family.keep_announced(self.view.next().clone());
    }
}

/// Has readers find a view, and writers its memtable, before any number that needs it is published (V1). However many do this
/// with the same seam, and however late: it comes to the same.
pub(crate) fn show(view: &NextView, seam: &Seam<'_>) {
    if !view.keeps_mutable() {
        view.next().mutable.begin_after(seam.last);
        view.present().mutable.seal_at(seam.before, seam.logged_through, seam.log);
    }
    view.announce();
}
