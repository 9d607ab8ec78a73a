//! Kinds of queue entries, as flushes tell them apart.

use std::sync::Arc;

use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;

/// Number of tables of level 0 the queue is taken for: a linked ingest counts as one, and so does each sequence of
/// memtables with ingests that may be merged with them.
pub(crate) fn tables_to_come(queue: &[Arc<dyn Flushable>]) -> usize {
    let is_alone = |entry: &Arc<dyn Flushable>| is_linked(entry, SmallIngests::Merge);
    let of_run = |run: &[Arc<dyn Flushable>]| if run.iter().all(is_ingest) { run.len() } else { 1 };
    queue.chunk_by(|a, b| is_alone(a) == is_alone(b)).map(of_run).sum()
}

/// Memory of the entries without ingests; for a memtable, its reserved bytes.
pub(crate) fn memtable_bytes(entries: &[Arc<dyn Flushable>]) -> usize {
    let bytes = |entry: &Arc<dyn Flushable>| match entry.as_memtable() {
        Some(memtable) => memtable.reserved_bytes(),
        None => entry.memory_bytes(),
    };
    entries.iter().filter(|entry| !is_ingest(entry)).map(bytes).sum()
}

/// Whether the entry is converted into a table, in a flush of its own.
pub(crate) fn is_converted(entry: &Arc<dyn Flushable>) -> bool {
    entry.conversion().is_some()
}

pub(crate) fn is_ingest(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some()
}

/// A flush's way with ingested tables that overlap a memtable under them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmallIngests {
    /// Rewrite small ones into one table with the memtable.
    Merge,
    /// Link them like all others.
    Link,
    /// Rewrite all ingests, whatever their size: an atomic flush has one edit, and links have edits of their own.
    RewriteAll,
}

impl SmallIngests {
    /// For a flush of several families. A merged ingest found to be damaged would need an edit of its own.
    pub fn of_group(families: usize) -> Self {
        if families > 1 { SmallIngests::Link } else { SmallIngests::Merge }
    }
}

/// Whether a flush links all of the entry's tables, whatever they overlap.
pub(crate) fn is_linked(entry: &Arc<dyn Flushable>, small: SmallIngests) -> bool {
    entry.as_ingest().is_some_and(|ingest| match small {
        SmallIngests::Merge => ingest.merged_max_bytes() == 0,
        SmallIngests::Link => true,
        SmallIngests::RewriteAll => false,
    })
}

pub(crate) fn excises(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(QueuedIngest::has_excise)
}

/// Whether the committer dequeues the entry itself. Entries above it stay until then.
pub(crate) fn is_held(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(QueuedIngest::is_held)
}
