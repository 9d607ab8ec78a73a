//! Reads a block-based table. Format: docs/format/table.md.
//!
//! *Thread safety*: an open table is immutable except for the block cache, which has its own locks.

#[cfg_attr(not(test), allow(dead_code, reason = "batched lookups call it from their next phase on"))]
mod blocks;
mod counts;
mod cursor;
mod estimate;
mod file;
mod filter;
mod get;
mod index;
mod mapped;
mod open;
mod readahead;
mod verify;

use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::metrics::Statistics;
use base::tombstone::FragmentedTombstones;
use base::value_source::ValueSource;
use base::{Cursor, Error, InternalOrder, LookupKey, Result, SeqNo, ValueKind, key};
use vfs::{GuardedMapping, IoClass};

pub(crate) use self::blocks::read_missing;
pub use self::cursor::TableCursor;
pub(crate) use self::file::{Fetch, TableFile, read_exactly};
use self::filter::TableFilter;
pub(crate) use self::get::Located;
use self::index::TableIndex;
use self::mapped::MappedFile;
pub(crate) use self::open::global_seq;
pub use self::verify::VerifyWatch;
use crate::block::GlobalSeq;
use crate::cached::BlockCache;
use crate::codec::Dictionary;
use crate::metaindex::Metaindex;
use crate::properties::Properties;
use crate::together::{Lane, look_up_together};
use crate::{AnyCursor, Table, TableReadOptions, TableValue, Visit, tombstones};

/// Context for opening a table.
#[derive(Clone, Default)]
pub struct TableContext {
    /// The order of keys.
    pub order: InternalOrder,
    /// `None` reads every block from the file.
    pub cache: Option<Arc<BlockCache>>,
    /// Index and filter go into the cache instead of being held while the table is open.
    pub cache_index_and_filter: bool,
    /// With `cache_index_and_filter`: holds them nevertheless, charged to the cache. For tables of level 0.
    pub pin_index_and_filter: bool,
    /// The family's extractor. Prefix filters of an extractor with a different name are not consulted.
    pub prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
    /// The table's largest sequence number by the MANIFEST; `None` without a MANIFEST. In a table made for ingestion,
    /// every key takes this number.
    pub largest_seq: Option<SeqNo>,
    /// Source of the values referenced by a converted table.
    pub values: Option<Arc<dyn ValueSource>>,
    /// The purpose of the reads.
    pub class: IoClass,
    /// Keeps the file's tail, read at open, while the table is open. For tables opened briefly.
    pub keep_tail: bool,
    /// Maps block-based tables instead of reading them by calls ([`Vfs::map_guarded`](vfs::Vfs::map_guarded)).
    pub maps_reads: bool,
    /// The mapped file, set by [`open_any`](crate::open_any).
    pub mapping: Option<Arc<dyn GuardedMapping>>,
    /// Properties of a table whose own are damaged; `None` refuses such a table. For rescues that know them otherwise.
    /// The index's format is found by trial, and the filter is not used.
    pub stands_in: Option<Arc<Properties>>,
    /// Counts reads; `None` counts nothing.
    pub statistics: Option<Arc<Statistics>>,
}

/// An open block-based table.
pub struct BlockBasedTable {
    order: InternalOrder,
    file: TableFile,
    metaindex: Metaindex,
    properties: Properties,
    index: TableIndex,
    filter: Option<TableFilter>,
    global: GlobalSeq,
    tombstones: Option<Arc<FragmentedTombstones>>,
}

impl BlockBasedTable {
    pub(crate) fn file(&self) -> &TableFile {
        &self.file
    }

    pub(crate) fn metaindex(&self) -> &Metaindex {
        &self.metaindex
    }

    /// The sequence number of every key, if the table was ingested under one.
    pub fn global_seq(&self) -> Option<SeqNo> {
        self.global.0
    }
}

impl Table for BlockBasedTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        self.get_entries(key, options, visit)
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let lanes: Vec<Lane<'_>> = keys.iter().map(|key| Lane { table: self, key }).collect();
        let mut error = None;
        look_up_together(&lanes, options, visit, &mut |_, of_one| error = error.take().or(Some(of_one)));
        error.map_or(Ok(()), Err)
    }

    fn as_block_based(&self) -> Option<&BlockBasedTable> {
        Some(self)
    }

    fn is_mapped(&self) -> bool {
        self.file.mapped.is_some()
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        Box::new(TableCursor::new(self, options))
    }

    fn any_cursor(self: Arc<Self>, options: &TableReadOptions) -> AnyCursor {
        AnyCursor::BlockBased(Box::new(TableCursor::new(self, options)))
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        self.offset_near(internal_key)
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        self.cut_points(max)
    }

    fn verify(&self) -> Result<()> {
        self.verify_watched(IoClass::Other, &mut verify::Unwatched)
    }

    fn memory_bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.block.memory_bytes());
        let dictionary = self.file.dictionary.as_ref().map_or(0, Dictionary::memory_bytes);
        let tombstones = self.tombstones.as_deref().map_or(0, tombstones::memory_bytes);
        let mapped = self.file.mapped.as_ref().map_or(0, MappedFile::memory_bytes);
        size_of::<Self>() + self.index.top.memory_bytes() + filter + dictionary + tombstones + mapped
    }
}

/// The error of a read limited to memory.
#[cold]
pub(crate) fn not_in_memory() -> Error {
    Error::incomplete("no blocking io: a file would have to be read, and the read is limited to memory (read_tier)")
}

/// The error for an entry of a kind this version does not read.
pub(crate) fn unknown_kind(internal_key: &[u8]) -> Error {
    match key::split(internal_key).map(|(_, trailer)| trailer as u8) {
        Some(kind @ (0x11 | 0x10 | 0x14..=0x19)) => {
            Error::unsupported(format!("entry of kind {kind:#04x} (blob reference, wide columns or timestamp)"))
        }
        Some(kind) => Error::corruption(format!("entry of unknown kind {kind:#04x}")),
        None => Error::corruption("an entry's key is shorter than its trailer"),
    }
}
