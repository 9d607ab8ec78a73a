//! `rocksdb_sst_file_manager_t`: total size of several databases' tables. Files are removed at once, so there is never
//! trash. The limit is not enforced, but can be checked.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use spillway::internal::Database as Db;

use crate::boundary::{export, handles};
use crate::env::EnvHandle;
use crate::kept::number::{CNumber, Number};
use crate::kept::{Keeps, Kept};
use crate::watched::Watched;

/// Databases opened with it, and its settings.
#[derive(Clone)]
pub struct FileManager(Arc<Mutex<Managed>>);

struct Managed {
    databases: Watched,
    /// 0 for no limit.
    allowed_bytes: u64,
    delete_rate_bytes_per_second: i64,
    max_trash_db_ratio: f64,
    /// Settings without effect: the open notes them.
    without_effect: Kept,
}

handles!(FileManager);

/// RocksDB's.
const TRASH_RATIO_DEFAULT: f64 = 0.25;

impl FileManager {
    pub fn watch(&self, db: &Arc<Db>) {
        self.0.lock().databases.add(db);
    }

    pub fn without_effect(&self) -> Kept {
        self.0.lock().without_effect.clone()
    }

    pub fn set_allowed_bytes(&self, bytes: u64) {
        let mut managed = self.0.lock();
        managed.without_effect.keep("max_allowed_space_usage", bytes.number(), Number::Integer(0));
        managed.allowed_bytes = bytes;
    }

    pub fn set_compaction_buffer(&self, bytes: u64) {
        self.0.lock().without_effect.keep("compaction_buffer_size", bytes.number(), Number::Integer(0));
    }

    pub fn delete_rate(&self) -> i64 {
        self.0.lock().delete_rate_bytes_per_second
    }

    pub fn set_delete_rate(&self, bytes: i64) {
        let mut managed = self.0.lock();
        managed.without_effect.keep("delete_rate_bytes_per_second", bytes.number(), Number::Integer(0));
        managed.delete_rate_bytes_per_second = bytes;
    }

    pub fn trash_ratio(&self) -> f64 {
        self.0.lock().max_trash_db_ratio
    }

    pub fn set_trash_ratio(&self, ratio: f64) {
        self.0.lock().max_trash_db_ratio = ratio;
    }

    pub fn total_bytes(&self) -> u64 {
        let databases = self.0.lock().databases.clone();
        databases.sum("rocksdb.total-sst-files-size")
    }

    /// Tables of the open databases, with their bytes.
    pub fn tables(&self) -> Vec<(PathBuf, u64)> {
        let databases = self.0.lock().databases.clone();
        let tables = |db: Arc<Db>| db.live_files().into_iter().map(|file| (file.path, file.bytes));
        databases.open().flat_map(tables).collect()
    }

    pub fn is_full(&self) -> bool {
        let allowed_bytes = self.0.lock().allowed_bytes;
        allowed_bytes > 0 && self.total_bytes() >= allowed_bytes
    }
}

impl Default for FileManager {
    fn default() -> FileManager {
        FileManager(Arc::new(Mutex::new(Managed {
            databases: Watched::default(),
            allowed_bytes: 0,
            delete_rate_bytes_per_second: 0,
            max_trash_db_ratio: TRASH_RATIO_DEFAULT,
            without_effect: Kept::default(),
        })))
    }
}

export! {
    fn rocksdb_sst_file_manager_create(_env: Option<&EnvHandle>) -> Box<FileManager> {
        Box::default()
    }

    fn rocksdb_sst_file_manager_destroy(manager: Option<Box<FileManager>>) {
        drop(manager);
    }

    /// Writes go on when it is reached.
    fn rocksdb_sst_file_manager_set_max_allowed_space_usage(manager: &FileManager, bytes: u64) {
        manager.set_allowed_bytes(bytes);
    }

    fn rocksdb_sst_file_manager_set_compaction_buffer_size(manager: &FileManager, bytes: u64) {
        manager.set_compaction_buffer(bytes);
    }

    fn rocksdb_sst_file_manager_is_max_allowed_space_reached(manager: &FileManager) -> bool {
        manager.is_full()
    }

    /// Output of running compactions is not included.
    fn rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(manager: &FileManager) -> bool {
        manager.is_full()
    }

    fn rocksdb_sst_file_manager_get_total_size(manager: &FileManager) -> u64 {
        manager.total_bytes()
    }

    fn rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager: &FileManager) -> i64 {
        manager.delete_rate()
    }

    fn rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager: &FileManager, bytes: i64) {
        manager.set_delete_rate(bytes);
    }

    fn rocksdb_sst_file_manager_get_max_trash_db_ratio(manager: &FileManager) -> f64 {
        manager.trash_ratio()
    }

    fn rocksdb_sst_file_manager_set_max_trash_db_ratio(manager: &FileManager, ratio: f64) {
        manager.set_trash_ratio(ratio);
    }

    fn rocksdb_sst_file_manager_get_total_trash_size(_manager: &FileManager) -> u64 {
        0
    }
}
