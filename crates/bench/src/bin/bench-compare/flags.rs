//! The command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bench::beside::Plan;
use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  All workloads on RocksDB's release library and Spillway, three rounds:
    bench-compare --lib rocksdb=target/rocksdb-11.8.1/librocksdbjni-linux64.so --lib spillway=target/release/librocksdb.so \\
        --db /path/on/the/disk --json bench/results/NAME.jsonl
  One library with two memtables, two workloads only:
    bench-compare --lib list=LIB --lib trie=LIB --options 'trie=memtable_factory=trie' --workloads fillrandom,readrandom
  Two builds and RocksDB, with a limit of 64 MiB a second for flushes and compactions:
    bench-compare --lib rocksdb=LIB --lib before=LIB --lib after=LIB --options all=rate_limiter_bytes_per_sec=67108864
Ratios are relative to the first library. Workloads:
";

/// Compares libraries with RocksDB's C API: runs the same workloads on each, by turns, and prints medians and ratios.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench-compare", version, rename_all = "snake_case", after_help = help())]
pub struct Flags {
    /// Library, as NAME=PATH; once for each library. One file may have several names, with different options.
    #[arg(long, required = true)]
    pub lib: Vec<Named>,
    /// Workloads, separated by commas; all if not given.
    #[arg(long, value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// Entries written by a fill.
    #[arg(long, default_value_t = 1_000_000)]
    pub num: u64,
    /// Lookups, seeks and deletions of a workload, all threads together; a fifth of --num if not given.
    #[arg(long)]
    pub reads: Option<u64>,
    /// Percentage of reads in readrandomwriterandom.
    #[arg(long, default_value_t = READS_PERCENT)]
    pub readwritepercent: u64,
    /// Compacts the filled databases, so that all libraries start from the same levels. Without it they start with as many tables
    /// in level 0 as their fills happened to leave, and compact at other times.
    #[arg(long)]
    pub compacted: bool,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    pub value_size: usize,
    /// Bytes of a key.
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Number of threads, except in workloads with a fixed number.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Number of runs of each workload with each library. The first library to run changes from round to round.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Seed of random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the databases, on the file system to measure. The databases are deleted at the end.
    #[arg(long, default_value = "bench-compare.work")]
    pub db: PathBuf,
    /// Options in addition to the usual ones, as NAME=OPTIONS, where OPTIONS is RocksDB's option string. The name `all` stands for
    /// every library.
    #[arg(long)]
    pub options: Vec<Named>,
    /// Bytes of the block cache.
    #[arg(long, default_value_t = 256 << 20)]
    pub cache_bytes: u64,
    /// Bytes of a memtable. There may be four.
    #[arg(long, default_value_t = 64 << 20)]
    pub write_buffer_size: u64,
    /// Writes per second in the workload `ingest`, all writers together.
    #[arg(long, default_value_t = 20_000)]
    pub ingest_rate: u64,
    /// Seconds of a run of the workload `ingest`.
    #[arg(long, default_value_t = 5)]
    pub ingest_seconds: u64,
    /// Milliseconds from one ingest to the next, in the workload `ingest`.
    #[arg(long, default_value_t = 500)]
    pub ingest_interval_ms: u64,
    /// File to write results to, as JSON lines.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// db_bench's percentage of reads.
const READS_PERCENT: u64 = 90;

/// The name for every library in `--options`.
pub const ALL: &str = "all";

/// `NAME=VALUE`. Names are used as names of folders too.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    pub name: String,
    pub value: String,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-+".contains(letter);
        match text.split_once('=') {
            Some((name, value))
                if !value.is_empty() && name.chars().all(allowed) && name.chars().any(char::is_alphanumeric) =>
            {
                Ok(Named { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected NAME=VALUE, the name of letters, digits, '.', '_', '-' and '+'".to_owned()),
        }
    }
}

fn help() -> String {
    format!("{EXAMPLES}{}", crate::suite::help())
}

impl Flags {
    /// # Errors
    /// `InvalidArgument`: two libraries with one name, options for an unknown library, or a number of 0.
    pub fn check(&self) -> base::Result<()> {
        let wrong = |message: String| Err(base::Error::invalid_argument(message));
        let mut names = BTreeSet::from([ALL]);
        if let Some(lib) = self.lib.iter().find(|lib| !names.insert(&lib.name)) {
            return wrong(format!(
                "--lib {} is given twice, or is named all; a file may be given again under a second name",
                lib.name
            ));
        }
        if let Some(given) = self.options.iter().find(|given| !names.contains(given.name.as_str())) {
            return wrong(format!("--options {}: no --lib has this name", given.name));
        }
        let (rate, seconds) = (self.ingest_rate, self.ingest_seconds);
        let counts = [self.num, self.threads as u64, self.rounds.into(), rate, seconds, self.ingest_interval_ms];
        if self.key_size < 8 || counts.contains(&0) {
            return wrong("--key_size must be at least 8, and no number may be 0".to_owned());
        }
        if self.readwritepercent > 100 {
            return wrong(format!("--readwritepercent={}: it is at most 100", self.readwritepercent));
        }
        Ok(())
    }

    /// The conditions of a result, apart from its own fields. The last two flags only where they are not the default.
    pub fn conditions(&self) -> String {
        let percent = match self.readwritepercent {
            READS_PERCENT => String::new(),
            percent => format!(" --readwritepercent={percent}"),
        };
        let compacted = if self.compacted { " --compacted" } else { "" };
        format!(
            "--num={} --reads={} --key_size={} --value_size={} --threads={} --seed={} --ingest_rate={} --ingest_interval_ms={}{percent}{compacted}",
            self.num,
            self.reads(),
            self.key_size,
            self.value_size,
            self.threads,
            self.seed,
            self.ingest_rate,
            self.ingest_interval_ms,
        )
    }

    /// The load of the workload `ingest`.
    pub fn plan(&self) -> Plan {
        Plan {
            writers: 1,
            rate: self.ingest_rate,
            warmup: Duration::ZERO,
            measured: Duration::from_secs(self.ingest_seconds),
            interval: Duration::from_millis(self.ingest_interval_ms),
        }
    }

    pub fn reads(&self) -> u64 {
        self.reads.unwrap_or(self.num / 5).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(more: &[&str]) -> Flags {
        Flags::try_parse_from(["x", "--lib=a=/a", "--lib", "b=/b=c"].iter().chain(more)).unwrap()
    }

    #[test]
    fn libraries_and_options_are_named() {
        let given = flags(&["--options=b=x=1;y={z=2}", "--workloads=fillseq,readseq", "--num=50"]);
        let b = |value: &str| Named { name: "b".to_owned(), value: value.to_owned() };
        assert_eq!((&given.lib[1], &given.options[0]), (&b("/b=c"), &b("x=1;y={z=2}")));
        assert_eq!((given.workloads.len(), given.reads()), (2, 10));
        given.check().unwrap();
        assert!(given.conditions().ends_with("--ingest_interval_ms=500"));
        let given = flags(&["--readwritepercent=50", "--compacted"]);
        assert!(given.conditions().ends_with("--ingest_interval_ms=500 --readwritepercent=50 --compacted"));
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for wrong in [
            ["--lib=a=/c"],
            ["--lib=all=/c"],
            ["--options=c=x=1"],
            ["--num=0"],
            ["--key_size=7"],
            ["--readwritepercent=101"],
        ] {
            assert!(flags(&wrong).check().is_err(), "{wrong:?}");
        }
        for name in ["", "=/x", "../a=/x", "a"] {
            assert!(Named::from_str(name).is_err(), "{name:?}");
        }
    }
}
