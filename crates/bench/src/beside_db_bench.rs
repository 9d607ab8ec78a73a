//! Kept results of Spillway beside RocksDB's `db_bench`, each a program of its own: a benchmark, on one side, in one round. What is
//! compared through the C API is in `sides.rs`.

use serde::{Deserialize, Serialize};

use crate::latency::Distributions;
use crate::machine::Machine;

/// A list of steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Writes, reads, scans and synced writes.
    #[default]
    Standard,
    /// Where the choice of the memtable tells: many writers, large values, batches, reads and seeks beside writes.
    Memtables,
}

/// What was measured, and under which conditions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// `rocksdb` or `spillway`.
    pub engine: String,
    pub version: String,
    #[serde(default = "first_memtable")]
    pub memtable: String,
    #[serde(default)]
    pub suite: Suite,
    pub step: String,
    pub bench: String,
    pub round: u32,
    pub ops: u64,
    /// To the last acknowledgement.
    pub ops_per_s: f64,
    /// Of one thread.
    pub us_per_op: f64,
    pub mb_per_s: f64,
    /// To the last acknowledgement.
    pub wall_s: f64,
    /// To the last acknowledgement, processor time of all threads.
    pub cpu_us_per_op: f64,
    /// To the end of flushes and compactions, where that was waited for.
    pub idle_wall_s: Option<f64>,
    /// The same, processor time of all threads.
    pub idle_cpu_us_per_op: Option<f64>,
    pub found: Option<u64>,
    /// The longest that a writer was held up by a memtable switch, where Spillway kept statistics.
    #[serde(default)]
    pub switch_max_us: Option<f64>,
    /// Empty where single operations were not timed.
    pub latency: Distributions,
    pub flags: String,
    pub machine: Machine,
    pub commit: String,
    pub unix_time_s: u64,
}

/// Of the runs that were kept before there was a choice.
fn first_memtable() -> String {
    "skip_list".to_owned()
}
