//! Paced deletion of obsolete files, so WAL syncs do not queue behind it at the disk.
//!
//! On a file system mounted with `discard`, deleting 4 MB blocks the disk for 7 ms, 64 MB for 100 ms, and five small
//! files in a row for 5 ms. While the throttle limits deletions, a file is unlinked at once and its space is released
//! in steps.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};
use vfs::{Remains, Vfs};

use crate::background::{Throttle, Work};

/// Blocks the disk for about a millisecond; half as much blocks it for two thirds of a millisecond.
const STEP_BYTES: u64 = 512 << 10;

/// Pending space is at most the free space divided by this, so pacing does not fill the disk.
const FREE_PER_WAITING: u64 = 8;

/// Maximum of pending files: each holds an open file.
const FILES_MAX: usize = 64;

/// Unlinked files, oldest first. A leaf lock, not held while space is released.
pub struct Removals {
    vfs: Arc<dyn Vfs>,
    throttle: Arc<Throttle>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    files: VecDeque<Box<dyn Remains>>,
    next_step: Duration,
}

impl Removals {
    pub fn new(vfs: Arc<dyn Vfs>, throttle: Arc<Throttle>) -> Self {
        Removals { vfs, throttle, waiting: Mutex::default() }
    }

    /// Adds a file. Returns files to drop: all files if their bytes exceed the share of the free space, else the oldest
    /// beyond `FILES_MAX`.
    fn add(&self, file: Box<dyn Remains>, free_bytes: Option<u64>) -> VecDeque<Box<dyn Remains>> {
        let mut waiting = self.waiting.lock();
        waiting.files.push_back(file);
        let bytes: u64 = waiting.files.iter().map(|file| file.bytes()).sum();
        if free_bytes.is_some_and(|free| bytes > free / FREE_PER_WAITING) {
            return std::mem::take(&mut waiting.files);
        }
        let too_many = waiting.files.len().saturating_sub(FILES_MAX);
        waiting.files.drain(..too_many).collect()
    }

    /// Time until the next step; `None` if no file is pending.
    pub fn until_next(&self, now: Duration) -> Option<Duration> {
        let waiting = self.waiting.lock();
        (!waiting.files.is_empty()).then(|| waiting.next_step.saturating_sub(now))
    }

    /// Files whose space is still to be released, and that space in bytes.
    pub fn pending(&self) -> (usize, u64) {
        let waiting = self.waiting.lock();
        (waiting.files.len(), waiting.files.iter().map(|file| file.bytes()).sum())
    }

    /// Runs all due steps. `charge` returns the wait after a step of so many bytes.
    fn step(&self, clock: &dyn Fn() -> Duration, charge: &dyn Fn(u64) -> Option<Duration>) {
        let mut waiting = self.waiting.lock();
        while clock() >= waiting.next_step {
            let Some(mut file) = waiting.files.pop_front() else { return };
            let bytes = file.bytes().min(STEP_BYTES);
            let left = MutexGuard::unlocked(&mut waiting, || file.cut(STEP_BYTES).then_some(file));
            left.into_iter().for_each(|file| waiting.files.push_front(file));
            if let Some(wait) = charge(bytes) {
                waiting.next_step = clock() + wait;
            }
        }
    }

    /// Releases all space at once. False if there was none.
    fn give_back(&self) -> bool {
        let files = std::mem::take(&mut self.waiting.lock().files);
        !files.is_empty()
    }
}

impl Removals {
    /// Deletes an obsolete file. Its space may be released later.
    pub(crate) fn remove_obsolete(&self, path: &Path) -> Result<()> {
        if !self.throttle.limits(Work::Deletion) {
            return self.vfs.remove_file(path);
        }
        if let Some(file) = self.vfs.remove_in_steps(path)? {
            let free_bytes = path.parent().and_then(|dir| self.vfs.free_bytes(dir));
            drop(self.add(file, free_bytes));
        }
        Ok(())
    }

    /// Releases the space left by [`remove_obsolete`](Self::remove_obsolete), as far as the throttle permits.
    pub(crate) fn give_back_space(&self) {
        self.step(&|| self.vfs.now(), &|bytes| self.throttle.charge(Work::Deletion, bytes));
    }

