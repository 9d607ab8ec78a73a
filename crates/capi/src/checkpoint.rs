//! `rocksdb_checkpoint_t`.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use spillway::internal::Database as Db;

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

    /// As C's function, from 0 bytes of log on.
    pub fn create(&self, dir: &Path) -> Result<(), Failure> {
        self.0.checkpoint(dir)?;
        Ok(())
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

    /// A checkpoint needs no flush, however long the WAL is: the WAL is copied.
    fn rocksdb_checkpoint_create(checkpoint: &Checkpoint, dir: &CStr, _log_size_for_flush: u64) {
        checkpoint.0.checkpoint(path(dir))?;
        Ok(())
    }
}
