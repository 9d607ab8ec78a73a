//! The public API: handles that carry their database, options made by builders, iteration by `Iterator`. A thin layer
//! over [`Database`](crate::database::handle::Database): no state of the engine lives here.

// First: documentation shows the calls of a type in the order of these modules.
mod db;
mod family;

mod batch;
mod care;
#[cfg(feature = "config")]
mod config;
mod cursor;
mod ingest;
mod iter;
mod manage;
pub(crate) mod options;
mod range;
mod snapshot;
#[cfg(feature = "tokio")]
mod tokio;
mod transaction;
mod updates;
mod walk;

#[cfg(feature = "tokio")]
pub use self::tokio::{AsyncBuilder, AsyncDb, AsyncFamily, AsyncIter};
pub use batch::Batch;
pub use care::Backups;
#[cfg(feature = "config")]
pub use config::Config;
pub use cursor::Cursor;
pub use db::Db;
pub use family::Family;
pub use ingest::{IngestFiles, PreparedIngest, TableWriter};
pub use iter::Iter;
pub use options::{
    BackupOptions, BlockCache, CompactFilesOptions, CompactOptions, CompressionOptions, FamilyOptions, FifoOptions,
    IngestOptions, Options, ReadOptions, TableOptions, TransactionOptions, UniversalOptions, WriteBufferManager,
    WriteOptions,
};
pub use range::KeyRange;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use updates::Updates;

use std::sync::Arc;

use base::Result;

use crate::database::handle::Database;
use crate::transaction::PreparedTransactions;
use crate::transaction::locks::{LockLimits, LockTable};

/// An open database and the write options of its handles. Closed when the last handle is dropped.
pub(crate) struct Shared {
    pub database: Database,
    /// Options of writes without their own.
    pub write: crate::batch::options::WriteOptions,
    /// Of pessimistic transactions.
    pub locks: Arc<LockTable>,
    /// Those without a handle.
    pub prepared: Arc<PreparedTransactions>,
}

impl Shared {
    /// Locks the keys of recovered transactions.
    pub fn new(database: Database, write: crate::batch::options::WriteOptions) -> Result<Arc<Self>> {
        let locks = Arc::new(LockTable::of(&database, LockLimits::default()));
        let prepared = PreparedTransactions::of(&database, &locks, TransactionOptions::new().locking)?;
        Ok(Arc::new(Shared { database, write, locks, prepared }))
    }
}
