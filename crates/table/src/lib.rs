//! Tables: sorted, immutable files of entries. Block-based tables are RocksDB's, byte for byte (`docs/format/table.md`);
//! converted tables are memtables' images (`docs/format/converted.md`), fast tables are mapped (`docs/format/fast.md`),
//! zip tables are compressed value by value (`docs/format/zip.md`).
//!
//! Readers trust nothing in a file: every length and offset is checked before it is used (B1) and bounded before it is
//! allocated (B2).
//!
//! An internal part of the package `spillway-db`, published because that needs it. It may change in any release.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod any;
mod any_cursor;
#[cfg(feature = "topling")]
mod auto_sort;
mod block;
mod bounded;
pub mod cache;
mod cached;
mod codec;
mod compress;
mod converted;
mod cut_points;
mod damage;
mod decompress;
mod dump;
mod factory;
#[cfg(feature = "topling")]
mod fast;
mod filter;
mod footer;
mod handle;
mod index;
mod metaindex;
#[cfg_attr(not(feature = "topling"), allow(dead_code, unused_imports, reason = "converted tables use a part"))]
mod private;
mod properties;
mod reader;
pub mod sort;
mod together;
mod tombstones;
pub mod values;
mod verify;
mod writer;
#[cfg(feature = "topling")]
mod zip;

pub use any::{AnyTable, TableFormat, open_any};
pub use any_cursor::AnyCursor;
#[cfg(feature = "topling")]
pub use auto_sort::{AutoSortSettings, AutoSortTableBuilder};
pub use bounded::{BoundedTable, TablePart};
pub use cached::{BlockCache, CacheContents, CachedBlock, RoleContents, contents};
pub use converted::{ConvertConfig, ConvertedTable, convert};
pub use damage::{DamageSink, PassedOver};
pub use dump::{DumpPart, dump_any};
pub use factory::{new_builder, new_sorting_builder};
#[cfg(feature = "topling")]
pub use fast::{FastTable, FastTableBuilder};
pub use properties::{ExternalFile, Properties};
pub use reader::{BlockBasedTable, TableContext, VerifyWatch};
pub use together::{Lane, look_up_together};
pub use writer::{BlockBasedTableBuilder, TableBuilderConfig, TableOrigin};
#[cfg(feature = "topling")]
pub use zip::{ZipSettings, ZipTable, ZipTableBuilder};

use std::sync::Arc;

use base::pinned::BytesOwner;
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, LookupKey, Pinned, Result, SeqNo, ValueKind};
use vfs::IoClass;

/// How a read treats a table.
#[derive(Clone, Debug)]
pub struct TableReadOptions {
    /// Verifies checksums of blocks read from the file.
    pub verify_checksums: bool,
    /// Whether blocks read from the file enter the block cache.
    pub fill_cache: bool,
    /// Bytes to read ahead of a forward cursor; 0 for automatic readahead.
    pub readahead_bytes: usize,
    /// Walk in whole key order even if the table's index or filter is by prefix.
    pub total_order_seek: bool,
    /// Whether [`Cursor::seek_in_prefix`] may consult prefix filters.
    pub prefix_same_as_start: bool,
    /// Fail with `Incomplete` instead of reading a file. A mapped table is a file.
    pub memory_only: bool,
    /// The purpose of the reads.
    pub class: IoClass,
    /// Cursors skip damaged blocks and values, and report each to it.
    pub skip_damaged: Option<Arc<dyn DamageSink>>,
}

impl Default for TableReadOptions {
    fn default() -> Self {
        TableReadOptions {
            verify_checksums: true,
            fill_cache: true,
            readahead_bytes: 0,
            total_order_seek: false,
            prefix_same_as_start: false,
            memory_only: false,
            class: IoClass::Foreground,
            skip_damaged: None,
        }
    }
}

impl TableReadOptions {
    /// Called before a file is read.
    ///
    /// # Errors
    /// `Incomplete`: these reads are limited to memory.
    #[inline]
    pub fn check_may_read_file(&self) -> Result<()> {
        if self.memory_only { Err(reader::not_in_memory()) } else { Ok(()) }
    }
}

/// A value inside a table, borrowed, or pinned without a copy.
#[derive(Clone, Copy)]
pub struct TableValue<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Owner of the bytes, and the offset of `bytes` in it; `None` if pinning must copy.
    pub owner: Option<(&'a dyn ShareBytes, usize)>,
}

