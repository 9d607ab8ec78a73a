//! The end of a table: filter, index, dictionary, range tombstones, properties, metaindex and footer, in this order.

use base::Result;
use base::options::{CompressionKind, CompressionOptions, IndexType};

use super::BlockBasedTableBuilder;
use super::filter::FilterPart;
use crate::TableSummary;
use crate::footer::{FORMAT_VERSION_COMPRESSION_SET, FORMAT_VERSION_CONTEXT, Footer};
use crate::handle::BlockHandle;
use crate::index::{IndexBlockBuilder, IndexEntry, IndexFormat, METADATA_NAME, PREFIXES_NAME};
use crate::metaindex::{self as meta_names, Metaindex};
use crate::properties;

impl BlockBasedTableBuilder {
    pub(super) fn finish_table(mut self: Box<Self>) -> Result<TableSummary> {
        self.draft.check_whole()?;
        if !self.block.is_empty() {
            self.end_block(None)?;
        }
        self.writer.end_data(&self.draft.config)?;
        self.draft.properties.data_bytes = self.writer.sink.offset();
        self.draft.properties.data_blocks = self.blocks;
        let mut metaindex = Metaindex::default();
        let format = self.draft.config.index_format(self.index.needs_trailers());
        self.write_filter(format, &mut metaindex)?;
        let index = self.write_index(format, &mut metaindex)?;
        if !self.writer.dictionary_bytes().is_empty() {
            let dictionary = self.writer.dictionary_bytes().to_vec();
            metaindex.insert(meta_names::COMPRESSION_DICT, self.writer.write_raw(&dictionary)?);
        }
        self.write_tombstones(&mut metaindex)?;
        self.complete_properties(format);
        let properties = self.draft.properties.encode();
        metaindex.insert(properties::BLOCK_NAME, self.writer.write_raw(&properties)?);
        let format_version = self.draft.config.options.format_version;
        let index_in_footer = format_version < FORMAT_VERSION_CONTEXT;
        if !index_in_footer {
            metaindex.insert(meta_names::INDEX, index);
        }
        let metaindex = self.writer.write_raw(&metaindex.encode())?;
        let footer = Footer {
            checksum: self.draft.config.options.checksum,
            format_version,
            metaindex,
            index: index_in_footer.then_some(index),
            base_context_checksum: self.draft.config.base_context_checksum(),
        };
        self.draft.last_key = self.block.last_key().to_vec();
        Ok(self.draft.summary(self.writer.sink.finish(&footer.encode()?)?))
    }

    fn write_filter(&mut self, format: IndexFormat, metaindex: &mut Metaindex) -> Result<()> {
        let Some(filter) = self.draft.filter.take() else {
            return Ok(());
        };
        let partitioned = filter.is_partitioned();
        let (parts, entries) = filter.finish(self.index.last_separator());
        self.draft.properties.filter_entries = entries;
        // RocksDB counts a filter's bytes without trailers.
        self.draft.properties.filter_bytes = parts.iter().map(|part| part.contents.len() as u64).sum();
        if partitioned && !parts.is_empty() {
            let handle = self.write_filter_partitions(&parts, IndexFormat { first_keys: false, ..format })?;
            self.draft.properties.filter_bytes += handle.size;
            metaindex.insert(meta_names::PARTITIONED_FILTER, handle);
        } else if let Some(full) = parts.first() {
            let handle = self.writer.write_raw(&full.contents)?;
            metaindex.insert(meta_names::FULL_FILTER, handle);
        }
        Ok(())
    }

    fn write_filter_partitions(&mut self, parts: &[FilterPart], format: IndexFormat) -> Result<BlockHandle> {
        let mut top = IndexBlockBuilder::new(self.draft.config.options.index_block_restart_interval, format);
        for part in parts {
            let handle = self.writer.write_raw(&part.contents)?;
            top.add(IndexEntry { separator: &part.separator, handle, first_key: b"" });
        }
        self.writer.write_raw(top.finish())
    }

