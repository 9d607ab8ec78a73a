//! How a database is opened for a runtime.

use std::path::Path;

use base::Result;

use crate::api::db::Db;
use crate::api::options::Options;
use crate::api::tokio::db::AsyncDb;
use crate::api::tokio::{Inner, pool};

/// Blocking calls of a lane at one time, by default: enough to keep an SSD busy, few beside the runtime's 512 threads.
const BLOCKING_CALLS: usize = 16;

/// Opens an [`AsyncDb`]: [`AsyncDb::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> spillway::Result<()> {
/// use spillway::{AsyncDb, Options};
///
/// let db = AsyncDb::builder().options(Options::in_memory()).blocking_calls(4).open("/db").await?;
/// db.put("key", "value").await?;
/// db.close().await
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it opens a database"]
pub struct AsyncBuilder {
    options: Options,
    blocking_calls: usize,
}

impl Default for AsyncBuilder {
    fn default() -> Self {
        AsyncBuilder { options: Options::new(), blocking_calls: BLOCKING_CALLS }
    }
}

impl AsyncBuilder {
    /// Options of the database; by default none, so that a database keeps its own.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Reads at one time on blocking threads of the runtime, and as many other calls: at the most twice this number of
    /// threads are taken. 16 by default, at least 1. Calls beyond it wait for their turn without a thread.
    ///
    /// More let more reads of a fast disk, or synced writes, run at once. Keep it well under the runtime's
    /// `max_blocking_threads`, which all of the program shares.
    pub fn blocking_calls(mut self, calls_max: usize) -> Self {
        self.blocking_calls = calls_max;
        self
    }

    /// Opens the database in a directory, or creates it there, on a blocking thread. If the future is dropped, the
    /// database may still be opened, and is closed at once.
    ///
    /// # Errors
    /// As of [`Db::open_with`].
    pub async fn open(self, dir: impl AsRef<Path>) -> Result<AsyncDb> {
        let (dir, options) = (dir.as_ref().to_owned(), self.options);
        let db = pool::run(move || Db::open_with(dir, &options)).await?;
        Ok(AsyncDb::new(Inner::new(db, self.blocking_calls)))
    }

    /// Wraps a database that is open. The builder's options count for nothing then.
    pub fn wrap(self, db: Db) -> AsyncDb {
        AsyncDb::new(Inner::new(db, self.blocking_calls))
    }
}
