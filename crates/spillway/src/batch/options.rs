//! How a write is done.

/// Per-write options, under RocksDB's names.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Returns only once this write and all earlier writes survive power loss (D1). With a batch without changes, the
    /// cheapest [`sync_log`](crate::internal::Database::sync_log).
    pub sync: bool,
    /// Skips the WAL: the write is lost if the process ends before its memtable is flushed.
    pub disable_wal: bool,
    /// Flushes the written families before the call returns. The whole batch is then in tables and survives power loss,
    /// logged or not. A flush error is returned although the batch was written. A batch without changes flushes all
    /// families.
    pub flush_after: bool,
    /// Fails with `Busy` instead of waiting for flushes or compactions.
    pub no_slowdown: bool,
    /// Skips changes to missing families instead of failing the batch.
    pub ignore_missing_column_families: bool,
}

impl WriteOptions {
    /// Options of a synced write.
    pub fn synced() -> Self {
        WriteOptions { sync: true, ..Self::default() }
    }
}
