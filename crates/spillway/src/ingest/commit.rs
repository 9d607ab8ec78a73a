//! Commit of an ingest: sequence numbers, an entry in every family's queue and one WAL record, in the pipeline like any
//! write. Mode `flushable` waits for no writer, no flush and no MANIFEST, back-pressure aside. Other modes flush
//! overlapping memtables first, and their tables have levels when the call returns. Keeps C1, C3, C4, D1, D3, F1.
//!
//! Every mode writes the WAL record: later writes, perhaps derived from reads of the tables, must not survive a crash
//! without them (D2). Only an ingest from behind has none (`behind`).

use std::sync::Arc;
use std::time::Duration;

use base::metrics::{Ticker, tick};
use base::{Error, FamilyId, Result, SeqNo};
use smallvec::smallvec;
use wal::{PAYLOAD_BYTES_MAX, RecordKind};

use super::levels::HeldEntries;
use super::options::{IngestMode, IngestOptions};
use super::overlap::{Cleared, Flushes};
use super::prepare::PreparedIngest;
use super::report::IngestReport;
use crate::batch::options::WriteOptions;
use crate::batch::{self, WriteBatch};
use crate::commit::admission::Waiter;
use crate::commit::committer::Committer;
use crate::commit::flushables::NewFlushable;
use crate::commit::large::OwnLog;
use crate::commit::overlap::Coverage;
use crate::commit::{Commit, Committed, MadeRecord, Record};
use crate::core::Core;
use crate::core::family::Family;
use crate::flush::group::Flusher;
use crate::flush::link::Linker;
use crate::ingest::levels::Placer;
use crate::memtables::Memtables;
use crate::order::latch::LatchGuard;
use crate::queue::ingest::QueuedIngest;
use crate::records::ingest_record::{IngestRecord, IngestShape};
use crate::records::record::LargeBatchRecord;
use crate::rollover::roll::Wal;

/// An ingest ready for sequence allocation.
struct Ingest {
    shape: IngestShape,
    /// Sequence numbers of the accompanying batch; `shape` counts the tables'.
    batch_numbers: u64,
    record: Record<'static>,
    flushables: Vec<NewFlushable>,
    entries: Vec<(Arc<Family>, Arc<QueuedIngest>)>,
    /// Holds the accompanying batch if it is large.
    own_log: Option<OwnLog>,
}

/// The accompanying batch in the ingest's WAL record.
enum Accompanying<'a> {
    None,
    InRecord(&'a WriteBatch),
    InFile(&'a LargeBatchRecord),
}

/// State held while the ingest call itself gives its tables levels.
struct AtOnce<'a> {
    way: Cleared<'a>,
    held: HeldEntries<'a>,
}

/// Steps of an ingest: prepare, flush overlapping memtables, commit, place.
pub(crate) struct Ingester {
    pub(super) core: Arc<Core>,
    pub(super) memtables: Arc<Memtables>,
    pub(super) wal: Arc<Wal>,
    pub(super) committer: Arc<Committer>,
    flusher: Arc<Flusher>,
    placer: Placer,
}

impl Ingester {
    pub fn new(committer: &Arc<Committer>, flusher: &Arc<Flusher>, linker: &Arc<Linker>) -> Self {
        let (core, installer) = (committer.core.clone(), flusher.installer.clone());
        Ingester {
            memtables: committer.memtables.clone(),
            wal: committer.wal.clone(),
            committer: committer.clone(),
            flusher: flusher.clone(),
            placer: Placer::new(core.clone(), installer, linker.clone()),
            core,
        }
    }

