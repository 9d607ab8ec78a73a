//! Opens a table: footer, metaindex, properties, then the meta blocks they name.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::options::IndexType;
use base::tombstone::FragmentedTombstones;
use base::{Error, ErrorKind, Result, SeqNo};
use vfs::{IoClass, RandomFile};

use super::file::read_exactly;
use super::filter::{TableFilter, filter_index_format};
use super::index::{Meta, TableIndex};
use super::{BlockBasedTable, Fetch, TableContext, TableFile};
use crate::block::{Block, GlobalSeq, walk};
use crate::codec::Dictionary;
use crate::filter::FilterQuestion;
use crate::footer::Footer;
use crate::handle::BlockHandle;
use crate::index::{IndexBlock, IndexFormat};
use crate::metaindex::{self, Metaindex};
use crate::private::check_size;
use crate::properties::{self, ExternalFile, Properties};
use crate::tombstones;

/// Bytes read at once from a table's end. Holds all meta blocks of most tables.
const TAIL_BYTES: u64 = 32 << 10;

/// The file's tail, read once. Reads before it go to the file.
struct Tail {
    file: Arc<dyn RandomFile>,
    start: u64,
    bytes: Vec<u8>,
}

impl Tail {
    fn read(file: Arc<dyn RandomFile>, file_bytes: u64, class: IoClass) -> Result<Tail> {
        let start = file_bytes.saturating_sub(TAIL_BYTES);
        let bytes = read_exactly(&*file, start, (file_bytes - start) as usize, class)?;
        Ok(Tail { file, start, bytes })
    }
}

impl RandomFile for Tail {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        let at = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.bytes.get(at..at.checked_add(buf.len())?)) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(buf.len())
            }
            None => self.file.read_at(offset, buf, class),
        }
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.file.prefetch(offset, len.min(self.start.saturating_sub(offset)));
    }
}

/// The meta blocks of a table, read through its tail.
struct Opening<'a> {
    context: &'a TableContext,
    file: TableFile,
    fetch: Fetch,
}

