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
    /// Threads that did `ops`; the writer of readwrite is not one of them.
    pub threads: usize,
    /// In the memtable, at the end.
    pub entries: u64,
    /// Of one thread.
    pub us_per_op: f64,
    /// What memtablerep_bench calls "write us/op", in the benchmarks that it has. In readwrite of the writes done, where it
    /// divides by num_operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_us_per_op: Option<f64>,
    /// What it calls "read us/op": of one thread; in readseq of a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_us_per_op: Option<f64>,
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
    /// The lines printed for people: ours, then those of memtablerep_bench that its readers look for.
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
        for (name, figure) in [("write us/op", self.write_us_per_op), ("read us/op", self.read_us_per_op)] {
            if let Some(figure) = figure {
                line.push_str(&format!("\n{name}: {}", significant(figure)));
            }
        }
        line
    }
}

/// Six significant digits without trailing zeros, as C++ streams print numbers.
fn significant(figure: f64) -> String {
    let digits = (5 - figure.abs().max(1e-9).log10().floor() as i32).max(0) as usize;
    let text = format!("{figure:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_printed_as_streams_of_cpp_print_them() {
        let printed = [0.310_549_9, 3.6, 2500.0, 1_234_567.8, 0.000_123_456_7, 0.0].map(significant);
        assert_eq!(printed, ["0.31055", "3.6", "2500", "1234568", "0.000123457", "0"]);
    }
}
