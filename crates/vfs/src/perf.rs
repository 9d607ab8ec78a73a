//! Costs of one thread's calls: RocksDB's perf context. A thread's own reads and writes add to its own counters.
//! Background jobs run on other threads, whose counters nobody reads.
//!
//! Counts are always added, so no place asks for the level first: a thread that wants none sees those of before. Such
//! places are met once for each operation, block, filter or run of hidden entries, never for each entry or comparison,
//! and each pays for the address of the thread's counters: a call, in a shared library.
//! Times are measured from a level on that the thread sets. Until some thread of the process has set it, a place that
//! measures pays one load of a shared flag, and a branch for each metric it has.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Levels by RocksDB's numbers; those above `TIMES` measure time of the processor too. RocksDB's versions number the
/// levels above counts differently: of two meanings the one that measures more is taken.
pub const DISABLED: u8 = 1;
/// Counts and bytes. A thread's level until it sets another.
const COUNTS: u8 = 2;
/// And times by the clock, with two readings of it for each.
const TIMES: u8 = 3;
/// And times of the processor: two calls of the system for each.
const PROCESSOR_TIMES: u8 = 4;

macro_rules! metrics {
    ($( $metric:ident = $name:literal ),+ $(,)?) => {
        /// What is counted, by RocksDB's names. Times are nanoseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are RocksDB's")]
        pub enum Metric { $( $metric ),+ }

        impl Metric {
            /// Every metric.
            pub const ALL: &[Metric] = &[$( Metric::$metric ),+];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self { $( Metric::$metric => $name ),+ }
            }
        }
    };
}

metrics! {
    BlockCacheHitCount = "block_cache_hit_count",
    BlockCacheIndexHitCount = "block_cache_index_hit_count",
    BlockCacheFilterHitCount = "block_cache_filter_hit_count",
    BlockReadCount = "block_read_count",
    BlockReadByte = "block_read_byte",
    BlockReadTime = "block_read_time",
    BlockReadCpuTime = "block_read_cpu_time",
    BlockChecksumTime = "block_checksum_time",
    BlockDecompressTime = "block_decompress_time",
    GetReadBytes = "get_read_bytes",
    InternalKeySkippedCount = "internal_key_skipped_count",
    InternalDeleteSkippedCount = "internal_delete_skipped_count",
    GetFromMemtableTime = "get_from_memtable_time",
    GetFromMemtableCount = "get_from_memtable_count",
    GetPostProcessTime = "get_post_process_time",
    GetFromOutputFilesTime = "get_from_output_files_time",
    WriteWalTime = "write_wal_time",
    WriteMemtableTime = "write_memtable_time",
    BloomSstHitCount = "bloom_sst_hit_count",
    BloomSstMissCount = "bloom_sst_miss_count",
    GetCpuNanos = "get_cpu_nanos",
}

/// Set once a thread of the process has asked for times.
static ANY_TIMED: AtomicBool = AtomicBool::new(false);

type Totals = [Cell<u64>; Metric::ALL.len()];

thread_local! {
    static LEVEL: Cell<u8> = const { Cell::new(COUNTS) };
    static TOTALS: Totals = const { [const { Cell::new(0) }; Metric::ALL.len()] };
    /// The totals at the time when the thread's level went below counts. They are what it sees until it counts again.
    static SEEN: Totals = const { [const { Cell::new(0) }; Metric::ALL.len()] };
}

/// Sets this thread's level, by RocksDB's number.
pub fn set_level(level: u8) {
    if level >= TIMES {
        ANY_TIMED.store(true, Relaxed);
    }
    let copy = |from: &Totals, to: &Totals| from.iter().zip(to).for_each(|(from, to)| to.set(from.get()));
    match (LEVEL.replace(level) >= COUNTS, level >= COUNTS) {
        (true, false) => TOTALS.with(|totals| SEEN.with(|seen| copy(totals, seen))),
        (false, true) => TOTALS.with(|totals| SEEN.with(|seen| copy(seen, totals))),
        _ => {}
    }
}

/// This thread's level, as it was set.
pub fn level() -> u8 {
    LEVEL.get()
}

/// This thread's total.
pub fn total(metric: Metric) -> u64 {
    let seen = if level() >= COUNTS { &TOTALS } else { &SEEN };
    seen.with(|totals| totals.get(metric as usize).map_or(0, Cell::get))
}

/// Sets this thread's counters to zero.
pub fn reset() {
    for totals in [&TOTALS, &SEEN] {
        totals.with(|totals| totals.iter().for_each(|total| total.set(0)));
    }
}

