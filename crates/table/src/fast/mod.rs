//! Fast tables, for the upper levels: entries uncompressed, read where the file is mapped, under an index made for few
//! misses of the processor's caches. Nothing is decoded and nothing is cached here; the pages are the kernel's.
//! Format: docs/format/fast.md
//!
//! A lookup descends through nodes of separators to a group of a few entries whose directory lies in front of them. Both
//! are searched by heads, four bytes of each key. What is followed is checked as it is followed (B1): a place in the
//! file is a slice of it or an error, nodes are left after as many steps as the footer says, and cursors go one way.
//! Opening checks the tail; an extent's checksum is compared when a read that asks for checksums first touches it.
//!
//! *Thread safety*: immutable, but for what is found out once.

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
    /// `None` where the table has no filter.
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

    /// Compares the checksums of the extents that `start .. end` touches, each once.
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
