//! Prefault of memory ahead of the writers: each family's mutable memtable and its spare, and the current log. The
//! kernel clears a page on first touch, and a huge page takes milliseconds. Upkeep prefaults in small steps, as far
//! ahead as a family is likely to write before the next check.
//!
//! Prefaulted memory not used yet is a *window*. A memtable's window covers the writes of a moment, and is no larger
//! than its used bytes: a small memtable and a slow family take little. Upkeep is asked to check when a quarter of the
//! window is used up ([`MemtablePace::look_after`](crate::log_files::pace::MemtablePace::look_after)).
//! The log's window covers the writes of a moment, and is zero if writers are slow, or with `wal_bytes_per_sync`:
//! prefaulted log pages are dirty, and slow down concurrent syncs, such as those of an ingest's tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::FamilyId;
use memtable::Memtable;

use crate::core::FamilyState;
use crate::log_files::pace::window_bytes;
use crate::queue::memory::Charge;
use crate::rollover::roll::Wal;

/// Steps for each memtable before upkeep turns to its other work.
const STEPS_MAX: usize = 16;

/// A memtable, and the bytes to prefault beyond its reserved ones.
struct Window {
    memtable: Arc<dyn Memtable>,
    charge: Arc<Charge>,
    ahead_bytes: usize,
}

impl Wal {
    /// Prefaults the memory written next: of the log, and of the memtables of families. A background job: run inline, it
    /// would burden the writer.
    pub(crate) fn prefault(&self, looks: &BTreeSet<FamilyId>) {
        if self.core.context.vfs.runs_inline() || self.core.reserve.is_spent() {
            return;
        }
        let windows = self.windows(looks);
        let is_bounded = self.core.context.options_now.load().wal_bytes_per_sync > 0;
        for _ in 0..STEPS_MAX {
            self.core.logs.prefault(&self.log_pace, is_bounded);
            let steps = windows.iter().filter(|window| self.make_step(window)).count();
            if steps == 0 {
                return;
            }
        }
        self.memtables.look_at(looks.iter().copied());
        self.core.upkeep.raise(); // the writers keep up with the prefault
    }

    /// The memtables to prefault now.
    fn windows(&self, looks: &BTreeSet<FamilyId>) -> Vec<Window> {
        let now = self.core.context.vfs.now();
        let state = self.core.state.lock();
        let written = looks.iter().filter_map(|id| state.families.get(id)).filter(|family| family.is_written());
        written
            .flat_map(|family| {
                let pace_bytes = family.mutable.pace().note(family.mutable.used_bytes(), now);
                [Some(Window::of_mutable(family, pace_bytes)), Window::of_spare(family, pace_bytes)]
            })
            .flatten()
            .collect()
    }

    /// Prefaults one step; returns true if the window grew. Prefaulted memory counts as held, so a quarter of the
    /// memtables' limit is left for written data.
    fn make_step(&self, window: &Window) -> bool {
        let Window { memtable, charge, ahead_bytes } = window;
        let memory = &self.core.context.memtables.memory;
        let limit_bytes = memory.limit_bytes();
        let may_hold = |more: usize| charge.try_raise(memtable.memory_bytes() + more, limit_bytes - limit_bytes / 4);
        memtable.prefault(memory.ahead_bytes_max().min(*ahead_bytes), &may_hold)
    }
}

impl Window {
    fn of_mutable(family: &FamilyState, pace_bytes: u64) -> Window {
        let queued = &family.mutable;
        let ahead_bytes = window_bytes(queued.used_bytes(), pace_bytes);
        Window { memtable: queued.memtable().clone(), charge: queued.memtable_charge().clone(), ahead_bytes }
    }