    /// Calls `make`. After `NoSpace` it releases all pending space, and if there was any, retries once.
    ///
    /// # Errors
    /// Errors of `make`.
    pub(crate) fn with_all_space<T>(&self, make: impl Fn() -> Result<T>) -> Result<T> {
        match make() {
            Err(error) if error.kind() == ErrorKind::NoSpace && self.give_back() => make(),
            made => made,
        }
    }

    /// Called after a background error, for lack of space, and on close.
    pub(crate) fn give_back_all_space(&self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use base::{Error, FileNumber};
    use vfs::{IfExists, MemoryVfs, Vfs};

    use super::*;
    use crate::background::RateLimiter;
    use crate::internal::{Database, OpenOptions, ReadOptions, WriteOptions};
    use crate::version::file_name::FileType;
    use crate::version::purge::ObsoleteFile;

    /// A file, and what is left of all.
    struct File {
        bytes: u64,
        world: Arc<World>,
    }

    #[derive(Default)]
    struct World {
        now_us: AtomicU64,
        left: AtomicU64,
    }

    impl World {
        fn now(&self) -> Duration {
            Duration::from_micros(self.now_us.load(Ordering::Relaxed))
        }

        fn pass(&self, time: Duration) {
            self.now_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        }

        fn file(self: &Arc<Self>, bytes: u64) -> Box<dyn Remains> {
            self.left.fetch_add(bytes, Ordering::Relaxed);
            Box::new(File { bytes, world: self.clone() })
        }

        fn left(&self) -> u64 {
            self.left.load(Ordering::Relaxed)
        }
    }

    impl Remains for File {
        fn bytes(&self) -> u64 {
            self.bytes
        }

        fn cut(&mut self, bytes: u64) -> bool {
            let cut = bytes.min(self.bytes);
            self.bytes -= cut;
            self.world.left.fetch_sub(cut, Ordering::Relaxed);
            self.bytes > 0
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            self.world.left.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }

    fn removals() -> Removals {
        let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
        Removals::new(vfs.clone(), Throttle::new(vfs.clone(), None, RateLimiter::with(vfs, 0)))
    }

    /// What is to be waited after each step.
    const WAIT: Duration = Duration::from_millis(20);

    #[test]
    fn space_is_given_back_in_steps_that_are_charged() {
        let (removals, world, charged) = (removals(), Arc::<World>::default(), AtomicU64::new(0));
        let charge = |bytes| {
            charged.fetch_add(bytes, Ordering::Relaxed);
            Some(WAIT)
        };
        let step = || removals.step(&|| world.now(), &charge);
        assert_eq!(removals.until_next(world.now()), None);
        assert!(removals.add(world.file(2 * STEP_BYTES + 7), None).is_empty());
        assert!(removals.add(world.file(2 * STEP_BYTES), None).is_empty());
        assert_eq!(removals.until_next(world.now()), Some(Duration::ZERO));
        assert_eq!(removals.pending(), (2, 4 * STEP_BYTES + 7));
        for left in [3 * STEP_BYTES + 7, 2 * STEP_BYTES + 7, 2 * STEP_BYTES] {
            step();
            assert_eq!((world.left(), removals.until_next(world.now())), (left, Some(WAIT)));
            step();
            assert_eq!(world.left(), left, "it waits");
            world.pass(WAIT);
        }
        assert_eq!(charged.load(Ordering::Relaxed), 2 * STEP_BYTES + 7);
        assert!(removals.give_back());
        assert_eq!((world.left(), removals.until_next(world.now())), (0, None));
        assert!(!removals.give_back(), "who found no space need not look again");
    }

    #[test]
    fn what_is_not_charged_goes_at_once() {
        let (removals, world) = (removals(), Arc::<World>::default());
        removals.add(world.file(100 * STEP_BYTES), None);
        removals.add(world.file(1), None);
        removals.step(&|| world.now(), &|_| None);
        assert_eq!(world.left(), 0);
    }

    #[test]
    fn many_files_are_not_kept() {
        let (removals, world) = (removals(), Arc::<World>::default());
        (0..FILES_MAX).for_each(|_| assert!(removals.add(world.file(1), None).is_empty()));
        drop(removals.add(world.file(1), None));
        assert_eq!(world.left(), FILES_MAX as u64, "the oldest went");
    }

    #[test]
    fn where_little_space_is_free_nothing_waits() {
        let (removals, world) = (removals(), Arc::<World>::default());
        let add = |bytes| drop(removals.add(world.file(bytes), Some(FREE_PER_WAITING * 100)));
        add(60);
        add(40);
        assert_eq!(world.left(), 100);
        add(1);
        assert_eq!((world.left(), removals.until_next(world.now())), (0, None));
    }

    /// Space that comes back once this goes.
    struct Held(Arc<MemoryVfs>);

    impl Remains for Held {
        fn bytes(&self) -> u64 {
            1
        }

        fn cut(&mut self, _: u64) -> bool {
            true
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set_capacity(None);
        }
    }

    fn open(vfs: &Arc<MemoryVfs>) -> Database {
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.log_file_bytes = 64 << 10;
        options.db.large_batch_bytes = 4096;
        Database::open("/db", &options).expect("opened")
    }

    /// From now on the disk is full.
    fn fill(vfs: &MemoryVfs) {
        let bytes = |path: &PathBuf| vfs.metadata(path).expect("there").len;
        vfs.set_capacity(Some(vfs.all_files().iter().map(bytes).sum()));
    }

    #[test]
    fn a_log_that_finds_no_space_takes_what_waits() {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs);
        db.put(&db.default_family(), b"first", b"", &WriteOptions::default()).expect("written");
        fill(&vfs);
        let (core, before) = (db.core(), vfs.all_files());
        let full = core.commit.lock().log.clone().expect("one is current");
        let rest = full.file.capacity() as usize - 200; // with its header more than is left
        let error = db.engine().wal.roll_log(Some(&full), rest as u64).expect_err("nothing waits");
        assert_eq!((error.kind(), vfs.all_files()), (ErrorKind::NoSpace, before));
        assert!(core.background_error().is_none(), "who has no next log can try again");
        assert!(core.removals.add(Box::new(Held(vfs.clone())), None).is_empty());
        db.engine().wal.roll_log(Some(&full), rest as u64).expect("made at the second try");
        db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).expect("written");
        drop(db);
        let found = open(&vfs);
        let found = found.get(&found.default_family(), b"key", &ReadOptions::default()).expect("readable");
        assert_eq!(found.as_deref(), Some(b"value".as_slice()));
    }

