//! Options of families and of their tables.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::extend::{CompactionFilter, CompactionFilterFactory, FilterDecision, MergeOperator, PrefixExtractor};
use base::options::{
    CacheSize, ChecksumKind, CompactOnDeletion, CompactionPri, CompactionStopStyle, CompactionStyle, CompressionKind,
    CompressionList, DataBlockIndexType, FamilyOptions as EngineFamilyOptions, FilterPolicy, IndexType, SstPartitioner,
    TableOptions as EngineTableOptions, apply_string,
};
use base::{
    Comparator, Result, UserOrder, for_each_compression_option, for_each_family_option, for_each_fifo_option,
    for_each_table_option, for_each_universal_option,
};

use crate::api::options::changes::{Changes, setters};
use crate::api::options::functions::{CompactionFilterFn, ComparatorFn, MergeFn};

/// Options of a column family. Only those given count: a family that exists keeps the rest as stored, a new one gets
/// the defaults. Names, defaults and meanings are RocksDB's where RocksDB has the option.
///
/// ```
/// use spillway::{CompressionKind, FamilyOptions, TableOptions};
///
/// let events = FamilyOptions::new()
///     .memtable("trie")
///     .write_buffer_size(256 << 20)
///     .compression(CompressionKind::Lz4)
///     .table(TableOptions::new().bloom_filter(10.0).block_size(16 << 10));
/// ```
#[derive(Clone, Default)]
#[must_use = "options do nothing until they are given to a call"]
pub struct FamilyOptions {
    changes: Changes<EngineFamilyOptions>,
}

impl FamilyOptions {
    /// No options given.
    pub fn new() -> Self {
        FamilyOptions::default()
    }

    /// The memtable: `skip_list` (the default), `trie`, `sorted_hash`, `vector`, or one of them with parameters, as in
    /// `trie:{"convert_to_sst":"kFileMmap"}`. An unknown name is an error of the open.
    pub fn memtable(mut self, memtable: impl Into<String>) -> Self {
        self.changes.set(memtable.into(), |family, memtable| family.memtable_factory = memtable.into());
        self
    }

    /// Layout, filters and cache of the tables: those given in `table` change.
    pub fn table(mut self, table: TableOptions) -> Self {
        self.changes.add(move |family| {
            let mut warnings = Vec::new();
            table.changes.apply(&mut family.table, &mut warnings)?;
            Ok(warnings)
        });
        self
    }

    /// How hard to compress: the members given in `compression` change.
    pub fn compression_options(mut self, compression: CompressionOptions) -> Self {
        self.changes.add(move |family| {
            let mut warnings = Vec::new();
            compression.changes.apply(&mut family.compression_opts, &mut warnings)?;
            Ok(warnings)
        });
        self
    }

    /// How sorted runs are chosen with [`CompactionStyle::Universal`]: the members given in `universal` change.
    ///
    /// ```
    /// use spillway::{CompactionStyle, FamilyOptions, UniversalOptions};
    ///
    /// let written_more_than_read = FamilyOptions::new()
    ///     .compaction_style(CompactionStyle::Universal)
    ///     .universal_compaction(UniversalOptions::new().size_ratio(10).max_size_amplification_percent(100));
    /// ```
    pub fn universal_compaction(mut self, universal: UniversalOptions) -> Self {
        self.changes.add(move |family| {
            let mut warnings = Vec::new();
            universal.changes.apply(&mut family.compaction_options_universal, &mut warnings)?;
            Ok(warnings)
        });
        self
    }

    /// What is kept with [`CompactionStyle::Fifo`]: the members given in `fifo` change.
    ///
    /// Whole tables are deleted, the oldest first: by their bytes together, and after `compaction_ttl_seconds`, by
    /// default 30 days.
    pub fn fifo_compaction(mut self, fifo: FifoOptions) -> Self {
        self.changes.add(move |family| {
            let mut warnings = Vec::new();
            fifo.changes.apply(&mut family.compaction_options_fifo, &mut warnings)?;
            Ok(warnings)
        });
        self
    }

