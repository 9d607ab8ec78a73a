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
    /// Memtables as option strings, separated by commas: skip_list, trie, sorted_hash, vector:1000; also hashskiplist and
    /// hashlinklist, which are sorted_hash here. Each benchmark runs on all memtables before the next benchmark begins.
    #[arg(default_value = "skip_list")]
    memtablerep: Vec<String>;
    /// Buckets of hashskiplist and hashlinklist.
    bucket_count: u64 = 1_000_000;
    /// Threads of readrandom and readwrite. One of readwrite's writes.
    num_threads: usize = 1;
    /// Entries of a fill; also the number of lookups, see --reads.
    num_operations: u32 = 1_000_000;
    /// Passes of readseq and readreverse over all entries.
    num_scans: u32 = 10;
    /// Bytes of a value.
    item_size: usize = 100;
    /// Bytes of a write buffer. No effect: every memtable has room for all entries, as in memtablerep_bench.
    write_buffer_size: Option<u64>;
    /// Bytes of a huge page. No effect: memtables of 4 MiB and more take transparent huge pages by themselves.
    huge_page_tlb_size: Option<u64>;
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
        if [self.num_operations, self.num_scans, self.rounds].contains(&0) || self.num_threads == 0 {
            let message = "--num_operations, --num_scans, --num_threads and --rounds must be at least 1";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// The option strings.
    pub fn memtables(&self) -> Vec<&str> {
        self.memtablerep.iter().flat_map(|text| split(text)).collect()
    }

    /// memtablerep_bench's name of a memtable as an option string.
    pub fn option_of(&self, memtable: &str) -> String {
        match memtable {
            "hashskiplist" => format!("hash_skiplist:{}", self.bucket_count),
            "hashlinklist" => format!("hash_linkedlist:{}", self.bucket_count),
            other => other.to_owned(),
        }
    }

    /// The flags given that change nothing.
    pub fn without_effect(&self) -> Vec<&'static str> {
        let given = [
            ("--write_buffer_size", self.write_buffer_size.is_some()),
            ("--huge_page_tlb_size", self.huge_page_tlb_size.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }

    pub fn lookups(&self) -> u64 {
        u64::try_from(self.reads).unwrap_or(u64::from(self.num_operations))
    }

    /// Most writes of readwrite.
    pub fn writes_max(&self) -> u64 {
        2 * u64::from(self.num_operations)
    }

    /// The conditions of a result, apart from its own fields.
    pub fn conditions(&self) -> String {
        let MemtableFlags { num_operations, num_scans, item_size, num_threads, .. } = self;
        let reads = self.lookups();
        let threads = if *num_threads > 1 { format!(" --num_threads={num_threads}") } else { String::new() };
        format!(
            "--num_operations={num_operations} --reads={reads} --num_scans={num_scans} --item_size={item_size}{threads}"
        )
    }
}

/// The parts between commas outside braces.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<MemtableFlags> {
        let given: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let flags: MemtableFlags =
            crate::flags::parse(&given).map_err(|e| crate::flags::refusal::<MemtableFlags>(&e))?;
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
        let flags =
            parse(r#"--memtablerep=skip_list,x:{"y":1,"z":2},vector:7 -memtablerep=y --key_shape=url --reads=5"#);
        let flags = flags.unwrap();
        assert_eq!(flags.memtables(), ["skip_list", r#"x:{"y":1,"z":2}"#, "vector:7", "y"]);
        assert_eq!((flags.key_shape, flags.lookups()), (KeyShape::Url, 5));
        assert!(flags.conditions().contains("--reads=5 "));
    }

    #[test]
    fn hashed_memtables_have_the_buckets_of_the_flag() {
        let flags = parse("-memtablerep=hashskiplist,hashlinklist,skiplist -bucket_count=50").unwrap();
        let options: Vec<String> = flags.memtables().into_iter().map(|name| flags.option_of(name)).collect();
        assert_eq!(options, ["hash_skiplist:50", "hash_linkedlist:50", "skiplist"]);
        assert_eq!(parse("").unwrap().option_of("hashskiplist"), "hash_skiplist:1000000");
    }

    #[test]
    fn what_cannot_be_honoured_is_an_error_that_names_it() {
        for (line, named) in [
            ("--hash_function_count=1", "--hash_function_count"),
            ("--key_shape=le9", "--key_shape"),
            ("--rounds=0", "--rounds"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(named), "{line}: {message}");
        }
        let message = parse("--hash_function_count=1").unwrap_err().to_string();
        assert!(message.contains("Known are --benchmarks, --memtablerep, --bucket_count, "), "{message}");
    }
}
