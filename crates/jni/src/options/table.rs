//! Formats of tables and memtables.

use capi::boundary::settings::Row;
use capi::cache::Cache;
use capi::kept::number::Number;
use capi::options::Options;
use capi::options::table::{BlockBasedOptions, Filter, ROWS};

use spillway::internal::options::TableOptions;

use crate::boundary::natives;
use crate::boundary::settings::{JavaNumber, kept, set_by_name};
use crate::fault::Fault;
use crate::objects::cache::as_size;

/// A factory of tables, until options take it.
pub enum TableFormat {
    BlockBased(Box<BlockBasedOptions>),
    /// Tables stay block-based: plain tables are not written.
    Plain,
}

/// A memtable's name and parameters, until options take it.
pub struct Memtable(pub String);

const PLAIN_TABLE: &str = "PlainTable";

impl TableFormat {
    pub fn set(self, options: &mut Options) {
        match self {
            TableFormat::BlockBased(table) => options.set_block_based_table(*table),
            TableFormat::Plain => options.family.kept.set("table_factory", PLAIN_TABLE),
        }
    }
}

pub fn table_name(options: &Options) -> String {
    let kept = options.family.kept.get("table_factory");
    kept.map_or_else(|| options.family.table_factory.without_level().name().to_owned(), str::to_owned)
}

/// RocksDB's names in Java.
pub fn memtable_name(options: &Options) -> String {
    let name = options.family.memtable_factory.split(':').next().unwrap_or_default();
    let known = match name {
        "vector" => "VectorRepFactory",
        "hash_skiplist" => "HashSkipListRepFactory",
        "hash_linkedlist" => "HashLinkedListRepFactory",
        "skip_list" => "SkipListFactory",
        other => other,
    };
    known.to_owned()
}

/// Options of newer tables, without effect here.
const NEWER: &[Row<BlockBasedOptions>] = kept! { BlockBasedOptions;
    "super_block_alignment_size": i64 = 0;
    "super_block_alignment_space_overhead_ratio": i64 = 128;
    "uniform_cv_threshold": f64 = -1.0;
};

const TABLES: &[&[Row<BlockBasedOptions>]] = &[ROWS, NEWER];

/// Options of tables, for getters by name.
pub fn of_blocks_with(table: &TableOptions) -> BlockBasedOptions {
    let mut options = BlockBasedOptions::default();
    options.table = table.clone();
    options
}

/// An option by its name; 0 if no row has it, which a test finds.
pub fn option<T: JavaNumber>(options: &BlockBasedOptions, name: &str) -> T {
    let row = TABLES.iter().copied().flatten().find(|row| row.name == name);
    T::of(row.map_or(Number::Integer(0), |row| (row.get)(options)))
}

/// Handles and sizes of caches and filters.
struct Shared<'a> {
    cache: Option<&'a Cache>,
    cache_bytes: i64,
    cache_shard_bits: i32,
    filter: Option<&'a Filter>,
}

