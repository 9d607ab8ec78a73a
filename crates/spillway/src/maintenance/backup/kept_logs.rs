//! Checks logs kept by a restore, and finds the tables they name. Reads the logs as the next open will, before anything
//! is deleted: problems are refused before anything is lost (D2, D3).

use std::collections::BTreeSet;
use std::path::Path;

use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FileNumber, Result};
use log::framed::{FramedEnd, FramedReader};
use log::{DatabaseId, EndReason, ReplayOptions, ReplayRecord};
use vfs::{IoClass, Vfs};

use super::restore::Places;
use super::store::{Backup, Store};
use crate::commit::batch::BatchReader;
use crate::open::directory_owner;
use crate::open::replay::rocksdb_row::RocksdbRow;
use crate::open::replay::{ingests, own_logs, row};
use crate::queue::ingest_record::{IngestRecord, IngestTable};
use crate::version::file_name::{self, FileType};
use crate::version::recover::{self, Recovered};
use crate::wal::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::wal::rocksdb_record::steps_of;

/// Tables named by kept logs.
pub(super) struct Kept {
    tables: BTreeSet<FileNumber>,
}

impl Kept {
    pub fn has(&self, kind: FileType, number: FileNumber) -> bool {
        kind == FileType::Table && self.tables.contains(&number)
    }

    /// # Errors
    /// `InvalidArgument`: existing logs do not follow the backup, or files they name are missing. `Corruption`: the
    /// backup is damaged.
    pub fn find(store: &Store, places: &Places, backup: &Backup) -> Result<Kept> {
        let vfs = &*store.vfs;
        if backup.meta.files.iter().any(|file| file.path.file_type().is_log()) {
            check_no_logs_are_there(vfs, places, backup)?;
            return Ok(Kept { tables: BTreeSet::new() });
        }
        let recovered = recover::recover(vfs, &store.private_dir(backup.id))?;
        let existing = directory_owner(vfs, &places.db);
        let mut reader = Reader { vfs, places, recovered, existing, tables: BTreeSet::new() };
        let read = reader
            .read_rocksdb_logs()
            .and_then(|()| reader.read_logs())
            .and_then(|()| check_numbers_differ(&reader.tables, places, backup));
        read.map_err(|error| refusal(backup, error))?;
        Ok(Kept { tables: reader.tables })
    }
}

/// # Errors
/// `InvalidArgument`: both the directory and the backup have logs. The existing logs continue after writes that the
/// backup's logs lack.
fn check_no_logs_are_there(vfs: &dyn Vfs, places: &Places, backup: &Backup) -> Result<()> {
    let names = vfs.read_dir(&places.logs)?;
    let is_log = |name: &&String| file_name::parse(name).is_some_and(|(kind, _)| kind.is_log());
    match names.iter().find(is_log) {
        Some(name) => {
            let what = format!(
                "{name} was to be kept, but backup {} has logs of its own, which it does not follow; restore without \
                 keep_log_files",
                backup.id
            );
            Err(Error::invalid_argument(what).at_path(&places.logs))
        }
        None => Ok(()),
    }
}

/// # Errors
/// `InvalidArgument`: a table of the backup would replace a kept one.
fn check_numbers_differ(kept: &BTreeSet<FileNumber>, places: &Places, backup: &Backup) -> Result<()> {
    let names: BTreeSet<String> = kept.iter().map(|number| file_name::format(FileType::Table, *number)).collect();
    match backup.meta.files.iter().map(|file| file.path.database_name()).find(|name| names.contains(name)) {
        Some(name) => {
            let what = "the logs ingest a table, and the backup has another one of the same number";
            Err(Error::invalid_argument(what).at_path(places.db.join(name)))
        }
        None => Ok(()),
    }
}

/// Turns damage in the logs into `InvalidArgument`: nothing is changed, so the existing database is not lost.
fn refusal(backup: &Backup, error: Error) -> Error {
    let is_of_logs = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::InvalidArgument) || error.is_not_found();
    if !is_of_logs {
        return error;
    }
    let what = format!(
        "the logs that are there cannot be kept for backup {}: {}; nothing was changed. Restore to another directory, or \
         without keep_log_files, which deletes them",
        backup.id,
        error.message()
    );
    let mut refusal = Error::invalid_argument(what);
    if let Some(path) = error.path() {
        refusal = refusal.at_path(path);
    }
    if let Some(offset) = error.offset() {
        refusal = refusal.at_offset(offset);
    }
    refusal.with_source(error)
}

/// Reads kept logs.
struct Reader<'a> {
    vfs: &'a dyn Vfs,
    places: &'a Places,
    /// From the backup's MANIFEST.
    recovered: Recovered,
    /// The existing database's id.
    existing: DatabaseId,
    /// Tables named by records the next open applies.
    tables: BTreeSet<FileNumber>,
}

