//! What `restart` can be told.

use base::{Error, Result};

use super::Way;
use crate::filling::{Memtable, ValuesIn};
use crate::flags::choices::{Choices, Named, Numbers};
use crate::flags::{self, JsonTarget};

impl Named for Way {
    const ALL: &'static [(&'static str, Way)] = &[("image", Way::Image), ("replay", Way::Replay)];
}

flags::flags! {
    /// What a run of `restart` was asked to do.
    pub struct RestartFlags;

    /// A folder for the databases. They are destroyed at the end.
    db: String = String::new();
    /// Of image (memtables are opened as they lie) and replay (memtable_crash_safe_recover=false), or all.
    ways: Choices<Way> = Choices(Way::ALL.iter().map(|(_, way)| *way).collect());
    /// Of trie and skip_list, or all.
    memtables: Choices<Memtable> = Choices(Memtable::ALL.iter().map(|(_, memtable)| *memtable).collect());
    /// Of memtable (copies) and log (memtable_as_log_index), or all.
    values: Choices<ValuesIn> = Choices(ValuesIn::ALL.iter().map(|(_, values)| *values).collect());
    /// Bytes that a memtable has, by its own account, when its process is killed.
    bytes: Numbers = Numbers(vec![64 << 20]);
    /// Bytes of a value. Keys have 16, all random.
    value_size: usize = 100;
    /// How often everything is run, by turns, each with a process of its own that is killed; medians are printed.
    rounds: u32 = 5;
    /// Where random numbers start.
    seed: u64 = 1;
    /// A file for JSON lines, one for each restart; alone or `-` for standard output.
    json: JsonTarget = JsonTarget::default();
}

impl RestartFlags {
    /// # Errors
    /// `InvalidArgument`: the flag that is unknown, or whose value does not fit.
    pub fn parse(given: &[String]) -> Result<RestartFlags> {
        let flags: RestartFlags = flags::parse(given)?;
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
        format!("--value_size={} --seed={}", self.value_size, self.seed)
    }
}
