//! Flags of db_bench with a meaning here, with its names and defaults.

use std::ffi::OsString;
use std::path::Path;

use base::{Error, Result};

use super::flags;

flags! {
    /// Runs benchmarks with db_bench's names and flags. Every option listed by `spillway options` is a flag too.
    #[command(name = "spillway bench db", after_help = "Example:
  spillway bench db --db=/path/on/the/disk --benchmarks=fillrandom,readrandom --num=1000000")]
    pub struct Flags;

    /// Benchmarks to run, in this order, separated by commas.
    benchmarks: String = "fillseq,readseq,readrandom".to_owned();
    /// Directory of the database. Benchmarks on a new database destroy an existing one there. By default as in db_bench: dbbench
    /// in $TEST_TMPDIR, or in the user's spillwaytest-UID under the system's folder for temporary files.
    db: String = String::new();
    /// Keeps the existing database. Benchmarks on a new database fail.
    use_existing_db: bool = false;
    /// Number of keys; a fill writes as many, per thread.
    num: u64 = 1_000_000;
    /// Reads per thread; negative: `num`.
    reads: i64 = -1;
    /// Writes per thread; negative: `num`.
    writes: i64 = -1;
    /// Number of threads.
    threads: usize = 1;
    /// Seed of random numbers; 0: from the clock.
    seed: u64 = 0;
    /// Seconds to run random benchmarks, instead of a number of operations; 0: no time limit.
    duration: u64 = 0;
    /// Times every operation and prints percentiles.
    histogram: bool = false;
    /// File to write results to, as JSON lines. Not a flag of db_bench.
    json: Option<std::path::PathBuf>;
    /// Prints the database's counters at the end.
    statistics: bool = false;
    /// Bytes of a key.
    key_size: usize = 16;
    /// Bytes of a value.
    value_size: usize = 100;
    /// Compressed size of values as a fraction of their size, 0 to 1.
    compression_ratio: f64 = 0.5;
    /// Puts in a write batch; keys in a MultiGet.
    batch_size: u64 = 1;
    /// Steps after each seek.
    seek_nexts: u64 = 0;
    /// Steps backward after each seek.
    reverse_iterator: bool = false;
    /// Percentage of reads in readrandomwriterandom.
    readwritepercent: u64 = 90;
    /// Bytes per second of each filling thread, and of the writer of readwhilewriting and seekrandomwhilewriting; 0: no limit.
    benchmark_write_rate_limit: u64 = 0;
    /// Syncs the log at every write.
    sync: bool = false;
    /// Writes no log.
    disable_wal: bool = false;
    /// Verifies the checksum of every block read from a file.
    verify_checksum: bool = true;
    /// Memtable, as an option string: skip_list, trie, sorted_hash or vector.
    memtablerep: String = "skip_list".to_owned();
    /// Compression: none, snappy, zlib, lz4, lz4hc or zstd.
    compression_type: String = "snappy".to_owned();
    /// Bytes of the block cache; 0: no cache.
    cache_size: usize = 8 << 20;
    /// Bits of bloom filter per key; 0 or negative: no filter.
    bloom_bits: i32 = -1;
    /// Option of the engine, NAME=VALUE; `--NAME=VALUE` is the same.
    option: Vec<String>;
}

impl Flags {
    /// # Errors
    /// As [`parse`](super::parse).
    pub fn parse(given: &[String]) -> Result<Flags> {
        let flags: Flags = super::parse(given).map_err(|e| super::refusal::<Flags>(&e))?;
        flags.check()?;
        Ok(flags)
    }

    /// # Errors
    /// `InvalidArgument`: a flag's value is not allowed; the message names the flag.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid_argument(message));
        if self.num == 0 || self.threads == 0 || self.batch_size == 0 {
            return refuse("--num, --threads and --batch_size must be at least 1");
        }
        if self.key_size < 8 {
            return refuse("--key_size must be at least 8, the bytes of a key's number");
        }
        if !(0.0..=1.0).contains(&self.compression_ratio) {
            return refuse("--compression_ratio must lie between 0 and 1");
        }
        if self.readwritepercent > 100 {
            return refuse("--readwritepercent is at most 100");
        }
        Ok(())
    }

    /// These flags with a folder for the database, if none is given.
    pub fn with_folder(&self) -> Flags {
        let db = if self.db.is_empty() { own_folder(std::env::var_os("TEST_TMPDIR")) } else { self.db.clone() };
        Flags { db, ..self.clone() }
    }

    /// Reads of a thread.
    pub fn reads_per_thread(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(self.num)
    }

    /// Operations of a thread with reads and writes: the larger of `--reads` and `--writes`, as in db_bench.
    pub fn mixed_per_thread(&self) -> u64 {
        u64::try_from(self.reads.max(self.writes)).unwrap_or(self.num)
    }

    /// Writes of a thread.
    pub fn writes_per_thread(&self) -> u64 {
        u64::try_from(self.writes).unwrap_or(self.num)
    }
}

/// The folder of a database for which no flag names one, where db_bench has it.
fn own_folder(test_tmpdir: Option<OsString>) -> String {
    let given = test_tmpdir.filter(|dir| !dir.is_empty());
    let of_user = || std::env::temp_dir().join(format!("spillwaytest-{}", rustix::process::geteuid().as_raw()));
    let dir = given.map_or_else(of_user, |dir| Path::new(&dir).to_owned());
    dir.join("dbbench").to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Flags> {
        Flags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn flags_are_read_as_gflags_reads_them() {
        let flags = parse("--db=/x -num=7 --reads 5 --writes -1 --histogram --noverify_checksum -sync=1").unwrap();
        assert_eq!((flags.num, flags.reads_per_thread(), flags.writes_per_thread()), (7, 5, 7));
        assert_eq!(
            (flags.mixed_per_thread(), parse("--db=/x --reads=5 --writes=9").unwrap().mixed_per_thread()),
            (5, 9)
        );
        assert!(flags.histogram && !flags.verify_checksum && flags.sync);
        let flags = parse("--db=/x --histogram true -verify_checksum false --sync").unwrap();
        assert!(flags.histogram && !flags.verify_checksum && flags.sync);
        assert!(parse("--db=/x true").is_err(), "a value of nothing");
        let flags = parse("--db=/x --block_size=7 -disable_auto_compactions").unwrap();
        assert_eq!(flags.option, ["block_size=7", "disable_auto_compactions=true"]);
    }

    #[test]
    fn a_folder_is_chosen_as_db_bench_chooses_it() {
        assert_eq!(parse("--db=/x --num=1").unwrap().with_folder().db, "/x");
        assert_eq!(own_folder(Some("/tests".into())), "/tests/dbbench");
        let own = own_folder(None);
        assert!(own.contains("/spillwaytest-") && own.ends_with("/dbbench"), "{own}");
        assert_eq!(own_folder(Some("".into())), own, "an empty name is none");
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--db=/x --num=many", "--num"),
            ("--db=/x --key_size=7", "--key_size"),
            ("--db=/x 12", "12"),
            ("--db=/x --sync=maybe", "--sync"),
            ("--db=/x --reads", "--reads"),
            ("--help", "--benchmarks"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }
}