    /// Bytes of level 1.
    ///
    /// Default: the `write_buffer_size` of the open where memtables become tables (`convert_to_sst`), else 256 MiB. Can
    /// change while the database is open ([`Family::set_options`](crate::Family::set_options)).
    pub fn max_bytes_for_level_base(mut self, bytes: u64) -> Self {
        self.changes.set(bytes, |family, bytes| family.max_bytes_for_level_base = bytes.into());
        self
    }

    /// Compressions by level, from level 0; the last one counts for deeper levels. None: `compression`.
    pub fn compression_per_level(mut self, levels: impl IntoIterator<Item = CompressionKind>) -> Self {
        let levels: Vec<CompressionKind> = levels.into_iter().collect();
        self.changes.set(levels, |family, levels| family.compression_per_level = CompressionList(levels));
        self
    }

    /// Combines operands of `merge` with the value of their key. The operator's name is stored.
    ///
    /// The built-in ones ([`merge`](crate::merge)) are found by their stored names; any other has to be given at every
    /// open: without it the open fails with `Unsupported`.
    pub fn merge_operator(mut self, operator: impl MergeOperator + 'static) -> Self {
        let operator: Arc<dyn MergeOperator> = Arc::new(operator);
        self.changes.set(operator, |family, operator| family.merge_operator = Some(operator));
        self
    }

    /// As [`merge_operator`](Self::merge_operator), of a closure: key, present value, operands from the oldest on; the
    /// result is the new value. `None`: the operands cannot be applied, and reads fail with `Corruption`.
    ///
    /// ```
    /// use spillway::FamilyOptions;
    ///
    /// let longest = FamilyOptions::new().merge_fn("longest", |_key, value, operands| {
    ///     value.into_iter().chain(operands.iter().copied()).max_by_key(|value| value.len()).map(<[u8]>::to_vec)
    /// });
    /// ```
    pub fn merge_fn(
        self,
        name: impl Into<String>,
        merge: impl Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.merge_operator(MergeFn { name: name.into(), merge })
    }

    /// Looks at every value that a compaction passes. Not asked about what a snapshot sees.
    pub fn compaction_filter(mut self, filter: impl CompactionFilter + 'static) -> Self {
        let filter: Arc<dyn CompactionFilter> = Arc::new(filter);
        self.changes.set(filter, |family, filter| family.compaction_filter = Some(filter));
        self
    }

    /// As [`compaction_filter`](Self::compaction_filter), of a closure: level, key, value.
    ///
    /// ```
    /// use spillway::{FamilyOptions, extend::FilterDecision};
    ///
    /// let without_empty = FamilyOptions::new().compaction_filter_fn("without-empty", |_level, _key, value| {
    ///     if value.is_empty() { FilterDecision::Remove } else { FilterDecision::Keep }
    /// });
    /// ```
    pub fn compaction_filter_fn(
        self,
        name: impl Into<String>,
        filter: impl Fn(usize, &[u8], &[u8]) -> FilterDecision + Send + Sync + 'static,
    ) -> Self {
        self.compaction_filter(CompactionFilterFn { name: name.into(), filter })
    }

    /// Makes a filter for each compaction. Takes effect without a [`compaction_filter`](Self::compaction_filter).
    pub fn compaction_filter_factory(mut self, factory: impl CompactionFilterFactory + 'static) -> Self {
        let factory: Arc<dyn CompactionFilterFactory> = Arc::new(factory);
        self.changes.set(factory, |family, factory| family.compaction_filter_factory = Some(factory));
        self
    }

    /// The order of keys; bytewise by default. Fixed when the family is created; its name is stored, and an open with
    /// another one fails.
    pub fn comparator(mut self, comparator: impl Comparator + 'static) -> Self {
        let comparator: Arc<dyn Comparator> = Arc::new(comparator);
        self.changes.set(comparator, |family, comparator| family.order = UserOrder::Custom(comparator));
        self
    }

