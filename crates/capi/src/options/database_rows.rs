//! A database's options, by RocksDB's C names and types; Spillway's first.

use std::ffi::{c_int, c_uchar, c_uint};

use super::Options;
use crate::boundary::settings::settings;

settings! { Options, "rocksdb_options_";
    create_if_missing: c_uchar => db.create_if_missing;
    create_missing_column_families: c_uchar => db.create_missing_column_families;
    error_if_exists: c_uchar => db.error_if_exists;
    paranoid_checks: c_uchar => db.paranoid_checks;
    max_open_files: c_int => db.max_open_files;
    max_background_jobs: c_int => db.max_background_jobs;
    max_subcompactions: u32 => db.max_subcompactions;
    max_total_wal_size: u64 => db.max_total_wal_size;
    wal_recovery_mode: c_int => db.wal_recovery_mode;
    bytes_per_sync: u64 => db.bytes_per_sync;
    wal_bytes_per_sync: u64 => db.wal_bytes_per_sync;
    db_write_buffer_size: usize => db.db_write_buffer_size;
    enforce_write_buffer_manager_during_recovery: c_uchar => db.enforce_write_buffer_manager_during_recovery;
    max_manifest_file_size: usize => db.max_manifest_file_size;
    avoid_flush_during_shutdown: c_uchar => db.avoid_flush_during_shutdown;
    atomic_flush: c_uchar => db.atomic_flush;
    allow_concurrent_memtable_write: c_uchar => db.allow_concurrent_memtable_write;
    allow_ingest_behind: c_uchar => db.allow_ingest_behind;
    allow_mmap_reads: c_uchar => db.allow_mmap_reads;
    stats_dump_period_sec: c_uint => db.stats_dump_period_sec;
    delayed_write_rate: u64 => db.delayed_write_rate;
    max_log_file_size: usize => db.max_log_file_size;
    log_file_time_to_roll: usize => db.log_file_time_to_roll;
    keep_log_file_num: usize => db.keep_log_file_num;
    info_log_level: c_int => db.info_log_level;
    WAL_size_limit_MB: u64 => db.wal_size_limit_mb;
    WAL_ttl_seconds: u64 => db.wal_ttl_seconds;

    advise_random_on_open: c_uchar = 1;
    allow_mmap_writes: c_uchar = 0;
    avoid_unnecessary_blocking_io: c_uchar = 0;
    delete_obsolete_files_period_micros: u64 = 21_600_000_000;
    dump_malloc_stats: c_uchar = 0;
    enable_pipelined_write: c_uchar = 0;
    enable_write_thread_adaptive_yield: c_uchar = 1;
    is_fd_close_on_exec: c_uchar = 1;
    manifest_preallocation_size: usize = 4 << 20;
    manual_wal_flush: c_uchar = 0;
    max_background_compactions: c_int = -1;
    max_background_flushes: c_int = -1;
    max_file_opening_threads: c_int = 16;
    open_files_async: c_uchar = 0;
    recycle_log_file_num: usize = 0;
    skip_checking_sst_file_sizes_on_db_open: c_uchar = 0;
    skip_stats_update_on_db_open: c_uchar = 0;
    stats_persist_period_sec: c_uint = 600;
    table_cache_numshardbits: c_int = 6;
    track_and_verify_wals_in_manifest: c_uchar = 0;
    unordered_write: c_uchar = 0;
    use_adaptive_mutex: c_uchar = 0;
    use_direct_io_for_flush_and_compaction: c_uchar = 0;
    use_direct_reads: c_uchar = 0;
    use_fsync: c_int = 0;
    wal_compression: c_int = 0;
    writable_file_max_buffer_size: u64 = 1 << 20;
    write_dbid_to_manifest: c_uchar = 1;
    write_identity_file: c_uchar = 1;
}
