//! Checks logs kept by a restore, and finds the tables they name. Reads the logs as the next open will, before anything
//! is deleted: problems are refused before anything is lost (D2, D3). Only the existing MANIFEST, which goes, knows how far
//! the logs have to reach.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use base::note;
use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, UserOrder, name};
use table::TableContext;
use vfs::{IoClass, Vfs};
use wal::framed::{FramedEnd, FramedReader};
use wal::{DatabaseId, EndReason, Frontiers, Position, ReplayOptions, ReplayRecord};

use super::restore::Places;
use super::store::{Backup, Store};
use crate::batch::BatchReader;
use crate::core::tables::{open_in_any, verify_alone};
use crate::open::directory_owner;
use crate::open::replay::rocksdb_history::RocksdbHistory;
use crate::open::replay::rocksdb_logs::check_place;
use crate::open::replay::rocksdb_range::RocksdbRange;
use crate::open::replay::{ingests, own_logs, wal_range};
use crate::records::ingest_record::{IngestRecord, IngestTable};
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::rocksdb_record::{RocksdbStep, steps_of};
use crate::version::edit::{LOG_DIR_OF_COPY, LogEnd};
use crate::version::file_name::{self, FileType};
use crate::version::incomplete::absolute;
use crate::version::recover::{self, Recovered, table_path};
use crate::version::replay::RecoveredFamily;
use crate::version::session::Session;

/// Why a state is not restored beside logs of the other kind, which no open replays over it.
const OTHER_KIND: &str = "of the backup and what is there one is RocksDB's, and the other is not: the logs of one do \
                          not follow the other's state";

/// How far kept logs reach, or have to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogsEnd {
    /// Where the last log of ours ends that the next open replays.
    log: Position,
    /// The number of the last write.
    last: SeqNo,
}

/// Begins a line of a mark with a [`LogsEnd`].
const LOGS_END: &str = "kept logs end";

impl fmt::Display for LogsEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogsEnd { log: Position { log, offset }, last } = self;
        write!(f, "{LOGS_END} in log {} at byte {offset} with number {}", log.0, last.0)
    }
}

impl LogsEnd {
    /// The line of a mark.
    fn parse(mark: &str) -> Option<LogsEnd> {
        let line = mark.lines().find(|line| line.starts_with(LOGS_END))?;
        let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
        let log = Position { log: FileNumber(numbers.next()?), offset: numbers.next()? };
        Some(LogsEnd { log, last: SeqNo(numbers.next()?) })
    }
}

/// Tables named by kept logs.
pub(super) struct Kept {
    tables: BTreeSet<FileNumber>,
    /// A restore that begins again finds the same.
    pub reached: LogsEnd,
    /// Of the database that was there; empty: not known.
    pub sessions: Vec<Session>,
}

impl Kept {
    pub fn has(&self, kind: FileType, number: FileNumber) -> bool {
        kind == FileType::Table && self.tables.contains(&number)
    }

    /// Where the next open has to find the end of the logs. `None`: none of ours is kept.
    pub fn frontiers(&self) -> Option<Frontiers> {
        let end = self.reached.log;
        (end.log.0 > 0).then_some(Frontiers { synced: end, published: end })
    }

    /// `recovered`: from the backup's MANIFEST. `mark`: of an earlier restore that kept the logs. The MANIFEST that it replaced may
    /// be gone.
    ///
    /// # Errors
    /// `InvalidArgument`: existing logs do not follow the backup or lack an end, or files they name are missing; or nothing
    /// tells how far they have to reach.
    pub fn find(
        store: &Store,
        places: &Places,
        backup: &Backup,
        recovered: Recovered,
        mark: Option<&str>,
        orders: &[UserOrder],
    ) -> Result<Kept> {
        let vfs = &*store.vfs;
        let has_logs = backup.has_logs();
        if has_logs {
            check_no_logs_are_there(vfs, places, backup)?;
        }
        let has = backup.last_written(&recovered);
        let mut reader = Reader {
            vfs,
            places,
            recovered,
            owner: directory_owner(vfs, &places.db),
            existing: None,
            reached: LogsEnd::default(),
            tables: BTreeSet::new(),
            largest_family: FamilyId::DEFAULT,
        };
        let mut read = || {
            let wanted = match mark {
                // That of an earlier version tells no end.
                Some(mark) => LogsEnd::parse(mark).unwrap_or_default(),
                None => reader.find_existing()?,
            };
            reader.check_families()?;
            reader.check_same_way()?;
            if has_logs && let Some(existing) = reader.existing.as_ref().filter(|existing| existing.fenced) {
                reader.find_wal_range(reader.own(), existing)?; // those that are gone would be missed
            }
            if !has_logs {
                reader.read_rocksdb_logs()?;
                reader.check_no_unnumbered_ingest(orders)?;
                reader.read_logs()?;
                reader.tell_families_of_logs();
            }
            reader.check_reaches(wanted, has)
        };
        read().map_err(|error| refusal(backup, error))?;
        Ok(Kept { tables: reader.tables, reached: reader.reached, sessions: reader.recovered.sessions })
    }
}

