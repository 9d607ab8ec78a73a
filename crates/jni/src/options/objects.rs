//! Options that are objects, texts or lists.

use std::path::PathBuf;
use std::sync::Arc;

use capi::cache::Cache;
use capi::env::EnvHandle;
use capi::file_manager::FileManager;
use capi::options::Options;
use capi::options::paths::DbPath;
use capi::options::styles::{Fifo, Universal};
use capi::statistics::SharedStatistics;
use capi::write_buffer_manager::WriteBufferManager;
use spillway::internal::extend::BuiltinPrefix;
use spillway::internal::options::SstPartitioner;
use spillway::internal::{UserOrder, merge};

use super::compression::{self, CompressionSettings};
use super::table::{self, Memtable, TableFormat};
use crate::boundary::argument::{Handles, Longs, Texts, Whole};
use crate::boundary::env::Env;
use crate::boundary::object::Object;
use crate::boundary::{handle, natives};
use crate::callbacks::comparator::Order;
use crate::extend::{Collector, Merge, Partitioner};
use crate::fault::Fault;
use crate::objects::limiter::{RateLimit, TaskLimiter};

fn dirs(paths: Vec<String>, sizes: &[i64]) -> Vec<DbPath> {
    let sizes = sizes.iter().map(|&size| size as u64);
    paths.into_iter().zip(sizes).map(|(dir, target_size)| DbPath { dir: PathBuf::from(dir), target_size }).collect()
}

/// Fills Java's arrays.
fn show_dirs(env: Env<'_>, dirs: &[DbPath], paths: Object<'_>, sizes: Object<'_>) -> Result<(), Fault> {
    for (at, dir) in (0..).zip(dirs) {
        let path = env.new_text(&dir.dir.to_string_lossy())?;
        env.set_element(paths, at, path)?;
        env.delete(path);
    }
    let numbers: Vec<i64> = dirs.iter().map(|dir| dir.target_size as i64).collect();
    env.set_longs(sizes, &numbers)
}

/// A text kept for getters; an empty one is none.
fn keep_text(options: &mut Options, name: &str, text: &str) {
    if text.is_empty() { options.db.kept.remove(name) } else { options.db.kept.set(name, text) }
}

pub mod of_database {
    use super::*;

    natives! { ["DBOptions", "Options"];
        "setEnv" => fn(_env, options: &mut Options, env: Option<&EnvHandle>) -> () {
            options.env = env.map(EnvHandle::env);
            Ok(())
        }

        "setRateLimiter" => fn(_env, options: &mut Options, limit: Option<&RateLimit>) -> () {
            options.rate_limiter = limit.map(|limit| limit.limiter.clone());
            Ok(())
        }

        "setSstFileManager" => fn(_env, options: &mut Options, manager: Option<&FileManager>) -> () {
            options.file_manager = manager.cloned();
            Ok(())
        }

        "setRowCache" => fn(_env, options: &mut Options, cache: Option<&Cache>) -> () {
            options.row_cache = cache.map(Cache::shared);
            Ok(())
        }

        "setWriteBufferManager" => fn(_env, options: &mut Options, manager: Option<&WriteBufferManager>) -> () {
            options.write_buffer_manager = manager.cloned();
            Ok(())
        }

        "setStatistics" => fn(_env, options: &mut Options, statistics: Option<&SharedStatistics>) -> () {
            options.db.statistics = statistics.is_some();
            options.shared_statistics = statistics.cloned();
            Ok(())
        }

        /// A new handle of the same object.
        "statistics" => fn(_env, options: &Options) -> Option<Box<SharedStatistics>> {
            Ok(options.shared_statistics.clone().map(Box::new))
        }

        "setDbPaths" => fn(_env, options: &mut Options, paths: Vec<String>, sizes: Handles) -> () {
            options.table_dirs = dirs(paths, &sizes.0);
            Ok(())
        }

        "dbPathsLen" => fn(_env, options: &Options) -> i64 {
            Ok(options.table_dirs.len() as i64)
        }

        "dbPaths" => fn(env, options: &Options, paths: Texts<'_>, sizes: Longs<'_>) -> () {
            show_dirs(env, &options.table_dirs, paths.0, sizes.0)
        }

        "setDbLogDir" => fn(_env, options: &mut Options, dir: String) -> () {
            options.db.db_log_dir = dir;
            Ok(())
        }

        "dbLogDir" => fn(_env, options: &Options) -> String {
            Ok(options.db.db_log_dir.clone())
        }

        "setWalDir" => fn(_env, options: &mut Options, dir: String) -> () {
            options.db.wal_dir = dir;
            Ok(())
        }

        "walDir" => fn(_env, options: &Options) -> String {
            Ok(options.db.wal_dir.clone())
        }

        "setDailyOffpeakTimeUTC" => fn(_env, options: &mut Options, times: String) -> () {
            keep_text(options, "daily_offpeak_time_utc", &times);
            Ok(())
        }

        "dailyOffpeakTimeUTC" => fn(_env, options: &Options) -> String {
            Ok(options.db.kept.get("daily_offpeak_time_utc").unwrap_or_default().to_owned())
        }
    }
}

/// RocksDB's built-in comparators by Java's number.
const REVERSE: i32 = 1;

/// Lookups for getters of level factors: 1 for every level unless set.
fn level_factors(options: &Options) -> Vec<i32> {
    match options.family.kept.get("max_bytes_for_level_multiplier_additional") {
        Some(text) => text.split(':').filter_map(|factor| factor.parse().ok()).collect(),
        None => vec![1; options.family.num_levels],
    }
}