/// A reference-counted owner of bytes. Shared only when a value is pinned: most values are only looked at.
pub trait ShareBytes {
    /// The owner of the bytes.
    fn share(&self) -> BytesOwner;
}

impl ShareBytes for BytesOwner {
    fn share(&self) -> BytesOwner {
        self.clone()
    }
}

impl<T: AsRef<[u8]> + Send + Sync + 'static> ShareBytes for Arc<T> {
    fn share(&self) -> BytesOwner {
        self.clone()
    }
}

/// Values of at least this length are pinned by sharing a whole table's memory. Shorter ones are copied: as cheap,
/// without contention on one reference count, and without holding the table.
const SHARED_BYTES_MIN: usize = 1024;

impl<'a> TableValue<'a> {
    /// A value pinned already.
    pub fn of(value: &'a Pinned) -> Self {
        TableValue { bytes: value, owner: value.as_shared().map(|(owner, start)| (owner as &dyn ShareBytes, start)) }
    }

    /// A value in a whole table's memory, at offset `start()`. Short values do not need `start`.
    #[inline]
    pub(crate) fn of_whole(bytes: &'a [u8], owner: &'a dyn ShareBytes, start: impl FnOnce() -> usize) -> Self {
        TableValue { bytes, owner: (bytes.len() >= SHARED_BYTES_MIN).then(|| (owner, start())) }
    }

    /// The value, with what keeps it in memory.
    pub fn pin(&self) -> Pinned {
        match self.owner {
            Some((owner, start)) => Pinned::shared(owner.share(), start..start + self.bytes.len()),
            None => Pinned::from(self.bytes.to_vec()),
        }
    }
}

/// Receives entries, newest first. Returning false ends the walk.
pub type Visit<'a> = &'a mut dyn FnMut(SeqNo, ValueKind, TableValue<'_>) -> bool;

/// An open table. Shared by all threads; holds no lock across a read.
pub trait Table: Send + Sync {
    /// Passes the point entries of the lookup's user key at or below its sequence number to `visit`, newest first.
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()>;

    /// Many lookups of ascending user keys, sharing blocks. `visit` gets the lookup's index.
    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, options, &mut |seq, kind, value| visit(i, seq, kind, value))?;
        }
        Ok(())
    }

    /// The table, if it is a whole one of RocksDB's format: its lookups can be interleaved with those of others.
    fn as_block_based(&self) -> Option<&BlockBasedTable> {
        None
    }

    /// A cursor over point entries; it keeps the table alive.
    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor>;

    /// The same cursor, named if the kind of table has a named one.
    fn any_cursor(self: Arc<Self>, options: &TableReadOptions) -> AnyCursor {
        AnyCursor::Other(self.cursor(options))
    }

    /// Whether entries are read from a mapping, so that any access may wait for the disk.
    fn is_mapped(&self) -> bool {
        false
    }

    /// The table's range tombstones; `None` if it has none. Read and fragmented once.
    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>>;

    /// The table's properties.
    fn properties(&self) -> &Properties;

    /// Approximate file offset of `internal_key`, for size estimates.
    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64>;

    /// User keys cutting the table into parts of similar size, each with the bytes up to it. For splitting a
    /// compaction. At most `max`, ascending.
    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>>;

    /// Reads every block and checks checksums, order and counts.
    fn verify(&self) -> Result<()>;

    /// Memory held outside the block cache, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// A finished table, as the MANIFEST needs it.
#[derive(Clone, Debug, Default)]
pub struct TableSummary {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// First and last internal key of the point entries; `None` if the table has none.
    pub point_bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// Over point entries and tombstones.
    pub smallest_seq: SeqNo,
    /// The largest sequence number.
    pub largest_seq: SeqNo,
    /// The properties written.
    pub properties: Properties,
}

/// Writes one table.
pub trait TableBuilder: Send {
    /// Appends a point entry; internal keys must ascend.
    fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a range tombstone; any order, any time before the end.
    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()>;

    /// Point entries and tombstones so far.
    fn entries(&self) -> u64;

    /// Approximate size of the file if it ended now, in bytes.
    fn estimated_bytes(&self) -> u64;

    /// Writes the rest, syncs the file and returns its summary.
    fn finish(self: Box<Self>) -> Result<TableSummary>;
}
