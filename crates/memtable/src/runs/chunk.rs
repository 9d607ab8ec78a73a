//! A chunk of the write list: entries in arrival order until first needed sorted, a run from then on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::item::{Entries, Item, Target};
use super::prefix::Base;
use crate::order::KeyOrder;

/// Entries in order.
pub(super) struct Run {
    pub(super) base: Arc<Base>,
    pub(super) items: Box<[Item]>,
}

impl Run {
    /// The first entry not before the target; with `past`, the first behind it.
    pub(super) fn position<O: KeyOrder>(&self, entries: &Entries<O>, target: &Target<'_>, past: bool) -> usize {
        let prefix = self.base.prefix::<O>(target.user_key);
        self.items.partition_point(|item| {
            let order = entries.compare_to(*item, prefix, target);
            order.is_lt() || (past && order.is_eq())
        })
    }

    /// The first entry behind `item`, which may be of any run.
    pub(super) fn position_after<O: KeyOrder>(&self, entries: &Entries<O>, item: Item) -> usize {
        let user_key = entries.record(item).user_key();
        let prefix = self.base.prefix::<O>(user_key);
        let order = |other: &Item| other.prefix.cmp(&prefix).then_with(|| entries.compare_keys(*other, item));
        self.items.partition_point(|other| order(other).is_le())
    }
}

pub(super) struct Chunk {
    /// `Some` until the run is made. Locked only while the run is initialised.
    unsorted: Mutex<Option<Unsorted>>,
    run: OnceLock<(Run, Held)>,
    len: usize,
}

struct Unsorted {
    items: Vec<Item>,
    held: Held,
}

impl Chunk {
    pub(super) fn unsorted(items: Vec<Item>, gauge: &Arc<AtomicUsize>) -> Chunk {
        let len = items.len();
        let held = Held::new(gauge, items.capacity() * size_of::<Item>());
        Chunk { unsorted: Mutex::new(Some(Unsorted { items, held })), run: OnceLock::new(), len }
    }

    pub(super) fn sorted(run: Run, gauge: &Arc<AtomicUsize>) -> Chunk {
        let len = run.items.len();
        let held = Held::new(gauge, len * size_of::<Item>());
        Chunk { unsorted: Mutex::new(None), run: OnceLock::from((run, held)), len }
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The run, if it was made.
    #[inline]
    pub(super) fn run(&self) -> Option<&Run> {
        self.run.get().map(|(run, _)| run)
    }

    /// The run; made now if it does not exist. `sort` puts the entries in order and returns their base. Concurrent
    /// callers wait for it. If a comparator panics in `sort`, the entries stay, in some order, for the next caller.
    pub(super) fn sort_with(&self, sort: impl FnOnce(&mut [Item]) -> Arc<Base>) -> &Run {
        let (run, _) = self.run.get_or_init(|| {
            let mut unsorted = self.unsorted.lock();
            let Unsorted { items, held } = unsorted.as_mut().expect("entries stay until they are a run");
            let base = sort(items);
            let items = std::mem::take(items).into_boxed_slice();
            let held = Held::new(&held.gauge, items.len() * size_of::<Item>());
            *unsorted = None;
            (Run { base, items }, held)
        });
        run
    }
}

/// Bytes counted in a gauge while held: by the memtable, or by a cursor after a merge.
struct Held {
    gauge: Arc<AtomicUsize>,
    bytes: usize,
}

impl Held {
    fn new(gauge: &Arc<AtomicUsize>, bytes: usize) -> Held {
        gauge.fetch_add(bytes, Relaxed);
        Held { gauge: Arc::clone(gauge), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gauge.fetch_sub(self.bytes, Relaxed);
    }
}
