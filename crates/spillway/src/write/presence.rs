//! Memory made present ahead of the writers: of each family's mutable memtable and its spare, and of the current log. The
//! kernel clears a page for whoever touches it first, and of a huge one that takes milliseconds: upkeep does it, in small
//! steps, as far ahead as a family's writes are likely to go before it looks again.
//!
//! What is present and not used yet is a *window*: as large as what was written, within bounds, so that a memtable which
//! holds little takes little. Whenever a quarter of it is used up, upkeep is asked to look ([`look_after`]).

use std::sync::Arc;

use memtable::Memtable;

use crate::core::{Core, FamilyState};
use crate::write::memory::Charge;

/// Of a memtable that holds next to nothing: sixteen pages.
const WINDOW_MIN_BYTES: usize = 64 << 10;

/// Two huge pages: what writers take in the time between two looks, at a hundred megabytes a second several times over.
const WINDOW_MAX_BYTES: usize = 4 << 20;

/// Of a log that holds next to nothing.
const LOG_WINDOW_MIN_BYTES: u64 = 256 << 10;

/// Of the log. Not more: the kernel takes what is present for written, and the next sync writes it.
pub(crate) const LOG_WINDOW_MAX_BYTES: u64 = 4 << 20;

/// Steps for each memtable before the rest of upkeep has its turn.
const STEPS_MAX: usize = 16;

/// How far ahead of what is reserved a memtable is to be present that `used_bytes` were written to.
fn window_bytes(used_bytes: usize) -> usize {
    used_bytes.clamp(WINDOW_MIN_BYTES, WINDOW_MAX_BYTES)
}

/// After how many more bytes upkeep is to look again at a memtable that `used_bytes` were written to.
pub(crate) fn look_after(used_bytes: usize) -> usize {
    window_bytes(used_bytes) / 4
}

/// A memtable, and how far it is to be present.
struct Window {
    memtable: Arc<dyn Memtable>,
    charge: Arc<Charge>,
    ahead_bytes: usize,
}

impl Core {
    /// Makes present what is written next. A background job: where it ran inline, a writer would do it.
    pub(crate) fn keep_present(&self) {
        if self.context.vfs.runs_inline() {
            return;
        }
        let windows = self.windows();
        for _ in 0..STEPS_MAX {
            self.logs.keep_present(|used_bytes| used_bytes.clamp(LOG_WINDOW_MIN_BYTES, LOG_WINDOW_MAX_BYTES));
            let steps = windows.iter().filter(|window| self.make_step(window)).count();
            if steps == 0 {
                return;
            }
        }
        self.upkeep.raise(); // the writers are as fast
    }

    /// What upkeep is to make present, as things are.
    fn windows(&self) -> Vec<Window> {
        let state = self.state.lock();
        let written = state.families.values().filter(|family| family.is_written());
        written.flat_map(|family| [Some(of_mutable(family)), of_spare(family)]).flatten().collect()
    }

    /// True where that brought the window nearer to what it is to be. All of it counts as held from then on: only while that
    /// leaves a part of the limit on memtables for what is written.
    fn make_step(&self, window: &Window) -> bool {
        let Window { memtable, charge, ahead_bytes } = window;
        let limit_bytes = self.context.memtables.memory.limit_bytes();
        let may_hold = |more: usize| charge.try_raise(memtable.memory_bytes() + more, limit_bytes - limit_bytes / 4);
        memtable.make_present(*ahead_bytes, &may_hold)
    }
}

fn of_mutable(family: &FamilyState) -> Window {
    let (queued, ahead_bytes) = (&family.mutable, window_bytes(family.mutable.used_bytes()));
    Window { memtable: queued.memtable().clone(), charge: queued.memtable_charge().clone(), ahead_bytes }
}

