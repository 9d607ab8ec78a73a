//! Options of a column family.

use std::sync::Arc;

use crate::comparator::UserOrder;
use crate::error::{Error, Result};
use crate::extend::{
    CompactionFilter, CompactionFilterContext, CompactionFilterFactory, MergeOperator, PrefixExtractor,
};
use crate::features::{self, COMPRESSION_DEFAULT};
use crate::options::choices::{CompactionPri, CompactionStyle, CompressionKind, IndexType};
use crate::options::collector::Collectors;
use crate::options::compression::{CompressionList, CompressionOptions};
use crate::options::known;
use crate::options::level_base::LevelBase;
use crate::options::memtable::MemtableChoice;
use crate::options::partitioner::SstPartitioner;
use crate::options::row::{ANY, at_least, option_table, within};
use crate::options::string;
use crate::options::styles::{FifoOptions, UniversalOptions};
use crate::options::table::TableOptions;
use crate::options::table_factory::TableFactory;
use crate::options::value_times::ValueTimes;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// RocksDB's value for "default of the compaction style".
const BY_STYLE: u64 = u64::MAX - 1;

/// RocksDB's default age, 30 days.
const MONTH_S: u64 = 30 * 24 * 60 * 60;

/// Level 0, a level for compaction output, and the last level reserved for `ingest_behind`.
const BEHIND_LEVELS_MIN: usize = 3;

