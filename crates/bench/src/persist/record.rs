//! A result of `persist`: one batch, written and flushed.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// What tells these lines from others in `bench/results`.
pub const KIND: &str = "persist";

/// A line of JSON. Later fields may be added, those there keep their meaning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PersistRecord {
    /// Always `persist`.
    pub bench: String,
    /// The option string.
    pub memtable: String,
    /// How it got into a table: `flush`, `eager` or `unlogged`.
    pub way: String,
    /// Of the batch.
    pub keys: u64,
    /// From 0 on: how many batches the database held before.
    pub nth: u32,
    /// For which the caller waited: the write and the flush together.
    pub blocked_ms: f64,
    /// With the flush in it, where the write ended with that.
    pub write_ms: f64,
    /// Of the call that flushed, where there was one.
    pub flush_ms: f64,
    /// Always [`KIND`].
    pub kind: String,
    pub batch_bytes: u64,
    pub flags: String,
    pub machine: Machine,
    pub commit: String,
    pub unix_time_s: u64,
}

impl PersistRecord {
    /// The line for whoever watches.
    pub fn text(&self) -> String {
        format!(
            "persist {:>3}  {:<28} {:>7} keys  blocked {:>8.2} ms  (write {:>8.2} ms, flush {:>8.2} ms)",
            self.nth,
            self.side(),
            self.keys,
            self.blocked_ms,
            self.write_ms,
            self.flush_ms
        )
    }

    /// Memtable and way, as on the command line.
    pub fn side(&self) -> String {
        format!("{}+{}", self.memtable, self.way)
    }
}
