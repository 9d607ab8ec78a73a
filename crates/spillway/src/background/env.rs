//! Public interface to the process's threads: an Env and the sizes of its pools.

use std::sync::{Arc, LazyLock, OnceLock, Weak};
use std::time::Duration;

use base::{Error, Result};
use parking_lot::Mutex;
use vfs::{Origin, RealVfs, Vfs};

use super::parts::Helpers;
use super::pool::{Pool, Started, Turn};
use super::registration::{Limits, Registration};
use super::signal::Signal;
use super::timer::Timer;
use super::{Client, Lane, PerLane};

/// Lower bound of the default size of the flush, compaction and helper pools: otherwise one thread per processor. Jobs
/// wait for disks, so even one processor serves several.
const JOB_THREADS_MIN: usize = 4;

/// Threads for short tasks and for upkeep. Their work is short; more threads would only take processors from writers.
const TASK_THREADS: usize = 4;
const UPKEEP_THREADS: usize = 3;

/// Threads for reads of callers that do not wait: each waits for a disk most of its time.
const READ_THREADS: usize = 16;

/// Idle time after which a thread ends. Long: `malloc` hands the arenas of ended threads to new ones, and a pool's thread that
/// starts between two of the program's keeps an arena full of freed blocks from them.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Where threads of an Env were first used, before any fork.
static FIRST_USE: OnceLock<Origin> = OnceLock::new();

/// Sizes of an Env's pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvOptions {
    /// Flush threads. 0: as many as processors, at least 4.
    pub flush_threads: usize,
    /// Compaction threads. 0: as many as processors, at least 4.
    pub compaction_threads: usize,
}

impl EnvOptions {
    /// Sets the most flush threads; 0 for the default.
    #[must_use]
    pub fn flush_threads(mut self, threads: usize) -> Self {
        self.flush_threads = threads;
        self
    }

    /// Sets the most compaction threads; 0 for the default.
    #[must_use]
    pub fn compaction_threads(mut self, threads: usize) -> Self {
        self.compaction_threads = threads;
        self
    }
}

/// Threads shared by databases: for flushes, for compactions, and a few for upkeep.
///
/// [`Env::default`] is the Env of the process. Clones are the same Env. Threads start when there is work and end when
/// they are idle, so sizes are upper bounds. `max_background_jobs` bounds the jobs of one database; opening a database
/// makes a pool at least that large.
///
/// ```
/// use spillway::{Env, EnvOptions, Options};
///
/// let env = Env::new(EnvOptions::default().flush_threads(2).compaction_threads(2));
/// let options = Options::new().env(env.clone()); // for each database that is to share them
/// env.set_compaction_threads(8);
/// # assert_eq!((env.flush_threads(), env.compaction_threads()), (2, 8));
/// ```
#[derive(Clone)]
pub struct Env(pub(super) Arc<Shared>);

/// Pools and timer of an Env.
pub(super) struct Shared {
    pools: PerLane<Arc<Pool>>,
    pub timer: Arc<Timer>,
}

impl Shared {
    pub fn pool(&self, lane: Lane) -> &Arc<Pool> {
        self.pools.get(lane)
    }

    /// Starts the threads requested by pools, of every pool even after a failure. The worst outcome.
    pub fn start_threads(&self) -> Started {
        self.pools.all().iter().map(|pool| pool.start_threads()).max().unwrap_or(Started::All)
    }
}

impl Default for Env {
    /// The Env of the process.
    fn default() -> Self {
        static PROCESS: LazyLock<Env> = LazyLock::new(|| Env::new(EnvOptions::default()));
        PROCESS.clone()
    }
}

impl Env {
    /// An Env of its own. No thread starts before there is work.
    pub fn new(options: EnvOptions) -> Env {
        Env::with(RealVfs::new(), options, IDLE_MAX)
    }

