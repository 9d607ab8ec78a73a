//! Writes a block-based table: entries into data blocks as they come, then filter, index and the rest.
//! Format: docs/format/table.md.

mod config;
mod data;
mod filter;
mod finish;
mod sink;

pub use config::{TableBuilderConfig, TableOrigin};

use base::key::{self, ParsedKey};
use base::options::{DataBlockIndexType, IndexType};
use base::tombstone::RangeTombstone;
use base::{Error, Result, SeqNo, ValueKind};
use vfs::AppendFile;

use self::data::BlockWriter;
pub(crate) use self::filter::FilterCollector;
pub(crate) use self::sink::Sink;
use crate::block::BlockBuilder;
use crate::index::{IndexLog, PrefixBlocks};
use crate::properties::Properties;
use crate::{TableBuilder, TableSummary};

/// Approximate size of footer, properties and metaindex, in bytes.
const TAIL_BYTES: u64 = 1500;

/// Writes one block-based table.
pub struct BlockBasedTableBuilder {
    config: TableBuilderConfig,
    writer: BlockWriter,
    block: BlockBuilder,
    /// The first key of the current block, and of the table.
    block_first_key: Vec<u8>,
    first_key: Vec<u8>,
    /// Number of the current block.
    blocks: u64,
    index: IndexLog,
    prefixes: Option<PrefixBlocks>,
    filter: Option<FilterCollector>,
    tombstones: Vec<RangeTombstone>,
    properties: Properties,
    seqs: Option<(SeqNo, SeqNo)>,
    /// Fullness, in bytes, above which a block ends early rather than outgrow its limit.
    nearly_full_bytes: usize,
    failed: bool,
}

impl BlockBasedTableBuilder {
    /// # Errors
    /// `InvalidArgument`: contradictory options, or a file with contents. `Unsupported`: a compression this version
    /// does not write.
    pub fn new(file: Box<dyn AppendFile>, config: TableBuilderConfig) -> Result<Self> {
        config.check()?;
        let writer = BlockWriter::new(Sink::new(file, &config)?, &config)?;
        let options = &config.options;
        let percent = 100usize.saturating_sub(options.block_size_deviation as usize);
        Ok(BlockBasedTableBuilder {
            writer,
            block: new_block(&config),
            block_first_key: Vec::new(),
            first_key: Vec::new(),
            blocks: 0,
            index: IndexLog::default(),
            prefixes: (options.index_type == IndexType::HashSearch).then(PrefixBlocks::default),
            filter: FilterCollector::new(&config),
            tombstones: Vec::new(),
            properties: Properties::default(),
            seqs: None,
            nearly_full_bytes: (options.block_size * percent).div_ceil(100),
            failed: false,
            config,
        })
    }

    #[inline]
    fn must_end_block(&self, key: &[u8], value: &[u8]) -> bool {
        if self.block.is_empty() {
            return false;
        }
        let (now, most) = (self.block.estimated_bytes(), self.config.options.block_size);
        now >= most || (now > self.nearly_full_bytes && self.block.estimated_bytes_with(key, value) > most)
    }

    /// Writes the current block; `next_key` begins the next one.
    fn end_block(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        self.index.push(&self.block_first_key, self.block.last_key(), next_key, &self.config.order);
        if let (Some(filter), Some(next)) = (&mut self.filter, next_key) {
            filter.end_block(self.index.last_separator(), key::user_key(next));
        }
        let written = self.writer.write_data(self.block.finish(), &self.config);
        self.block.reset();
        self.blocks += 1;
        written
    }

    #[inline]
    fn count(&mut self, entry: &ParsedKey<'_>, key: &[u8], value: &[u8]) {
        self.properties.count(entry.kind, key.len(), value.len());
        let (smallest, largest) = self.seqs.unwrap_or((entry.seq, entry.seq));
        self.seqs = Some((smallest.min(entry.seq), largest.max(entry.seq)));
    }

    fn check_entry(&self, value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed").at_path(&self.config.path));
        }
        self.config.check_entry(value, entry)
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let trailer = key::pack_trailer(entry.seq, entry.kind as u8);
        let new_user_key = self.config.check_order(self.block.last_key(), entry.user_key, trailer)?.is_gt();
        let ends_block = self.must_end_block(key, value);
        if ends_block {
            self.end_block(Some(key))?;
        }
        if self.block.is_empty() {
            self.block_first_key.clear();
            self.block_first_key.extend_from_slice(key);
            if self.first_key.is_empty() {
                self.first_key.extend_from_slice(key);
            }
        }
        if new_user_key || ends_block {
            if let Some(filter) = &mut self.filter {
                filter.add(entry.user_key);
            }
            if let (Some(prefixes), Some(extractor)) = (&mut self.prefixes, &self.config.prefix_extractor)
                && let Some(prefix) = extractor.prefix(entry.user_key)
            {
                prefixes.add(prefix, self.blocks);
            }
        }
        self.block.add(key, value);
        self.count(entry, key, value);
        Ok(())
    }
}

fn new_block(config: &TableBuilderConfig) -> BlockBuilder {
    let options = &config.options;
    let block = BlockBuilder::new(options.block_restart_interval);
    // The hash covers key bytes, so equal keys must have equal bytes.
    let by_bytes = !config.order.user.equal_keys_can_differ() && config.order.user.timestamp_bytes() == 0;
    if options.data_block_index_type == DataBlockIndexType::BinaryAndHash && by_bytes {
        block.with_hash_index(options.data_block_hash_table_util_ratio)
    } else {
        block
    }
}

impl TableBuilder for BlockBasedTableBuilder {
    fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let entry = self.config.point_entry(internal_key)?;
        self.check_entry(value, &entry)?;
        let added = self.add_entry(internal_key, value, &entry);
        self.failed = added.is_err();
        added
    }

    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        let entry = ParsedKey { user_key: &tombstone.start, seq: tombstone.seq, kind: ValueKind::RangeDeletion };
        self.check_entry(&tombstone.end, &entry)?;
        let mut key = Vec::with_capacity(tombstone.start.len() + key::TRAILER_BYTES);
        entry.encode_to(&mut key);
        self.count(&entry, &key, &tombstone.end);
        self.tombstones.push(tombstone.clone());
        Ok(())
    }

    fn entries(&self) -> u64 {
        self.properties.entries
    }

    fn estimated_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterCollector::estimated_bytes);
        let open = self.block.estimated_bytes() + self.index.estimated_bytes() + filter;
        self.writer.bytes() + open as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path = self.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
