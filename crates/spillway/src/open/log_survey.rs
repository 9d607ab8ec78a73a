//! Surveys the logs: ingests with their numbers and tables, each log's end, and damage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, ValueKind};
use vfs::{IoClass, Vfs};
use wal::framed::FramedReader;
use wal::{DatabaseId, ReplayOptions, ReplayRecord};

use crate::batch::BatchReader;
use crate::commit::entries_of;
use crate::core::unnamed::Logged;
use crate::open::replay::own_logs::{report_on_end, report_on_left_out, was_let_go};
use crate::open::replay::wal_range::{self, FoundLog, FoundRange, MissingLog};
use crate::open::{is_ours, log_owner};
use crate::records::ingest_record::IngestRecord;
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::rocksdb_record::{RocksdbStep, steps_of};
use crate::records::two_phase_record::{Step, TransactionRecord};
use crate::version::edit::{LogEnd, WalRange};
use crate::version::file_name::{self, FileType, numbers_in};
use crate::version::recover::Recovered;

/// Findings of all logs in the directory.
#[derive(Default)]
pub(crate) struct LogSurvey {
    pub ingests: Vec<IngestRecord>,
    large_batches: Vec<FoundBatch>,
    /// Families written to by the logs.
    pub families: BTreeSet<FamilyId>,
    /// Changes of RocksDB's prepared transactions, by name.
    prepared: BTreeMap<Vec<u8>, u32>,
    /// The sequence number of each family's last merge.
    pub merges: BTreeMap<FamilyId, SeqNo>,
    pub last_seq: SeqNo,
    /// Numbers in the logs.
    pub logged: Logged,
    /// The live WAL range.
    pub range: Option<WalRange>,
    /// Ends of cut-off logs: from the MANIFEST, or inferred from the next log's first number.
    pub ends: Vec<LogEnd>,
    /// Our logs, as recovery finds them.
    pub found: Option<FoundRange>,
    /// Paths of damaged or missing logs, and the problem.
    pub damaged: BTreeMap<PathBuf, String>,
    /// On ends that a crash left.
    pub notes: Vec<String>,
    /// Logs with records behind one that a power loss cut off: opens leave them out (D2).
    pub left_out: Vec<PathBuf>,
}

/// Returns the database id of logs in `log_dir` to repair. If neither MANIFEST nor IDENTITY has it, the id of the only
/// database with logs there, if `dir` has other files of ours. Logs that note no MANIFEST are of a takeover that was cut off.
///
/// # Errors
/// `InvalidArgument`: several databases have logs there.
pub(crate) fn owner(vfs: &dyn Vfs, dir: &Path, log_dir: &Path, old: Option<&Recovered>) -> Result<DatabaseId> {
    let own = log_owner(vfs, dir, old);
    if own.is_known() || old.is_some_and(|old| !old.fenced) || !vfs.exists(log_dir)? {
        return Ok(own);
    }
    let numbers = numbers_in(vfs, log_dir, FileType::Log)?;
    let path = |number| log_dir.join(file_name::format(FileType::Log, number));
    let heads = numbers.into_iter().filter_map(|number| wal::read_head(vfs, &path(number), number).ok());
    let heads: Vec<_> = heads.filter(|head| head.database.is_known()).collect();
    let Some(first) = heads.first().map(|head| head.database) else { return Ok(own) };
    let others = heads.iter().map(|head| head.database).filter(|owner| owner.is_another_than(first));
    let mut others = others.map(|owner| owner.to_string());
    let rocksdbs = heads.iter().any(|head| head.manifest.is_some()) && !is_ours(vfs, dir, old)?;
    match others.next().or(rocksdbs.then(|| "RocksDB's".to_owned())) {
        None => Ok(first),
        Some(other) => Err(Error::invalid_argument(format!(
            "logs of several databases ({first}, {other}) lie in {}, and neither MANIFEST nor IDENTITY tells which are this one's: \
             move the others away, or write this one's id into IDENTITY, if you know it",
            log_dir.display()
        ))
        .at_path(dir)),
    }
}

/// What the logs hold that can be read.
///
/// # Errors
/// The file system's.
pub(crate) fn logged(vfs: &dyn Vfs, log_dir: &Path, own: wal::DatabaseId, recovered: &Recovered) -> Result<Logged> {
    Ok(LogSurvey::of(vfs, log_dir, own, Some(recovered), true)?.logged)
}

