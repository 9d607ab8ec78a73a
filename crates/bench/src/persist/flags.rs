//! What `persist` can be told.

use base::{Error, Result};

use super::Side;
use crate::flags::{self, FlagValue, JsonTarget, split_list};

/// Memtables and ways, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct SideList(pub Vec<Side>);

impl FlagValue for SideList {
    fn read(text: &str) -> Option<Self> {
        split_list(text)?.iter().map(|side| Side::parse(side)).collect::<Option<Vec<Side>>>().map(SideList)
    }

    fn show(&self) -> String {
        self.0.iter().map(Side::text).collect::<Vec<_>>().join(",")
    }
}

flags::flags! {
    /// What a run of `persist` was asked to do.
    pub struct PersistFlags;

    /// An empty or new folder for the databases, one for each side. They are destroyed at the end.
    db: String = String::new();
    /// Option strings of memtables, separated by commas, each with `+flush` (write, then flush), `+eager` (a write that ends
    /// with its flush) or `+unlogged` (the same without a log). They take turns.
    sides: SideList = SideList(vec![Side::flushed("skip_list")]);
    /// Keys of a batch.
    keys: u64 = 100_000;
    /// Batches, each on top of those before.
    repeats: u32 = 20;
    /// Bytes of a key, all random.
    key_size: usize = 16;
    /// Bytes of a value.
    value_size: usize = 100;
    /// Bytes of a memtable.
    write_buffer_size: usize = 64 << 20;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines, one for each batch; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
}

impl PersistFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<PersistFlags> {
        let flags: PersistFlags = flags::parse(given)?;
        if flags.db.is_empty() {
            return Err(Error::invalid_argument("--db=DIR is missing"));
        }
        if flags.keys == 0 || flags.key_size == 0 {
            return Err(Error::invalid_argument("--keys and --key_size must be at least 1"));
        }
        Ok(flags)
    }

    /// The conditions that a result does not name elsewhere.
    pub fn conditions(&self) -> String {
        format!(
            "--keys={} --repeats={} --key_size={} --value_size={} --write_buffer_size={} --seed={}",
            self.keys, self.repeats, self.key_size, self.value_size, self.write_buffer_size, self.seed
        )
    }
}
