//! Which flushes of ingests wait for more of them, and for how long.
//!
//! An ingest in the queue is read as it would be in level 0 and holds no memory to speak of. What its flush costs is syncs, of
//! the table that the small memtable under it becomes and of the MANIFEST, and a step towards the next compaction: writers that sync
//! their own records stand behind both at the disk. So ingests that come soon after each other leave the queue together.
//!
//! Whoever waits for a flush ([`FamilyState::flush_wanted_through`]) ends the waiting.

use std::sync::Arc;
use std::time::Duration;

use crate::core::{FamilyState, State};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;

/// How long the first of them waits. The log is needed so much longer, and a compaction comes so much later.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Tables that may wait, memtables counted as one each: every read looks at each, as in level 0.
const TABLES_MAX: usize = 16;

/// Bytes of ingested tables that may wait. Larger ones are levels' matter: compactions are to see them.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// Bytes that memtables in a queue may hold meanwhile, and the part of a write buffer that they may be: far from what
/// makes writers wait ([`FamilyState::has_full_queue`]).
const MEMTABLE_BYTES_MAX: usize = 16 << 20;
const WRITE_BUFFER_PART: usize = 4;

impl FamilyState {
    /// Notes that an ingest joined the queue. True where that begins a wait, so that upkeep is to learn when it ends.
    pub fn note_ingest(&mut self, at: Duration) -> bool {
        let begins = self.joined_at.is_none();
        self.joined_at.get_or_insert(at);
        begins
    }

    /// Whether what is queued can wait: it has ingests, and is small in every respect.
    pub fn flush_can_wait(&self) -> bool {
        self.joined_at.is_some() && self.queue.iter().any(is_ingest) && self.is_small()
    }

    /// Whether the family has something to flush: enough sealed entries, an ingest that waits no longer, or any that somebody
    /// waits for.
    pub fn wants_flush(&self) -> bool {
        let Some(oldest) = self.queue.last().filter(|oldest| !is_held(oldest)) else { return false };
        self.queue.iter().any(|entry| self.is_waited_for(entry))
            || ((is_ingest(oldest) || self.queue.len() >= self.merged_at_least()) && !self.flush_can_wait())
    }

    /// So many memtables are merged into one table, where nobody waits for fewer.
    pub fn merged_at_least(&self) -> usize {
        self.family.options().min_write_buffer_number_to_merge
    }

    pub fn is_waited_for(&self, entry: &Arc<dyn Flushable>) -> bool {
        let wanted = self.flush_wanted_through;
        // The second is for those that no write was noted to: only their memory can be waited for.
        entry.created_at() < wanted || entry.largest_seq().is_some_and(|largest| largest <= wanted)
    }

    fn is_small(&self) -> bool {
        let options = self.family.options();
        let (mut tables, mut table_bytes, mut memtable_bytes) = (0, 0, 0);
        for entry in &self.queue {
            let Some(ingest) = entry.as_ingest() else {
                // One that becomes a table as it is leaves alone, whatever else waits.
                if entry.conversion().is_some() {
                    return false;
                }
                tables += 1;
                memtable_bytes += entry.memory_bytes();
                continue;
            };
            if ingest.has_excise() {
                return false; // it frees space
            }
            tables += ingest.tables().count();
            table_bytes += ingest.tables().map(|table| table.meta.file_bytes).sum::<u64>();
        }
        tables < tables_max(options.level0_file_num_compaction_trigger, options.level0_slowdown_writes_trigger)
            && table_bytes < TABLE_BYTES_MAX
            && memtable_bytes < MEMTABLE_BYTES_MAX.min(options.write_buffer_size / WRITE_BUFFER_PART)
    }
}

/// Tables that a queue will become, the tables of one linked ingest counted as one. Memtables are taken for merged with what
/// is beside them.
pub(crate) fn tables_to_come(queue: &[Arc<dyn Flushable>]) -> usize {
    let of_run = |run: &[Arc<dyn Flushable>]| if run.iter().all(is_linked) { run.len() } else { 1 };
    queue.chunk_by(|a, b| is_linked(a) == is_linked(b)).map(of_run).sum()
}

/// What the entries that are no ingests hold: of a memtable, what was reserved in it.
pub(crate) fn memtable_bytes(entries: &[Arc<dyn Flushable>]) -> usize {
    let bytes = |entry: &Arc<dyn Flushable>| match entry.as_memtable() {
        Some(memtable) => memtable.reserved_bytes(),
        None => entry.memory_bytes(),
    };
    entries.iter().filter(|entry| !is_ingest(entry)).map(bytes).sum()
}

/// Whether the entry becomes a table as it is, and leaves the queue in a flush of its own.
pub(crate) fn is_converted(entry: &Arc<dyn Flushable>) -> bool {
    entry.conversion().is_some()
}

pub(crate) fn is_ingest(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some()
}

/// Whether the entry's tables are linked; of all others tables are made.
pub(crate) fn is_linked(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(|ingest| !ingest.is_merged())
}

pub(crate) fn excises(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(QueuedIngest::has_excise)
}

/// Whether its committer takes the entry out of the queue, and nothing above it leaves before.
pub(crate) fn is_held(entry: &Arc<dyn Flushable>) -> bool {
    entry.as_ingest().is_some_and(QueuedIngest::is_held)
}

/// All may come to level 0 at once: writers are not to be slowed down for that.
fn tables_max(compaction_trigger: i32, slowdown_trigger: i32) -> usize {
    match slowdown_trigger {
        ..0 => TABLES_MAX,
        _ => usize::try_from(slowdown_trigger - compaction_trigger).unwrap_or(0).min(TABLES_MAX),
    }
}

impl State {
    /// Ends all waits: flushes are picked as soon as somebody looks.
    pub fn flush_without_waiting(&mut self) {
        self.families.values_mut().for_each(|family| family.joined_at = None);
    }

    /// When the first flush that waits is due.
    pub fn next_flush_at(&self) -> Option<Duration> {
        self.families.values().filter_map(|family| family.joined_at).map(|at| at + WAIT_MAX).min()
    }

    /// Ends the waits that are due then.
    pub fn end_flush_waits(&mut self, due: Duration) {
        for family in self.families.values_mut() {
            family.joined_at = family.joined_at.filter(|at| *at + WAIT_MAX > due);
        }
    }
}

#[cfg(test)]
mod tests;
