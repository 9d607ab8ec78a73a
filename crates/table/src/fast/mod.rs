//! Fast tables, for the upper levels: uncompressed entries read in the mapped file, under an index built for few CPU
//! cache misses. Nothing is decoded or cached here; the kernel caches the pages. Format: docs/format/fast.md
//!
//! A lookup descends through nodes of separators to a group: a few entries with a directory in front. Both are searched
//! by heads, four bytes of each key. Every step is checked (B1): an offset is a slice of the file or an error, a
//! descent takes as many steps as the footer has levels, and cursors move in one direction. Opening checks the tail.
//! An extent's checksum is compared when a read with checksums first touches the extent.
//!
//! *Thread safety*: immutable, except lazily computed state.

mod builder;
mod cursor;
mod estimate;
mod find;
mod footer;
mod group;
mod heads;
mod node;
mod open;
mod reading;
mod show;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::metrics::Statistics;
use base::pinned::BytesOwner;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use vfs::ReadMapping;

pub use self::builder::FastTableBuilder;
pub(crate) use self::footer::MAGIC;

use self::cursor::FastCursor;
use self::footer::Footer;
use self::heads::Heads;
use crate::block::GlobalSeq;
use crate::extents::CheckedExtents;
use crate::filter::FilterQuestion;
use crate::{Properties, ShareBytes, Table, TableReadOptions, TableValue, Visit, tombstones};

/// An open fast table.
pub struct FastTable {
    mapping: Arc<dyn ReadMapping>,
    path: PathBuf,
    footer: Footer,
    order: InternalOrder,
    heads: Heads,
    global: GlobalSeq,
    properties: Properties,
    /// `None` if the table has no filter.
    filter: Option<FilterQuestion>,
    tombstones: Option<Arc<FragmentedTombstones>>,
    extents: CheckedExtents,
    statistics: Option<Arc<Statistics>>,
}

impl FastTable {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    #[inline]
    fn bytes(&self) -> &[u8] {
        (*self.mapping).as_ref()
    }

    /// Compares the checksums of all extents in `start..end`, once per extent.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    fn check_extents(&self, start: usize, end: usize) -> Result<()> {
        self.extents.check(self.bytes(), start..end).map_err(|e| e.at_path(&self.path))
    }

    #[cold]
    fn damaged(&self, what: &str, at: usize) -> Error {
        Error::corruption(format!("{what} is malformed")).at_path(&self.path).at_offset(at as u64)
    }
}

impl ShareBytes for FastTable {
    fn share(&self) -> BytesOwner {
        self.mapping.clone()
    }
}

impl Table for FastTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.reading(options.verify_checksums).get(key, visit)
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        self.reading(options.verify_checksums).get_many(keys, visit)
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(FastCursor::new(self, options))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        self.reading(true).offset_of(internal_key)
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        self.reading(true).cut_points(max)
    }

    fn verify(&self) -> Result<()> {
        self.verify_file().map_err(|e| e.at_path(&self.path))
    }

    fn memory_bytes(&self) -> usize {
        let tombstones = self.tombstones.as_deref().map_or(0, tombstones::memory_bytes);
        size_of::<Self>() + self.extents.memory_bytes() + tombstones
    }
}
