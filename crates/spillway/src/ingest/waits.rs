//! How long writers waited because of ingests: in mode `blocking` and `flush-first` at the gate, in mode `direct` at a
//! latch; and in every mode, briefly, for the commit lock while an ingest has it, for the memtable that follows the one that
//! it took, and behind the ingest's numbers, which are visible once it is in the log.
//!
//! Of a wait the time counts that ingests took meanwhile; of a writer that slept for one, all until it ran again. What a
//! writer waited for other writes, or for a processor while it was awake, is not the ingest's doing.
//!
//! Not counted: the state lock, which a writer takes where it replaces a full memtable, and the ingest that joins the queues
//! a little longer than the commit lock; and all locks of a large batch, which joins the queues as an ingest does.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Result, SeqNo};
use crossbeam_utils::Backoff;
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
    /// Writes, but for large batches, that waited for the commit lock while an ingest had it, for the memtable that follows the
    /// one that it took, or for ingests with smaller numbers to be in the log.
    pub brief_waits: u64,
    /// How long those waited together.
    pub brief_total: Duration,
    /// The longest that one write waited, of either kind: what ingests took of its time, or all until it ran again where it
    /// slept for one.
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
    turns: Turns,
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
    #[inline]
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

/// Of ingests that had the commit lock. Written under it.
#[derive(Default)]
struct Turns {
    /// Odd while an ingest has the lock.
    count: AtomicU64,
    /// How long those had it that have ended.
    total_nanos: AtomicU64,
}

impl Turns {
    /// How many times one began or ended, and how long those took that had ended.
    fn seen(&self) -> (u64, u64) {
        // In this order: one that ends in between is counted with what comes, not left out.
        let total_nanos = self.total_nanos.load(Ordering::Relaxed);
        (self.count(), total_nanos)
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// How much of `wait` they took since `before` was seen: whole turns, though the first may have begun earlier.
    fn share_of(&self, wait: Duration, before: (u64, u64)) -> Duration {
        since(&self.total_nanos, before.1).min(wait)
    }
}

/// To be ended, or dropped, before the commit lock is.
pub(crate) struct LockTurn<'a>(&'a Turns);

impl LockTurn<'_> {
    /// After so long.
    #[inline]
    pub fn end(self, held_for: Duration) {
        self.0.total_nanos.fetch_add(nanos(held_for), Ordering::Relaxed);
    }
}

impl Drop for LockTurn<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::Release);
    }
}

/// From before an ingest takes the commit lock until it is in the log, and visible unless older writes are unfinished.
pub(crate) struct Window(Arc<IngestWaits>);

impl Window {
    /// It was in the log so long after it had taken the lock.
    pub fn close(self, held_up_for: Duration) {
        self.0.windows.total_nanos.fetch_add(nanos(held_up_for), Ordering::Relaxed);
    }
}

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
    /// How long those took that were closed.
    total_nanos: AtomicU64,
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

    /// How much of `wait` windows took, where those before it took `before_nanos`; all of it while one is open.
    fn share_of(&self, wait: Duration, before_nanos: u64) -> Duration {
        let opened = self.opened.load(Ordering::SeqCst);
        let is_open = self.closed.load(Ordering::SeqCst) < opened;
        if is_open { wait } else { since(&self.total_nanos, before_nanos).min(wait) }
    }

    /// Whether the last was opened on that processor, as far as is known.
    fn are_of(&self, processor: Option<usize>) -> bool {
        processor.is_some_and(|own| own == self.processor.load(Ordering::Relaxed))
    }

    /// Returns what `look`, which neither waits nor sleeps, finds when a window was closed; nothing once as many were as are
    /// open or closed now.
    fn sleep_through<R>(&self, look: impl Fn() -> Option<R>) -> Looked<R> {
        let opened = self.opened.load(Ordering::SeqCst);
        let mut sleeping = self.sleeping.lock();
        let mut slept = false;
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let found = look();
            if found.is_some() || self.closed.load(Ordering::SeqCst) >= opened {
                break found;
            }
            slept = true;
            self.one_closed.wait(&mut sleeping);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        Looked { found, slept }
    }
}

impl IngestWaits {
    /// A writer was stopped for so long.
    pub fn count(&self, wait: Duration) {
        self.stops.count(wait);
    }

