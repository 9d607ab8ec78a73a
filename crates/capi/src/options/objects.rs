//! Options that are objects: comparators, operators, caches, and formats of memtables and tables.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use spillway::internal::metrics::Statistics;
use spillway::internal::options::kept::Kept as Texts;
use spillway::internal::options::{
    CompactOnDeletion, CompressionKind, CompressionList, CompressionOptions, SstPartitioner,
};
use spillway::internal::{UserOrder, merge};

use super::Options;
use super::homes::words;
use super::styles::Cuckoo;
use crate::boundary::array::{Array, Count};
use crate::boundary::export;
use crate::boundary::reply::Given;
use crate::cache::Cache;
use crate::env::{EnvHandle, RateLimiter};
use crate::extend::comparator::CallbackOrder;
use crate::extend::filter::{CallbackFilter, CallbackFilterFactory};
use crate::extend::merge::CallbackMerge;
use crate::extend::partitioner::PartitionerFactory;
use crate::extend::prefix::Prefix;
use crate::file_manager::FileManager;
use crate::kept::Keeps;
use crate::kept::number::{CNumber, Field};
use crate::logger::Logger;
use crate::statistics::{self, HistogramData};
use crate::text::text;
use crate::write_buffer_manager::WriteBufferManager;

impl Options {
    pub fn opened_statistics(&self) -> Option<Arc<Statistics>> {
        self.statistics.lock().clone()
    }

    pub fn collect(&mut self, collector: CompactOnDeletion) {
        self.family.table_properties_collectors.0.push(collector);
    }

    /// A compression by level. The open refuses a list with an unsupported one.
    pub fn set_compressions(&mut self, numbers: &[c_int]) {
        let mut all_taken = true;
        let kind = |&number: &c_int| {
            let mut kind = CompressionKind::None;
            all_taken &= kind.take(number.number());
            kind
        };
        self.family.compression_per_level = CompressionList(numbers.iter().map(kind).collect());
        self.family.kept.remove("compression_per_level");
        if !all_taken {
            let words = words("compression").unwrap_or_default();
            let word =
                |number: &c_int| words.iter().find(|(known, _)| *known == i128::from(*number)).map(|(_, word)| *word);
            let list: Vec<_> = numbers.iter().map(|number| word(number).unwrap_or("unknown")).collect();
            self.family.kept.set("compression_per_level", &list.join(":"));
        }
    }

    /// Compressions by level as they were set.
    pub fn compressions(&self) -> Vec<c_int> {
        let words = words("compression").unwrap_or_default();
        let number = |text: &str| words.iter().find(|(_, word)| *word == text).map(|(number, _)| *number as c_int);
        match self.family.kept.get("compression_per_level") {
            Some(list) => list.split(':').filter_map(number).collect(),
            None => {
                self.family.compression_per_level.0.iter().map(|kind| CompressionKind::number(*kind).into()).collect()
            }
        }
    }

    pub fn set_level_factors(&mut self, factors: &[c_int]) {
        let differ = factors.iter().any(|factor| *factor != 1);
        let text = differ.then(|| factors.iter().map(c_int::to_string).collect::<Vec<_>>().join(":"));
        keep_if(&mut self.family.kept, "max_bytes_for_level_multiplier_additional", text);
    }

    /// What the last level's compression has of its own: without effect here.
    pub fn set_bottommost_compression(&mut self, options: Option<&CompressionOptions>) {
        let text = options.map(|options| {
            let CompressionOptions { window_bits, level, max_dict_bytes, .. } = options;
            let strategy = options.kept.get("strategy").unwrap_or("0");
            format!("{window_bits}:{level}:{strategy}:{max_dict_bytes}")
        });
        keep_if(&mut self.family.kept, "bottommost_compression_opts", text);
    }
}

