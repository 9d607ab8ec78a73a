//! Zip tables, for the lower levels: as small as compressed blocks or smaller, yet a value is read without its
//! neighbours. Each value is compressed alone, against a dictionary and codes of the whole table. Keys are
//! prefix-compressed in small groups. Format: docs/format/zip.md
//!
//! A lookup finds the group in memory, scans its keys, and decompresses one record: two or three pages of the mapped
//! file. Every read is checked (B1): a malformed group or record is an error. Opening checks the tail and reads index,
//! codes and dictionary. An extent's checksum is compared when a read with checksums first touches the extent.
//!
//! *Thread safety*: immutable, except lazily computed state.

mod bits;
mod builder;
mod classes;
mod cursor;
mod estimate;
mod finish;
mod footer;
mod get;
mod group;
mod huffman;
mod index;
mod keys;
mod open;
mod shared;
mod spill;
mod value;
mod verify;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::metrics::Statistics;
use base::pinned::BytesOwner;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use vfs::ReadMapping;

pub use self::builder::{ZIP_MEMORY_BYTES_DEFAULT, ZipSettings, ZipTableBuilder};
pub(crate) use self::footer::MAGIC;

use self::cursor::ZipCursor;
use self::footer::Footer;
use self::group::{GroupReader, Record};
use self::index::GroupIndex;
use self::keys::KeyDecoder;
use self::value::ValueDecoder;
use crate::block::GlobalSeq;
use crate::extents::CheckedExtents;
use crate::filter::{FilterQuestion, FilterReader};
use crate::{Properties, ShareBytes, Table, TableReadOptions, TableValue, Visit, tombstones};

/// An open zip table.
pub struct ZipTable {
    mapping: Arc<dyn ReadMapping>,
    path: PathBuf,
    footer: Footer,
    order: InternalOrder,
    global: GlobalSeq,
    properties: Properties,
    /// `None` if the table has no filter.
    filter: Option<FilterQuestion>,
    tombstones: Option<Arc<FragmentedTombstones>>,
    extents: CheckedExtents,
    index: GroupIndex,
    keys: KeyDecoder,
    values: ValueDecoder,
    /// The user key of the last point entry.
    last_key: Option<Vec<u8>>,
    statistics: Option<Arc<Statistics>>,
}

impl ZipTable {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    #[inline]
    fn bytes(&self) -> &[u8] {
        (*self.mapping).as_ref()
    }

    /// A part of the file. `verify`: compare its checksums, once per extent.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    fn part(&self, place: Range<u64>, verify: bool) -> Result<&[u8]> {
        let range = place.start as usize..place.end as usize;
        if verify {
            self.extents.check(self.bytes(), range.clone()).map_err(|e| e.at_path(&self.path))?;
        }
        self.bytes().get(range).ok_or_else(|| self.damaged(Error::corruption("a part outside the file"), place.start))
    }

    /// # Errors
    /// `Corruption`.
    #[inline]
    fn group(&self, group: usize, verify: bool) -> Result<GroupReader<'_>> {
        let place = self.index.place(group);
        let bytes = self.part(place.clone(), verify)?;
        GroupReader::new(&self.keys, bytes, self.footer.entries_of(group)).map_err(|e| self.damaged(e, place.start))
    }

    /// Adds path and offset to an error.
    #[cold]
    fn damaged(&self, error: Error, at: u64) -> Error {
        error.at_path(&self.path).at_offset(at)
    }

    /// The value of a record: a slice of the file if plain, else decompressed into `out`.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    fn value<'a>(&'a self, record: Record<'a>, out: &'a mut Vec<u8>) -> Result<TableValue<'a>> {
        let Record { rest, len, is_plain } = record;
        if is_plain {
            let bytes = rest.get(..len).unwrap_or_default();
            let start = || bytes.as_ptr().addr() - self.bytes().as_ptr().addr();
            return Ok(TableValue::of_whole(bytes, self, start));
        }
        if len == 0 {
            return Ok(TableValue { bytes: &[], owner: None });
        }
        self.values.decode(rest, len, out)?;
        Ok(TableValue { bytes: out, owner: None })
    }

    /// Reader over the table's filter.
    ///
    /// # Errors
    /// `Corruption`.
    fn filter(&self, verify: bool) -> Result<FilterReader<&[u8]>> {
        Ok(FilterReader::new(self.part(self.footer.filter_at()..self.footer.tombstones_at(), verify)?))
    }

    /// Place, number of entries and separator of each group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Range<u64>, u64, &[u8])> {
        let group = |nth| (self.index.place(nth), self.footer.entries_of(nth), self.index.separator(nth));
        (0..self.index.len()).map(group)
    }

    /// The parts of the file, one line each.
    pub(crate) fn layout(&self) -> Vec<String> {
        let footer = &self.footer;
        vec![
            format!("format version: {}, a zip table", footer::FORMAT_VERSION),
            format!("groups: 0+{}, {} of {} entries", footer.groups_bytes, self.index.len(), footer.group_entries),
            format!("index: {}+{}", footer.index_at(), footer.index_bytes),
            format!("codes and dictionary: {}+{}", footer.shared_at(), footer.shared_bytes),
            format!("dictionary bytes: {}", self.values.dictionary().len()),
            format!("filter: {}+{}", footer.filter_at(), footer.filter_bytes),
            format!("tombstones: {}+{}", footer.tombstones_at(), footer.tombstones_bytes),
            format!("properties: {}+{}", footer.properties_at(), footer.properties_bytes),
        ]
    }
}

impl ShareBytes for ZipTable {
    fn share(&self) -> BytesOwner {
        self.mapping.clone()
    }
}

impl Table for ZipTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.get_many(&[key], options, &mut |_, seq, kind, value| visit(seq, kind, value))
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        self.get_many(keys, options, visit)
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(ZipCursor::new(self, options))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        Ok(self.offset_near(internal_key))
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Ok(self.cut_points(max))
    }

    fn verify(&self) -> Result<()> {
        self.verify_file().map_err(|e| e.at_path(&self.path))
    }

    fn memory_bytes(&self) -> usize {
        let codes = self.keys.memory_bytes() + self.values.memory_bytes();
        let tombstones = self.tombstones.as_deref().map_or(0, tombstones::memory_bytes);
        size_of::<Self>() + self.index.memory_bytes() + self.extents.memory_bytes() + codes + tombstones
    }
}
