//! Replay of ingests: the tables are in the directory, and stand in the queue again until a flush gives them levels.
//! Keeps D2, D3, F2, Q1.

use base::{Error, Result, SeqNo};

use super::{LogReplay, seal};
use crate::ingest::overlap::Coverage;
use crate::ingest::queued::QueuedIngest;
use crate::ingest::record::{FamilyIngest, IngestRecord, IngestShape};
use crate::version::recover::TablePaths;
use crate::write::batch::BatchReader;
use crate::write::join::{Given, Joins};

impl LogReplay<'_> {
    /// Applies an ingest, and the batch that rides with it.
    ///
    /// # Errors
    /// `Corruption`: the record is malformed, or a table that it names is missing.
    pub(super) fn apply_ingest(&mut self, payload: &[u8]) -> Result<()> {
        let (record, batch) = IngestRecord::decode(payload)?;
        let shape = record.shape();
        let given = Given { before: SeqNo(record.first.0 - 1), last: record.last(), log_end: 0 };
        for share in &record.families {
            self.queue_ingest(share, shape, &given)?;
        }
        self.last_seq = self.last_seq.max(record.last());
        if batch.is_empty() {
            return Ok(());
        }
        let batch = BatchReader::new(batch)?;
        let first = batch.seq();
        self.apply_batch(batch, first, None)
    }

    fn queue_ingest(&mut self, share: &FamilyIngest, shape: IngestShape, given: &Given) -> Result<()> {
        let (first, last) = (SeqNo(given.before.0 + 1), given.last);
        let Some(family) = self.families.get_mut(&share.family) else { return Ok(()) };
        if family.has_linked(first, last) {
            return Ok(()); // its tables are where a flush put them, or where compactions have led them since
        }
        let paths = TablePaths(vec![self.context.dir.clone()]);
        for table in share.layers.iter().flatten() {
            let path = paths.table(table.meta.path_id, table.meta.number)?;
            let len = match self.context.vfs.metadata(&path) {
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
        let handle = family.family.clone();
        let ingest = QueuedIngest::new(handle.order().clone(), handle.tables().clone(), share.clone(), shape);
        ingest.set_numbers(given);
        // As at its commit: under the memtable where it meets nothing there, so that replaying many makes no table each.
        let coverage = Coverage::of(&handle.order().user, share);
        if family.mutable.memtable().entries() > 0 && coverage.meets_memtable_once_ready(family.mutable.memtable()) {
            seal(self.context, family, given.before, 0)?;
        }
        if family.mutable.is_unused() {
            family.mutable.advance_empty_to(last);
        }
        family.queue.insert(0, ingest);
        Ok(())
    }
}