    /// A spare about to become mutable gets the window of a used memtable.
    fn of_spare(family: &FamilyState, pace_bytes: u64) -> Option<Window> {
        let spare = family.spare.as_ref()?;
        let used_bytes = if family.mutable.is_half_full() { usize::MAX } else { 0 };
        let ahead_bytes = window_bytes(used_bytes, pace_bytes);
        Some(Window { memtable: spare.memtable().clone(), charge: spare.memtable_charge().clone(), ahead_bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vfs::{MemoryVfs, RealVfs, Vfs};

    use super::*;
    use crate::internal::{Database, FamilyOptions, OpenOptions, WriteOptions};
    use crate::log_files::pace::{WINDOW_MAX_BYTES, WINDOW_MIN_BYTES, WINDOW_SLOW_BYTES};
    use crate::queue::flushable::QueuedMemtable;

    const BUFFER_BYTES: usize = 16 << 20;

    fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
        let family = FamilyOptions { write_buffer_size: BUFFER_BYTES, ..FamilyOptions::default() };
        OpenOptions { vfs, ..OpenOptions::create_if_missing() }.family("default", family)
    }

    /// Without threads: upkeep is what the test calls.
    fn open(limit_bytes: usize) -> (Arc<MemoryVfs>, Database) {
        let vfs = MemoryVfs::new(1);
        let mut options = options(vfs.clone());
        options.db.db_write_buffer_size = limit_bytes;
        let db = Database::open("/db", &options).expect("a new database");
        vfs.set_runs_inline(false);
        (vfs, db)
    }

    fn mutable(db: &Database) -> Arc<QueuedMemtable> {
        db.default_family().view_full().mutable.clone()
    }

    const MS: Duration = Duration::from_millis(1);

    fn put(db: &Database, i: usize) {
        db.put(&db.default_family(), &i.to_be_bytes(), &[7; 4000], &WriteOptions::default()).expect("put");
    }

    /// Puts of 4 KB until the mutable memtable is another, and looks after each put when upkeep was asked to; `seen` is shown
    /// each memtable that was written to.
    fn fill_one(vfs: &MemoryVfs, db: &Database, each_takes: Duration, mut seen: impl FnMut(&QueuedMemtable)) {
        let first = mutable(db);
        for i in 0.. {
            put(db, i);
            vfs.sleep(each_takes);
            let now = mutable(db);
            if now.id() != first.id() {
                return;
            }
            if db.core().upkeep.take() {
                db.engine().jobs.keep_up();
            }
            seen(&now);
        }
    }

    #[test]
    fn a_memtable_is_present_ahead_of_its_writer_and_never_whole() {
        let (vfs, db) = open(0);
        let empty = mutable(&db);
        db.engine().jobs.keep_up();
        assert!(empty.memtable().memory_bytes() < WINDOW_MIN_BYTES, "nobody writes to it");
        let (mut largest, mut windows_max) = (0, 0);
        fill_one(&vfs, &db, MS / 25, |queued| {
            let (reserved, present) = (queued.memtable().reserved_bytes(), queued.memtable().memory_bytes());
            largest = reserved.max(largest);
            windows_max = windows_max.max(present - reserved.min(present));
            let left = queued.memtable().capacity_bytes().saturating_sub(reserved);
            assert!(present >= reserved + (WINDOW_MIN_BYTES / 4).min(left), "{reserved} reserved, {present} present");
        });
        assert!(largest > BUFFER_BYTES - (1 << 20));
        assert!((WINDOW_MAX_BYTES..=WINDOW_MAX_BYTES + (2 << 20)).contains(&windows_max), "{windows_max}");
        let next = mutable(&db);
        assert!(next.memtable().memory_bytes() >= WINDOW_MAX_BYTES, "it was known that its turn would come");
        assert!(next.memtable().memory_bytes() < WINDOW_MAX_BYTES + (3 << 20), "and no more than that, to a huge page");
        vfs.set_runs_inline(true);
    }

    #[test]
    fn a_slow_family_has_a_small_window() {
        let (vfs, db) = open(0);
        let mut windows_max = 0;
        fill_one(&vfs, &db, MS, |queued| {
            let (reserved, present) = (queued.memtable().reserved_bytes(), queued.memtable().memory_bytes());
            windows_max = windows_max.max(present - reserved.min(present));
        });
        assert!(windows_max < WINDOW_SLOW_BYTES + (2 << 20), "{windows_max}: to a huge page");
        assert!(mutable(&db).memtable().memory_bytes() < WINDOW_SLOW_BYTES + (2 << 20), "the spare's too");
        vfs.set_runs_inline(true);
    }

    #[test]
    fn windows_leave_a_quarter_of_the_limit_to_what_is_written() {
        const LIMIT: usize = 4 << 20;
        let (vfs, db) = open(LIMIT);
        let charged = || db.core().context.memtables.memory.charged_bytes();
        let mut charged_max = 0;
        for i in 0..400 {
            put(&db, i);
            vfs.sleep(MS / 25);
            let before = charged();
            db.engine().wal.prefault(&db.engine().memtables.take_looks());
            assert!(charged() == before || charged() <= LIMIT - LIMIT / 4, "{before} to {}", charged());
            charged_max = charged_max.max(charged());
            let memtable = mutable(&db);
            assert!(memtable.memtable_charge().bytes() >= memtable.memtable().memory_bytes());
        }
        assert!(charged_max > LIMIT / 2, "{charged_max}: there was something to leave");
        vfs.set_runs_inline(true);
    }

    /// Waits for the thread that keeps up, which has nothing else to do; for ever where it does not.
    fn wait_until(holds: impl Fn() -> bool) {
        while !holds() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn after_an_open_the_first_write_has_upkeep_look() {
        let dir = tempfile::tempdir().expect("made");
        for _ in 0..2 {
            let db = Database::open(dir.path().join("db"), &options(RealVfs::new())).expect("opened");
            let queued = mutable(&db);
            put(&db, 1);
            wait_until(|| queued.memtable().memory_bytes() >= WINDOW_MIN_BYTES);
            db.close().expect("closed");
        }
    }

    #[test]
    fn where_background_work_runs_inline_nothing_is_made_present() {
        let (vfs, db) = open(0);
        vfs.set_runs_inline(true);
        put(&db, 1);
        db.engine().wal.prefault(&db.engine().memtables.take_looks());
        let memtable = mutable(&db);
        assert!(memtable.memtable().memory_bytes() < WINDOW_MIN_BYTES);
    }
}
