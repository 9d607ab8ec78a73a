//! Options of reads. Names are RocksDB's.

use std::sync::Arc;

use table::{Properties, TableReadOptions};
use vfs::IoClass;

use super::damage::SkippedDamage;
use super::snapshot::Snapshot;

/// Where a read may look. Numbered as RocksDB's `ReadTier`; its other tiers leave out part of the writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadTier {
    /// Everywhere.
    #[default]
    ReadAll,
    /// In memory: memtables and the block cache. A read that needs a file fails with
    /// [`Incomplete`](base::ErrorKind::Incomplete); an open file, the page cache and a mapping count as files. The
    /// values that memtables leave in the log do not.
    BlockCache,
}

/// Whether a table may have something of interest.
pub type TableFilter = Arc<dyn Fn(&Properties) -> bool + Send + Sync>;

/// Options of a lookup or an iterator.
#[derive(Clone)]
pub struct ReadOptions {
    /// The state of the database to read; `None`: the state at the start of the read.
    pub snapshot: Option<Snapshot>,
    /// Where to look.
    pub read_tier: ReadTier,
    /// Merge operands. If false, lookups of keys that have some fail with `Incomplete`: the operator is the user's code,
    /// and may take long.
    pub merges: bool,
    /// Verify the checksum of every block read from a file.
    pub verify_checksums: bool,
    /// Put blocks read from files into the block cache.
    pub fill_cache: bool,
    /// Lower bound of an iterator's user keys, inclusive.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// Upper bound of an iterator's user keys, exclusive.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// Ends an iterator at the end of its seek target's prefix.
    pub prefix_same_as_start: bool,
    /// Iterate over all keys in order, even if a table's filter or index is by prefix.
    pub total_order_seek: bool,
    /// Bytes to read ahead of an iterator; 0 adapts to the access pattern.
    pub readahead_size: usize,
    /// Limit of hidden entries in one step of an iterator; beyond it the step fails with `Busy`. 0 for no limit.
    pub max_skippable_internal_keys: u64,
    /// Iterators skip damaged blocks, values and tables, and list them there; lookups still fail. Entries hidden by a
    /// damaged block may reappear: an older value, or a deleted key.
    pub skip_damaged: Option<Arc<SkippedDamage>>,
    /// Iterators leave tables out whose properties it refuses, but not their range deletions. Lookups do not ask it.
    pub table_filter: Option<TableFilter>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            snapshot: None,
            read_tier: ReadTier::ReadAll,
            merges: true,
            verify_checksums: true,
            fill_cache: true,
            iterate_lower_bound: None,
            iterate_upper_bound: None,
            prefix_same_as_start: false,
            total_order_seek: false,
            readahead_size: 0,
            max_skippable_internal_keys: 0,
            skip_damaged: None,
            table_filter: None,
        }
    }
}

impl ReadOptions {
    /// The options of table reads.
    pub fn for_tables(&self) -> TableReadOptions {
        TableReadOptions {
            verify_checksums: self.verify_checksums,
            fill_cache: self.fill_cache,
            readahead_bytes: self.readahead_size,
            total_order_seek: self.total_order_seek,
            prefix_same_as_start: self.prefix_same_as_start,
            memory_only: self.read_tier == ReadTier::BlockCache,
            class: IoClass::Foreground,
            skip_damaged: self.skip_damaged.clone().map(|damage| damage as _),
        }
    }
}
