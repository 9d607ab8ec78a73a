//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::peers::Kind;
use crate::spec::Set;

const EXAMPLES: &str = "\
Examples:
  redb's workloads on all engines, three rounds (some 10 minutes):
    bench-peers --rocksdb target/rocksdb-11.8.1/librocksdbjni-linux64.so --db /path/on/the/disk --json peers.jsonl
  YCSB on 10 million entries with values of 1,024 bytes and 1 GiB of memory (some 8 minutes; 15 GB on the disk at a time):
    bench-peers --set ycsb --num 10000000 --value_size 1024 --rounds 1 --rocksdb LIB --db /path/on/the/disk --json ycsb.jsonl
  LMDB and Spillway only, small:
    bench-peers --peers spillway,lmdb --num 100000 --rounds 1
Ratios are relative to the first of --peers.";

/// Compares Spillway with other engines: runs the same workloads on each, by turns, in equal memory, and prints medians and ratios.
#[derive(Clone, Debug, Parser)]
#[command(name = "bench-peers", version, rename_all = "snake_case", after_help = EXAMPLES)]
pub struct Flags {
    /// Workloads.
    #[arg(long, value_enum, default_value_t = Set::Suite)]
    pub set: Set,
    /// Engines, separated by commas; all if not given. RocksDB takes part if --rocksdb names its library.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub peers: Vec<Kind>,
    /// RocksDB's library.
    #[arg(long)]
    pub rocksdb: Option<PathBuf>,
    /// Entries loaded.
    #[arg(long, default_value_t = 1_000_000)]
    pub num: u64,
    /// Bytes of a value. A key has 24.
    #[arg(long, default_value_t = 150)]
    pub value_size: usize,
    /// Reads of the suite, operations of each YCSB workload, all threads together. A fourth of it in range reads, a tenth in YCSB E.
    #[arg(long, default_value_t = 500_000)]
    pub ops: u64,
    /// Durable single writes of the suite.
    #[arg(long, default_value_t = 10_000)]
    pub writes: u64,
    /// Threads of YCSB.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Seconds after which a YCSB workload ends, whatever is done.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Writes of YCSB wait for the disk.
    #[arg(long)]
    pub durable: bool,
    /// MiB for everything a process holds, cached pages of files included. The caches of the engines are parts of it.
    #[arg(long, default_value_t = 1024)]
    pub memory_mib: u64,
    /// Number of runs with each engine. The first engine to run changes from round to round.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Seed of random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the databases, on the file system to measure. The databases are deleted at the end.
    #[arg(long, default_value = "bench-peers.work")]
    pub db: PathBuf,
    /// File to write results to, as JSON lines.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

impl Flags {
    /// # Errors
    /// `InvalidArgument`: a number is too small.
    pub fn check(&self) -> base::Result<()> {
        let wrong = |message: &str| Err(base::Error::invalid_argument(message));
        let counts = [self.num, self.ops, self.writes, self.threads as u64, self.seconds, self.rounds.into()];
        if counts.contains(&0) {
            return wrong("no number may be 0");
        }
        if self.ops < 20 * self.threads as u64 {
            return wrong("--ops must be at least 20 for each thread");
        }
        if self.value_size < crate::entries::STAMP_BYTES {
            return wrong("--value_size must be at least 8: values begin with a stamp of their key");
        }
        if self.memory_mib < 64 {
            return wrong("--memory_mib must be at least 64");
        }
        let needs_library = |kind: &Kind| matches!(kind, Kind::Rocksdb | Kind::RocksdbMapped);
        if self.rocksdb.is_none() && self.peers.iter().any(needs_library) {
            return wrong("RocksDB needs its library: --rocksdb PATH (`scripts/setup.sh compare` fetches one)");
        }
        Ok(())
    }

    /// The engines to run, and whether RocksDB was left out.
    pub fn chosen(&self) -> (Vec<Kind>, bool) {
        if !self.peers.is_empty() {
            return (self.peers.clone(), false);
        }
        let has_library = self.rocksdb.is_some();
        let takes_part = |kind: &&Kind| has_library || !matches!(kind, Kind::Rocksdb | Kind::RocksdbMapped);
        (Kind::value_variants().iter().filter(takes_part).copied().collect(), !has_library)
    }

    /// The conditions of a result, apart from its own fields.
    pub fn conditions(&self) -> String {
        let common = format!(
            "--num={} --value_size={} --ops={} --memory_mib={} --seed={}",
            self.num, self.value_size, self.ops, self.memory_mib, self.seed
        );
        match self.set {
            Set::Suite => format!("{common} --writes={}", self.writes),
            Set::Ycsb => {
                format!("{common} --threads={} --seconds={} --durable={}", self.threads, self.seconds, self.durable)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(more: &[&str]) -> Flags {
        Flags::try_parse_from(["x"].iter().chain(more)).unwrap()
    }

    #[test]
    fn engines_are_chosen_by_name_and_rocksdb_by_its_library() {
        assert_eq!(flags(&["--peers=lmdb,spillway"]).chosen(), (vec![Kind::Lmdb, Kind::Spillway], false));
        let (without, left_out) = flags(&[]).chosen();
        assert!(left_out && without.len() == 5 && without[0] == Kind::Spillway);
        assert_eq!(flags(&["--rocksdb=/x"]).chosen().0.len(), 7);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for wrong in ["--num=0", "--value_size=7", "--memory_mib=1", "--ops=30", "--peers=rocksdb"] {
            assert!(flags(&[wrong]).check().is_err(), "{wrong}");
        }
        flags(&[]).check().unwrap();
    }
}