/// Files that the logs refer to.
pub(crate) struct QueuedFiles {
    /// The tables of all ingests, linked or not.
    pub tables: BTreeSet<FileNumber>,
    /// Whether a large batch is missing that replay needs.
    pub lacks_batch: bool,
}

/// # Errors
/// The file system's.
pub(crate) fn queued_files(
    vfs: &dyn Vfs,
    log_dir: &Path,
    own: wal::DatabaseId,
    recovered: &Recovered,
) -> Result<QueuedFiles> {
    let survey = LogSurvey::of(vfs, log_dir, own, Some(recovered), true)?;
    let shares = survey.ingests.iter().flat_map(|record| &record.families);
    let tables = shares.flat_map(|share| share.layers.iter().flatten()).map(|table| table.meta.number).collect();
    let batches = survey.lost_batches(vfs, log_dir, own, Some(recovered), |id| recovered.flushed_through(id));
    let lacks_batch = batches.iter().any(|(_, error)| error.is_not_found());
    Ok(QueuedFiles { tables, lacks_batch })
}

/// A large batch in a file of its own, and the record that commits it.
struct FoundBatch {
    log: FileNumber,
    offset: u64,
    record: LargeBatchRecord,
}

/// A record with sequence numbers.
struct Numbered {
    offset: u64,
    first: SeqNo,
    last: SeqNo,
}

impl LogSurvey {
    /// Reads all logs of database `own` in `dir`, except logs before the live range of `old` (the MANIFEST). With `reads_on`, or
    /// if there is damage, logs behind a cut-off one count: a salvage replays them.
    ///
    /// # Errors
    /// The file system's.
    pub fn of(
        vfs: &dyn Vfs,
        dir: &Path,
        own: DatabaseId,
        old: Option<&Recovered>,
        reads_on: bool,
    ) -> Result<LogSurvey> {
        let ends = old.map_or_else(Vec::new, |old| old.log_ends.clone());
        let head = |path: &Path, number| Ok(wal::read_head(vfs, path, number).unwrap_or_default());
        let found = wal_range::find(vfs, dir, own, old.map(Recovered::noted_logs).unwrap_or_default(), head)?;
        let mut survey = LogSurvey { ends, ..LogSurvey::default() };
        let mut found = found;
        // What has the form of RocksDB's logs beside ours is not this database's. Ours of a takeover that was cut off note no MANIFEST.
        let rocksdbs = numbers_in(vfs, dir, FileType::RocksLog)?;
        let by_logs = !rocksdbs.is_empty() && found.manifest.is_none();
        let is_rocksdbs = old.map_or(by_logs, |old| !old.fenced);
        if is_rocksdbs {
            (found.logs, found.missing, found.manifest) = Default::default();
        }
        let of_copies = found.missing.iter().filter(|log| log.is_replaced_by_copys());
        survey.left_out.extend(of_copies.map(|log| dir.join(file_name::format(FileType::Log, log.number))));
        let let_go = old.and_then(Recovered::let_go_through);
        let reads_on =
            reads_on || found.missing.iter().any(|log| !was_let_go(vfs, dir, log.number, &found.logs, let_go));
        let cut_off = survey.find_damage(vfs, dir, &found.logs, reads_on);
        let (mut logs, mut behind) = (Vec::with_capacity(found.logs.len()), LogSurvey::default());
        let mut records_behind = Vec::new();
        for log in &found.logs {
            let (path, options) = survey.place_of(dir, log);
            let Some(cut_off) = cut_off.filter(|cut_off| *cut_off < log.number) else {
                logs.push((log.number, survey.read(vfs, &path, options)?));
                continue;
            };
            let records = behind.read(vfs, &path, options)?;
            if !records.is_empty() {
                survey.notes.push(format!("{}; lost/ keeps the log", report_on_left_out(cut_off, log.number)));
                survey.left_out.push(path);
            }
            records_behind.extend(records);
            survey.ends.push(LogEnd::of_log_in_tables(log.number)); // nor does a later salvage read it
        }
        survey.find_ends(&logs);
        let records = logs.iter().flat_map(|(_, records)| records).chain(&records_behind);
        records.for_each(|record| survey.logged.add(record.first, record.last));
        // They explain tables of flushes and ingests that the power loss cut off, and tell of families.
        behind.ingests.iter().for_each(|ingest| survey.logged.add_ingest(ingest));
        survey.families.extend(behind.families);
        let newest = found.logs.last().map(|log| log.number);
        survey.range = found.logs.first().map(|oldest| WalRange { oldest: oldest.number, newest });
        for number in rocksdbs.into_iter().filter(|_| is_rocksdbs) {
            survey.read_rocksdbs(vfs, &dir.join(file_name::format(FileType::RocksLog, number)), number)?;
        }
        survey.found = Some(found);
        Ok(survey)
    }

