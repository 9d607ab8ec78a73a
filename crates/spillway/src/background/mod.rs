//! Threads of the process, shared by its databases.
//!
//! An [`Env`] owns a [pool](pool) of threads for each [`Lane`] of work, and a [timer](timer). Threads start when there
//! is work and end after some idle time. A database [registers](registration) with the Env of its options. The Env
//! holds it weakly.
//!
//! - **E1** Fair: a database with work is queued once per lane. A thread does one job for the database at the front;
//!   the database then goes to the back.
//! - **E2** A database runs no more jobs of a lane at once than its own limit, whatever the size of the pool.
//! - **E3** After [`Registration::end`] no thread of the Env does anything for the database.
//! - **E4** A thread inside a listener does not count: another thread may start in its place. So listeners waiting for
//!   a database never block a pool.
//! - **E5** The caller of [parts](parts) works on them itself, so no part waits for a thread.
//! - **E6** Where the system has no thread for a pool that has none, the timer's thread runs its turns.
//!
//! Locks here are leaves, and may be taken under any other lock. Only the timer's lock is held over a signal's.

use std::time::Duration;

use base::Error;

pub(crate) mod caught;
mod env;
mod parts;
mod pool;
mod registration;
pub(crate) mod removal;
mod signal;
pub(crate) mod staging;
pub(crate) mod tasks;
pub(crate) mod throttle;
mod timer;

#[cfg(test)]
mod tests;

pub use env::{Env, EnvOptions};
pub(crate) use parts::{Helpers, run_parts};
pub(crate) use registration::{Limits, Registration, as_away};
pub(crate) use signal::{Signal, StateChanged};
pub use throttle::RateLimiter;
pub(crate) use throttle::{Throttle, Work};

/// A kind of work. Each kind has its own threads, so no kind waits behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Flush,
    Compaction,
    /// Compactions of databases with `compaction_cpu_priority=kLow`: a thread cannot raise its priority again.
    LowCompaction,
    /// Short tasks; see [`crate::background::tasks`].
    Tasks,
    /// Parallel parts of callers' work. Parts of compactions run on compaction threads.
    Parts,
    /// Reads of callers that do not wait.
    Reads,
    Upkeep,
}

/// A value for each lane.
struct PerLane<T> {
    flush: T,
    compaction: T,
    low_compaction: T,
    tasks: T,
    parts: T,
    reads: T,
    upkeep: T,
}

impl<T> PerLane<T> {
    fn new(make: impl Fn(Lane) -> T) -> Self {
        PerLane {
            flush: make(Lane::Flush),
            compaction: make(Lane::Compaction),
            low_compaction: make(Lane::LowCompaction),
            tasks: make(Lane::Tasks),
            parts: make(Lane::Parts),
            reads: make(Lane::Reads),
            upkeep: make(Lane::Upkeep),
        }
    }

    fn get(&self, lane: Lane) -> &T {
        match lane {
            Lane::Flush => &self.flush,
            Lane::Compaction => &self.compaction,
            Lane::LowCompaction => &self.low_compaction,
            Lane::Tasks => &self.tasks,
            Lane::Parts => &self.parts,
            Lane::Reads => &self.reads,
            Lane::Upkeep => &self.upkeep,
        }
    }

    fn get_mut(&mut self, lane: Lane) -> &mut T {
        match lane {
            Lane::Flush => &mut self.flush,
            Lane::Compaction => &mut self.compaction,
            Lane::LowCompaction => &mut self.low_compaction,
            Lane::Tasks => &mut self.tasks,
            Lane::Parts => &mut self.parts,
            Lane::Reads => &mut self.reads,
            Lane::Upkeep => &mut self.upkeep,
        }
    }

    fn all(&self) -> [&T; 7] {
        [&self.flush, &self.compaction, &self.low_compaction, &self.tasks, &self.parts, &self.reads, &self.upkeep]
    }
}

/// A database, as an Env knows it. Called on threads of the Env. Must not panic.
pub(crate) trait Client: Send + Sync {
    /// Does one job of a lane, except `Parts`, `Reads` and `Upkeep`. Calls `found` between picking the job and running it:
    /// another thread then looks for a second job. False if there was no job.
    fn work(&self, lane: Lane, found: &dyn Fn()) -> bool;

    /// A job of the database runs on the timer's thread, since no other can be had (E6).
    fn works_alone(&self, _error: &Error) {}

    /// One turn of upkeep. `is_over`: the time limit returned by the previous turn has expired. Returns the time until
    /// the next turn if nothing raises the signal before; `None` to wait for the signal only.
    fn keep_up(&self, is_over: bool) -> Option<Duration>;
}