impl BlockBasedTable {
    /// Opens the table in `file`. The caller expects `file_bytes` bytes.
    ///
    /// # Errors
    /// `Corruption`: damage, or another size. `Unsupported`: a format or feature this version does not read.
    /// `InvalidArgument`: keys in another order than `context` says.
    pub fn open(
        file: Arc<dyn RandomFile>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<Arc<BlockBasedTable>> {
        Self::open_table(file, path, file_bytes, context).map_err(|e| e.at_path(path)).map(Arc::new)
    }

    fn open_table(
        file: Arc<dyn RandomFile>,
        path: &Path,
        file_bytes: u64,
        context: &TableContext,
    ) -> Result<BlockBasedTable> {
        check_size(file.len()?, file_bytes)?;
        let tail = Tail::read(file.clone(), file_bytes, context.class)?;
        let footer = Footer::decode(&tail.bytes, file_bytes, path)?;
        let tail: Arc<dyn RandomFile> = Arc::new(tail);
        let fetch = Fetch {
            verify_checksums: true,
            ask_cache: true,
            fill_cache: true,
            memory_only: false,
            class: context.class,
        };
        let through_tail = TableFile::new(tail.clone(), path.into(), file_bytes, footer, context);
        let mut opening = Opening { context, file: through_tail, fetch };

        let metaindex = opening.metaindex()?;
        let own = opening.properties(&metaindex);
        // The number in them has no checksum of its own.
        let own = own.and_then(|properties| global_seq(&properties, context).map(|_| properties));
        let (properties, is_own) = match (own, &context.stands_in) {
            (Err(error), Some(given)) if error.kind() == ErrorKind::Corruption || error.is_read_failure() => {
                (opening.stand_in(&metaindex, given)?, false)
            }
            (properties, _) => (properties?, true),
        };
        opening.file.index_format = IndexFormat {
            user_keys: properties.index_key_is_user_key,
            delta_values: properties.index_value_is_delta,
            first_keys: properties.index_type == IndexType::BinarySearchWithFirstKey,
        };
        let index = opening.index(&metaindex, &properties)?;
        let filter = if is_own { opening.filter(&metaindex, &properties)? } else { None };
        let dictionary = match metaindex.get(metaindex::COMPRESSION_DICT) {
            Some(handle) => Some(Dictionary::new(opening.file.contents(handle, fetch, None)?)),
            None => None,
        };
        let global = global_seq(&properties, context)?;
        let tombstones = opening.tombstones(&metaindex, global)?;
        let file = opening.file.with_file(if context.keep_tail { tail } else { file }, dictionary);
        Ok(BlockBasedTable {
            order: context.order.clone(),
            file,
            metaindex,
            properties,
            index,
            filter,
            global,
            tombstones,
        })
    }

    /// File offset of RocksDB's eight-byte global sequence number; `None` if absent or compressed.
    ///
    /// # Errors
    /// Errors of reading the properties again.
    pub fn global_seqno_offset(&self) -> Result<Option<u64>> {
        let Some(handle) = self.metaindex.get(properties::BLOCK_NAME) else { return Ok(None) };
        let fetch = Fetch {
            verify_checksums: true,
            ask_cache: false,
            fill_cache: false,
            memory_only: false,
            class: IoClass::Ingest,
        };
        let (stored, compression) = self.file.stored(handle, fetch)?;
        if compression != 0 {
            return Ok(None);
        }
        let place = value_place(&Block::parse(stored)?, properties::GLOBAL_SEQNO_NAME)?;
        Ok(place.map(|place| handle.offset + place.start as u64))
    }
}

/// Byte range of a property's value in the properties block.
fn value_place(block: &Block, wanted: &str) -> Result<Option<Range<usize>>> {
    let mut place = None;
    walk(block, &mut |name, value| {
        if name == wanted.as_bytes() {
            place = Some(value);
        }
        Ok(())
    })?;
    Ok(place)
}

/// Whether the index's blocks fill the file from its start to `end`, one behind the other.
fn fills(index: &IndexBlock, end: u64) -> bool {
    let mut blocks = (0..index.len()).filter_map(|at| index.get(at)).map(|slot| slot.handle);
    let filled = blocks.try_fold(0, |at, block| (at == block.offset).then(|| block.end()));
    filled == Some(end)
}

impl Opening<'_> {
    fn metaindex(&self) -> Result<Metaindex> {
        let handle = self.file.footer().metaindex;
        let block = Block::parse(self.file.contents(handle, self.fetch, None)?)?;
        Metaindex::decode(&block, self.file.blocks_end()).map_err(|e| e.at_offset(handle.offset))
    }

    /// The properties, checked against the family's order.
    fn properties(&self, metaindex: &Metaindex) -> Result<Properties> {
        let handle =
            metaindex.get(properties::BLOCK_NAME).ok_or_else(|| Error::corruption("the table has no properties"))?;
        let block = self.properties_block(handle)?;
        let properties = Properties::decode(&block).map_err(|e| e.at_offset(handle.offset))?;
        properties.check_order(&self.context.order.user)?;
        Ok(properties)
    }

    /// RocksDB patches the global sequence number of an ingested table in place. The block's checksum stays as of
    /// number zero.
    fn properties_block(&self, handle: BlockHandle) -> Result<Block> {
        let error = match self.file.contents(handle, self.fetch, None) {
            Ok(contents) => return Block::parse(contents),
            Err(error) => error,
        };
        let (stored, kind) = self.file.stored(handle, self.fetch)?;
        if kind != 0 {
            return Err(error);
        }
        let mut zeroed = stored.clone();
        let block = Block::parse(stored).map_err(|_| error.clone())?;
        let place = value_place(&block, properties::GLOBAL_SEQNO_NAME).ok().flatten();
        match place.and_then(|place| zeroed.get_mut(place)) {
            Some(field) => field.fill(0),
            None => return Err(error),
        }
        if self.file.matches_trailer(handle, &zeroed, self.fetch)? { Ok(block) } else { Err(error) }
    }

