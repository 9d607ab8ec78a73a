//! db_bench's flags that mean something here, under its names and with its defaults.

use base::{Error, Result};

use super::{self as table, JsonTarget, flags};

flags! {
    /// What a run of benchmarks was asked to do.
    pub struct Flags;

    /// Benchmarks to run, in this order, separated by commas.
    benchmarks: String = "fillseq,readseq,readrandom".to_owned();
    /// The database's directory. Benchmarks that fill a new database destroy the one that is there.
    db: String = String::new();
    /// The folder of the log; empty for the database's own.
    wal_dir: String = String::new();
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
    /// Times every operation and prints the distribution.
    histogram: bool = false;
    /// A file for JSON lines; alone or `-` for standard output (text then goes to standard error). Not a flag of db_bench.
    json: JsonTarget = JsonTarget::default();
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
    /// There is one MultiGet here, and it is batched: false is refused.
    multiread_batched: bool = true;
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
    /// Bytes of a memtable.
    write_buffer_size: usize = 64 << 20;
    /// Memtables, the mutable one included, at which writers wait.
    max_write_buffer_number: usize = 2;
    /// Sealed memtables that are flushed together.
    min_write_buffer_number_to_merge: usize = 1;
    /// Lets writers insert at the same time.
    allow_concurrent_memtable_write: bool = true;
    /// Bits of the memtable's filter, as a share of its bytes.
    memtable_bloom_size_ratio: f64 = 0.0;
    /// Puts whole keys into the memtable's filter.
    memtable_whole_key_filtering: bool = false;
    /// Tables in level 0 at which they are compacted.
    level0_file_num_compaction_trigger: i32 = 4;
    /// Tables in level 0 at which writers are slowed down.
    level0_slowdown_writes_trigger: i32 = 20;
    /// Tables in level 0 at which writers stop.
    level0_stop_writes_trigger: i32 = 36;
    /// Bytes of compaction debt at which writers are slowed down.
    soft_pending_compaction_bytes_limit: u64 = 64 << 30;
    /// Bytes of compaction debt at which writers stop.
    hard_pending_compaction_bytes_limit: u64 = 128 << 30;
    /// Bytes per second that slowed writers get.
    delayed_write_rate: u64 = 8 << 20;
    /// Bytes of a table in level 1.
    target_file_size_base: u64 = 64 << 20;
    /// Factor by which tables grow from level to level.
    target_file_size_multiplier: u32 = 1;
    /// Bytes of level 1.
    max_bytes_for_level_base: u64 = 256 << 20;
    /// Factor by which levels grow.
    max_bytes_for_level_multiplier: f64 = 10.0;
    /// Derives the levels' sizes from the last level's.
    level_compaction_dynamic_level_bytes: bool = false;
    /// Bytes that one compaction takes in at most; 0 for 25 tables.
    max_compaction_bytes: u64 = 0;
    /// Levels.
    num_levels: usize = 7;
    /// Leaves compacting to `compact`.
    disable_auto_compactions: bool = false;
    /// Threads for flushes and compactions together.
    max_background_jobs: usize = 2;
    /// Threads that one compaction is split over.
    subcompactions: usize = 1;
    /// Bytes of log at which the oldest is flushed away; 0 for four times the memtables.
    max_total_wal_size: u64 = 0;
    /// Bytes of a table between background syncs; 0 for none.
    bytes_per_sync: u64 = 0;
    /// Table files kept open; -1 for all.
    open_files: i32 = -1;
    /// Checks tables at open, and stops writing at the first damage.
    paranoid_checks: bool = true;
    /// none, snappy, zlib, lz4, lz4hc or zstd.
    compression_type: String = "snappy".to_owned();
    /// The compressor's level; 32767 for its default.
    compression_level: i32 = 32767;
    /// Bytes of the block cache; 0 for no cache.
    cache_size: usize = 8 << 20;
    /// Keeps index and filter blocks in the cache.
    cache_index_and_filter_blocks: bool = false;
    /// With that, keeps those of level 0 from being evicted.
    pin_l0_filter_and_index_blocks_in_cache: bool = false;
    /// Bits of bloom filter per key; 0 or negative for no filter.
    bloom_bits: i32 = -1;
    /// Writes no filters for the last level.
    optimize_filters_for_hits: bool = false;
    /// Bytes of a data block.
    block_size: usize = 4096;
    /// Entries from one full key to the next in a data block.
    block_restart_interval: usize = 16;
    /// The same in index blocks.
    index_block_restart_interval: usize = 1;
    /// Two-level indexes.
    partition_index: bool = false;
    /// Keeps each block's first key in the index.
    index_with_first_key: bool = false;
    /// Hash indexes in data blocks.
    use_data_block_hash_index: bool = false;
    /// Checksum of blocks: 0 none, 1 crc32c, 2 xxh32, 3 xxh64, 4 XXH3.
    checksum_type: u8 = 4;
    /// Version of the table format.
    format_version: u32 = 5;
}

impl Flags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<Flags> {
        let flags: Flags = table::parse(given)?;
        flags.check()?;
        Ok(flags)
    }

    fn check(&self) -> Result<()> {
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
        if !self.multiread_batched {
            return refuse("--multiread_batched=false: there is no other MultiGet here");
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
        let flags = parse("--db=/x -num=7 --reads 5 --histogram --noverify_checksum -sync=1").unwrap();
        assert_eq!((flags.num, flags.reads_per_thread(), flags.writes_per_thread()), (7, 5, 7));
        assert_eq!(
            (flags.mixed_per_thread(), parse("--db=/x --reads=5 --writes=9").unwrap().mixed_per_thread()),
            (5, 9)
        );
        assert!(flags.histogram && !flags.verify_checksum && flags.sync);
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--db=/x --row_cache_size=1", "--row_cache_size"),
            ("--db=/x --num=many", "--num"),
            ("--db=/x --nonum", "--nonum"),
            ("--db=/x --key_size=7", "--key_size"),
            ("--db=/x 12", "12"),
            ("--num=1", "--db"),
            ("--db=/x --multiread_batched=false", "--multiread_batched"),
            ("--db=/x --reads", "--reads"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }

    #[test]
    fn the_help_names_every_default() {
        assert!(<Flags as crate::flags::FlagSet>::help().contains("--level0_slowdown_writes_trigger=20\n"));
    }
}
