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
mod reading;
mod show;
mod verify;

use std::path::Path;
use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, LookupKey, Result, SeqNo, ValueKind};
use vfs::ReadMapping;

pub use self::builder::FastTableBuilder;

use self::cursor::FastCursor;
use self::footer::Footer;
use self::heads::Heads;
use crate::private::{Footer as _, MappedTable};
use crate::{Properties, Table, TableContext, TableReadOptions, TableValue, Visit};

/// An open fast table.
pub struct FastTable {
    file: MappedTable<Footer>,
    heads: Heads,
}

impl FastTable {
    /// Opens the table in `mapping`. `file_bytes` is the expected size. The file must not be written while the table is
    /// open.
    ///
    /// Takes time in proportion to the tail, an eight-thousandth of the file, and to the range tombstones.
    ///
    /// # Errors
    /// `Corruption`: damage, or a size other than `file_bytes`. `Unsupported`: a newer format. `InvalidArgument`: the
    /// key order differs from the order of `context`.
    pub fn open(
        mapping: Arc<dyn ReadMapping>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<Arc<FastTable>> {
        let file = MappedTable::open(mapping, path, file_bytes, context);
        file.and_then(Self::with).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn with(file: MappedTable<Footer>) -> Result<FastTable> {
        let (heads, stored) = (Heads::of(&file.order.user), file.footer.heads);
        if stored != heads.number() {
            let error = Error::corruption(format!("heads of kind {stored}, where the order has others"));
            return Err(error.at_offset(file.footer.footer_at()));
        }
        Ok(FastTable { file, heads })
    }

    /// The table's file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    #[cold]
    fn damaged(&self, what: &str, at: usize) -> Error {
        self.file.damaged(Error::corruption(format!("{what} is malformed")), at)
    }
}

impl Table for FastTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        options.check_may_read_file()?;
        self.reading(options.verify_checksums).get(key, visit)
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        options.check_may_read_file()?;
        self.reading(options.verify_checksums).get_many(keys, visit)
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(FastCursor::new(self, options))
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
        self.reading(true).offset_of(internal_key)
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        self.reading(true).cut_points(max)
    }

    fn verify(&self) -> Result<()> {
        self.verify_file().map_err(|e| e.at_path(self.path()))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.file.memory_bytes()
    }
}
