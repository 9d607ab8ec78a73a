//! Views that readers keep after the family has gone on: iterators above all. They keep memtables and files that nobody
//! else needs. A reader costs nothing here: a view is noted when it is replaced, and its age counts from then.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::core::holds;
use crate::queue::flushable::Flushable;
use crate::queue::view::ReadView;

/// Age from which a view with much to free is told of in the event log, once.
pub(crate) const TOLD_AFTER: Duration = Duration::from_secs(5 * 60);

/// Bytes kept by a view that are worth a line.
const TOLD_BYTES_MIN: u64 = 16 << 20;

/// The first time to look at any family's kept views, or an earlier one: it stays though the view has gone. A leaf lock.
#[derive(Default)]
pub(crate) struct KeptLook(Mutex<Option<Duration>>);

impl KeptLook {
    pub fn note(&self, at: Duration) {
        let mut look = self.0.lock();
        *look = Some(look.map_or(at, |first| first.min(at)));
    }

    pub fn at(&self) -> Option<Duration> {
        *self.0.lock()
    }

    /// Whether it is time to look. The caller then [notes](Self::note) each family's next time.
    pub fn takes(&self, now: Duration) -> bool {
        self.0.lock().take_if(|at| *at <= now).is_some()
    }
}

/// Replaced views of a family. The lock is a leaf.
#[derive(Default)]
pub(crate) struct KeptViews(Mutex<Vec<KeptView>>);

struct KeptView {
    view: Weak<ReadView>,
    /// By the vfs's clock.
    replaced_at: Duration,
    /// When to look whether the view is worth a line; `None` once it was told.
    look_at: Option<Duration>,
}

/// What the readers of one replaced view keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pinned {
    /// Handles of the view.
    pub readers: usize,
    /// Time since the view was replaced: the readers are older.
    pub age: Duration,
    /// Memtables that have left the family's queue, and their bytes.
    pub memtables: usize,
    pub memtable_bytes: u64,
    /// Tables that have left the family's version, and the bytes of their files.
    pub tables: usize,
    pub table_bytes: u64,
}

impl Pinned {
    fn of(view: &Arc<ReadView>, now: &ReadView, age: Duration) -> Self {
        let readers = Arc::strong_count(view).saturating_sub(1);
        let mut pinned = Pinned { readers, age, memtables: 0, memtable_bytes: 0, tables: 0, table_bytes: 0 };
        let in_memory: Vec<_> = now.flushables().collect();
        let is_gone = |entry: &Arc<dyn Flushable>| entry.charge().is_some() && !holds(&in_memory, entry);
        for entry in view.flushables().filter(is_gone) {
            pinned.memtables += 1;
            pinned.memtable_bytes += entry.memory_bytes() as u64;
        }
        let live: BTreeSet<_> = now.version.all_files().map(|(_, file)| file.number()).collect();
        for (_, file) in view.version.all_files().filter(|(_, file)| !live.contains(&file.number())) {
            pinned.tables += 1;
            pinned.table_bytes += file.meta.file_bytes;
        }
        pinned
    }

    pub fn bytes(&self) -> u64 {
        self.memtable_bytes + self.table_bytes
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pinned { readers, age, memtables, memtable_bytes, tables, table_bytes } = self;
        let seconds = age.as_secs();
        write!(
            f,
            "{readers} readers, older than {seconds} s, {memtables} memtables of {memtable_bytes} bytes, \
             {tables} tables of {table_bytes} bytes"
        )
    }
}

impl KeptViews {
    /// Notes a view replaced now, if a reader may keep it. Returns when to look at it.
    pub fn note(&self, view: &Arc<ReadView>, now: Duration) -> Duration {
        let mut views = self.0.lock();
        views.retain(|kept| kept.view.strong_count() > 0);
        let look_at = now + TOLD_AFTER;
        views.push(KeptView { view: Arc::downgrade(view), replaced_at: now, look_at: Some(look_at) });
        look_at
    }

    /// What readers keep, oldest first. `current`: the family's view.
    pub fn pinned(&self, current: &ReadView, now: Duration) -> Vec<Pinned> {
        let views: Vec<_> =
            self.0.lock().iter().filter_map(|kept| Some((kept.view.upgrade()?, kept.replaced_at))).collect();
        let pinned =
            views.iter().map(|(view, replaced_at)| Pinned::of(view, current, now.saturating_sub(*replaced_at)));
        pinned.filter(|pinned| pinned.memtables + pinned.tables > 0).collect()
    }

    /// When the next view is to be looked at.
    pub fn next_look(&self) -> Option<Duration> {
        self.0.lock().iter().filter(|kept| kept.view.strong_count() > 0).filter_map(|kept| kept.look_at).min()
    }

    /// What is to be told now: of each view once, when it is old and keeps much.
    pub fn to_tell(&self, current: &ReadView, now: Duration) -> Vec<Pinned> {
        let due: Vec<_> = {
            let mut views = self.0.lock();
            let due = views.iter_mut().filter(|kept| kept.look_at.is_some_and(|at| at <= now));
            due.filter_map(|kept| {
                kept.look_at = Some(now + TOLD_AFTER); // it may keep more then
                Some((kept.view.upgrade()?, kept.replaced_at))
            })
            .collect()
        };
        let mut told = Vec::new();
        for (view, replaced_at) in &due {
            let pinned = Pinned::of(view, current, now.saturating_sub(*replaced_at));
            if pinned.bytes() >= TOLD_BYTES_MIN {
                told.push(pinned);
                let mut views = self.0.lock();
                let kept = views.iter_mut().find(|kept| std::ptr::addr_eq(kept.view.as_ptr(), Arc::as_ptr(view)));
                kept.into_iter().for_each(|kept| kept.look_at = None);
            }
        }
        told
    }
}