    /// A writer waited for so long for the commit lock, the next memtable and to be visible; nothing where it did not.
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
    #[inline]
    pub fn turn(&self) -> LockTurn<'_> {
        self.turns.count.fetch_add(1, Ordering::Release);
        LockTurn(&self.turns)
    }

    /// What writers wait for begins: an ingest on that processor is about to take the commit lock. To be closed once it is in
    /// the log, or dropped.
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
        let (turns, now) = (&self.ingest_waits.turns, || self.context.vfs.now());
        let (mut before, mut start) = (turns.seen(), now());
        while before.0 % 2 == 1 {
            let looked = self.look_awake(start, || self.commit.try_lock());
            let wait = now().saturating_sub(start);
            *waited += if looked.slept { wait } else { turns.share_of(wait, before) };
            if let Some(guard) = looked.found {
                return guard;
            }
            (before, start) = (turns.seen(), now());
        }
        let guard = self.commit.lock();
        if turns.count() != before.0 {
            *waited += turns.share_of(now().saturating_sub(start), before);
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

    /// Has the memtable be shown to writers that they need by now, whichever thread was to do that; pauses where there is
    /// nothing to do for it but wait. `waited` grows by what that takes, where it is for an ingest.
    ///
    /// # Errors
    /// `ReadOnly`: it may never be shown.
    #[cold]
    pub(crate) fn show_next_memtable(&self, backoff: &Backoff, waited: &mut Duration) -> Result<()> {
        self.check_writable()?;
        let windows = &self.ingest_waits.windows;
        let (before_nanos, start) = (windows.total_nanos.load(Ordering::Relaxed), self.context.vfs.now());
        if !self.show_for_others() {
            backoff.snooze();
        }
        *waited += windows.share_of(self.context.vfs.now().saturating_sub(start), before_nanos);
        Ok(())
    }

    #[cold]
    fn wait_behind_others(&self, seq: SeqNo, behind: IngestNumbers, waited: &mut Duration) -> Result<()> {
        let IngestNumbers { before, last } = behind;
        if self.pipeline.visible() < last {
            // Others' writes before the ingests are not their doing.
            self.pipeline.wait_visible(before)?;
            let windows = &self.ingest_waits.windows;
            let (before_nanos, start) = (windows.total_nanos.load(Ordering::Relaxed), self.context.vfs.now());
            self.land_for_others(); // its own thread may have lost its processor
            let looked = self.look_awake(start, || (self.pipeline.visible() >= last).then_some(()));
            self.pipeline.wait_visible(last)?;
            let wait = self.context.vfs.now().saturating_sub(start);
            *waited += if looked.slept { wait } else { windows.share_of(wait, before_nanos) };
        }
        self.pipeline.wait_visible(seq)
    }

    /// Looks for a while without giving the processor away, unless it is the ingest's own, and then sleeps until the ingest is
    /// done. An ingest takes some microseconds from its lock to the log; a thread that yields comes back when all others have
    /// had their turns, after milliseconds.
    fn look_awake<R>(&self, start: Duration, look: impl Fn() -> Option<R>) -> Looked<R> {
        let (vfs, windows) = (&self.context.vfs, &self.ingest_waits.windows);
        for _ in 0..CLOCKS_MAX {
            if windows.are_of(vfs.processor()) || vfs.now().saturating_sub(start) > AWAKE {
                break;
            }
            for _ in 0..LOOKS_PER_CLOCK {
                if let found @ Some(_) = look() {
                    return Looked { found, slept: false };
                }
                hint::spin_loop();
            }
        }
        windows.sleep_through(look)
    }
}

/// What a writer found, and whether it slept meanwhile.
#[derive(Debug, PartialEq)]
struct Looked<R> {
    found: Option<R>,
    slept: bool,
}

/// By how much the sum has grown.
fn since(total_nanos: &AtomicU64, before_nanos: u64) -> Duration {
    Duration::from_nanos(total_nanos.load(Ordering::Relaxed).saturating_sub(before_nanos))
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
        assert_eq!(waits.windows.sleep_through(nothing), Looked { found: None, slept: false }); // none is open
        for _ in 0..200 {
            let windows = [waits.open_window(Some(0)), waits.open_window(None)];
            std::thread::scope(|scope| {
                let sleepers: Vec<_> = (0..3).map(|_| scope.spawn(|| waits.windows.sleep_through(nothing))).collect();
                while waits.windows.sleepers.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                windows.into_iter().for_each(drop);
                sleepers.into_iter().for_each(|sleeper| assert_eq!(sleeper.join().expect("woken").found, None));
            });
            assert_eq!(waits.windows.sleepers.load(Ordering::SeqCst), 0);
        }
    }

    #[test]
    fn of_a_wait_for_the_lock_what_ingests_had_it_is_counted() {
        let (waits, of) = (IngestWaits::default(), Duration::from_micros);
        let before = waits.turns.seen();
        assert_eq!(waits.turns.share_of(of(100), before), Duration::ZERO);
        waits.turn().end(of(4));
        let between = waits.turns.seen();
        waits.turn().end(of(3));
        drop(waits.turn()); // it failed
        assert_eq!((before.0, between.0, waits.turns.count()), (0, 2, 6));
        assert_eq!([waits.turns.share_of(of(100), before), waits.turns.share_of(of(100), between)], [of(7), of(3)]);
        assert_eq!(waits.turns.share_of(of(2), before), of(2));
    }

    #[test]
    fn of_a_wait_to_be_visible_what_ingests_took_is_counted() {
        let (waits, of) = (Arc::<IngestWaits>::default(), Duration::from_micros);
        let window = waits.open_window(None);
        assert_eq!(waits.windows.share_of(of(100), 0), of(100), "it is not over");
        window.close(of(40));
        assert_eq!([waits.windows.share_of(of(100), 0), waits.windows.share_of(of(30), 0)], [of(40), of(30)]);
        assert_eq!(waits.windows.share_of(of(100), 40_000), Duration::ZERO, "others' writes");
        drop(waits.open_window(None)); // it failed
        assert_eq!(waits.windows.share_of(of(100), 0), of(40));
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
