//! Reports of an ingest: to its caller, the statistics and the listeners.

use std::collections::BTreeSet;
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Histogram, Ticker, record, tick};
use base::{FileNumber, SeqNo};

use super::options::{IngestMode, IngestOptions};
use super::prepare::PreparedIngest;
use crate::commit::{Committed, LockTimes};
use crate::ingest::commit::Ingester;

/// The way an ingest took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IngestWay {
    /// Its tables joined the queues; flushes give them levels.
    #[default]
    Queued,
    /// All writers were stopped until its tables had levels.
    Blocking,
    /// As `Blocking`, but overlapping memtables were flushed first, as far as possible.
    FlushFirst,
    /// Overlapping writers were kept out by a latch; its tables have levels.
    Direct,
    /// Its tables are under everything else, in the last level.
    Behind,
}

impl IngestWay {
    fn of(options: &IngestOptions) -> Self {
        match options.mode {
            _ if options.ingest_behind => IngestWay::Behind,
            IngestMode::Blocking => IngestWay::Blocking,
            IngestMode::FlushFirst => IngestWay::FlushFirst,
            IngestMode::Direct => IngestWay::Direct,
            IngestMode::Flushable if options.gives_levels() => IngestWay::Direct,
            IngestMode::Flushable => IngestWay::Queued,
        }
    }

    /// Ticker of this way. `None` for queued ingests: `IngestUnder` and `IngestAbove` count them by family.
    fn ticker(self) -> Option<Ticker> {
        match self {
            IngestWay::Queued => None,
            IngestWay::Blocking => Some(Ticker::IngestBlocking),
            IngestWay::FlushFirst => Some(Ticker::IngestFlushFirst),
            IngestWay::Direct => Some(Ticker::IngestDirect),
            IngestWay::Behind => Some(Ticker::IngestBehind),
        }
    }
}

/// Result of an ingest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestReport {
    /// First and last sequence number taken, the accompanying batch's included. Both zero if it took none.
    pub first: SeqNo,
    /// See `first`.
    pub last: SeqNo,
    /// Tables added to the database.
    pub tables: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// The way it took.
    pub way: IngestWay,
    /// Families without overlap in the mutable memtable: the tables went under it.
    pub under: usize,
    /// Families given a fresh mutable memtable above the tables.
    pub above: usize,
    /// Times it had overlapping memtables flushed and waited.
    pub flushes: usize,
    /// Duration of the prepare.
    pub prepared_in: Duration,
    /// Duration of the commit, all times below included.
    pub committed_in: Duration,
    /// Time before sequence allocation: waits for late flushes or compactions, for other ingests and for its own
    /// flushes.
    pub waited_for: Duration,
    /// Time under the commit lock.
    pub locked_for: Duration,
    /// Time from taking the commit lock, in the last attempt, until it was in the WAL. Writers meanwhile waited for the
    /// lock, or had later numbers and waited to be visible.
    pub held_up_for: Duration,
    /// Duration of the WAL sync.
    pub synced_in: Duration,
    /// Time to give its tables levels; zero if a flush does.
    pub placed_in: Duration,
}

impl IngestReport {
    pub(super) fn of(prepared: &PreparedIngest) -> Self {
        IngestReport {
            tables: prepared.files(),
            bytes: prepared.bytes(),
            way: IngestWay::of(&prepared.options),
            prepared_in: prepared.took,
            ..IngestReport::default()
        }
    }

    pub(super) fn record_committed(&mut self, committed: &Committed, lock: &LockTimes, families: usize) {
        (self.first, self.last) = (SeqNo(committed.given.before.0 + 1), committed.given.last);
        (self.under, self.above) = (committed.under, families - committed.under);
        self.locked_for = lock.locked_for;
        self.held_up_for = lock.published_at.saturating_sub(lock.locked_at);
    }
}

impl Ingester {
    /// Counts an ingest and notifies the listeners.
    pub(super) fn tell_ingested(&self, prepared: &PreparedIngest, report: &IngestReport) {
        let statistics = &self.core.context.statistics;
        match report.way.ticker() {
            Some(ticker) => tick(statistics, ticker, 1),
            None => {
                tick(statistics, Ticker::IngestUnder, report.under as u64);
                tick(statistics, Ticker::IngestAbove, report.above as u64);
            }
        }
        tick(statistics, Ticker::IngestTables, report.tables as u64);
        tick(statistics, Ticker::IngestBytes, report.bytes);
        tick(statistics, Ticker::IngestFlushes, report.flushes as u64);
        let micros = |histogram, time: Duration| record(statistics, histogram, time.as_micros() as u64);
        micros(Histogram::IngestPrepare, report.prepared_in);
        micros(Histogram::IngestCommit, report.committed_in);
        micros(Histogram::IngestTotal, report.prepared_in + report.committed_in);
        if report.way != IngestWay::Behind {
            micros(Histogram::IngestLogSync, report.synced_in);
            record(statistics, Histogram::IngestCommitLock, report.locked_for.as_nanos() as u64);
        }
        for (family, share) in prepared.shares() {
            let tables = share.layers.iter().flatten();
            let bytes = tables.clone().map(|table| table.meta.file_bytes).sum();
            let numbers: BTreeSet<FileNumber> = tables.clone().map(|table| table.meta.number).collect();
            self.core.context.notify(&Event::Ingested {
                family: family.name().to_owned(),
                tables: tables.count(),
                bytes,
                duration_us: (report.prepared_in + report.committed_in).as_micros() as u64,
                files: prepared.sources().filter(|(_, number)| numbers.contains(number)).collect(),
                first_seq: report.first,
            });
        }
    }
}
