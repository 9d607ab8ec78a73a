//! `rocksdb_t`: an open database.

pub mod families;
mod manage;
mod open;
mod properties;
pub mod read;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use spillway::{Db, Error, ErrorKind, Family, WriteOptions};

use crate::boundary::handles;
use crate::failure::Failure;
use crate::options::kept::Kept;
use crate::read_options::ReadSettings;
use crate::ttl::Stamps;
use crate::write_options::WriteSettings;

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
    /// Options that cannot be honoured are told of instead of refused.
    ignores_unsupported: bool,
    /// What was told of already, of the options of calls.
    told: RwLock<BTreeSet<&'static str>>,
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

    /// Tells the event log of options that a call was given and that have no effect: of each once.
    #[inline]
    pub fn tell(&self, kept: &Kept) {
        if !kept.is_empty() {
            self.tell_once(kept);
        }
    }

    #[cold]
    fn tell_once(&self, kept: &Kept) {
        for (name, number) in kept.iter() {
            let is_known = self.told.read().contains(name);
            if !is_known && self.told.write().insert(name) {
                self.db.note_without_effect(name, &number.text(false));
            }
        }
    }

    /// # Errors
    /// What options of a read change of what is found, and cannot be honoured.
    pub fn honour(&self, settings: &ReadSettings) -> Result<(), Error> {
        settings.check(self.ignores_unsupported)?;
        self.tell(&settings.kept);
        Ok(())
    }

    /// How a write is done by these options.
    #[inline]
    pub fn writing<'s>(&self, settings: &'s WriteSettings) -> &'s WriteOptions {
        self.tell(&settings.kept);
        &settings.options
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