    /// Commits prepared tables and the accompanying batch: all or nothing, visible and durable when the call returns.
    ///
    /// # Errors
    /// `Closed`, `ReadOnly`, `InvalidArgument`, `Busy`: nothing was committed, and the prepared tables are removed.
    /// `Io`, `NoSpace`, or `ReadOnly` after numbering (an earlier write failed): the next open may find the ingest
    /// committed.
    pub(crate) fn commit_ingest(
        &self,
        mut prepared: PreparedIngest,
        batch: Option<&WriteBatch>,
    ) -> Result<IngestReport> {
        self.core.check_writable()?;
        let start = self.core.context.vfs.now();
        prepared.check_made_for(&self.core.context)?;
        batch.map_or(Ok(()), WriteBatch::check_size)?;
        let batch = batch.filter(|batch| !batch.is_empty());
        if prepared.options.ingest_behind && batch.is_some() {
            return Err(Error::invalid_argument("a batch cannot come along with what is ingested from behind"));
        }
        let mut report = IngestReport::of(&prepared);
        if prepared.shares().is_empty() {
            prepared.check_still_wanted()?;
            let report = self.commit_batch_alone(batch, &prepared.options)?;
            prepared.remove_moved();
            return Ok(report);
        }
        if prepared.options.ingest_behind {
            prepared.check_still_wanted()?;
            self.placer.place_behind(&mut prepared)?;
        } else {
            self.commit_numbered(&mut prepared, batch, &mut report)?;
        }
        prepared.remove_moved();
        report.committed_in = self.core.context.vfs.now().saturating_sub(start);
        self.tell_ingested(&prepared, &report);
        self.core.drive_if_inline();
        Ok(report)
    }

    fn commit_batch_alone(&self, batch: Option<&WriteBatch>, options: &IngestOptions) -> Result<IngestReport> {
        let Some(batch) = batch else { return Ok(IngestReport::default()) };
        let written = self.committer.write(batch, &WriteOptions { sync: true, ..options.as_write() }, None, None)?;
        if !written.to_flush.is_empty() {
            self.flusher.flush_written(&written)?;
        }
        self.core.drive_if_inline();
        let last = written.last;
        let first = SeqNo(last.0 + 1 - u64::from(batch.count()));
        Ok(IngestReport { first, last, ..IngestReport::default() })
    }

    fn commit_numbered(
        &self,
        prepared: &mut PreparedIngest,
        batch: Option<&WriteBatch>,
        report: &mut IngestReport,
    ) -> Result<()> {
        let start = self.core.context.vfs.now();
        let since = |start: Duration| self.core.context.vfs.now().saturating_sub(start);
        self.wait_for_ingest_room(prepared)?;
        let mut ingest = self.ingest_of(prepared, batch)?;
        let own_log = ingest.own_log.take();
        let at_once = self.prepare_levels(&ingest, &prepared.options)?;
        report.waited_for = since(start);
        // After the waits: they may have been long.
        prepared.check_still_wanted()?;
        let (shape, entries) = (ingest.shape, ingest.entries.clone());
        let mut commit = ingest.into_commit(at_once.is_some(), &prepared.options);
        commit.own_log = own_log.as_ref();
        let committed = self.commit_keeping(&mut commit, prepared);
        let families: Vec<FamilyId> = commit.flushables.iter().map(|flushable| flushable.family.id()).collect();
        self.committer.give_back_successors(&mut commit.flushables);
        let lock = commit.lock;
        drop(commit);
        let committed = committed?;
        report.record_committed(&committed, &lock, families.len());
        let given = committed.given;
        let flushes = at_once.as_ref().map_or(Flushes::default(), |at_once| at_once.way.flushes);
        report.flushes = flushes.outside + flushes.inside;
        let held = at_once.map(|at_once| at_once.let_others_go_on(&prepared.options));
        for (_, queued) in &entries {
            queued.layers(); // built while no lock is held
        }
        let start = self.core.context.vfs.now();
        self.wal.sync_write(given.log_end)?;
        report.synced_in = since(start);
        // After the sync: an earlier flush would sync the same WAL and delay this call.
        if self.core.record_joined(families.iter().copied()) {
            self.core.state_changed.notify_all();
        }
        if own_log.is_some() {
            tick(&self.core.context.statistics, Ticker::LargeBatches, 1);
            self.committer.flush_for_log_limit();
        }
        if report.above > 0 || committed.begins_wait {
            self.core.upkeep.raise_soon(); // for the next spare, and for the end of the wait
        }
        prepared.write_numbers(SeqNo(given.before.0 + 1), shape).inspect_err(|e| self.core.fail(e))?;
        if let Some((held, gate)) = held {
            let start = self.core.context.vfs.now();
            let placed = self.placer.give_levels(&held)?;
            report.placed_in = since(start);
            drop((held, gate)); // before the events: a listener may write, and would wait for its own thread
            placed.iter().for_each(|event| self.core.context.notify(event));
        }
        Ok(())
    }

