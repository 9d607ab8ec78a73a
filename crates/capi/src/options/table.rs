//! `rocksdb_block_based_table_options_t`, with filters and caches.

use std::ffi::{c_char, c_double, c_int, c_uchar};
use std::sync::Arc;

use spillway::internal::BlockCache;
use spillway::internal::options::{FilterPolicy, TableOptions};

use super::Options;
use crate::boundary::settings::settings;
use crate::boundary::{export, handles};
use crate::cache::Cache;
use crate::failure::Failure;
use crate::kept::number::{CNumber, Number};
use crate::kept::{Keeps, Kept};

/// Options of block-based tables.
#[derive(Clone, Default)]
pub struct BlockBasedOptions {
    pub table: TableOptions,
    /// Options known to C only.
    pub(super) numbers: Kept,
    pub cache: Option<Arc<BlockCache>>,
}

/// A filter policy, until table options take it.
#[derive(Clone)]
pub struct Filter {
    policy: FilterPolicy,
    /// The requested ribbon policy, in option string form.
    ribbon: Option<String>,
}

handles!(BlockBasedOptions, Filter);

settings! { BlockBasedOptions, "rocksdb_block_based_options_";
    block_size: usize | u64 => table.block_size;
    block_size_deviation: c_int => table.block_size_deviation;
    block_restart_interval: c_int => table.block_restart_interval;
    index_block_restart_interval: c_int => table.index_block_restart_interval;
    metadata_block_size: u64 => table.metadata_block_size;
    index_type: c_int => table.index_type;
    data_block_index_type: c_int => table.data_block_index_type;
    data_block_hash_table_util_ratio: c_double => table.data_block_hash_table_util_ratio;
    checksum: c_char | c_int => table.checksum;
    partition_filters: c_uchar => table.partition_filters;
    whole_key_filtering: c_uchar => table.whole_key_filtering;
    format_version: c_int | u32 => table.format_version;
    cache_index_and_filter_blocks: c_uchar => table.cache_index_and_filter_blocks;
    pin_l0_filter_and_index_blocks_in_cache: c_uchar => table.pin_l0_filter_and_index_blocks_in_cache;
    enable_index_compression: c_uchar => table.enable_index_compression;
    no_block_cache: c_uchar => table.no_block_cache;
    verify_compression: c_uchar => table.verify_compression;

    block_align: c_uchar = 0;
    cache_index_and_filter_blocks_with_high_priority: c_uchar = 1;
    decouple_partitioned_filters: c_uchar = 1;
    detect_filter_construct_corruption: c_uchar = 0;
    fail_if_no_udi_on_open: c_uchar = 0;
    index_block_search_type: c_int = 0;
    index_shortening: c_int = 1;
    initial_auto_readahead_size: usize = 8 << 10;
    max_auto_readahead_size: usize = 256 << 10;
    num_file_reads_for_auto_readahead: u64 = 2;
    optimize_filters_for_memory: c_uchar = 1;
    pin_top_level_index_and_filter: c_uchar = 1;
    prepopulate_block_cache: c_int = 0;
    read_amp_bytes_per_bit: u32 = 0;
    separate_key_value_in_data_block: c_uchar = 0;
    use_delta_encoding: c_uchar = 1;
}

/// RocksDB's pinning tiers of the cache, by number.
const PINNING_TIERS: [&str; 4] = ["kFallback", "kNone", "kFlushedAndSimilar", "kAll"];

impl BlockBasedOptions {
    /// Pinning is kept among the options of tables: the open notes it.
    fn pin(&mut self, what: &'static str, tier: c_int) {
        self.numbers.keep(what, tier.number(), c_int::number(0));
        let word = |tier: Number| usize::try_from(c_int::of(tier)).ok().and_then(|tier| PINNING_TIERS.get(tier));
        let members: String =
            self.numbers.iter().filter_map(|(what, tier)| Some(format!("{what}={};", word(tier)?))).collect();
        match members.is_empty() {
            true => self.table.kept.remove("metadata_cache_options"),
            false => self.table.kept.set("metadata_cache_options", &members),
        }
    }

    pub fn filter_by(&mut self, filter: Option<Filter>) {
        let Filter { policy, ribbon } = filter.unwrap_or(Filter { policy: FilterPolicy::NONE, ribbon: None });
        self.table.filter_policy = policy;
        match ribbon {
            Some(asked) => self.table.kept.set("filter_policy", &asked),
            None => self.table.kept.remove("filter_policy"),
        }
    }
}

