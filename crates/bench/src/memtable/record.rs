//! A result of a memtable benchmark: one benchmark, on one memtable, in one round.

use serde::{Deserialize, Serialize};

use crate::machine::Setting;

/// The value of `kind` in these lines.
pub const KIND: &str = "memtable";

/// A line of JSON. Fields may be added; existing ones keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct MemtableRecord {
    pub bench: String,
    /// The option string.
    pub memtable: String,
    /// The shape of the keys.
    pub keys: String,
    /// Always 1.
    pub threads: usize,
    /// In the memtable, at the end.
    pub entries: u64,
    pub us_per_op: f64,
    pub ops_per_s: f64,
    /// As the memtable reports it.
    pub bytes_per_entry: f64,
    pub round: u32,
    /// Inserts, lookups, seeks, or steps of a cursor.
    pub ops: u64,
    pub wall_s: f64,
    /// Processor time of the process.
    pub cpu_us_per_op: f64,
    /// Of entries inserted or found, in units of 2^20 bytes.
    pub mb_per_s: f64,
    /// Lookups and seeks with their key found.
    pub found: Option<u64>,
    #[serde(flatten)]
    pub setting: Setting,
}

impl MemtableRecord {
    /// The line printed for people.
    pub fn text(&self) -> String {
        let mut line = format!(
            "{:<16} {:<20} {:>11} ops {:>9.1} ns/op ({:>8.1} of CPU) {:>9.3} M ops/s {:>7.1} bytes/entry",
            self.bench,
            self.memtable,
            self.ops,
            self.us_per_op * 1000.0,
            self.cpu_us_per_op * 1000.0,
            self.ops_per_s / 1e6,
            self.bytes_per_entry
        );
        if let Some(found) = self.found {
            line.push_str(&format!("  {:.1} % found", 100.0 * found as f64 / self.ops.max(1) as f64));
        }
        line
    }
}
