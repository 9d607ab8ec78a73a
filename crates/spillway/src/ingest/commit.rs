//! The commit of an ingest: numbers, a place in every family's queue and one log record, in the pipeline like any write.
//! It waits for no writer, no flush and no MANIFEST. Keeps C1, C3, C4, D1, D3.

use std::sync::Arc;

use base::metrics::{Histogram, Ticker, record, tick};
use base::{Result, SeqNo};
use log::RecordKind;

use super::api::IngestReport;
use super::overlap::Coverage;
use super::prepare::PreparedIngest;
use super::queued::QueuedIngest;
use super::record::{FamilyIngest, IngestRecord, IngestShape};
use crate::core::Core;
use crate::family::Family;
use crate::write::batch::{self, WriteBatch};
use crate::write::commit::Unfinished;
use crate::write::join::{JoinRequest, Joined, Joining};
use crate::write::options::WriteOptions;

impl Core {
    /// Makes prepared tables part of the database, and with them what a batch writes: all of it or nothing, visible and
    /// durable when the call returns.
    ///
    /// # Errors
    /// `Closed`, `ReadOnly`, `InvalidArgument`: nothing was done, and what was prepared is removed.
    pub(crate) fn commit_ingest(
        &self,
        mut prepared: PreparedIngest,
        batch: Option<&WriteBatch>,
    ) -> Result<IngestReport> {
        self.check_writable()?;
        let start = self.context.vfs.now();
        let families = prepared.shares().iter().map(|(_, share)| share.clone()).collect();
        let mut record = IngestRecord { first: SeqNo::ZERO, families };
        let batch = batch.filter(|batch| !batch.is_empty());
        if record.shape().numbers == 0 {
            return self.commit_batch_alone(batch);
        }
        self.wait_for_debt(prepared.bytes() as usize, &WriteOptions::default())?;
        for (family, _) in prepared.shares() {
            self.wait_for_queue_room(family, &WriteOptions::default())?;
        }
        let mut joining = joining_of(&prepared, record.shape());
        if let Some(batch) = batch {
            self.add_batch(batch, record.shape().numbers, &mut joining)?;
        }
        let joined = {
            // One at a time, so that nobody spins for the locks while another looks for overlaps under them.
            let _alone = self.ingesting.lock();
            self.join_ingest(&record, batch, &mut joining)?
        };
        let unfinished = Unfinished::new(self, joined.ticket);
        prepared.keep();
        record.first = SeqNo(joined.given.before.0 + 1);
        self.log_ingest(&record, batch, &joined)?;
        unfinished.finish();
        self.pipeline.wait_visible(joined.given.last)?;
        self.state_changed.notify_all();
        self.upkeep.raise();
        self.sync_write(joined.given.log_end)?;
        prepared.remove_moved();
        let report = IngestReport {
            first: record.first,
            last: joined.given.last,
            tables: prepared.files(),
            bytes: prepared.bytes(),
            under: joined.under,
            above: joining.len() - joined.under,
            committed_in: self.context.vfs.now().saturating_sub(start),
            locked_for: joined.locked,
        };
        self.count_ingest(&report);
        self.drive_if_inline();
        Ok(report)
    }

    fn commit_batch_alone(&self, batch: Option<&WriteBatch>) -> Result<IngestReport> {
        let Some(batch) = batch else { return Ok(IngestReport::default()) };
        let last = self.write(batch, &WriteOptions::synced())?;
        let first = SeqNo(last.0 + 1 - u64::from(batch.count()));
        Ok(IngestReport { first, last, ..IngestReport::default() })
    }

    fn join_ingest(
        &self,
        record: &IngestRecord,
        batch: Option<&WriteBatch>,
        joining: &mut [Joining],
    ) -> Result<Joined> {
        self.join_queues(JoinRequest {
            joining,
            numbers: record.shape().numbers + batch.map_or(0, |batch| u64::from(batch.count())),
            record_bytes: Some(record.encode().len() + batch.map_or(0, WriteBatch::len)),
            bounds: &[],
            noted: &|_| {},
        })
    }

    /// Indexes the batch that comes along: its entries stand above the tables, in memtables of their own, so the families
    /// that it writes to get fresh ones.
    fn add_batch(&self, batch: &WriteBatch, numbers_before: u64, joining: &mut Vec<Joining>) -> Result<()> {
        for of_batch in self.index_batch(batch, numbers_before)? {
            match joining.iter_mut().find(|joining| joining.family.id() == of_batch.family.id()) {
                Some(joining) => {
                    joining.entries.extend(of_batch.entries);
                    joining.coverage = None;
                }
                None => joining.push(of_batch),
            }
        }
        Ok(())
    }

    fn log_ingest(&self, record: &IngestRecord, batch: Option<&WriteBatch>, joined: &Joined) -> Result<()> {
        let (log, reservation) = joined.record.as_ref().expect("a record was asked for");
        log.note_published(self.pipeline.published_log());
        let payload = record.encode();
        let logged = match batch {
            None => self.logs.append(log, reservation, RecordKind::Ingest, &[&payload]),
            Some(batch) => {
                let header = batch::header(SeqNo(record.last().0 + 1), batch.count());
                self.logs.append(log, reservation, RecordKind::Ingest, &[&payload, &header, batch.body()])
            }
        };
        logged.inspect_err(|e| self.fail(e))
    }

    fn count_ingest(&self, report: &IngestReport) {
        let statistics = &self.context.statistics;
        tick(statistics, Ticker::IngestUnder, report.under as u64);
        tick(statistics, Ticker::IngestAbove, report.above as u64);
        tick(statistics, Ticker::IngestTables, report.tables as u64);
        tick(statistics, Ticker::IngestBytes, report.bytes);
        record(statistics, Histogram::IngestCommit, report.committed_in.as_micros() as u64);
        record(statistics, Histogram::IngestCommitLock, report.locked_for.as_nanos() as u64);
    }
}

fn joining_of(prepared: &PreparedIngest, shape: IngestShape) -> Vec<Joining> {
    let of_share = |(family, share): &(Arc<Family>, FamilyIngest)| {
        let queued = QueuedIngest::new(family.order().clone(), family.tables().clone(), share.clone(), shape);
        let coverage = Some(Coverage::of(&family.order().user, share));
        Joining { family: family.clone(), entries: vec![queued], coverage, fresh: None }
    };
    prepared.shares().iter().map(of_share).collect()
}
