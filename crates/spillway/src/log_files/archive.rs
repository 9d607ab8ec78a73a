//! Logs no longer needed, kept in a directory of their own for cursors (`WAL_ttl_seconds`, `WAL_size_limit_MB`).
//!
//! Logs go oldest first, so what is kept has no gap. A log that a cursor reads stays, and so do the logs behind it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::options::DbOptions;
use base::{FileNumber, Result, SeqNo, note};
use parking_lot::Mutex;
use vfs::{IoClass, Vfs};
use wal::{DatabaseId, LogReader};

use crate::background::removal::Removals;
use crate::records::record::CommitRecord;
use crate::version::file_name::{self, FileType};

/// Name of the directory, in the log directory.
pub(crate) const ARCHIVE_DIR: &str = "archive";

/// Longest time between two looks for logs to delete, as in RocksDB.
const PERIOD_MAX: Duration = Duration::from_secs(600);

const MIB: u64 = 1 << 20;

pub(crate) struct Archive {
    vfs: Arc<dyn Vfs>,
    /// The log directory.
    dir: PathBuf,
    own: DatabaseId,
    /// Logs being read, and by how many cursors. A leaf lock.
    held: Mutex<BTreeMap<FileNumber, usize>>,
    /// When to look for logs to delete. A leaf lock.
    next_look: Mutex<Duration>,
}

/// Keeps a log in the archive.
pub(crate) struct Hold {
    archive: Arc<Archive>,
    log: FileNumber,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.archive.held.lock();
        if let Some(count) = held.get_mut(&self.log) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.log);
            }
        }
    }
}

/// A file in the archive.
struct Archived {
    path: PathBuf,
    bytes: u64,
    age_s: u64,
}

/// Where a database has its logs, for who looks for them by their numbers.
pub(crate) struct LogFinder<'a> {
    pub vfs: &'a dyn Vfs,
    pub dir: PathBuf,
    pub own: DatabaseId,
}