/// Whether a directory, which need not exist, has files of a database other than logs.
pub(super) fn is_left(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    let names = if vfs.exists(dir)? { vfs.read_dir(dir)? } else { Vec::new() };
    let is_left = |kind: FileType| !matches!(kind, FileType::Lock | FileType::Incomplete | FileType::Temp);
    Ok(names.iter().any(|name| file_name::parse(name).is_some_and(|(kind, _)| is_left(kind) && !kind.is_log())))
}

/// The state by the existing MANIFEST or by its copy. `None`: there is no database, and nothing tells how far its logs went.
///
/// # Errors
/// `Corruption`: what there is has no MANIFEST that can be read.
fn read_existing(vfs: &dyn Vfs, places: &Places) -> Result<Option<Recovered>> {
    let dir = &places.db;
    let error = match recover::recover_proven(vfs, dir) {
        Ok(recovered) => return Ok(Some(recovered)),
        Err(error) if error.kind() != ErrorKind::Corruption && !error.is_not_found() => return Err(error),
        Err(error) => error,
    };
    if !is_left(vfs, dir)? {
        note::warn!(dir = %places.logs.display(), "no MANIFEST tells how far the kept logs have to reach");
        return Ok(None);
    }
    let what = format!("only the MANIFEST that is there tells how far they have to reach, and {}", error.message());
    Err(Error::corruption(what).at_path(error.path().unwrap_or(dir)))
}

/// Reads RocksDB's logs beside the MANIFEST `recovered` as an open does. The last one may end with a write that was cut off. Returns the largest id of a family that
/// they have changes of, too.
///
/// # Errors
/// `Corruption`: one is damaged, or lost its end. `Unsupported`: their numbers cannot be replayed.
pub(super) fn read_rocksdb_logs(
    vfs: &dyn Vfs,
    recovered: &Recovered,
    logs: &BTreeMap<FileNumber, PathBuf>,
) -> Result<(RocksdbRange, u32)> {
    let (mut history, mode) = (RocksdbHistory::of(recovered), WalRecoveryMode::PointInTime);
    let mut max_family = 0;
    for (&number, path) in logs {
        let mut reader = FramedReader::open(vfs, path, Some(number.0), IoClass::Log)?;
        let end = wal::framed::replay(&mut reader, mode, &mut |record| {
            let read = BatchReader::new(&record.payload).and_then(|batch| {
                if history.admits(number, batch.seq()) {
                    history.check_numbers(number, batch.seq())?;
                    let steps = steps_of(&batch, false)?;
                    max_family = steps.iter().flat_map(families_of).fold(max_family, u32::max);
                    history.add(number, batch.seq(), &steps);
                }
                Ok(())
            });
            read.map_err(|error| error.at_record(path, record.offset))
        })?;
        if let FramedEnd::Damaged { offset } = end {
            return Err(Error::corruption("the log is damaged").at_path(path).at_offset(offset));
        }
        history.end_log(number, &reader, end, mode);
    }
    match history.lost_from().and_then(|number| logs.get(&number)) {
        Some(path) => Err(Error::corruption("the log is cut off, and records behind its end are lost").at_path(path)),
        None => Ok((history.range, max_family)),
    }
}

