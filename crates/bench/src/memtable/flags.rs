//! `memtablerep_bench`'s flags that mean something here, under its names and with its defaults, and what it lacks.

use base::{Error, Result};

use super::keys::KeyShape;
use crate::flags::{self, JsonTarget, MemtableList};

/// Keys of a multi-get, at most: more are split by every caller.
const MULTI_GET_MAX: usize = 512;

flags::flags! {
    /// What a run of memtable benchmarks was asked to do.
    pub struct MemtableFlags;

    /// Benchmarks to run, in this order, separated by commas.
    benchmarks: String = "fillrandom".to_owned();
    /// Option strings of memtables, separated by commas. Each benchmark runs on each before the next one begins.
    memtablerep: MemtableList = MemtableList::one("skip_list");
    /// Bytes of a memtable; 0 for as many as the entries need. (There it is a limit that the memtable does not heed.)
    write_buffer_size: usize = 0;
    /// Threads of the benchmarks that read.
    num_threads: usize = 1;
    /// Entries of the fills, and lookups of all threads together.
    num_operations: u32 = 1_000_000;
    /// Passes of each thread in readseq and readreverse.
    num_scans: u32 = 10;
    /// Bytes of a value.
    item_size: usize = 100;
    /// Where random numbers start.
    seed: u32 = 0;
    /// Lookups and seeks of all threads together; negative for num_operations. Not a flag of memtablerep_bench, nor are
    /// those below.
    reads: i64 = -1;
    /// Threads of the fills.
    fill_threads: usize = 1;
    /// Entries that are reserved and inserted together.
    batch_size: usize = 1;
    /// Keys that multireadrandom looks up together.
    multi_get: usize = 16;
    /// Steps after each seek of seekrandom.
    seek_nexts: u32 = 0;
    /// le8, be8, random16, user or url.
    key_shape: KeyShape = KeyShape::Le8;
    /// How often everything is run, by turns; medians are printed.
    rounds: u32 = 1;
    /// A file for JSON lines, one for each round of each benchmark; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
}

impl MemtableFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<MemtableFlags> {
        let flags: MemtableFlags = flags::parse(given)?;
        let refuse = |message: String| Err(Error::invalid_argument(message));
        if [flags.num_threads, flags.fill_threads, flags.batch_size].contains(&0)
            || [flags.num_operations, flags.num_scans, flags.rounds].contains(&0)
        {
            return refuse(
                "--num_operations, --num_scans, --num_threads, --fill_threads, --batch_size and --rounds must be at least 1"
                    .to_owned(),
            );
        }
        if !(1..=MULTI_GET_MAX).contains(&flags.multi_get) {
            return refuse(format!("--multi_get must be 1 to {MULTI_GET_MAX}"));
        }
        Ok(flags)
    }

    /// Lookups of all threads together.
    pub fn lookups(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(u64::from(self.num_operations))
    }

    /// The conditions that a result does not name elsewhere.
    pub fn conditions(&self) -> String {
        format!(
            "--num_operations={} --reads={} --num_scans={} --item_size={} --fill_threads={} --batch_size={} --multi_get={} \
             --seek_nexts={} --seed={}",
            self.num_operations,
            self.lookups(),
            self.num_scans,
            self.item_size,
            self.fill_threads,
            self.batch_size,
            self.multi_get,
            self.seek_nexts,
            self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<MemtableFlags> {
        MemtableFlags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_are_memtablerep_benchs() {
        let flags = MemtableFlags::default();
        assert_eq!((flags.num_operations, flags.num_scans, flags.item_size), (1_000_000, 10, 100));
        assert_eq!((flags.num_threads, flags.seed, flags.benchmarks.as_str()), (1, 0, "fillrandom"));
    }

    #[test]
    fn flags_reach_their_fields() {
        let flags = parse("--memtablerep=skip_list,vector:7 --key_shape=url --reads=5 --json").unwrap();
        assert_eq!(flags.memtablerep.options(), ["skip_list", "vector:7"]);
        assert_eq!((flags.key_shape, flags.lookups(), flags.json.0.as_str()), (KeyShape::Url, 5, "-"));
        assert!(flags.conditions().contains("--reads=5 "));
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--bucket_count=1", "--bucket_count"),
            ("--key_shape=le9", "--key_shape"),
            ("--memtablerep=a,,b", "--memtablerep"),
            ("--num_threads=0", "--num_threads"),
            ("--multi_get=513", "--multi_get"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }
}
