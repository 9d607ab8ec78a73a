//! What is compared: steps of benchmarks that share a database and a process, and the conditions of all of them.

use serde::{Deserialize, Serialize};

/// A list of steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Writes, reads, scans and synced writes.
    #[default]
    Standard,
    /// Where the choice of the memtable tells: many writers, large values, batches, reads and seeks beside writes.
    Memtables,
}

/// How large the work is.
pub struct Scale {
    pub num: u64,
    pub reads: u64,
}

/// One process on each side.
pub struct Step {
    pub name: &'static str,
    /// Benchmarks at the start that only fill the database, and are not recorded.
    pub stage: usize,
    flags: Vec<String>,
}

/// The same on both sides and in all steps. Named in full wherever the two programs' defaults differ, or RocksDB's
/// library default is not db_bench's.
const CONDITIONS: &[&str] = &[
    "--key_size=16",
    "--value_size=100",
    "--compression_type=none",
    "--checksum_type=4",
    "--format_version=5",
    "--bloom_bits=10",
    "--block_size=4096",
    "--cache_size=268435456",
    "--memtablerep=skip_list",
    "--write_buffer_size=67108864",
    "--max_write_buffer_number=4",
    "--max_background_jobs=2",
    "--level0_file_num_compaction_trigger=4",
    "--level0_slowdown_writes_trigger=20",
    "--level0_stop_writes_trigger=36",
    "--delayed_write_rate=16777216",
    "--target_file_size_base=67108864",
    "--max_bytes_for_level_base=268435456",
    "--level_compaction_dynamic_level_bytes=true",
    "--multiread_batched=true",
    "--seed=1",
];

impl Suite {
    pub fn names(self) -> String {
        let names: Vec<&str> = self.steps(&Scale { num: 1, reads: 1 }).iter().map(|step| step.name).collect();
        names.join(", ")
    }

    pub fn steps(self, scale: &Scale) -> Vec<Step> {
        match self {
            Suite::Standard => standard(scale),
            Suite::Memtables => memtables(scale),
        }
    }
}

fn step(name: &'static str, stage: usize, line: String) -> Step {
    Step { name, stage, flags: line.split_whitespace().map(str::to_owned).collect() }
}

/// `num` is the number of entries of 116 bytes that a fill writes, so that larger ones come to as many bytes.
fn memtables(scale: &Scale) -> Vec<Step> {
    let Scale { num, reads } = scale;
    let kilobytes = (num * 116 / 1040).max(4);
    let (by_four, by_ten, reads_by_four) = (kilobytes / 4, (num / 10).max(1), (reads / 4).max(1));
    vec![
        step(
            "fillrandom, 1 thread",
            0,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,readrandom --num={num} --reads={reads} --histogram=true"
            ),
        ),
        // Speedb's: four threads here, where two processors run them; four buffers of 64 MiB.
        step(
            "1 KB values, 4 threads",
            1,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,overwrite,waitforcompaction,readrandomwriterandom \
                 --num={kilobytes} --writes={by_four} --reads={reads_by_four} --threads=4 --value_size=1024 \
                 --readwritepercent=50 --histogram=true"
            ),
        ),
        // Beside a writer that goes as fast as it can, the better writer would have the worse readers.
        step(
            "1 KB values, 4 threads, beside a writer of 20 MB/s",
            1,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,seekrandomwhilewriting --num={kilobytes} --writes={by_four} \
                 --reads={reads_by_four} --threads=4 --value_size=1024 --benchmark_write_rate_limit=20971520 \
                 --seek_nexts=10 --histogram=true"
            ),
        ),
        // Topling's.
        step(
            "batches of 100, 10 threads",
            0,
            format!(
                "--benchmarks=fillrandom,waitforcompaction --num={num} --writes={by_ten} --threads=10 --batch_size=100 \
                 --histogram=true"
            ),
        ),
    ]
}

fn standard(scale: &Scale) -> Vec<Step> {
    let Scale { num, reads } = scale;
    let (half, quarter) = (num / 2, (num / 4).max(1));
    let synced = (num / 1000).clamp(1, 5000);
    vec![
        step("fillseq", 0, format!("--benchmarks=fillseq,waitforcompaction --num={num} --histogram=true")),
        step(
            "fillrandom",
            0,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,readrandom,readmissing,multireadrandom,seekrandom,\
                 readrandomwriterandom,overwrite,waitforcompaction \
                 --num={num} --reads={reads} --seek_nexts=10 --histogram=true"
            ),
        ),
        step(
            "fillrandom, 2 threads",
            0,
            format!(
                "--benchmarks=fillrandom,waitforcompaction --num={num} --writes={half} --threads=2 --histogram=true"
            ),
        ),
        // Beside a writer that goes as fast as it can, the better writer would have the worse readers.
        step(
            "beside a writer of 10 MB/s",
            1,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,readwhilewriting,seekrandomwhilewriting --num={quarter} \
                 --reads={reads} --benchmark_write_rate_limit=10485760 --histogram=true"
            ),
        ),
        step(
            "batches of 32",
            1,
            format!(
                "--benchmarks=fillrandom,waitforcompaction,multireadrandom --num={quarter} --reads={reads} --batch_size=32 --histogram=true"
            ),
        ),
        // Without timing each step: two clock readings would be a large part of what is measured.
        step(
            "scan",
            1,
            format!("--benchmarks=fillrandom,waitforcompaction,readseq,readreverse --num={num} --histogram=false"),
        ),
        step("fillsync", 0, format!("--benchmarks=fillsync --num={num} --writes={synced} --histogram=true")),
    ]
}

impl Step {
    /// The conditions of all steps, changed by the step's own flags, and those by `extra`.
    pub fn flags(&self, extra: &[String]) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        let conditions = CONDITIONS.iter().map(|&flag| flag.to_owned());
        for flag in conditions.chain(self.flags.iter().cloned()).chain(extra.iter().cloned()) {
            let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
            flags.retain(|earlier| name(earlier) != name(&flag));
            flags.push(flag);
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn this_side_takes_the_flags_of_every_step() {
        let scale = Scale { num: 1000, reads: 10 };
        for step in Suite::Standard.steps(&scale).iter().chain(&Suite::Memtables.steps(&scale)) {
            let mut flags = step.flags(&["--num=77".to_owned()]);
            flags.push("--db=/x".to_owned());
            assert_eq!(Flags::parse(&flags).unwrap().num, 77, "{}", step.name);
            assert_eq!(flags.iter().filter(|flag| flag.starts_with("--num=")).count(), 1);
        }
    }

    #[test]
    fn a_step_says_otherwise_than_the_conditions() {
        let steps = Suite::Memtables.steps(&Scale { num: 1000, reads: 10 });
        for step in steps.iter().filter(|step| step.name.starts_with("1 KB values")) {
            let flags = step.flags(&[]);
            let sizes: Vec<&String> = flags.iter().filter(|flag| flag.starts_with("--value_size=")).collect();
            assert_eq!(sizes, ["--value_size=1024"], "{}", step.name);
        }
    }
}
