//! How a write is done.

/// Per-write options, under RocksDB's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Returns only when the write survives power loss (D1), and all that was written before it: with a batch without
    /// changes the cheapest [`sync_log`](crate::Db::sync_log).
    pub sync: bool,
    /// Leaves the log out: the write is lost if the process ends before its memtable is flushed.
    pub disable_wal: bool,
    /// Flushes the families written to before the call returns: all of the batch is in tables then and survives power
    /// loss, also where it was not logged. An error of the flush is returned though the batch was written. A batch without
    /// changes flushes all families.
    pub flush_after: bool,
    /// Fails with `Busy` instead of waiting for flushes or compactions.
    pub no_slowdown: bool,
    /// Passes over changes to families that do not exist, instead of failing the batch.
    pub ignore_missing_column_families: bool,
}

impl WriteOptions {
    pub fn synced() -> Self {
        WriteOptions { sync: true, ..Self::default() }
    }
}