    /// The properties `given`, with the format of the index: the one in which its blocks fill the file up to the first
    /// meta block. So no block is missing.
    ///
    /// Separators count as user keys. Of an index with internal keys they are then longer, so behind their place: walks
    /// forward still meet every block, but a damaged block's bounds are not certain.
    fn stand_in(&self, metaindex: &Metaindex, given: &Properties) -> Result<Properties> {
        let handle = self.index_handle(metaindex)?;
        let block = Block::parse(self.file.contents(handle, self.fetch, None)?)?;
        let metas = metaindex.iter().map(|(_, handle)| handle.offset);
        let data_end = metas.fold(handle.offset, u64::min);
        for (delta_values, first_keys) in [(false, false), (false, true), (true, false), (true, true)] {
            let format = IndexFormat { user_keys: true, delta_values, first_keys };
            let index = IndexBlock::parse(&block, format, self.file.blocks_end());
            if index.is_ok_and(|index| fills(&index, data_end)) {
                let index_type = if first_keys { IndexType::BinarySearchWithFirstKey } else { IndexType::BinarySearch };
                return Ok(Properties {
                    index_type,
                    index_key_is_user_key: true,
                    index_value_is_delta: delta_values,
                    ..given.clone()
                });
            }
        }
        Err(Error::corruption("the properties are damaged, and the index does not tell all blocks without them"))
    }

    fn index_handle(&self, metaindex: &Metaindex) -> Result<BlockHandle> {
        let of_metaindex = self.file.footer().index.or_else(|| metaindex.get(metaindex::INDEX));
        of_metaindex.ok_or_else(|| Error::corruption("the metaindex names no index"))
    }

    fn index(&self, metaindex: &Metaindex, properties: &Properties) -> Result<TableIndex> {
        let handle = self.index_handle(metaindex)?;
        let partitioned = properties.index_type == IndexType::TwoLevel;
        let mut index = TableIndex { top: Meta::Cached(handle), partitioned };
        // Read in any case: a table with a damaged index must not open.
        let block = self.file.index_block(handle, index.top_format(&self.file), self.held())?;
        if self.holds_meta() {
            index.top = Meta::Held(block);
        }
        Ok(index)
    }

    fn filter(&self, metaindex: &Metaindex, properties: &Properties) -> Result<Option<TableFilter>> {
        let (handle, partitioned) =
            match (metaindex.get(metaindex::FULL_FILTER), metaindex.get(metaindex::PARTITIONED_FILTER)) {
                (Some(handle), _) => (handle, false),
                (None, Some(handle)) => (handle, true),
                (None, None) => return Ok(None),
            };
        let block = if partitioned {
            self.file.index_block(handle, filter_index_format(&self.file), self.held())?
        } else {
            self.file.filter_block(handle, self.held())?
        };
        Ok(Some(TableFilter {
            block: if self.holds_meta() { Meta::Held(block) } else { Meta::Cached(handle) },
            partitioned,
            question: FilterQuestion::new(properties, self.context),
        }))
    }

    fn holds_meta(&self) -> bool {
        self.context.cache.is_none() || !self.context.cache_index_and_filter || self.context.pin_index_and_filter
    }

    /// Fetches index and filter through the cache only if the cache is charged for them.
    fn held(&self) -> Fetch {
        let through_cache = self.context.cache_index_and_filter;
        Fetch { ask_cache: through_cache, fill_cache: through_cache, ..self.fetch }
    }

    fn tombstones(&self, metaindex: &Metaindex, global: GlobalSeq) -> Result<Option<Arc<FragmentedTombstones>>> {
        let Some(handle) = metaindex.get(metaindex::RANGE_DEL) else {
            return Ok(None);
        };
        let block = Block::parse(self.file.contents(handle, self.fetch, None)?)?;
        tombstones::decode(&block, global, &self.context.order.user).map_err(|e| e.at_offset(handle.offset))
    }
}

/// The sequence number of every key: the number patched into the file, or the MANIFEST's.
pub(crate) fn global_seq(properties: &Properties, context: &TableContext) -> Result<GlobalSeq> {
    let Some(external) = properties.external.filter(|external| external.version == ExternalFile::VERSION) else {
        return Ok(GlobalSeq(None));
    };
    if external.global_seqno > SeqNo::MAX.0 {
        return Err(Error::corruption(format!("global sequence number {} is out of range", external.global_seqno)));
    }
    match (external.global_seqno, context.largest_seq) {
        (0, Some(largest)) => Ok(GlobalSeq(Some(largest).filter(|&seq| seq != SeqNo::ZERO))),
        (0, None) => Ok(GlobalSeq(None)),
        (patched, Some(largest)) if largest != SeqNo(patched) => Err(Error::corruption(format!(
            "the table says that its keys have sequence number {patched}, the MANIFEST says {largest}"
        ))),
        (patched, _) => Ok(GlobalSeq(Some(SeqNo(patched)))),
    }
}