impl LogFinder<'_> {
    /// `None`: the log was deleted meanwhile, was never used, or is of another database.
    pub fn reader(&self, path: &Path, number: FileNumber) -> Result<Option<LogReader>> {
        let in_archive = || self.archived(FileType::Log, number);
        let opened = match LogReader::open(self.vfs, path, number) {
            Err(error) if error.is_not_found() => LogReader::open(self.vfs, &in_archive(), number),
            opened => opened,
        };
        match opened {
            Err(error) if error.is_not_found() => Ok(None),
            opened => Ok(opened?.filter(|reader| !reader.database().is_another_than(self.own))),
        }
    }

    /// The first sequence number in a log.
    pub fn first_number(&self, path: &Path, number: FileNumber) -> Result<Option<SeqNo>> {
        let Some(mut reader) = self.reader(path, number)? else { return Ok(None) };
        while let Some(record) = reader.read()? {
            let numbers = CommitRecord::decode(record.kind, record.payload)?.and_then(|commit| commit.numbers());
            if let Some((first, _)) = numbers {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    pub fn archived(&self, kind: FileType, number: FileNumber) -> PathBuf {
        self.dir.join(ARCHIVE_DIR).join(file_name::format(kind, number))
    }
}

impl Archive {
    /// `dir`: the log directory. `own`: the database.
    pub fn new(vfs: Arc<dyn Vfs>, dir: PathBuf, own: DatabaseId) -> Arc<Self> {
        Arc::new(Archive { vfs, dir, own, held: Mutex::default(), next_look: Mutex::default() })
    }

    /// Keeps a log, whether it is in the archive or comes there later.
    pub fn hold(self: &Arc<Self>, log: FileNumber) -> Hold {
        *self.held.lock().entry(log).or_default() += 1;
        Hold { archive: self.clone(), log }
    }

    /// Moves an obsolete log here, and syncs it: it survives power loss as the tables do. False if the options keep none,
    /// or nothing is in it: the caller deletes it.
    ///
    /// # Errors
    /// The move failed; the log is where it was.
    pub fn take(&self, path: &Path, kind: FileType, number: FileNumber, options: &DbOptions) -> Result<bool> {
        if !keeps_any(options) {
            return Ok(false);
        }
        let is_kept = match kind {
            FileType::Log => self.dirs().first_number(path, number).is_ok_and(|first| first.is_some()),
            FileType::LargeBatch => true,
            _ => false,
        };
        if !is_kept {
            return Ok(false);
        }
        let archive = self.dir.join(ARCHIVE_DIR);
        if !self.vfs.exists(&archive)? {
            self.vfs.create_dir_all(&archive)?;
            self.vfs.sync_dir(&self.dir)?;
        }
        // A flush of all there is leaves the log unsynced.
        self.vfs.open_append(path)?.sync(IoClass::Log)?;
        self.vfs.rename(path, &archive.join(file_name::format(kind, number)))?;
        self.vfs.sync_dir(&archive)?;
        *self.next_look.lock() = Duration::ZERO;
        Ok(true)
    }

    /// Deletes what is too old or too much, if it is time to look.
    pub fn keep_within(&self, options: &DbOptions, removals: &Removals) {
        {
            let (now, mut next_look) = (self.vfs.now(), self.next_look.lock());
            if now < *next_look {
                return;
            }
            *next_look = now + period(options);
        }
        if let Err(error) = self.delete_surplus(options, removals) {
            note::warn!(%error, "the archive of logs stays larger than it should");
        }
    }

    /// Time until the next look; `None` if no logs are kept.
    pub fn until_next_look(&self, options: &DbOptions) -> Option<Duration> {
        keeps_any(options).then(|| self.next_look.lock().saturating_sub(self.vfs.now()))
    }

    /// A large batch goes once a log with a larger number goes: the log that commits it is that one, or older.
    fn delete_surplus(&self, options: &DbOptions, removals: &Removals) -> Result<()> {
        let (mut logs, mut batches) = (self.files(FileType::Log)?, self.files(FileType::LargeBatch)?);
        let held = self.held.lock().keys().next().copied();
        let mut bytes: u64 = logs.values().chain(batches.values()).map(|file| file.bytes).sum();
        let limit_bytes = options.wal_size_limit_mb.saturating_mul(MIB);
        while let Some(oldest) = logs.first_entry() {
            let number = *oldest.key();
            let is_old = options.wal_ttl_seconds > 0 && oldest.get().age_s > options.wal_ttl_seconds;
            let is_too_much = options.wal_size_limit_mb > 0 && bytes > limit_bytes;
            let is_surplus = is_old || is_too_much || !keeps_any(options);
            if !is_surplus || held.is_some_and(|held| held <= number) {
                break;
            }
            let kept = batches.split_off(&number);
            let gone = std::mem::replace(&mut batches, kept).into_values().chain([oldest.remove()]);
            for file in gone {
                removals.remove_obsolete(&file.path)?;
                bytes = bytes.saturating_sub(file.bytes);
            }
        }
        Ok(())
    }

    /// This database's files of a kind in the archive.
    fn files(&self, kind: FileType) -> Result<BTreeMap<FileNumber, Archived>> {
        let archive = self.dir.join(ARCHIVE_DIR);
        let numbers = match file_name::numbers_in(&*self.vfs, &archive, kind) {
            Err(error) if error.is_not_found() => return Ok(BTreeMap::new()),
            numbers => numbers?,
        };
        let now_us = self.vfs.unix_time_us();
        let mut files = BTreeMap::new();
        for number in numbers {
            let path = archive.join(file_name::format(kind, number));
            if wal::database_of(&*self.vfs, &path, number).map_or(true, |found| found.is_another_than(self.own)) {
                continue;
            }
            let found = self.vfs.metadata(&path)?;
            let age_s = now_us.saturating_sub(found.modified_us) / 1_000_000;
            files.insert(number, Archived { path, bytes: found.len, age_s });
        }
        Ok(files)
    }

    pub fn dirs(&self) -> LogFinder<'_> {
        LogFinder { vfs: &*self.vfs, dir: self.dir.clone(), own: self.own }
    }
}

fn keeps_any(options: &DbOptions) -> bool {
    options.wal_ttl_seconds > 0 || options.wal_size_limit_mb > 0
}

/// As in RocksDB: half the time to live where only that limits, else ten minutes.
fn period(options: &DbOptions) -> Duration {
    match (options.wal_ttl_seconds, options.wal_size_limit_mb) {
        (ttl_s, 0) if ttl_s > 0 => Duration::from_secs((ttl_s / 2).max(1)).min(PERIOD_MAX),
        _ => PERIOD_MAX,
    }
}
