//! Converted tables: the image of a memtable's memory, followed by checksums, properties and a footer. A flush makes
//! one without reading the memtable's entries. Format: docs/format/converted.md
//!
//! Reads go through a memtable: the converted one, still in memory, or one the memtable crate builds on the mapped file
//! after checking all of it (B1). Nothing is decoded or cached here; the kernel caches the pages.
//!
//! *Thread safety*: immutable, except lazily computed state.

mod anchors;
mod convert;
mod footer;
mod open;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base::key::user_key;
use base::tombstone::FragmentedTombstones;
use base::value_source::{ValueRef, ValueSource};
use base::{Cursor, Error, InternalOrder, LookupKey, Pinned, Result, SeqNo, ValueKind};
use memtable::Memtable;
use vfs::RandomFile;

pub use self::convert::{ConvertConfig, convert};
pub(crate) use self::footer::FORMAT;

use self::anchors::Anchor;
use crate::values::{Following, FollowingCursor, ValuesOfFile};
use crate::{Properties, Table, TableContext, TableReadOptions, TableSummary, TableValue, Visit};

/// Property of tables whose values may be references to the WAL: which logs these are. Earlier tables have the byte 1.
const LEAVES_VALUES: &str = "spillway.values.in.logs";

impl Properties {
    /// Whether values may be references to the WAL.
    pub fn leaves_values(&self) -> bool {
        self.other.contains_key(LEAVES_VALUES)
    }
}

/// An open converted table.
pub struct ConvertedTable {
    memtable: Arc<dyn Memtable>,
    bytes: Arc<ImageBytes>,
    /// Address of the first byte of `bytes`.
    base: usize,
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    file_bytes: u64,
    image_bytes: u64,
    properties: Properties,
    order: InternalOrder,
    /// Source of values outside the image; `None` if the image has all values.
    values: Option<Arc<ValuesOfFile>>,
    /// First and last user key of the point entries.
    span: Option<(Vec<u8>, Vec<u8>)>,
    anchors: OnceLock<Vec<Anchor>>,
}

/// A memtable's image, kept alive by its owner.
struct ImageBytes(Arc<dyn Memtable>);

impl AsRef<[u8]> for ImageBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.image().map_or(&[], |image| image.bytes)
    }
}

/// Source of values for a table opened without logs: fails every lookup.
struct NoLogs;

impl ValueSource for NoLogs {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let ValueRef { log, offset, len, .. } = value;
        let what =
            format!("the value, {len} bytes, lies in log {log} at {offset}, and the table was opened without logs");
        Err(Error::unsupported(what))
    }
}

impl ConvertedTable {
    /// The table of a converted `memtable`. `summary` is the result of [`convert`], `file` the file it wrote.
    ///
    /// # Errors
    /// `InvalidArgument`: the memtable is not sealed, or has no image.
    pub fn of_memtable(
        memtable: Arc<dyn Memtable>,
        summary: &TableSummary,
        file: Arc<dyn RandomFile>,
        path: &Path,
        context: &TableContext,
    ) -> Result<Arc<ConvertedTable>> {
        let table = Self::with(memtable, file, path, summary.file_bytes, summary.properties.clone(), context)?;
        Ok(Arc::new(table))
    }

    fn with(
        memtable: Arc<dyn Memtable>,
        file: Arc<dyn RandomFile>,
        path: &Path,
        file_bytes: u64,
        properties: Properties,
        context: &TableContext,
    ) -> Result<ConvertedTable> {
        let bytes = Arc::new(ImageBytes(memtable.clone()));
        let image = (*bytes).as_ref();
        if image.is_empty() {
            return Err(no_image(&memtable));
        }
        let (base, image_bytes) = (image.as_ptr().addr(), image.len() as u64);
        let (span, anchors) = (span_of(&memtable), OnceLock::new());
        let (path, order) = (path.to_owned(), context.order.clone());
        let values = properties.leaves_values().then(|| context.values.clone().unwrap_or_else(|| Arc::new(NoLogs)));
        let values = values.map(|values| Arc::new(ValuesOfFile::new(values, path.clone())));
        Ok(ConvertedTable {
            memtable,
            bytes,
            base,
            file,
            path,
            file_bytes,
            image_bytes,
            properties,
            order,
            values,
            span,
            anchors,
        })
    }

    /// The image with the table's entries.
    pub(crate) fn image(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    #[inline]
    fn value<'a>(&'a self, bytes: &'a [u8]) -> TableValue<'a> {
        TableValue::of_whole(bytes, &self.bytes, || bytes.as_ptr().addr() - self.base)
    }
}

fn no_image(memtable: &Arc<dyn Memtable>) -> Error {
    Error::invalid_argument(format!("a {} that is not sealed, or that was not made to be converted", memtable.name()))
}

fn span_of(memtable: &Arc<dyn Memtable>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (first, last) = point_bounds(memtable)?;
    Some((user_key(&first).to_vec(), user_key(&last).to_vec()))
}

/// First and last internal key of the point entries.
fn point_bounds(memtable: &Arc<dyn Memtable>) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut cursor = memtable.clone().cursor();
    let first = cursor.seek_to_first().then(|| cursor.key().to_vec())?;
    let last = cursor.seek_to_last().then(|| cursor.key().to_vec())?;
    Some((first, last))
}

impl Table for ConvertedTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        options.check_may_read_file()?;
        let Some(values) = &self.values else {
            self.memtable.get(key, &mut |seq, kind, value| visit(seq, kind, self.value(value)));
            return Ok(());
        };
        let mut following = Following::new(&**values);
        self.memtable
            .get(key, &mut |seq, kind, stored| following.show(seq, kind, stored, |bytes| self.value(bytes), visit));
        following.end()
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        options.check_may_read_file()?;
        let Some(values) = &self.values else {
            self.memtable.multi_get(keys, &mut |nth, seq, kind, value| visit(nth, seq, kind, self.value(value)));
            return Ok(());
        };
        let mut following = Following::new(&**values);
        self.memtable.multi_get(keys, &mut |nth, seq, kind, stored| {
            let mut show = |seq, kind, value: TableValue<'_>| visit(nth, seq, kind, value);
            following.show(seq, kind, stored, |bytes| self.value(bytes), &mut show)
        });
        following.end()
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        let cursor = self.memtable.clone().cursor();
        match &self.values {
            None => cursor,
            Some(values) => FollowingCursor::new(cursor, values.clone()).passing_over(options.skip_damaged.as_ref()),
        }
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.memtable.tombstones()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        Ok(self.offset_near(user_key(internal_key)))
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Ok(self.cut_points(max))
    }

    fn verify(&self) -> Result<()> {
        self.verify_file().and_then(|()| self.verify_values()).map_err(|e| e.at_path(&self.path))
    }

    fn memory_bytes(&self) -> usize {
        let anchors = self.anchors.get().map_or(0, |all| all.iter().map(Anchor::memory_bytes).sum());
        size_of::<Self>() + self.memtable.memory_bytes() + anchors
    }
}
