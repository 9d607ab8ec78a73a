//! Finds the log with a sequence number, among the logs in use and those in the archive.
//!
//! Only logs of the history count. A recovery may cut the history off inside a log, and go on in a new one with the
//! next number: whatever has that number or a later one in older logs is not history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::{FileNumber, Result, SeqNo};
use wal::LogReader;

use crate::log_files::archive::ARCHIVE_DIR;
use crate::log_files::archive::LogFinder;
use crate::records::record::{CommitRecord, RecordedBatch};
use crate::records::two_phase_record::Step;
use crate::version::file_name::{self, FileType};

/// A log with records of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileReport {
    /// The log's number.
    pub number: FileNumber,
    /// The log's file.
    pub path: PathBuf,
    /// The log is kept for readers alone, in the archive.
    pub is_archived: bool,
    /// The number of its first change. 0: the log was not looked at.
    pub first: SeqNo,
    /// Bytes of the file, allocated ahead or written.
    pub bytes: u64,
}

/// A log, before its first record.
pub(super) struct LogAtNumber {
    pub number: FileNumber,
    pub reader: LogReader,
    /// The first number that the history has in a later log.
    pub until: Option<SeqNo>,
}

/// The outcome of a search.
pub(super) struct Search {
    pub log: Option<LogAtNumber>,
    /// The first number above the wanted one with which a log begins.
    pub next: Option<SeqNo>,
}

impl LogFinder<'_> {
    /// Finds the log that begins at or below `seq`, as late as possible. `or_first`: if there is none, the first log.
    /// Newest logs are looked at first: readers mostly ask for recent numbers.
    pub(super) fn find(&self, seq: SeqNo, or_first: bool) -> Result<Search> {
        let (mut next, mut oldest) = (None, None);
        for (number, path) in self.logs()?.into_iter().rev() {
            let Some(first) = self.first_number(&path, number)? else { continue };
            if next.is_some_and(|next| first >= next) {
                continue;
            }
            if first <= seq {
                return Ok(Search { log: self.open(&path, number, next)?, next });
            }
            oldest = Some((number, path, next));
            next = Some(first);
        }
        let log = match oldest.filter(|_| or_first) {
            Some((number, path, until)) => self.open(&path, number, until)?,
            None => None,
        };
        Ok(Search { log, next })
    }

    /// All logs with records, by number. Large batches, in files of their own, are not among them.
    pub fn list(&self) -> Result<Vec<LogFileReport>> {
        let mut list = Vec::new();
        for (number, path) in self.logs()? {
            if let Some(first) = self.first_number(&path, number)? {
                list.extend(self.report(number, first)?);
            }
        }
        Ok(list)
    }

    /// `None`: the log was deleted meanwhile.
    pub fn report(&self, number: FileNumber, first: SeqNo) -> Result<Option<LogFileReport>> {
        let in_use = self.dir.join(file_name::format(FileType::Log, number));
        for (path, is_archived) in [(in_use, false), (self.archived(FileType::Log, number), true)] {
            match self.vfs.metadata(&path) {
                Err(error) if error.is_not_found() => {}
                found => {
                    let bytes = found?.len;
                    return Ok(Some(LogFileReport { number, path, is_archived, first, bytes }));
                }
            }
        }
        Ok(None)
    }

    /// All logs by number. The archive is listed last: a log that moves there meanwhile is not missed.
    fn logs(&self) -> Result<BTreeMap<FileNumber, PathBuf>> {
        let mut found = BTreeMap::new();
        for dir in [self.dir.clone(), self.dir.join(ARCHIVE_DIR)] {
            let numbers = match file_name::numbers_in(self.vfs, &dir, FileType::Log) {
                Err(error) if error.is_not_found() => continue,
                numbers => numbers?,
            };
            for number in numbers {
                found.entry(number).or_insert_with(|| dir.join(file_name::format(FileType::Log, number)));
            }
        }
        Ok(found)
    }

    fn open(&self, path: &Path, number: FileNumber, until: Option<SeqNo>) -> Result<Option<LogAtNumber>> {
        Ok(self.reader(path, number)?.map(|reader| LogAtNumber { number, reader, until }))
    }

    /// The batch of the last prepare under a name whose number is below `seq`.
    pub(super) fn prepared_before(&self, seq: SeqNo, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        for (number, path) in self.logs()? {
            let Some(mut reader) = self.reader(&path, number)? else { continue };
            while let Some(record) = reader.read()? {
                let Some(CommitRecord { batch: Some(RecordedBatch::Prepared(transaction)), .. }) =
                    CommitRecord::decode(record.kind, record.payload)?
                else {
                    continue;
                };
                if let Step::Prepare(batch) = transaction.step
                    && transaction.name == name
                    && transaction.first < seq
                {
                    found = Some(batch.to_bytes());
                }
            }
        }
        Ok(found)
    }
}
