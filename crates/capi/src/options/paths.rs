//! `rocksdb_dbpath_t`: directories for tables. All tables are in the database's own directory. A different one is
//! refused at the open, not ignored.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use super::Options;
use crate::boundary::array::{Array, Count};
use crate::boundary::{export, handles};
use crate::failure::Failure;
use crate::text::path;

/// A directory, with the bytes of tables meant for it.
#[derive(Clone)]
pub struct DbPath {
    pub dir: PathBuf,
    pub target_size: u64,
}

handles!(DbPath);

impl Options {
    /// Whether a database in `dir` can be opened with these options.
    ///
    /// # Errors
    /// `Not implemented`: tables elsewhere, user-defined timestamps. `Invalid argument`: numbers that RocksDB refuses, where it takes
    /// other ones out of our bounds.
    pub fn check(&self, dir: &Path) -> Result<(), Failure> {
        if let Some(other) = self.table_dirs.iter().chain(&self.family_table_dirs).find(|other| other.dir != dir) {
            let what =
                format!("db_paths and cf_paths: tables in {}, outside of {}", other.dir.display(), dir.display());
            return Err(Failure::not_implemented(what));
        }
        if self.has_timestamps {
            return Err(Failure::not_implemented("a comparator of keys with user-defined timestamps"));
        }
        if self.db.keep_log_file_num == 0 || self.db.kept.get("keep_log_file_num") == Some("0") {
            return Err(Failure::invalid_argument("keep_log_file_num must be greater than 0"));
        }
        Ok(())
    }
}

fn dirs(paths: Array<*const DbPath>, count: Count) -> Vec<DbPath> {
    paths.handles(count).cloned().collect()
}

export! {
    fn rocksdb_dbpath_create(dir: &CStr, target_size: u64) -> Box<DbPath> {
        Box::new(DbPath { dir: path(dir).to_owned(), target_size })
    }

    fn rocksdb_dbpath_destroy(dir: Option<Box<DbPath>>) {
        drop(dir);
    }

    fn rocksdb_options_set_db_paths(options: &mut Options, paths: Array<*const DbPath>, count: Count) {
        options.table_dirs = dirs(paths, count);
    }

    fn rocksdb_options_set_cf_paths(options: &mut Options, paths: Array<*const DbPath>, count: Count) {
        options.family_table_dirs = dirs(paths, count);
    }
}
