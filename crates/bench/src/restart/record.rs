//! A result of `restart`: one process killed, one database opened.

use serde::{Deserialize, Serialize};

use crate::machine::Setting;

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "restart";

/// A line of JSON. Later fields may be added, those there keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RestartRecord {
    /// `image` or `replay`.
    pub way: String,
    /// By the memtable's own account, when its process was killed.
    pub memtable_bytes: u64,
    /// Of the call that opened the database.
    pub open_ms: f64,
    /// Processor time of all threads of the process until that call returned.
    pub cpu_ms: f64,
    pub memtable: String,
    /// Where values were: `memtable` or `log`.
    pub values: String,
    /// All of which were found again, with their values.
    pub entries: u64,
    pub log_bytes: u64,
    /// Memtables that were opened as they lay.
    pub restored: u64,
    pub round: u32,
    #[serde(flatten)]
    pub setting: Setting,
}

impl RestartRecord {
    /// The line for whoever watches.
    pub fn text(&self) -> String {
        format!(
            "restart  {:<9}  {:<6}  values in {:<8}  round {:>2}  memtable {:>8.1} MB, log {:>8.1} MB  open {:>10.3} ms  \
             CPU {:>10.3} ms  {} entries found",
            self.memtable,
            self.way,
            self.values,
            self.round,
            self.memtable_bytes as f64 / 1e6,
            self.log_bytes as f64 / 1e6,
            self.open_ms,
            self.cpu_ms,
            self.entries
        )
    }
}