option_table! {
    for_each: ($) for_each_family_option;
    /// Options of a column family.
    struct FamilyOptions = "CFOptions", unhonoured: known::FAMILY, supplied: FamilyOptions::has_filter;

    /// The order of keys, by name; fixed when the family is created.
    order as "comparator": UserOrder = UserOrder::Bytewise, ANY, RocksDb, Fixed;
    /// Combines operands written by `merge`, by name.
    merge_operator: Option<Arc<dyn MergeOperator>> = None, ANY, RocksDb, Fixed;
    /// The part of a key that prefix filters and prefix iteration go by (`fixed:8`, `capped:8`).
    prefix_extractor: Option<Arc<dyn PrefixExtractor>> = None, ANY, RocksDb, Fixed;
    /// Bytes of a memtable at which it is sealed and flushed.
    write_buffer_size: usize = 64 << 20, within(65536.0, 1099511627776.0), RocksDb, Mutable;
    /// Memtables, the one being written included, at which writers wait for a flush.
    max_write_buffer_number: usize = 2, within(1.0, 1024.0), RocksDb, Mutable;
    /// Sealed memtables that are flushed together.
    min_write_buffer_number_to_merge: usize = 1, within(1.0, 1024.0), RocksDb, Fixed;
    /// Each write ends with the flush of what it wrote to the family: it returns when that is in tables.
    eager_flush: bool = false, ANY, Spillway, Mutable;
    /// The memtable's representation, with its parameters. With `convert_to_sst=kFileMmap` memtables lie in files whose
    /// bytes are trusted as memory is: they are not checksummed, and what changes them changes values for good. The log has
    /// the right ones only until the flush.
    memtable_factory or "memtable": MemtableChoice = MemtableChoice::default(), ANY, Spillway, Fixed;
    /// Bits of bloom filter per memtable, as a share of the write buffer; 0 for none. Takes effect with
    /// `memtable_whole_key_filtering`.
    memtable_prefix_bloom_size_ratio: f64 = 0.0, within(0.0, 0.25), RocksDb, Mutable;
    /// Puts whole keys into the memtable's filter. Prefixes are never put there.
    memtable_whole_key_filtering: bool = false, ANY, RocksDb, Mutable;
    /// Entries of one key that an iterator steps over before it seeks past them instead.
    max_sequential_skip_in_iterations: u64 = 8, ANY, RocksDb, Fixed;
    /// How blocks are compressed.
    compression: CompressionKind = COMPRESSION_DEFAULT, ANY, RocksDb, Mutable;
    /// The same level by level, from level 0; the last one given counts for deeper levels. Empty: `compression`.
    compression_per_level: CompressionList = CompressionList::default(), ANY, RocksDb, Mutable;
    /// How the last level's blocks are compressed; `kDisableCompressionOption` leaves them like the others.
    bottommost_compression: CompressionKind = CompressionKind::Disable, ANY, RocksDb, Mutable;
    /// How hard to compress.
    compression_opts: CompressionOptions = CompressionOptions::default(), ANY, RocksDb, Mutable;
    /// How tables are arranged.
    compaction_style: CompactionStyle = CompactionStyle::Level, ANY, RocksDb, Fixed;
    /// Which table of a level is compacted first, with compaction by level.
    compaction_pri: CompactionPri = CompactionPri::MinOverlappingRatio, ANY, RocksDb, Fixed;
    /// Where compactions end tables besides at their size: between keys of different prefixes.
    sst_partitioner_factory: SstPartitioner = SstPartitioner::None, ANY, RocksDb, Fixed;
    /// Marks tables with many deletions for compaction as they are written. Each collector can mark a table.
    table_properties_collectors: Collectors = Collectors::default(), ANY, Spillway, Fixed;
    /// How sorted runs are chosen, with universal compaction.
    compaction_options_universal: UniversalOptions = UniversalOptions::default(), ANY, RocksDb, Mutable;
    /// What is kept, with FIFO compaction.
    compaction_options_fifo: FifoOptions = FifoOptions::default(), ANY, RocksDb, Mutable;
    /// Seconds after which a table's data is compacted towards the last level, so that what it deletes goes. Universal
    /// compaction takes the smaller of this and `periodic_compaction_seconds`. FIFO compaction deletes tables with
    /// nothing younger. 0 for never; by default 30 days.
    compaction_ttl_seconds as "ttl": u64 = BY_STYLE, ANY, RocksDb, Mutable;
    /// Seconds after which a table is written anew, wherever it is, so that compaction filters see its values. No effect
    /// with FIFO compaction. 0 for never; by default 30 days with universal compaction or with a compaction filter.
    periodic_compaction_seconds: u64 = BY_STYLE, ANY, RocksDb, Mutable;
    /// Levels of tables.
    num_levels: usize = 7, within(1.0, 64.0), RocksDb, Fixed;
    /// Keeps the last level for tables that are ingested under everything there is (`ingest_behind`): no compaction reads
    /// or writes it, and none drops what such a table must not bring back. Needs three levels.
    /// RocksDB 7.8 does not know the name.
    cf_allow_ingest_behind: bool = false, ANY, Spillway, Fixed;
    /// Most uncompressed bytes of an ingest's tables of the family to merge with memtables beneath that they overlap: their
    /// flush writes one table of level 0. Larger tables, and those that overlap no memtable, are linked. 0: all are linked.
    merge_ingests_max_bytes: u64 = MIB, ANY, Spillway, Mutable;
    /// Tables in level 0 at which they are compacted; with universal compaction, sorted runs in all levels.
    level0_file_num_compaction_trigger: i32 = 4, at_least(1.0), RocksDb, Mutable;
    /// Tables in level 0, or sorted runs, at which writers are slowed down; negative for never.
    level0_slowdown_writes_trigger: i32 = 20, at_least(-1.0), RocksDb, Mutable;
    /// Tables in level 0, or sorted runs, at which writers stop; negative for never.
    level0_stop_writes_trigger: i32 = 36, at_least(-1.0), RocksDb, Mutable;
    /// Bytes of a table in level 1.
    target_file_size_base: u64 = 64 * MIB, at_least(4096.0), RocksDb, Mutable;
    /// Factor by which tables grow from level to level.
    target_file_size_multiplier: u32 = 1, at_least(1.0), RocksDb, Mutable;
    /// Bytes of level 1. Where it is not set and memtables become tables (`convert_to_sst`), the open takes
    /// `write_buffer_size`.
    max_bytes_for_level_base: LevelBase = LevelBase::DEFAULT, at_least(4096.0), RocksDb, Mutable;
    /// Factor by which levels grow.
    max_bytes_for_level_multiplier: f64 = 10.0, within(1.0, 1000.0), RocksDb, Mutable;
    /// Derives the levels' sizes from the last level's, and fills levels from the last one up.
    level_compaction_dynamic_level_bytes: bool = true, ANY, RocksDb, Fixed;
    /// Reads for each byte of a table after which it is compacted one level down, if nothing is more urgent: lookups that it
    /// did not answer, and seeks, in samples. 0 for never. Tables of the deepest level stay. A name of newer RocksDBs.
    read_triggered_compaction_threshold: f64 = 0.0, within(0.0, 1e6), Spillway, Mutable;
    /// Bytes that one compaction takes in at most; 0 is 25 times `target_file_size_base`.
    max_compaction_bytes: u64 = 0, ANY, RocksDb, Mutable;
    /// Bytes that compactions are behind at which writers are slowed down; 0 for never.
    soft_pending_compaction_bytes_limit: u64 = 64 * GIB, ANY, RocksDb, Mutable;
    /// Bytes that compactions are behind at which writers stop; 0 for never.
    hard_pending_compaction_bytes_limit: u64 = 256 * GIB, ANY, RocksDb, Mutable;
    /// Leaves compacting to explicit calls.
    disable_auto_compactions: bool = false, ANY, RocksDb, Mutable;
    /// Reads every table back after it was written.
    paranoid_file_checks: bool = false, ANY, RocksDb, Mutable;
    /// Writes no filters for the last level, where nearly every lookup that gets there finds its key.
    optimize_filters_for_hits: bool = false, ANY, RocksDb, Fixed;
    /// Seconds after which values expire, of a family whose values carry times (`value_times`); a new family's values then
    /// carry them. Set by the Rust API's `FamilyOptions::ttl`. 0: never.
    value_ttl_s: u32 = 0, within(0.0, 2147483647.0), Spillway, Fixed;
    /// Each value ends with the second of its write, in four bytes. The MANIFEST notes it, and then it holds for good: give it for a
    /// family of before such notes, of RocksDB's DBWithTTL. `auto` is as noted; `false` is an error where it is noted.
    value_times: ValueTimes = ValueTimes::AUTO, ANY, Spillway, Fixed;
    /// What tables are written as, with DispatcherTable level by level. RocksDB reads BlockBasedTable alone.
    table_factory: TableFactory = TableFactory::default(), ANY, Spillway, Fixed;
    /// The tables' layout, filters and cache.
    table as "block_based_table_factory": TableOptions = TableOptions::default(), ANY, Section, Mutable;

    beside
    /// Looks at values as compactions pass by.
    compaction_filter: Option<Arc<dyn CompactionFilter>> = None;
    /// Makes filters, where `compaction_filter` is none.
    compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>> = None;
}

