//! A result of `flush`: one flush, or one pass over what it made.

use serde::{Deserialize, Serialize};

use crate::machine::Setting;

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "flush";

/// The parts of which there are lines.
pub const FLUSH: &str = "flush";
pub const CHECKSUM: &str = "checksum";

/// A line of JSON. Later fields may be added, those there keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct FlushRecord {
    /// `flush`: a flush; `checksum`: one pass of the table's checksum over as many bytes, which the flush contains.
    pub part: String,
    /// `rewrite`, `convert`, `convert-unsynced` or `dump`.
    pub way: String,
    pub memtable: String,
    /// Of keys and values.
    pub bytes: u64,
    /// Processor time of all threads of the process.
    pub cpu_ms: f64,
    pub wall_ms: f64,
    /// From the first put to the table at level 0: `log_bytes` and `table_bytes`.
    pub written_bytes: u64,
    /// What the process held at most during the flush, beyond what it held before the memtable was filled. Absent where the
    /// system does not tell.
    pub peak_bytes: Option<u64>,
    /// The same, beyond what it held when the flush began.
    pub growth_bytes: Option<u64>,
    /// Where values were: `memtable` or `log`.
    pub values: String,
    pub value_size: u64,
    pub entries: u64,
    /// By its own account.
    pub memtable_bytes: u64,
    pub log_bytes: u64,
    pub table_bytes: u64,
    /// What the kernel counted as written by the process, beside `written_bytes`; 0 for a file system in memory.
    pub kernel_written_bytes: u64,
    pub round: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

impl FlushRecord {
    /// The line for whoever watches.
    pub fn text(&self) -> String {
        let side = format!(
            "{:<8}  {:<9}  {:<16}  values in {:<8}  {:>5} B of value  round {:>2}  CPU {:>9.3} ms  wall {:>9.3} ms",
            self.part, self.memtable, self.way, self.values, self.value_size, self.round, self.cpu_ms, self.wall_ms
        );
        if self.part == CHECKSUM {
            return side;
        }
        format!(
            "{side}  {:>8.1} MB written  {:>+7.1} MB held",
            megabytes(self.written_bytes),
            megabytes(self.growth_bytes.unwrap_or_default())
        )
    }
}

/// Millions of bytes.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
