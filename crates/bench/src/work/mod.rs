//! The benchmarks, as the work of one thread.

mod fill;
mod point;
mod scan;
pub mod threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::Result;
use vfs::Vfs;

use crate::flags::Flags;
use crate::store::Store;
use crate::tally::Tally;
use crate::workload::{KeyBuffer, Rng, Values};

/// Operations between readings of the clock, if a benchmark runs for a given time.
const OPERATIONS_PER_CLOCK: u64 = 1000;

/// Entries of a batch of `fillbatch`, as in db_bench.
const FILL_BATCH_ENTRIES: u64 = 1000;

/// The work of a benchmark's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    WriteInOrder,
    WriteRandom,
    WriteUntilOver,
    DeleteRandom,
    GetRandom,
    GetHot,
    GetMany,
    GetAndWrite,
    WalkForward,
    WalkBackward,
    Seek,
}

impl Work {
    fn run<S: Store>(self, thread: &mut Thread<'_, '_, S>) -> Result<()> {
        match self {
            Work::WriteInOrder => fill::in_order(thread),
            Work::WriteRandom => fill::random(thread),
            Work::WriteUntilOver => fill::until_over(thread),
            Work::DeleteRandom => fill::deletes(thread),
            Work::GetRandom => point::random(thread),
            Work::GetHot => point::hot(thread),
            Work::GetMany => point::many(thread),
            Work::GetAndWrite => point::mixed(thread),
            Work::WalkForward => scan::forward(thread),
            Work::WalkBackward => scan::backward(thread),
            Work::Seek => scan::seeks(thread),
        }
    }
}

/// A benchmark by its name.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    /// Starts from an empty database.
    pub fresh: bool,
    /// Changes flags for this benchmark alone.
    pub adjust: fn(&mut Flags),
    pub work: Work,
    /// A writer runs beside the threads until they end.
    pub beside_a_writer: bool,
}

pub const BENCHMARKS: &[Benchmark] = &[
    fresh("fillseq", "writes num values in the order of their keys", Work::WriteInOrder),
    fresh("fillrandom", "writes num values under random keys", Work::WriteRandom),
    Benchmark {
        adjust: |flags| {
            flags.writes = i64::try_from(flags.writes_per_thread()).unwrap_or(i64::MAX);
            flags.num = (flags.num / 1000).max(1);
            flags.sync = true;
        },
        ..fresh("fillsync", "writes under num/1000 random keys, each write synced", Work::WriteRandom)
    },
    Benchmark {
        adjust: |flags| flags.batch_size = FILL_BATCH_ENTRIES,
        ..fresh("fillbatch", "writes num values in the order of their keys, 1000 a batch", Work::WriteInOrder)
    },
    filled("overwrite", "writes num values under random keys of the existing database", Work::WriteRandom),
    filled("deleterandom", "deletes random keys, batch_size at a time", Work::DeleteRandom),
    filled("readrandom", "looks up random keys", Work::GetRandom),
    Benchmark {
        adjust: |flags| flags.key_size += 1,
        ..filled("readmissing", "looks up missing keys", Work::GetRandom)
    },
    filled("readhot", "looks up random keys of the first hundredth", Work::GetHot),
    filled("multireadrandom", "looks up random keys, batch_size at a time", Work::GetMany),
    Benchmark {
        beside_a_writer: true,
        ..filled("readwhilewriting", "looks up random keys beside a writer", Work::GetRandom)
    },
    filled("readrandomwriterandom", "looks up and writes random keys in turns", Work::GetAndWrite),
    filled("readseq", "steps through the database from its first key", Work::WalkForward),
    filled("readreverse", "steps through the database from its last key", Work::WalkBackward),
    filled("seekrandom", "seeks random keys, then takes seek_nexts steps", Work::Seek),
    Benchmark {
        beside_a_writer: true,
        ..filled("seekrandomwhilewriting", "seeks random keys beside a writer", Work::Seek)
    },
];

/// On an empty database.
const fn fresh(name: &'static str, about: &'static str, work: Work) -> Benchmark {
    Benchmark { fresh: true, ..filled(name, about, work) }
}

/// On the existing database.
const fn filled(name: &'static str, about: &'static str, work: Work) -> Benchmark {
    Benchmark { name, about, fresh: false, adjust: |_| {}, work, beside_a_writer: false }
}

/// Shared by the threads of a benchmark.
pub struct Ground<'a> {
    pub flags: &'a Flags,
    pub vfs: &'a dyn Vfs,
}

/// A benchmark's thread.
pub struct Thread<'t, 'a, S: Store> {
    pub ground: &'t Ground<'a>,
    pub store: &'t S,
    pub rng: Rng,
    pub values: Values,
    pub tally: Tally<'a>,
    /// Set when all threads have ended; a writer beside them stops then.
    pub over: &'t AtomicBool,
}

impl<S: Store> Thread<'_, '_, S> {
    fn key_buffer(&self) -> KeyBuffer {
        KeyBuffer::new(self.ground.flags.key_size)
    }

    /// How long the thread runs: for `--duration` if given, else for so many operations.
    fn extent(&self, operations: u64) -> Extent {
        let duration = self.ground.flags.duration;
        let until = (duration > 0).then(|| self.ground.vfs.now() + Duration::from_secs(duration));
        Extent { left: operations, until, to_clock: OPERATIONS_PER_CLOCK }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The operations, or the time, left to a thread.
struct Extent {
    left: u64,
    until: Option<Duration>,
    to_clock: u64,
}

impl Extent {
    /// Takes `wanted` operations; returns how many of them may be done, 0 at the end.
    #[inline]
    fn take(&mut self, wanted: u64, vfs: &dyn Vfs) -> u64 {
        if let Some(until) = self.until {
            self.to_clock = self.to_clock.saturating_sub(wanted);
            if self.to_clock > 0 {
                return wanted;
            }
            self.to_clock = OPERATIONS_PER_CLOCK;
            return if vfs.now() < until { wanted } else { 0 };
        }
        let taken = wanted.min(self.left);
        self.left -= taken;
        taken
    }
}
