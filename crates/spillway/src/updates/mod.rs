//! A cursor over the batches in the WAL, from a sequence number on: for replicas that follow a database.
//!
//! The visible number bounds the cursor: a record through it is whole and published (C2, S2), so the cursor waits for no
//! writer, and no writer for the cursor. Numbers follow each other without a gap; what has numbers and no batch in a log
//! (ingested tables, writes without the WAL, deleted logs) is an error. Logs may roll over meanwhile.

mod find;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Error, ErrorKind, Result, SeqNo};
use wal::ReplayRecord;

use crate::batch::{self, BatchReader};
use crate::core::Core;
use crate::log_files::archive::{ARCHIVE_DIR, Hold};
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::two_phase_record::{Step as TransactionStep, TransactionRecord};
use crate::version::log_life::LogLife;
use find::LogAtNumber;
pub use find::LogFileReport;

/// A batch out of the WAL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    seq: SeqNo,
    count: u32,
    bytes: Vec<u8>,
}

impl Update {
    /// Copies a batch whose first change has the number `first`.
    fn of(first: SeqNo, batch: &BatchReader<'_>) -> Update {
        let count = batch.declared_count();
        Update { seq: first, count, bytes: [&batch::header(first, count), batch.rest()].concat() }
    }

    /// The number of the batch's first change. The changes after it have the numbers that follow.
    pub fn sequence_number(&self) -> SeqNo {
        self.seq
    }

    /// The number of the batch's last change.
    pub fn last_sequence_number(&self) -> SeqNo {
        SeqNo(self.seq.0 + u64::from(self.count) - 1)
    }

    /// The batch in RocksDB's layout, its header with the first number included.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`as_bytes`](Self::as_bytes).
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// See [`Database::updates_since`](crate::internal::Database::updates_since).
pub struct LogCursor {
    core: Arc<Core>,
    wanted: Wanted,
    log: Option<OpenLog>,
    /// Batches of prepared transactions read so far, by name, until they end.
    prepared: BTreeMap<Vec<u8>, Vec<u8>>,
}

struct Wanted {
    /// The next number to show.
    next: SeqNo,
    /// Nothing was shown yet, and the first batch may have a later number.
    skips_to_first: bool,
}

/// The log being read.
struct OpenLog {
    found: LogAtNumber,
    /// Keeps the log where it is,
    _pin: Arc<LogLife>,
    /// or in the archive.
    _hold: Hold,
}

/// What a record is to the cursor.
enum Step {
    Batch(Update),
    /// The batch lies in a file.
    Large(LargeBatchRecord),
    /// The batch was prepared by an earlier record.
    Prepared {
        name: Vec<u8>,
        first: SeqNo,
        last: SeqNo,
    },
    /// Numbers without a change: of a prepare, of a rollback, of a transaction without changes.
    Unused {
        last: SeqNo,
    },
    /// Nothing from the next number on.
    Passed,
    /// The log has no more records of the history.
    LogEnded,
}

impl LogCursor {
    /// A cursor from `seq` on. `skips_to_first`: the first batch shown is the first one there is at or above `seq`.
    ///
    /// # Errors
    /// `InvalidArgument`: `seq` is beyond the next number.
    pub(crate) fn new(core: Arc<Core>, seq: SeqNo, skips_to_first: bool) -> Result<LogCursor> {
        core.check_open()?;
        let visible = core.pipeline.visible();
        if seq.0 > visible.0 + 1 {
            let what = format!("sequence number {seq} is not yet written; the last one is {visible}");
            return Err(Error::invalid_argument(what).at_path(&core.context.dir));
        }
        let wanted = Wanted { next: SeqNo(seq.0.max(1)), skips_to_first };
        Ok(LogCursor { core, wanted, log: None, prepared: BTreeMap::new() })
    }

    /// The next batch; `None` if all that is visible was shown. A later call shows what was written since.
    ///
    /// # Errors
    /// `NotLogged`: the next numbers are not in any log; every later call repeats it. `Closed`. `Corruption`, `Io`: a log
    /// could not be read.
    pub fn read(&mut self) -> Result<Option<Update>> {
        loop {
            self.core.check_open()?;
            if self.wanted.next > self.core.pipeline.visible() {
                return Ok(None);
            }
            let update = match self.step()? {
                Step::Batch(update) => update,
                Step::Large(large) => self.read_large(&large)?,
                Step::Prepared { name, first, last } => self.read_prepared(&name, first, last)?,
                Step::Unused { last } => {
                    self.wanted.next = SeqNo(last.0 + 1).max(self.wanted.next);
                    continue;
                }
                Step::Passed => continue,
                Step::LogEnded if self.open_log()? => continue,
                Step::LogEnded => return Ok(None),
            };
            self.wanted = Wanted { next: SeqNo(update.last_sequence_number().0 + 1), skips_to_first: false };
            return Ok(Some(update));
        }
    }

    fn step(&mut self) -> Result<Step> {
        let Some(log) = &mut self.log else { return Ok(Step::LogEnded) };
        let Some(record) = log.found.reader.read()? else { return Ok(Step::LogEnded) };
        let offset = record.offset;
        let step = self.wanted.step_of(&record, log.found.until, &mut self.prepared);
        let step = step.map_err(|error| match error.kind() {
            ErrorKind::NotLogged => error,
            _ => error.at_record(log.found.reader.path(), offset),
        });
        step.inspect_err(|_| self.log = None)
    }

