//! The results of `bench-compare` and `bench-peers`: one line of JSON for each run of a library.

use serde::{Deserialize, Serialize};

use crate::latency::Distributions;
use crate::machine::Setting;

/// The value of `kind` in the lines of `bench-compare`.
pub const KIND: &str = "sides";

/// A line of JSON. Fields may be added; existing ones keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SideRecord {
    /// The library's name on the command line. Ratios are relative to the first library.
    pub lib: String,
    /// The library's own name and version.
    pub version: String,
    pub workload: String,
    /// Empty for a workload with one mode only.
    pub mode: String,
    pub round: u32,
    /// The result of the run, in `unit`.
    pub figure: f64,
    /// If it ends with `/s`, more is better; otherwise less.
    pub unit: String,
    pub threads: usize,
    pub ops: u64,
    /// To the last acknowledgement.
    pub wall_s: f64,
    /// Processor time of all threads to the last acknowledgement.
    pub cpu_us_per_op: f64,
    /// To the end of flushes and compactions.
    pub idle_wall_s: Option<f64>,
    pub idle_cpu_us_per_op: Option<f64>,
    /// By operation: `read`, `write`, `seek`. Empty if single operations were not timed.
    pub latency: Distributions,
    pub found: Option<u64>,
    /// Sum of what was read, equal for every engine; `None` if not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<u64>,
    pub background_writes: Option<u64>,
    /// Transactions that failed since others were in the way; they are of `ops`, not of `figure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Of all keys and values written.
    pub user_bytes: u64,
    /// Bytes the process made the kernel store, to the end of flushes and compactions.
    pub storage_bytes: u64,
    /// Bytes the process passed to writing system calls.
    pub call_bytes: u64,
    /// Size of the database's files; `None` if not measured.
    pub disk_bytes: Option<u64>,
    /// Peak resident memory during the measurement.
    pub peak_bytes: u64,
    /// Ingests done beside the writers.
    pub ingests: u64,
    /// Median of the ingest calls.
    pub ingest_ms: f64,
    /// The option string given to the library.
    pub options: String,
    #[serde(flatten)]
    pub setting: Setting,
}

impl SideRecord {
    /// Workload and mode, as they are called in tables.
    pub fn name(&self) -> String {
        if self.mode.is_empty() { self.workload.clone() } else { format!("{}, {}", self.workload, self.mode) }
    }

    /// The line printed for people.
    pub fn text(&self) -> String {
        format!(
            "round {}  {:<28} {:<14} {:>12.1} {:<12} {:>8.3} us CPU/op  {:>7.1} MB written  {:>7.1} MB held",
            self.round,
            self.name(),
            self.lib,
            self.figure,
            self.unit,
            self.cpu_us_per_op,
            self.storage_bytes as f64 / 1e6,
            self.peak_bytes as f64 / 1e6
        )
    }
}
