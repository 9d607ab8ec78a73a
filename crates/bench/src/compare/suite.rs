//! What is compared: steps of benchmarks that share a database and a process, and the conditions of all of them.

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

pub fn names() -> String {
    let names: Vec<&str> = steps(&Scale { num: 1, reads: 1 }).iter().map(|step| step.name).collect();
    names.join(", ")
}

pub fn steps(scale: &Scale) -> Vec<Step> {
    let Scale { num, reads } = scale;
    let (half, quarter) = (num / 2, (num / 4).max(1));
    let synced = (num / 1000).clamp(1, 5000);
    let step =
        |name, stage, line: String| Step { name, stage, flags: line.split_whitespace().map(str::to_owned).collect() };
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
    /// The flags of the step; of two of the same name, the later counts on both sides.
    pub fn flags(&self, extra: &[String]) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        for flag in self
            .flags
            .iter()
            .cloned()
            .chain(CONDITIONS.iter().map(|&flag| flag.to_owned()))
            .chain(extra.iter().cloned())
        {
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
        for step in steps(&Scale { num: 1000, reads: 10 }) {
            let mut flags = step.flags(&["--num=77".to_owned()]);
            flags.push("--db=/x".to_owned());
            assert_eq!(Flags::parse(&flags).unwrap().num, 77, "{}", step.name);
            assert_eq!(flags.iter().filter(|flag| flag.starts_with("--num=")).count(), 1);
        }
    }
}
