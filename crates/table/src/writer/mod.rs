//! Writes a block-based table: entries into data blocks as they come, then filter, index and the rest.
//! Format: docs/format/table.md.

mod config;
mod data;
mod draft;
mod filter;
mod finish;
mod sink;

pub use config::{TableBuilderConfig, TableOrigin};

use base::Result;
use base::key::{self, ParsedKey};
use base::options::{DataBlockIndexType, IndexType};
use base::tombstone::RangeTombstone;
use vfs::AppendFile;

use self::data::BlockWriter;
pub(crate) use self::draft::Draft;
use self::filter::FilterCollector;
pub(crate) use self::sink::Sink;
use crate::block::BlockBuilder;
use crate::index::{IndexLog, PrefixBlocks};
use crate::{TableBuilder, TableSummary};

/// Approximate size of footer, properties and metaindex, in bytes.
const TAIL_BYTES: u64 = 1500;

/// Writes one block-based table.
pub struct BlockBasedTableBuilder {
    draft: Draft,
    writer: BlockWriter,
    block: BlockBuilder,
    block_first_key: Vec<u8>,
    /// Number of the current block.
    blocks: u64,
    index: IndexLog,
    prefixes: Option<PrefixBlocks>,
    /// Fullness, in bytes, above which a block ends early rather than outgrow its limit.
    nearly_full_bytes: usize,
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
            blocks: 0,
            index: IndexLog::default(),
            prefixes: (options.index_type == IndexType::HashSearch).then(PrefixBlocks::default),
            nearly_full_bytes: (options.block_size * percent).div_ceil(100),
            draft: Draft::new(config),
        })
    }

    #[inline]
    fn must_end_block(&self, key: &[u8], value: &[u8]) -> bool {
        if self.block.is_empty() {
            return false;
        }
        let (now, most) = (self.block.estimated_bytes(), self.draft.config.options.block_size);
        now >= most || (now > self.nearly_full_bytes && self.block.estimated_bytes_with(key, value) > most)
    }

    /// Writes the current block; `next_key` begins the next one.
    fn end_block(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        self.index.push(&self.block_first_key, self.block.last_key(), next_key, &self.draft.config.order);
        if let (Some(filter), Some(next)) = (&mut self.draft.filter, next_key) {
            filter.end_block(self.index.last_separator(), key::user_key(next));
        }
        let written = self.writer.write_data(self.block.finish(), &self.draft.config);
        self.block.reset();
        self.blocks += 1;
        written
    }

    fn add_entry(&mut self, key: &[u8], value: &[u8], entry: &ParsedKey<'_>) -> Result<()> {
        let trailer = key::pack_trailer(entry.seq, entry.kind as u8);
        let new_user_key = self.draft.config.check_order(self.block.last_key(), entry.user_key, trailer)?.is_gt();
        let ends_block = self.must_end_block(key, value);
        if ends_block {
            self.end_block(Some(key))?;
        }
        if self.block.is_empty() {
            self.block_first_key.clear();
            self.block_first_key.extend_from_slice(key);
            if self.draft.first_key.is_empty() {
                self.draft.first_key.extend_from_slice(key);
            }
        }
        if new_user_key || ends_block {
            if let Some(filter) = &mut self.draft.filter {
                filter.add(entry.user_key);
            }
            if let (Some(prefixes), Some(extractor)) = (&mut self.prefixes, &self.draft.config.prefix_extractor)
                && let Some(prefix) = extractor.prefix(entry.user_key)
            {
                prefixes.add(prefix, self.blocks);
            }
        }
        self.block.add(key, value);
        self.draft.count(entry, key, value);
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
        let entry = self.draft.point_entry(internal_key, value)?;
        let added = self.add_entry(internal_key, value, &entry);
        self.draft.added(added)
    }

    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.draft.add_tombstone(tombstone)
    }

    fn entries(&self) -> u64 {
        self.draft.properties.entries
    }

    fn estimated_bytes(&self) -> u64 {
        let open = self.block.estimated_bytes() + self.index.estimated_bytes() + self.draft.filter_bytes();
        self.writer.bytes() + open as u64 + TAIL_BYTES
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path = self.draft.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
