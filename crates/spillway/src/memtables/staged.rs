//! The next queue of a family, prepared under the state lock before the commit lock is taken. Preparing allocates and
//! touches cold queue entries, and would hold up writers under the commit lock.
//!
//! Under the commit lock only the view is installed, by a few stores. The family's state, read by jobs, follows under
//! the state lock.

use std::sync::{Arc, Weak};

use base::SeqNo;
use wal::Position;

use crate::core::family::Family;
use crate::core::{FamilyState, OldViews};
use crate::order::pipeline::LogPosition;
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::view::ReadView;

/// Valid only under the state lock under which it was made. Holds the replaced queue after `follow`. Dropped off the
/// locks.
pub(crate) struct Staged {
    queue: Vec<Arc<dyn Flushable>>,
    present: Arc<ReadView>,
    next: Arc<ReadView>,
    /// The present view's successor; `None` once installed.
    handle: Option<Box<Weak<ReadView>>>,
    /// Views replaced by an exchange in `new`.
    _exchanged: Option<OldViews>,
}

/// A memtable boundary.
pub(crate) struct MemtableBoundary {
    /// The last number the old memtable may hold.
    pub before: SeqNo,
    /// The last allocated number. Writes of the new memtable are above it.
    pub last: SeqNo,
    /// WAL position behind every write numbered so far.
    pub logged_through: LogPosition,
    /// Where replay begins that has the old memtable, if known: no later than the new one's first record, nor than a
    /// prepare that it needs (P1).
    pub replay_from: Option<Position>,
}

impl Staged {
    /// Adds `entries`, youngest first, at the queue's young end. With `next`, they go over the mutable memtable and
    /// under `next`; without it, under the mutable memtable.
    pub fn new(
        family: &mut FamilyState,
        entries: impl Iterator<Item = Arc<dyn Flushable>>,
        next: Option<&Arc<QueuedMemtable>>,
    ) -> Self {
        let _exchanged = family.exchange_view();
        let sealed = next.map(|_| family.mutable.clone() as Arc<dyn Flushable>);
        let queue: Vec<_> = entries.chain(sealed).chain(family.queue.iter().cloned()).collect();
        let mutable = next.unwrap_or(&family.mutable).clone();
        let next = Arc::new(ReadView::new(mutable, queue.clone(), family.version.clone()));
        let handle = Some(Box::new(Arc::downgrade(&next)));
        Staged { queue, present: family.family.view_full(), next, handle, _exchanged }
    }

    /// The mutable memtable after installation.
    pub fn mutable(&self) -> &QueuedMemtable {
        &self.next.mutable
    }

    pub fn keeps_mutable(&self) -> bool {
        Arc::ptr_eq(&self.present.mutable, &self.next.mutable)
    }

    /// Installs the view before a number that needs it is published (V1). If the mutable memtable changes, seals the
    /// old one and directs later writes to the new one. Called under the commit lock. Readers find the view while the
    /// family's state [keeps](Self::follow) it.
    pub fn install(&mut self, family: &Family, boundary: &MemtableBoundary) {
        if !self.keeps_mutable() {
            self.next.mutable.begin_after(boundary.last);
            self.present.mutable.seal_at(boundary.before, boundary.logged_through, boundary.replay_from);
            family.set_mutable(&self.next.mutable);
        }
        if let Some(handle) = self.handle.take() {
            self.present.succeeded_by(handle);
        }
    }

    /// Updates the family's state to the [installed](Self::install) view. Called under the state lock.
    pub fn follow(&mut self, family: &mut FamilyState) {
        family.mutable = self.next.mutable.clone(); // the old view keeps the old memtable
        std::mem::swap(&mut family.queue, &mut self.queue);
        family.install_view(self.next.clone());
    }
}
