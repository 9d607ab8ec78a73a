//! The WAL: `rocksdb_wal_iterator_t`, changes in their order; `rocksdb_wal_file_t`, a log.

use std::ffi::{CString, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;

use spillway::internal::{LogCursor, LogFileReport, SeqNo, Update};

use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::reply::{Lent, LentPart};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::kept::{Kept, keeps_numbers};

/// An iterator, at a batch, at the end, or failed. At the end `next` looks for what was written since.
pub struct LogIterator {
    cursor: LogCursor,
    batch: Option<Update>,
    failed: Option<Failure>,
}

/// `rocksdb_wal_readoptions_t`. Checksums are always verified.
#[derive(Default)]
pub struct LogReadOptions {
    kept: Kept,
}

/// `rocksdb_wal_file_t`.
pub struct LogFile {
    report: LogFileReport,
    /// As RocksDB shows it: `/000012.splog`, `/archive/000003.splog`.
    name: CString,
}

/// `rocksdb_wal_files_t`.
pub struct LogFiles(Vec<LogFile>);

/// `rocksdb_flushwaloptions_t`.
#[derive(Default)]
pub struct FlushLogSettings {
    pub sync: bool,
    pub kept: Kept,
}

handles!(LogIterator, LogReadOptions, LogFile, LogFiles, FlushLogSettings);

keeps_numbers!(LogReadOptions, FlushLogSettings);

/// RocksDB's `Env::IO_TOTAL`.
const IO_TOTAL: c_int = 4;

settings! { FlushLogSettings as FLUSH_LOG_ROWS, "rocksdb_flushwaloptions_";
    sync: c_uchar => sync;

    rate_limiter_priority: c_int = IO_TOTAL;
}

settings! { LogReadOptions, "rocksdb_wal_readoptions_";
    verify_checksums: c_uchar = 1;
}

impl LogFile {
    fn new(report: LogFileReport) -> LogFile {
        let dir: &[u8] = if report.is_archived { b"/archive/" } else { b"/" };
        let name = [dir, report.path.file_name().unwrap_or_default().as_bytes()].concat();
        LogFile { name: CString::new(name).unwrap_or_default(), report } // a path has no zero byte
    }
}

impl LogIterator {
    pub fn advance(&mut self) {
        (self.batch, self.failed) = match self.cursor.read() {
            Ok(batch) => (batch, None),
            Err(error) => (None, Some(error.into())),
        };
    }

    /// The batch that it is at.
    pub fn batch(&self) -> Option<&Update> {
        self.batch.as_ref()
    }

    /// # Errors
    /// That of the last step.
    pub fn status(&self) -> Result<(), Failure> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Database {
    /// The first batch is the one with the number. If its log is gone, it is the first one left, as in RocksDB: the
    /// caller compares the numbers.
    pub fn updates_since(&self, number: u64) -> Result<Box<LogIterator>, Failure> {
        if number > self.db.latest_sequence_number().0 {
            return Err(Failure::not_found("Requested sequence not yet written in the db"));
        }
        let cursor = self.db.updates_since(SeqNo(number), true)?;
        let mut iterator = Box::new(LogIterator { cursor, batch: None, failed: None });
        iterator.advance();
        Ok(iterator)
    }
}

fallible! {
    /// See [`Database::updates_since`].
    fn rocksdb_get_updates_since(
        database: &Database,
        sequence_number: u64,
        _options: Option<&LogReadOptions>,
    ) -> Box<LogIterator> {
        database.updates_since(sequence_number)
    }

    fn rocksdb_wal_iter_status(iter: &LogIterator) {
        iter.status()
    }

    /// Logs with records, by number, those in the archive included.
    fn rocksdb_get_sorted_wal_files(database: &Database) -> Box<LogFiles> {
        Ok(Box::new(LogFiles(database.db.log_files()?.into_iter().map(LogFile::new).collect())))
    }

    /// Without the first number, as in RocksDB.
    fn rocksdb_get_current_wal_file(database: &Database) -> Box<LogFile> {
        let none = || Failure::not_found("nothing was logged since the database was opened");
        Ok(Box::new(LogFile::new(database.db.current_log_file()?.ok_or_else(none)?)))
    }
}

export! {
    fn rocksdb_wal_iter_destroy(iter: Option<Box<LogIterator>>) {
        drop(iter);
    }

    fn rocksdb_wal_iter_next(iter: &mut LogIterator) {
        iter.advance();
    }

    fn rocksdb_wal_iter_valid(wal_iterator: &LogIterator) -> bool {
        wal_iterator.batch.is_some()
    }

    /// A copy of the batch, for the caller to destroy. An empty one, and number 0, if the iterator is not valid.
    fn rocksdb_wal_iter_get_batch(iter: &LogIterator, seq: Out<u64>) -> Box<Batch> {
        seq.set(iter.batch.as_ref().map_or(0, |batch| batch.sequence_number().0));
        Batch::of_bytes(iter.batch.as_ref().map(|batch| batch.as_bytes().to_vec()))
    }

    fn rocksdb_flushwaloptions_create() -> Box<FlushLogSettings> {
        Box::default()
    }

    fn rocksdb_flushwaloptions_destroy(options: Option<Box<FlushLogSettings>>) {
        drop(options);
    }

    fn rocksdb_wal_files_count(files: &LogFiles) -> usize {
        files.0.len()
    }

    /// NULL for an index out of range.
    fn rocksdb_wal_files_get_wal_file(files: &LogFiles, index: usize) -> LentPart<LogFile> {
        LentPart::of(files.0.get(index))
    }

    fn rocksdb_wal_files_destroy(files: Option<Box<LogFiles>>) {
        drop(files);
    }

    fn rocksdb_wal_file_path_name(file: &LogFile) -> Lent {
        Lent::of(file.name.as_bytes_with_nul())
    }

    fn rocksdb_wal_file_log_number(file: &LogFile) -> u64 {
        file.report.number.0
    }

    fn rocksdb_wal_file_type(file: &LogFile) -> c_int {
        c_int::from(!file.report.is_archived)
    }

    fn rocksdb_wal_file_start_sequence(file: &LogFile) -> u64 {
        file.report.first.0
    }

    fn rocksdb_wal_file_size_file_bytes(file: &LogFile) -> u64 {
        file.report.bytes
    }

    fn rocksdb_wal_file_destroy(file: Option<Box<LogFile>>) {
        drop(file);
    }

    fn rocksdb_wal_readoptions_create() -> Box<LogReadOptions> {
        Box::default()
    }

    fn rocksdb_wal_readoptions_destroy(options: Option<Box<LogReadOptions>>) {
        drop(options);
    }
}
