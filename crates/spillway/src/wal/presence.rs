//! Prefault of memory ahead of the writers: each family's mutable memtable and its spare, and the current log. The
//! kernel clears a page on first touch, and a huge page takes milliseconds. Upkeep prefaults in small steps, as far
//! ahead as a family is likely to write before the next check.
//!
//! Prefaulted memory not used yet is a *window*. A memtable's window covers the writes of a moment, and is no larger
//! than its used bytes: a small memtable and a slow family take little. Upkeep is asked to check when a quarter of the
//! window is used up ([`MemtablePace::look_after`]).
//! The log's window covers the writes of a moment, and is zero if writers are slow, or with `wal_bytes_per_sync`:
//! prefaulted log pages are dirty, and slow down concurrent syncs, such as those of an ingest's tables.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::FamilyId;
use memtable::Memtable;
use parking_lot::Mutex;

use crate::commit::pipeline::LogPosition;
use crate::core::FamilyState;
use crate::queue::memory::Charge;
use crate::wal::roll::Wal;

/// Window of a nearly empty memtable: sixteen pages.
const WINDOW_MIN_BYTES: usize = 64 << 10;

/// Window of slow families. Smaller ones would wake upkeep more often than every 256 KiB.
const WINDOW_SLOW_BYTES: usize = 1 << 20;

/// Two huge pages: several times the bytes written between two checks at 100 MB/s.
const WINDOW_MAX_BYTES: usize = 4 << 20;

/// Smallest window of the log, used up in [`WINDOW_TIME`] at 25 MB/s. Slower writers get none.
const LOG_WINDOW_MIN_BYTES: u64 = 1 << 20;

/// Largest window of the log. The kernel treats prefaulted log pages as written, and the next sync writes them.
const LOG_WINDOW_MAX_BYTES: u64 = 4 << 20;

/// Writing time covered by a window.
const WINDOW_TIME: Duration = Duration::from_millis(40);

/// Consecutive checks with fast growth before the log gets a window: about twice the time of a window.
const FAST_LOOKS_MIN: u32 = 8;

/// Shortest interval for measuring growth.
const PACE_MIN: Duration = Duration::from_millis(5);

/// Steps for each memtable before upkeep turns to its other work.
const STEPS_MAX: usize = 16;

/// Bytes to prefault beyond the reserved ones, for a memtable with `used_bytes` written, which grows by `pace_bytes` in
/// [`WINDOW_TIME`].
fn window_bytes(used_bytes: usize, pace_bytes: u64) -> usize {
    let pace_bytes = usize::try_from(pace_bytes).unwrap_or(usize::MAX);
    used_bytes.clamp(WINDOW_MIN_BYTES, pace_bytes.clamp(WINDOW_SLOW_BYTES, WINDOW_MAX_BYTES))
}

/// Growth rate of a memtable or log, between checks.
#[derive(Clone, Copy, Default)]
struct Pace {
    end: u64,
    at: Duration,
    /// Growth expected in [`WINDOW_TIME`].
    bytes: u64,
}

impl Pace {
    /// Notes `end` at `now`. False if the last check is too recent to tell.
    fn note(&mut self, end: u64, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at);
        if passed < PACE_MIN {
            return false;
        }
        let grown = u128::from(end.saturating_sub(self.end));
        let expected = grown * WINDOW_TIME.as_micros() / passed.as_micros();
        *self = Pace { end, at: now, bytes: u64::try_from(expected).unwrap_or(u64::MAX) };
        true
    }
}

/// Growth rate of a memtable. A leaf lock.
#[derive(Default)]
pub(crate) struct MemtablePace(Mutex<Pace>);

impl MemtablePace {
    /// Bytes until upkeep is to check a memtable with `used_bytes` again.
    pub fn look_after(&self, used_bytes: usize) -> usize {
        window_bytes(used_bytes, self.0.lock().bytes) / 4
    }

    /// Notes `used_bytes` at `now`. Returns the bytes expected in [`WINDOW_TIME`].
    fn note(&self, used_bytes: usize, now: Duration) -> u64 {
        let mut pace = self.0.lock();
        pace.note(used_bytes as u64, now);
        pace.bytes
    }
}

