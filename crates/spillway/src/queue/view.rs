//! Read views: everything a family consists of at one instant (V1).

use std::sync::{Arc, Weak};

use base::SeqNo;
use once_cell::race::OnceBox;

use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::ingest::QueuedIngest;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// A family at one instant; immutable. A change of queue or version installs a new view, by an exchange or as the
/// successor of the present view. Both come *before* any sequence number that needs the new view is published.
pub struct ReadView {
    /// The young end of the queue. Writes go here.
    pub mutable: Arc<QueuedMemtable>,
    /// The rest of the queue, youngest first.
    pub queue: Vec<Arc<dyn Flushable>>,
    pub version: Arc<Version>,
    /// The view shows the family as of this number or a larger one only; 0 on a primary.
    readable_from: SeqNo,
    /// The next view, installed by one store; see
    /// [`FamilyState::install_view`](crate::core::FamilyState::install_view). Weak: a long-lived reader keeps no
    /// younger view alive.
    successor: OnceBox<Weak<ReadView>>,
}

impl ReadView {
    pub fn new(mutable: Arc<QueuedMemtable>, queue: Vec<Arc<dyn Flushable>>, version: Arc<Version>) -> Self {
        ReadView { mutable, queue, version, readable_from: SeqNo::ZERO, successor: OnceBox::new() }
    }

    /// Has readers wait until `seq` is visible.
    #[must_use]
    pub fn shown_from(self, seq: SeqNo) -> Self {
        ReadView { readable_from: seq, ..self }
    }

    /// Whether the view can be read at `seq`.
    #[inline]
    pub fn is_readable_at(&self, seq: SeqNo) -> bool {
        self.readable_from <= seq
    }

    /// The view installed to follow this one. If it is gone, the family's own view has been exchanged since.
    #[inline]
    pub fn successor(&self) -> Option<&Weak<ReadView>> {
        self.successor.get()
    }

    /// Sends readers of this view on to `next`, by one store.
    pub(crate) fn succeeded_by(&self, next: Box<Weak<ReadView>>) {
        assert!(self.successor.set(next).is_ok(), "a view has one successor");
    }

    /// Everything read before the version's tables, youngest first (Q1).
    pub fn flushables(&self) -> impl Iterator<Item = Arc<dyn Flushable>> + '_ {
        let mutable: Arc<dyn Flushable> = self.mutable.clone();
        std::iter::once(mutable).chain(self.queue.iter().cloned())
    }

    /// Ingested tables without a level yet.
    pub fn queued_tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.queue.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files)
    }

    /// Seconds since the oldest queued ingest arrived, by the wall clock; 0 if there is none.
    pub fn oldest_ingest_s(&self, now_us: u64) -> u64 {
        let ingests = self.queue.iter().filter_map(|entry| entry.as_ingest());
        ingests.map(|ingest| ingest.queued_for_us(now_us)).max().unwrap_or(0) / 1_000_000
    }

    /// The version's tables and the queued ones.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.version.all_files().map(|(_, file)| file).chain(self.queued_tables())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use base::SeqNo;
    use vfs::MemoryVfs;

    use super::*;
    use crate::core::{Core, FamilyState};
    use crate::internal::{Database, FamilyOptions, OpenOptions};
    use crate::memtables::staged::{MemtableBoundary, Staged};

    fn open() -> Database {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let family = FamilyOptions { write_buffer_size: 64 << 10, ..FamilyOptions::default() };
        Database::open("/db", &options.family("default", family)).expect("opened")
    }

    /// Installs a view with a memtable made at `n`, as the successor.
    fn install(core: &Core, db: &Database, n: u64) {
        let made = db.default_family().create_memtable(0).expect("made");
        let next = core.context.queue_memtable(made);
        let mut state = core.state.lock();
        let family = state.families.get_mut(&db.default_family().id()).expect("there");
        install_in(family, Some(&next), n);
        family.queue.clear(); // as if flushed
    }

    fn install_in(family: &mut FamilyState, next: Option<&Arc<QueuedMemtable>>, n: u64) {
        let (before, last) = (SeqNo(n), SeqNo(n));
        let mut staged = Staged::new(family, std::iter::empty(), next);
        staged.install(&family.family, &MemtableBoundary { before, last, logged_through: 0, replay_from: None });
        staged.follow(family);
    }

    fn settle(core: &Core, db: &Database) {
        let mut state = core.state.lock();
        drop(state.families.get_mut(&db.default_family().id()).expect("there").exchange_view());
    }

    fn publish(core: &Core, db: &Database) {
        let mut state = core.state.lock();
        drop(state.families.get_mut(&db.default_family().id()).expect("there").publish_view());
    }

    /// V1 for every way to install: a successor that is exchanged, one exchanged by the next, and one replaced by
    /// another view.
    #[test]
    fn who_sees_a_number_sees_the_view_that_it_needs() {
        const COUNT: u64 = 1499; // the last one is not settled
        let (db, published) = (open(), AtomicU64::new(0));
        let (core, family) = (db.core(), db.default_family());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < COUNT {
                        seen = published.load(Ordering::Acquire);
                        assert!(family.view().mutable.created_at() >= SeqNo(seen));
                        assert!(family.view_full().mutable.created_at() >= SeqNo(seen));
                    }
                });
            }
            for n in 1..=COUNT {
                install(core, &db, n);
                published.store(n, Ordering::Release);
                match n % 3 {
                    0 => settle(core, &db),
                    1 => publish(core, &db),
                    _ => {}
                }
            }
        });
    }

    #[test]
    fn who_reads_for_long_keeps_nothing_that_is_younger() {
        let db = open();
        let (core, family) = (db.core(), db.default_family());
        let old = family.view_full();
        install(core, &db, 1);
        let younger: Weak<QueuedMemtable> = Arc::downgrade(&family.view().mutable);
        assert!(!std::ptr::addr_eq(younger.as_ptr(), Arc::as_ptr(&old.mutable)), "found before it is settled");
        install(core, &db, 2);
        settle(core, &db);
        publish(core, &db); // as after a flush
        assert!(younger.upgrade().is_none());
        assert_eq!(family.view().mutable.created_at(), SeqNo(2));
        assert!(old.successor().is_some_and(|next| next.upgrade().is_none()));
    }

    #[test]
    fn a_family_that_is_dropped_before_it_is_settled_can_still_be_looked_at() {
        let db = open();
        let family = db.create_family("other", FamilyOptions::default()).expect("made");
        let core = db.core();
        let before = family.view_full();
        let mut state = core.state.lock();
        install_in(state.families.get_mut(&family.id()).expect("there"), None, 0);
        let dropped = state.families.remove(&family.id());
        drop(state);
        assert!(!Arc::ptr_eq(&before, &family.view()));
        drop(dropped);
        assert!(Arc::ptr_eq(&before, &family.view()));
    }
}
