//! RocksDB's presets for a machine or a workload.

use std::ffi::c_int;

use spillway::internal::options::{
    CompactionStyle, CompressionKind, CompressionList, DataBlockIndexType, FilterPolicy,
};
use spillway::internal::{BlockCache, FamilyOptions};

use super::Options;
use crate::boundary::export;
use crate::kept::Keeps;
use crate::kept::number::{CNumber, Field};

const MIB: u64 = 1 << 20;

/// A compaction trigger never reached.
const NEVER_FILES: i32 = 1 << 30;

fn as_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Splits a budget for memtables: two are merged before a flush, six may wait.
fn share_memtable_budget(family: &mut FamilyOptions, budget_bytes: u64) {
    family.write_buffer_size = as_size(budget_bytes / 4);
    family.min_write_buffer_number_to_merge = 2;
    family.max_write_buffer_number = 6;
}

export! {
    fn rocksdb_options_increase_parallelism(options: &mut Options, threads: c_int) {
        let taken = options.db.max_background_jobs.take(threads.number());
        options.keep_field("max_background_jobs", threads.number(), taken);
    }

    fn rocksdb_options_optimize_level_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        let family = &mut options.family;
        share_memtable_budget(family, memtable_memory_budget);
        family.level0_file_num_compaction_trigger = 2;
        family.target_file_size_base = memtable_memory_budget / 8;
        family.max_bytes_for_level_base = memtable_memory_budget;
        family.compaction_style = CompactionStyle::Level;
        let kind = |level| if level < 2 { CompressionKind::None } else { CompressionKind::Snappy };
        family.compression_per_level = CompressionList((0..family.num_levels).map(kind).collect());
    }

    fn rocksdb_options_optimize_universal_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        share_memtable_budget(&mut options.family, memtable_memory_budget);
        options.family.compaction_style = CompactionStyle::Universal;
    }

    fn rocksdb_options_optimize_for_point_lookup(options: &mut Options, block_cache_mib: u64) {
        let family = &mut options.family;
        family.table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        family.table.data_block_hash_table_util_ratio = 0.75;
        family.table.filter_policy = FilterPolicy::bloom(10.0);
        family.memtable_prefix_bloom_size_ratio = 0.02;
        family.memtable_whole_key_filtering = true;
        options.block_cache = Some(BlockCache::new(as_size(block_cache_mib.saturating_mul(MIB))).into());
    }

    fn rocksdb_options_prepare_for_bulk_load(options: &mut Options) {
        let family = &mut options.family;
        family.level0_file_num_compaction_trigger = NEVER_FILES;
        family.level0_slowdown_writes_trigger = NEVER_FILES;
        family.level0_stop_writes_trigger = NEVER_FILES;
        family.soft_pending_compaction_bytes_limit = 0;
        family.hard_pending_compaction_bytes_limit = 0;
        family.disable_auto_compactions = true;
        family.max_compaction_bytes = 1 << 60;
        family.num_levels = 2;
        family.max_write_buffer_number = 6;
        family.min_write_buffer_number_to_merge = 1;
        family.target_file_size_base = 256 * MIB;
    }

    fn rocksdb_options_set_universal_compaction_options(
        options: &mut Options,
        universal: Option<&super::styles::Universal>,
    ) {
        if let Some(universal) = universal {
            options.family.compaction_options_universal = universal.group.clone();
        }
    }

    fn rocksdb_options_set_fifo_compaction_options(options: &mut Options, fifo: Option<&super::styles::Fifo>) {
        if let Some(fifo) = fifo {
            options.family.compaction_options_fifo = fifo.group.clone();
        }
    }
}