/// Growth rate of the log between checks. A leaf lock.
#[derive(Default)]
pub(crate) struct LogPace(Mutex<Seen>);

#[derive(Clone, Copy, Default)]
struct Seen {
    pace: Pace,
    /// Consecutive checks with fast growth.
    fast_looks: u32,
    window_bytes: u64,
}

impl LogPace {
    /// Bytes prefaulted at the last check.
    pub fn last_window_bytes(&self) -> u64 {
        self.0.lock().window_bytes
    }

    /// Bytes to prefault beyond `end`, the log's end at `now`. Zero until growth was fast for some checks: after a
    /// burst the next sync would write unused pages. Prefault thus adds at most half to the bytes written.
    pub fn window_bytes(&self, end: LogPosition, now: Duration) -> u64 {
        let mut seen = self.0.lock();
        if seen.pace.note(end, now) {
            let window_bytes = seen.pace.bytes.min(LOG_WINDOW_MAX_BYTES);
            let is_fast = window_bytes >= LOG_WINDOW_MIN_BYTES;
            seen.fast_looks = if is_fast { seen.fast_looks.saturating_add(1) } else { 0 };
            seen.window_bytes = if seen.fast_looks >= FAST_LOOKS_MIN { window_bytes } else { 0 };
        }
        seen.window_bytes
    }
}

/// A memtable, and the bytes to prefault beyond its reserved ones.
struct Window {
    memtable: Arc<dyn Memtable>,
    charge: Arc<Charge>,
    ahead_bytes: usize,
}

impl Wal {
    /// Prefaults the memory written next: of the log, and of the memtables of families. A background job: run inline, it
    /// would burden the writer.
    pub(crate) fn keep_present(&self, looks: &BTreeSet<FamilyId>) {
        if self.core.context.vfs.runs_inline() || self.core.reserve.is_spent() {
            return;
        }
        let windows = self.windows(looks);
        let is_bounded = self.core.context.options_now.load().wal_bytes_per_sync > 0;
        for _ in 0..STEPS_MAX {
            self.core.logs.keep_present(&self.log_pace, is_bounded);
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
        memtable.make_present(memory.ahead_bytes_max().min(*ahead_bytes), &may_hold)
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

    use vfs::{MemoryVfs, RealVfs, Vfs};

    use super::*;
    use crate::internal::{Database, FamilyOptions, OpenOptions, WriteOptions};
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
            db.engine().wal.keep_present(&db.engine().memtables.take_looks());
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
    fn the_logs_window_is_what_writers_take_in_a_moment_and_none_where_they_are_slow() {
        let pace = LogPace::default();
        let (mut end, mut now) = (0, 1000 * MS);
        let mut look = |grown: u64, after: Duration| {
            (end, now) = (end + grown, now + after);
            pace.window_bytes(end, now)
        };
        assert_eq!(look(100 << 10, 10 * MS), 0, "of the first second, and of ten megabytes a second");
        for _ in 1..FAST_LOOKS_MIN {
            assert_eq!(look(512 << 10, 10 * MS), 0, "a burst, as far as so few looks can tell");
        }
        assert_eq!(look(512 << 10, 10 * MS), 2 << 20);
        assert_eq!(look(64 << 10, MS), 2 << 20, "too soon to tell");
        assert_eq!(look(8 << 20, 10 * MS), LOG_WINDOW_MAX_BYTES);
        assert_eq!(look(u64::MAX / 2, 10 * MS), LOG_WINDOW_MAX_BYTES);
        assert_eq!(look(200 << 10, 10 * MS), 0);
        assert_eq!(look(8 << 20, 10 * MS), 0, "another burst");
    }

    #[test]
    fn where_background_work_runs_inline_nothing_is_made_present() {
        let (vfs, db) = open(0);
        vfs.set_runs_inline(true);
        put(&db, 1);
        db.engine().wal.keep_present(&db.engine().memtables.take_looks());
        let memtable = mutable(&db);
        assert!(memtable.memtable().memory_bytes() < WINDOW_MIN_BYTES);
    }
}