    /// `vfs` starts the threads.
    pub(super) fn with(vfs: Arc<dyn Vfs>, options: EnvOptions, idle_max: Duration) -> Env {
        let by_processors = std::thread::available_parallelism().map_or(1, usize::from).max(JOB_THREADS_MIN);
        let or_default = |threads: usize| if threads == 0 { by_processors } else { threads };
        let size = |lane: Lane| match lane {
            Lane::Flush => or_default(options.flush_threads),
            Lane::Compaction | Lane::LowCompaction => or_default(options.compaction_threads),
            Lane::Tasks => TASK_THREADS,
            Lane::Parts => by_processors,
            Lane::Reads => READ_THREADS,
            Lane::Upkeep => UPKEEP_THREADS,
        };
        let timer = Timer::new(vfs, idle_max);
        let pools = PerLane::new(|lane| Pool::new(lane, timer.clone(), size(lane)));
        Env(Arc::new(Shared { pools, timer }))
    }

    /// Maximum of concurrent flush threads.
    pub fn flush_threads(&self) -> usize {
        self.0.pool(Lane::Flush).size()
    }

    /// Maximum of concurrent compaction threads.
    pub fn compaction_threads(&self) -> usize {
        self.0.pool(Lane::Compaction).size()
    }

    /// Sets the maximum, at least 1. Surplus threads end after their present job. Opening a database later may raise
    /// the maximum again.
    pub fn set_flush_threads(&self, threads: usize) {
        self.0.pool(Lane::Flush).set_size(threads);
    }

    /// As [`set_flush_threads`](Self::set_flush_threads).
    pub fn set_compaction_threads(&self, threads: usize) {
        self.0.pool(Lane::Compaction).set_size(threads);
        self.0.pool(Lane::LowCompaction).set_size(threads);
    }

    /// Refuses to use threads in a child of a process that used some. The list of waiting threads that locks share is the parent's:
    /// a wait in the child may never end.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn check_process() -> Result<()> {
        match FIRST_USE.get() {
            Some(origin) if !origin.is_here() => Err(Error::unsupported(
                "this process was forked from one that has had a database open for writing, and cannot open one for writing itself",
            )
            .advise("fork before the first open, or start another program (exec)")),
            _ => Ok(()),
        }
    }

    /// Helper threads for parts of a caller's work. Grows the pool to at least `count`.
    pub(crate) fn helpers(&self, count: usize) -> Helpers {
        let pool = self.0.pool(Lane::Parts);
        pool.need(count);
        Helpers::new(pool, count)
    }

    /// Runs a read, which may wait for the disk, on a thread of the Env; on the caller if none can be started.
    #[doc(hidden)]
    pub fn run_read(&self, read: Box<dyn FnOnce() + Send>) {
        let pool = self.0.pool(Lane::Reads);
        let turn = Arc::new(Read(Mutex::new(Some(read))));
        pool.push(turn.clone());
        if pool.start_threads() != Started::All {
            turn.turn(Lane::Reads);
        }
    }

    /// Present number of threads, including the timer's.
    pub fn threads(&self) -> usize {
        let pooled: usize = self.0.pools.all().iter().map(|pool| pool.threads()).sum();
        pooled + self.0.timer.threads()
    }

    /// Lets a database use the threads.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub(crate) fn register(
        &self,
        client: Weak<dyn Client>,
        limits: Limits,
        upkeep: Arc<Signal>,
    ) -> Result<Arc<Registration>> {
        FIRST_USE.get_or_init(Origin::here);
        let registration = Registration::new(self.0.clone(), client, limits, upkeep);
        self.0.timer.begin(&self.0)?;
        self.0.pool(Lane::Flush).need(limits.flushes);
        self.0.pool(limits.compaction_lane).need(limits.compactions);
        Ok(registration)
    }
}

/// A read in the queue of a pool; `None` once it runs.
struct Read(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Turn for Read {
    fn turn(self: Arc<Self>, _: Lane) {
        let read = self.0.lock().take();
        if let Some(read) = read {
            read();
        }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (flush, compaction) = (self.flush_threads(), self.compaction_threads());
        f.debug_struct("Env").field("flush_threads", &flush).field("compaction_threads", &compaction).finish()
    }
}
