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
        let is_off = |name| self.db.kept.get(name).is_some_and(|text| ["false", "0"].contains(&text));
        if is_off("write_identity_file") && is_off("write_dbid_to_manifest") {
            let what = "write_dbid_to_manifest and write_identity_file cannot both be false";
            return Err(Failure::invalid_argument(what));
        }
        let offpeak = self.db.kept.get("daily_offpeak_time_utc").filter(|times| !times.is_empty());
        if offpeak.is_some_and(|times| !times.split_once('-').is_some_and(|(from, to)| is_time(from) && is_time(to))) {
            let what = "daily_offpeak_time_utc should be set in the format HH:mm-HH:mm (e.g. 04:30-07:30)";
            return Err(Failure::invalid_argument(what));
        }
        Ok(())
    }
}

/// Whether a text is `HH:mm`.
fn is_time(text: &str) -> bool {
    let below = |text: &str, end: u8| text.len() == 2 && text.parse::<u8>().is_ok_and(|number| number < end);
    text.split_once(':').is_some_and(|(hours, minutes)| below(hours, 24) && below(minutes, 60))
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
