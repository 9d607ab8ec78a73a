//! `rocksdb_checkpoint_t`.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use spillway::internal::Database as Db;
use spillway::internal::export::ExportOptions;

use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::text::path;

/// Makes checkpoints of a database.
pub struct Checkpoint(Arc<Db>);

handles!(Checkpoint);

impl Checkpoint {
    pub fn of(database: &Database) -> Box<Checkpoint> {
        Box::new(Checkpoint(database.db.clone()))
    }

    /// A directory for RocksDB, and for us. Flushes first if the log has more than `flush_from_log_bytes`.
    pub fn create(&self, dir: &Path, flush_from_log_bytes: u64) -> Result<(), Failure> {
        self.check_parent(dir)?;
        self.0.export(
            dir,
            &ExportOptions { skip_verification: true, flush_from_log_bytes, ..ExportOptions::default() },
        )?;
        Ok(())
    }

    /// The directory that the checkpoint's is made in must be there, as for RocksDB.
    pub fn check_parent(&self, dir: &Path) -> Result<(), Failure> {
        if dir.as_os_str().is_empty() {
            return Err(Failure::invalid_argument("invalid checkpoint directory name"));
        }
        match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !self.0.vfs().exists(parent)? => {
                let dir = dir.display();
                Err(Failure::path_not_found(format!("While mkdir: {dir}.tmp: No such file or directory")))
            }
            _ => Ok(()),
        }
    }

    pub fn db(&self) -> &Db {
        &self.0
    }
}

export! {
    fn rocksdb_checkpoint_object_destroy(checkpoint: Option<Box<Checkpoint>>) {
        drop(checkpoint);
    }
}

fallible! {
    fn rocksdb_checkpoint_object_create(database: &Database) -> Box<Checkpoint> {
        Ok(Checkpoint::of(database))
    }

    /// See [`Checkpoint::create`].
    fn rocksdb_checkpoint_create(checkpoint: &Checkpoint, dir: &CStr, log_size_for_flush: u64) {
        checkpoint.create(path(dir), log_size_for_flush)
    }
}
