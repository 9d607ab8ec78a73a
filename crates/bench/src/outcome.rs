//! The outcome of one benchmark, as db_bench's line of text and as a line of JSON.

use std::time::Duration;

use base::Result;
use serde::{Deserialize, Serialize};

use crate::latency::Latencies;
use crate::tally::Tally;

/// A line of JSON. Times in microseconds unless the name says otherwise.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Outcome {
    pub bench: String,
    pub memtable: String,
    pub threads: usize,
    pub ops: u64,
    pub ops_per_s: f64,
    /// Of one thread: with several, `threads / ops_per_s`.
    pub us_per_op: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    /// Of the operations that were timed.
    pub max_us: f64,
    /// Of keys and values, in units of 2^20 bytes.
    pub mb_per_s: f64,
    /// Operations that were timed; fewer than `ops` where they were sampled or handled several keys each.
    pub timed_ops: u64,
    /// From the first thread's start to the last one's end, in seconds.
    pub wall_s: f64,
    /// Processor time of all threads of the process, background ones included, per operation.
    pub cpu_us_per_op: f64,
    /// Lookups and seeks that found their key, where there were any.
    pub found: Option<u64>,
    /// What the writer beside the readers wrote, where there was one.
    pub background_writes: Option<u64>,
}

/// What an outcome says besides what the threads counted.
pub struct Circumstances<'a> {
    pub bench: &'a str,
    pub memtable: &'a str,
    pub threads: usize,
    /// Processor time of the process while the benchmark ran.
    pub cpu: Duration,
    pub background_writes: Option<u64>,
}

impl Outcome {
    pub fn new(about: &Circumstances<'_>, tally: &Tally<'_>) -> Result<Outcome> {
        let wall_s = (tally.ended - tally.started).as_secs_f64();
        let ops = tally.done.max(1) as f64;
        let mut all = Latencies::new()?;
        for (_, latencies) in tally.latencies() {
            all.add(latencies)?;
        }
        let ops_per_s = if wall_s > 0.0 { tally.done as f64 / wall_s } else { 0.0 };
        Ok(Outcome {
            bench: about.bench.to_owned(),
            memtable: about.memtable.to_owned(),
            threads: about.threads,
            ops: tally.done,
            ops_per_s,
            us_per_op: wall_s * 1e6 * about.threads as f64 / ops,
            p50_us: all.percentile_us(50.0),
            p99_us: all.percentile_us(99.0),
            p999_us: all.percentile_us(99.9),
            p9999_us: all.percentile_us(99.99),
            max_us: all.max_us(),
            mb_per_s: if wall_s > 0.0 { tally.bytes as f64 / f64::from(1 << 20) / wall_s } else { 0.0 },
            timed_ops: all.count(),
            wall_s,
            cpu_us_per_op: about.cpu.as_secs_f64() * 1e6 / ops,
            found: (tally.looked_up > 0).then_some(tally.found),
            background_writes: about.background_writes,
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