/// Adds to counts of this thread. Several in one call: the counters' address is asked for once.
#[inline]
pub fn count<const N: usize>(counts: [(Metric, u64); N]) {
    TOTALS.with(|totals| {
        for (metric, amount) in counts {
            if let Some(total) = totals.get(metric as usize) {
                total.set(total.get().wrapping_add(amount));
            }
        }
    });
}

/// Apart, or the address of the level would be asked for before the branch: a call, in a shared library.
#[cold]
#[inline(never)]
fn level_of_thread() -> u8 {
    LEVEL.get()
}

/// The times that are measured now, asked once for a whole operation.
#[derive(Clone, Copy, Debug)]
pub struct Timing(u8);

impl Timing {
    /// Of this thread.
    #[inline]
    pub fn of_thread() -> Timing {
        if ANY_TIMED.load(Relaxed) { Timing(level_of_thread()) } else { Timing(COUNTS) }
    }

    /// Whether any time is measured.
    #[inline]
    pub fn is_on(self) -> bool {
        self.0 >= TIMES
    }

    /// Runs what a metric measures by the clock.
    #[inline]
    pub fn time<R>(self, metric: Metric, run: impl FnOnce() -> R) -> R {
        self.measured(TIMES, clock_ns, metric, run)
    }

    /// Runs what a metric measures by the processor's time for this thread. 0 where the system does not tell it.
    #[inline]
    pub fn processor_time<R>(self, metric: Metric, run: impl FnOnce() -> R) -> R {
        self.measured(PROCESSOR_TIMES, processor_ns, metric, run)
    }

    #[inline]
    fn measured<R>(self, from: u8, now: fn() -> u64, metric: Metric, run: impl FnOnce() -> R) -> R {
        let start = (self.0 >= from).then(now);
        let result = run();
        if let Some(start) = start {
            count([(metric, now().saturating_sub(start))]);
        }
        result
    }
}

/// Not [`Vfs::now`](crate::Vfs::now): the clock of one that is simulated stands still, and a table has none.
#[cold]
#[allow(clippy::disallowed_methods, reason = "this is where the clock is called")]
fn clock_ns() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

#[cfg(unix)]
#[cold]
fn processor_ns() -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec` through the pointer, which is to one.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } == 0;
    if told { time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64 } else { 0 }
}

#[cfg(not(unix))]
#[cold]
fn processor_ns() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that a clock of nanoseconds sees.
    fn work() -> u64 {
        std::hint::black_box((0..10_000u64).fold(0, |sum, number| sum ^ std::hint::black_box(number)))
    }

    fn measure_all() -> [u64; 3] {
        let timing = Timing::of_thread();
        count([(Metric::BlockReadCount, 2)]);
        timing.time(Metric::BlockReadTime, || timing.processor_time(Metric::BlockReadCpuTime, work));
        [Metric::BlockReadCount, Metric::BlockReadTime, Metric::BlockReadCpuTime].map(total)
    }

    #[test]
    fn a_level_measures_what_those_below_do() {
        assert_eq!((level(), measure_all()), (COUNTS, [2, 0, 0]));
        set_level(TIMES);
        let [counted, time, processor_time] = measure_all();
        assert!(counted == 4 && time > 0 && processor_time == 0, "{counted} {time} {processor_time}");
        for level in PROCESSOR_TIMES..8 {
            reset();
            set_level(level);
            let [counted, time, processor_time] = measure_all();
            assert!(counted == 2 && time > 0 && (processor_time > 0 || cfg!(not(unix))), "{level}: {time}");
        }
    }

    #[test]
    fn a_thread_without_counts_sees_those_of_before() {
        measure_all();
        for level in [DISABLED, 0] {
            set_level(level);
            assert_eq!(measure_all(), [2, 0, 0]);
        }
        set_level(COUNTS);
        assert_eq!(measure_all(), [4, 0, 0], "what was done without counts is not among them");
        set_level(DISABLED);
        reset();
        assert_eq!(measure_all(), [0; 3]);
        set_level(COUNTS);
        assert_eq!(measure_all(), [2, 0, 0]);
    }

    #[test]
    fn threads_do_not_share_counts() {
        measure_all();
        let others = std::thread::scope(|scope| scope.spawn(|| (level(), measure_all())).join()).ok();
        assert_eq!(others, Some((COUNTS, [2, 0, 0])));
        assert_eq!(total(Metric::BlockReadCount), 2);
    }
}
