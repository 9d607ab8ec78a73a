//! Options of databases for optimistic transactions. Commits look at keys, not at buckets: all of them are only kept.

use std::ffi::{CStr, c_char, c_int};

use super::OptimisticDb;
use crate::boundary::array::{Array, IntCount, OutArray};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::database::open::{Families, Mode};
use crate::family::FamilyHandle;
use crate::kept::{Kept, keeps_numbers};
use crate::options::Options;

/// `rocksdb_optimistictransactiondb_options_t`.
#[derive(Default)]
pub struct OptimisticDbSettings {
    kept: Kept,
}

/// `rocksdb_optimistictransactiondb_lock_buckets_t`: the bytes that RocksDB's would take.
pub struct LockBuckets(usize);

const MUTEX_BYTES: usize = 40;
const LINE_BYTES: usize = 64;
/// What holds the buckets.
const HEAD_BYTES: usize = 24;

handles!(OptimisticDbSettings, LockBuckets);

keeps_numbers!(OptimisticDbSettings);

settings! { OptimisticDbSettings, "rocksdb_optimistictransactiondb_options_";
    occ_lock_buckets: u32 = 1 << 20;
    validate_policy: c_int = 1;
}

export! {
    fn rocksdb_optimistictransactiondb_options_create() -> Box<OptimisticDbSettings> {
        Box::default()
    }

    fn rocksdb_optimistictransactiondb_options_destroy(options: Option<Box<OptimisticDbSettings>>) {
        drop(options);
    }

    /// No effect: commits of several databases share no buckets.
    fn rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(
        _options: &mut OptimisticDbSettings,
        _lock_buckets: &LockBuckets,
    ) {}

    fn rocksdb_optimistictransactiondb_lock_buckets_create(bucket_count: usize, cache_aligned: bool) -> Box<LockBuckets> {
        let bucket_bytes = if cache_aligned { LINE_BYTES } else { MUTEX_BYTES };
        Box::new(LockBuckets(bucket_count.saturating_mul(bucket_bytes).saturating_add(HEAD_BYTES)))
    }

    fn rocksdb_optimistictransactiondb_lock_buckets_destroy(lock_buckets: Option<Box<LockBuckets>>) {
        drop(lock_buckets);
    }

    /// RocksDB's number, for programs that budget with it: there are no buckets.
    fn rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(lock_buckets: &LockBuckets) -> usize {
        lock_buckets.0
    }
}

fn opened(database: Box<Database>, settings: &OptimisticDbSettings) -> Box<OptimisticDb> {
    database.tell(&settings.kept);
    OptimisticDb::of(database)
}

fallible! {
    fn rocksdb_optimistictransactiondb_open_with_otxn_db_options(
        options: &Options,
        otxn_db_options: &OptimisticDbSettings,
        name: &CStr,
    ) -> Box<OptimisticDb> {
        Ok(opened(Database::open_default(options, name, Mode::Write)?, otxn_db_options))
    }

    fn rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
        options: &Options,
        otxn_db_options: &OptimisticDbSettings,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
    ) -> Box<OptimisticDb> {
        let families = Families { count, names, options: family_options, handles };
        Ok(opened(Database::open_families(options, name, families, Mode::Write)?, otxn_db_options))
    }
}