fn block_based(numbers: &[(&'static str, Number)], shared: &Shared<'_>) -> Result<Box<TableFormat>, Fault> {
    let mut table = BlockBasedOptions::default();
    for (name, number) in numbers {
        if !set_by_name(TABLES, &mut table, name, *number) {
            return Err(Fault::not_implemented(name));
        }
    }
    if !table.table.no_block_cache {
        // A cache of its own, unless the size says that there is none.
        let shard_bits = if shared.cache_shard_bits > 0 { shared.cache_shard_bits } else { -1 };
        let own = || Cache::sharded(as_size(shared.cache_bytes), shard_bits).shared();
        match shared.cache {
            Some(cache) => table.cache = Some(cache.shared()),
            None if shared.cache_bytes >= 0 => table.cache = Some(own()),
            None => table.table.no_block_cache = true,
        }
    }
    table.filter_by(shared.filter.cloned());
    Ok(Box::new(TableFormat::BlockBased(Box::new(table))))
}

/// Pairs of an option's name and the parameter of that name, as a number.
macro_rules! named {
    ($($name:ident),+ $(,)?) => {
        &[$( (stringify!($name), JavaNumber::number($name)) ),+]
    };
}

pub mod of_blocks {
    use super::*;

    /// The native's forms: between the parameters that all versions have, each has its own.
    macro_rules! forms {
        ($(
            $(#[$doc:meta])*
            $name:literal: ($($format:ident: $format_type:ty),*) ($($block:ident: $block_type:ty),*) ($($index:ident: $index_type:ty),*)
        )+) => {
            natives! { "BlockBasedTableConfig"; $(
                $(#[$doc])*
                $name => fn(
                    _env,
                    cache_index_and_filter_blocks: bool,
                    cache_index_and_filter_blocks_with_high_priority: bool,
                    pin_l0_filter_and_index_blocks_in_cache: bool,
                    pin_top_level_index_and_filter: bool,
                    index_type: i8,
                    data_block_index_type: i8,
                    data_block_hash_table_util_ratio: f64,
                    checksum: i8,
                    no_block_cache: bool,
                    cache: Option<&Cache>,
                    _persistent_cache: i64,
                    block_size: i64,
                    block_size_deviation: i32,
                    block_restart_interval: i32,
                    index_block_restart_interval: i32,
                    metadata_block_size: i64,
                    partition_filters: bool,
                    optimize_filters_for_memory: bool,
                    use_delta_encoding: bool,
                    filter: Option<&Filter>,
                    whole_key_filtering: bool,
                    verify_compression: bool,
                    read_amp_bytes_per_bit: i32,
                    format_version: i32,
                    $($format: $format_type,)*
                    enable_index_compression: bool,
                    block_align: bool,
                    $($block: $block_type,)*
                    index_shortening: i8,
                    $($index: $index_type,)*
                    cache_bytes: i64,
                    cache_shard_bits: i32,
                ) -> Box<TableFormat> {
                    let numbers: &[(&str, Number)] = named!(
                        cache_index_and_filter_blocks, cache_index_and_filter_blocks_with_high_priority,
                        pin_l0_filter_and_index_blocks_in_cache, pin_top_level_index_and_filter, index_type,
                        data_block_index_type, data_block_hash_table_util_ratio, checksum, no_block_cache, block_size,
                        block_size_deviation, block_restart_interval, index_block_restart_interval,
                        metadata_block_size, partition_filters, optimize_filters_for_memory, use_delta_encoding,
                        whole_key_filtering, verify_compression, read_amp_bytes_per_bit, format_version,
                        $($format,)* enable_index_compression, block_align, $($block,)* index_shortening, $($index,)*
                    );
                    block_based(numbers, &Shared { cache, cache_bytes, cache_shard_bits, filter })
                }
            )+ }
        };
    }

    forms! {
        /// To 10.6.
        "newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZZBJI": () () ()
        /// 10.10.
        "newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZZJJBJI":
            () (super_block_alignment_size: i64, super_block_alignment_space_overhead_ratio: i64) ()
        /// 11.0.
        "newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZZZJJBBJI":
            (separate_key_value_in_data_block: bool)
            (super_block_alignment_size: i64, super_block_alignment_space_overhead_ratio: i64)
            (index_block_search_type: i8)
        /// From 11.1 on.
        "newTableFactoryHandle__ZZZZBBDBZJJJIIIJZZZJZZIIZDZZJJBBJI":
            (separate_key_value_in_data_block: bool, uniform_cv_threshold: f64)
            (super_block_alignment_size: i64, super_block_alignment_space_overhead_ratio: i64)
            (index_block_search_type: i8)
    }
}

pub mod plain {
    use super::*;

    natives! { "PlainTableConfig";
        "newTableFactoryHandle" => fn(
            _env,
            _key_size: i32,
            _bloom_bits_per_key: i32,
            _hash_table_ratio: f64,
            _index_sparseness: i32,
            _huge_page_size: i32,
            _encoding: i8,
            _full_scan_mode: bool,
            _store_index_in_file: bool,
        ) -> Box<TableFormat> {
            Ok(Box::new(TableFormat::Plain))
        }
    }
}

/// A number of buckets, or what RocksDB takes as a size.
fn memtable(text: String) -> Box<Memtable> {
    Box::new(Memtable(text))
}

pub mod skip_list {
    use super::*;

    natives! { "SkipListMemTableConfig";
        "newMemTableFactoryHandle0" => fn(_env, _lookahead: i64) -> Box<Memtable> {
            Ok(memtable("skip_list".to_owned()))
        }
    }
}

pub mod vector {
    use super::*;

    natives! { "VectorMemTableConfig";
        "newMemTableFactoryHandle" => fn(_env, _reserved: i64) -> Box<Memtable> {
            Ok(memtable("vector".to_owned()))
        }
    }
}

pub mod hash_skip_list {
    use super::*;

    natives! { "HashSkipListMemTableConfig";
        "newMemTableFactoryHandle" => fn(_env, buckets: i64, _height: i32, _branching: i32) -> Box<Memtable> {
            Ok(memtable(format!("hash_skiplist:{buckets}")))
        }
    }
}

pub mod hash_linked_list {
    use super::*;

    natives! { "HashLinkedListMemTableConfig";
        "newMemTableFactoryHandle" => fn(
            _env,
            buckets: i64,
            _huge_page_size: i64,
            _logging_threshold: i32,
            _log_distribution: bool,
            _skip_list_threshold: i32,
        ) -> Box<Memtable> {
            Ok(memtable(format!("hash_linkedlist:{buckets}")))
        }
    }
}
