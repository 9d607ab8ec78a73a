//! What a read can ask for. Names are RocksDB's.

use std::sync::Arc;

use table::TableReadOptions;
use vfs::IoClass;

use super::damage::SkippedDamage;
use super::snapshot::Snapshot;

/// Options of a lookup or an iterator.
#[derive(Clone)]
pub struct ReadOptions {
    /// The state of the database to read; `None` is the state when the read begins.
    pub snapshot: Option<Snapshot>,
    /// Verify the checksum of every block read from a file.
    pub verify_checksums: bool,
    /// Put blocks read from files into the block cache.
    pub fill_cache: bool,
    /// The first user key an iterator may show.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// The first user key an iterator may no longer show.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// An iterator ends where the prefix of its seek target does.
    pub prefix_same_as_start: bool,
    /// Walk all keys in order even where a table's filter or index goes by prefix.
    pub total_order_seek: bool,
    /// Bytes to read ahead of an iterator; 0 follows the access pattern.
    pub readahead_size: usize,
    /// How many hidden entries one step of an iterator may pass before it fails with `Busy`; 0 for any number.
    pub max_skippable_internal_keys: u64,
    /// Iterators go on past damaged blocks, values and tables, and list them there; lookups fail as ever. What lay beneath
    /// a damaged block may be shown in its place: an older value, or a key that was deleted.
    pub skip_damaged: Option<Arc<SkippedDamage>>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            snapshot: None,
            verify_checksums: true,
            fill_cache: true,
            iterate_lower_bound: None,
            iterate_upper_bound: None,
            prefix_same_as_start: false,
            total_order_seek: false,
            readahead_size: 0,
            max_skippable_internal_keys: 0,
            skip_damaged: None,
        }
    }
}

impl ReadOptions {
    /// What tables need to know of them.
    pub fn for_tables(&self) -> TableReadOptions {
        TableReadOptions {
            verify_checksums: self.verify_checksums,
            fill_cache: self.fill_cache,
            readahead_bytes: self.readahead_size,
            total_order_seek: self.total_order_seek,
            prefix_same_as_start: self.prefix_same_as_start,
            class: IoClass::Foreground,
            skip_damaged: self.skip_damaged.clone().map(|damage| damage as _),
        }
    }
}
