//! What a reader holds: everything a family consisted of at one instant (V1).

use std::sync::Arc;

use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::ingest::queued::QueuedIngest;
use crate::version::table_file::TableFile;
use crate::version::version::Version;

/// A family at one instant. Immutable; replaced as a whole by whoever changes the queue or the version, and replaced
/// *before* the sequence number that needs the new one is published.
pub struct ReadView {
    /// The young end of the queue: where writes go.
    pub mutable: Arc<QueuedMemtable>,
    /// The rest of the queue, youngest first.
    pub queue: Vec<Arc<dyn Flushable>>,
    pub version: Arc<Version>,
}

impl ReadView {
    /// Everything that is read before the tables of the version, youngest first (Q1).
    pub fn flushables(&self) -> impl Iterator<Item = Arc<dyn Flushable>> + '_ {
        let mutable: Arc<dyn Flushable> = self.mutable.clone();
        std::iter::once(mutable).chain(self.queue.iter().cloned())
    }

    /// Tables that were ingested and have no level yet.
    pub fn queued_tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.queue.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files)
    }

    /// All tables: those of the version, and those that have no level yet.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.version.all_files().map(|(_, file)| file).chain(self.queued_tables())
    }
}