    /// As [`comparator`](Self::comparator), of a closure. It must order keys the same way for ever.
    pub fn comparator_fn(
        self,
        name: impl Into<String>,
        compare: impl Fn(&[u8], &[u8]) -> Ordering + Send + Sync + 'static,
    ) -> Self {
        self.comparator(ComparatorFn { name: name.into(), compare })
    }

    /// Values expire after this time, in whole seconds, at least one: reads no longer show them, and compactions drop them.
    /// A merge's result is as young as its last operand. Given when the family is created: values then carry the second
    /// of their write, in RocksDB's form (`DBWithTTL`), four bytes each. A value
    /// lives as long as said, and up to a second more. The ttl is stored (as the option `value_ttl_s`) and holds at every
    /// open; another time can be given at each, also to a family that RocksDB's `DBWithTTL` made
    /// ([`value_times`](Self::value_times) if nothing noted it).
    ///
    /// Tables to ingest that [`Family::table_writer`](crate::Family::table_writer) wrote have the times of that; others are
    /// copied, with the time of the ingest.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        let seconds = u32::try_from(ttl.as_secs().max(1)).unwrap_or(u32::MAX);
        self.changes.set(seconds, |family, seconds| family.value_ttl_s = seconds);
        self
    }

    /// Whether values carry the second of their write ([`ttl`](Self::ttl)). `true` is for a family that RocksDB's `DBWithTTL` made, if
    /// nothing noted it; the MANIFEST then does, for good. `false` is an error of the open where it is noted. Default: as noted.
    pub fn value_times(mut self, value: bool) -> Self {
        self.changes.set(value, |family, value| family.value_times = value.into());
        self
    }

    /// Keys in descending order of their bytes.
    pub fn reverse_order(mut self) -> Self {
        self.changes.set(UserOrder::ReverseBytewise, |family, order| family.order = order);
        self
    }

    /// Marks tables with many deletions for compaction as they are written. Each collector that is given can mark a table.
    pub fn compact_on_deletion(mut self, collector: CompactOnDeletion) -> Self {
        self.changes.set(collector, |family, collector| family.table_properties_collectors.0.push(collector));
        self
    }

    /// The part of a key that prefix filters go by. The built-in ones are
    /// [`BuiltinPrefix`](crate::extend::BuiltinPrefix).
    pub fn prefix_extractor(mut self, extractor: impl PrefixExtractor + 'static) -> Self {
        let extractor: Arc<dyn PrefixExtractor> = Arc::new(extractor);
        self.changes.set(extractor, |family, extractor| family.prefix_extractor = Some(extractor));
        self
    }

    /// The format of new tables: `BlockBasedTable` (the default, RocksDB's), `SingleFastTable`, `ToplingZipTable`, or
    /// `DispatcherTable` level by level, with parameters as in `ToplingZipTable:{"sampleRatio":0.01}`.
    pub fn table_format(self, format: impl AsRef<str>) -> Self {
        self.option("table_factory", format)
    }

    /// Sets an option by name and text, as in RocksDB's option files. A wrong one is an error of the call that takes
    /// these options, `InvalidArgument` or `Unsupported`, and names the nearest known one.
    pub fn option(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.text(format!("{}={{{}}}", name.as_ref(), value.as_ref()))
    }

    /// Sets options by a text: `write_buffer_size=64M;block_based_table_factory={block_size=8K}`. Errors as of
    /// [`option`](Self::option).
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.changes.add(move |family| apply_string(family, &text));
        self
    }

    /// These options, and those of `other` over them.
    pub(super) fn and(mut self, other: FamilyOptions) -> Self {
        self.changes.add(move |family| {
            let mut warnings = Vec::new();
            other.changes.apply(family, &mut warnings)?;
            Ok(warnings)
        });
        self
    }

    /// These options over `options`, with warnings.
    pub(crate) fn apply(&self, options: &mut EngineFamilyOptions, warnings: &mut Vec<String>) -> Result<()> {
        self.changes.apply(options, warnings)
    }

    /// These options over `options`.
    pub(crate) fn over(&self, mut options: EngineFamilyOptions) -> Result<EngineFamilyOptions> {
        self.changes.apply(&mut options, &mut Vec::new())?;
        Ok(options)
    }
}

