//! Checks logs: they replay, and every batch in them is well-formed.

use std::collections::BTreeSet;
use std::path::Path;

use base::options::WalRecoveryMode;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use vfs::IoClass;
use wal::framed::{FramedEnd, FramedReader};
use wal::{DatabaseId, EndReason, ReplayOptions, ReplayRecord};

use super::{Check, CheckReport};
use crate::batch::BatchReader;
use crate::open::replay::own_logs::{report_on_end, report_on_left_out, was_let_go};
use crate::open::replay::rocksdb_history::RocksdbHistory;
use crate::open::replay::rocksdb_logs::{LACKS_STEPS, check_place};
use crate::open::replay::wal_range::{self, FoundLog, FoundRange, LogPlaces, MissingLog};
use crate::open::{log_owner, options_file};
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::rocksdb_record::{RocksdbStep, RocksdbSteps, steps_of};
use crate::records::two_phase_record::{Step, TransactionRecord, check_same, commit_without_prepare, prepared_twice};
use crate::version::edit::LogEnd;
use crate::version::file_name::{self, FileType};

/// The logs of a database.
pub(super) struct FoundLogs {
    pub range: FoundRange,
    /// RocksDB logs that may be needed.
    pub rocksdbs: BTreeSet<FileNumber>,
    pub bytes: u64,
}