    fn write_index(&mut self, format: IndexFormat, metaindex: &mut Metaindex) -> Result<BlockHandle> {
        let start = self.writer.sink.offset();
        let handle = if self.draft.config.options.index_type == IndexType::TwoLevel {
            self.write_partitioned_index(format)?
        } else {
            // The hash index counts entries by restart points.
            let interval = match self.draft.config.options.index_type {
                IndexType::HashSearch => 1,
                _ => self.draft.config.options.index_block_restart_interval,
            };
            let mut block = IndexBlockBuilder::new(interval, format);
            self.index.for_each(self.writer.handles(), |entry| {
                block.add(entry);
                Ok(())
            })?;
            if let Some(prefixes) = self.prefixes.take() {
                let (prefixes, metadata) = prefixes.finish();
                metaindex.insert(PREFIXES_NAME, self.writer.write_index(&prefixes)?);
                metaindex.insert(METADATA_NAME, self.writer.write_index(&metadata)?);
            }
            self.writer.write_index(block.finish())?
        };
        self.draft.properties.index_bytes = self.writer.sink.offset() - start;
        Ok(handle)
    }

    fn write_partitioned_index(&mut self, format: IndexFormat) -> Result<BlockHandle> {
        let options = &self.draft.config.options;
        let mut top = IndexBlockBuilder::new(options.index_block_restart_interval, format);
        let mut part = IndexBlockBuilder::new(options.index_block_restart_interval, format);
        let most = options.metadata_block_size;
        let mut last_separator = Vec::new();
        let mut partitions = 0;
        let handles = self.writer.handles().to_vec();
        let writer = &mut self.writer;
        let mut end_part = |part: &mut IndexBlockBuilder, separator: &[u8]| -> Result<()> {
            let handle = writer.write_index(part.finish())?;
            part.reset();
            partitions += 1;
            top.add(IndexEntry { separator, handle, first_key: b"" });
            Ok(())
        };
        self.index.for_each(&handles, |entry| {
            if part.estimated_bytes() >= most {
                end_part(&mut part, &last_separator)?;
            }
            part.add(entry);
            last_separator.clear();
            last_separator.extend_from_slice(entry.separator);
            Ok(())
        })?;
        if !part.is_empty() {
            end_part(&mut part, &last_separator)?;
        }
        let top = top.finish();
        self.draft.properties.index_partitions = partitions;
        self.draft.properties.top_level_index_bytes = top.len() as u64;
        self.writer.write_index(top)
    }

    fn write_tombstones(&mut self, metaindex: &mut Metaindex) -> Result<()> {
        if let Some(block) = self.draft.tombstone_block() {
            metaindex.insert(meta_names::RANGE_DEL, self.writer.write_raw(&block)?);
        }
        Ok(())
    }

    fn complete_properties(&mut self, format: IndexFormat) {
        let (config, properties) = (&self.draft.config, &mut self.draft.properties);
        properties.index_type = config.options.index_type;
        properties.index_key_is_user_key = format.user_keys;
        properties.index_value_is_delta = format.delta_values;
        properties.format_version = u64::from(config.options.format_version);
        properties.compression = property_name(config.compression, config.options.format_version);
        properties.compression_options = compression_options_text(config.compression, &config.compression_options);
        config.describe(properties);
    }
}

/// The compression's name in the properties: from version 7 on the name of RocksDB's set of compressions, and the
/// numbers of those used.
fn property_name(kind: CompressionKind, format_version: u32) -> String {
    if format_version >= FORMAT_VERSION_COMPRESSION_SET {
        return match kind {
            CompressionKind::None => "BuiltinV2;;".to_string(),
            kind => format!("BuiltinV2;{:02X};", kind.number()),
        };
    }
    let name = match kind {
        CompressionKind::Snappy => "Snappy",
        CompressionKind::Zlib => "Zlib",
        CompressionKind::Bzip2 => "BZip2",
        CompressionKind::Lz4 => "LZ4",
        CompressionKind::Lz4hc => "LZ4HC",
        CompressionKind::Zstd => "ZSTD",
        _ => "NoCompression",
    };
    name.to_string()
}

/// The compression options as RocksDB spells them in the properties.
fn compression_options_text(kind: CompressionKind, options: &CompressionOptions) -> String {
    let (max_dict_bytes, train_bytes) = match kind {
        CompressionKind::Zstd => (options.max_dict_bytes, options.zstd_max_train_bytes),
        _ => (0, 0),
    };
    format!(
        "window_bits={}; level={}; strategy=0; max_dict_bytes={max_dict_bytes}; zstd_max_train_bytes={train_bytes}; \
         enabled=0; max_dict_buffer_bytes=0; use_zstd_dict_trainer=1; ",
        options.window_bits, options.level
    )
}
