//! From flags to the options that a database is opened with.

use base::options::{
    ChecksumKind, CompressionKind, DataBlockIndexType, DbOptions, FamilyOptions, FilterPolicy, IndexType, TableOptions,
};
use base::{Error, Result};
use spillway::{DEFAULT_FAMILY, OpenOptions};

use crate::flags::Flags;

/// # Errors
/// `InvalidArgument`: a flag whose value names nothing.
pub fn open_options(flags: &Flags) -> Result<OpenOptions> {
    let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family(flags)?);
    options.db = database(flags);
    Ok(options)
}

fn database(flags: &Flags) -> DbOptions {
    DbOptions {
        create_if_missing: true,
        paranoid_checks: flags.paranoid_checks,
        max_open_files: flags.open_files,
        max_background_jobs: flags.max_background_jobs,
        max_subcompactions: flags.subcompactions,
        max_total_wal_size: flags.max_total_wal_size,
        wal_dir: flags.wal_dir.clone(),
        bytes_per_sync: flags.bytes_per_sync,
        delayed_write_rate: flags.delayed_write_rate,
        allow_concurrent_memtable_write: flags.allow_concurrent_memtable_write,
        statistics: flags.statistics,
        ..DbOptions::default()
    }
}

fn family(flags: &Flags) -> Result<FamilyOptions> {
    let mut options = FamilyOptions {
        write_buffer_size: flags.write_buffer_size,
        max_write_buffer_number: flags.max_write_buffer_number,
        min_write_buffer_number_to_merge: flags.min_write_buffer_number_to_merge,
        memtable_factory: flags.memtablerep.as_str().into(),
        memtable_prefix_bloom_size_ratio: flags.memtable_bloom_size_ratio,
        memtable_whole_key_filtering: flags.memtable_whole_key_filtering,
        compression: compression(&flags.compression_type)?,
        num_levels: flags.num_levels,
        level0_file_num_compaction_trigger: flags.level0_file_num_compaction_trigger,
        level0_slowdown_writes_trigger: flags.level0_slowdown_writes_trigger,
        level0_stop_writes_trigger: flags.level0_stop_writes_trigger,
        target_file_size_base: flags.target_file_size_base,
        target_file_size_multiplier: flags.target_file_size_multiplier,
        max_bytes_for_level_base: flags.max_bytes_for_level_base,
        max_bytes_for_level_multiplier: flags.max_bytes_for_level_multiplier,
        level_compaction_dynamic_level_bytes: flags.level_compaction_dynamic_level_bytes,
        max_compaction_bytes: flags.max_compaction_bytes,
        soft_pending_compaction_bytes_limit: flags.soft_pending_compaction_bytes_limit,
        hard_pending_compaction_bytes_limit: flags.hard_pending_compaction_bytes_limit,
        disable_auto_compactions: flags.disable_auto_compactions,
        optimize_filters_for_hits: flags.optimize_filters_for_hits,
        table: tables(flags)?,
        ..FamilyOptions::default()
    };
    options.compression_opts.level = flags.compression_level;
    Ok(options)
}

fn tables(flags: &Flags) -> Result<TableOptions> {
    let checksum = ChecksumKind::from_number(flags.checksum_type);
    Ok(TableOptions {
        block_size: flags.block_size,
        block_restart_interval: flags.block_restart_interval,
        index_block_restart_interval: flags.index_block_restart_interval,
        index_type: index(flags)?,
        data_block_index_type: if flags.use_data_block_hash_index {
            DataBlockIndexType::BinaryAndHash
        } else {
            DataBlockIndexType::BinarySearch
        },
        checksum: checksum.ok_or_else(|| unknown("checksum_type", &flags.checksum_type.to_string()))?,
        filter_policy: if flags.bloom_bits > 0 {
            FilterPolicy::bloom(f64::from(flags.bloom_bits))
        } else {
            FilterPolicy::NONE
        },
        format_version: flags.format_version,
        cache_index_and_filter_blocks: flags.cache_index_and_filter_blocks,
        pin_l0_filter_and_index_blocks_in_cache: flags.pin_l0_filter_and_index_blocks_in_cache,
        no_block_cache: flags.cache_size == 0,
        block_cache: flags.cache_size,
        ..TableOptions::default()
    })
}

fn index(flags: &Flags) -> Result<IndexType> {
    match (flags.partition_index, flags.index_with_first_key) {
        (false, false) => Ok(IndexType::BinarySearch),
        (true, false) => Ok(IndexType::TwoLevel),
        (false, true) => Ok(IndexType::BinarySearchWithFirstKey),
        (true, true) => Err(Error::invalid_argument("--partition_index and --index_with_first_key exclude each other")),
    }
}

fn compression(name: &str) -> Result<CompressionKind> {
    Ok(match name {
        "none" => CompressionKind::None,
        "snappy" => CompressionKind::Snappy,
        "zlib" => CompressionKind::Zlib,
        "lz4" => CompressionKind::Lz4,
        "lz4hc" => CompressionKind::Lz4hc,
        "zstd" => CompressionKind::Zstd,
        _ => return Err(unknown("compression_type", name)),
    })
}

fn unknown(flag: &str, value: &str) -> Error {
    Error::invalid_argument(format!("--{flag} cannot be {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<OpenOptions> {
        open_options(&Flags::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())?)
    }

    #[test]
    fn flags_reach_the_options() {
        let made = options(
            "--db=/x --memtablerep=vector --compression_type=lz4 --bloom_bits=10 --cache_size=5 --checksum_type=1",
        )
        .unwrap();
        let (name, family) = &made.families[0];
        assert_eq!((name.as_str(), family.compression), (DEFAULT_FAMILY, CompressionKind::Lz4));
        assert_eq!(family.table.filter_policy.bits_per_key, Some(10.0));
        assert_eq!(family.memtable_factory, "vector");
        assert_eq!((family.table.block_cache, family.table.checksum), (5, ChecksumKind::Crc32c));
    }

    #[test]
    fn values_that_name_nothing_are_errors() {
        assert!(options("--db=/x --compression_type=best").is_err());
        assert!(options("--db=/x --checksum_type=9").is_err());
        assert!(options("--db=/x --partition_index --index_with_first_key").is_err());
    }
}