    /// Reports missing logs of the MANIFEST's live WAL range.
    pub fn report_missing(&mut self, vfs: &dyn Vfs, dir: &Path, old: &Recovered) {
        let let_go = old.let_go_through();
        let Some(found) = &self.found else { return };
        let is_lost = |log: &&MissingLog| !was_let_go(vfs, dir, log.number, &found.logs, let_go);
        for missing in found.missing.iter().filter(is_lost) {
            let error = missing.error(dir);
            self.damaged.insert(error.path().map(Path::to_owned).unwrap_or_default(), error.message().to_owned());
        }
    }

    /// Notes the families and the numbers in a log of RocksDB's. Damage shows in replay.
    fn read_rocksdbs(&mut self, vfs: &dyn Vfs, path: &Path, number: FileNumber) -> Result<()> {
        let mut reader = FramedReader::open(vfs, path, Some(number.0), IoClass::Log)?;
        let read = wal::framed::replay(&mut reader, WalRecoveryMode::SkipAnyCorruptedRecords, &mut |record| {
            let Ok(batch) = BatchReader::new(&record.payload) else { return Ok(()) };
            let mut next = batch.seq();
            for step in steps_of(&batch, true).unwrap_or_default() {
                let (changes, takes_numbers) = match step {
                    RocksdbStep::Changes(changes) => (changes, true),
                    RocksdbStep::Prepare { name, batch } => {
                        self.prepared.insert(name.to_vec(), batch.declared_count());
                        (batch, false)
                    }
                    RocksdbStep::Commit(name) => {
                        next = SeqNo(next.0.saturating_add(self.prepared.remove(name).unwrap_or_default().into()));
                        continue;
                    }
                    RocksdbStep::Rollback(_) => continue,
                };
                for (family, entry) in entries_of(changes, next) {
                    self.families.insert(family);
                    next = if takes_numbers { SeqNo(entry.seq.0 + 1) } else { next };
                    if entry.kind == ValueKind::Merge {
                        self.merges.insert(family, entry.seq);
                    }
                }
            }
            let last = SeqNo(next.0.saturating_sub(1)).max(batch.seq());
            self.logged.add(batch.seq(), last);
            self.last_seq = self.last_seq.max(last);
            Ok(())
        });
        match read {
            Err(error) if error.kind() != ErrorKind::Corruption => Err(error),
            _ => Ok(()),
        }
    }

    /// The files of large batches that replay needs and cannot read, each with the error. `flushed_through`: of a
    /// family; `None` if it was dropped.
    pub fn lost_batches(
        &self,
        vfs: &dyn Vfs,
        dir: &Path,
        own: DatabaseId,
        old: Option<&Recovered>,
        flushed_through: impl Fn(FamilyId) -> Option<SeqNo>,
    ) -> Vec<(PathBuf, Error)> {
        let is_past =
            |batch: &&FoundBatch| self.ends.iter().any(|end| end.log == batch.log && end.end_offset <= batch.offset);
        let counted = self.large_batches.iter().filter(|batch| !is_past(batch)).map(|batch| &batch.record);
        let needed = counted.filter(|record| record.is_needed(&flushed_through));
        let has_later = self.found.as_ref().is_some_and(|found| found.has_later_sessions);
        let owner = |number| (own, old.filter(|_| !has_later).map_or(0, |old| old.session_of(number)));
        let read = |record: &LargeBatchRecord| record.read(vfs, dir, owner(record.file), &mut |_| Ok(())).err();
        needed.filter_map(|record| Some((record.path(dir), read(record)?))).collect()
    }

    /// Returns the log behind which opens leave all out (D2).
    fn find_damage(&mut self, vfs: &dyn Vfs, dir: &Path, logs: &[FoundLog], reads_on: bool) -> Option<FileNumber> {
        let mut ends = Vec::with_capacity(logs.len());
        for log in logs {
            let (path, options) = self.place_of(dir, log);
            let options = ReplayOptions { mode: WalRecoveryMode::PointInTime, ..options };
            let replayed = wal::replay(vfs, &path, &options, &mut |_| Ok(()));
            ends.extend(replayed.as_ref().ok().map(|end| (log.number, path.clone(), *end)));
            // The filling of an unreadable part can pass for an unsynced end.
            if let Some(error) = replayed.err().or_else(|| vfs.read_failure(&path)) {
                self.damaged.insert(path, error.to_string());
            }
        }
        let cut_off = ends.iter().find(|(.., end)| !end.reason.is_continued()).map(|(number, ..)| *number);
        let cut_off = cut_off.filter(|_| !reads_on && self.damaged.is_empty());
        let counted = ends.iter().filter(|(number, ..)| cut_off.is_none_or(|cut_off| *number <= cut_off));
        self.notes.extend(counted.filter_map(|(_, path, end)| report_on_end(path, end)));
        cut_off
    }