impl Check<'_> {
    /// Finds the logs. Reports missing ones.
    ///
    /// # Errors
    /// `InvalidArgument`: they lie in another directory. The file system's.
    pub(super) fn find_logs(&mut self) -> Result<FoundLogs> {
        let needed = self.recovered.oldest_read_rocksdb_log();
        let (vfs, dir) = (self.options.vfs.clone(), self.log_dir().to_owned());
        // An unreadable header is reported when the log itself is checked.
        let head = |path: &Path, number| Ok(wal::read_head(&*vfs, path, number).unwrap_or_default());
        // Logs of ours in RocksDB's directory are of a takeover that was cut off.
        let range = match self.recovered.fenced {
            true => wal_range::find(&*vfs, &dir, self.database(), self.recovered.noted_logs(), head)?,
            false => FoundRange::default(),
        };
        let let_go = self.recovered.let_go_through();
        if self.recovered.fenced {
            let places =
                LogPlaces::new(&*vfs, self.dir, &dir, self.recovered.log_dir.as_deref(), Some(self.recovered))?;
            let (own, noted) = (self.database(), self.recovered.noted_by_logs());
            places.check(&*vfs, own, &range, noted, let_go, WalRecoveryMode::PointInTime)?;
        }
        let is_lost = |log: &&MissingLog| !was_let_go(&*vfs, &dir, log.number, &range.logs, let_go);
        range.missing.iter().filter(is_lost).for_each(|log| self.report.problem(log.error(&dir)));
        let mut rocksdbs = file_name::numbers_in(&*vfs, &dir, FileType::RocksLog)?;
        rocksdbs.retain(|number| *number >= needed && !self.recovered.fenced);
        if !self.recovered.fenced {
            let unknown = check_place(&*vfs, self.dir, self.options.log_dir.as_deref(), self.recovered)?;
            unknown.into_iter().for_each(|error| self.report.problem(error));
        }
        let mut found = FoundLogs { range, rocksdbs, bytes: 0 };
        let own = found.range.logs.iter().map(|log| (FileType::Log, log.number));
        for (kind, number) in own.chain(found.rocksdbs.iter().map(|number| (FileType::RocksLog, *number))) {
            found.bytes += vfs.metadata(&dir.join(file_name::format(kind, number)))?.len;
        }
        Ok(found)
    }

    fn database(&self) -> DatabaseId {
        log_owner(self.vfs(), self.dir, Some(self.recovered))
    }

    pub(super) fn check_logs(&mut self, found: &FoundLogs) {
        self.check_rocksdb_logs(&found.rocksdbs);
        let mut last = SeqNo::ZERO;
        let mut cut_off = None;
        for log in &found.range.logs {
            self.check_one_log(FileType::Log, log.number, |check, path| {
                let before = last;
                let end = check.check_own_log(path, log, cut_off.is_some(), &mut last);
                if let Some(cut_off) = cut_off {
                    check.report.notes.extend((last > before).then(|| report_on_left_out(cut_off, log.number)));
                    return end.map(drop);
                }
                check.report.last_seq = check.report.last_seq.max(last);
                cut_off = (!end?.is_continued()).then_some(log.number);
                Ok(())
            });
        }
    }

    /// By the rules of replay.
    fn check_rocksdb_logs(&mut self, numbers: &BTreeSet<FileNumber>) {
        let (kind, mut history) = (FileType::RocksLog, RocksdbHistory::of(self.recovered));
        for number in numbers {
            let is_old = *number < self.recovered.oldest_rocksdb_log();
            self.check_one_log(kind, *number, |check, path| match is_old {
                true => check.check_old_rocksdb_log(path, *number, &mut history),
                false => check.check_rocksdb_log(path, *number, &mut history),
            });
        }
        let path = |log| self.log_dir().join(file_name::format(kind, log));
        let parts = history.range.missing(self.recovered).into_iter();
        let mut problems: Vec<_> = parts.map(|part| Error::corruption(part.why).at_path(path(part.log))).collect();
        let lacking = history.range.lacks_steps(self.recovered, options_file::may_prepare(self.vfs(), self.dir));
        problems.extend(lacking.map(|log| Error::corruption(LACKS_STEPS).at_path(path(log))));
        problems.extend(history.check_no_family_is_ahead(self.recovered, self.log_dir()).err());
        if let Some(path) = history.lost_from().map(path)
            && !self.report.problems.iter().any(|problem| problem.0.path() == Some(&path))
        {
            problems.push(Error::corruption("it is cut off, and records behind its end are lost").at_path(path));
        }
        problems.into_iter().for_each(|problem| self.report.problem(problem));
    }

    fn check_one_log(
        &mut self,
        kind: FileType,
        number: FileNumber,
        check: impl FnOnce(&mut Self, &Path) -> Result<()>,
    ) {
        let path = self.log_dir().join(file_name::format(kind, number));
        self.begin_file(&path);
        let bytes = self.vfs().metadata(&path).map_or(0, |metadata| metadata.len);
        let result = check(self, &path).map_err(|error| error.at_path(&path));
        self.report.take(result);
        self.report.logs += 1;
        self.report.log_bytes += bytes;
        self.bytes_done += bytes;
    }

    /// Returns why the log ended. `is_left_out`: opens do not replay it.
    fn check_own_log(&mut self, path: &Path, log: &FoundLog, is_left_out: bool, last: &mut SeqNo) -> Result<EndReason> {
        let (number, later) = (log.number, log.later);
        let known_end = self.recovered.log_ends.iter().find(|end| end.log == number).map(LogEnd::known);
        let (mode, database) = (WalRecoveryMode::PointInTime, self.database());
        let options = ReplayOptions { number, mode, known_end, from: None, later, database, session: 0 };
        let vfs = self.options.vfs.clone();
        let end = wal::replay(&*vfs, path, &options, &mut |record| {
            let numbers = self.check_record(&record, is_left_out);
            let Some((first, last_in_record)) = numbers.map_err(|error| error.at_record(path, record.offset))? else {
                return Ok(());
            };
            if first <= *last {
                let what = format!("a record starts with number {first}, after {last}");
                return Err(Error::corruption(what).at_offset(record.offset));
            }
            *last = last_in_record;
            self.logged.add(first, last_in_record);
            Ok(())
        })?;
        if !is_left_out {
            self.report.notes.extend(report_on_end(path, &end));
        }
        Ok(end.reason)
    }

    /// Notes the ingest of a record. Returns the record's first and last number; `None` if it has none.
    fn check_record(&mut self, record: &ReplayRecord<'_>, is_left_out: bool) -> Result<Option<(SeqNo, SeqNo)>> {
        let Some(record) = CommitRecord::decode(record.kind, record.payload)? else { return Ok(None) };
        let numbers = record.numbers();
        let shares = record.ingest.iter().flat_map(|ingest| &ingest.families);
        self.largest_family = shares.fold(self.largest_family, |largest, share| largest.max(share.family));
        record.ingest.iter().for_each(|ingest| self.logged.add_ingest(ingest));
        if is_left_out {
            // It only tells what the database had seen.
            if let Some(RecordedBatch::InRecord(batch)) = record.batch {
                check_batch(&mut CheckReport::default(), &mut self.largest_family, batch)?;
            }
            return Ok(numbers);
        }
        self.queued.extend(record.ingest);
        match record.batch {
            None => {}
            Some(RecordedBatch::InRecord(batch)) => check_batch(&mut self.report, &mut self.largest_family, batch)?,
            Some(RecordedBatch::InFile(large)) => self.check_large(&large)?,
            Some(RecordedBatch::Prepared(record)) => self.check_step(record)?,
        }
        Ok(numbers)
    }

    /// Checks a prepared batch, and that the prepare of a commit is there if replay needs it.
    fn check_step(&mut self, record: TransactionRecord<'_>) -> Result<()> {
        let last = record.last();
        match record.step {
            Step::Prepare(batch) => {
                if self.prepared.insert(record.name.to_vec(), batch.declared_count()).is_some() {
                    return Err(prepared_twice(record.name));
                }
                check_batch(&mut self.report, &mut self.largest_family, batch)
            }
            Step::Commit(commit) => {
                if let Some(prepare) = self.prepared.remove(record.name) {
                    return check_same(prepare, &commit);
                }
                if !commit.is_needed(last, |family| self.recovered.flushed_through(family)) {
                    return Ok(());
                }
                Err(commit_without_prepare(record.name))
            }
            Step::Rollback => {
                self.prepared.remove(record.name);
                Ok(())
            }
        }
    }

    fn check_large(&mut self, large: &LargeBatchRecord) -> Result<()> {
        if !large.is_needed(|family| self.recovered.flushed_through(family)) {
            return Ok(()); // the file may be gone
        }
        let (vfs, dir) = (self.options.vfs.clone(), self.log_dir().to_owned());
        let owner = (self.database(), self.recovered.session_of(large.file));
        large
            .read(&*vfs, &dir, owner, &mut |batch| check_batch(&mut self.report, &mut self.largest_family, batch))
            .map(drop)
    }

    /// A log of which only prepared transactions count. Their loss is a problem behind all logs.
    fn check_old_rocksdb_log(&mut self, path: &Path, number: FileNumber, history: &mut RocksdbHistory) -> Result<()> {
        let vfs = self.options.vfs.clone();
        let damaged = history.read_old_log(&*vfs, path, number, &mut |record, batch, steps| {
            if record.follows_damage {
                self.prepared.clear(); // an end can be lost
            }
            self.check_rocksdb_record(batch, steps)
        })?;
        self.report.notes.extend(damaged.map(|offset| {
            format!(
                "{}: damaged at byte {offset}; what it holds is in tables, but for prepared transactions",
                path.display()
            )
        }));
        Ok(())
    }

    /// # Errors
    /// `Corruption`: it prepares a transaction that is prepared already.
    fn check_rocksdb_record(&mut self, record: &BatchReader<'_>, steps: RocksdbSteps<'_>) -> Result<()> {
        for step in steps {
            match step {
                RocksdbStep::Changes(changes) => self.record_families(changes),
                RocksdbStep::Prepare { name, batch } => {
                    let count = batch.declared_count();
                    self.record_families(batch);
                    if self.prepared.insert(name.to_vec(), count).is_some() {
                        return Err(prepared_twice(name));
                    }
                }
                RocksdbStep::Commit(name) | RocksdbStep::Rollback(name) => drop(self.prepared.remove(name)),
            }
        }
        self.report.log_batches += 1;
        self.report.log_changes += u64::from(record.declared_count());
        Ok(())
    }

    fn record_families(&mut self, changes: BatchReader<'_>) {
        let families = changes.map_while(Result::ok).map(|change| change.family);
        self.largest_family = families.fold(self.largest_family, FamilyId::max);
    }

    fn check_rocksdb_log(&mut self, path: &Path, number: FileNumber, history: &mut RocksdbHistory) -> Result<()> {
        let mut reader = FramedReader::open(self.vfs(), path, Some(number.0), IoClass::Log)?;
        let mode = WalRecoveryMode::PointInTime;
        let end = wal::framed::replay(&mut reader, mode, &mut |record| {
            let batch = BatchReader::new(&record.payload)?;
            let steps = steps_of(&batch, false);
            let changes = |step: &RocksdbStep<'_>| match step {
                RocksdbStep::Changes(changes) => changes.declared_count(),
                RocksdbStep::Commit(name) => self.prepared.get(*name).copied().unwrap_or_default(),
                RocksdbStep::Prepare { .. } | RocksdbStep::Rollback(_) => 0,
            };
            let changes = match &steps {
                Ok(steps) => steps.iter().map(changes).map(u64::from).sum(),
                Err(_) => u64::from(batch.declared_count()),
            };
            self.logged.add(batch.seq(), SeqNo(batch.seq().0.saturating_add(changes.max(1) - 1)));
            if !history.admits(number, batch.seq()) {
                return Ok(());
            }
            history.check_numbers(number, batch.seq())?;
            let steps = steps?;
            history.add(number, batch.seq(), &steps);
            self.check_rocksdb_record(&batch, steps)
        })?;
        history.end_log(number, &reader, end, mode);
        match end {
            FramedEnd::Damaged { offset } => {
                Err(Error::corruption("damaged; what lies behind is not replayed").at_offset(offset))
            }
            FramedEnd::Torn { offset } => {
                self.report
                    .notes
                    .push(format!("{} ends at byte {offset} with a write that was cut off", path.display()));
                Ok(())
            }
            FramedEnd::Clean | FramedEnd::Zeros { .. } | FramedEnd::OtherLog { .. } => Ok(()),
        }
    }
}

fn check_batch(report: &mut CheckReport, largest: &mut FamilyId, mut batch: BatchReader<'_>) -> Result<()> {
    let count = u64::from(batch.declared_count());
    let found = batch.try_fold(0u64, |found, record| {
        *largest = record?.family.max(*largest);
        Ok::<_, Error>(found + 1)
    })?;
    if found != count {
        return Err(Error::corruption(format!("a batch says that it has {count} changes, and has {found}")));
    }
    report.log_batches += 1;
    report.log_changes += found;
    Ok(())
}
