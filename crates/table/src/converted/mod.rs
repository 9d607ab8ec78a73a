//! Converted tables: the image of a memtable's memory, with checksums, properties and a footer behind it. What a flush
//! makes of a memtable without looking at its entries. Format: docs/format/converted.md
//!
//! The table is read by the memtable: the one that was converted, which goes on serving from the same memory, or one
//! that the memtable crate makes of the mapped file once all of it was checked (B1). Nothing is decoded and nothing is
//! cached here; the pages are the kernel's.
//!
//! *Thread safety*: immutable, but for what is found out once.

mod anchors;
mod convert;
mod footer;
mod open;
mod tail;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base::key::user_key;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, Error, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use memtable::Memtable;
use vfs::RandomFile;

pub use self::convert::{ConvertConfig, convert};
pub(crate) use self::footer::{FORMAT_VERSION, MAGIC};

use self::anchors::Anchor;
use crate::{Properties, Table, TableReadOptions, TableSummary, TableValue, Visit};

/// Values from this length on are pinned by sharing the table's memory; shorter ones are copied, which costs as little
/// and holds no table.
const SHARED_MIN_BYTES: usize = 1024;

/// An open converted table.
pub struct ConvertedTable {
    memtable: Arc<dyn Memtable>,
    bytes: Arc<ImageBytes>,
    /// Where `bytes` begins.
    base: usize,
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    file_bytes: u64,
    image_bytes: u64,
    properties: Properties,
    order: InternalOrder,
    /// First and last user key of the point entries.
    span: Option<(Vec<u8>, Vec<u8>)>,
    anchors: OnceLock<Vec<Anchor>>,
}

/// The image that a memtable lies in, for as long as this lives.
struct ImageBytes(Arc<dyn Memtable>);

impl AsRef<[u8]> for ImageBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.image().map_or(&[], |image| image.bytes)
    }
}

/// What a table is made of beside its memtable.
struct Parts {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    file_bytes: u64,
    properties: Properties,
    order: InternalOrder,
}

impl ConvertedTable {
    /// The table that `memtable` became: `summary` is what [`convert`] returned, `file` the file that it wrote.
    ///
    /// # Errors
    /// `InvalidArgument`: a memtable that is not sealed, or has no image.
    pub fn of_memtable(
        memtable: Arc<dyn Memtable>,
        summary: &TableSummary,
        file: Arc<dyn RandomFile>,
        path: &Path,
        order: &InternalOrder,
    ) -> Result<Arc<ConvertedTable>> {
        let parts = Parts {
            file,
            path: path.to_owned(),
            file_bytes: summary.file_bytes,
            properties: summary.properties.clone(),
            order: order.clone(),
        };
        Ok(Arc::new(Self::with(memtable, parts)?))
    }

    fn with(memtable: Arc<dyn Memtable>, parts: Parts) -> Result<ConvertedTable> {
        let bytes = Arc::new(ImageBytes(memtable.clone()));
        let image = (*bytes).as_ref();
        if image.is_empty() {
            return Err(no_image(&memtable));
        }
        let (base, image_bytes) = (image.as_ptr().addr(), image.len() as u64);
        let (span, anchors) = (span_of(&memtable), OnceLock::new());
        let Parts { file, path, file_bytes, properties, order } = parts;
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
            span,
            anchors,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The image that the table's entries are in.
    pub(crate) fn image(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    #[inline]
    fn value<'a>(&'a self, bytes: &'a [u8]) -> TableValue<'a> {
        if bytes.len() < SHARED_MIN_BYTES {
            return TableValue { bytes, owner: None };
        }
        TableValue { bytes, owner: Some((&self.bytes, bytes.as_ptr().addr() - self.base)) }
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
    fn get(&self, key: &LookupKey, _options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.memtable.get(key, &mut |seq, kind, value| visit(seq, kind, self.value(value)));
        Ok(())
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        _options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        self.memtable.multi_get(keys, &mut |nth, seq, kind, value| visit(nth, seq, kind, self.value(value)));
        Ok(())
    }

    fn cursor(self: Arc<Self>, _options: &TableReadOptions) -> Box<dyn Cursor> {
        self.memtable.clone().cursor()
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
        self.verify_file().map_err(|e| e.at_path(&self.path))
    }

    fn memory_bytes(&self) -> usize {
        let anchors = self.anchors.get().map_or(0, |all| all.iter().map(Anchor::memory_bytes).sum());
        size_of::<Self>() + self.memtable.memory_bytes() + anchors
    }
}
