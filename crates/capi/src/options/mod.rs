//! `rocksdb_options_t`: RocksDB has one handle for the options of a database and of a family.

pub mod database_rows;
pub mod family_rows;
pub mod homes;
pub mod latest;
pub mod objects;
pub mod paths;
pub mod presets;
pub mod strings;
pub mod styles;
pub mod table;

use std::sync::Arc;

use parking_lot::Mutex;
use spillway::internal::metrics::Statistics;
use spillway::internal::{BlockCache, DbOptions, FamilyOptions};

use self::paths::DbPath;
use crate::boundary::{export, handles};
use crate::env::Env;
use crate::file_manager::FileManager;
use crate::kept::Kept;
use crate::statistics::SharedStatistics;
use crate::write_buffer_manager::WriteBufferManager;

/// Options of a database and of one family.
#[derive(Clone, Default)]
pub struct Options {
    pub db: DbOptions,
    pub family: FamilyOptions,
    /// Options known to C only.
    numbers: Kept,
    pub block_cache: Option<Arc<BlockCache>>,
    pub row_cache: Option<Arc<BlockCache>>,
    pub env: Option<Env>,
    pub write_buffer_manager: Option<WriteBufferManager>,
    pub rate_limiter: Option<spillway::internal::RateLimiter>,
    pub file_manager: Option<FileManager>,
    /// Requested directories of tables.
    pub table_dirs: Vec<DbPath>,
    pub family_table_dirs: Vec<DbPath>,
    /// The comparator has timestamps.
    has_timestamps: bool,
    /// Counts for every database opened with these options. `None`: each has its own, if `db.statistics` is on.
    pub shared_statistics: Option<SharedStatistics>,
    /// Statistics of the database last opened with these options, copies included.
    pub statistics: Arc<Mutex<Option<Arc<Statistics>>>>,
}

handles!(Options);

impl Options {
    /// The database's part of `database` and the family's part of `family`.
    pub fn joined(database: &Options, family: &Options) -> Options {
        let mut numbers = family.numbers.clone();
        numbers.add(&database.numbers);
        Options {
            numbers,
            family: family.family.clone(),
            block_cache: family.block_cache.clone(),
            family_table_dirs: family.family_table_dirs.clone(),
            has_timestamps: family.has_timestamps,
            ..database.clone()
        }
    }
}

export! {
    fn rocksdb_options_create() -> Box<Options> {
        Box::default()
    }

    fn rocksdb_options_create_copy(options: &Options) -> Box<Options> {
        Box::new(options.clone())
    }

    fn rocksdb_options_destroy(options: Option<Box<Options>>) {
        drop(options);
    }
}