    /// Numbers and applies the commit. From numbering on the WAL may name the tables, so they are kept.
    fn commit_keeping<'a>(&'a self, commit: &mut Commit<'a>, prepared: &mut PreparedIngest) -> Result<Committed> {
        let numbered = self.committer.number(commit)?;
        prepared.keep();
        self.committer.apply(commit, numbered)
    }

    /// Back-pressure, before anything is locked or numbered.
    fn wait_for_ingest_room(&self, prepared: &PreparedIngest) -> Result<()> {
        let options = prepared.options.as_write();
        // 0 bytes: the tables pass no memtable and use none of the write rate.
        self.committer.wait_for_debt(0, &options, || false)?;
        prepared.shares().iter().try_for_each(|(family, _)| self.memtables.wait_for_queue_room(family, None, &options))
    }

    fn ingest_of(&self, prepared: &PreparedIngest, batch: Option<&WriteBatch>) -> Result<Ingest> {
        let families = prepared.shares().iter().map(|(_, share)| share.clone()).collect();
        let arrived_us = self.core.context.vfs.unix_time_us();
        let record = IngestRecord { first: SeqNo::ZERO, arrived_us, families };
        let shape = record.shape();
        let (mut flushables, mut entries) = (Vec::new(), Vec::new());
        for (family, share) in prepared.shares() {
            family.check_live()?;
            // `write_global_seqno` asks for the file itself with its number, so it is not merged away.
            let may_merge = !prepared.options.write_global_seqno;
            let merged_max_bytes = if may_merge { family.options().merge_ingests_max_bytes } else { 0 };
            let queued =
                QueuedIngest::new(family.order(), family.tables(), share.clone(), shape, arrived_us, merged_max_bytes);
            let coverage = Some(Coverage::of(&family.order().user, share));
            entries.push((family.clone(), queued.clone()));
            let (family, entries) = (family.clone(), vec![queued as _]);
            let (touched, successor) = (Vec::new(), None);
            flushables.push(NewFlushable { family, entries, touched, coverage, successor, met: None });
        }
        let own_log = match batch {
            Some(batch) => self.add_batch(batch, shape, &mut flushables, &prepared.options)?,
            None => None,
        };
        let in_log = match (batch, &own_log) {
            (None, _) => Accompanying::None,
            (Some(batch), None) => Accompanying::InRecord(batch),
            (Some(_), Some(own)) => Accompanying::InFile(&own.record),
        };
        let batch_numbers = batch.map_or(0, |batch| u64::from(batch.count()));
        let record = record_in_log(&record, &in_log)?;
        Ok(Ingest { shape, batch_numbers, record, flushables, entries, own_log })
    }

    /// Indexes the accompanying batch into memtables of its own, above the tables. Each family it writes to gets a
    /// fresh mutable memtable. A large batch is also written to a log of its own. Both are done here, while no gate and
    /// no latch keeps writers out.
    fn add_batch(
        &self,
        batch: &WriteBatch,
        shape: IngestShape,
        flushables: &mut Vec<NewFlushable>,
        options: &IngestOptions,
    ) -> Result<Option<OwnLog>> {
        let indexed = self.committer.index_batch(batch, shape.numbers, &options.as_write())?;
        let families = indexed.iter().map(|of_batch| of_batch.family.id()).collect();
        let is_large = self.committer.is_large(batch);
        let own_log = is_large.then(|| self.committer.log_of_its_own(batch, families)).transpose()?;
        for of_batch in indexed {
            match flushables.iter_mut().find(|flushable| flushable.family.id() == of_batch.family.id()) {
                Some(flushable) => {
                    flushable.entries.extend(of_batch.entries);
                    flushable.touched.extend(of_batch.touched);
                    flushable.touched.extend(flushable.coverage.take().map(Coverage::into_spans).unwrap_or_default());
                }
                None => flushables.push(of_batch),
            }
        }
        let mut above = flushables.iter_mut().filter(|flushable| flushable.coverage.is_none());
        above.try_for_each(|flushable| self.committer.make_successor(flushable))?;
        Ok(own_log)
    }

    /// Flushes overlapping memtables and checks the required levels, if the call itself gives the tables levels. `None`
    /// if a flush gives them.
    fn prepare_levels(&self, ingest: &Ingest, options: &IngestOptions) -> Result<Option<AtOnce<'_>>> {
        if !options.gives_levels() {
            return Ok(None);
        }
        let coverage_of = |(family, entry): &(Arc<Family>, Arc<QueuedIngest>)| {
            (family.clone(), Coverage::of(&family.order().user, entry.share()))
        };
        let covered: Vec<_> = ingest.entries.iter().map(coverage_of).collect();
        let way = self.flush_overlapping(&ingest.flushables, &covered, options)?;
        let mut held = self.placer.hold_entries(ingest.entries.clone())?;
        self.placer.check_levels(&mut held, options)?;
        Ok(Some(AtOnce { way, held }))
    }
}