impl Reader<'_> {
    /// Reads RocksDB's logs. They have to go on where the backup ends, with no number missing: a log that is gone leaves the same
    /// gap as writes that went to no log.
    ///
    /// # Errors
    /// `Corruption`: they do not, or are damaged.
    fn read_rocksdb_logs(&self) -> Result<()> {
        let (vfs, dir) = (self.vfs, self.places.logs.as_path());
        let (mut row, mode) = (RocksdbRow::default(), WalRecoveryMode::PointInTime);
        let path = |number| dir.join(file_name::format(FileType::RocksLog, number));
        for &number in file_name::numbers_in(vfs, dir, FileType::RocksLog)?.range(self.recovered.oldest_rocksdb_log()..)
        {
            let mut reader = FramedReader::open(vfs, &path(number), Some(number.0), IoClass::Log)?;
            let end = log::framed::replay(&mut reader, mode, &mut |record| {
                let batch = BatchReader::new(&record.payload)?;
                row.add(number, batch.seq(), &steps_of(&batch)?);
                Ok(())
            })?;
            if let FramedEnd::Damaged { offset } = end {
                return Err(Error::corruption("the log is damaged").at_path(path(number)).at_offset(offset));
            }
        }
        match row.first_gap(self.recovered.last_seq) {
            Some(number) => {
                let what = "its numbers do not go on where the backup and the logs before it end: a log is missing, or \
                            there are writes that went to no log";
                Err(Error::corruption(what).at_path(path(number)))
            }
            None => Ok(()),
        }
    }

    /// # Errors
    /// `Corruption`, `InvalidArgument`: as replay at open.
    fn read_logs(&mut self) -> Result<()> {
        let (vfs, dir) = (self.vfs, self.places.logs.as_path());
        let own = DatabaseId::new(self.recovered.db_id.as_deref().unwrap_or_default());
        let head = |path: &Path, number| log::read_head(vfs, path, number);
        let found = row::find(vfs, dir, own, self.recovered.noted_logs(), head)?;
        if let Some((number, other)) = found.others.iter().find(|(_, other)| **other == self.existing) {
            let what = format!("log {number} is of the database {other}, and the backup of {own}");
            return Err(Error::invalid_argument(what).at_path(dir.join(file_name::format(FileType::Log, *number))));
        }
        let let_go = self.recovered.let_go_through();
        let is_needed = |log: &&row::MissingLog| !own_logs::was_let_go(vfs, dir, log.number, &found.logs, let_go);
        if let Some(missing) = found.missing.iter().find(is_needed) {
            return Err(missing.error(dir));
        }
        let mut cut_off = None;
        for log in &found.logs {
            let path = dir.join(file_name::format(FileType::Log, log.number));
            if let Some(earlier) = cut_off.filter(|_| own_logs::has_records(vfs, &path, log.number)) {
                let what =
                    format!("log {earlier} does not end properly, and where it ends the MANIFEST says that would go");
                return Err(Error::invalid_argument(what).at_path(path));
            }
            let options = ReplayOptions { number: log.number, later: log.later, ..ReplayOptions::default() };
            let end = log::replay(vfs, &path, &options, &mut |record| {
                self.see(&record).map_err(|error| error.at_record(&path, record.offset))
            })?;
            if end.reason != EndReason::Sealed {
                cut_off = cut_off.or(Some(log.number));
            }
        }
        Ok(())
    }

    fn see(&mut self, record: &ReplayRecord<'_>) -> Result<()> {
        let Some(record) = CommitRecord::decode(record.kind, record.payload)? else { return Ok(()) };
        record.ingest.map_or(Ok(()), |ingest| self.see_ingest(&ingest))?;
        match &record.batch {
            Some(RecordedBatch::InFile(large)) => self.see_large_batch(large),
            _ => Ok(()),
        }
    }

    fn see_ingest(&mut self, record: &IngestRecord) -> Result<()> {
        for share in &record.families {
            let family = self.recovered.family(share.family);
            if family.is_none_or(|family| family.has_linked(record.first, record.last())) {
                continue;
            }
            ingests::check_tables(self.vfs, &self.places.db, share)?;
            let tables = share.layers.iter().flatten();
            self.tables.extend(tables.map(|IngestTable { meta, .. }| meta.number));
        }
        Ok(())
    }

    fn see_large_batch(&self, record: &LargeBatchRecord) -> Result<()> {
        let path = record.path(&self.places.logs);
        if !record.is_needed(|family| self.recovered.flushed_through(family)) || self.vfs.exists(&path)? {
            return Ok(());
        }
        Err(Error::corruption("the file of a large batch is missing, which was flushed since").at_path(path))
    }
}