    /// Opens the log with the next number. False if there is nothing to show, and none is missed.
    ///
    /// # Errors
    /// `NotLogged`: no log has it.
    fn open_log(&mut self) -> Result<bool> {
        let Wanted { next, skips_to_first } = self.wanted;
        let search = self.core.archive.dirs().find(next, skips_to_first)?;
        let is_later = |log: &LogAtNumber| self.log.as_ref().is_none_or(|open| open.found.number < log.number);
        if let Some(found) = search.log.filter(is_later) {
            let (pin, hold) = (self.core.context.logs.of_log(found.number), self.core.archive.hold(found.number));
            self.log = Some(OpenLog { found, _pin: pin, _hold: hold });
            return Ok(true);
        }
        if skips_to_first {
            return Ok(false);
        }
        self.log = None; // later calls look again
        let last = search.next.map_or(self.core.pipeline.visible(), |next| SeqNo(next.0 - 1));
        Err(not_logged(next, last, "their log was deleted, or they were written without a log (disable_wal)"))
    }

    /// The batch of a transaction that is committed. One prepared before the cursor's first log is looked for in all logs.
    ///
    /// # Errors
    /// `NotLogged`: the log of the prepare was deleted.
    fn read_prepared(&mut self, name: &[u8], first: SeqNo, last: SeqNo) -> Result<Update> {
        let known = self.prepared.remove(name);
        let bytes =
            known.map_or_else(|| self.core.archive.dirs().prepared_before(first, name), |bytes| Ok(Some(bytes)));
        let lost =
            || not_logged(first, last, "they are of a prepared transaction, and the log of its prepare was deleted");
        let update = bytes.and_then(|bytes| Ok(Update::of(first, &BatchReader::new(&bytes.ok_or_else(lost)?)?)));
        update.inspect_err(|_| self.log = None)
    }

    /// # Errors
    /// `NotLogged`: the file was deleted.
    fn read_large(&mut self, large: &LargeBatchRecord) -> Result<Update> {
        let dirs = self.core.archive.dirs();
        let mut read = None;
        let mut see = |batch: BatchReader<'_>| {
            read = Some(Update::of(large.first, &batch));
            Ok(())
        };
        let found = match large.read(dirs.vfs, &dirs.dir, (dirs.own, 0), &mut see) {
            Err(error) if error.is_not_found() => {
                large.read(dirs.vfs, &dirs.dir.join(ARCHIVE_DIR), (dirs.own, 0), &mut see)
            }
            found => found,
        };
        let lost = |error: Error| match error.is_not_found() {
            true => not_logged(large.first, large.last(), "the file of their batch was deleted"),
            false => error,
        };
        let read = found.map_err(lost).and_then(|_| read.ok_or_else(|| Error::corruption("a large batch is missing")));
        read.inspect_err(|_| self.log = None)
    }
}

impl Wanted {
    /// # Errors
    /// `NotLogged`: the next number is not in the log. `Corruption`: a malformed record.
    fn step_of(
        &self,
        record: &ReplayRecord<'_>,
        until: Option<SeqNo>,
        prepared: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<Step> {
        let Some(commit) = CommitRecord::decode(record.kind, record.payload)? else { return Ok(Step::Passed) };
        let Some((first, last)) = commit.numbers() else { return Ok(Step::Passed) };
        if until.is_some_and(|until| first >= until) {
            return Ok(Step::LogEnded);
        }
        if let Some(RecordedBatch::Prepared(transaction)) = &commit.batch {
            record_prepared(transaction, prepared);
        }
        if last < self.next {
            if let Some(RecordedBatch::Prepared(TransactionRecord { name, step: TransactionStep::Commit(_), .. })) =
                commit.batch
            {
                prepared.remove(name);
            }
            return Ok(Step::Passed);
        }
        if !self.skips_to_first && first > self.next {
            return Err(not_logged(self.next, SeqNo(first.0 - 1), "they were written without a log (disable_wal)"));
        }
        let ingested = commit.ingest.map(|ingest| ingest.last()).filter(|last| *last >= self.next);
        if let Some(last) = ingested.filter(|_| !self.skips_to_first) {
            return Err(not_logged(self.next, last, "they are of ingested tables"));
        }
        Ok(match commit.batch {
            None => Step::Passed,
            Some(RecordedBatch::Prepared(TransactionRecord {
                name, step: TransactionStep::Commit(commit), ..
            })) if commit.count > 0 => Step::Prepared { name: name.to_vec(), first, last },
            Some(RecordedBatch::Prepared(_)) => Step::Unused { last },
            Some(RecordedBatch::InRecord(batch)) => Step::Batch(Update::of(batch.seq(), &batch)),
            Some(RecordedBatch::InFile(large)) => Step::Large(large),
        })
    }
}

/// Keeps the batch of a prepare, and forgets that of a transaction rolled back.
fn record_prepared(transaction: &TransactionRecord<'_>, prepared: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
    match &transaction.step {
        TransactionStep::Prepare(batch) => {
            prepared.insert(transaction.name.to_vec(), batch.to_bytes());
        }
        TransactionStep::Rollback => {
            prepared.remove(transaction.name);
        }
        TransactionStep::Commit(_) => {}
    }
}

/// The error for the numbers from `first` through `last`.
fn not_logged(first: SeqNo, last: SeqNo, why: &str) -> Error {
    let what = format!(
        "the sequence numbers {first} to {last} are not in the log: {why}; copy the database anew (a checkpoint), and go on \
         behind the copy's last number. WAL_ttl_seconds and WAL_size_limit_MB keep logs longer"
    );
    Error::new(ErrorKind::NotLogged, what)
}
