//! Flags of `memtablerep_bench` with a meaning here, with its names and defaults, and some of our own.

use std::path::PathBuf;

use base::{Error, Result};

use super::keys::KeyShape;
use crate::flags::flags;

flags! {
    /// Runs benchmarks on memtables alone, with memtablerep_bench's names and flags.
    #[command(name = "spillway bench memtable", after_help = "Example:
  spillway bench memtable --benchmarks=fillrandom,readrandom --memtablerep=skip_list,trie")]
    pub struct MemtableFlags;

    /// Benchmarks to run, in this order, separated by commas.
    benchmarks: String = "fillrandom".to_owned();
    /// Memtables as option strings, separated by commas: skip_list, trie, sorted_hash, vector:1000. One with braces needs a flag of
    /// its own. Each benchmark runs on all memtables before the next benchmark begins.
    #[arg(default_value = "skip_list")]
    memtablerep: Vec<String>;
    /// Entries of a fill; also the number of lookups, see --reads.
    num_operations: u32 = 1_000_000;
    /// Passes of readseq and readreverse over all entries.
    num_scans: u32 = 10;
    /// Bytes of a value.
    item_size: usize = 100;
    /// Lookups and seeks; negative: num_operations. memtablerep_bench has neither this flag nor the following ones.
    reads: i64 = -1;
    /// Shape of keys.
    #[arg(value_enum)]
    key_shape: KeyShape = KeyShape::Le8;
    /// Number of rounds; a table of medians follows the results.
    rounds: u32 = 1;
    /// File to write results to, as JSON lines: one for each benchmark, memtable and round.
    json: Option<PathBuf>;
}

impl MemtableFlags {
    /// # Errors
    /// `InvalidArgument`: a flag's value is not allowed; the message names the flag.
    pub fn check(&self) -> Result<()> {
        if [self.num_operations, self.num_scans, self.rounds].contains(&0) {
            return Err(Error::invalid_argument("--num_operations, --num_scans and --rounds must be at least 1"));
        }
        Ok(())
    }

    /// The option strings.
    pub fn memtables(&self) -> Vec<&str> {
        let given = self.memtablerep.iter().map(String::as_str);
        given.flat_map(|text| text.split(|letter| letter == ',' && !text.contains('{'))).collect()
    }

    pub fn lookups(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(u64::from(self.num_operations))
    }

    /// The conditions of a result, apart from its own fields.
    pub fn conditions(&self) -> String {
        let MemtableFlags { num_operations, num_scans, item_size, .. } = self;
        let reads = self.lookups();
        format!("--num_operations={num_operations} --reads={reads} --num_scans={num_scans} --item_size={item_size}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<MemtableFlags> {
        let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let flags: MemtableFlags = crate::flags::parse(&given).map_err(|e| Error::invalid_argument(e.to_string()))?;
        flags.check().map(|()| flags)
    }

    #[test]
    fn defaults_are_memtablerep_benchs() {
        let flags = parse("").unwrap();
        assert_eq!((flags.num_operations, flags.num_scans, flags.item_size), (1_000_000, 10, 100));
        assert_eq!((flags.memtables(), flags.benchmarks.as_str()), (vec!["skip_list"], "fillrandom"));
    }

    #[test]
    fn flags_reach_their_fields() {
        let flags = parse(r#"--memtablerep=skip_list,vector:7 -memtablerep=x:{"y":1,"z":2} --key_shape=url --reads=5"#);
        let flags = flags.unwrap();
        assert_eq!(flags.memtables(), ["skip_list", "vector:7", r#"x:{"y":1,"z":2}"#]);
        assert_eq!((flags.key_shape, flags.lookups()), (KeyShape::Url, 5));
        assert!(flags.conditions().contains("--reads=5 "));
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in
            [("--bucket_count=1", "--bucket_count"), ("--key_shape=le9", "--key_shape"), ("--rounds=0", "--rounds")]
        {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
    }
}
