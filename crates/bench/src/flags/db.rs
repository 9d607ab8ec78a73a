//! db_bench's flags that mean something here, under its names and with its defaults.

use base::{Error, Result};

use super::flags;

flags! {
    /// Runs benchmarks under db_bench's names and flags. Every option that `spillway options` lists is a flag too.
    pub struct Flags;

    /// Benchmarks to run, in this order, separated by commas.
    benchmarks: String = "fillseq,readseq,readrandom".to_owned();
    /// The database's directory. Benchmarks that fill a new database destroy the one that is there.
    db: String = String::new();
    /// Keeps the database that is there. Benchmarks that want a new one fail.
    use_existing_db: bool = false;
    /// Keys that writes and reads are spread over, and how many a fill writes, per thread.
    num: u64 = 1_000_000;
    /// Reads per thread; negative for `num`.
    reads: i64 = -1;
    /// Writes per thread; negative for `num`.
    writes: i64 = -1;
    /// Threads.
    threads: usize = 1;
    /// Where random numbers start; 0 takes the clock.
    seed: u64 = 0;
    /// Seconds that random benchmarks run for, instead of a number of operations; 0 for the number.
    duration: u64 = 0;
    /// Times every operation and prints percentiles.
    histogram: bool = false;
    /// A file for JSON lines. Not a flag of db_bench.
    json: Option<std::path::PathBuf>;
    /// Prints the database's counters at the end.
    statistics: bool = false;
    /// Bytes of a key.
    key_size: usize = 16;
    /// Bytes of a value.
    value_size: usize = 100;
    /// What values shrink to when compressed.
    compression_ratio: f64 = 0.5;
    /// Puts in a write batch, and keys in a MultiGet.
    batch_size: u64 = 1;
    /// Steps after each seek.
    seek_nexts: u64 = 0;
    /// Steps backward after each seek.
    reverse_iterator: bool = false;
    /// Percent of reads in readrandomwriterandom.
    readwritepercent: u64 = 90;
    /// Bytes per second of the writer beside readwhilewriting and seekrandomwhilewriting, and of each filling thread; 0 for no limit.
    benchmark_write_rate_limit: u64 = 0;
    /// Syncs the log at every write.
    sync: bool = false;
    /// Writes no log.
    disable_wal: bool = false;
    /// Verifies the checksum of every block read from a file.
    verify_checksum: bool = true;
    /// The memtable's representation.
    memtablerep: String = "skip_list".to_owned();
    /// none, snappy, zlib, lz4, lz4hc or zstd.
    compression_type: String = "snappy".to_owned();
    /// Bytes of the block cache; 0 for no cache.
    cache_size: usize = 8 << 20;
    /// Bits of bloom filter per key; 0 or negative for no filter.
    bloom_bits: i32 = -1;
    /// An option of the engine, NAME=VALUE; `--NAME=VALUE` says the same.
    option: Vec<String>;
}

impl Flags {
    /// # Errors
    /// As [`parse`](super::parse).
    pub fn parse(given: &[String]) -> Result<Flags> {
        let flags: Flags = super::parse(given).map_err(|e| super::refusal(&e))?;
        flags.check()?;
        Ok(flags)
    }

    /// # Errors
    /// `InvalidArgument`: the flag whose value does not fit.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid_argument(message));
        if self.db.is_empty() {
            return refuse("--db=DIR is missing");
        }
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

    /// Reads of a thread.
    pub fn reads_per_thread(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(self.num)
    }

    /// Reads and writes of a thread that does both: as db_bench, the larger number of those given.
    pub fn mixed_per_thread(&self) -> u64 {
        u64::try_from(self.reads.max(self.writes)).unwrap_or(self.num)
    }

    /// Writes of a thread.
    pub fn writes_per_thread(&self) -> u64 {
        u64::try_from(self.writes).unwrap_or(self.num)
    }
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
        let flags = parse("--db=/x --block_size=7 -disable_auto_compactions").unwrap();
        assert_eq!(flags.option, ["block_size=7", "disable_auto_compactions=true"]);
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--db=/x --num=many", "--num"),
            ("--db=/x --key_size=7", "--key_size"),
            ("--db=/x 12", "12"),
            ("--num=1", "--db"),
            ("--db=/x --sync=maybe", "--sync"),
            ("--db=/x --reads", "--reads"),
            ("--help", "--benchmarks"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }
}