/// The families of a step's changes.
fn families_of(step: &RocksdbStep<'_>) -> impl Iterator<Item = u32> {
    let batch = match step {
        RocksdbStep::Changes(batch) | RocksdbStep::Prepare { batch, .. } => Some(batch.clone()),
        RocksdbStep::Commit(_) | RocksdbStep::Rollback(_) => None,
    };
    batch.into_iter().flatten().filter_map(|change| Some(change.ok()?.family.0))
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

fn made_since(id: FamilyId, name: &str) -> String {
    let name = if name.is_empty() { id.0.to_string() } else { format!("{name:?}") };
    format!("column family {name} was made since the backup")
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
    owner: DatabaseId,
    /// From the existing MANIFEST, of the same database.
    existing: Option<Recovered>,
    reached: LogsEnd,
    /// Tables named by records the next open applies.
    tables: BTreeSet<FileNumber>,
    /// The largest id of a family in the logs.
    largest_family: FamilyId,
}

impl Reader<'_> {
    /// The database that was backed up.
    fn own(&self) -> DatabaseId {
        DatabaseId::new(self.recovered.db_id.as_deref().unwrap_or_default())
    }

    /// Reads the existing MANIFEST. Returns how far the logs have to reach for it.
    ///
    /// # Errors
    /// `Corruption`: it cannot be read, nor can its copy. `InvalidArgument`: it is another database's, or has its logs in
    /// another directory.
    fn find_existing(&mut self) -> Result<LogsEnd> {
        let db = &self.places.db;
        let Some(existing) = read_existing(self.vfs, self.places)? else { return Ok(LogsEnd::default()) };
        let own = self.own();
        if self.owner.is_another_than(own) {
            let what = format!("the database that is there is {}, and the backup is of {own}", self.owner);
            return Err(Error::invalid_argument(what).at_path(db));
        }
        if existing.is_copy() || wal_range::original_of(self.vfs, db, &existing).is_some() {
            let what = "the database that is there is a copy that was not opened for writing yet, and its logs are as its original's: \
                        open it once, or restore without keep_log_files";
            return Err(Error::invalid_argument(what).at_path(db));
        }
        if existing.fenced != self.recovered.fenced {
            return Err(Error::invalid_argument(OTHER_KIND).at_path(db));
        }
        if !existing.fenced {
            let named = Some(&*self.places.logs).filter(|logs| logs != db);
            check_place(self.vfs, db, named, &existing)?.map_or(Ok(()), Err)?;
        }
        let logs = existing.log_dir.as_deref().map(|dir| match dir {
            "" | LOG_DIR_OF_COPY => db.clone(),
            dir => name::path(dir),
        });
        let place = |dir: &Path| self.vfs.canonicalize(dir).unwrap_or_else(|_| absolute(dir));
        let is_there = |logs: &PathBuf| self.vfs.exists(logs).unwrap_or(true);
        let here = place(&self.places.logs);
        if let Some(logs) = logs.filter(|logs| is_there(logs) && place(logs) != here) {
            let (there, here) = (logs.display(), self.places.logs.display());
            let what = format!("the database that is there has its logs in {there}, not in {here}: say that wal_dir");
            return Err(Error::invalid_argument(what).at_path(db));
        }
        let wanted = LogsEnd { log: Position::default(), last: existing.last_written };
        self.existing = Some(existing);
        Ok(wanted)
    }

    /// Tells of families that only the logs have.
    fn tell_families_of_logs(&self) {
        let named = self.existing.iter().chain([&self.recovered]).map(|known| known.max_family).max();
        if named < Some(self.largest_family.0) {
            let what = made_since(self.largest_family, "");
            note::warn!(
                "{what}, as the kept logs tell: it does not come back, nor do its writes, nor others made since"
            );
        }
    }

    /// The existing database came after the backup: it went through the backup's session, and through the backup's last write in it.
    /// From here on its sessions tell whose logs are there. Without it nothing does.
    ///
    /// # Errors
    /// `InvalidArgument`: it did not. A snapshot of the file system was brought back, or it is a copy that went its own way.
    fn check_same_way(&mut self) -> Result<()> {
        let there = self.existing.as_ref().map_or_else(Vec::new, |existing| existing.sessions.clone());
        let of_backup = std::mem::replace(&mut self.recovered.sessions, there);
        let Some((existing, last)) = self.existing.as_ref().zip(of_backup.last()) else { return Ok(()) };
        let mut since = existing.sessions.iter().skip_while(|session| session.id != last.id);
        let came_to = since.next().map(|_| since.next().map_or(existing.last_seq, |next| next.after));
        let through = self.recovered.families.iter().filter_map(|family| family.flushed_through);
        let written = self.recovered.tables().map(|meta| meta.largest_seq).chain(through).max();
        // A family that the backup has let go, or whose id it gave another.
        let is_foreign = |family: &RecoveredFamily| match self.recovered.family(family.id) {
            Some(of_backup) => of_backup.name != family.name,
            None => family.id.0 <= self.recovered.max_family,
        };
        let is_behind = came_to.is_none_or(|came_to| written > Some(came_to));
        if !is_behind && existing.max_family >= self.recovered.max_family && !existing.families.iter().any(is_foreign) {
            return Ok(());
        }
        let what = "the database that is there went another way than the backup's (a snapshot of the file system that was brought back, \
                    a copy of the files, or a repair without the MANIFEST), or was opened more than a hundred times since: nothing \
                    tells that its logs follow the backup";
        Err(Error::invalid_argument(what).at_path(&self.places.db))
    }

    /// Families that were made since the backup do not come back, nor do their writes. RocksDB opens no logs with changes of a family
    /// that its MANIFEST never had.
    ///
    /// # Errors
    /// `InvalidArgument`: there is one, of RocksDB's database.
    fn check_families(&self) -> Result<()> {
        let families = self.existing.iter().flat_map(|existing| &existing.families);
        for family in families.filter(|family| family.id.0 > self.recovered.max_family) {
            let what = made_since(family.id, &family.name);
            if !self.recovered.fenced {
                return Err(Error::invalid_argument(what).at_path(&self.places.db));
            }
            note::warn!("{what}: it does not come back, nor do its writes in the kept logs");
        }
        Ok(())
    }

    /// RocksDB gives an ingested table that overlaps nothing the number 0, and leaves those of another database their numbers: no log
    /// names it, and no number is missing. One that was compacted since is told by nothing.
    ///
    /// # Errors
    /// `Corruption`: such a table came since the backup.
    fn check_no_unnumbered_ingest(&self, orders: &[UserOrder]) -> Result<()> {
        let existing = self.existing.iter().filter(|existing| !existing.fenced);
        let tables = existing.flat_map(|existing| existing.tables().map(move |meta| (existing.db_id.as_deref(), meta)));
        for (id, meta) in tables.filter(|(_, meta)| meta.number >= self.recovered.noted_next) {
            let path = table_path(&self.places.db, meta.path_id, meta.number)?;
            let orders = [UserOrder::Bytewise, UserOrder::ReverseBytewise].iter().chain(orders);
            let table = match open_in_any(self.vfs, &path, meta.file_bytes, &TableContext::default(), orders) {
                Ok((table, _)) => table,
                Err(error) if error.kind() == ErrorKind::Corruption || error.is_not_found() => {
                    note::warn!(%error, "a table that goes cannot be read: if RocksDB ingested it, no log has what was in it");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let properties = table.table().properties();
            // RocksDB before version 6.22 notes neither.
            let (made_as, made_by) = (properties.original_file_number, properties.db_id.as_str());
            let is_brought = (made_as != 0 && made_as != meta.number.0)
                || (!made_by.is_empty() && id.is_some_and(|id| id != made_by));
            if properties.external.is_some() || is_brought {
                let what = "this table was ingested since the backup, without a number and into no log: it would go";
                return Err(Error::corruption(what).at_path(path));
            }
        }
        Ok(())
    }

    /// Checks that the logs reach the end that they have to, and notes it. The backup `has` all through a number.
    ///
    /// # Errors
    /// `Corruption`: they do not.
    fn check_reaches(&mut self, wanted: LogsEnd, has: SeqNo) -> Result<()> {
        let LogsEnd { log, last } = self.reached;
        if log < wanted.log || last.max(has) < wanted.last {
            let what = format!(
                "backup and logs end with number {}, and the database that is there had writes through number {}; those \
                 between are in tables, which would go, or lost",
                last.max(has),
                wanted.last
            );
            return Err(Error::corruption(what).at_path(&self.places.logs));
        }
        self.reached = LogsEnd { log, last: last.max(wanted.last) };
        Ok(())
    }

    /// Checks that the logs are of the backup's kind. Our logs beside RocksDB's backup were written after a takeover, RocksDB's beside
    /// ours after an export. The existing MANIFEST would tell, and may be lost.
    ///
    /// # Errors
    /// `InvalidArgument`: they are of the other kind.
    fn check_kind(&self, found: &wal_range::FoundRange) -> Result<()> {
        let (vfs, dir) = (self.vfs, self.places.logs.as_path());
        let are_other = match self.recovered.fenced {
            // A takeover that was cut off noted no MANIFEST. Without an id the logs may be another database's, beside RocksDB's.
            false => {
                let is_rocksdb_gone = file_name::numbers_in(vfs, dir, FileType::RocksLog)?.is_empty();
                found.manifest.is_some() && (self.own().is_known() || is_rocksdb_gone)
            }
            true => self.existing.is_none() && found.logs.is_empty() && self.reached.last > SeqNo::ZERO,
        };
        if are_other { Err(Error::invalid_argument(OTHER_KIND).at_path(dir)) } else { Ok(()) }
    }

    /// Reads RocksDB's logs. They have to go on where the backup ends, with no number missing: a log that is gone leaves the same
    /// gap as writes that went to no log.
    ///
    /// # Errors
    /// `Corruption`: they do not, or are damaged.
    fn read_rocksdb_logs(&mut self) -> Result<()> {
        let (vfs, dir) = (self.vfs, self.places.logs.as_path());
        let path = |number| dir.join(file_name::format(FileType::RocksLog, number));
        let numbers = file_name::numbers_in(vfs, dir, FileType::RocksLog)?;
        let needed = numbers.range(self.recovered.oldest_rocksdb_log()..);
        let needed = needed.map(|&number| (number, path(number))).collect();
        let known = self.existing.as_ref().unwrap_or(&self.recovered);
        let (range, max_family) = read_rocksdb_logs(vfs, known, &needed)?;
        if max_family > self.recovered.max_family {
            return Err(Error::invalid_argument(made_since(FamilyId(max_family), "")).at_path(dir));
        }
        // What the existing families do not need any more, those of the backup may.
        let mut missing = self.existing.iter().chain([&self.recovered]).flat_map(|needing| range.missing(needing));
        if let Some(part) = missing.find(|part| part.log >= self.recovered.oldest_rocksdb_log()) {
            return Err(Error::corruption(part.why).at_path(path(part.log)));
        }
        // Tables that go may have what it committed: the backup's do not.
        if let Some(log) = range.lacks_prepare_behind(self.recovered.last_seq) {
            let what = "it commits a transaction whose prepare is in no log: the writes are in tables, which would go, or lost";
            return Err(Error::corruption(what).at_path(path(log)));
        }
        self.reached.last = self.reached.last.max(range.last());
        match range.first_gap(self.recovered.last_seq) {
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
        let own = self.own();
        let found = self.find_wal_range(own, &self.recovered)?;
        self.check_kind(&found)?;
        let noted = self.existing.as_ref().map(|existing| self.find_wal_range(own, existing)).transpose()?;
        if let Some((existing, noted)) = self.existing.as_ref().zip(noted.as_ref()) {
            noted.check_manifest(&self.places.db, existing)?;
        }
        let noted = noted.map(|noted| noted.logs).unwrap_or_default();
        let mut cut_off = None;
        for log in &found.logs {
            let path = dir.join(file_name::format(FileType::Log, log.number));
            if let Some(earlier) = cut_off.filter(|_| own_logs::has_records(vfs, &path, log.number)) {
                let what =
                    format!("log {earlier} does not end properly, and where it ends the MANIFEST says that would go");
                return Err(Error::invalid_argument(what).at_path(path));
            }
            let by_existing = noted.iter().find(|noted| noted.number == log.number);
            let later = by_existing.map_or(log.later, |noted| noted.later.max(log.later));
            let options = ReplayOptions { number: log.number, later, ..ReplayOptions::default() };
            vfs.open_append(&path)?.sync(IoClass::Log)?; // the MANIFEST will note that it reaches so far
            let replayed = wal::replay(vfs, &path, &options, &mut |record| {
                self.see(&record).map_err(|error| error.at_record(&path, record.offset))
            });
            let mut ends = self.existing.iter().flat_map(|existing| &existing.log_ends);
            let is_ended = |noted: &LogEnd| noted.log == log.number && !noted.is_all_in_tables();
            let end = replayed.map_err(|error| match ends.clone().any(is_ended) {
                true => error.advise("a kill leaves such a log too: where it ends, the MANIFEST says that would go"),
                false => error,
            })?;
            let is_short = |noted: &&LogEnd| noted.log == log.number && noted.end_offset > end.end_offset;
            if ends.any(|noted| !noted.is_all_in_tables() && is_short(&noted)) {
                let what = "the log is damaged from here on: the MANIFEST that is there notes a later end";
                return Err(Error::corruption(what).at_path(path).at_offset(end.end_offset));
            }
            if cut_off.is_none() && end.reason != EndReason::Blank {
                self.reached.log = Position { log: log.number, offset: end.end_offset };
            }
            if end.reason != EndReason::Sealed {
                cut_off = cut_off.or(Some(log.number));
            }
        }
        Ok(())
    }

    /// The logs by a MANIFEST.
    ///
    /// # Errors
    /// `Corruption`: one is missing, or its header is damaged. `InvalidArgument`: one is the existing database's, and that is
    /// another one.
    fn find_wal_range(&self, own: DatabaseId, recovered: &Recovered) -> Result<wal_range::FoundRange> {
        let (vfs, dir) = (self.vfs, self.places.logs.as_path());
        let head = |path: &Path, number| wal::read_head(vfs, path, number);
        let found = wal_range::find(vfs, dir, own, recovered.noted_logs(), head)?;
        if let Some((number, other)) = found.others.iter().find(|(_, other)| **other == self.owner) {
            let what = format!("log {number} is of the database {other}, and the backup of {own}");
            return Err(Error::invalid_argument(what).at_path(dir.join(file_name::format(FileType::Log, *number))));
        }
        let let_go = recovered.let_go_through();
        let is_needed = |log: &&wal_range::MissingLog| !own_logs::was_let_go(vfs, dir, log.number, &found.logs, let_go);
        match found.missing.iter().find(is_needed) {
            Some(missing) => Err(missing.error(dir)),
            None => Ok(found),
        }
    }

    fn see(&mut self, record: &ReplayRecord<'_>) -> Result<()> {
        let Some(record) = CommitRecord::decode(record.kind, record.payload)? else { return Ok(()) };
        let last = record.numbers().map(|(_, last)| last);
        self.reached.last = self.reached.last.max(last.unwrap_or_default());
        record.ingest.map_or(Ok(()), |ingest| self.see_ingest(&ingest))?;
        let families: Vec<FamilyId> = match &record.batch {
            Some(RecordedBatch::InRecord(batch)) => {
                batch.clone().map_while(Result::ok).map(|change| change.family).collect()
            }
            Some(RecordedBatch::InFile(large)) => large.families.clone(),
            _ => Vec::new(),
        };
        self.largest_family = families.into_iter().fold(self.largest_family, FamilyId::max);
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
            for IngestTable { meta, .. } in share.layers.iter().flatten() {
                let path = table_path(&self.places.db, meta.path_id, meta.number)?;
                verify_alone(self.vfs, &path, meta, &[]).map_err(|error| error.at_path(path))?;
                self.tables.insert(meta.number);
            }
        }
        Ok(())
    }

    /// # Errors
    /// `Corruption`: the next open needs the file, and it is missing, damaged or another one.
    fn see_large_batch(&self, record: &LargeBatchRecord) -> Result<()> {
        if !record.is_needed(|family| self.recovered.flushed_through(family)) {
            return Ok(());
        }
        let owner = (self.own(), self.recovered.session_of(record.file));
        match record.read(self.vfs, &self.places.logs, owner, &mut |_| Ok(())) {
            Err(error) if error.is_not_found() => {
                let what = "the file of a large batch is missing, which was flushed since";
                Err(Error::corruption(what).at_path(record.path(&self.places.logs)))
            }
            read => read.map(drop),
        }
    }
}
