//! How long writers waited because of ingests: in mode `blocking` and `flush-first` at the gate, in mode `direct` at a
//! latch; and in every mode, briefly, for the commit lock while an ingest has it, and behind the ingest's numbers, which are
//! visible once it is in the log.
//!
//! Not counted: the state lock, which a writer takes where it replaces a full memtable, and the ingest that joins the queues
//! a little longer than the commit lock; and all locks of a large batch, which joins the queues as an ingest does.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Result, SeqNo};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::core::{CommitState, Core};
use crate::write::given::Given;

/// Longer than an ingest takes that a writer took the processor from for its own turn: 50 microseconds. Who sleeps instead
/// comes back that much later, on another processor at times.
const AWAKE: Duration = Duration::from_micros(100);

/// Looks between two at the clock: a pause takes 5 to 50 nanoseconds, by processor.
const LOOKS_PER_CLOCK: u32 = 32;

/// Also where the clock stands still.
const CLOCKS_MAX: u32 = 1000;

/// What writers waited for ingests, since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestWaitReport {
    /// Writes that an ingest stopped: at a latch or the gate.
    pub waits: u64,
    /// How long those waited together.
    pub total: Duration,
    /// Writes, but for large batches, that waited for the commit lock while an ingest had it, or for ingests with smaller
    /// numbers to be visible. Where there are several of those, others' writes between them are waited for as well.
    pub brief_waits: u64,
    /// How long those waited together.
    pub brief_total: Duration,
    /// The longest that one write waited, of either kind.
    pub longest: Duration,
    /// The longest that one could have waited briefly: from when an ingest took the commit lock until it was in the log.
    pub longest_window: Duration,
}

/// The counters behind it.
#[derive(Default)]
pub(crate) struct IngestWaits {
    stops: Waits,
    brief: Waits,
    longest_window_nanos: AtomicU64,
    /// Odd while an ingest has the commit lock. Written under it.
    lock_turns: AtomicU64,
    windows: Windows,
}

/// Ingests that took numbers: later writes become visible behind them. Of those that are visible already nothing is
/// waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IngestNumbers {
    /// The last number before the oldest that was not visible when the newest took its own.
    before: SeqNo,
    /// The newest's last.
    last: SeqNo,
}

impl IngestNumbers {
    /// Another took some. Under the commit lock.
    pub fn note(&mut self, given: &Given, visible: SeqNo) {
        if self.last <= visible {
            self.before = given.before;
        }
        self.last = given.last;
    }
}

#[derive(Default)]
struct Waits {
    count: AtomicU64,
    total_nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl Waits {
    fn count(&self, wait: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_nanos.fetch_add(nanos(wait), Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos(wait), Ordering::Relaxed);
    }
}

/// To be dropped before the commit lock is.
pub(crate) struct LockTurn<'a>(&'a AtomicU64);

impl Drop for LockTurn<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// From before an ingest takes the commit lock until its numbers are visible.
pub(crate) struct Window(Arc<IngestWaits>);

impl Drop for Window {
    fn drop(&mut self) {
        self.0.windows.close();
    }
}

/// The windows of all ingests. Writers that took an ingest's processor from it sleep through its window: to look would
/// keep it from going on, and who yields instead gives up more of the processor than that.
#[derive(Default)]
struct Windows {
    opened: AtomicU64,
    closed: AtomicU64,
    /// Where the ingest ran that opened the last one; `NOWHERE` where that is not known.
    processor: AtomicUsize,
    sleepers: AtomicUsize,
    /// A leaf lock.
    sleeping: Mutex<()>,
    one_closed: Condvar,
}

const NOWHERE: usize = usize::MAX;

impl Windows {
    fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
        // Who sleeps counted itself before it looked at what is closed.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _sleeping = self.sleeping.lock();
            self.one_closed.notify_all();
        }
    }

    /// Whether the last was opened on that processor, as far as is known.
    fn are_of(&self, processor: Option<usize>) -> bool {
        processor.is_some_and(|own| own == self.processor.load(Ordering::Relaxed))
    }

    /// Returns what `look`, which neither waits nor sleeps, finds when a window was closed; `None` once as many were as are
    /// open or closed now.
    fn sleep_through<R>(&self, look: impl Fn() -> Option<R>) -> Option<R> {
        let opened = self.opened.load(Ordering::SeqCst);
        let mut sleeping = self.sleeping.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let found = look();
            if found.is_some() || self.closed.load(Ordering::SeqCst) >= opened {
                break found;
            }
            self.one_closed.wait(&mut sleeping);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

impl IngestWaits {
    /// A writer was stopped for so long.
    pub fn count(&self, wait: Duration) {
        self.stops.count(wait);
    }

    /// A writer waited for so long for the commit lock and to be visible; nothing where it did not.
    #[inline]
    pub fn count_brief(&self, wait: Duration) {
        if !wait.is_zero() {
            self.brief.count(wait);
        }
    }

    /// Writers may have waited as long as that behind one ingest, and no longer.
    pub fn bound(&self, window: Duration) {
        self.longest_window_nanos.fetch_max(nanos(window), Ordering::Relaxed);
    }

    /// An ingest has the commit lock, as long as what is returned lives.
    pub fn turn(&self) -> LockTurn<'_> {
        self.lock_turns.fetch_add(1, Ordering::Release);
        LockTurn(&self.lock_turns)
    }

    /// What writers wait for begins: an ingest on that processor is about to take the commit lock. To be dropped once its
    /// numbers are visible.
    pub fn open_window(self: &Arc<Self>, processor: Option<usize>) -> Window {
        self.windows.processor.store(processor.unwrap_or(NOWHERE), Ordering::Relaxed);
        self.windows.opened.fetch_add(1, Ordering::SeqCst);
        Window(self.clone())
    }

    pub fn report(&self) -> IngestWaitReport {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |counter: &AtomicU64| Duration::from_nanos(load(counter));
        IngestWaitReport {
            waits: load(&self.stops.count),
            total: time(&self.stops.total_nanos),
            brief_waits: load(&self.brief.count),
            brief_total: time(&self.brief.total_nanos),
            longest: time(&self.stops.longest_nanos).max(time(&self.brief.longest_nanos)),
            longest_window: time(&self.longest_window_nanos),
        }
    }
}

