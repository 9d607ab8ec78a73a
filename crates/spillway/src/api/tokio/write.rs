//! Writes: on the caller where they take microseconds, else on the pool.

use base::{ErrorKind, Result};
use tokio::task::coop::consume_budget;

use crate::api::batch::Batch;
use crate::api::tokio::Inner;
use crate::api::tokio::pool::Lane;
use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;

/// Largest batch written on the caller. It takes about 100 us, as long as a task may keep its thread from others.
const CHANGES_MAX: u32 = 64;
const BYTES_MAX: usize = 64 << 10;

impl Inner {
    /// Commits a batch; with the database's write options if none are given.
    pub(super) async fn commit(&self, batch: Batch, options: Option<WriteOptions>) -> Result<()> {
        // A loop of writes lets other tasks run. Before the write, so that a dropped future has not written.
        consume_budget().await;
        let (changes, shared) = batch.into_changes()?;
        let options = options.unwrap_or(shared.write);
        if is_quick(&changes, &options) {
            let impatient = WriteOptions { no_slowdown: true, ..options };
            match shared.database.write(&changes, &impatient) {
                // It would have to wait, and wrote nothing.
                Err(error) if error.kind() == ErrorKind::Busy && !options.no_slowdown => {}
                written => return written.map(drop),
            }
        }
        self.pool.run(Lane::Other, move || shared.database.write(&changes, &options).map(drop)).await
    }
}

/// Whether a write takes microseconds, unless it has to wait for others.
fn is_quick(changes: &WriteBatch, options: &WriteOptions) -> bool {
    !options.sync && !options.flush_after && changes.count() <= CHANGES_MAX && changes.len() <= BYTES_MAX
}
