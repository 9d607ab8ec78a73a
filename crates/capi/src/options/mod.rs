//! `rocksdb_options_t`: RocksDB has one handle for the options of a database and of a family.

mod database_rows;
mod family_rows;
pub mod kept;
pub mod number;
mod objects;
mod presets;
mod strings;
pub mod styles;
pub mod table;

use std::sync::Arc;

use parking_lot::Mutex;
use spillway::metrics::Statistics;
use spillway::{BlockCache, DbOptions, FamilyOptions};

use self::kept::Kept;
use crate::boundary::{export, handles};
use crate::env::Env;
use crate::memory::WriteBufferManager;

/// Options of a database and of one family.
#[derive(Clone, Default)]
pub struct Options {
    pub db: DbOptions,
    pub family: FamilyOptions,
    pub kept: Kept,
    /// What block-based table options keep, so that setting these options again does not lose it.
    pub table_kept: Kept,
    pub block_cache: Option<Arc<BlockCache>>,
    pub env: Option<Env>,
    pub write_buffer_manager: Option<WriteBufferManager>,
    /// Those of the database last opened with these options, copies included.
    pub statistics: Arc<Mutex<Option<Arc<Statistics>>>>,
}

handles!(Options);

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
