//! The results of `bench-compare`: libraries with RocksDB's C API side by side. One line of JSON for each run.

use serde::{Deserialize, Serialize};

use crate::latency::Distributions;
use crate::machine::Setting;

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "sides";

/// A line of JSON. Later fields may be added, those there keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SideRecord {
    /// The name that the library was given; the first is what the others are set in relation to.
    pub lib: String,
    /// What the library says that it is.
    pub version: String,
    pub workload: String,
    /// Where there are several; else empty.
    pub mode: String,
    pub round: u32,
    /// The figure that stands for the run.
    pub figure: f64,
    /// What that figure is: of what ends with `/s` more is better, of everything else less.
    pub unit: String,
    pub threads: usize,
    pub ops: u64,
    /// To the last acknowledgement.
    pub wall_s: f64,
    /// To the last acknowledgement, processor time of all threads.
    pub cpu_us_per_op: f64,
    /// To the end of flushes and compactions.
    pub idle_wall_s: Option<f64>,
    pub idle_cpu_us_per_op: Option<f64>,
    /// By what was done: `read`, `write`, `seek`. Empty where single operations were not timed.
    pub latency: Distributions,
    pub found: Option<u64>,
    pub background_writes: Option<u64>,
    /// Of the keys and values that were written.
    pub user_bytes: u64,
    /// That the process had the kernel write to storage, to the end of flushes and compactions.
    pub storage_bytes: u64,
    /// That it passed to system calls that write.
    pub call_bytes: u64,
    /// Of the database's files, where that was looked at.
    pub disk_bytes: Option<u64>,
    /// The most memory the process held while it was measured.
    pub peak_bytes: u64,
    /// That were done beside the writers, and the median of their calls in milliseconds.
    pub ingests: u64,
    pub ingest_ms: f64,
    /// The option string that the library got.
    pub options: String,
    #[serde(flatten)]
    pub setting: Setting,
}

impl SideRecord {
    /// What was done, as it is called in tables.
    pub fn name(&self) -> String {
        if self.mode.is_empty() { self.workload.clone() } else { format!("{}, {}", self.workload, self.mode) }
    }

    /// The line for whoever watches.
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
