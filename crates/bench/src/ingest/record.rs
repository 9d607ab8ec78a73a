//! The results of `ingest`, one line of JSON each. `part` says which kind a line is.

use serde::{Deserialize, Serialize};

use crate::machine::Setting;

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "ingest";

/// The mode of what was measured beside them, without an ingest.
pub const NONE: &str = "none";

/// A line of JSON. Later fields may be added, those there keep their meaning.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "part", rename_all = "lowercase")]
pub enum IngestRecord {
    Overlap(OverlapRecord),
    Writers(WritersRecord),
    Load(LoadRecord),
}

/// One ingest over some memtables: medians over repeats, in microseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OverlapRecord {
    /// `none`: the same memtables, flushed without an ingest.
    pub mode: String,
    /// `memory` or `disk`.
    pub store: String,
    /// That hold keys of the table's range, the mutable one included.
    pub memtables: usize,
    /// Of the call: `prepare_us` and `commit_us` together.
    pub ingest_us: f64,
    /// Of flushing what the ingest left to flush.
    pub flush_us: f64,
    pub prepare_us: f64,
    pub commit_us: f64,
    /// The shortest and the longest call.
    pub ingest_min_us: f64,
    pub ingest_max_us: f64,
    /// What prepare looked at.
    pub verifies: String,
    pub repeats: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

/// A run of writers, in microseconds from when each write should have begun.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WritersRecord {
    /// `none`: the same writers without ingests.
    pub mode: String,
    pub sync: bool,
    pub writers: u64,
    /// Writes a second, of all writers together.
    pub rate: u64,
    /// That were done while they wrote.
    pub ingests: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    pub max_us: f64,
    /// The longest that a writer was stopped at an ingest's gate or latch; in files before 2026-11-25, and at its commit lock.
    pub ingest_wait_max_us: f64,
    /// The longest that one could have waited behind an ingest: from when it took the commit lock until it was logged.
    #[serde(default)]
    pub ingest_window_max_us: f64,
    /// Of the calls that ingested, from the call to its return.
    pub ingest_p50_us: f64,
    pub ingest_max_us: f64,
    /// Which were ingested: `small`, `big` or `given`.
    pub tables: String,
    pub tables_bytes: u64,
    pub round: u32,
    /// Writes that were recorded.
    pub writes: u64,
    /// Of all processors, the generator's waiting included.
    pub cpu_percent: f64,
    /// Of all processors' time during the run, what the machine's host gave to others.
    #[serde(default)]
    pub stolen_percent: f64,
    /// How often the run was made before, and more than `--stolen_max` taken.
    #[serde(default)]
    pub repeats: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

/// A data set that was loaded, from the start of the command to its end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LoadRecord {
    /// The command.
    pub way: String,
    pub rows: u64,
    /// Of keys and values.
    pub bytes: u64,
    pub seconds: f64,
    pub rows_per_s: f64,
    /// Millions of bytes.
    pub mb_per_s: f64,
    /// Processor time of all threads.
    pub cpu_s: f64,
    pub round: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

impl IngestRecord {
    pub fn setting(&self) -> &Setting {
        match self {
            IngestRecord::Overlap(record) => &record.setting,
            IngestRecord::Writers(record) => &record.setting,
            IngestRecord::Load(record) => &record.setting,
        }
    }

    /// The line for whoever watches.
    pub fn text(&self) -> String {
        match self {
            IngestRecord::Overlap(r) => format!(
                "overlap  {:<6}  {:>2} memtables  {:<11}  ingest {:>9.1} us (prepare {:>8.1}, commit {:>9.1})  flush after {:>9.1} us",
                r.store, r.memtables, r.mode, r.ingest_us, r.prepare_us, r.commit_us, r.flush_us
            ),
            IngestRecord::Writers(r) => format!(
                "writers  {:<5}  {:<7}  {:<11}  round {:>2}  p50 {:>7.1}  p99 {:>8.1}  p99.9 {:>8.1}  p99.99 {:>8.1}  max {:>8.1} us  \
                 {:>3} ingests (p50 {:>8.1} us), longest wait for one {:>7.1} us (window {:>6.1}), CPU {:>2.0} % (stolen {:.1})",
                r.tables,
                if r.sync { "sync" } else { "no sync" },
                r.mode,
                r.round,
                r.p50_us,
                r.p99_us,
                r.p999_us,
                r.p9999_us,
                r.max_us,
                r.ingests,
                r.ingest_p50_us,
                r.ingest_wait_max_us,
                r.ingest_window_max_us,
                r.cpu_percent,
                r.stolen_percent
            ),
            IngestRecord::Load(r) => format!(
                "load     {:<22}  round {:>2}  {:>7.2} s  {:>9.0} rows/s  {:>7.1} MB/s  CPU {:>6.2} s",
                r.way, r.round, r.seconds, r.rows_per_s, r.mb_per_s, r.cpu_s
            ),
        }
    }
}
