//! `rocksdb_t`: an open database.

pub mod families;
mod manage;
mod open;
mod properties;
pub mod read;
mod write;

use std::sync::Arc;

use parking_lot::RwLock;
use spillway::{Db, Error, ErrorKind, Family};

use crate::boundary::handles;
use crate::failure::Failure;
use crate::ttl::Stamps;

/// An open database. Other handles made from it (snapshots, iterators, families) own what they need, and can outlive it.
pub struct Database {
    pub db: Arc<Db>,
    default: Arc<Family>,
    read_only: bool,
    /// Values end with a stamp: the database was opened with a time to live.
    stamps: Option<Stamps>,
    /// Manual compactions hold it shared while they run. How many times they were disabled, less how many times they were
    /// enabled: none runs while it is above 0. RocksDB counts below 0 too, for callers that enable first.
    times_disabled: RwLock<i64>,
}

/// `rocksdb_column_family_handle_t`.
pub struct FamilyHandle(pub Arc<Family>);

handles!(Database, FamilyHandle);

impl Database {
    /// The family that functions without one mean.
    #[inline]
    pub fn default_family(&self) -> &Arc<Family> {
        &self.default
    }

    /// What takes stamps off values and puts them on, where they have them.
    #[inline]
    pub fn stamps(&self) -> Option<&Stamps> {
        self.stamps.as_ref()
    }

    /// An error of a write.
    #[cold]
    pub fn refused(&self, error: Error) -> Failure {
        match error.kind() {
            ErrorKind::ReadOnly if self.read_only => Failure::not_implemented(error.to_string()),
            // Only a write that was asked not to wait is refused like this.
            ErrorKind::Busy => Failure::incomplete(error.to_string()),
            _ => error.into(),
        }
    }
}