pub mod of_family {
    use super::*;

    natives! { ["ColumnFamilyOptions", "Options"];
        "setComparatorHandle__JI" => fn(_env, options: &mut Options, builtin: i32) -> () {
            options.family.order =
                if builtin == REVERSE { UserOrder::ReverseBytewise } else { UserOrder::Bytewise };
            Ok(())
        }

        "setComparatorHandle__JJB" => fn(_env, options: &mut Options, comparator: &Order, _kind: i8) -> () {
            options.family.order = comparator.order.clone();
            Ok(())
        }

        "setMergeOperatorName" => fn(_env, options: &mut Options, name: String) -> () {
            options.family.merge_operator = merge::by_name(&name);
            Ok(())
        }

        "setMergeOperator" => fn(_env, options: &mut Options, operator: Option<&Merge>) -> () {
            options.family.merge_operator = operator.map(|operator| operator.0.clone());
            Ok(())
        }

        "setSstPartitionerFactory" => fn(_env, options: &mut Options, factory: Option<&Partitioner>) -> () {
            options.family.sst_partitioner_factory = factory.map_or(SstPartitioner::None, |factory| factory.0);
            Ok(())
        }

        /// Compactions have threads by the database's options.
        "setCompactionThreadLimiter" => fn(_env, _options: &mut Options, _limiter: Option<&TaskLimiter>) -> () {
            capi::kept::warn("compaction_thread_limiter", "set");
            Ok(())
        }

        "useFixedLengthPrefixExtractor" => fn(_env, options: &mut Options, len: i32) -> () {
            let len = usize::try_from(len).unwrap_or(0);
            options.family.prefix_extractor = Some(Arc::new(BuiltinPrefix::Fixed(len)));
            Ok(())
        }

        "useCappedPrefixExtractor" => fn(_env, options: &mut Options, len: i32) -> () {
            let len = usize::try_from(len).unwrap_or(0);
            options.family.prefix_extractor = Some(Arc::new(BuiltinPrefix::Capped(len)));
            Ok(())
        }

        "setCompressionPerLevel" => fn(_env, options: &mut Options, levels: Whole) -> () {
            let levels: Vec<i32> = levels.iter().map(|&level| compression::number(level)).collect();
            options.set_compressions(&levels);
            Ok(())
        }

        "compressionPerLevel" => fn(_env, options: &Options) -> Vec<u8> {
            Ok(options.compressions().into_iter().map(compression::byte).collect())
        }

        "setCompressionOptions" => fn(_env, options: &mut Options, settings: &CompressionSettings) -> () {
            options.family.compression_opts = settings.group.clone();
            Ok(())
        }

        "setBottommostCompressionOptions" =>
        fn(_env, options: &mut Options, settings: &CompressionSettings) -> () {
            options.set_bottommost_compression(settings.is_enabled().then_some(&settings.group));
            Ok(())
        }

        "setCompactionOptionsUniversal" => fn(_env, options: &mut Options, universal: &Universal) -> () {
            options.family.compaction_options_universal = universal.group.clone();
            Ok(())
        }

        "setCompactionOptionsFIFO" => fn(_env, options: &mut Options, fifo: &Fifo) -> () {
            options.family.compaction_options_fifo = fifo.group.clone();
            Ok(())
        }

        "setMaxBytesForLevelMultiplierAdditional" => fn(_env, options: &mut Options, factors: Vec<i32>) -> () {
            options.set_level_factors(&factors);
            Ok(())
        }

        "maxBytesForLevelMultiplierAdditional" => fn(_env, options: &Options) -> Vec<i32> {
            Ok(level_factors(options))
        }

        "setCfPaths" => fn(_env, options: &mut Options, paths: Vec<String>, sizes: Handles) -> () {
            options.family_table_dirs = dirs(paths, &sizes.0);
            Ok(())
        }

        "cfPathsLen" => fn(_env, options: &Options) -> i64 {
            Ok(options.family_table_dirs.len() as i64)
        }

        "cfPaths" => fn(env, options: &Options, paths: Texts<'_>, sizes: Longs<'_>) -> () {
            show_dirs(env, &options.family_table_dirs, paths.0, sizes.0)
        }

        "setTableFactory" => fn(_env, options: &mut Options, format: Box<TableFormat>) -> () {
            format.set(options);
            Ok(())
        }

        "tableFactoryName" => fn(_env, options: &Options) -> String {
            Ok(table::table_name(options))
        }

        "setMemTableFactory" => fn(_env, options: &mut Options, memtable: Box<Memtable>) -> () {
            options.family.memtable_factory = memtable.0.as_str().into();
            Ok(())
        }

        "memTableFactoryName" => fn(_env, options: &Options) -> String {
            Ok(table::memtable_name(options))
        }
    }
}

pub mod collectors {
    use super::*;

    natives! { "Options";
        "setTablePropertiesCollectorFactory" => fn(_env, options: &mut Options, collectors: Handles) -> () {
            options.family.table_properties_collectors.0.clear();
            collectors.get::<Collector>()?.into_iter().for_each(|collector| options.collect(collector.0));
            Ok(())
        }

        "tablePropertiesCollectorFactory" => fn(_env, options: &Options) -> Vec<i64> {
            let collectors = &options.family.table_properties_collectors.0;
            let open = |collector| handle::open(Box::new(Collector(collector)));
            Ok(collectors.iter().copied().map(open).collect())
        }
    }
}
