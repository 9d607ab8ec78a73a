//! Replay of ingests: the tables are in the directory, and stand in the queue again until a flush gives them levels.
//! Keeps D2, D3, F2, Q1.

use std::sync::Arc;

use base::{Error, Result, SeqNo, UserOrder};
use vfs::Vfs;

use super::{LogReplay, check_count, seal};
use crate::compaction::Span;
use crate::ingest::overlap::Coverage;
use crate::ingest::queued::QueuedIngest;
use crate::ingest::record::{FamilyIngest, IngestRecord, IngestShape};
use crate::version::recover::TablePaths;
use crate::write::batch::BatchReader;
use crate::write::given::Given;
use crate::write::join::Joins;

impl LogReplay<'_> {
    /// Applies an ingest, and the batch that rides with it.
    ///
    /// # Errors
    /// `Corruption`: the record is malformed, or a table that it names is missing.
    pub(super) fn apply_ingest(&mut self, payload: &[u8]) -> Result<()> {
        let (record, batch) = IngestRecord::decode(payload)?;
        let shape = record.shape();
        let batch = if batch.is_empty() { None } else { Some(BatchReader::new(batch)?) };
        let in_batch = batch.as_ref().map_or(0, |batch| u64::from(batch.declared_count()));
        if batch.as_ref().is_some_and(|batch| batch.seq().0 != record.last().0 + 1) {
            return Err(Error::corruption("the batch beside an ingest does not go on from its numbers"));
        }
        let past_the_end = || Error::corruption("the batch beside an ingest has more entries than there are numbers");
        let last = record.last().checked_add(in_batch).ok_or_else(past_the_end)?;
        self.follow(record.first, last)?;
        // Whatever becomes of the record, its numbers are not given out again: a flush may say that it was through them.
        self.last_seq = self.last_seq.max(last);
        let given = Given { before: SeqNo(record.first.0 - 1), last: record.last(), log_end: 0 };
        // All of it is looked at before any is queued: salvage passes over it whole (D3).
        let mut wanted = Vec::with_capacity(record.families.len());
        for share in &record.families {
            let Some(family) = self.families.get(&share.family) else { continue };
            // What was linked is where a flush put it, or where compactions have led it since.
            if !family.has_linked(record.first, record.last()) {
                check_bounds(&family.family.order().user, share)?;
                check_tables(&*self.context.vfs, &TablePaths(vec![self.context.dir.clone()]), share)?;
                wanted.push(share);
            }
        }
        batch.as_ref().map_or(Ok(()), check_count)?;
        for share in wanted {
            self.queue_ingest(share, shape, &given)?;
        }
        match batch {
            None => Ok(()),
            Some(batch) => {
                let first = batch.seq();
                self.apply_batch(batch, first, None)
            }
        }
    }

    fn queue_ingest(&mut self, share: &Arc<FamilyIngest>, shape: IngestShape, given: &Given) -> Result<()> {
        let Some(family) = self.families.get_mut(&share.family) else { return Ok(()) };
        let handle = family.family.clone();
        let ingest = QueuedIngest::new(&handle, share.clone(), shape, 0);
        ingest.set_numbers(given);
        // As at its commit: under the memtable where it meets nothing there, so that replaying many makes no table each.
        let coverage = Coverage::of(&handle.order().user, share);
        if family.mutable.memtable().entries() > 0 && coverage.meets_memtable_once_ready(family.mutable.memtable()) {
            seal(self.context, family, given.before, 0)?;
        }
        if family.mutable.is_unused() {
            family.mutable.advance_empty_to(given.last);
        }
        family.mutable.memtable().mark_foreign();
        family.queue.insert(0, ingest);
        Ok(())
    }
}

/// # Errors
/// `Corruption`: a table is missing, or has another size.
pub(crate) fn check_tables(vfs: &dyn Vfs, paths: &TablePaths, share: &FamilyIngest) -> Result<()> {
    for table in share.layers.iter().flatten() {
        let path = paths.table(table.meta.path_id, table.meta.number)?;
        let len = match vfs.metadata(&path) {
            Ok(metadata) => metadata.len,
            Err(error) if error.is_not_found() => {
                let what = "a table that was ingested is missing; restore it, or salvage what else there is \
                            (wal_recovery_mode kSkipAnyCorruptedRecords)";
                return Err(Error::corruption(what).at_path(path));
            }
            Err(error) => return Err(error),
        };
        if len != table.meta.file_bytes {
            let what = format!("the table has {len} bytes, the log says {}", table.meta.file_bytes);
            return Err(Error::corruption(what).at_path(path));
        }
    }
    Ok(())
}

/// # Errors
/// `Corruption`: bounds that no ingest has.
fn check_bounds(order: &UserOrder, share: &FamilyIngest) -> Result<()> {
    let is_inverted = |(start, end): &(Vec<u8>, Vec<u8>)| order.compare(start, end).is_ge();
    if share.excise.as_ref().is_some_and(is_inverted) {
        return Err(Error::corruption("an excise's span is empty or inverted"));
    }
    for layer in &share.layers {
        let mut before: Option<Span> = None;
        for span in layer.iter().map(|table| Span::of_file(&table.meta)) {
            let follows = before.is_none_or(|before| {
                order.compare(&before.start, &span.start).is_lt() && !before.overlaps(order, &span)
            });
            if !follows || order.compare(&span.start, &span.end).is_gt() {
                return Err(Error::corruption("the bounds of an ingest's tables are inverted, or overlap in a layer"));
            }
            before = Some(span);
        }
    }
    Ok(())
}
