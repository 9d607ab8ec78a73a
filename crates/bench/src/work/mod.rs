//! The benchmarks: what one thread of each does.

mod fill;
mod point;
mod scan;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::Result;
use spillway::{Db, Family, ReadOptions, WriteOptions};
use vfs::Vfs;

use crate::flags::Flags;
use crate::tally::Tally;
use crate::workload::{KeyBuffer, Rng, Values};

/// Operations between looks at the clock where a benchmark runs for a given time.
const OPERATIONS_PER_CLOCK: u64 = 1000;

/// A benchmark by its name.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    /// Starts from an empty database.
    pub fresh: bool,
    /// Changes what the flags say for this benchmark alone.
    pub adjust: fn(&mut Flags),
    pub body: fn(&mut Thread<'_, '_>) -> Result<()>,
    /// A writer that runs beside the threads until they end.
    pub beside: Option<fn(&mut Thread<'_, '_>) -> Result<()>>,
}

const NO_CHANGE: fn(&mut Flags) = |_| {};

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "fillseq",
        about: "writes num values in the order of their keys",
        fresh: true,
        adjust: NO_CHANGE,
        body: fill::in_order,
        beside: None,
    },
    Benchmark {
        name: "fillrandom",
        about: "writes num values under random keys",
        fresh: true,
        adjust: NO_CHANGE,
        body: fill::random,
        beside: None,
    },
    Benchmark {
        name: "fillsync",
        about: "writes under num/1000 random keys, each write synced",
        fresh: true,
        adjust: |flags| {
            flags.writes = i64::try_from(flags.writes_per_thread()).unwrap_or(i64::MAX);
            flags.num = (flags.num / 1000).max(1);
            flags.sync = true;
        },
        body: fill::random,
        beside: None,
    },
    Benchmark {
        name: "overwrite",
        about: "writes num values under random keys of a database that has them",
        fresh: false,
        adjust: NO_CHANGE,
        body: fill::random,
        beside: None,
    },
    Benchmark {
        name: "readrandom",
        about: "looks up random keys",
        fresh: false,
        adjust: NO_CHANGE,
        body: point::random,
        beside: None,
    },
    Benchmark {
        name: "readmissing",
        about: "looks up keys that are not there",
        fresh: false,
        adjust: |flags| flags.key_size += 1,
        body: point::random,
        beside: None,
    },
    Benchmark {
        name: "multireadrandom",
        about: "looks up random keys, batch_size at a time",
        fresh: false,
        adjust: NO_CHANGE,
        body: point::many,
        beside: None,
    },
    Benchmark {
        name: "readwhilewriting",
        about: "looks up random keys beside a writer",
        fresh: false,
        adjust: NO_CHANGE,
        body: point::random,
        beside: Some(fill::until_over),
    },
    Benchmark {
        name: "readrandomwriterandom",
        about: "looks up and writes random keys in turns",
        fresh: false,
        adjust: NO_CHANGE,
        body: point::mixed,
        beside: None,
    },
    Benchmark {
        name: "readseq",
        about: "steps through the database from its first key",
        fresh: false,
        adjust: NO_CHANGE,
        body: scan::forward,
        beside: None,
    },
    Benchmark {
        name: "readreverse",
        about: "steps through the database from its last key",
        fresh: false,
        adjust: NO_CHANGE,
        body: scan::backward,
        beside: None,
    },
    Benchmark {
        name: "seekrandom",
        about: "seeks random keys, then takes seek_nexts steps",
        fresh: false,
        adjust: NO_CHANGE,
        body: scan::seeks,
        beside: None,
    },
    Benchmark {
        name: "seekrandomwhilewriting",
        about: "seeks random keys beside a writer",
        fresh: false,
        adjust: NO_CHANGE,
        body: scan::seeks,
        beside: Some(fill::until_over),
    },
];

/// What the threads of a benchmark share.
pub struct Ground<'a> {
    pub flags: &'a Flags,
    /// The memtable's option string.
    pub memtable: &'a str,
    pub vfs: &'a dyn Vfs,
    pub reads: ReadOptions,
    pub writes: WriteOptions,
}

impl<'a> Ground<'a> {
    pub fn new(flags: &'a Flags, memtable: &'a str, vfs: &'a dyn Vfs) -> Self {
        Ground {
            flags,
            memtable,
            vfs,
            reads: ReadOptions { verify_checksums: flags.verify_checksum, ..ReadOptions::default() },
            writes: WriteOptions { sync: flags.sync, disable_wal: flags.disable_wal, ..WriteOptions::default() },
        }
    }
}

/// A benchmark's thread.
pub struct Thread<'t, 'a> {
    pub ground: &'t Ground<'a>,
    pub db: &'t Db,
    pub family: &'t Arc<Family>,
    pub rng: Rng,
    pub values: Values,
    pub tally: Tally<'a>,
    /// Set when the threads that a writer runs beside have ended.
    pub over: &'t AtomicBool,
}

impl Thread<'_, '_> {
    fn key_buffer(&self) -> KeyBuffer {
        KeyBuffer::new(self.ground.flags.key_size)
    }

    /// How long the thread goes on: for `--duration` where that is given, else for so many operations.
    fn extent(&self, operations: u64) -> Extent {
        let duration = self.ground.flags.duration;
        let until = (duration > 0).then(|| self.ground.vfs.now() + Duration::from_secs(duration));
        Extent { left: operations, until, to_clock: OPERATIONS_PER_CLOCK }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Operations, or time, that a thread has left.
struct Extent {
    left: u64,
    until: Option<Duration>,
    to_clock: u64,
}

impl Extent {
    /// Takes `wanted` operations; answers how many of them may be done, 0 at the end.
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