/// Ages in seconds at which tables are compacted; 0 for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeLimits {
    /// Of the data: by level, compacted one level down; FIFO: deleted.
    pub ttl_s: u64,
    /// Of the table: written anew.
    pub periodic_s: u64,
}

impl FamilyOptions {
    /// `ttl` and `periodic_compaction_seconds` as they count for the style, as in RocksDB.
    pub fn age_limits(&self) -> AgeLimits {
        let or = |seconds: u64, default: u64| if seconds == BY_STYLE { default } else { seconds };
        let ttl_s = or(self.compaction_ttl_seconds, MONTH_S);
        match self.compaction_style {
            CompactionStyle::Level => {
                let periodic_s =
                    or(self.periodic_compaction_seconds, if self.has_compaction_filter() { MONTH_S } else { 0 });
                AgeLimits { ttl_s, periodic_s }
            }
            CompactionStyle::Universal => {
                let periodic_s = or(self.periodic_compaction_seconds, MONTH_S);
                let least = [ttl_s, periodic_s].into_iter().filter(|&seconds| seconds > 0).min();
                AgeLimits { ttl_s: 0, periodic_s: least.unwrap_or(0) }
            }
            CompactionStyle::Fifo => AgeLimits { ttl_s, periodic_s: 0 },
        }
    }

    /// The extractor in force.
    pub fn prefix_extractor(&self) -> Option<Arc<dyn PrefixExtractor>> {
        self.prefix_extractor.clone()
    }

    /// True if the caller supplied the filter or filter factory called `name`.
    fn has_filter(&self, option: &str, name: &str) -> bool {
        let (filter, factory) = (&self.compaction_filter, &self.compaction_filter_factory);
        match option {
            "compaction_filter" => filter.as_ref().is_some_and(|filter| filter.name() == name),
            "compaction_filter_factory" => factory.as_ref().is_some_and(|factory| factory.name() == name),
            _ => false,
        }
    }

    /// True if compactions may drop or change values.
    pub fn has_compaction_filter(&self) -> bool {
        self.compaction_filter.is_some() || self.compaction_filter_factory.is_some()
    }

    /// The filter for one compaction.
    pub fn compaction_filter_for(&self, context: CompactionFilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let made = || self.compaction_filter_factory.as_ref()?.create(context);
        self.compaction_filter.clone().or_else(made)
    }

    /// Whether a compaction may have a filter.
    pub fn filters_compactions(&self) -> bool {
        self.compaction_filter.is_some() || self.compaction_filter_factory.is_some()
    }

    /// The compression of `level`'s tables; `bottommost` if no deeper level holds tables.
    pub fn compression_at(&self, level: usize, bottommost: bool) -> CompressionKind {
        if bottommost && self.bottommost_compression != CompressionKind::Disable {
            return self.bottommost_compression;
        }
        self.compression_per_level.at(level).unwrap_or(self.compression)
    }

    /// Most input bytes of one compaction, with 0 resolved.
    pub fn max_compaction_bytes(&self) -> u64 {
        match self.max_compaction_bytes {
            0 => self.target_file_size_base.saturating_mul(25),
            bytes => bytes,
        }
    }

