//! RocksDB's presets for a machine or a workload.

use std::ffi::c_int;
use std::sync::Arc;

use spillway::internal::options::{
    CompactionStyle, CompressionKind, CompressionList, DataBlockIndexType, FilterPolicy, IndexType,
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

impl Options {
    pub fn optimize_level_style(&mut self, memtable_memory_budget: u64) {
        let family = &mut self.family;
        share_memtable_budget(family, memtable_memory_budget);
        family.level0_file_num_compaction_trigger = 2;
        family.target_file_size_base = memtable_memory_budget / 8;
        family.max_bytes_for_level_base = memtable_memory_budget.into();
        family.compaction_style = CompactionStyle::Level;
        let kind = |level| if level < 2 { CompressionKind::None } else { CompressionKind::Snappy };
        family.compression_per_level = CompressionList((0..family.num_levels).map(kind).collect());
    }

    pub fn optimize_universal_style(&mut self, memtable_memory_budget: u64) {
        share_memtable_budget(&mut self.family, memtable_memory_budget);
        self.family.compaction_style = CompactionStyle::Universal;
    }

    pub fn optimize_for_point_lookup(&mut self, block_cache_mib: u64) {
        let family = &mut self.family;
        family.table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        family.table.data_block_hash_table_util_ratio = 0.75;
        family.table.filter_policy = FilterPolicy::bloom(10.0);
        family.memtable_prefix_bloom_size_ratio = 0.02;
        family.memtable_whole_key_filtering = true;
        self.block_cache = Some(BlockCache::new(as_size(block_cache_mib.saturating_mul(MIB))).into());
    }

    /// Of a family: little memory, in this cache or one of 16 MiB.
    pub fn optimize_for_small_family(&mut self, cache: Option<Arc<BlockCache>>) {
        let family = &mut self.family;
        family.write_buffer_size = as_size(2 * MIB);
        family.target_file_size_base = 2 * MIB;
        family.max_bytes_for_level_base = (10 * MIB).into();
        family.soft_pending_compaction_bytes_limit = 256 * MIB;
        family.hard_pending_compaction_bytes_limit = 1024 * MIB;
        family.table.cache_index_and_filter_blocks = true;
        family.table.index_type = IndexType::TwoLevel;
        self.block_cache = Some(cache.unwrap_or_else(|| BlockCache::new(as_size(16 * MIB)).into()));
    }

    /// Of a database.
    pub fn optimize_for_small_db(&mut self) {
        self.db.max_open_files = 5000;
        self.keep("max_file_opening_threads", CNumber::number(1), CNumber::number(16));
    }

    pub fn prepare_for_bulk_load(&mut self) {
        let family = &mut self.family;
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
}

export! {
    fn rocksdb_options_increase_parallelism(options: &mut Options, threads: c_int) {
        let taken = options.db.max_background_jobs.take(threads.number());
        options.keep_field("max_background_jobs", threads.number(), taken);
    }

    fn rocksdb_options_optimize_level_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        options.optimize_level_style(memtable_memory_budget);
    }

    fn rocksdb_options_optimize_universal_style_compaction(options: &mut Options, memtable_memory_budget: u64) {
        options.optimize_universal_style(memtable_memory_budget);
    }

    fn rocksdb_options_optimize_for_point_lookup(options: &mut Options, block_cache_mib: u64) {
        options.optimize_for_point_lookup(block_cache_mib);
    }

    fn rocksdb_options_prepare_for_bulk_load(options: &mut Options) {
        options.prepare_for_bulk_load();
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