impl Ingest {
    /// `is_latched`: the caller holds a latch over all keys touched, and nothing in memory overlaps them.
    fn into_commit<'a>(self, is_latched: bool, options: &IngestOptions) -> Commit<'a> {
        let count = self.shape.numbers + self.batch_numbers;
        let waiter = Waiter { no_slowdown: options.no_slowdown, is_writer: false };
        let mut commit = Commit::of_flushables(Some(self.record), count, self.flushables, waiter);
        commit.is_latched = is_latched;
        commit
    }
}

/// The ingest's WAL record. It includes the accompanying batch, or names its file.
fn record_in_log(record: &IngestRecord, batch: &Accompanying<'_>) -> Result<Record<'static>> {
    let (mut payload, mut kind) = (record.encode(), RecordKind::Ingest);
    let mut numbers = smallvec![(0, 1)]; // the ingest's first number
    let first_of_batch = (payload.len(), record.shape().numbers + 1);
    match batch {
        Accompanying::None => check_record_bytes(payload.len())?,
        Accompanying::InRecord(batch) => {
            check_record_bytes(payload.len() + batch.len())?;
            numbers.push(first_of_batch);
            payload.extend_from_slice(&batch::header(SeqNo::ZERO, batch.count()));
            payload.extend_from_slice(batch.body());
        }
        Accompanying::InFile(large) => {
            kind = RecordKind::IngestAndLargeBatch;
            numbers.push(first_of_batch);
            payload.extend(large.encode());
            check_record_bytes(payload.len())?;
        }
    }
    Ok(Record::Made(MadeRecord { kind, payload, numbers }))
}

/// # Errors
/// `InvalidArgument`: the record exceeds the WAL's limit.
fn check_record_bytes(bytes: usize) -> Result<()> {
    if bytes as u64 <= PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    let what =
        format!("the ingest's record in the log would have {bytes} bytes; 4 GiB is the most: bring less at once");
    Err(Error::invalid_argument(what))
}

impl<'a> AtOnce<'a> {
    /// Called once the entries are queued: queue order suffices, so the latch is released. `Blocking` and `FlushFirst`
    /// keep the gate until the tables have levels, as RocksDB and TiKV do.
    fn let_others_go_on(self, options: &IngestOptions) -> (HeldEntries<'a>, Option<LatchGuard<'a>>) {
        let gate = matches!(options.mode, IngestMode::Blocking | IngestMode::FlushFirst).then_some(self.way.latch);
        (self.held, gate)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use base::ErrorKind;
    use base::options::LogBacking;
    use vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule, Vfs};

    use super::*;
    use crate::internal::{Database, FamilyOptions, IngestProgress, IngestRequest, OpenOptions, TableWriter};

    #[test]
    fn a_record_that_no_log_takes_is_refused() {
        check_record_bytes(u32::MAX as usize).expect("the longest there is");
        let error = check_record_bytes(1 << 32).expect_err("one byte more");
        assert_eq!(error.kind(), base::ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("4294967296 bytes"), "{error}");
    }

    fn database(vfs: Arc<dyn Vfs>) -> Database {
        Database::open("/db", &OpenOptions { vfs, ..OpenOptions::create_if_missing() }).expect("it opens")
    }

    /// A table of one key, prepared.
    fn prepared(db: &Database, vfs: Arc<dyn Vfs>, mode: IngestMode) -> PreparedIngest {
        let file = PathBuf::from("/one.sst");
        let mut table = TableWriter::create(vfs, &file, &FamilyOptions::default()).expect("new");
        table.put(b"key", b"value").expect("a key");
        table.finish().expect("a table");
        let request = IngestRequest::new(db.default_family(), vec![file]);
        let options = IngestOptions { mode, ..IngestOptions::default() };
        db.prepare_ingest(&[request], &options, &IngestProgress::default()).expect("prepared")
    }

    /// C4: writers behind it are told, and nothing is acknowledged after it.
    #[test]
    fn an_ingest_whose_record_cannot_be_written_fails_all_that_have_later_numbers() {
        let faults = FaultVfs::new(MemoryVfs::new(1));
        let mut options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
        options.db.log_backing = LogBacking::Pwrite;
        let db = Database::open("/db", &options).expect("a new database");
        let mut prepared = prepared(&db, faults.clone(), IngestMode::Flushable);
        let committer = &db.engine().committer;
        let ingest = db.engine().ingester.ingest_of(&prepared, None).expect("indexed");
        let mut commit = ingest.into_commit(false, &IngestOptions::default());
        let numbered = committer.number(&mut commit).expect("nothing is in its way");
        prepared.keep();
        std::thread::scope(|scope| {
            let db = &db;
            let put = scope.spawn(move || db.put(&db.default_family(), b"later", b"value", &WriteOptions::default()));
            while db.default_family().view().mutable.memtable().entries() == 0 {
                std::thread::yield_now(); // until the writer waits to be visible
            }
            faults.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Write).path("splog").nth(1));
            assert!(committer.apply(&mut commit, numbered).is_err(), "its record is not written");
            let error = put.join().expect("no panic").expect_err("it would never be visible");
            assert!(matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::Io), "{error}");
        });
        db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).expect_err("nor anything after it");
    }

    /// Before the gate is closed: no writer waits while a memtable is made.
    #[test]
    fn memtables_over_a_batch_are_made_before_anything_is_locked() {
        let vfs = MemoryVfs::new(1);
        let db = database(vfs.clone());
        let other = db.create_family("other", FamilyOptions::default()).expect("created");
        let prepared = prepared(&db, vfs, IngestMode::Blocking);
        let fresh_of = |families: &[&Arc<Family>]| {
            let mut batch = WriteBatch::new();
            families.iter().for_each(|family| batch.put(family.id(), b"key", b"beside"));
            let ingest = db.engine().ingester.ingest_of(&prepared, Some(&batch)).expect("indexed");
            ingest.flushables.iter().map(|flushable| flushable.successor.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(fresh_of(&[&other]), [false, true]);
        assert_eq!(fresh_of(&[&db.default_family()]), [true]);
    }
}
