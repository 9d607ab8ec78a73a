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
use std::path::Path;
use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, LookupKey, Result, SeqNo, ValueKind};

pub use self::builder::{ZipSettings, ZipTableBuilder};

use self::cursor::ZipCursor;
use self::footer::Footer;
use self::group::{GroupReader, Record};
use self::index::GroupIndex;
use self::keys::KeyDecoder;
use self::value::ValueDecoder;
use crate::private::MappedTable;
use crate::{Properties, Table, TableReadOptions, TableValue, Visit};

/// An open zip table.
pub struct ZipTable {
    file: MappedTable<Footer>,
    index: GroupIndex,
    keys: KeyDecoder,
    values: ValueDecoder,
    /// The user key of the last point entry.
    last_key: Option<Vec<u8>>,
}

impl ZipTable {
    /// The table's file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// # Errors
    /// `Corruption`.
    #[inline]
    fn group(&self, group: usize, verify: bool) -> Result<GroupReader<'_>> {
        let place = self.index.place(group);
        let bytes = self.file.part(place.start as usize..place.end as usize, verify)?;
        let entries = self.file.footer.entries_of(group);
        GroupReader::new(&self.keys, bytes, entries).map_err(|e| self.damaged(e, place.start))
    }

    /// Adds path and offset to an error.
    #[cold]
    fn damaged(&self, error: Error, at: u64) -> Error {
        self.file.damaged(error, at as usize)
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
            let start = || bytes.as_ptr().addr() - self.file.bytes().as_ptr().addr();
            return Ok(TableValue::of_whole(bytes, &self.file, start));
        }
        if len == 0 {
            return Ok(TableValue { bytes: &[], owner: None });
        }
        self.values.decode(rest, len, out)?;
        Ok(TableValue { bytes: out, owner: None })
    }

    /// Place, number of entries and separator of each group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Range<u64>, u64, &[u8])> {
        let group = |nth| (self.index.place(nth), self.file.footer.entries_of(nth), self.index.separator(nth));
        (0..self.index.len()).map(group)
    }

    /// The footer, line by line.
    pub(crate) fn layout(&self) -> Vec<String> {
        let (groups, entries) = (self.index.len(), self.file.footer.group_entries);
        self.file.layout(vec![
            format!("groups of {entries} entries: {groups}"),
            format!("dictionary bytes: {}", self.values.dictionary().len()),
        ])
    }
}

impl Table for ZipTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        options.check_may_read_file()?;
        self.get_many(&[key], options, &mut |_, seq, kind, value| visit(seq, kind, value))
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        options.check_may_read_file()?;
        self.get_many(keys, options, visit)
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(ZipCursor::new(self, options))
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.file.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.file.properties
    }

    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        Ok(self.offset_near(internal_key))
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Ok(self.cut_points(max))
    }

    fn verify(&self) -> Result<()> {
        self.verify_file().map_err(|e| e.at_path(self.path()))
    }

    fn memory_bytes(&self) -> usize {
        let codes = self.keys.memory_bytes() + self.values.memory_bytes();
        size_of::<Self>() + self.file.memory_bytes() + self.index.memory_bytes() + codes
    }
}