    /// Resolves contradictory options like RocksDB, and returns a list of changes.
    pub fn settle(&mut self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut raise = |name: &str, value: &mut i32, least: i32| {
            if *value >= 0 && *value < least {
                changes.push(format!("{name} raised from {value} to {least}"));
                *value = least;
            }
        };
        raise(
            "level0_slowdown_writes_trigger",
            &mut self.level0_slowdown_writes_trigger,
            self.level0_file_num_compaction_trigger,
        );
        let slowdown = self.level0_slowdown_writes_trigger.max(self.level0_file_num_compaction_trigger);
        raise("level0_stop_writes_trigger", &mut self.level0_stop_writes_trigger, slowdown);
        if self.max_write_buffer_number < 2 {
            changes.push("max_write_buffer_number raised from 1 to 2".to_string());
            self.max_write_buffer_number = 2;
        }
        if self.memtable_prefix_bloom_size_ratio > 0.0 && !self.memtable_whole_key_filtering {
            changes.push(
                "memtable_prefix_bloom_size_ratio set to 0: there is no filter without memtable_whole_key_filtering"
                    .to_string(),
            );
            self.memtable_prefix_bloom_size_ratio = 0.0;
        }
        let last = self.compression_at(self.num_levels.saturating_sub(1), true);
        if self.compression_opts.max_dict_bytes > 0 && last != CompressionKind::Zstd {
            changes.push(format!(
                "max_dict_bytes has no effect: dictionaries are written with kZSTD only, and the last level has {}",
                last.name()
            ));
        }
        let (asked, raw) = (self.compression_opts.window_bits, -i32::from(self.compression_opts.raw_window_bits()));
        let kinds = [self.compression, self.bottommost_compression];
        if asked != raw && kinds.iter().chain(&self.compression_per_level.0).any(|kind| *kind == CompressionKind::Zlib)
        {
            changes.push(format!("window_bits={asked} is not what RocksDB reads of zlib: {raw} is taken"));
        }
        if self.table.partition_filters && self.table.index_type != IndexType::TwoLevel {
            changes
                .push("partition_filters set to false: there are none without index_type=kTwoLevelIndexSearch".into());
            self.table.partition_filters = false;
        }
        let mergeable = self.max_write_buffer_number - 1;
        if self.min_write_buffer_number_to_merge > mergeable {
            let asked = self.min_write_buffer_number_to_merge;
            changes.push(format!("min_write_buffer_number_to_merge lowered from {asked} to {mergeable}"));
            self.min_write_buffer_number_to_merge = mergeable;
        }
        changes
    }

    /// Refuses compressions that this build lacks.
    fn check_features(&self) -> Result<()> {
        let all = [("compression", self.compression), ("bottommost_compression", self.bottommost_compression)];
        let by_level = self.compression_per_level.0.iter().map(|kind| ("compression_per_level", *kind));
        all.into_iter().chain(by_level).try_for_each(|(name, kind)| {
            features::check_compression(kind).map_err(|error| error.context(format!("option `{name}`")))
        })
    }

    /// # Errors
    /// `InvalidArgument` or `Unsupported`: a value out of bounds or unsupported, named.
    pub fn validate(&self) -> Result<()> {
        string::check_bounds(self)?;
        string::check_bounds(&self.table)?;
        string::check_bounds(&self.compression_opts)?;
        string::check_bounds(&self.compaction_options_universal)?;
        if self.value_ttl_s > 0 && self.value_times.is_denied() {
            let what = "value_times=false contradicts value_ttl_s: values end with times where they have a ttl; leave value_times out";
            return Err(Error::invalid_argument(what));
        }
        if self.compaction_style == CompactionStyle::Universal {
            self.compaction_options_universal.check_beside(self.level0_file_num_compaction_trigger)?;
        }
        if self.table.index_type == IndexType::HashSearch && self.prefix_extractor.is_none() {
            return Err(Error::invalid_argument(
                "Hash index is specified for block-based table, but prefix_extractor is not given; name one, or take another \
                 index_type",
            ));
        }
        self.table_factory.validate().map_err(|error| error.context("option `table_factory`"))?;
        self.check_features()?;
        if self.compression == CompressionKind::Disable
            || self.compression_per_level.0.contains(&CompressionKind::Disable)
        {
            return Err(Error::invalid_argument(
                "kDisableCompressionOption is for bottommost_compression only; kNoCompression leaves blocks as they are",
            ));
        }
        if self.cf_allow_ingest_behind && self.num_levels < BEHIND_LEVELS_MIN {
            return Err(Error::invalid_argument(format!(
                "allow_ingest_behind keeps the last level free: num_levels must be {BEHIND_LEVELS_MIN} or more, not {}",
                self.num_levels
            )));
        }
        Ok(())
    }
}