impl Core {
    /// Takes the commit lock for a write; `waited` grows by what that took where an ingest had it meanwhile.
    #[inline]
    pub(crate) fn lock_commit(&self, waited: &mut Duration) -> MutexGuard<'_, CommitState> {
        self.commit.try_lock().unwrap_or_else(|| self.wait_for_commit_lock(waited))
    }

    #[cold]
    fn wait_for_commit_lock(&self, waited: &mut Duration) -> MutexGuard<'_, CommitState> {
        let turns = || self.ingest_waits.lock_turns.load(Ordering::Acquire);
        let (turn, start) = (turns(), self.context.vfs.now());
        let awake = (turn % 2 == 1).then(|| self.look_awake(start, || self.commit.try_lock())).flatten();
        let guard = awake.unwrap_or_else(|| self.commit.lock());
        if turn % 2 == 1 || turns() != turn {
            *waited += self.context.vfs.now().saturating_sub(start);
        }
        guard
    }

    /// Waits until everything up to `seq`, which a write has, is visible; `waited` grows by what of that ingests took, those
    /// that it is behind.
    ///
    /// # Errors
    /// As [`Pipeline::wait_visible`](crate::write::pipeline::Pipeline::wait_visible).
    #[inline]
    pub(crate) fn wait_written(&self, seq: SeqNo, behind: IngestNumbers, waited: &mut Duration) -> Result<()> {
        if self.pipeline.visible() >= seq { Ok(()) } else { self.wait_behind_others(seq, behind, waited) }
    }

    #[cold]
    fn wait_behind_others(&self, seq: SeqNo, behind: IngestNumbers, waited: &mut Duration) -> Result<()> {
        let IngestNumbers { before, last } = behind;
        if self.pipeline.visible() < last {
            // Others' writes before the ingests are not their doing.
            self.pipeline.wait_visible(before)?;
            let start = self.context.vfs.now();
            self.look_awake(start, || (self.pipeline.visible() >= last).then_some(()));
            self.pipeline.wait_visible(last)?;
            *waited += self.context.vfs.now().saturating_sub(start);
        }
        self.pipeline.wait_visible(seq)
    }

    /// Looks for a while without giving the processor away, unless it is the ingest's own, and then sleeps until the ingest is
    /// done. An ingest takes some microseconds from its lock to the log; a thread that yields comes back when all others have
    /// had their turns, after milliseconds.
    fn look_awake<R>(&self, start: Duration, look: impl Fn() -> Option<R>) -> Option<R> {
        let (vfs, windows) = (&self.context.vfs, &self.ingest_waits.windows);
        for _ in 0..CLOCKS_MAX {
            if windows.are_of(vfs.processor()) || vfs.now().saturating_sub(start) > AWAKE {
                break;
            }
            for _ in 0..LOOKS_PER_CLOCK {
                if let found @ Some(_) = look() {
                    return found;
                }
                hint::spin_loop();
            }
        }
        windows.sleep_through(look)
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use vfs::MemoryVfs;

    use super::*;
    use crate::{Db, OpenOptions, WriteOptions};

    #[test]
    fn who_sleeps_is_woken_once_the_windows_that_were_open_are_closed() {
        let waits = Arc::<IngestWaits>::default();
        let nothing = || None::<()>;
        assert_eq!(waits.windows.sleep_through(nothing), None); // none is open
        for _ in 0..200 {
            let windows = [waits.open_window(Some(0)), waits.open_window(None)];
            std::thread::scope(|scope| {
                let sleepers: Vec<_> = (0..3).map(|_| scope.spawn(|| waits.windows.sleep_through(nothing))).collect();
                while waits.windows.sleepers.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                windows.into_iter().for_each(drop);
                sleepers.into_iter().for_each(|sleeper| assert_eq!(sleeper.join().expect("woken"), None));
            });
            assert_eq!(waits.windows.sleepers.load(Ordering::SeqCst), 0);
        }
    }

    /// Who sleeps for an ingest goes on when it is visible, whatever later ingests are about.
    #[test]
    fn a_writer_does_not_sleep_for_an_ingest_with_larger_numbers() {
        let vfs = MemoryVfs::new(1);
        vfs.set_runs_inline(false);
        let db = Db::open("/db", &OpenOptions { vfs, ..OpenOptions::create_if_missing() }).expect("a new database");
        let core = db.core();
        let later = core.ingest_waits.open_window(None);
        let ours = core.ingest_waits.open_window(None);
        let ticket = {
            let mut commit = core.commit.lock();
            let before = commit.last_seq;
            let given = Given { before, last: SeqNo(before.0 + 1), log_end: 0 };
            commit.last_seq = given.last;
            commit.ingests.note(&given, core.pipeline.visible());
            core.pipeline.enter(given.last, 0, &[])
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let db = &db;
            scope.spawn(move || sender.send(db.put(&db.default_family(), b"key", b"value", &WriteOptions::default())));
            while core.ingest_waits.windows.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            core.pipeline.finish(ticket);
            drop(ours);
            let written = receiver.recv_timeout(Duration::from_secs(20));
            drop(later); // before it is found out: the thread is waited for in any case
            written.expect("the later ingest is nothing to it").expect("written");
        });
    }
}
