//! What `flush` can be told.

use base::{Error, Result};

use super::Way;
use crate::filling::{Memtable, ValuesIn};
use crate::flags::choices::{Choices, Named, Numbers};
use crate::flags::{self, JsonTarget};

impl Named for Way {
    const ALL: &'static [(&'static str, Way)] = &[
        ("rewrite", Way::Rewrite),
        ("convert", Way::Convert),
        ("convert-unsynced", Way::ConvertUnsynced),
        ("dump", Way::Dump),
    ];
}

flags::flags! {
    /// What a run of `flush` was asked to do.
    pub struct FlushFlags;

    /// A folder for the databases. They are destroyed at the end.
    db: String = String::new();
    /// Of rewrite (kDontConvert), convert (kFileMmap), convert-unsynced (the same with sync_sst_file=false) and dump
    /// (kDumpMem), or all.
    ways: Choices<Way> = Choices(Way::ALL.iter().map(|(_, way)| *way).collect());
    /// Of trie and skip_list, or all.
    memtables: Choices<Memtable> = Choices(Memtable::ALL.iter().map(|(_, memtable)| *memtable).collect());
    /// Of memtable (copies) and log (memtable_as_log_index), or all. A rewrite always has copies.
    values: Choices<ValuesIn> = Choices(ValuesIn::ALL.iter().map(|(_, values)| *values).collect());
    /// Bytes of keys and values that a memtable is flushed with.
    bytes: Numbers = Numbers(vec![64 << 20]);
    /// Bytes of a value. Keys have 16, all random.
    value_sizes: Numbers = Numbers(vec![100, 1000]);
    /// How often everything is run, by turns, on a new database each time; medians are printed.
    rounds: u32 = 5;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines, one for each flush and one for each checksum pass; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
}

impl FlushFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<FlushFlags> {
        let flags: FlushFlags = flags::parse(given)?;
        if flags.db.is_empty() {
            return Err(Error::invalid_argument("--db=DIR is missing"));
        }
        if flags.rounds == 0 || flags.bytes.0.contains(&0) {
            return Err(Error::invalid_argument("--rounds and --bytes must be at least 1"));
        }
        Ok(flags)
    }

    /// The conditions that a result does not name elsewhere.
    pub fn conditions(&self) -> String {
        format!("--seed={}", self.seed)
    }
}
