//! The database for programs on tokio: calls that do not block the runtime's threads.
//!
//! What waits for nothing runs on the caller; all else on the runtime's blocking threads, of which a database takes a
//! bounded number (`pool`).

mod builder;
mod db;
mod family;
mod ingest;
mod iter;
mod pool;
mod write;

use std::sync::Arc;

use tokio::runtime::Handle;

pub use builder::AsyncBuilder;
pub use db::AsyncDb;
pub use family::AsyncFamily;
pub use iter::AsyncIter;

use crate::api::db::Db;
use crate::api::tokio::pool::Pool;

/// What the handles of one database share. Dropped with the last of them.
struct Inner {
    /// Taken only by the drop.
    db: Option<Db>,
    pool: Pool,
}

impl Inner {
    fn new(db: Db, calls_max: usize) -> Arc<Inner> {
        Arc::new(Inner { db: Some(db), pool: Pool::new(calls_max) })
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is there until the drop")
    }
}

impl Drop for Inner {
    /// Closes the database off the runtime's threads: that may wait for a flush.
    fn drop(&mut self) {
        if let (Some(db), Ok(runtime)) = (self.db.take(), Handle::try_current()) {
            pool::spawn(&runtime, move || drop(db));
        }
    }
}