/// A spare whose turn comes soon is as ready as it will have to be then.
fn of_spare(family: &FamilyState) -> Option<Window> {
    let spare = family.spare.as_ref()?;
    let ahead_bytes = if family.mutable.is_half_full() { WINDOW_MAX_BYTES } else { WINDOW_MIN_BYTES };
    Some(Window { memtable: spare.memtable().clone(), charge: spare.charge().clone(), ahead_bytes })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use vfs::{MemoryVfs, RealVfs, Vfs};

    use super::*;
    use crate::flush::flushable::QueuedMemtable;
    use crate::{Db, FamilyOptions, OpenOptions, WriteOptions};

    const BUFFER_BYTES: usize = 16 << 20;

    fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
        let family = FamilyOptions { write_buffer_size: BUFFER_BYTES, ..FamilyOptions::default() };
        OpenOptions { vfs, ..OpenOptions::create_if_missing() }.family("default", family)
    }

    /// Without threads: upkeep is what the test calls.
    fn open(limit_bytes: usize) -> (Arc<MemoryVfs>, Db) {
        let vfs = MemoryVfs::new(1);
        let mut options = options(vfs.clone());
        options.db.db_write_buffer_size = limit_bytes;
        let db = Db::open("/db", &options).expect("a new database");
        vfs.set_runs_inline(false);
        (vfs, db)
    }

    fn mutable(db: &Db) -> Arc<QueuedMemtable> {
        db.default_family().view_full().mutable.clone()
    }

    fn put(db: &Db, i: usize) {
        db.put(&db.default_family(), &i.to_be_bytes(), &[7; 4000], &WriteOptions::default()).expect("put");
    }

    /// Puts until the mutable memtable is another, and looks after each put when upkeep was asked to; `seen` is shown each
    /// memtable that was written to.
    fn fill_one(db: &Db, mut seen: impl FnMut(&QueuedMemtable)) {
        let first = mutable(db);
        for i in 0.. {
            put(db, i);
            let now = mutable(db);
            if now.id() != first.id() {
                return;
            }
            if db.core().upkeep.wait(Some(Duration::ZERO)) {
                db.core().keep_up();
            }
            seen(&now);
        }
    }

    #[test]
    fn a_memtable_is_present_ahead_of_its_writer_and_never_whole() {
        let (vfs, db) = open(0);
        let empty = mutable(&db);
        db.core().keep_up();
        assert!(empty.memtable().memory_bytes() < WINDOW_MIN_BYTES, "nobody writes to it");
        let (mut largest, mut windows_max) = (0, 0);
        fill_one(&db, |queued| {
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
    fn windows_leave_a_quarter_of_the_limit_to_what_is_written() {
        const LIMIT: usize = 4 << 20;
        let (vfs, db) = open(LIMIT);
        let charged = || db.core().context.memtables.memory.charged_bytes();
        let mut charged_max = 0;
        for i in 0..400 {
            put(&db, i);
            let before = charged();
            db.core().keep_present();
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

    /// Bytes of mapped logs in a folder that take no fault, as the kernel tells; `None` where there are none.
    #[expect(clippy::disallowed_methods, reason = "what the kernel says of this process")]
    fn present_log_bytes(dir: &Path) -> Option<u64> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("told");
        let mut lines = smaps.lines();
        let is_log = |line: &str| line.ends_with(".splog") && dir.to_str().is_some_and(|dir| line.contains(dir));
        lines.find(|line| is_log(line))?;
        let kib = lines.find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).map(|kib| kib << 10)
    }

    #[test]
    fn after_an_open_the_log_is_present_and_with_the_first_write_the_memtable() {
        let dir = tempfile::tempdir().expect("made");
        for _ in 0..2 {
            let db = Db::open(dir.path().join("db"), &options(RealVfs::new())).expect("opened");
            wait_until(|| present_log_bytes(dir.path()).is_none_or(|bytes| bytes >= LOG_WINDOW_MIN_BYTES));
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
        db.core().keep_present();
        let memtable = mutable(&db);
        assert!(memtable.memtable().memory_bytes() < WINDOW_MIN_BYTES);
    }
}