    /// The path of a log, and how it is replayed.
    fn place_of(&self, dir: &Path, log: &FoundLog) -> (PathBuf, ReplayOptions) {
        let number = log.number;
        let known_end = self.ends.iter().find(|end| end.log == number).map(LogEnd::known);
        let options = ReplayOptions { number, known_end, later: log.later, ..ReplayOptions::default() };
        (dir.join(file_name::format(FileType::Log, number)), options)
    }

    /// Reads every readable record. Skips malformed ones, as replay will.
    fn read(&mut self, vfs: &dyn Vfs, path: &Path, options: ReplayOptions) -> Result<Vec<Numbered>> {
        let mut records = Vec::new();
        let options = ReplayOptions { mode: WalRecoveryMode::SkipAnyCorruptedRecords, ..options };
        let read = wal::replay(vfs, path, &options, &mut |record| {
            if let Ok(Some((first, last))) = self.note(options.number, &record) {
                records.push(Numbered { offset: record.offset, first, last });
            }
            Ok(())
        });
        match read {
            Err(error) if error.kind() != ErrorKind::Corruption => Err(error),
            _ => Ok(records),
        }
    }

    /// Returns the first and last number of a record in `log`.
    fn note(&mut self, log: FileNumber, record: &ReplayRecord<'_>) -> Result<Option<(SeqNo, SeqNo)>> {
        let offset = record.offset;
        let Some(record) = CommitRecord::decode(record.kind, record.payload)? else { return Ok(None) };
        let numbers = record.numbers();
        match record.batch {
            None => {}
            Some(RecordedBatch::InRecord(batch)) => self.record_batch(batch),
            Some(RecordedBatch::InFile(large)) => {
                self.families.extend(&large.families);
                self.merges.extend(large.families.iter().map(|family| (*family, large.last()))); // may include merges
                self.large_batches.push(FoundBatch { log, offset, record: large });
            }
            Some(RecordedBatch::Prepared(record)) => self.record_step(record),
        }
        if let Some(ingest) = record.ingest {
            self.families.extend(ingest.families.iter().map(|share| share.family));
            self.logged.add_ingest(&ingest);
            self.ingests.push(ingest);
        }
        Ok(numbers)
    }

    /// Notes a step of a prepared transaction. The changes of a commit may include merges.
    fn record_step(&mut self, record: TransactionRecord<'_>) {
        let last = record.last();
        match record.step {
            Step::Prepare(batch) => self.families.extend(batch.map_while(Result::ok).map(|change| change.family)),
            Step::Commit(commit) => {
                self.merges.extend(commit.families.iter().map(|family| (*family, last)));
                self.families.extend(commit.families);
            }
            Step::Rollback => {}
        }
    }

    fn record_batch(&mut self, batch: BatchReader<'_>) {
        let first = batch.seq();
        for (family, entry) in entries_of(batch, first) {
            self.families.insert(family);
            if entry.kind == ValueKind::Merge {
                self.merges.insert(family, entry.seq);
            }
        }
    }

    /// A log cut off by a crash may hold writes past its recovered end. The next log reused their numbers.
    fn find_ends(&mut self, logs: &[(FileNumber, Vec<Numbered>)]) {
        let mut next_first = SeqNo::MAX;
        for (number, records) in logs.iter().rev() {
            let counted = records.iter().take_while(|record| record.first < next_first);
            let last = counted.clone().map(|record| record.last).max();
            let is_noted = self.ends.iter().any(|end| end.log == *number);
            if let Some(past) = records.get(counted.count()).filter(|_| !is_noted) {
                let last_seq = last.unwrap_or_default();
                self.ends.push(LogEnd { log: *number, end_offset: past.offset, last_seq, on_disk: false });
            }
            self.last_seq = self.last_seq.max(last.unwrap_or_default());
            next_first = records.first().map_or(next_first, |first| first.first.min(next_first));
        }
        self.ends.sort_by_key(|end| end.log);
    }
}
