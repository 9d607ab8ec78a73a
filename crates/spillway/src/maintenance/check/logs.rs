//! Checks logs: they replay, and every batch in them is well-formed.

use std::collections::BTreeSet;
use std::path::Path;

use base::{Error, FileNumber, Result, SeqNo};
use log::framed::{FramedEnd, FramedReader};
use log::{DatabaseId, EndReason, RecordKind, RecoveryMode, ReplayOptions};
use vfs::IoClass;

use super::{Check, CheckReport};
use crate::commit::batch::BatchReader;
use crate::open::log_owner;
use crate::open::replay::row::{self, FoundLog};
use crate::queue::ingest_record::IngestRecord;
use crate::version::edit::LogEnd;
use crate::version::file_name::{self, FileType};

/// The logs of a database.
pub(super) struct FoundLogs {
    /// Ascending.
    pub own: Vec<FoundLog>,
    /// RocksDB logs that may be needed.
    pub rocksdbs: BTreeSet<FileNumber>,
    pub bytes: u64,
}

impl Check<'_> {
    /// Finds the logs. Reports missing ones.
    pub(super) fn find_logs(&mut self) -> Result<FoundLogs> {
        let needed = self.recovered.families.iter().map(|family| family.log_number).min().unwrap_or_default();
        let needed = needed.max(self.recovered.min_log_to_keep);
        let (vfs, dir) = (self.options.vfs.clone(), self.log_dir().to_owned());
        // An unreadable header is reported when the log itself is checked.
        let head = |path: &Path, number| Ok(log::read_head(&*vfs, path, number).unwrap_or_default());
        let row = row::find(&*vfs, &dir, (self.database(), self.recovered.log_row), head)?;
        row.missing.iter().for_each(|log| self.report.problem(log.error(&dir)));
        let mut rocksdbs = row::numbers_in(&*vfs, &dir, FileType::RocksLog)?;
        rocksdbs.retain(|number| *number >= needed);
        let mut found = FoundLogs { own: row.logs, rocksdbs, bytes: 0 };
        let own = found.own.iter().map(|log| (FileType::Log, log.number));
        for (kind, number) in own.chain(found.rocksdbs.iter().map(|number| (FileType::RocksLog, *number))) {
            found.bytes += vfs.metadata(&dir.join(file_name::format(kind, number)))?.len;
        }
        Ok(found)
    }

    fn database(&self) -> DatabaseId {
        log_owner(self.vfs(), self.dir, Some(self.recovered))
    }

    pub(super) fn check_logs(&mut self, found: &FoundLogs) {
        let mut last = SeqNo::ZERO;
        for number in &found.rocksdbs {
            self.check_one_log(FileType::RocksLog, *number, |check, path| check.check_rocksdb_log(path, *number));
        }
        for log in &found.own {
            self.check_one_log(FileType::Log, log.number, |check, path| check.check_own_log(path, log, &mut last));
        }
        self.report.last_seq = self.report.last_seq.max(last);
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

    fn check_own_log(&mut self, path: &Path, log: &FoundLog, last: &mut SeqNo) -> Result<()> {
        let (number, later) = (log.number, log.later);
        let known_end = self.recovered.log_ends.iter().find(|end| end.log == number).map(LogEnd::known);
        let (mode, database) = (RecoveryMode::PointInTime, self.database());
        let options = ReplayOptions { number, mode, known_end, from: None, later, database };
        let vfs = self.options.vfs.clone();
        let (report, queued) = (&mut self.report, &mut self.queued);
        let end = log::replay(&*vfs, path, &options, &mut |record| {
            let numbers = match record.kind {
                RecordKind::Batch => check_batch(report, record.payload),
                RecordKind::Ingest => check_ingest(report, record.payload, queued),
                _ => return Ok(()),
            };
            let Some((first, last_in_record)) = numbers.map_err(|error| error.at_offset(record.offset))? else {
                return Ok(());
            };
            if first <= *last {
                let what = format!("a record starts with number {first}, after {last}");
                return Err(Error::corruption(what).at_offset(record.offset));
            }
            *last = last_in_record;
            Ok(())
        })?;
        if let EndReason::Unfinished { .. } = end.reason {
            let (name, offset) = (path.display(), end.end_offset);
            report
                .notes
                .push(format!("{name} ends at byte {offset} with a write that was cut off and never acknowledged"));
        }
        Ok(())
    }

    fn check_rocksdb_log(&mut self, path: &Path, number: FileNumber) -> Result<()> {
        let mut reader = FramedReader::open(self.vfs(), path, Some(number.0), IoClass::Log)?;
        let report = &mut self.report;
        let end = log::framed::replay(&mut reader, RecoveryMode::PointInTime, &mut |record| {
            check_batch(report, &record.payload).map_err(|error| error.at_offset(record.offset)).map(drop)
        })?;
        match end {
            FramedEnd::Damaged { offset } => {
                Err(Error::corruption("damaged; what lies behind is not replayed").at_offset(offset))
            }
            FramedEnd::Torn { offset } => {
                report.notes.push(format!("{} ends at byte {offset} with a write that was cut off", path.display()));
                Ok(())
            }
            FramedEnd::Clean | FramedEnd::Zeros { .. } | FramedEnd::OtherLog { .. } => Ok(()),
        }
    }
}

/// As [`check_batch`], for an ingest and its batch. Notes the ingest.
fn check_ingest(
    report: &mut CheckReport,
    payload: &[u8],
    queued: &mut Vec<IngestRecord>,
) -> Result<Option<(SeqNo, SeqNo)>> {
    let (record, batch) = IngestRecord::decode(payload)?;
    let (first, mut last) = (record.first, record.last());
    queued.push(record);
    if !batch.is_empty()
        && let Some((first_in_batch, last_in_batch)) = check_batch(report, batch)?
    {
        if first_in_batch.0 != last.0 + 1 {
            let what = format!("the batch beside an ingest starts with number {first_in_batch}, after {last}");
            return Err(Error::corruption(what));
        }
        last = last_in_batch;
    }
    Ok(Some((first, last)))
}

/// Returns the batch's first and last sequence number; `None` if it is empty.
fn check_batch(report: &mut CheckReport, payload: &[u8]) -> Result<Option<(SeqNo, SeqNo)>> {
    let mut batch = BatchReader::new(payload)?;
    let (first, count) = (batch.seq(), u64::from(batch.declared_count()));
    let found = batch.try_fold(0u64, |found, record| record.map(|_| found + 1))?;
    if found != count {
        return Err(Error::corruption(format!("a batch says that it has {count} changes, and has {found}")));
    }
    report.log_batches += 1;
    report.log_changes += found;
    Ok(count.checked_sub(1).and_then(|rest| first.checked_add(rest)).map(|last| (first, last)))
}
