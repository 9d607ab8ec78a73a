//! The outcome of one benchmark, as db_bench's line of text and as a line of JSON.

use base::Result;
use serde::{Deserialize, Serialize};

use crate::flags::Flags;
use crate::latency::{Distribution, Latencies};
use crate::tally::Tally;

/// A line of JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outcome {
    pub bench: String,
    pub memtable: String,
    pub threads: usize,
    pub ops: u64,
    pub ops_per_s: f64,
    /// Of one thread: `threads / ops_per_s`.
    pub us_per_op: f64,
    /// Of keys and values, in units of 2^20 bytes.
    pub mb_per_s: f64,
    /// From the first thread's start to the last one's end, in seconds.
    pub wall_s: f64,
    /// Processor time of all threads of the process, background ones included, per operation.
    pub cpu_us_per_op: f64,
    /// Lookups and seeks with their key found; `None` without lookups and seeks.
    pub found: Option<u64>,
    /// Writes of the writer beside the readers, if there is one.
    pub background_writes: Option<u64>,
    /// Of the timed operations: fewer than `ops` if only a sample is timed, or if an operation handles several keys.
    #[serde(flatten)]
    pub latency: Distribution,
}

impl Outcome {
    /// The threads' results under the name of a benchmark or a command.
    pub fn new(bench: &str, flags: &Flags, tally: &Tally<'_>) -> Result<Outcome> {
        let wall_s = (tally.ended - tally.started).as_secs_f64();
        let ops = tally.done.max(1) as f64;
        let per_second = |count: f64| if wall_s > 0.0 { count / wall_s } else { 0.0 };
        let mut all = Latencies::new()?;
        for (_, latencies) in tally.latencies() {
            all.add(latencies)?;
        }
        Ok(Outcome {
            bench: bench.to_owned(),
            memtable: flags.memtablerep.clone(),
            threads: flags.threads,
            ops: tally.done,
            ops_per_s: per_second(tally.done as f64),
            us_per_op: wall_s * 1e6 * flags.threads as f64 / ops,
            mb_per_s: per_second(tally.bytes as f64 / f64::from(1 << 20)),
            wall_s,
            cpu_us_per_op: tally.cpu.as_secs_f64() * 1e6 / ops,
            found: (tally.looked_up > 0).then_some(tally.found),
            background_writes: tally.background_writes,
            latency: all.distribution(),
        })
    }

    /// db_bench's line.
    pub fn text(&self, looked_up: u64) -> String {
        let mut line = format!(
            "{:<12} : {:>11.3} micros/op {} ops/sec {:.3} seconds {} operations;",
            self.bench, self.us_per_op, self.ops_per_s as u64, self.wall_s, self.ops
        );
        if self.mb_per_s > 0.0 {
            line.push_str(&format!(" {:6.1} MB/s", self.mb_per_s));
        }
        if let Some(found) = self.found {
            line.push_str(&format!(" ({found} of {looked_up} found)"));
        }
        if let Some(writes) = self.background_writes {
            line.push_str(&format!(" (beside {writes} writes)"));
        }
        line
    }
}
