//! Delays flushes of ingests, so that ingests in quick succession leave the queue together.
//!
//! A queued ingest is read as in level 0 and holds almost no memory. Its flush costs a step towards the next compaction
//! and two syncs: of the MANIFEST, and of the table made from the small memtable under it. Writers syncing their WAL
//! records queue behind both at the disk.
//!
//! A caller waiting for a flush ([`FamilyState::flush_wanted_through`]) ends the delay.

use std::sync::Arc;
use std::time::Duration;

use base::FamilyId;

use crate::core::{FamilyState, State};
use crate::queue::entries::{is_held, is_ingest};
use crate::queue::flushable::Flushable;

/// Delay of the first ingest. The WAL is kept, and compactions start, later by as much.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Limit on delayed tables, memtables counted as one each: every read searches each of them, as in level 0.
const TABLES_MAX: usize = 16;

/// Limit on the bytes of delayed tables. Larger ones go to the levels, where compactions see them.
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// Limit on memtable bytes in a delayed queue, and the part of a write buffer they may reach. Far below a write stall
/// ([`FamilyState::has_full_queue`]).
const MEMTABLE_BYTES_MAX: usize = 16 << 20;
const WRITE_BUFFER_PART: usize = 4;

impl FamilyState {
    /// Whether the flush can be delayed: the queue has ingests, their delay is not over, and it is small in every
    /// respect.
    pub fn flush_can_wait(&self) -> bool {
        self.joined_at.is_some() && self.queue.iter().any(is_ingest) && self.is_small()
    }

    /// Whether the family has something to flush: enough sealed entries, an ingest past its delay, or any entry a
    /// caller waits for. False while the oldest entry is held.
    pub fn wants_flush(&self) -> bool {
        let Some(oldest) = self.queue.last().filter(|oldest| !is_held(oldest)) else { return false };
        self.queue.iter().any(|entry| self.is_waited_for(entry))
            || ((is_ingest(oldest) || self.queue.len() >= self.merged_at_least()) && !self.flush_can_wait())
    }

    /// Memtables merged into one table, unless a caller waits for fewer.
    pub fn merged_at_least(&self) -> usize {
        self.family.options().min_write_buffer_number_to_merge
    }

    pub fn is_waited_for(&self, entry: &Arc<dyn Flushable>) -> bool {
        let wanted = self.flush_wanted_through;
        // The second test covers entries without writes: callers wait only for their memory.
        entry.created_at() < wanted || entry.largest_seq().is_some_and(|largest| largest <= wanted)
    }

    fn is_small(&self) -> bool {
        let options = self.family.options();
        let (mut tables, mut table_bytes, mut memtable_bytes) = (0, 0, 0);
        for entry in &self.queue {
            let Some(ingest) = entry.as_ingest() else {
                // A converted memtable is flushed alone in any case.
                if entry.conversion().is_some() {
                    return false;
                }
                tables += 1;
                memtable_bytes += entry.memory_bytes();
                continue;
            };
            if ingest.has_excise() {
                return false; // excises free space
            }
            tables += ingest.tables().count();
            table_bytes += ingest.tables().map(|table| table.meta.file_bytes).sum::<u64>();
        }
        tables < tables_max(options.level0_file_num_compaction_trigger, options.level0_slowdown_writes_trigger)
            && table_bytes < TABLE_BYTES_MAX
            && memtable_bytes < MEMTABLE_BYTES_MAX.min(options.write_buffer_size / WRITE_BUFFER_PART)
    }
}

/// All delayed tables may reach level 0 at once, and must not slow down writers.
fn tables_max(compaction_trigger: i32, slowdown_trigger: i32) -> usize {
    match slowdown_trigger {
        ..0 => TABLES_MAX,
        _ => usize::try_from(slowdown_trigger - compaction_trigger).unwrap_or(0).min(TABLES_MAX),
    }
}

impl State {
    /// Notes a queued ingest of a family. True if a delay begins: upkeep must then learn when it ends.
    pub fn record_ingest(&mut self, family: FamilyId, at: Duration) -> bool {
        let Some(family) = self.families.get_mut(&family) else { return false };
        let begins = family.joined_at.is_none();
        let due = *family.joined_at.get_or_insert(at) + WAIT_MAX;
        self.flush_due = Some(self.flush_due.map_or(due, |first| first.min(due)));
        begins
    }

    /// Ends all delays: flushes become ready to pick.
    pub fn flush_without_waiting(&mut self) {
        self.families.values_mut().for_each(|family| family.joined_at = None);
        self.flush_due = None;
    }

    /// When the first delayed flush is due, or earlier, if that flush began without delay.
    pub fn next_flush_at(&self) -> Option<Duration> {
        self.flush_due
    }

    /// Ends the delays that are over at `due`.
    pub fn end_flush_waits(&mut self, due: Duration) {
        for family in self.families.values_mut() {
            family.joined_at = family.joined_at.filter(|at| *at + WAIT_MAX > due);
        }
        self.flush_due = self.families.values().filter_map(|family| family.joined_at).map(|at| at + WAIT_MAX).min();
    }
}

#[cfg(test)]
mod tests;