export! {
    /// The comparator stays the caller's.
    fn rocksdb_options_set_comparator(options: &mut Options, comparator: Option<&CallbackOrder>) {
        options.family.order = comparator.map_or(UserOrder::Bytewise, CallbackOrder::order);
        options.has_timestamps = comparator.is_some_and(CallbackOrder::has_timestamps);
    }

    /// The options own the operator from now on.
    fn rocksdb_options_set_merge_operator(options: &mut Options, operator: Option<Box<CallbackMerge>>) {
        options.family.merge_operator = operator.map(|operator| Arc::new(*operator) as _);
    }

    fn rocksdb_options_set_uint64add_merge_operator(options: &mut Options) {
        options.family.merge_operator = merge::by_name("uint64add");
    }

    /// The filter stays the caller's.
    fn rocksdb_options_set_compaction_filter(options: &mut Options, filter: Option<&CallbackFilter>) {
        options.family.compaction_filter = filter.map(CallbackFilter::shared);
    }

    /// The options own the factory from now on.
    fn rocksdb_options_set_compaction_filter_factory(
        options: &mut Options,
        factory: Option<Box<CallbackFilterFactory>>,
    ) {
        options.family.compaction_filter_factory = factory.map(|factory| Arc::new(*factory) as _);
    }

    /// The options own the extractor from now on.
    fn rocksdb_options_set_prefix_extractor(options: &mut Options, extractor: Option<Box<Prefix>>) {
        options.family.prefix_extractor = extractor.map(|extractor| extractor.extractor());
    }

    fn rocksdb_options_set_env(options: &mut Options, env: Option<&EnvHandle>) {
        options.env = env.map(EnvHandle::env);
    }

    fn rocksdb_options_set_write_buffer_manager(options: &mut Options, manager: Option<&WriteBufferManager>) {
        options.write_buffer_manager = manager.cloned();
    }

    fn rocksdb_options_set_row_cache(options: &mut Options, cache: Option<&Cache>) {
        options.row_cache = cache.map(Cache::shared);
    }

    fn rocksdb_options_set_blob_cache(options: &mut Options, cache: Option<&Cache>) {
        keep_if(&mut options.family.kept, "blob_cache", cache.map(|_| "LRUCache".to_owned()));
    }

    fn rocksdb_options_set_ratelimiter(options: &mut Options, limiter: Option<&RateLimiter>) {
        options.rate_limiter = limiter.map(RateLimiter::limiter);
    }

    fn rocksdb_options_set_info_log(options: &mut Options, logger: Option<&Logger>) {
        options.db.info_log = logger.map(|logger| logger.0.clone());
    }

    /// A new handle; NULL if none was set.
    fn rocksdb_options_get_info_log(options: &Options) -> Option<Box<Logger>> {
        options.db.info_log.clone().map(|logger| Box::new(Logger(logger)))
    }

    fn rocksdb_options_set_sst_file_manager(options: &mut Options, manager: Option<&FileManager>) {
        options.file_manager = manager.cloned();
    }

    fn rocksdb_options_set_wal_dir(options: &mut Options, dir: &CStr) {
        options.db.wal_dir = text(dir).into_owned();
    }

    fn rocksdb_options_set_db_log_dir(options: &mut Options, dir: &CStr) {
        options.db.db_log_dir = text(dir).into_owned();
    }

    fn rocksdb_options_set_compression_per_level(options: &mut Options, levels: Array<c_int>, count: Count) {
        options.set_compressions(levels.elements(count));
    }

    /// Compresses levels from `first` on, and none before it. A negative number changes nothing.
    fn rocksdb_options_set_min_level_to_compress(options: &mut Options, first: c_int) {
        let Ok(first) = usize::try_from(first) else { return };
        let compression = options.family.compression;
        let kind = |level| if level < first { CompressionKind::None } else { compression };
        options.family.kept.remove("compression_per_level");
        options.family.compression_per_level = CompressionList((0..options.family.num_levels).map(kind).collect());
    }

    fn rocksdb_options_set_compression_options(
        options: &mut Options,
        window_bits: c_int,
        level: c_int,
        strategy: c_int,
        max_dict_bytes: c_int,
    ) {
        let compression = &mut options.family.compression_opts;
        (compression.window_bits, compression.level) = (window_bits, level);
        compression.max_dict_bytes = u32::try_from(max_dict_bytes).unwrap_or(0);
        keep_if(&mut compression.kept, "strategy", (strategy != 0).then(|| strategy.to_string()));
    }

    fn rocksdb_options_set_bottommost_compression_options(
        options: &mut Options,
        window_bits: c_int,
        level: c_int,
        strategy: c_int,
        max_dict_bytes: c_int,
        enabled: bool,
    ) {
        let text = format!("{window_bits}:{level}:{strategy}:{max_dict_bytes}");
        keep_if(&mut options.family.kept, "bottommost_compression_opts", enabled.then_some(text));
    }

    fn rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
        options: &mut Options,
        bytes: c_int,
        enabled: bool,
    ) {
        if enabled {
            options.family.kept.set("bottommost_compression_opts", &format!("zstd_max_train_bytes={bytes}"));
        }
    }

    fn rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
        options: &mut Options,
        use_trainer: bool,
        enabled: bool,
    ) {
        if enabled && !use_trainer {
            options.family.kept.set("bottommost_compression_opts", "use_zstd_dict_trainer=false");
        }
    }

    /// Dictionaries of other levels are trained too.
    fn rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(_options: &Options) -> bool {
        true
    }

    fn rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
        options: &mut Options,
        bytes: u64,
        enabled: bool,
    ) {
        if enabled {
            options.family.kept.set("bottommost_compression_opts", &format!("max_dict_buffer_bytes={bytes}"));
        }
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory(
        options: &mut Options,
        window_size: usize,
        deletion_trigger: usize,
    ) {
        options.collect(CompactOnDeletion { window_size, deletion_trigger, ..CompactOnDeletion::default() });
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(
        options: &mut Options,
        window_size: usize,
        deletion_trigger: usize,
        deletion_ratio: f64,
    ) {
        options.collect(CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, min_file_size: 0 });
    }

    fn rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(
        options: &mut Options,
        window_size: usize,
        deletion_trigger: usize,
        deletion_ratio: f64,
        min_file_size: u64,
    ) {
        options.collect(CompactOnDeletion { window_size, deletion_trigger, deletion_ratio, min_file_size });
    }

    /// The options have a copy.
    fn rocksdb_options_set_sst_partitioner_factory(options: &mut Options, factory: Option<&PartitionerFactory>) {
        options.family.sst_partitioner_factory = factory.map_or(SstPartitioner::None, |factory| factory.0);
    }

    /// Tables stay block-based here too.
    fn rocksdb_options_set_cuckoo_table_factory(options: &mut Options, _cuckoo: &Cuckoo) {
        options.family.kept.set("table_factory", "CuckooTable");
    }

    fn rocksdb_options_set_memtable_vector_rep(options: &mut Options) {
        options.family.memtable_factory = "vector".into();
    }

    /// Height and branching factor are for RocksDB's lists in buckets, absent here.
    fn rocksdb_options_set_hash_skip_list_rep(
        options: &mut Options,
        bucket_count: usize,
        _height: c_int,
        _branching_factor: c_int,
    ) {
        options.family.memtable_factory = format!("hash_skiplist:{bucket_count}").into();
    }

    fn rocksdb_options_set_hash_link_list_rep(options: &mut Options, bucket_count: usize) {
        options.family.memtable_factory = format!("hash_linkedlist:{bucket_count}").into();
    }

    /// Speedb's, of its sorted hash.
    fn rocksdb_options_set_hash_spdb_rep(options: &mut Options, bucket_count: usize) {
        options.family.memtable_factory = format!("hash_spdb:{bucket_count}").into();
    }

    /// Tables stay block-based: plain tables are not written.
    fn rocksdb_options_set_plain_table_factory(
        options: &mut Options,
        _user_key_len: u32,
        _bloom_bits_per_key: c_int,
        _hash_table_ratio: f64,
        _index_sparseness: usize,
        _huge_page_tlb_size: usize,
        _encoding_type: c_char,
        _full_scan_mode: bool,
        _store_index_in_file: bool,
    ) {
        options.family.kept.set("table_factory", "PlainTable");
    }

    fn rocksdb_options_enable_statistics(options: &mut Options) {
        options.db.statistics = true;
    }

    /// NULL if statistics are off. All is 0 until a database is opened with them.
    fn rocksdb_options_statistics_get_string(options: &Options) -> Given<c_char> {
        if !options.db.statistics {
            return Given::NONE;
        }
        Given::text(options.opened_statistics().unwrap_or_default().to_string())
    }

    /// As in RocksDB, no level is set without statistics. Every level counts everything here.
    fn rocksdb_options_set_statistics_level(options: &mut Options, level: c_int) {
        if options.db.statistics {
            let level = level.clamp(STATISTICS_DISABLED, STATISTICS_ALL);
            options.numbers.keep("statistics_level", level.number(), STATISTICS_LEVEL_DEFAULT.number());
        }
    }

    fn rocksdb_options_get_statistics_level(options: &Options) -> c_int {
        if !options.db.statistics {
            return STATISTICS_DISABLED;
        }
        options.numbers.kept("statistics_level").map_or(STATISTICS_LEVEL_DEFAULT, CNumber::of)
    }

    fn rocksdb_options_statistics_get_ticker_count(options: &Options, ticker: u32) -> u64 {
        options.opened_statistics().map_or(0, |statistics| statistics::ticker(&statistics, ticker))
    }

    fn rocksdb_options_statistics_get_histogram_data(
        options: &Options,
        histogram: u32,
        data: &mut HistogramData,
    ) {
        *data = options
            .opened_statistics()
            .map_or_else(HistogramData::default, |statistics| HistogramData::of(&statistics, histogram));
    }

    /// Named without `set` in RocksDB too.
    fn rocksdb_options_compaction_readahead_size(options: &mut Options, bytes: usize) {
        options.keep("compaction_readahead_size", bytes.number(), READAHEAD_DEFAULT.number());
    }

    fn rocksdb_options_get_compaction_readahead_size(options: &Options) -> usize {
        options.kept("compaction_readahead_size").map_or(READAHEAD_DEFAULT, CNumber::of)
    }

    fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
        options: &mut Options,
        levels: Array<c_int>,
        count: Count,
    ) {
        options.set_level_factors(levels.elements(count));
    }
}

const READAHEAD_DEFAULT: usize = 2 << 20;

/// RocksDB's levels of statistics: none, all but detailed timers, all.
const STATISTICS_DISABLED: c_int = 0;
const STATISTICS_LEVEL_DEFAULT: c_int = 3;
const STATISTICS_ALL: c_int = 5;
/// Keeps a text, if there is one.
fn keep_if(kept: &mut Texts, name: &str, text: Option<String>) {
    match text {
        Some(text) => kept.set(name, &text),
        None => kept.remove(name),
    }
}
