//! A line of `bench/results/*.jsonl`: one benchmark, on one side, in one round.

use serde::{Deserialize, Serialize};

use super::side::{Section, Side};
use super::suite::Suite;
use crate::latency::Distributions;
use crate::machine::Machine;

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

impl Record {
    pub fn from_sections(side: &Side, step: &str, sections: &[Section]) -> Vec<Record> {
        let record = |section: &Section| {
            let line = &section.line;
            let per_op = |time: std::time::Duration| time.as_secs_f64() * 1e6 / line.ops.max(1) as f64;
            Record {
                engine: side.name().to_owned(),
                version: side.version.clone(),
                memtable: side.memtable.clone(),
                step: step.to_owned(),
                bench: line.bench.clone(),
                ops: line.ops,
                ops_per_s: line.ops_per_s,
                us_per_op: line.us_per_op,
                mb_per_s: line.mb_per_s,
                wall_s: line.wall_s,
                cpu_us_per_op: per_op(section.cpu),
                idle_wall_s: section.idle.map(|idle| line.wall_s + idle.wall.as_secs_f64()),
                idle_cpu_us_per_op: section.idle.map(|idle| per_op(section.cpu + idle.cpu)),
                found: line.found,
                switch_max_us: line.switch_max_us,
                latency: section.distributions.clone(),
                ..Record::default()
            }
        };
        sections.iter().map(record).collect()
    }

    /// A line for whoever watches.
    pub fn summary(&self) -> String {
        let idle = self.idle_wall_s.map_or(String::new(), |idle| format!(", idle after {idle:.1} s"));
        format!(
            "round {} {:<12} {:<9} {:<12} {:<22} {:>10.0} ops/s  {:>7.3} us CPU/op{idle}",
            self.round, self.step, self.engine, self.memtable, self.bench, self.ops_per_s, self.cpu_us_per_op
        )
    }
}