for_each_family_option! { setters, FamilyOptions changes EngineFamilyOptions, Family }

/// Options of block-based tables: [`FamilyOptions::table`].
#[derive(Clone, Default)]
#[must_use = "options do nothing until they are given to a family's options"]
pub struct TableOptions {
    changes: Changes<EngineTableOptions>,
}

impl TableOptions {
    /// No options given.
    pub fn new() -> Self {
        TableOptions::default()
    }

    /// A bloom filter, which spares lookups of absent keys; 10 bits per key let one in a hundred through.
    pub fn bloom_filter(mut self, bits_per_key: f64) -> Self {
        self.changes.set(FilterPolicy::bloom(bits_per_key), |table, filter| table.filter_policy = filter);
        self
    }

    /// No filter.
    pub fn no_filter(mut self) -> Self {
        self.changes.set(FilterPolicy::NONE, |table, filter| table.filter_policy = filter);
        self
    }

    /// Bytes of the block cache, where the caller gives none to share.
    ///
    /// Default: 32 MiB.
    pub fn block_cache(mut self, bytes: usize) -> Self {
        self.changes.set(CacheSize(bytes), |table, size| table.block_cache = size);
        self
    }
}

for_each_table_option! { setters, TableOptions changes EngineTableOptions, Family }

/// How hard to compress: [`FamilyOptions::compression_options`].
#[derive(Clone, Default)]
#[must_use = "options do nothing until they are given to a family's options"]
pub struct CompressionOptions {
    changes: Changes<base::options::CompressionOptions>,
}

impl CompressionOptions {
    /// No options given.
    pub fn new() -> Self {
        CompressionOptions::default()
    }
}

for_each_compression_option! { setters, CompressionOptions changes base::options::CompressionOptions, Family }

/// How universal compaction chooses sorted runs: [`FamilyOptions::universal_compaction`].
#[derive(Clone, Default)]
#[must_use = "options do nothing until they are given to a family's options"]
pub struct UniversalOptions {
    changes: Changes<base::options::UniversalOptions>,
}

impl UniversalOptions {
    /// No options given.
    pub fn new() -> Self {
        UniversalOptions::default()
    }
}

for_each_universal_option! { setters, UniversalOptions changes base::options::UniversalOptions, Family }

/// What FIFO compaction keeps: [`FamilyOptions::fifo_compaction`].
#[derive(Clone, Default)]
#[must_use = "options do nothing until they are given to a family's options"]
pub struct FifoOptions {
    changes: Changes<base::options::FifoOptions>,
}

impl FifoOptions {
    /// No options given.
    pub fn new() -> Self {
        FifoOptions::default()
    }
}

for_each_fifo_option! { setters, FifoOptions changes base::options::FifoOptions, Family }

macro_rules! debug_as_changed {
    ($( $Builder:ident of $Group:ty; )+) => { $(
        impl fmt::Debug for $Builder {
            /// The options in force in a new database.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut group = <$Group>::default();
                match self.changes.apply(&mut group, &mut Vec::new()) {
                    Ok(()) => fmt::Debug::fmt(&group, f),
                    Err(error) => fmt::Debug::fmt(&error, f),
                }
            }
        }
    )+ };
}

debug_as_changed! {
    FamilyOptions of EngineFamilyOptions;
    TableOptions of EngineTableOptions;
    CompressionOptions of base::options::CompressionOptions;
    UniversalOptions of base::options::UniversalOptions;
    FifoOptions of base::options::FifoOptions;
}
