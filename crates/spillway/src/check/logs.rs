//! Checks logs: that they can be replayed, and that every batch in them is one.

use std::path::Path;

use base::{Error, FileNumber, Result, SeqNo};
use log::framed::{FramedEnd, FramedReader};
use log::{EndReason, Frontiers, RecordKind, RecoveryMode, ReplayOptions};
use vfs::IoClass;

use super::{Check, CheckReport};
use crate::version::file_name::{self, FileType};
use crate::write::batch::BatchReader;

/// The logs that belong to a database.
#[derive(Default)]
pub(super) struct FoundLogs {
    /// Ascending.
    pub own: Vec<FileNumber>,
    /// RocksDB's that may be needed, ascending.
    pub rocksdbs: Vec<FileNumber>,
    pub bytes: u64,
}

impl Check<'_> {
    pub(super) fn find_logs(&self) -> Result<FoundLogs> {
        let needed = self.recovered.families.iter().map(|family| family.log_number).min().unwrap_or_default();
        let needed = needed.max(self.recovered.min_log_to_keep);
        let mut found = FoundLogs::default();
        for name in self.vfs().read_dir(self.log_dir())? {
            match file_name::parse(&name) {
                Some((FileType::Log, number)) => found.own.push(number),
                Some((FileType::RocksLog, number)) if number >= needed => found.rocksdbs.push(number),
                _ => continue,
            }
            found.bytes += self.vfs().metadata(&self.log_dir().join(name))?.len;
        }
        found.own.sort_unstable();
        found.rocksdbs.sort_unstable();
        Ok(found)
    }

    pub(super) fn check_logs(&mut self, found: &FoundLogs) {
        let mut last = SeqNo::ZERO;
        for number in &found.rocksdbs {
            self.check_one_log(FileType::RocksLog, *number, |check, path| check.check_rocksdb_log(path, *number));
        }
        let later = self.later_frontiers(&found.own);
        for (number, later) in found.own.iter().zip(later) {
            self.check_one_log(FileType::Log, *number, |check, path| {
                check.check_own_log(path, *number, later, &mut last)
            });
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

    /// What the logs behind each one know of it.
    fn later_frontiers(&mut self, numbers: &[FileNumber]) -> Vec<Frontiers> {
        let mut known = Frontiers::default();
        let mut later = Vec::with_capacity(numbers.len());
        for &number in numbers.iter().rev() {
            later.push(known);
            let path = self.log_dir().join(file_name::format(FileType::Log, number));
            // A header that cannot be read is reported when the log itself is checked.
            known = log::read_frontiers(self.vfs(), &path, number).map_or(known, |of_this| known.max(of_this));
        }
        later.reverse();
        later
    }

    fn check_own_log(&mut self, path: &Path, number: FileNumber, later: Frontiers, last: &mut SeqNo) -> Result<()> {
        let known_end = self.recovered.log_ends.iter().find(|end| end.log == number).map(|end| end.end_offset);
        let options = ReplayOptions { number, mode: RecoveryMode::PointInTime, known_end, later };
        let (vfs, report) = (&*self.options.vfs, &mut self.report);
        let end = log::replay(vfs, path, &options, &mut |record| {
            if record.kind != RecordKind::Batch {
                return Ok(());
            }
            let numbers = check_batch(report, record.payload).map_err(|error| error.at_offset(record.offset))?;
            let Some((first, last_in_batch)) = numbers else { return Ok(()) };
            if first <= *last {
                let what = format!("a batch starts with number {first}, after {last}");
                return Err(Error::corruption(what).at_offset(record.offset));
            }
            *last = last_in_batch;
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

/// Returns the first and the last number of the batch; `None` where it changes nothing.
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
