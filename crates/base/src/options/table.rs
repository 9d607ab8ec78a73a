//! Options of block-based tables.

use crate::error::Result;
use crate::options::cache_size::CacheSize;
use crate::options::choices::{ChecksumKind, DataBlockIndexType, IndexType};
use crate::options::filter::FilterPolicy;
use crate::options::known;
use crate::options::row::{ANY, Load, nested_group, option_table, within};
use crate::options::string;

option_table! {
    for_each: ($) for_each_table_option;
    /// Options of block-based tables.
    struct TableOptions = "BlockBasedTable", unhonoured: known::TABLE;

    /// Bytes of a data block before compression.
    block_size: usize = 4096, within(64.0, 16777216.0), RocksDb, Mutable;
    /// Percent of a block that may stay empty so that the next entry begins a new one.
    block_size_deviation: u32 = 10, within(0.0, 100.0), RocksDb, Fixed;
    /// Entries from one key stored in full to the next, in data blocks.
    block_restart_interval: usize = 16, within(1.0, 65535.0), RocksDb, Mutable;
    /// The same in index blocks.
    index_block_restart_interval: usize = 1, within(1.0, 65535.0), RocksDb, Fixed;
    /// Bytes of a partition of the index or the filter.
    metadata_block_size: usize = 4096, within(64.0, 16777216.0), RocksDb, Fixed;
    /// The kind of index.
    index_type: IndexType = IndexType::BinarySearch, ANY, RocksDb, Fixed;
    /// Whether data blocks carry a hash index.
    data_block_index_type: DataBlockIndexType = DataBlockIndexType::BinarySearch, ANY, RocksDb, Fixed;
    /// Keys per bucket of that hash index.
    data_block_hash_table_util_ratio: f64 = 0.75, within(0.01, 1.0), RocksDb, Fixed;
    /// The checksum of every block.
    checksum: ChecksumKind = ChecksumKind::Xxh3, ANY, RocksDb, Fixed;
    /// The filter that spares lookups of absent keys (`nullptr`, `bloomfilter:10:false`).
    filter_policy: FilterPolicy = FilterPolicy::NONE, ANY, RocksDb, Mutable;
    /// Cuts the filter into partitions; needs a two-level index.
    partition_filters: bool = false, ANY, RocksDb, Fixed;
    /// Puts whole keys into the filter, not only prefixes.
    whole_key_filtering: bool = true, ANY, RocksDb, Fixed;
    /// Version of the table format. From 6 on a block's checksum covers its place; RocksDB 7.8 reads up to 5.
    format_version: u32 = 5, within(2.0, 7.0), RocksDb, Fixed;
    /// Keeps index and filter blocks in the block cache instead of for as long as the table is open.
    cache_index_and_filter_blocks: bool = false, ANY, RocksDb, Fixed;
    /// With that, keeps those of level 0 from being evicted.
    pin_l0_filter_and_index_blocks_in_cache: bool = false, ANY, RocksDb, Fixed;
    /// Compresses index blocks too.
    enable_index_compression: bool = true, ANY, RocksDb, Fixed;
    /// Reads without a block cache.
    no_block_cache: bool = false, ANY, RocksDb, Fixed;
    /// Bytes of the block cache, where the caller gives none to share.
    block_cache: CacheSize = CacheSize(32 << 20), ANY, Spillway, Fixed;
    /// Keeps values of keys looked up often in the block cache, in front of the tables. Not asked with a `row_cache`.
    cache_answers: bool = true, ANY, Spillway, Fixed;
    /// Decompresses every block right after compressing it, and compares.
    verify_compression: bool = false, ANY, RocksDb, Fixed;
}

nested_group!(TableOptions);

impl TableOptions {
    /// The version of the table format that was asked for. [`format_version`](Self::format_version) is the nearest one
    /// that is written, in options that were brought within their bounds.
    pub fn asked_format_version(&self) -> u32 {
        let asked = self.kept.get("format_version").and_then(|text| text.parse().ok());
        asked.unwrap_or(self.format_version)
    }

    fn set_nested(&mut self, text: &str, load: &mut Load) -> Result<()> {
        string::apply(self, text, load)
    }
}
