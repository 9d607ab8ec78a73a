//! The parts of a reading that are of the whole database.

use std::collections::BTreeMap;

use super::{ObservedHistogram, plain, plain_choice};

plain_choice! {
    /// Who took the reading.
    pub enum ObservedBy {
        /// The process that has the database open for writing.
        #[default]
        Writer,
        /// A process that reads the database's files: jobs, cache and memory are its own.
        Reader,
        /// A secondary: a reader that follows its writer.
        Secondary,
    }

    /// Whether writes go on.
    pub enum WriteGate {
        /// Freely.
        #[default]
        Free,
        /// Slowed down.
        Delayed,
        /// They wait.
        Stopped,
        /// They fail: the database is read-only, by its open or after an error.
        Refused,
    }

    /// A kind of job.
    pub enum ObservedJobKind {
        /// Memtables become tables.
        #[default]
        Flush,
        /// Tables are merged, moved or dropped.
        Compaction,
        /// Files become tables of the database.
        Ingest,
    }
}

plain! {
    /// Which database, seen by whom, when.
    pub struct ObservedProcess {
        /// Spillway's version.
        pub version: String,
        /// The process's number.
        pub pid: u32,
        /// The database's directory.
        pub directory: String,
        /// The database's id.
        pub identity: String,
        /// Who took the reading.
        pub observed_by: ObservedBy,
        /// When, in microseconds since 1970.
        pub unix_time_us: u64,
        /// Since the open, in microseconds.
        pub uptime_us: u64,
        /// The newest visible sequence number.
        pub last_number: u64,
    }

    /// Whether writes go on, and what is in their way.
    pub struct ObservedHealth {
        /// The error that made the database read-only.
        pub background_error: Option<String>,
        /// Background errors since the open, lacks of disk space included.
        pub background_errors: u64,
        /// Whether writes go on.
        pub gate: WriteGate,
        /// Why not, by a name of [`StallCause::name`](crate::StallCause::name).
        pub gate_cause: Option<String>,
        /// How far compactions are behind, from 0 to 1: writers are stopped at 1.
        pub debt: f64,
        /// The rate of all writers together while they are slowed down.
        pub delayed_bytes_per_second: Option<u64>,
        /// A job waits for disk space.
        pub waits_for_space: bool,
        /// The reserve for a full disk was given up: only deletions are written.
        pub reserve_is_spent: bool,
        /// What the open could not recover for certain: families, key ranges, and why.
        pub recovery_doubts: Vec<String>,
    }

    /// Writes since the open.
    pub struct ObservedWrites {
        /// Writes.
        pub writes: u64,
        /// Changes in them.
        pub keys: u64,
        /// Bytes of them.
        pub bytes: u64,
        /// Writes that were logged.
        pub logged: u64,
        /// Bytes of the logged ones.
        pub logged_bytes: u64,
        /// Syncs of a log.
        pub syncs: u64,
        /// Waits by cause; all causes are there.
        pub stalls: Vec<ObservedStall>,
        /// Times of writes; `None` without `statistics`.
        pub latency_us: Option<ObservedHistogram>,
        /// Times of syncs of the log; `None` without `statistics`.
        pub sync_us: Option<ObservedHistogram>,
        /// Slow writes that were told with a trace: the latest of each bucket of a histogram, fastest first.
        pub traces: Vec<ObservedTrace>,
    }

    /// A slow write on a thread that worked for a trace ([`in_trace`](crate::observe::in_trace)).
    pub struct ObservedTrace {
        /// The trace.
        pub trace_id: String,
        /// The write's time, in microseconds.
        pub micros: u64,
        /// When it ended, in microseconds since 1970.
        pub unix_time_us: u64,
    }

    /// Waits of writers for one cause, since the open, and those under way.
    pub struct ObservedStall {
        /// A name of [`StallCause::name`](crate::StallCause::name).
        pub cause: String,
        /// Waits that have ended.
        pub waits: u64,
        /// Of these, waits of stopped writers; the others were slowed down.
        pub stops: u64,
        /// Time of all of them together, in microseconds.
        pub micros: u64,
        /// Writers that wait now. These waits are in the figures above once they end.
        pub waiting: u64,
        /// How long the first of them has waited, in microseconds; 0 without any.
        pub waiting_us: u64,
    }

    /// Reads since the open.
    pub struct ObservedReads {
        /// Lookups of single keys.
        pub gets: u64,
        /// Lookups of several keys at once.
        pub multi_gets: u64,
        /// Keys that were looked up by those.
        pub multi_get_keys: u64,
        /// Bytes of values found.
        pub bytes: u64,
        /// Times of lookups.
        pub get_us: ObservedHistogram,
        /// Times of lookups of several keys.
        pub multi_get_us: ObservedHistogram,
        /// Times of iterators' seeks.
        pub seek_us: ObservedHistogram,
        /// Times of reads of table files.
        pub table_read_us: ObservedHistogram,
        /// Where lookups were answered.
        pub answers: ObservedAnswers,
        /// What filters were good for.
        pub filters: ObservedFilters,
        /// Seeks of iterators.
        pub seeks: u64,
        /// Steps of iterators, forward and back.
        pub steps: u64,
        /// Hidden entries passed by iterators: deleted or overwritten.
        pub skipped: u64,
        /// Seeks past long runs of hidden entries.
        pub reseeks: u64,
    }

    /// Operations since the open, about one in `one_in` of each thread, at random. A count times `one_in` is an
    /// estimate; n records err by the square root of n.
    pub struct ObservedSample {
        /// Operations that one of the sample stands for.
        pub one_in: u64,
        /// Times of writes.
        pub write_us: ObservedHistogram,
        /// Times of lookups of single keys.
        pub get_us: ObservedHistogram,
        /// Times of iterators' seeks.
        pub seek_us: ObservedHistogram,
        /// Where keys were found, those of lookups of several keys too.
        pub answers: ObservedAnswers,
    }

    /// Lookups by where they were answered.
    pub struct ObservedAnswers {
        /// In memtables, or in queued ingests.
        pub memtables: u64,
        /// By a kept answer: the row cache.
        pub kept: u64,
        /// In level 0.
        pub level0: u64,
        /// In level 1.
        pub level1: u64,
        /// In level 2 or deeper.
        pub deeper: u64,
        /// Nowhere: there is no such key, or its deletion was found in a table.
        pub nowhere: u64,
    }

    /// Looks into filters.
    pub struct ObservedFilters {
        /// Tables that a filter spared a lookup.
        pub useful: u64,
        /// Tables that a filter let a lookup read.
        pub passed: u64,
        /// Of these, tables that had the key.
        pub passed_rightly: u64,
        /// Looks into prefix filters.
        pub prefix_checked: u64,
        /// Of these, those that spared a seek.
        pub prefix_useful: u64,
    }

    /// A running job.
    pub struct ObservedJob {
        /// Its kind.
        pub kind: ObservedJobKind,
        /// The family; the first of several.
        pub family: String,
        /// Uppermost level of a compaction's inputs.
        pub level: Option<u32>,
        /// Level of the new tables.
        pub output_level: Option<u32>,
        /// Why it runs, such as `level0`.
        pub reason: String,
        /// Bytes done of `total_bytes`, roughly.
        pub done_bytes: u64,
        /// Bytes of all inputs.
        pub total_bytes: u64,
        /// Since it began, in microseconds.
        pub running_us: u64,
    }

    /// Jobs that have ended since the open, failed ones included.
    pub struct ObservedEnds {
        /// Flushes.
        pub flushes: u64,
        /// Compactions.
        pub compactions: u64,
        /// Ingests.
        pub ingests: u64,
    }

    /// Tables that jobs write, and files that they delete. Figures are since the open, or of now.
    pub struct ObservedDisk {
        /// Bytes of tables written by flushes, running ones included.
        pub flushed_bytes: u64,
        /// The same of compactions.
        pub compacted_bytes: u64,
        /// Limit of the rate of both in bytes per second (`rate_limiter_bytes_per_sec`, or a limiter of several databases);
        /// `None` without one.
        pub rate_limit: Option<u64>,
        /// Time that they waited for their rate, in microseconds, all jobs together. Without a limit, they wait while callers
        /// sync and compactions are not behind.
        pub rate_wait_us: u64,
        /// Obsolete files not deleted yet.
        pub files_to_delete: u64,
        /// Deleted files whose space is released in steps.
        pub files_to_release: u64,
        /// That space, in bytes.
        pub bytes_to_release: u64,
    }

    /// The write-ahead log.
    pub struct ObservedLogs {
        /// Logs that some family still needs.
        pub live: u64,
        /// Their bytes, of the current one those written.
        pub live_bytes: u64,
        /// Bytes at which the families with the oldest log are flushed.
        pub limit_bytes: u64,
        /// Number of the oldest one.
        pub oldest: Option<u64>,
        /// Number of the current one; `None` before the first logged write.
        pub current: Option<u64>,
        /// Bytes written to the current one.
        pub current_bytes: u64,
        /// Bytes at which it is replaced.
        pub current_capacity_bytes: u64,
        /// Bytes of it that are prefaulted ahead of the writers.
        pub window_bytes: u64,
        /// A log made ahead is there.
        pub has_spare: bool,
        /// Logs with values of tables (`memtable_as_log_index`).
        pub value_logs: u64,
        /// Their bytes.
        pub value_log_bytes: u64,
        /// Of these, bytes that tables still need.
        pub live_value_bytes: u64,
    }

    /// Ingests since the open.
    pub struct ObservedIngests {
        /// In queues, without a level yet.
        pub queued: u64,
        /// Their tables.
        pub queued_tables: u64,
        /// Seconds since the oldest of them arrived, by the wall clock; 0 if there is none.
        pub oldest_queued_s: u64,
        /// Tables that were given a level.
        pub placed_tables: u64,
        /// Bytes of those.
        pub placed_bytes: u64,
        /// Writes that waited for an ingest.
        pub writer_waits: u64,
        /// Time of all those waits, in microseconds.
        pub writer_wait_us: u64,
        /// The longest of them, in microseconds.
        pub longest_writer_wait_us: u64,
        /// Time that ingests held the commit lock, in microseconds.
        pub lock_held_us: u64,
        /// Writes that waited for it.
        pub lock_waits: u64,
    }

    /// The block cache. It may be other databases', too: then these are figures of all.
    pub struct ObservedCache {
        /// Bytes that it may hold.
        pub capacity_bytes: u64,
        /// Bytes that it holds.
        pub usage_bytes: u64,
        /// Lookups that found their block.
        pub hits: u64,
        /// Lookups that did not.
        pub misses: u64,
        /// Blocks put in.
        pub inserts: u64,
        /// Blocks put in again soon after they were evicted, by the cache's ghost list: a larger cache would have had
        /// them. Data blocks only.
        pub returns: u64,
        /// This database's lookups by kind of block; `None` without `statistics`.
        pub kinds: Option<Vec<ObservedBlocks>>,
    }

    /// Lookups of one kind of block.
    pub struct ObservedBlocks {
        /// `data`, `index` or `filter`.
        pub kind: String,
        /// Lookups that found their block.
        pub hits: u64,
        /// Lookups that did not.
        pub misses: u64,
        /// Bytes put in.
        pub inserted_bytes: u64,
    }

    /// Memory by owner, in bytes.
    pub struct ObservedMemory {
        /// The limit on all memtables (`db_write_buffer_size`), of all databases of the budget; `None` for none.
        pub budget_bytes: Option<u64>,
        /// What counts for the limit, of all databases of the budget; `None` without a limit.
        pub charged_bytes: Option<u64>,
        /// Memtables, with those that only readers keep.
        pub memtables_bytes: u64,
        /// Of these, memtables that only readers keep.
        pub kept_memtables_bytes: u64,
        /// Blocks and answers in the block cache.
        pub block_cache_bytes: u64,
        /// A row cache of its own.
        pub row_cache_bytes: u64,
        /// Open tables: what they hold beside the cache.
        pub table_readers_bytes: u64,
        /// Open tables.
        pub open_tables: u64,
    }

    /// Snapshots.
    pub struct ObservedSnapshots {
        /// How many there are.
        pub count: u64,
        /// The oldest one.
        pub oldest: Option<ObservedSnapshot>,
    }

    /// A snapshot. What was overwritten or deleted since stays in tables for it.
    pub struct ObservedSnapshot {
        /// Its sequence number.
        pub number: u64,
        /// Its age in seconds.
        pub age_s: u64,
        /// Changes written since.
        pub changes_since: u64,
    }

    /// What iterators keep that were made before the family went on. Iterators over the same state are one of these.
    pub struct ObservedKept {
        /// The family.
        pub family: String,
        /// Iterators, with reads that are under way.
        pub readers: u64,
        /// Since the state was replaced, in microseconds; the iterators are older.
        pub age_us: u64,
        /// Memtables kept for them alone.
        pub memtables: u64,
        /// Their bytes.
        pub memtable_bytes: u64,
        /// Tables kept for them alone.
        pub tables: u64,
        /// Bytes of those, on disk.
        pub table_bytes: u64,
    }

    /// An option that differs from its default.
    pub struct ObservedOption {
        /// The family; `None` for an option of the database.
        pub family: Option<String>,
        /// The option's name.
        pub name: String,
        /// Its value, as an option string has it.
        pub value: String,
        /// Its default.
        pub default: String,
        /// It can be changed while the database is open.
        pub is_mutable: bool,
    }

    /// All counters and distributions, by RocksDB's names; ours begin with `spillway.`.
    pub struct ObservedStatistics {
        /// Counters.
        pub tickers: BTreeMap<String, u64>,
        /// Distributions with records; units are in their names.
        pub histograms: BTreeMap<String, ObservedHistogram>,
    }
}

impl ObservedAnswers {
    /// Keys looked up.
    pub fn all(&self) -> u64 {
        self.memtables + self.kept + self.level0 + self.level1 + self.deeper + self.nowhere
    }
}

impl ObservedWrites {
    /// Waits of all causes, and their microseconds.
    pub fn stalled(&self) -> (u64, u64) {
        self.stalls.iter().fold((0, 0), |(waits, micros), stall| (waits + stall.waits, micros + stall.micros))
    }
}

impl ObservedFilters {
    /// Tables that a filter let a lookup read in vain.
    pub fn false_positives(&self) -> u64 {
        self.passed.saturating_sub(self.passed_rightly)
    }
}

impl ObservedCache {
    /// The part of lookups that found their block; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.misses;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}