/// The highest version of the table format that is written.
const FORMAT_VERSION_MAX: u32 = 7;

impl Options {
    /// Checks what RocksDB checks when it opens a database for writing. A new family's options may have any version:
    /// its tables are of the highest one that is written.
    ///
    /// # Errors
    /// `InvalidArgument`: tables of this `format_version` cannot be written.
    pub fn check_format_version(&self) -> Result<(), Failure> {
        if self.family.table.asked_format_version() > FORMAT_VERSION_MAX {
            return Err(Failure::invalid_argument(
                "Unsupported BlockBasedTable format_version. Please check include/rocksdb/table.h for more info",
            ));
        }
        Ok(())
    }

    pub fn set_block_based_table(&mut self, table: BlockBasedOptions) {
        self.family.kept.remove("table_factory");
        self.family.table_factory = Default::default();
        self.family.table = table.table;
        self.block_cache = table.cache;
    }
}

impl Filter {
    /// RocksDB makes no filter below half a bit for each key.
    pub fn bloom(bits_per_key: f64) -> Box<Filter> {
        const BITS_MIN: f64 = 0.5;
        const BITS_MAX: f64 = 100.0;
        let bits = Some(bits_per_key.min(BITS_MAX)).filter(|bits| *bits >= BITS_MIN);
        Box::new(Filter { policy: bits.map_or(FilterPolicy::NONE, FilterPolicy::bloom), ribbon: None })
    }

    /// The filter of tables' options.
    pub fn of(policy: FilterPolicy) -> Box<Filter> {
        Box::new(Filter { policy, ribbon: None })
    }

    /// A bloom filter with as many bits: ribbon filters are read, not written. The open notes it.
    fn ribbon(bits_per_key: f64, bloom_before_level: c_int) -> Box<Filter> {
        let bloom = Filter::bloom(bits_per_key);
        let asked = bloom.policy.bits_per_key.map(|bits| format!("ribbonfilter:{bits}:{bloom_before_level}"));
        Box::new(Filter { ribbon: asked, ..*bloom })
    }
}

export! {
    fn rocksdb_block_based_options_create() -> Box<BlockBasedOptions> {
        Box::default()
    }

    fn rocksdb_block_based_options_destroy(options: Option<Box<BlockBasedOptions>>) {
        drop(options);
    }

    /// An older name of `data_block_hash_table_util_ratio`.
    fn rocksdb_block_based_options_set_data_block_hash_ratio(options: &mut BlockBasedOptions, ratio: f64) {
        options.table.data_block_hash_table_util_ratio = ratio;
    }

    fn rocksdb_block_based_options_set_top_level_index_pinning_tier(options: &mut BlockBasedOptions, tier: c_int) {
        options.pin("top_level_index_pinning", tier);
    }

    fn rocksdb_block_based_options_set_partition_pinning_tier(options: &mut BlockBasedOptions, tier: c_int) {
        options.pin("partition_pinning", tier);
    }

    fn rocksdb_block_based_options_set_unpartitioned_pinning_tier(options: &mut BlockBasedOptions, tier: c_int) {
        options.pin("unpartitioned_pinning", tier);
    }

    fn rocksdb_block_based_options_set_filter_policy(options: &mut BlockBasedOptions, policy: Option<Box<Filter>>) {
        options.filter_by(policy.map(|filter| *filter));
    }

    fn rocksdb_block_based_options_set_block_cache(options: &mut BlockBasedOptions, cache: Option<&Cache>) {
        options.cache = cache.map(Cache::shared);
    }

    fn rocksdb_options_set_block_based_table_factory(options: &mut Options, table: Option<&BlockBasedOptions>) {
        options.set_block_based_table(table.cloned().unwrap_or_default());
    }

    fn rocksdb_filterpolicy_create_bloom(bits_per_key: f64) -> Box<Filter> {
        Filter::bloom(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> Box<Filter> {
        Filter::bloom(bits_per_key)
    }

    fn rocksdb_filterpolicy_create_ribbon(bloom_equivalent_bits_per_key: f64) -> Box<Filter> {
        Filter::ribbon(bloom_equivalent_bits_per_key, 0)
    }

    fn rocksdb_filterpolicy_create_ribbon_hybrid(
        bloom_equivalent_bits_per_key: f64,
        bloom_before_level: c_int,
    ) -> Box<Filter> {
        Filter::ribbon(bloom_equivalent_bits_per_key, bloom_before_level)
    }

    fn rocksdb_filterpolicy_destroy(policy: Option<Box<Filter>>) {
        drop(policy);
    }
}
