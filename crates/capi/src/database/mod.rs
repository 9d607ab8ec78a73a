//! `rocksdb_t`: an open database.

pub mod families;
pub mod manage;
pub mod open;
pub mod properties;
pub mod read;
pub mod read_async;
pub mod snapshots;
pub mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::RwLock;
use spillway::internal::{Database as Db, Error, ErrorKind, Family, WriteOptions};

use crate::boundary::handles;
use crate::failure::Failure;
use crate::kept::Kept;
use crate::read_options::ReadSettings;
use crate::write_options::WriteSettings;
use spillway::internal::ttl::Stamps;

/// An open database. Handles made from it (snapshots, iterators, families) own their resources, and can outlive it.
pub struct Database {
    pub db: Arc<Db>,
    default: Arc<Family>,
    /// Values end with a stamp: the database was opened with a time to live.
    stamps: Option<Stamps>,
    /// Number of disable calls less enable calls; no manual compaction runs while it is above 0. A running one holds
    /// the lock shared. RocksDB counts below 0 too, for callers enabling first.
    times_disabled: RwLock<i64>,
    /// Running manual compactions give up.
    canceled: Arc<AtomicBool>,
    /// Unsupported options give warnings instead of errors.
    ignores_unsupported: bool,
    /// Call options already noted in the event log.
    told: RwLock<BTreeSet<&'static str>>,
}

handles!(Database);

impl Database {
    /// The family of functions without a family argument.
    #[inline]
    pub fn default_family(&self) -> &Arc<Family> {
        &self.default
    }

    /// Adds and removes stamps; `None` if values have none.
    #[inline]
    pub fn stamps(&self) -> Option<&Stamps> {
        self.stamps.as_ref()
    }

    /// Notes a call's options without effect in the event log, each once.
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
                self.db.log_without_effect(name, &number.text(false));
            }
        }
    }

    /// # Errors
    /// A read option affects results and cannot be honoured.
    pub fn honour(&self, settings: &ReadSettings) -> Result<(), Error> {
        settings.check(self.ignores_unsupported)?;
        self.tell(&settings.kept);
        Ok(())
    }

    /// The engine's options of a write.
    #[inline]
    pub fn writing<'s>(&self, settings: &'s WriteSettings) -> &'s WriteOptions {
        self.tell(&settings.kept);
        &settings.options
    }

    /// An error of a write.
    #[cold]
    pub fn refused(&self, error: Error) -> Failure {
        match error.kind() {
            // Only a write forbidden to wait fails so.
            ErrorKind::Busy => Failure::incomplete(error.to_string()),
            _ => error.into(),
        }
    }
}