    /// On a full disk, with space that waits and without.
    fn check_takes_what_waits(step: impl Fn(&Database) -> Result<()>) {
        for waits in [false, true] {
            let vfs = MemoryVfs::new(1);
            let db = open(&vfs);
            let key = |n: u32| n.wrapping_mul(0x9e37_79b9).to_be_bytes();
            for n in 0..1000 {
                db.put(&db.default_family(), &key(n), &key(n + 1), &WriteOptions::default()).expect("written");
            }
            fill(&vfs);
            if waits {
                assert!(db.core().removals.add(Box::new(Held(vfs.clone())), None).is_empty());
            }
            let done = step(&db).map_err(|error| error.kind());
            assert_eq!(done, if waits { Ok(()) } else { Err(ErrorKind::NoSpace) });
        }
    }

    #[test]
    fn the_log_of_a_large_batch_takes_what_waits() {
        check_takes_what_waits(|db| db.put(&db.default_family(), b"key", &[7; 20 << 10], &WriteOptions::default()));
    }

    #[test]
    fn a_flush_takes_what_waits() {
        check_takes_what_waits(|db| db.flush(&[&db.default_family()]));
    }

    /// The names of files whose last pin went while nothing could be written go as well.
    #[test]
    fn who_fails_for_want_of_space_deletes_what_is_obsolete() {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs);
        vfs.set_runs_inline(false);
        let path = db.core().path_of(FileType::Table, FileNumber(900));
        for (kind, is_there) in [(ErrorKind::Io, true), (ErrorKind::NoSpace, false)] {
            vfs.create(&path, IfExists::Truncate).expect("created");
            db.core().purge.push(ObsoleteFile { file_type: FileType::Table, path_id: 0, number: FileNumber(900) });
            db.core().fail(&Error::new(kind, "as if"));
            db.engine().jobs.keep_up();
            assert_eq!(vfs.metadata(&path).is_ok(), is_there, "{kind:?}");
            db.resume().expect("nothing is broken");
        }
    }
}
